//! The filter of a key, of RedisBloom's layout or native.
//!
//! While a native filter is being loaded, every command but LOADCHUNK is refused, with the progress in the error message.

use std::ffi::CString;

use crate::engine::call::Call;
use crate::engine::key::{ByLayout, Found, Key};
use crate::error::InsertError;
use crate::native::bloom::NativeBloom;
use crate::native::cuckoo::NativeCuckoo;
use crate::native::wire::Arrival;
use crate::native::{Imaged, Native};
use crate::redisbloom::batch::BATCH;
use crate::redisbloom::chain::Chain;
use crate::redisbloom::cuckoo::CuckooFilter;
use crate::redisbloom::murmur::{BloomHash, cuckoo_hash};

use super::{Refusal, expect_filter, memory_limit};

/// A Bloom filter to look at.
pub(super) type Bloom<'key> = ByLayout<&'key Chain, &'key NativeBloom>;
/// A Bloom filter to change.
pub(super) type BloomMut<'key> = ByLayout<&'key mut Chain, &'key mut NativeBloom>;
/// A cuckoo filter to look at.
pub(super) type Cuckoo<'key> = ByLayout<&'key CuckooFilter, &'key NativeCuckoo>;
/// A cuckoo filter to change.
pub(super) type CuckooMut<'key> = ByLayout<&'key mut CuckooFilter, &'key mut NativeCuckoo>;

/// The Bloom filter of a key.
pub(super) fn bloom<'key>(key: &'key Key<'_>) -> Result<Found<Bloom<'key>>, Refusal> {
    whole(key.get_either::<Chain, Native<NativeBloom>>())
}

/// The Bloom filter of a key, to change it.
pub(super) fn bloom_mut<'key>(key: &'key mut Key<'_>) -> Result<Found<BloomMut<'key>>, Refusal> {
    whole_mut(key.get_either_mut::<Chain, Native<NativeBloom>>())
}

/// The Bloom filter of a key, to change it; or what `make` puts there if there is nothing.
pub(super) fn bloom_or_make<'key, 'call, R>(
    key: &'key mut Key<'call>,
    make: impl FnOnce(&'key mut Key<'call>) -> Result<R, Refusal>,
    found: impl FnOnce(BloomMut<'key>) -> R,
) -> Result<R, Refusal> {
    key.get_either_or_make::<Chain, Native<NativeBloom>, _>(make, |filter| {
        Ok(found(expect_filter(whole_mut(filter)?)?))
    })
}

/// The cuckoo filter of a key, to change it; or what `make` puts there if there is nothing.
pub(super) fn cuckoo_or_make<'key, 'call, R>(
    key: &'key mut Key<'call>,
    make: impl FnOnce(&'key mut Key<'call>) -> Result<R, Refusal>,
    found: impl FnOnce(CuckooMut<'key>) -> Result<R, Refusal>,
) -> Result<R, Refusal> {
    key.get_either_or_make::<CuckooFilter, Native<NativeCuckoo>, _>(make, |filter| {
        found(expect_filter(whole_mut(filter)?)?)
    })
}

/// The cuckoo filter of a key.
pub(super) fn cuckoo<'key>(key: &'key Key<'_>) -> Result<Found<Cuckoo<'key>>, Refusal> {
    whole(key.get_either::<CuckooFilter, Native<NativeCuckoo>>())
}

/// The cuckoo filter of a key, to change it.
pub(super) fn cuckoo_mut<'key>(key: &'key mut Key<'_>) -> Result<Found<CuckooMut<'key>>, Refusal> {
    whole_mut(key.get_either_mut::<CuckooFilter, Native<NativeCuckoo>>())
}

fn whole<'key, A, T: Imaged>(
    found: Found<ByLayout<&'key A, &'key Native<T>>>,
) -> Result<Found<ByLayout<&'key A, &'key T>>, Refusal> {
    Ok(match found {
        Found::Missing => Found::Missing,
        Found::WrongType => Found::WrongType,
        Found::Filter(ByLayout::RedisBloom(filter)) => Found::Filter(ByLayout::RedisBloom(filter)),
        Found::Filter(ByLayout::Native(Native::Whole(filter))) => {
            Found::Filter(ByLayout::Native(&**filter))
        }
        Found::Filter(ByLayout::Native(Native::Arriving(arrival))) => return Err(loading(arrival)),
    })
}

fn whole_mut<'key, A, T: Imaged>(
    found: Found<ByLayout<&'key mut A, &'key mut Native<T>>>,
) -> Result<Found<ByLayout<&'key mut A, &'key mut T>>, Refusal> {
    Ok(match found {
        Found::Missing => Found::Missing,
        Found::WrongType => Found::WrongType,
        Found::Filter(ByLayout::RedisBloom(filter)) => Found::Filter(ByLayout::RedisBloom(filter)),
        Found::Filter(ByLayout::Native(Native::Whole(filter))) => {
            Found::Filter(ByLayout::Native(&mut **filter))
        }
        Found::Filter(ByLayout::Native(Native::Arriving(arrival))) => return Err(loading(arrival)),
    })
}

/// The error for a filter that is still being loaded.
pub(super) fn loading(arrival: &Arrival) -> Refusal {
    let (arrived, announced) = (arrival.arrived(), arrival.announced());
    says(format!("ERR the filter is still being loaded: {arrived} of {announced} bytes"))
}

/// A refusal with this message.
pub(super) fn says(text: String) -> Refusal {
    // A reply of one line: no text of ours has a line break or a zero, but a message of the system might.
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Refusal::Says(CString::new(text).unwrap_or_default())
}

/// A Bloom filter that a job works with: where it was found, and which one it was.
pub(super) struct BloomAt {
    pub(super) key: Vec<u8>,
    pub(super) id: Option<u64>,
}

impl BloomAt {
    pub(super) fn of(name: &[u8], key: &Key<'_>) -> Self {
        Self { key: name.to_vec(), id: bloom_id(key) }
    }
}

/// The id of the Bloom filter of a key.
pub(super) fn bloom_id(key: &Key<'_>) -> Option<u64> {
    key.id::<Chain, Native<NativeBloom>>()
}

/// The id of the cuckoo filter of a key.
pub(super) fn cuckoo_id(key: &Key<'_>) -> Option<u64> {
    key.id::<CuckooFilter, Native<NativeCuckoo>>()
}

impl Bloom<'_> {
    /// Bytes of its arrays.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            ByLayout::RedisBloom(chain) => chain.array_bytes(),
            ByLayout::Native(filter) => filter.array_bytes(),
        }
    }

    /// Whether an item might be here.
    pub(super) fn contains(&self, item: &[u8]) -> bool {
        match self {
            ByLayout::RedisBloom(chain) => chain.contains(BloomHash::of(item)),
            ByLayout::Native(filter) => filter.contains(filter.hash_fn().hash(item)),
        }
    }

    /// `found[i]` tells whether argument `first + i` might be here.
    pub(super) fn contains_args(&self, call: &Call<'_>, first: usize, found: &mut [bool]) {
        for (group, found) in found.chunks_mut(BATCH).enumerate() {
            let first = first + group * BATCH;
            match self {
                ByLayout::RedisBloom(chain) => {
                    let hashes = hashes::<BloomHash>(call, first, found.len(), BloomHash::of);
                    chain.contains_each(&hashes[..found.len()], found);
                }
                ByLayout::Native(filter) => {
                    let hash_fn = filter.hash_fn();
                    let hashes = hashes::<u64>(call, first, found.len(), |item| hash_fn.hash(item));
                    filter.contains_each(&hashes[..found.len()], found);
                }
            }
        }
    }
}

/// The hashes of `count` arguments, at most a batch.
fn hashes<H: Copy + Default>(
    call: &Call<'_>,
    first: usize,
    count: usize,
    hash: impl Fn(&[u8]) -> H,
) -> [H; BATCH] {
    let mut hashes = [H::default(); BATCH];
    for (i, place) in hashes[..count].iter_mut().enumerate() {
        *place = hash(call.arg(first + i));
    }
    hashes
}

impl BloomMut<'_> {
    /// Inserts one item. True if it was new.
    pub(super) fn insert(&mut self, call: &Call<'_>, item: &[u8]) -> Result<bool, InsertError> {
        let limit = || memory_limit(call);
        match self {
            ByLayout::RedisBloom(chain) => chain.insert_asking(BloomHash::of(item), limit),
            ByLayout::Native(filter) => {
                let mut new = [false];
                let hash = filter.hash_fn().hash(item);
                filter.insert_each(&[hash], &mut new, limit).map_err(|(_, error)| error)?;
                Ok(new[0])
            }
        }
    }

    /// Inserts arguments from `first` on; `new[i]` tells whether argument `first + i` was new. Stops at the first that is
    /// refused: how many came before it, and why.
    pub(super) fn insert_args(
        &mut self,
        call: &Call<'_>,
        first: usize,
        new: &mut [bool],
    ) -> Result<(), (usize, InsertError)> {
        let limit = || memory_limit(call);
        for (group, new) in new.chunks_mut(BATCH).enumerate() {
            let before = group * BATCH;
            let outcome = match self {
                ByLayout::RedisBloom(chain) => {
                    let hashes = hashes(call, first + before, new.len(), BloomHash::of);
                    chain.insert_each(&hashes[..new.len()], new, limit)
                }
                ByLayout::Native(filter) => {
                    let hash_fn = filter.hash_fn();
                    let hashes = hashes(call, first + before, new.len(), |item| hash_fn.hash(item));
                    filter.insert_each(&hashes[..new.len()], new, limit)
                }
            };
            outcome.map_err(|(taken, error)| (before + taken, error))?;
        }
        Ok(())
    }

    /// Whether an item that was there changes the filter all the same.
    pub(super) fn counts_repeats(&self) -> bool {
        match self {
            ByLayout::RedisBloom(_) => false,
            ByLayout::Native(filter) => filter.counts_repeats(),
        }
    }
}

impl Cuckoo<'_> {
    /// Whether an item might be here.
    pub(super) fn contains(&self, item: &[u8]) -> bool {
        match self {
            ByLayout::RedisBloom(filter) => filter.contains(cuckoo_hash(item)),
            ByLayout::Native(filter) => filter.contains(filter.hash_fn().hash(item)),
        }
    }

    /// `found[i]` tells whether argument `first + i` might be here.
    pub(super) fn contains_args(&self, call: &Call<'_>, first: usize, found: &mut [bool]) {
        for (group, found) in found.chunks_mut(BATCH).enumerate() {
            let first = first + group * BATCH;
            match self {
                ByLayout::RedisBloom(filter) => {
                    let hashes = hashes(call, first, found.len(), cuckoo_hash);
                    filter.contains_each(&hashes[..found.len()], found);
                }
                ByLayout::Native(filter) => {
                    let hash_fn = filter.hash_fn();
                    let hashes = hashes(call, first, found.len(), |item| hash_fn.hash(item));
                    filter.contains_each(&hashes[..found.len()], found);
                }
            }
        }
    }

    /// How often an item might have been inserted.
    pub(super) fn count(&self, item: &[u8]) -> u64 {
        match self {
            ByLayout::RedisBloom(filter) => filter.count(cuckoo_hash(item)),
            ByLayout::Native(filter) => filter.count(filter.hash_fn().hash(item)),
        }
    }
}

impl CuckooMut<'_> {
    /// The hash of an item.
    pub(super) fn hash(&self, item: &[u8]) -> u64 {
        match self {
            ByLayout::RedisBloom(_) => cuckoo_hash(item),
            ByLayout::Native(filter) => filter.hash_fn().hash(item),
        }
    }

    /// The hashes of `count` arguments, at most a batch.
    pub(super) fn hashes(&self, call: &Call<'_>, first: usize, count: usize) -> [u64; BATCH] {
        hashes(call, first, count, |item| self.hash(item))
    }

    /// Prefetches where these would be inserted.
    pub(super) fn touch(&self, hashes: &[u64]) {
        match self {
            ByLayout::RedisBloom(filter) => hashes.iter().for_each(|&hash| filter.touch(hash)),
            ByLayout::Native(filter) => hashes.iter().for_each(|&hash| filter.touch(hash)),
        }
    }
}
