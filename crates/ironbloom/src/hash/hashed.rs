//! Values of any type as keys, through `std::hash::Hash`.
//!
//! Text, bytes and integers are keys by themselves ([`Key`]), with an encoding that never changes. Everything else that
//! can be hashed becomes a 64-bit number here, computed from what the type writes into a hasher.

use std::fmt;
use std::hash::{Hash, Hasher};

use xxhash_rust::xxh3::xxh3_64;

use super::key::{Encoded, Key};

/// Any value that implements [`Hash`], as a key: tuples, structs, enums, collections of them.
///
/// ```
/// use ironbloom::{Bloom, Hashed};
///
/// #[derive(Hash)]
/// struct Visit { user: u32, page: String }
///
/// let mut visits = Bloom::with_rate(1000, 0.01)?;
/// visits.insert(Hashed(&Visit { user: 7, page: "/".into() }));
/// visits.insert(Hashed((8, "/")));
/// assert!(visits.contains(Hashed((8, "/"))));
/// assert!(!visits.contains(Hashed((8, "/about"))));
/// # Ok::<(), ironbloom::ParamError>(())
/// ```
///
/// # Stability
///
/// The bytes that the value writes into a hasher are collected and hashed as a whole, with the filter's function and
/// seed. Single numbers are written as little-endian, `usize` and `isize` as 64 bits. But *what* a type writes is up to
/// its implementation of `Hash`: a derived one follows the order of the fields, the standard library does not promise
/// that its own never change, and a slice or array of integers is written as raw memory, which differs between
/// platforms. For files that outlive a release of your program or go to other machines, implement [`Key`] and choose
/// the bytes yourself.
///
/// Text inside differs from the text alone: `Hashed("a")` and `"a"` are different keys.
#[derive(Clone, Copy, Debug)]
pub struct Hashed<T>(pub T);

impl<T: Hash> Key for Hashed<T> {
    #[inline]
    fn encoded(&self) -> Encoded<'_> {
        Encoded::Hashed(&self.0)
    }
}

/// A value of any type that implements [`Hash`].
pub trait Written {
    /// Writes the value into a hasher.
    fn write_into(&self, hasher: &mut dyn Hasher);
}

impl<T: Hash> Written for T {
    fn write_into(&self, mut hasher: &mut dyn Hasher) {
        self.hash(&mut hasher);
    }
}

impl fmt::Debug for dyn Written + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_bytes(self, |bytes| write!(f, "{bytes:02x?}"))
    }
}

/// Calls a function with all bytes that a value writes.
#[inline]
pub(super) fn with_bytes<R>(value: &dyn Written, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
    let mut buffer = Buffer { bytes: [0; SHORT], len: 0, long: Vec::new() };
    value.write_into(&mut buffer);
    if buffer.long.is_empty() {
        use_bytes(&buffer.bytes[..buffer.len])
    } else {
        use_bytes(&buffer.long)
    }
}

/// The number that releases up to 0.2 computed for a value, and hashed like an integer.
pub(super) fn digest(value: &dyn Written) -> u64 {
    with_bytes(value, xxh3_64)
}

/// Bytes of a value collected without an allocation.
const SHORT: usize = 120;

/// A hasher that keeps its input.
struct Buffer {
    bytes: [u8; SHORT],
    len: usize,
    /// All bytes, once they no longer fit `bytes`.
    long: Vec<u8>,
}

macro_rules! little_endian {
    ($($write:ident($number:ty as $wide:ty);)*) => {$(
        #[inline]
        fn $write(&mut self, number: $number) {
            self.write(&(number as $wide).to_le_bytes());
        }
    )*};
}

impl Hasher for Buffer {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        match self.bytes.get_mut(self.len..end) {
            Some(place) if self.long.is_empty() => {
                place.copy_from_slice(bytes);
                self.len = end;
            }
            _ => {
                if self.long.is_empty() {
                    self.long.extend_from_slice(&self.bytes[..self.len]);
                }
                self.long.extend_from_slice(bytes);
            }
        }
    }

    little_endian! {
        write_u16(u16 as u16);
        write_u32(u32 as u32);
        write_u64(u64 as u64);
        write_u128(u128 as u128);
        write_usize(usize as u64);
        write_i16(i16 as i16);
        write_i32(i32 as i32);
        write_i64(i64 as i64);
        write_i128(i128 as i128);
        write_isize(isize as i64);
    }

    /// Never called: the bytes are hashed when all have been collected.
    fn finish(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bloom, BloomParams, Cuckoo, CuckooParams, HashFn, KeyType};

    fn bytes(key: impl Key) -> Vec<u8> {
        match key.encoded() {
            Encoded::Hashed(value) => with_bytes(value, <[u8]>::to_vec),
            other => unreachable!("{other:?}"),
        }
    }

    /// Pins values that filters in files rely on.
    #[test]
    fn numbers_are_hashed_as_the_same_bytes_everywhere() {
        assert_eq!(bytes(Hashed(7u32)), [7, 0, 0, 0]);
        assert_eq!(bytes(Hashed((1u8, 0x0203u16))), [1, 3, 2]);
        assert_eq!(bytes(Hashed(7usize)), 7u64.to_le_bytes());
        assert_eq!(bytes(Hashed(-1isize)), [0xff; 8]);
        assert_eq!(bytes(Hashed(1u128 << 64)), (1u128 << 64).to_le_bytes());
        let long = "x".repeat(1000);
        assert_eq!(
            bytes(Hashed((1u8, &long))),
            ["\x01", &long, "\u{ff}"].concat().chars().map(|c| c as u8).collect::<Vec<_>>()
        );
        let hash_fn = HashFn::Xxh3 { seed: 5 };
        assert_eq!(hash_fn.hash(Hashed(7u32)), hash_fn.hash([7, 0, 0, 0]));
    }

    #[test]
    fn a_reference_is_the_same_key_and_text_is_another() {
        assert_eq!(bytes(Hashed(&(1, "a"))), bytes(Hashed((1, "a"))));
        let mut filter = Bloom::with_rate(100, 1e-6).unwrap();
        filter.insert("a");
        assert!(!filter.contains(Hashed("a")));
    }

    /// Files that an earlier release declared to hold hashed values are still read as it wrote them.
    #[test]
    fn values_in_filters_of_an_earlier_release_have_the_hashes_that_they_had() {
        let old = HashFn::Typed { keys: KeyType::Digest, seed: 9 };
        let expected = HashFn::Xxh3 { seed: 9 }.hash(xxh3_64(&[7, 0, 0, 0]));
        assert_eq!(old.hash(Hashed(7u32)), expected);
    }

    /// Values for which XXH3 with its public secret multiplies by zero: the first 8 bytes of each 16 are words of the
    /// secret, so that the other 8 vanish from the unseeded hash. Hashing that hash with a seed cannot separate them
    /// again.
    fn colliding(i: u64) -> [u64; 4] {
        const SECRET: [u64; 4] = [
            0xbe4b_a423_396c_feb8,
            0x1cad_2172_1f72_5f5e, // any value works: the product is zero
            0xdb97_9083_e96d_d4de,
            0x1f67_b3b7_a4a4_4072,
        ];
        [SECRET[0], mix(i), SECRET[2], mix(i ^ 1 << 40)]
    }

    fn mix(i: u64) -> u64 {
        crate::hash::mix64(i)
    }

    #[test]
    fn values_that_collide_without_a_seed_do_not_collide_with_one() {
        let key = |i| colliding(i).map(u64::to_le_bytes).concat();
        let collisions = (1..1000).filter(|&i| xxh3_64(&key(i)) == xxh3_64(&key(0))).count();
        assert_eq!(collisions, 999, "the values are made to collide");

        let secret = HashFn::Xxh3 { seed: 0x1234_5678_9abc_def1 };
        let mut filter = Bloom::new(BloomParams::for_rate(1000, 1e-9).unwrap(), secret).unwrap();
        let hashed = |i| {
            let [a, b, c, d] = colliding(i);
            Hashed((a, b, c, d))
        };
        filter.insert(hashed(0));
        assert_eq!((1..100_000).filter(|&i| filter.contains(hashed(i))).count(), 0);
        let params = CuckooParams::for_rate(1_000_000, 0.01).unwrap();
        let mut cuckoo = Cuckoo::new(params, secret).unwrap();
        assert!((0..1000).all(|i| cuckoo.insert(hashed(i)).is_ok()));
    }
}
