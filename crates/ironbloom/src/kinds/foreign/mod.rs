//! A filter that another program made, under that program's own rule.
//!
//! ```text
//! key ── form ──► bytes ── the rule's hash ──► 32 to 256 bits ── the rule's probes ──► k positions in m bits
//! ```
//!
//! Bits cannot be rehashed, so such a filter is not converted to one of ours: it is kept unchanged, with the number of
//! its rule beside it, and every answer stays that of the other program, false positives included. All formats are a
//! flat bit array once their byte order is undone; the [`Rule`], in the file of its format, defines where the bits of a
//! key are ([`format::foreign`](crate::format::foreign)).

mod batch;
mod kind;
mod rule;

pub(in crate::kinds) use kind::PLANS;
pub(crate) use rule::Probing;
pub use rule::Rule;
use rule::with_probing;

use crate::bits::address;
use crate::error::{DecodeError, Mismatch, ParamError, check_range};
use crate::format::Kind;
use crate::format::native::{Image, Parts, Persist, Sections, zero_after};
use crate::hash::{Encoded, HashFn, Key, KeyError, KeyForm, Modulus};
use crate::kernel::{LINE_BYTES, LINE_WORDS, Words};
use crate::sizing;

/// Maximum number of probes, more than any program makes. Each costs time, so a forged file must not ask for more.
pub const MAX_FOREIGN_PROBES: u32 = 1024;

/// Maximum number of bits, as for other kinds.
const MAX_BITS: u64 = (1 << 60) - 1;

/// Maximum number of bytes that a file may carry besides its bits.
const MAX_ATTACHMENT: u64 = 1 << 30;

/// A filter created by another program: Guava, Spark, and others.
///
/// ```
/// use ironbloom::hash::KeyForm;
/// use ironbloom::{Foreign, Rule};
/// // BloomFilter.create(Funnels.longFunnel(), 1000, 0.01) in Java
/// let mut seen = Foreign::for_rate(Rule::Guava64, 1000, 0.01, Some(KeyForm::Long))?;
/// seen.insert(42)?;
/// assert!(seen.contains(42)? && seen.contains("42")?);
/// assert!(seen.contains("alice").is_err());                   // not an integer: an error, not "absent"
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Foreign {
    rule: Rule,
    form: Option<KeyForm>,
    bits: u64,
    probes: u32,
    range: Modulus,
    words: Words,
    noted: Noted,
}

/// Data that a format records besides the bits, and that the bits do not show.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Noted {
    /// Number of keys inserted, or estimated from the bits if not counted.
    pub(crate) len: u64,
    /// Number of keys planned for; 0 if not recorded.
    pub(crate) capacity: u64,
    /// The planned rate; 0 if not recorded.
    pub(crate) rate: f64,
    /// Other data that a format needs to write the same bytes again.
    pub(crate) flags: u64,
    /// Bytes that travel with the filter without a meaning for it.
    pub(crate) attachment: Vec<u8>,
}

impl Foreign {
    /// Creates an empty filter of this many bits.
    pub fn new(
        rule: Rule,
        bits: u64,
        probes: u32,
        form: Option<KeyForm>,
    ) -> Result<Self, ParamError> {
        check_range("number of bits", bits, 1, MAX_BITS)?;
        check_range("number of probes", probes.into(), 1, MAX_FOREIGN_PROBES.into())?;
        if !rule.fits(bits, probes) {
            let what = "number of bits, of which this rule has whole words, bytes or lines,";
            let next = bits.next_multiple_of(rule.unit());
            return Err(ParamError::OutOfRange { what, value: bits, least: next, greatest: next });
        }
        let words = Words::zeroed(bits)?;
        Ok(Self::from_parts(rule, bits, probes, form, words, Noted::default()))
    }

    /// Creates an empty filter as the other program would for this many keys at this rate.
    pub fn for_rate(
        rule: Rule,
        capacity: u64,
        rate: f64,
        form: Option<KeyForm>,
    ) -> Result<Self, ParamError> {
        crate::error::check_rate(capacity, rate)?;
        let (bits, probes) = crate::format::foreign::size(rule, capacity, rate);
        let mut filter = Self::new(rule, bits, probes, form.or(rule.only_form()))?;
        filter.noted = Noted { capacity, rate, ..Noted::default() };
        Ok(filter)
    }

    /// Builds a filter of checked parts: `bits` and `probes` are in range, and zeros follow the last bit.
    pub(crate) fn from_parts(
        rule: Rule,
        bits: u64,
        probes: u32,
        form: Option<KeyForm>,
        words: Words,
        noted: Noted,
    ) -> Self {
        let form = form.or(rule.only_form());
        Self { rule, form, bits, probes, range: Modulus::new(bits), words, noted }
    }

    /// Sets the count to an estimate from the bits: there is no other.
    pub(crate) fn with_estimate(mut self) -> Self {
        self.noted.len = self.counted();
        self
    }

    /// Sets the form of the keys, if the caller knows it. Fails if its program has no such keys, or if they are known
    /// to be others: text may only be spelled in hexadecimal digits, and these as text.
    pub fn with_form(mut self, form: KeyForm) -> Result<Self, Mismatch> {
        let refused =
            |left| Err(Mismatch { what: "form of the keys", left, right: form.name().to_owned() });
        if !self.rule.forms().any(|possible| possible == form) {
            let forms: Vec<&str> = self.rule.forms().map(KeyForm::name).collect();
            return refused(forms.join(", "));
        }
        let are_bytes = |form| matches!(form, KeyForm::Text | KeyForm::Hex);
        if let Some(known) = self.form
            && known != form
            && !(are_bytes(known) && are_bytes(form))
        {
            return refused(known.name().to_owned());
        }
        self.form = Some(form);
        Ok(self)
    }

    /// The rule it follows.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// The form of its keys, if known.
    pub fn form(&self) -> Option<KeyForm> {
        self.form
    }

    /// Number of bits.
    pub fn bits(&self) -> u64 {
        self.bits
    }

    /// Number of probes per key.
    pub fn probes(&self) -> u32 {
        self.probes
    }

    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(crate) fn noted(&self) -> &Noted {
        &self.noted
    }

    /// How keys are hashed, as files record it.
    pub fn hash_fn(&self) -> HashFn {
        HashFn::Foreign { form: self.form, seed: self.rule.seed() }
    }

    fn known_form(&self) -> Result<KeyForm, KeyError> {
        self.form.ok_or(KeyError::UnknownForm)
    }

    /// Returns true if the key might be in the filter. `false` is certain.
    pub fn contains(&self, key: impl Key) -> Result<bool, KeyError> {
        let form = self.known_form()?;
        let keys = form.zeros(key.encoded());
        let has = |key: Encoded<'_>| {
            with_probing!(self.rule, |probing| {
                form.with_bytes(key, |bytes| {
                    self.takes(bytes) && self.has(probing, probing.hash(bytes))
                })
            })
        };
        match keys {
            None => has(key.encoded()),
            Some([plus, minus]) => Ok(has(plus.encoded())? || has(minus.encoded())?),
        }
    }

    /// Returns true if the program inserts such a key at all.
    #[inline]
    fn takes(&self, bytes: &[u8]) -> bool {
        !bytes.is_empty() || self.rule.takes_empty()
    }

    #[inline]
    fn has<P: Probing>(&self, probing: P, hash: P::Hash) -> bool {
        let mut positions = probing.positions(hash, self.range, 0).take(self.probes as usize);
        positions.all(|position| self.bit(position) & 1 == 1)
    }

    /// Returns the bit at this position, as the lowest of the result.
    #[inline(always)]
    fn bit(&self, position: u64) -> u64 {
        self.words[(position / 64) as usize] >> (position % 64)
    }

    /// Inserts a key. Returns true if it was new, that is, certainly not in the filter before.
    pub fn insert(&mut self, key: impl Key) -> Result<bool, KeyError> {
        let form = self.known_form()?;
        let is_minus_zero = form.with_bytes(key.encoded(), |bytes| {
            form == KeyForm::Double && bytes == (-0.0f64).to_le_bytes()
        })?;
        // Programs with only one zero look for the other one.
        let new = is_minus_zero && self.insert_form(form, b"0".as_slice().encoded())?;
        Ok(self.insert_form(form, key.encoded())? || new)
    }

    fn insert_form(&mut self, form: KeyForm, key: Encoded<'_>) -> Result<bool, KeyError> {
        let (range, probes) = (self.range, self.probes as usize);
        let takes_empty = self.rule.takes_empty();
        let words = self.words.to_mut();
        let new = with_probing!(self.rule, |probing| {
            form.with_bytes(key, |bytes| {
                if bytes.is_empty() && !takes_empty {
                    return false;
                }
                let mut missing = 0;
                for position in probing.positions(probing.hash(bytes), range, 0).take(probes) {
                    let (word, mask) = address(position);
                    missing |= mask & !words[word];
                    words[word] |= mask;
                }
                missing != 0
            })
        })?;
        self.noted.len += u64::from(new);
        Ok(new)
    }

    fn check_same(&self, other: &Self) -> Result<(), Mismatch> {
        Mismatch::unless_equal("rule", self.rule.name(), other.rule.name())?;
        Mismatch::unless_equal("seed", self.rule.seed(), other.rule.seed())?;
        let form = |filter: &Self| filter.form.map_or("unknown", KeyForm::name);
        Mismatch::unless_equal("form of the keys", form(self), form(other))?;
        Mismatch::unless_equal("number of bits", self.bits, other.bits)?;
        Mismatch::unless_equal("number of probes", self.probes, other.probes)
    }

    /// Adds every key of a filter with the same rule and shape. Fails, changing nothing, if they differ.
    pub fn union_with(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.check_same(other)?;
        self.words.combine(&other.words, |a, b| a | b);
        let most = self.noted.len.saturating_add(other.noted.len);
        self.noted.len = self.counted().max(self.noted.len).max(other.noted.len).min(most);
        Ok(())
    }

    /// Keeps the keys of both filters, which must have the same rule and shape. Fails, changing nothing, if they
    /// differ.
    pub fn intersect_with(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.check_same(other)?;
        self.words.combine(&other.words, |a, b| a & b);
        self.noted.len = self.counted().min(self.noted.len).min(other.noted.len);
        Ok(())
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.words.clear();
        self.noted.len = 0;
    }

    /// Number of keys: counted by the program that created the filter or by us, otherwise estimated from the bits.
    pub fn len(&self) -> u64 {
        self.noted.len
    }

    /// True if it holds no keys.
    pub fn is_empty(&self) -> bool {
        self.noted.len == 0
    }

    /// Number of keys planned for, or 0 if the file does not record it.
    pub fn capacity(&self) -> u64 {
        self.noted.capacity
    }

    /// Number of distinct keys, estimated from the set bits. Infinite when all bits are set.
    pub fn estimate_len(&self) -> f64 {
        sizing::estimate_len(self.bits, self.probes, self.words.count_ones())
    }

    /// The estimate as a count.
    pub(crate) fn counted(&self) -> u64 {
        (self.estimate_len().round() as u64).min(self.bits)
    }

    /// The current rate, from the bits set.
    pub fn estimate_rate(&self) -> f64 {
        let rate = |ones: u64, bits: u64| (ones as f64 / bits as f64).powi(self.probes as i32);
        if !self.rule.in_lines() {
            return rate(self.words.count_ones(), self.bits);
        }
        let ones = |line: &[u64]| line.iter().map(|word| u64::from(word.count_ones())).sum();
        let lines = self.words.chunks(LINE_WORDS);
        let sum: f64 = lines.map(|line| rate(ones(line), 8 * LINE_BYTES as u64)).sum();
        sum / (self.words.len() / LINE_WORDS) as f64
    }

    /// True if more keys were counted than planned for, if the file records both.
    pub fn is_over_capacity(&self) -> bool {
        self.noted.capacity > 0 && self.noted.len > self.noted.capacity
    }

    /// Share of bits that are set.
    pub fn fill(&self) -> f64 {
        self.words.count_ones() as f64 / self.bits as f64
    }

    /// Size in bytes.
    pub fn size_in_bytes(&self) -> usize {
        self.words.size_in_bytes()
    }
}

impl Persist for Foreign {
    fn encode(&self) -> Image<'_> {
        let Noted { len, capacity, rate, flags, ref attachment } = self.noted;
        let params = [
            self.rule.number(),
            self.bits,
            self.probes.into(),
            rate.to_bits(),
            attachment.len() as u64,
            flags,
        ];
        let image = Image::new(Kind::Foreign, self.hash_fn(), len, capacity)
            .params(&params)
            .section(&self.words);
        if attachment.is_empty() {
            return image;
        }
        let mut words = vec![0; attachment.len().div_ceil(LINE_BYTES) * LINE_WORDS];
        for (word, bytes) in words.iter_mut().zip(attachment.chunks(8)) {
            *word = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        }
        image.owned_section(words)
    }

    fn decode(parts: Parts) -> Result<Self, DecodeError> {
        let header = parts.expect_kind(Kind::Foreign)?;
        let [number, bits, probes, rate, attached, flags] = header.first_params()?;
        let invalid = |what, value| DecodeError::Invalid { what, value };
        let HashFn::Foreign { form, seed } = header.hash_fn else {
            return Err(invalid("hash function", 0));
        };
        let rule = Rule::from_number(number, seed).ok_or(invalid("rule", number))?;
        if form.is_some_and(|form| !rule.forms().any(|possible| possible == form)) {
            return Err(invalid("form of the keys", KeyForm::number(form).into()));
        }
        check_range("number of bits", bits, 1, MAX_BITS)?;
        check_range("number of probes", probes, 1, MAX_FOREIGN_PROBES.into())?;
        if !rule.fits(bits, probes as u32) {
            return Err(invalid("number of bits", bits));
        }
        check_range("bytes beside the filter", attached, 0, MAX_ATTACHMENT)?;
        let planned = f64::from_bits(rate);
        if !(planned == 0.0 || planned > 0.0 && planned < 1.0) {
            return Err(invalid("rate", rate));
        }
        let (len, capacity) = (header.len, header.capacity);
        let mut sections = Sections::new(parts.words);
        let words = sections.take_lines(bits.div_ceil(8 * LINE_BYTES as u64))?;
        let beside = sections.take_lines(attached.div_ceil(LINE_BYTES as u64))?;
        sections.finish()?;
        let (words, beside) = (zero_after(words, bits)?, zero_after(beside, 8 * attached)?);
        let bytes = beside.iter().flat_map(|word| word.to_le_bytes());
        let attachment = bytes.take(attached as usize).collect();
        let noted = Noted { len, capacity, rate: planned, flags, attachment };
        Ok(Self::from_parts(rule, bits, probes as u32, form, words, noted))
    }
}
