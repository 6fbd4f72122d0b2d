//! Values of any type as keys, through `std::hash::Hash`.
//!
//! Text, bytes and integers are keys by themselves ([`Key`]), with an encoding that never changes. Everything else that
//! can be hashed becomes a number of 64 bits here, made of what the type writes into a hasher.

use std::hash::{Hash, Hasher};

use xxhash_rust::xxh3::Xxh3Default;

use super::key::{Encoded, Key};

/// Any value that implements [`Hash`], as a key: tuples, structs, enums, sets of them.
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
/// # Is it the same tomorrow?
///
/// Numbers are hashed as little-endian, `usize` and `isize` as 64 bits, with XXH3: the same on every platform. But *what*
/// a type writes into a hasher is up to its implementation of `Hash`: that of a derived one follows the order of the
/// fields, and the standard library does not promise that its own stay as they are. For files that outlive a release of
/// your program, implement [`Key`] and choose the bytes yourself.
///
/// Text inside is not the key that the text alone is: `Hashed("a")` and `"a"` differ.
#[derive(Clone, Copy, Debug)]
pub struct Hashed<T>(pub T);

impl<T: Hash> Key for Hashed<T> {
    #[inline]
    fn encoded(&self) -> Encoded<'_> {
        let mut hasher = Portable(Xxh3Default::new());
        self.0.hash(&mut hasher);
        Encoded::Hashed(hasher.finish())
    }
}

/// A hasher that sees the same bytes on every platform.
struct Portable(Xxh3Default);

macro_rules! little_endian {
    ($($write:ident($number:ty as $wide:ty);)*) => {$(
        #[inline]
        fn $write(&mut self, number: $number) {
            self.0.update(&(number as $wide).to_le_bytes());
        }
    )*};
}

impl Hasher for Portable {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
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

    #[inline]
    fn finish(&self) -> u64 {
        self.0.digest()
    }
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    fn number(key: impl Key) -> u64 {
        match key.encoded() {
            Encoded::Hashed(number) => number,
            other => unreachable!("{other:?}"),
        }
    }

    /// Written down: what filters in files rely on.
    #[test]
    fn numbers_are_hashed_as_the_same_bytes_everywhere() {
        assert_eq!(number(Hashed(7u32)), xxh3_64(&[7, 0, 0, 0]));
        assert_eq!(number(Hashed((1u8, 0x0203u16))), xxh3_64(&[1, 3, 2]));
        assert_eq!(number(Hashed(7usize)), xxh3_64(&7u64.to_le_bytes()));
        assert_eq!(number(Hashed(-1isize)), xxh3_64(&[0xff; 8]));
        assert_eq!(number(Hashed(1u128 << 64)), xxh3_64(&(1u128 << 64).to_le_bytes()));
    }

    #[test]
    fn a_reference_is_the_same_key_and_text_is_another() {
        assert_eq!(number(Hashed(&(1, "a"))), number(Hashed((1, "a"))));
        let mut filter = crate::Bloom::with_rate(100, 1e-6).unwrap();
        filter.insert("a");
        assert!(!filter.contains(Hashed("a")));
    }
}
