//! The names of the attributes, and the hashing of their values.
//!
//! ```text
//! row  ("large", "red")   ─►  h_0 = H("large", seed_0),  h_1 = H("red", seed_1)
//! ```
//!
//! Every attribute has its own seed, so that the same value means different things in different attributes: with a
//! shared seed, ("x", "y") and ("y", "x") would look the same to every structure that sums hashes. Each value is hashed
//! separately and completely, including its length, so ("ab", "c") is not ("a", "bc").

use crate::error::{DecodeError, ParamError, RowError, check_range};
use crate::hash::{HashFn, Key, KeyError, KeyHash, KeyTypes, mix64};
use crate::kernel::LINE_BYTES;

/// Maximum number of attributes in a row.
pub const MAX_ATTRIBUTES: usize = 32;

/// Bits for the types of an attribute in a file.
const TYPE_BITS: usize = 4;
const TYPES_IN_WORD: usize = u64::BITS as usize / TYPE_BITS;

/// Maximum length of an attribute's name, in bytes.
const MAX_NAME: usize = 255;

/// The attributes of a filter's rows: their names, in order, and the hash of their values.
///
/// ```
/// use ironbloom::HashFn;
/// use ironbloom::multi::Attributes;
/// let attributes = Attributes::new(["size", "color"], HashFn::default())?;
/// assert_eq!(attributes.position("color"), Some(1));
/// # Ok::<(), ironbloom::ParamError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributes {
    names: Vec<String>,
    hash_fn: HashFn,
    /// The noted types of each attribute.
    held: Vec<KeyTypes>,
}

impl Attributes {
    /// Creates 1 to 32 attributes with these names, which must have 1 to 255 bytes and all differ.
    ///
    /// With [`HashFn::External`] the caller hashes, with a different function for each attribute.
    pub fn new<S: Into<String>>(
        names: impl IntoIterator<Item = S>,
        hash_fn: HashFn,
    ) -> Result<Self, ParamError> {
        let names: Vec<String> =
            names.into_iter().map(Into::into).take(MAX_ATTRIBUTES + 1).collect();
        check_range("attributes", names.len() as u64, 1, MAX_ATTRIBUTES as u64)?;
        for (i, name) in names.iter().enumerate() {
            let len = name.len() as u64;
            check_range("bytes of an attribute's name", len, 1, MAX_NAME as u64)?;
            if let Some(first) = names[..i].iter().position(|earlier| earlier == name) {
                return Err(ParamError::Twice { what: "attribute name", first, second: i });
            }
        }
        let held = vec![KeyTypes::NONE; names.len()];
        Ok(Self { names, hash_fn, held })
    }

    /// The names, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Number of attributes, p.
    #[expect(clippy::len_without_is_empty, reason = "there is always one")]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns the position of the attribute with this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// The hash function from which those of the attributes are derived.
    pub fn hash_fn(&self) -> HashFn {
        self.hash_fn
    }

    /// Hashes a value of attribute `i`; an error if only the caller can hash, or if values are of another type
    /// ([`HashFn::Typed`]).
    pub fn hash(&self, i: usize, value: impl Key) -> Result<u64, RowError> {
        self.key_hash_of(i)?.of(value).map_err(RowError::Key)
    }

    /// How the values of attribute `i` are hashed when they are looked up; an error if only the caller can hash.
    pub fn key_hash_of(&self, i: usize) -> Result<KeyHash, RowError> {
        Ok(KeyHash::of_filter(self.hash_fn_of(i)?, self.held[i]))
    }

    /// The types of the values of attribute `i`, as far as known: see [`KeyTypes`].
    pub fn key_types(&self, i: usize) -> KeyTypes {
        self.hash_fn.declared().unwrap_or(self.held[i])
    }

    /// Notes the types of values, a set for each attribute, of rows about to be inserted into a filter with this many.
    pub(super) fn note(&mut self, types: &[KeyTypes], len: u64) {
        for (held, &new) in self.held.iter_mut().zip(types) {
            if held.lacks(new) {
                held.note(new, len);
            }
        }
    }

    /// Returns true if values of these types, a set for each attribute, would add to what is noted.
    pub(super) fn lacks(&self, types: &[KeyTypes]) -> bool {
        self.held.iter().zip(types).any(|(held, &new)| held.lacks(new))
    }

    /// The noted types of each attribute.
    pub(super) fn held(&self) -> &[KeyTypes] {
        &self.held
    }

    /// Takes back what was noted for a row that was then refused.
    pub(super) fn set_held(&mut self, held: &[KeyTypes]) {
        self.held.copy_from_slice(held);
    }

    /// Forgets the types of values, when there are none.
    pub(super) fn forget_types(&mut self) {
        self.held.fill(KeyTypes::NONE);
    }

    /// Encodes all types of values, and those of each attribute in four bits.
    pub(super) fn encode_types(&self) -> (KeyTypes, [u64; 2]) {
        let all = self.held.iter().fold(KeyTypes::NONE, |all, &types| all.union(types));
        let mut words = [0; 2];
        for (i, types) in self.held.iter().enumerate() {
            words[i / TYPES_IN_WORD] |= u64::from(types.bits()) << (i % TYPES_IN_WORD * TYPE_BITS);
        }
        (all, words)
    }

    /// Sets the types read from a file that holds this many rows.
    pub(super) fn with_types(
        mut self,
        all: KeyTypes,
        words: [u64; 2],
        len: u64,
    ) -> Result<Self, DecodeError> {
        for (i, held) in self.held.iter_mut().enumerate() {
            let bits = words[i / TYPES_IN_WORD] >> (i % TYPES_IN_WORD * TYPE_BITS) & 0xf;
            *held = KeyTypes::from_bits(bits as u8).unwrap_or_default().read(len);
        }
        let (found, expected) = self.encode_types();
        if words != expected || found != all {
            return Err(DecodeError::Invalid { what: "types of values", value: words[0] });
        }
        Ok(self)
    }

    /// The hash function of the values of attribute `i`; an error if only the caller can hash.
    ///
    /// ```text
    /// seed_i = mix64(mix64(seed) + i)
    /// ```
    ///
    /// A secret key is derived for each attribute, which reveals nothing about the original.
    pub fn hash_fn_of(&self, i: usize) -> Result<HashFn, RowError> {
        let seed = |seed| mix64(mix64(seed).wrapping_add(i as u64));
        match self.hash_fn {
            HashFn::Xxh3 { seed: all } => Ok(HashFn::Xxh3 { seed: seed(all) }),
            HashFn::Typed { keys, seed: all } => Ok(HashFn::Typed { keys, seed: seed(all) }),
            HashFn::Xxh64 { seed: all } => Ok(HashFn::Xxh64 { seed: seed(all) }),
            HashFn::SipHash13 { key, in_files } => {
                Ok(HashFn::SipHash13 { key: key.of_attribute(i), in_files })
            }
            HashFn::Locked { check } => Err(RowError::Key(KeyError::Locked { check })),
            HashFn::External { id } => Err(RowError::External { id }),
            HashFn::Foreign { .. } => Err(RowError::Key(KeyError::Foreign)),
        }
    }

    /// Hashes a whole row.
    pub fn hash_row<A: Key>(&self, row: &[A]) -> Result<Vec<u64>, RowError> {
        self.check_len(row.len())?;
        row.iter().enumerate().map(|(i, value)| self.hash(i, value)).collect()
    }

    /// Hashes a row about to be inserted into a filter with this many, and notes its types.
    pub(super) fn hash_new<A: Key>(&mut self, row: &[A], len: u64) -> Result<Vec<u64>, RowError> {
        self.check_len(row.len())?;
        let types: Vec<KeyTypes> =
            row.iter().map(|value| value.encoded().key_type().into()).collect();
        let hash = |(i, value): (usize, &A)| {
            self.held[i].accepts_new(value.encoded().key_type()).map_err(RowError::Key)?;
            KeyHash::Hash(self.hash_fn_of(i)?).of(value).map_err(RowError::Key)
        };
        let hashes = row.iter().enumerate().map(hash).collect::<Result<_, _>>()?;
        self.note(&types, len);
        Ok(hashes)
    }

    /// Hashes the values that a query asks for.
    pub fn hash_query<A: Key>(&self, query: &[Option<A>]) -> Result<Vec<Option<u64>>, RowError> {
        self.check_len(query.len())?;
        let hash = |(i, value): (usize, &Option<A>)| {
            value.as_ref().map(|value| self.hash(i, value)).transpose()
        };
        query.iter().enumerate().map(hash).collect()
    }

    /// Returns an error unless `given` is the number of attributes.
    pub(super) fn check_len(&self, given: usize) -> Result<(), RowError> {
        let expected = self.len();
        if given == expected { Ok(()) } else { Err(RowError::Attributes { given, expected }) }
    }

    /// Encodes the names as lines of a file: a length byte before each, zeros after the last.
    pub(super) fn encode(&self) -> Vec<u64> {
        let mut bytes = Vec::new();
        for name in &self.names {
            bytes.push(name.len() as u8); // at most MAX_NAME
            bytes.extend_from_slice(name.as_bytes());
        }
        bytes.resize(bytes.len().next_multiple_of(LINE_BYTES), 0);
        let word = |eight: &[u8]| u64::from_le_bytes(eight.try_into().expect("chunks of eight"));
        bytes.chunks_exact(8).map(word).collect()
    }

    /// Decodes names from the lines of a file, each validated before use.
    pub(super) fn decode(count: u64, words: &[u64], hash_fn: HashFn) -> Result<Self, DecodeError> {
        check_range("attributes", count, 1, MAX_ATTRIBUTES as u64)?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut rest = &bytes[..];
        let mut names = Vec::new();
        for i in 0..count {
            let bad = DecodeError::Invalid { what: "attribute name", value: i };
            let Some((&len, after)) = rest.split_first() else { return Err(bad) };
            let Some((name, after)) = after.split_at_checked(len.into()) else { return Err(bad) };
            names.push(String::from_utf8(name.to_vec()).map_err(|_| bad)?);
            rest = after;
        }
        let surplus = rest.iter().filter(|&&byte| byte != 0).count() as u64;
        if surplus > 0 || rest.len() >= LINE_BYTES {
            return Err(DecodeError::Invalid { what: "padding", value: surplus });
        }
        Ok(Self::new(names, hash_fn)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Attributes {
        Attributes::new(names.iter().copied(), HashFn::default()).unwrap()
    }

    #[test]
    fn names_must_be_there_and_differ() {
        let error = |names: &[&str]| {
            Attributes::new(names.iter().copied(), HashFn::default()).unwrap_err().to_string()
        };
        assert_eq!(error(&[]), "attributes must be between 1 and 32, got 0");
        assert_eq!(error(&["a"; 33]), "attributes must be between 1 and 32, got 33");
        assert!(error(&["a", ""]).starts_with("bytes of an attribute's name must be between 1"));
        assert_eq!(error(&["a", "b", "a"]), "attribute name 3 is that of 1");
        assert!(Attributes::new(["x".repeat(255)], HashFn::default()).is_ok());
        assert!(Attributes::new(["x".repeat(256)], HashFn::default()).is_err());
    }

    /// Hashes are part of the file format: the number must never change.
    #[test]
    fn every_attribute_hashes_with_its_own_seed() {
        let attributes = of(&["size", "color"]);
        let seeds = [0, 1].map(|i| mix64(mix64(0) + i));
        for (i, seed) in seeds.into_iter().enumerate() {
            assert_eq!(attributes.hash(i, "red").unwrap(), HashFn::Xxh3 { seed }.hash("red"));
        }
        assert_eq!(attributes.hash(0, "red").unwrap(), 0x9529_cce4_bb52_ad34);
        assert_ne!(attributes.hash(0, "red"), attributes.hash(1, "red"));
    }

    #[test]
    fn names_survive_their_lines_and_forged_lines_are_refused() {
        let long = "x".repeat(255);
        for names in [&["a"][..], &["size", "color"], &[&long, "b"], &["größe", "色"]] {
            let attributes = of(names);
            let words = attributes.encode();
            assert_eq!(words.len() % 8, 0);
            let count = names.len() as u64;
            assert_eq!(
                Attributes::decode(count, &words, HashFn::default()).as_ref(),
                Ok(&attributes)
            );
            for count in [0, count + 1, 33, u64::MAX] {
                assert!(Attributes::decode(count, &words, HashFn::default()).is_err(), "{count}");
            }
            let mut longer = words.clone();
            longer.extend([0; 8]);
            assert!(Attributes::decode(count, &longer, HashFn::default()).is_err());
            assert!(Attributes::decode(count, &[], HashFn::default()).is_err());
        }
        let word = |bytes: [u8; 8]| u64::from_le_bytes(bytes);
        for bytes in [*b"\x02a\x00\x00\x00\x00\x00\x00", *b"\x01a\x00\x00\x00\x00\x00\x01"] {
            let words = [word(bytes), 0, 0, 0, 0, 0, 0, 0];
            let decoded = Attributes::decode(1, &words, HashFn::default());
            assert_eq!(decoded.is_ok(), bytes[0] == 2, "{bytes:?}"); // "a\0" is a name
        }
        for bytes in
            [*b"\x01\xff\x00\x00\x00\x00\x00\x00", *b"\x01a\x01a\x00\x00\x00\x00", [255; 8]]
        {
            let words = [word(bytes), 0, 0, 0, 0, 0, 0, 0];
            assert!(Attributes::decode(2, &words, HashFn::default()).is_err(), "{bytes:?}");
        }
    }
}
