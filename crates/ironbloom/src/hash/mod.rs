//! Key bytes to a 64-bit hash, and a hash to a number in a range.
//!
//! Every structure of the crate sees a key only through one seeded 64-bit hash of its bytes, so the same key gives the
//! same answer on every machine and in every release. [`Key`] defines what is hashed for text, bytes and integers.
//! Filters note which of these they were given, and their files record it ([`KeyTypes`]). If strangers choose the keys,
//! use a secret function ([`HashFn::random`]). `std::hash::Hash` promises neither; [`Hashed`] uses it for values of
//! other types and documents the consequences. If you want another hash, compute it yourself and call the `_hash` form
//! of each operation.
//!
//! # Uniform hashes
//!
//! Where an argument is a *hash* rather than a *key*, it must look random in **all 64 bits**, like the output of a good
//! hash function. Filters take positions straight from these bits, the block from the high ones and the positions in it
//! from the low ones. Raw integers (ids, counters, timestamps) all fall on one block, and a blocked filter then says
//! "maybe" to *every* key. Insert them as keys (`insert(7)`, `insert_keys(&ids)`), or mix them first ([`mix64`]). A
//! 32-bit hash will not do either, wherever it is placed in the 64 bits.
//!
//! Debug builds catch the obvious case: eight inserts in a row whose upper or lower half is zero, or that are less than
//! 2^20 apart, cause a panic. With uniform hashes that would happen by chance once in 2^248 inserts. (A
//! [`BinaryFuse`](crate::BinaryFuse) mixes its hashes again and accepts any distinct numbers.)
//!
//! 64 bits are needed: with 32, two keys in 10^7 share a hash often enough to add 0.23 % to every rate. Even 64 bits
//! set a floor of n/2^64, and a rate below it is rejected when a filter is planned.
//!
//! Chained filters (one holds the false positives of the other) should have different seeds: with the same seed their
//! errors are correlated, and the second delivers twice its rate.

mod hashed;
mod keccak;
mod key;
pub(crate) mod key_form;
mod key_hash;
mod key_types;
mod keyed;
mod modulus;
pub(crate) mod murmur3;
mod probe;
mod split_mix;
mod uniform;
pub(crate) mod xxph3;

use std::fmt;

pub use hashed::{Hashed, Written};
pub(crate) use keccak::keccak256;
pub use key::{Encoded, Key, KeyType};
pub use key_form::KeyForm;
pub use key_hash::{KeyError, KeyHash};
pub(crate) use key_types::AtomicKeyTypes;
pub use key_types::KeyTypes;
pub use keyed::HashKey;
pub use modulus::Modulus;
pub use probe::Scheme;
pub use split_mix::SplitMix64;
pub(crate) use uniform::expect_uniform;

/// The function that turns key bytes into the 64-bit hash, recorded in every filter and its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HashFn {
    /// XXH3-64 with a seed. The default, with seed 0.
    Xxh3 {
        /// Seed of the hash; filters can be merged only if it is equal.
        seed: u64,
    },
    /// XXH3-64 with a seed, for keys of one type. Any other key is refused, and files record the type, so a filter of
    /// integers is never asked for text by mistake. Filters can be merged only if the type is also equal.
    ///
    /// ```
    /// use ironbloom::{AnyFilter, Bloom, BloomParams, HashFn, KeyType, Persist};
    /// let integers = HashFn::Typed { keys: KeyType::Integer, seed: 0 };
    /// let mut ids = Bloom::new(BloomParams::for_rate(1000, 0.01)?, integers)?;
    /// ids.insert(1234);
    ///
    /// let ids = AnyFilter::from_bytes(&ids.to_bytes())?;      // as another program would find it
    /// assert!(ids.contains(1234)?);
    /// assert!(ids.contains("1234")?);                         // text is read as a decimal number, as in a bitmap
    /// assert!(ids.contains("alice").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    Typed {
        /// The type of the keys.
        keys: KeyType,
        /// Seed of the hash.
        seed: u64,
    },
    /// SipHash-1-3 under a secret 128-bit key, for keys that an adversary may choose: without the key, false positives
    /// and keys that collide can be found only by querying. [`HashFn::random`] creates a key.
    ///
    /// It costs a few nanoseconds per key more than XXH3, and filters can be merged only if they have the same key.
    SipHash13 {
        /// The key.
        key: HashKey,
        /// True if files contain the key. Otherwise they are read by [`Persist::load_with_key`](crate::Persist) and the
        /// like, and a filter read without its key refuses keys.
        in_files: bool,
    },
    /// SipHash-1-3 under a key that is not in the file the filter was read from: it refuses all keys until the key is
    /// given ([`Persist::load_with_key`](crate::Persist::load_with_key)).
    Locked {
        /// The number that identifies the key: [`HashKey::check`].
        check: u64,
    },
    /// XXH64 with a seed. Parquet's split block filter prescribes seed 0.
    Xxh64 {
        /// Seed of the hash.
        seed: u64,
    },
    /// The caller hashes. The filter can then be used only by hash, not by key.
    External {
        /// A number chosen by the caller to identify the function; filters can be merged only if it is equal.
        id: u64,
    },
    /// The rule of another program, known only to a [`Foreign`](crate::Foreign) filter.
    Foreign {
        /// The form of the keys, if known.
        form: Option<KeyForm>,
        /// Seed of the hash, where the rule has one.
        seed: u64,
    },
}

/// Keys hashed at a time before a batch: their hashes, 8 KiB, stay in the first-level cache.
pub(crate) const GROUP: usize = 1024;

impl Default for HashFn {
    fn default() -> Self {
        Self::Xxh3 { seed: 0 }
    }
}

impl HashFn {
    /// Creates a secret function: SipHash-1-3 under a new random key, which the filter's file contains.
    ///
    /// For filters that drop or guard data, and for any keys from strangers. Filters made with it cannot be merged, and
    /// their files differ from run to run, so it is not the default.
    ///
    /// ```
    /// use ironbloom::{Bloom, BloomParams, HashFn};
    /// let mut seen = Bloom::new(BloomParams::for_rate(1000, 0.01)?, HashFn::random())?;
    /// seen.insert("alice");
    /// assert!(seen.contains("alice"));
    /// # Ok::<(), ironbloom::ParamError>(())
    /// ```
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    pub fn random() -> Self {
        Self::SipHash13 { key: HashKey::random(), in_files: true }
    }

    /// SipHash-1-3 under this key, which files do not contain.
    pub fn secret(key: HashKey) -> Self {
        Self::SipHash13 { key, in_files: false }
    }

    /// Hashes a key's bytes; `None` if keys are not bytes: the caller hashes ([`HashFn::External`]), or the filter has
    /// another type ([`HashFn::Typed`]).
    #[inline]
    pub fn try_hash(self, key: &[u8]) -> Option<u64> {
        self.hash_as(KeyType::Bytes, key)
    }

    /// Hashes a key.
    ///
    /// # Panics
    ///
    /// If this is [`HashFn::External`], or a [`HashFn::Typed`] for another type: the program has mixed up two ways of
    /// using a filter, and any number returned here would be a wrong answer later. [`KeyHash::of`] does not panic.
    #[inline]
    #[track_caller]
    pub fn hash(self, key: impl Key) -> u64 {
        match self.try_hash_key(&key) {
            Some(hash) => hash,
            None => self.refuse(key.encoded().key_type()),
        }
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn refuse(self, found: KeyType) -> ! {
        match self {
            Self::Typed { keys, .. } => panic!("{}", KeyError::Type { wanted: keys, found }),
            Self::Foreign { .. } => panic!("{}", KeyError::Foreign),
            Self::Locked { check } => panic!("{}", KeyError::Locked { check }),
            _ => panic!(
                "this filter was built from external hashes: use the methods that take a hash"
            ),
        }
    }

    /// The declared type of the keys.
    pub(crate) fn declared(self) -> Option<KeyTypes> {
        match self {
            Self::Typed { keys, .. } => Some(keys.into()),
            _ => None,
        }
    }

    /// Checks that keys of this type can be hashed.
    pub fn accepts(self, found: KeyType) -> Result<(), KeyError> {
        match self {
            Self::External { id } => Err(KeyError::External { id }),
            Self::Foreign { .. } => Err(KeyError::Foreign),
            Self::Locked { check } => Err(KeyError::Locked { check }),
            Self::Typed { keys, .. } if !keys.takes(found) => {
                Err(KeyError::Type { wanted: keys, found })
            }
            _ => Ok(()),
        }
    }

    /// Hashes any key; `None` if [`accepts`](Self::accepts) fails.
    #[inline]
    pub(crate) fn try_hash_key<K: Key + ?Sized>(self, key: &K) -> Option<u64> {
        let encoded = key.encoded();
        let found = encoded.key_type();
        match encoded {
            Encoded::Bytes(bytes) | Encoded::Value(bytes) => self.hash_as(found, bytes),
            Encoded::Integer(number) => self.hash_as(found, &number.to_le_bytes()),
            Encoded::Hashed(value) => match self {
                Self::Typed { keys: KeyType::Digest, .. } => {
                    self.hash_as(KeyType::Digest, &hashed::digest(value).to_le_bytes())
                }
                _ => hashed::with_bytes(value, |bytes| self.hash_as(found, bytes)),
            },
        }
    }

    // Always inlined: only a call with the bytes and the seed in registers remains. `self`, passed on through memory
    // piece by piece, caused a wait (5 of 10 ns per text).
    #[inline(always)]
    fn hash_as(self, found: KeyType, bytes: &[u8]) -> Option<u64> {
        match self {
            Self::Typed { keys, .. } if keys != found => None,
            Self::Xxh3 { seed } | Self::Typed { seed, .. } => {
                Some(xxhash_rust::xxh3::xxh3_64_with_seed(bytes, seed))
            }
            Self::SipHash13 { key, .. } => Some(key.hash(bytes)),
            Self::Xxh64 { seed } => Some(xxhash_rust::xxh64::xxh64(bytes, seed)),
            Self::External { .. } | Self::Foreign { .. } | Self::Locked { .. } => None,
        }
    }

    /// Hashes many keys, one per place: faster than [`hash`](Self::hash) in a loop, because the function is chosen
    /// once. Keys beyond the last place are ignored, and so are places beyond the last key.
    ///
    /// ```
    /// let hash_fn = ironbloom::HashFn::default();
    /// let mut hashes = [0; 2];
    /// hash_fn.hash_keys(["alice", "bob"], &mut hashes);
    /// assert_eq!(hashes, [hash_fn.hash("alice"), hash_fn.hash("bob")]);
    /// ```
    ///
    /// # Panics
    ///
    /// Same as [`hash`](Self::hash).
    #[inline]
    #[track_caller]
    pub fn hash_keys<K: Key>(self, keys: impl IntoIterator<Item = K>, hashes: &mut [u64]) {
        match self {
            Self::Xxh3 { seed } => {
                let of = |bytes: &[u8]| xxhash_rust::xxh3::xxh3_64_with_seed(bytes, seed);
                hash_each(keys, hashes, of);
            }
            Self::Xxh64 { seed } => {
                hash_each(keys, hashes, |bytes| xxhash_rust::xxh64::xxh64(bytes, seed));
            }
            Self::SipHash13 { key, .. } => hash_each(keys, hashes, |bytes| key.hash(bytes)),
            _ => {
                for (hash, key) in hashes.iter_mut().zip(keys) {
                    *hash = self.hash(key);
                }
            }
        }
    }

    /// Hashes at most [`GROUP`] keys into the buffer.
    ///
    /// # Panics
    ///
    /// Same as [`hash`](Self::hash); also if there are more keys.
    #[inline]
    pub(crate) fn hash_group<'b, K: Key>(
        self,
        keys: &[K],
        buffer: &'b mut [u64; GROUP],
    ) -> &'b [u64] {
        let hashes = &mut buffer[..keys.len()];
        self.hash_keys(keys, hashes);
        hashes
    }

    /// The seed; the caller's number for an external hash; the number that identifies a secret key
    /// ([`HashKey::check`]).
    pub fn seed(self) -> u64 {
        match self {
            Self::SipHash13 { key, .. } => key.check(),
            Self::Locked { check } => check,
            Self::Xxh3 { seed }
            | Self::Typed { seed, .. }
            | Self::Xxh64 { seed }
            | Self::Foreign { seed, .. } => seed,
            Self::External { id } => id,
        }
    }
}

impl fmt::Display for HashFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Xxh3 { seed } => write!(f, "xxh3-64 seed {seed}"),
            Self::Typed { keys, seed } => write!(f, "xxh3-64 seed {seed} of {keys}"),
            Self::Xxh64 { seed } => write!(f, "xxh64 seed {seed}"),
            Self::SipHash13 { key, in_files: true } => {
                write!(f, "siphash-1-3 with its own key {:016x}", key.check())
            }
            Self::SipHash13 { key, in_files: false } => {
                write!(f, "siphash-1-3 with the secret key {:016x}", key.check())
            }
            Self::Locked { check } => {
                write!(f, "siphash-1-3 with the secret key {check:016x}, which was not given")
            }
            Self::External { id } => write!(f, "external hash {id}"),
            Self::Foreign { seed, .. } => write!(f, "another program's, seed {seed}"),
        }
    }
}

/// Hashes keys with a function that is not typed.
#[inline(always)]
fn hash_each<K: Key>(
    keys: impl IntoIterator<Item = K>,
    hashes: &mut [u64],
    of: impl Fn(&[u8]) -> u64,
) {
    for (hash, key) in hashes.iter_mut().zip(keys) {
        *hash = match key.encoded() {
            Encoded::Bytes(bytes) | Encoded::Value(bytes) => of(bytes),
            Encoded::Integer(number) => of(&number.to_le_bytes()),
            Encoded::Hashed(value) => hashed::with_bytes(value, &of),
        };
    }
}

/// Maps a hash evenly to `0..n` by its **high** bits, without a division \[Lemire19\].
///
/// `floor(hash * n / 2^64)`. Anything else derived from the same hash must come from its low bits or from a remix;
/// otherwise the two are correlated.
#[inline]
pub fn fastrange(hash: u64, n: u64) -> u64 {
    ((u128::from(hash) * u128::from(n)) >> 64) as u64
}

/// Multiplier of the probe sequence: one of a 64-bit multiplicative congruential generator (Steele & Vigna,
/// arXiv:2001.05304). `tests/measured_rate.rs` verifies that it meets the rates.
const MULTIPLIER: u64 = 0xf135_7aea_2e62_a9c5;

/// The next hash of a sequence: one multiplication, a bijection, high bits well mixed.
#[inline]
pub(crate) const fn remix(hash: u64) -> u64 {
    hash.wrapping_mul(MULTIPLIER)
}

/// The increment of SplitMix64: 2^64 over the golden ratio.
const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes all bits of an integer into all others: a bijection, one step of SplitMix64 (Stafford's mix 13).
///
/// For integer keys, to skip byte hashing: `insert_hash(mix64(id))`. That is a different key from `insert(id)`, and
/// must be looked up with `contains_hash(mix64(id))`. Raw integers must not be used as hashes (see the
/// [module](self#uniform-hashes)); above all, the hash 0 puts all probes of a Bloom filter on one bit. (The constant
/// added first keeps the key 0 from hashing to 0.)
#[inline]
pub fn mix64(x: u64) -> u64 {
    let mut x = x.wrapping_add(GOLDEN_GAMMA);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pinned forever: a change here changes every file ever written. The values are those of the reference
    /// implementation (xxHash 0.8.4, through Python's `xxhash`).
    #[test]
    fn hashes_are_those_of_the_reference_implementation() {
        assert_eq!(HashFn::default().hash(""), 0x2d06_8005_38d3_94c2);
        assert_eq!(HashFn::Xxh64 { seed: 0 }.hash(""), 0xef46_db37_51d8_e999);
        assert_eq!(HashFn::Xxh64 { seed: 0 }.hash("a"), 0xd24e_c4f1_a98c_6e5b);
    }

    #[test]
    fn no_small_integer_is_mixed_to_zero() {
        assert_eq!(mix64(0), 0xe220_a839_7b1d_cdaf); // the first output of SplitMix64 with seed 0
        assert!((0..1_000_000).all(|x| mix64(x) != 0));
    }

    #[test]
    fn seeds_and_functions_give_different_hashes() {
        let hashes = [
            HashFn::default(),
            HashFn::Xxh3 { seed: 1 },
            HashFn::Xxh64 { seed: 0 },
            HashFn::Xxh64 { seed: 1 },
        ]
        .map(|hash_fn| hash_fn.hash("key"));
        for (i, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..i].contains(hash));
        }
    }

    #[test]
    fn an_external_hash_function_cannot_hash() {
        assert_eq!(HashFn::External { id: 7 }.try_hash(b"key"), None);
    }

    #[test]
    fn a_typed_function_hashes_keys_of_its_type_as_others_do_and_refuses_the_rest() {
        let typed = |keys| HashFn::Typed { keys, seed: 5 };
        let plain = HashFn::Xxh3 { seed: 5 };
        assert_eq!(typed(KeyType::Integer).try_hash_key(&7), plain.try_hash_key(&7));
        assert_eq!(typed(KeyType::Bytes).try_hash_key("7"), plain.try_hash_key("7"));
        let hashed = Hashed((1, "a"));
        assert_eq!(typed(KeyType::Hashed).try_hash_key(&hashed), plain.try_hash_key(&hashed));
        for keys in [KeyType::Bytes, KeyType::Integer, KeyType::Hashed] {
            let taken = [
                typed(keys).try_hash_key("7").is_some(),
                typed(keys).try_hash_key(&7).is_some(),
                typed(keys).try_hash_key(&hashed).is_some(),
            ];
            let types = [KeyType::Bytes, KeyType::Integer, KeyType::Hashed];
            assert_eq!(taken, types.map(|found| found == keys), "{keys}");
            assert_eq!(taken, types.map(|found| typed(keys).accepts(found).is_ok()), "{keys}");
        }
        assert_eq!(typed(KeyType::Integer).try_hash(&7u64.to_le_bytes()), None);
    }

    #[test]
    fn many_keys_have_the_hashes_that_they_have_alone() {
        let texts: Vec<String> = (0..300).map(|length| "x".repeat(length)).collect();
        let functions = [
            HashFn::Xxh3 { seed: 0 },
            HashFn::Xxh3 { seed: 9 },
            HashFn::Xxh64 { seed: 9 },
            HashFn::random(),
            HashFn::Typed { keys: KeyType::Bytes, seed: 9 },
        ];
        for hash_fn in functions {
            let mut hashes = [0; 301];
            hash_fn.hash_keys(&texts, &mut hashes);
            let alone = texts.iter().map(|text| hash_fn.hash(text));
            assert!(hashes.iter().copied().eq(alone.chain([0])), "{hash_fn}");
        }
        let mut hashes = [0; 2];
        HashFn::default().hash_keys([7, -1, 5], &mut hashes);
        assert_eq!(hashes, [7, -1].map(|number| HashFn::default().hash(number)));
    }

    #[test]
    #[should_panic(expected = "the filter holds integers, not text or bytes")]
    fn many_keys_of_another_type_are_a_panic_too() {
        HashFn::Typed { keys: KeyType::Integer, seed: 0 }.hash_keys(["7"], &mut [0]);
    }

    #[test]
    #[should_panic(expected = "the filter holds integers, not text or bytes")]
    fn a_key_of_another_type_is_a_panic_not_an_answer() {
        HashFn::Typed { keys: KeyType::Integer, seed: 0 }.hash("7");
    }

    #[test]
    fn fastrange_covers_its_range_evenly() {
        assert_eq!((fastrange(0, 10), fastrange(u64::MAX, 10)), (0, 9));
        let mut counts = [0u32; 10];
        for i in 0..100_000u64 {
            counts[fastrange(mix64(i), 10) as usize] += 1;
        }
        // 10,000 expected per cell, sigma 95: six sigma.
        assert!(counts.iter().all(|&c| (9_430..=10_570).contains(&c)), "{counts:?}");
    }
}
