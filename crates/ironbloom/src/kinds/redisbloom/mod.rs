//! A filter in one of RedisBloom's layouts, outside a server: the result of `BF.SCANDUMP` and `CF.SCANDUMP`, as a kind.
//!
//! The layouts are in [`redisbloom`](crate::redisbloom), shared with the server module: a chain of Bloom filters, and a
//! cuckoo filter that grows. Keys are bytes, hashed by MurmurHash64A.
//!
//! In an `.ibf` file: the header chunk of SCANDUMP, in whole lines, and then each array in whole lines.

mod kind;

pub(in crate::kinds) use kind::PLANS;

use crate::error::{DecodeError, Full, ParamError};
use crate::format::Kind;
use crate::format::native::{Image, Parts, Persist, Sections, zero_after};
use crate::hash::{Encoded, HashFn, Key, KeyError, KeyForm, KeyType};
use crate::kernel::{LINE_BYTES, LINE_WORDS, Words};
use crate::kinds::any::Refused;
use crate::kinds::{FillProgress, check_lengths};
use crate::redisbloom::batch::BATCH;
use crate::redisbloom::chain::Chain;
use crate::redisbloom::cuckoo::CuckooFilter;
use crate::redisbloom::dump;
use crate::redisbloom::error::{CreateError, InsertError};
use crate::redisbloom::limits::MemoryLimit;
use crate::redisbloom::murmur::{BloomHash, cuckoo_hash};
use crate::sizing;

/// Maximum length of a header: that of a chain with the maximum number of links.
const MAX_HEADER: u64 = 1 << 20;

/// Numbers of the layouts in files.
const BLOOM: u64 = 1;
const CUCKOO: u64 = 2;

/// A RedisBloom filter.
///
/// ```
/// use ironbloom::RedisBloom;
/// use ironbloom::redisbloom::chain::{Chain, Scaling};
/// use ironbloom::redisbloom::limits::MemoryLimit;
/// // BF.RESERVE seen 0.01 100
/// let mut seen = RedisBloom::Bloom(Chain::new(100, 0.01, Scaling::Growing(2), MemoryLimit::NONE)?);
/// seen.insert("alice")?;
/// assert!(seen.contains("alice")? && !seen.contains("bob")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RedisBloom {
    /// The filter of BF.* commands.
    Bloom(Chain),
    /// The filter of CF.* commands.
    Cuckoo(CuckooFilter),
}

impl RedisBloom {
    /// How keys are hashed, as files record it.
    pub fn hash_fn(&self) -> HashFn {
        HashFn::Foreign { form: Some(KeyForm::Text), seed: 0 }
    }

    /// Returns true if the key might be in the filter. `false` is certain.
    pub fn contains(&self, key: impl Key) -> Result<bool, KeyError> {
        let bytes = bytes(key.encoded())?;
        Ok(match self {
            Self::Bloom(chain) => chain.contains(BloomHash::of(bytes)),
            Self::Cuckoo(filter) => filter.contains(cuckoo_hash(bytes)),
        })
    }

    /// Sets `found[i]` to whether `keys[i]` might be present; memory accesses overlap. Fails at the first key that is
    /// not bytes, with its position and the reason.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[track_caller]
    pub fn contains_keys<K: Key>(
        &self,
        keys: &[K],
        found: &mut [bool],
    ) -> Result<(), (usize, KeyError)> {
        check_lengths(keys.len(), found.len());
        let groups = keys.chunks(BATCH).zip(found.chunks_mut(BATCH));
        for (number, (keys, found)) in groups.enumerate() {
            let bytes = |i: usize, key: &K| match key.encoded() {
                Encoded::Bytes(bytes) => Ok(BloomHash::of(bytes)),
                other => Err((number * BATCH + i, wrong_type(other))),
            };
            match self {
                Self::Bloom(chain) => {
                    let mut hashes = [BloomHash::default(); BATCH];
                    for (i, (hash, key)) in hashes.iter_mut().zip(keys).enumerate() {
                        *hash = bytes(i, key)?;
                    }
                    chain.contains_each(&hashes[..keys.len()], found);
                }
                Self::Cuckoo(filter) => {
                    let mut hashes = [0; BATCH];
                    for (i, (hash, key)) in hashes.iter_mut().zip(keys).enumerate() {
                        *hash = match key.encoded() {
                            Encoded::Bytes(bytes) => cuckoo_hash(bytes),
                            other => return Err((number * BATCH + i, wrong_type(other))),
                        };
                    }
                    filter.contains_each(&hashes[..keys.len()], found);
                }
            }
        }
        Ok(())
    }

    /// Inserts a key, in a cuckoo filter again if it is present. Returns true if it was new. Growing filters grow.
    pub fn insert(&mut self, key: impl Key) -> Result<bool, Refused> {
        let encoded = key.encoded();
        let bytes = bytes(encoded)?;
        let inserted = match self {
            Self::Bloom(chain) => chain.insert(BloomHash::of(bytes), MemoryLimit::NONE),
            Self::Cuckoo(filter) => {
                let hash = cuckoo_hash(bytes);
                let new = !filter.contains(hash);
                filter.insert(hash, MemoryLimit::NONE).map(|()| new)
            }
        };
        inserted.map_err(|error| match error {
            InsertError::Growth(CreateError::Memory { bytes }) => {
                Refused::Params(ParamError::Memory { bytes })
            }
            _ => Refused::Full(Full { len: self.len(), capacity: self.capacity() }),
        })
    }

    /// Number of keys counted.
    pub fn len(&self) -> u64 {
        match self {
            Self::Bloom(chain) => chain.len(),
            Self::Cuckoo(filter) => filter.len(),
        }
    }

    /// True if no key was counted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of keys that fit without growing.
    pub fn capacity(&self) -> u64 {
        match self {
            Self::Bloom(chain) => chain.capacity(),
            Self::Cuckoo(filter) => filter.slot_bytes(),
        }
    }

    /// Number of distinct keys, estimated from the set bits; for a cuckoo filter the number counted.
    pub fn estimate_len(&self) -> f64 {
        match self {
            Self::Bloom(chain) => {
                let links = chain.links().iter().map(|link| {
                    let ones = crate::memory::count_ones(link.array());
                    sizing::estimate_len(link.shape().bits, link.shape().probes, ones)
                });
                links.sum()
            }
            Self::Cuckoo(filter) => filter.len() as f64,
        }
    }

    /// The current rate, from the stored bits or fingerprints.
    pub fn estimate_rate(&self) -> f64 {
        match self {
            Self::Bloom(chain) => {
                FillProgress::at_once(|progress, most| chain.fill_step(progress, most)).rate
            }
            Self::Cuckoo(filter) => {
                // Any slot of two buckets in each sub-filter may hold the fingerprint, one of 255.
                let slots = 2.0 * f64::from(filter.shape().bucket_size());
                let misses = filter.tables().map(|table| {
                    let used = table.iter().filter(|&&slot| slot != 0).count();
                    let load = used as f64 / table.len() as f64;
                    (1.0 - load / 255.0).powf(slots)
                });
                1.0 - misses.product::<f64>()
            }
        }
    }

    /// Always false: a growing filter has room for one more key, and others refuse it.
    pub fn is_over_capacity(&self) -> bool {
        false
    }

    /// Total bytes of all arrays.
    pub fn size_in_bytes(&self) -> usize {
        let bytes = match self {
            Self::Bloom(chain) => chain.array_bytes(),
            Self::Cuckoo(filter) => filter.slot_bytes(),
        };
        bytes as usize
    }

    /// The header chunk of SCANDUMP.
    pub(crate) fn header(&self) -> Vec<u8> {
        match self {
            Self::Bloom(chain) => dump::chain_header(chain),
            Self::Cuckoo(filter) => dump::cuckoo_header(filter),
        }
    }

    /// The arrays, oldest first.
    pub(crate) fn arrays(&self) -> Vec<&[u8]> {
        match self {
            Self::Bloom(chain) => chain.links().iter().map(|link| link.array()).collect(),
            Self::Cuckoo(filter) => filter.tables().collect(),
        }
    }

    /// Creates an empty filter for the arrays that follow this header, whose sizes add up to at most `bytes`.
    pub(crate) fn from_header(
        is_cuckoo: bool,
        header: &[u8],
        bytes: u64,
    ) -> Result<Self, crate::redisbloom::error::DecodeError> {
        let limit = MemoryLimit::bytes(bytes);
        Ok(if is_cuckoo {
            Self::Cuckoo(dump::cuckoo_from_header(header, limit)?)
        } else {
            Self::Bloom(dump::chain_from_header(header, limit)?)
        })
    }

    /// Writes a piece that ends at this iterator, like LOADCHUNK.
    pub(crate) fn load(
        &mut self,
        iterator: i64,
        piece: &[u8],
    ) -> Result<(), crate::redisbloom::error::ChunkError> {
        match self {
            Self::Bloom(chain) => dump::load_chain_chunk(chain, iterator, piece),
            Self::Cuckoo(filter) => dump::load_cuckoo_chunk(filter, iterator, piece),
        }
    }
}

fn bytes(key: Encoded<'_>) -> Result<&[u8], KeyError> {
    match key {
        Encoded::Bytes(bytes) => Ok(bytes),
        other => Err(wrong_type(other)),
    }
}

fn wrong_type(key: Encoded<'_>) -> KeyError {
    KeyError::Type { wanted: KeyType::Bytes, found: key.key_type() }
}

/// Returns bytes as words of whole lines.
fn lines(bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![0; bytes.len().div_ceil(LINE_BYTES) * LINE_WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks(8)) {
        *word = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    }
    words
}

/// Takes the next array of `len` bytes, followed by zeros.
fn take(sections: &mut Sections, len: u64) -> Result<Vec<u8>, DecodeError> {
    let words: Words = zero_after(sections.take_lines(len.div_ceil(LINE_BYTES as u64))?, 8 * len)?;
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    Ok(bytes.take(len as usize).collect())
}

impl Persist for RedisBloom {
    fn encode(&self) -> Image<'_> {
        let header = self.header();
        let layout = if matches!(self, Self::Bloom(_)) { BLOOM } else { CUCKOO };
        let image = Image::new(Kind::RedisBloom, self.hash_fn(), self.len(), self.capacity())
            .params(&[layout, header.len() as u64])
            .owned_section(lines(&header));
        let arrays = self.arrays().into_iter();
        arrays.fold(image, |image, array| image.owned_section(lines(array)))
    }

    fn decode(parts: Parts) -> Result<Self, DecodeError> {
        let header = parts.expect_kind(Kind::RedisBloom)?;
        let [layout, header_bytes] = header.first_params()?;
        let invalid = |what, value| DecodeError::Invalid { what, value };
        if header.hash_fn != (HashFn::Foreign { form: Some(KeyForm::Text), seed: 0 }) {
            return Err(invalid("form of the keys", header.hash_fn.seed()));
        }
        if !(BLOOM..=CUCKOO).contains(&layout) {
            return Err(invalid("layout", layout));
        }
        if header_bytes > MAX_HEADER {
            return Err(invalid("length of the header", header_bytes));
        }
        let (len, capacity) = (header.len, header.capacity);
        let payload = header.payload_bytes;
        let mut sections = Sections::new(parts.words);
        let announced = take(&mut sections, header_bytes)?;
        let mut filter = Self::from_header(layout == CUCKOO, &announced, payload)
            .map_err(|_| invalid("header of RedisBloom", header_bytes))?;
        if filter.header() != announced || filter.len() != len || filter.capacity() != capacity {
            return Err(invalid("header of RedisBloom", header_bytes));
        }
        let lengths: Vec<usize> = filter.arrays().iter().map(|array| array.len()).collect();
        let mut end = 1;
        for length in lengths {
            let array = take(&mut sections, length as u64)?;
            end += length as i64;
            filter.load(end, &array).map_err(|_| invalid("array", length as u64))?;
        }
        sections.finish()?;
        Ok(filter)
    }
}
