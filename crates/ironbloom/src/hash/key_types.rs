//! The types of keys that a filter holds: noted as keys arrive, recorded in its file.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};

use super::{HashFn, Key, KeyError, KeyType};
use crate::error::Mismatch;

/// The types of the keys that a filter was given, as its file records them.
///
/// Every filter notes the type of each key that it is given *as a key*, and [`AnyFilter`](crate::AnyFilter) refuses a
/// lookup of another type instead of answering "absent": the integer 7 and the text "7" are different keys.
///
/// ```
/// use ironbloom::{AnyFilter, Bloom, KeyType, KeyTypes, Persist};
/// let mut ids = Bloom::with_rate(1000, 0.01)?;
/// ids.insert_keys(&[1, 2, 3]);
/// assert_eq!(ids.key_types(), KeyTypes::from(KeyType::Integer));
///
/// let ids = AnyFilter::from_bytes(&ids.to_bytes())?;      // as another program finds it
/// assert!(ids.contains(2)?);
/// assert!(ids.contains("2").is_err());
/// assert_eq!(ids.key_hash().of_text()?.of("2"), ids.key_hash().of(2));    // a line of a file, however, can mean it
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Not recorded
///
/// No type is recorded for a filter that was filled by hash, or read from a file that records none: nothing is known
/// about its keys, and it accepts lookups of any type. Types of later keys are then not noted either, because they
/// would not cover all keys. Callers that hash keys themselves declare the types *before* they insert the hashes:
/// [`AnyFilter::note_keys`](crate::AnyFilter::note_keys).
///
/// A filter of a kind known at compile time accepts lookups of any type: it is a set inside one program.
#[derive(Clone, Copy, Default)]
pub struct KeyTypes(u8);

/// Read from a file without types: hashed values ([`Hashed`](crate::Hashed)) had different hashes when such files were
/// written.
const UNKNOWN: u8 = 0x80;

const ALL: [KeyType; 4] = [KeyType::Bytes, KeyType::Integer, KeyType::Hashed, KeyType::Value];

/// The bit of a type, here and in files.
const fn bit(key_type: KeyType) -> u8 {
    match key_type {
        KeyType::Bytes => 1,
        KeyType::Integer => 2,
        KeyType::Hashed | KeyType::Digest => 4,
        KeyType::Value => 8,
    }
}

impl KeyTypes {
    /// No types recorded.
    pub const NONE: Self = Self(0);

    /// Returns true if no type is recorded.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.bits() == 0
    }

    /// Returns true if no type is recorded and none is known to be missing.
    #[inline]
    pub(crate) fn is_nothing(self) -> bool {
        self.0 == 0
    }

    /// Returns true if this type is recorded.
    #[inline]
    pub fn contains(self, key_type: KeyType) -> bool {
        self.0 & bit(key_type) != 0
    }

    /// Returns the types of both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The types, in the order of their numbers in files.
    pub fn iter(self) -> impl Iterator<Item = KeyType> {
        ALL.into_iter().filter(move |&key_type| self.contains(key_type))
    }

    /// Returns the type, if there is exactly one.
    pub fn only(self) -> Option<KeyType> {
        let mut types = self.iter();
        types.next().filter(|_| types.next().is_none())
    }

    /// Collects the types of these keys.
    #[inline]
    pub(crate) fn of_keys<K: Key>(keys: &[K]) -> Self {
        keys.iter().fold(Self::NONE, |types, key| types.union(key.encoded().key_type().into()))
    }

    /// Returns true if some of these types are not recorded yet.
    #[inline]
    pub(crate) fn lacks(self, new: Self) -> bool {
        new.0 & !self.0 != 0
    }

    /// Notes the types of keys that are about to be inserted into a filter with this many keys.
    #[cold]
    pub(crate) fn note(&mut self, new: Self, len: u64) {
        if len == 0 {
            self.0 &= !UNKNOWN;
        }
        if !self.is_empty() || len == 0 {
            self.0 |= new.bits();
        }
    }

    /// Hashes a key.
    ///
    /// # Panics
    ///
    /// Same as [`HashFn::hash`]; also if it is a hashed value in a filter whose hashed values only an earlier release
    /// can compute.
    #[inline]
    #[track_caller]
    pub(crate) fn hash(self, hash_fn: HashFn, key: &impl Key) -> u64 {
        if self.0 & UNKNOWN != 0 && key.encoded().key_type() == KeyType::Hashed {
            panic!("{}", KeyError::OldHashed);
        }
        hash_fn.hash(key)
    }

    /// Returns an error if keys of this type cannot be inserted.
    pub(crate) fn accepts_new(self, found: KeyType) -> Result<(), KeyError> {
        if self.0 & UNKNOWN != 0 && found == KeyType::Hashed {
            return Err(KeyError::OldHashed);
        }
        Ok(())
    }

    /// Returns an error if keys of this type cannot be looked up.
    pub(crate) fn accepts(self, found: KeyType) -> Result<(), KeyError> {
        self.accepts_new(found)?;
        if self.is_empty() || self.contains(found) {
            return Ok(());
        }
        Err(KeyError::NotHeld { held: self, found })
    }

    /// Returns the types of a union of two filters with these numbers of keys. `Err` if they have no type in common.
    pub(crate) fn united(self, len: u64, other: Self, other_len: u64) -> Result<Self, Mismatch> {
        match (self.is_empty(), other.is_empty()) {
            (false, false) if self.bits() & other.bits() == 0 => Err(Mismatch {
                what: "type of the keys",
                left: self.to_string(),
                right: other.to_string(),
            }),
            (false, false) => Ok(self.union(other)),
            (true, _) if len == 0 => Ok(other),
            (_, true) if other_len == 0 => Ok(self),
            _ => Ok(Self((self.0 | other.0) & UNKNOWN)),
        }
    }

    /// The bits in files: one for each type.
    #[inline]
    pub(crate) fn bits(self) -> u8 {
        self.0 & !UNKNOWN
    }

    /// Returns the types with these bits in a file, if they are known.
    pub(crate) fn from_bits(bits: u8) -> Option<Self> {
        (bits < 1 << ALL.len()).then_some(Self(bits))
    }

    /// Returns the types as read from a file: without a type, nothing is known about its keys.
    pub(crate) fn read(self, len: u64) -> Self {
        if self.is_empty() && len > 0 { Self(UNKNOWN) } else { self }
    }
}

/// The types of keys that threads insert into a filter concurrently. Unless types were known at the start, none are
/// noted: those of earlier keys would be missing.
#[derive(Debug)]
pub(crate) struct AtomicKeyTypes {
    held: AtomicU8,
    unknown: bool,
}

impl AtomicKeyTypes {
    pub(crate) fn new(held: KeyTypes, len: u64) -> Self {
        Self { held: AtomicU8::new(held.0), unknown: held.is_empty() && len > 0 }
    }

    #[inline]
    pub(crate) fn get(&self) -> KeyTypes {
        KeyTypes(self.held.load(Ordering::Relaxed))
    }

    #[inline]
    pub(crate) fn note(&self, types: KeyTypes) {
        if self.get().lacks(types) && !self.unknown {
            self.held.fetch_or(types.bits(), Ordering::Relaxed);
        }
    }
}

/// Compares the recorded types.
impl PartialEq for KeyTypes {
    fn eq(&self, other: &Self) -> bool {
        self.bits() == other.bits()
    }
}

impl Eq for KeyTypes {}

impl From<KeyType> for KeyTypes {
    #[inline]
    fn from(key_type: KeyType) -> Self {
        Self(bit(key_type))
    }
}

impl FromIterator<KeyType> for KeyTypes {
    fn from_iter<I: IntoIterator<Item = KeyType>>(types: I) -> Self {
        types.into_iter().fold(Self::NONE, |all, key_type| all.union(key_type.into()))
    }
}

impl fmt::Debug for KeyTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl fmt::Display for KeyTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("keys of a type that is not recorded");
        }
        for (i, key_type) in self.iter().enumerate() {
            write!(f, "{}{key_type}", if i == 0 { "" } else { ", and " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnyFilter, Bloom, Persist as _};

    #[test]
    fn types_are_noted_from_the_first_key_on_and_not_after_keys_that_are_unknown() {
        let mut filter = Bloom::with_rate(100, 0.01).unwrap();
        filter.insert(7);
        filter.insert("seven");
        assert_eq!(filter.key_types(), [KeyType::Bytes, KeyType::Integer].into_iter().collect());
        filter.clear();
        filter.insert("seven");
        assert_eq!(filter.key_types().only(), Some(KeyType::Bytes));

        let mut filter = Bloom::with_rate(100, 0.01).unwrap();
        filter.insert_hash(HashFn::default().hash(7));
        filter.insert("seven");
        assert!(filter.key_types().is_empty());
        assert!(AnyFilter::from(filter).contains(7).unwrap());
    }

    #[test]
    fn a_lookup_of_another_type_is_refused_and_both_are_named() {
        let mut ids = Bloom::with_rate(100, 0.01).unwrap();
        ids.insert(7);
        let bytes = ids.to_bytes();
        let mut ids = AnyFilter::from(ids);
        let error = ids.contains(crate::Hashed("x")).unwrap_err().to_string();
        assert_eq!(error, "the filter holds integers, not hashed values");
        ids.insert("seven").unwrap(); // but keys of other types may be added
        assert!(ids.contains("seven").unwrap() && ids.contains(7).unwrap());
        let error = ids.contains(crate::Hashed("x")).unwrap_err().to_string();
        assert_eq!(error, "the filter holds text or bytes, and integers, not hashed values");
        assert!(AnyFilter::from_bytes(&bytes).unwrap().contains(7).unwrap());
    }

    #[test]
    fn filters_of_different_types_are_not_merged() {
        let of = |number: Option<i32>, text: Option<&str>| {
            let mut filter = Bloom::with_rate(100, 0.01).unwrap();
            number.into_iter().for_each(|key| _ = filter.insert(key));
            text.into_iter().for_each(|key| _ = filter.insert(key));
            filter
        };
        let merged = |mut one: Bloom, two: Bloom| one.union_with(&two).map(|()| one.key_types());
        let integers = KeyTypes::from(KeyType::Integer);
        let both = integers.union(KeyType::Bytes.into());
        assert_eq!(merged(of(Some(1), None), of(Some(2), None)), Ok(integers));
        assert_eq!(merged(of(Some(1), None), of(None, None)), Ok(integers));
        assert_eq!(merged(of(None, None), of(Some(1), None)), Ok(integers));
        assert_eq!(merged(of(Some(1), None), of(Some(1), Some("a"))), Ok(both));
        let error = merged(of(Some(1), None), of(None, Some("a"))).unwrap_err();
        assert_eq!(error.to_string(), "type of the keys differs: integers and text or bytes");
        let mut by_hash = of(None, None);
        by_hash.insert_hash(HashFn::default().hash(1));
        assert_eq!(merged(of(Some(1), None), by_hash), Ok(KeyTypes::NONE));
    }
}
