//! The binary fuse filter: the fewest bits per key, for a fixed set that is known in advance [GL22].
//!
//! Every key has a fingerprint of w bits and three (or four) cells in consecutive segments of an array. The values of
//! the cells are chosen so that the exclusive or of a key's cells is its fingerprint:
//!
//! ```text
//!  segment 0   segment 1   segment 2   segment 3  …      S + 2 segments of L cells, L a power of two
//! [····a·····][·······b··][·c········][··········]
//!
//! contains(key):   A[a] ^ A[b] ^ A[c] == fingerprint(key)        one comparison: the rate is 2^-w
//! ```
//!
//! An array of 1.125 n cells suffices for three cells per key, of 1.075 n for four, so the filter takes 12 or 7 % more
//! than w bits per key, the lower bound for any filter of rate 2^-w. `build` explains how the values are found.
//!
//! A lookup needs only one number, the key's hash mixed with the seed of the filter:
//!
//! ```text
//! x  = mix64(hash + seed)               a bijection: distinct hashes stay distinct under every seed
//! c0 = floor(x S L / 2^64)              by the high bits of x, so sorted x have sorted cells
//! ci = (c0 + i L) ^ offset i            of 18 bits at most: x >> 18, x, y >> 14
//! y  = remix(x ^ x >> 32)               the fingerprint is its highest w bits
//! ```
//!
//! The paper's code has two offsets; the third is ours, taken from y because x does not have 18 bits left for it.

mod kind;

pub(super) use kind::PLANS;

mod build;
mod keys;
mod lookup;
mod queue;

use crate::bits::packed::Packed;
use crate::error::{DecodeError, ParamError, check_range, check_rate};
use crate::format::Kind;
use crate::format::native::{Image, Parts, Persist};
use crate::hash::{HashFn, Key, KeyTypes, mix64, remix};
use crate::kernel::{OFFSET_BITS, Segments, contains_each};
use crate::kinds::check_lengths;
use crate::sizing;
use lookup::{Byte, Cell, LookupPath, Narrow, Reader, Wide};

/// Minimum width of a fingerprint: a rate of 1/16 hardly filters at all.
const MIN_WIDTH: u32 = 4;
/// Maximum width of a fingerprint: the high half of y. The third offset is below it.
const MAX_WIDTH: u32 = 32;

/// Number of cells per key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Arity {
    /// Three cells: 12.5 % over the bits of the fingerprints, faster lookups.
    #[default]
    Three,
    /// Four cells: 7.5 % over the bits of the fingerprints.
    Four,
}

impl Arity {
    /// The number of cells.
    pub fn cells(self) -> u32 {
        match self {
            Self::Three => 3,
            Self::Four => 4,
        }
    }
}

/// The validated parameters of a [`BinaryFuse`], chosen before its keys are known: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FuseParams {
    width: u32,
    arity: Arity,
}

impl FuseParams {
    /// Plans the narrowest fingerprints that meet `rate`, three cells per key. Rates above 1/16 use 4 bits; rates below
    /// 2^-32 are rejected.
    pub fn for_rate(rate: f64) -> Result<Self, ParamError> {
        check_rate(1, rate)?;
        let width = sizing::fingerprint_width(rate).max(MIN_WIDTH);
        if width > MAX_WIDTH {
            return Err(ParamError::RateBelowHash { rate, floor: rate_of(MAX_WIDTH) });
        }
        Self::new(width, Arity::Three)
    }

    /// Plans fingerprints of `width` bits, 4 to 32.
    pub fn new(width: u32, arity: Arity) -> Result<Self, ParamError> {
        check_range("width", u64::from(width), u64::from(MIN_WIDTH), u64::from(MAX_WIDTH))?;
        Ok(Self { width, arity })
    }

    /// Sets the number of cells per key.
    pub fn with_arity(mut self, arity: Arity) -> Self {
        self.arity = arity;
        self
    }

    /// Bits of a fingerprint, w.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Number of cells per key.
    pub fn arity(&self) -> Arity {
        self.arity
    }

    /// Number of bits in a filter of `len` distinct keys, unless its construction has to grow the array.
    pub fn bits(&self, len: u64) -> u64 {
        let layout = Layout::for_attempt(len, self.arity, 0, 0);
        layout.map_or(u64::MAX, |layout| layout.cells().saturating_mul(u64::from(self.width)))
    }

    /// The rate, 2^-w, whatever the number of keys.
    pub fn rate(&self) -> f64 {
        rate_of(self.width)
    }
}

fn rate_of(width: u32) -> f64 {
    (-f64::from(width)).exp2()
}

/// The positions of a key's cells. Without keys there are no segments and no cells.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Layout {
    seed: u64,
    segments: Segments,
    arity: Arity,
}

impl Layout {
    /// Returns `None` if such segments are impossible, as in a forged file.
    fn new(seed: u64, segment_length: u64, segment_count: u64, arity: Arity) -> Option<Self> {
        let segments = Segments::new(segment_length, segment_count, arity.cells())?;
        Some(Self { seed, segments, arity })
    }

    /// Number of cells.
    fn cells(&self) -> u64 {
        self.segments.cells()
    }

    /// Returns the cells of a mixed hash, each in the segment after the previous one.
    #[inline]
    fn cells_of<const N: usize>(&self, mixed: u64) -> [u64; N] {
        self.segments.cells_of(mixed, second(mixed) >> (MAX_WIDTH - OFFSET_BITS))
    }
}

/// Returns the number that represents a key under a seed: x in the module documentation.
#[inline]
fn mix(hash: u64, seed: u64) -> u64 {
    mix64(hash.wrapping_add(seed))
}

/// Derives more bits from a mixed hash, each depending on both of its halves: y in the module documentation.
#[inline]
fn second(mixed: u64) -> u64 {
    remix(mixed ^ mixed >> 32)
}

#[inline]
fn fingerprint(mixed: u64, width: u32) -> u64 {
    second(mixed) >> (64 - width)
}

/// Returns true if the low bits of `xor` are the [`fingerprint`] at the start of `second`.
#[inline(always)]
fn is_fingerprint(xor: u64, second: u64, width: u32) -> bool {
    let unused = 64 - width;
    (xor << unused ^ second) >> unused == 0
}

/// A binary fuse filter: the smallest kind, built from all its keys at once and never changed.
///
/// It is static: there is no insert, no remove and no union. To add keys, build a new one, at about 50 ns per key.
///
/// ```
/// use ironbloom::BinaryFuse;
/// let users = BinaryFuse::from_keys(["alice", "bob", "alice"], 0.01)?;
/// assert!(users.contains("alice"));       // never wrong
/// assert!(!users.contains("carol"));      // wrong for one key in 128: 7 bits
/// assert_eq!(users.len(), 2);
/// # Ok::<(), ironbloom::ParamError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BinaryFuse {
    layout: Layout,
    hash_fn: HashFn,
    held: KeyTypes,
    cells: Packed,
    len: u64,
    path: LookupPath,
}

impl BinaryFuse {
    /// Builds a filter from these hashes, in any order; duplicates count once. They are mixed again, so plain integers
    /// work if lookups use them the same way.
    ///
    /// Construction temporarily takes another 19 bytes per key, in addition to the filter and the hashes given. The
    /// same hashes result in the same filter, whatever their order; construction takes half as long again if there are
    /// duplicates. Fails only if allocation fails.
    pub fn from_hashes(
        hashes: &[u64],
        params: FuseParams,
        hash_fn: HashFn,
    ) -> Result<Self, ParamError> {
        let (layout, cells, len) = match params.arity {
            Arity::Three => build::build::<3>(hashes, params)?,
            Arity::Four => build::build::<4>(hashes, params)?,
        };
        Ok(Self::assembled(layout, hash_fn, KeyTypes::NONE, cells, len))
    }

    fn assembled(layout: Layout, hash_fn: HashFn, held: KeyTypes, cells: Packed, len: u64) -> Self {
        let path = LookupPath::of(&layout, &cells);
        Self { layout, hash_fn, held, cells, len, path }
    }

    /// Builds a filter of these keys at `rate`, with three cells per key. Duplicates count once.
    pub fn from_keys(
        keys: impl IntoIterator<Item = impl Key>,
        rate: f64,
    ) -> Result<Self, ParamError> {
        let params = FuseParams::for_rate(rate)?;
        let hash_fn = HashFn::default();
        let mut held = KeyTypes::NONE;
        let hash = |key| {
            held = held.union(Key::encoded(&key).key_type().into());
            hash_fn.hash(key)
        };
        let hashes: Vec<u64> = keys.into_iter().map(hash).collect();
        Ok(Self { held, ..Self::from_hashes(&hashes, params, hash_fn)? })
    }

    /// Returns true if the key might be in the filter. `false` is certain.
    ///
    /// # Panics
    ///
    /// If the filter does not take keys of this type: see [`HashFn::hash`].
    pub fn contains(&self, key: impl Key) -> bool {
        self.contains_hash(self.held.hash(self.hash_fn, &key))
    }

    /// Returns true if the key with this hash might be in the filter. `false` is certain. Any number works, uniform or
    /// not: it is mixed again.
    // Without the attribute the compiler does not inline it: 16.5 ns instead of 14.5 (10^6 keys, Zen 3, 2026-11).
    #[inline(always)]
    pub fn contains_hash(&self, hash: u64) -> bool {
        match self.path {
            LookupPath::Bytes => self.contains_in_bytes(hash),
            LookupPath::Narrow => self.contains_in_narrow(hash),
            LookupPath::Other => self.contains_hash_of_other(hash),
        }
    }

    #[inline(always)]
    fn contains_in_bytes(&self, hash: u64) -> bool {
        let mixed = mix(hash, self.layout.seed);
        let xor = self.layout.segments.xor_of_bytes(self.cells.words(), mixed);
        u64::from(xor) == second(mixed) >> 56
    }

    #[inline(always)]
    fn contains_in_narrow(&self, hash: u64) -> bool {
        let (mixed, width) = (mix(hash, self.layout.seed), self.width());
        let xor = self.layout.segments.xor_of_narrow(self.cells.words(), width, mixed);
        is_fingerprint(xor, second(mixed), width)
    }

    /// A separate function, so that the common lookups are small enough to be inlined.
    #[inline(never)]
    fn contains_hash_of_other(&self, hash: u64) -> bool {
        let cell = Wide(self.width());
        match self.layout.arity {
            _ if self.is_empty() => false,
            Arity::Three => self.reader::<3, _>(cell).contains(hash),
            Arity::Four => self.reader::<4, _>(cell).contains(hash),
        }
    }

    /// Sets `found[i]` to whether `hashes[i]` might be present. Memory accesses overlap.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[track_caller]
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
        check_lengths(hashes.len(), found.len());
        let width = self.width();
        match (self.path, self.layout.arity) {
            (LookupPath::Bytes, _) => self.reader::<3, _>(Byte).contains_all(hashes, found),
            (LookupPath::Narrow, _) => {
                self.reader::<3, _>(Narrow(width)).contains_all(hashes, found)
            }
            _ if self.is_empty() => contains_each(hashes, found, |_| false),
            (_, Arity::Three) => self.reader::<3, _>(Wide(width)).contains_all(hashes, found),
            (_, Arity::Four) => self.reader::<4, _>(Wide(width)).contains_all(hashes, found),
        }
    }

    #[inline(always)]
    fn reader<const N: usize, C: Cell>(&self, cell: C) -> Reader<'_, N, C> {
        Reader { layout: &self.layout, words: self.cells.words(), cell }
    }

    /// Number of distinct hashes it was built from.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if it was built from no keys. It then contains none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of keys, known exactly: [`len`](Self::len).
    pub fn estimate_len(&self) -> f64 {
        self.len as f64
    }

    /// The rate, 2^-w; zero without keys.
    pub fn estimate_rate(&self) -> f64 {
        if self.is_empty() { 0.0 } else { rate_of(self.width()) }
    }

    /// Always false: the filter was sized for its keys. Provided because every kind has this method.
    pub fn is_over_capacity(&self) -> bool {
        false
    }

    /// Bits of a fingerprint, w.
    pub fn width(&self) -> u32 {
        self.cells.width()
    }

    /// Number of cells per key.
    pub fn arity(&self) -> Arity {
        self.layout.arity
    }

    /// The parameters it was built with.
    pub fn params(&self) -> FuseParams {
        FuseParams { width: self.width(), arity: self.arity() }
    }

    /// The hash function.
    pub fn hash_fn(&self) -> HashFn {
        self.hash_fn
    }

    /// Size of the cells in bytes.
    pub fn size_in_bytes(&self) -> usize {
        self.cells.words().size_in_bytes()
    }

    /// Bits per key. Infinite without keys.
    pub fn bits_per_key(&self) -> f64 {
        8.0 * self.size_in_bytes() as f64 / self.len as f64
    }
}

impl Persist for BinaryFuse {
    fn encode(&self) -> Image<'_> {
        let Layout { seed, segments, arity } = self.layout;
        let (segment_length, segment_count) = (segments.length(), segments.count());
        let (width, arity) = (u64::from(self.width()), u64::from(arity.cells()));
        Image::new(Kind::Fuse, self.hash_fn, self.len, self.len)
            .of_keys(self.held)
            .params(&[seed, segment_length, segment_count, width, arity])
            .section(self.cells.words())
    }

    fn decode(parts: Parts) -> Result<Self, DecodeError> {
        let header = parts.expect_kind(Kind::Fuse)?;
        let (hash_fn, held, len) = (header.hash_fn, header.key_types, header.len);
        let [seed, segment_length, segment_count, _, arity] = header.first_params()?;
        let invalid = |what, value| DecodeError::Invalid { what, value };
        let arity = match arity {
            3 => Arity::Three,
            4 => Arity::Four,
            value => return Err(invalid("arity", value)),
        };
        let FuseParams { width, .. } = FuseParams::new(parts.small(3, "width")?, arity)?;
        if !segment_length.is_power_of_two() || segment_length > 1 << OFFSET_BITS {
            return Err(invalid("segment length", segment_length));
        }
        let layout = Layout::new(seed, segment_length, segment_count, arity)
            .ok_or(invalid("segment count", segment_count))?;
        let cells = layout.cells();
        if header.capacity != len {
            return Err(invalid("capacity", header.capacity));
        }
        if len > cells || (len == 0) != (cells == 0) {
            return Err(invalid("number of keys", len));
        }
        let bits = Packed::bits_for(cells, width).ok_or(invalid("segment count", segment_count))?;
        let cells = Packed::from_words(parts.words_of(bits)?, width);
        Ok(Self::assembled(layout, hash_fn, held, cells, len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 65,536 pairs of bits per pair of fields: if two fields were correlated, their difference would miss most values.
    #[test]
    fn the_offsets_and_the_fingerprint_are_independent() {
        let (arity, segment_length) = (Arity::Four, 1 << OFFSET_BITS);
        let layout = Layout::new(0, segment_length, 1 << 10, arity).unwrap();
        let fields = |key| {
            let mixed = mix64(key);
            let cells = layout.cells_of::<4>(mixed);
            let [a, b, c, d] = cells.map(|cell| cell % segment_length / (1 << 14));
            [a, a ^ b, a ^ c, a ^ d, fingerprint(mixed, 4)]
        };
        for (one, other) in (0..5).flat_map(|i| (0..i).map(move |j| (i, j))) {
            let mut counts = [0u32; 256];
            for key in 0..1 << 16 {
                let fields = fields(key);
                counts[(fields[one] << 4 | fields[other]) as usize] += 1;
            }
            // 256 expected per cell, sigma 16: six sigma.
            assert!(counts.iter().all(|c| (160..=352).contains(c)), "fields {one} and {other}");
        }
    }

    #[test]
    fn rates_and_widths_out_of_range_are_refused() {
        assert!(matches!(FuseParams::for_rate(1.0), Err(ParamError::Rate { .. })));
        assert!(matches!(FuseParams::for_rate(0.0), Err(ParamError::Rate { .. })));
        assert!(matches!(FuseParams::for_rate(1e-10), Err(ParamError::RateBelowHash { .. })));
        assert!(FuseParams::new(3, Arity::Three).is_err());
        assert!(FuseParams::new(33, Arity::Four).is_err());
        for (rate, width) in [(0.5, 4), (0.01, 7), (1.0 / 256.0, 8), (rate_of(32), 32)] {
            assert_eq!(FuseParams::for_rate(rate).unwrap().width(), width);
        }
    }

    #[test]
    fn a_forged_shape_is_refused_whatever_its_checksums() {
        let hashes: Vec<u64> = (0..1000).map(mix64).collect();
        let params = FuseParams::new(8, Arity::Three).unwrap();
        let filter = BinaryFuse::from_hashes(&hashes, params, HashFn::default()).unwrap();
        let empty = BinaryFuse::from_hashes(&[], params, HashFn::default()).unwrap();
        let decode = |filter: &BinaryFuse, forge: &dyn Fn(&mut [u64], &mut u64)| {
            let mut header = filter.encode().header;
            forge(&mut header.params, &mut header.len);
            header.capacity = header.len;
            BinaryFuse::decode(Parts { header, words: filter.cells.words().clone() })
        };
        assert_eq!(decode(&filter, &|_, _| {}).as_ref(), Ok(&filter));
        assert_eq!(decode(&empty, &|_, _| {}).as_ref(), Ok(&empty));
        for segment_length in
            [0, 3, filter.layout.segments.length() * 2, 1 << 19, 1 << 63, u64::MAX]
        {
            assert!(decode(&filter, &|params, _| params[1] = segment_length).is_err());
        }
        // The same number of cells, but in segments where an offset would point outside.
        let uneven = filter.layout.cells() / 4;
        assert!(!uneven.is_power_of_two());
        assert_eq!(
            decode(&filter, &|params, _| params[1..3].copy_from_slice(&[uneven, 2])),
            Err(DecodeError::Invalid { what: "segment length", value: uneven })
        );
        assert!(decode(&empty, &|params, _| params[1] = 0).is_err());
        for segment_count in [0, filter.layout.segments.count() * 2, 1 << 46, 1 << 61, u64::MAX] {
            assert!(decode(&filter, &|params, _| params[2] = segment_count).is_err());
        }
        for width in [0, 3, 16, 33, 1 << 32 | 8] {
            assert!(decode(&filter, &|params, _| params[3] = width).is_err());
        }
        for arity in [0, 2, 4, 5, u64::MAX] {
            assert!(decode(&filter, &|params, _| params[4] = arity).is_err());
        }
        for len in [0, 1 << 20, u64::MAX] {
            assert!(decode(&filter, &|_, forged| *forged = len).is_err());
        }
        assert!(decode(&empty, &|_, forged| *forged = 1).is_err());
        assert!(decode(&empty, &|params, _| params[2] = 1).is_err());
    }
}
