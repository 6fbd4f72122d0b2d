//! Promise: whatever commands can make of a key survives every way out of a server and back: the fields of a file (SAVE,
//! DUMP, a full sync), the chunks of SCANDUMP and of a rewritten append-only file, and COPY.
//!
//! Random steps on filters of every layout, half-finished and forged loads among them. After each step the filter goes
//! every way, and what comes back must be equal. On a real server: `survival_server.rs`.

use crate::common::envelope::Fields;
use ironbloom::HashFn;
use ironbloom_redis::limits::MemoryLimit;
use ironbloom_redis::native::bloom::NativeBloom;
use ironbloom_redis::native::cuckoo::NativeCuckoo;
use ironbloom_redis::native::wire::Arrival;
use ironbloom_redis::native::{Imaged, Native, file};
use ironbloom_redis::redisbloom::chain::{Chain, Scaling};
use ironbloom_redis::redisbloom::cuckoo::{CuckooFilter, CuckooShape};
use ironbloom_redis::redisbloom::murmur::{BloomHash, cuckoo_hash};
use ironbloom_redis::redisbloom::{dump, rdb};
use proptest::prelude::*;

/// The limit that commands are given: some growth is refused by it.
const LIMIT: MemoryLimit = MemoryLimit::bytes(1 << 16);

/// A primary's command, or one from a file, is obeyed whatever the limit is.
const OBEY: MemoryLimit = MemoryLimit::NONE;

/// What commands can do to a key.
#[derive(Clone, Debug)]
enum Step {
    /// Items from here on, this many.
    Add(u32, u32),
    /// One item over and over.
    Repeat(u32, u32),
    Remove(u32, u32),
    /// With an equal filter that has these items.
    Merge(u32, u32),
    MergeItself,
    Compact,
    /// Of a sub-filter: some buckets.
    CompactPart(usize, u64, u64),
    /// LOADCHUNK of its own header and this share of its bytes, in per cent, to a key that was deleted before.
    LoadPart(u8),
    /// The same, with bytes of the header changed: (where, what).
    LoadForged(Vec<(usize, u8)>, u8),
    /// The rest of a load that was not finished.
    LoadRest,
    /// A chunk of random bytes that ends here.
    Chunk(i64, Vec<u8>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let forged = prop::collection::vec((0..120usize, any::<u8>()), 1..4);
    let step = prop_oneof![
        6 => (0..3000u32, 1..250u32).prop_map(|(first, count)| Step::Add(first, count)),
        1 => (0..3000u32, 1..40u32).prop_map(|(item, times)| Step::Repeat(item, times)),
        3 => (0..3000u32, 1..250u32).prop_map(|(first, count)| Step::Remove(first, count)),
        3 => (0..3000u32, 1..400u32).prop_map(|(first, count)| Step::Merge(first, count)),
        2 => Just(Step::MergeItself),
        2 => Just(Step::Compact),
        2 => (0..4usize, 0..200u64, 1..200u64)
            .prop_map(|(part, first, count)| Step::CompactPart(part, first, first + count)),
        3 => (0..100u8).prop_map(Step::LoadPart),
        2 => (forged, 0..=100u8).prop_map(|(bytes, share)| Step::LoadForged(bytes, share)),
        3 => Just(Step::LoadRest),
        1 => (0..5000i64, prop::collection::vec(any::<u8>(), 1..60))
            .prop_map(|(end, bytes)| Step::Chunk(end, bytes)),
    ];
    prop::collection::vec(step, 1..14)
}

/// A value as the server holds it: every way out and back, and every step.
trait Life: Clone + PartialEq + std::fmt::Debug {
    /// Through the fields of a file.
    fn through_file(&self) -> Result<Self, String>;
    /// The header and the chunks of SCANDUMP or of a rewritten file.
    fn chunks(&self) -> Vec<(i64, Vec<u8>)>;
    /// What LOADCHUNK makes of these, in this order, at a free key; nothing if the header is refused.
    fn load(chunks: &[(i64, Vec<u8>)], limit: MemoryLimit) -> Option<Self>;
    /// One more chunk.
    fn take(&mut self, iterator: i64, chunk: &[u8]);
    fn add(&mut self, item: u32);
    fn remove(&mut self, item: u32);
    /// An empty filter of the same numbers, if it can be merged.
    fn merge(&mut self, other: &Self);
    fn compact(&mut self);
    fn compact_part(&mut self, part: usize, first: u64, end: u64);
    fn contains(&self, item: u32) -> bool;
}

/// The filter after it went every way.
fn survive<T: Life>(key: &T) -> Result<T, TestCaseError> {
    let read = key.through_file().map_err(|why| TestCaseError::fail(format!("refused: {why}")))?;
    prop_assert_eq!(&read, key, "through a file");
    let loaded = T::load(&key.chunks(), OBEY);
    prop_assert_eq!(loaded.as_ref(), Some(key), "through chunks");
    prop_assert_eq!(&key.clone(), key, "a copy");
    for item in 0..400 {
        prop_assert_eq!(read.contains(item), key.contains(item), "item {}", item);
    }
    Ok(read)
}

/// The chunks up to this share of the bytes after the header; and the rest.
type Chunks = Vec<(i64, Vec<u8>)>;

fn cut(chunks: Chunks, share: u8) -> (Chunks, Chunks) {
    let total: usize = chunks.iter().skip(1).map(|(_, chunk)| chunk.len()).sum();
    let mut left = total * usize::from(share) / 100;
    let (mut first, mut rest) = (chunks[..1].to_vec(), Vec::new());
    for (end, chunk) in chunks.into_iter().skip(1) {
        let taken = left.min(chunk.len());
        left -= taken;
        let (one, two) = chunk.split_at(taken);
        if !one.is_empty() {
            first.push((end - two.len() as i64, one.to_vec()));
        }
        if !two.is_empty() {
            rest.push((end, two.to_vec()));
        }
    }
    (first, rest)
}

fn law<T: Life>(empty: T, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut key = survive(&empty)?;
    let mut rest: Vec<(i64, Vec<u8>)> = Vec::new();
    for step in steps {
        match step {
            Step::Add(first, count) => (*first..first + count).for_each(|item| key.add(item)),
            Step::Repeat(item, times) => (0..*times).for_each(|_| key.add(*item)),
            Step::Remove(first, count) => (*first..first + count).for_each(|item| key.remove(item)),
            Step::Merge(first, count) => {
                let mut other = empty.clone();
                (*first..first + count).for_each(|item| other.add(item));
                key.merge(&other);
            }
            Step::MergeItself => key.merge(&key.clone()),
            Step::Compact => key.compact(),
            Step::CompactPart(part, first, end) => key.compact_part(*part, *first, *end),
            Step::LoadPart(share) => {
                let (first, later) = cut(key.chunks(), *share);
                if let Some(loaded) = T::load(&first, LIMIT) {
                    (key, rest) = (loaded, later);
                }
            }
            Step::LoadForged(bytes, share) => {
                let (mut first, later) = cut(key.chunks(), *share);
                let header = &mut first[0].1;
                for (at, byte) in bytes {
                    let at = at % header.len();
                    header[at] = *byte;
                }
                if let Some(loaded) = T::load(&first, LIMIT) {
                    (key, rest) = (loaded, later);
                }
            }
            Step::LoadRest => {
                for (iterator, chunk) in rest.drain(..) {
                    key.take(iterator, &chunk);
                }
            }
            Step::Chunk(iterator, bytes) => key.take(*iterator, bytes),
        }
        key = survive(&key)?;
    }
    Ok(())
}

fn scan<'a>(
    header: Vec<u8>,
    chunk: impl Fn(i64) -> Option<(i64, std::borrow::Cow<'a, [u8]>)>,
) -> Vec<(i64, Vec<u8>)> {
    let mut chunks = vec![(1, header)];
    let mut iterator = 1;
    while let Some((next, bytes)) = chunk(iterator) {
        chunks.push((next, bytes.into_owned()));
        iterator = next;
    }
    chunks
}

impl Life for Chain {
    fn through_file(&self) -> Result<Self, String> {
        let mut fields = Fields::default();
        rdb::save_chain(self, &mut fields);
        rdb::load_chain(&mut fields, rdb::VERSION).map_err(|error| error.to_string())
    }

    fn chunks(&self) -> Vec<(i64, Vec<u8>)> {
        scan(dump::chain_header(self), |iterator| {
            dump::chain_chunk(self, iterator).map(|(next, bytes)| (next, bytes.into()))
        })
    }

    fn load(chunks: &[(i64, Vec<u8>)], limit: MemoryLimit) -> Option<Self> {
        let mut chain = dump::chain_from_header(&chunks[0].1, limit).ok()?;
        chunks[1..].iter().for_each(|(iterator, bytes)| chain.take(*iterator, bytes));
        Some(chain)
    }

    fn take(&mut self, iterator: i64, chunk: &[u8]) {
        let _ = dump::load_chain_chunk(self, iterator, chunk);
    }

    fn add(&mut self, item: u32) {
        let _ = self.insert(BloomHash::of(&item.to_le_bytes()), LIMIT);
    }

    fn remove(&mut self, _item: u32) {}

    fn merge(&mut self, other: &Self) {
        let _ = self.union_with(other);
    }

    fn compact(&mut self) {}

    fn compact_part(&mut self, _part: usize, _first: u64, _end: u64) {}

    fn contains(&self, item: u32) -> bool {
        self.contains(BloomHash::of(&item.to_le_bytes()))
    }
}

impl Life for CuckooFilter {
    fn through_file(&self) -> Result<Self, String> {
        let mut fields = Fields::default();
        rdb::save_cuckoo(self, &mut fields);
        rdb::load_cuckoo(&mut fields, rdb::VERSION).map_err(|error| error.to_string())
    }

    fn chunks(&self) -> Vec<(i64, Vec<u8>)> {
        scan(dump::cuckoo_header(self), |iterator| {
            dump::cuckoo_chunk(self, iterator).map(|(next, bytes)| (next, bytes.into()))
        })
    }

    fn load(chunks: &[(i64, Vec<u8>)], limit: MemoryLimit) -> Option<Self> {
        let mut filter = dump::cuckoo_from_header(&chunks[0].1, limit).ok()?;
        chunks[1..].iter().for_each(|(iterator, bytes)| filter.take(*iterator, bytes));
        Some(filter)
    }

    fn take(&mut self, iterator: i64, chunk: &[u8]) {
        let _ = dump::load_cuckoo_chunk(self, iterator, chunk);
    }

    fn add(&mut self, item: u32) {
        let _ = self.insert(cuckoo_hash(&item.to_le_bytes()), LIMIT);
    }

    fn remove(&mut self, item: u32) {
        self.remove(cuckoo_hash(&item.to_le_bytes()));
    }

    fn merge(&mut self, _other: &Self) {}

    fn compact(&mut self) {
        self.compact();
    }

    fn compact_part(&mut self, part: usize, first: u64, end: u64) {
        self.compact_part(part, first..end);
    }

    fn contains(&self, item: u32) -> bool {
        self.contains(cuckoo_hash(&item.to_le_bytes()))
    }
}

fn native_through_file<T: Imaged>(value: &Native<T>) -> Result<Native<T>, String> {
    let mut fields = Fields::default();
    file::save(value, &mut fields);
    file::load(&mut fields, file::VERSION).map_err(|error| error.to_string())
}

fn native_load<T: Imaged>(chunks: &[(i64, Vec<u8>)], limit: MemoryLimit) -> Option<Native<T>> {
    let mut value = Native::Arriving(Arrival::begin::<T>(&chunks[0].1, limit).ok()?.ok()?);
    for (iterator, bytes) in &chunks[1..] {
        value = native_take(value, *iterator, bytes)?;
    }
    Some(value)
}

/// As LOADCHUNK does it: with the last byte there is a filter, or nothing.
fn native_take<T: Imaged>(mut value: Native<T>, iterator: i64, bytes: &[u8]) -> Option<Native<T>> {
    let Native::Arriving(arrival) = &mut value else { return Some(value) };
    match arrival.take(iterator, bytes) {
        Ok(true) => arrival.finish().ok().map(Native::whole),
        Ok(false) | Err(_) => Some(value),
    }
}

fn hash(item: u32) -> u64 {
    HashFn::default().hash(item.to_le_bytes())
}

impl Life for Native<NativeBloom> {
    fn through_file(&self) -> Result<Self, String> {
        native_through_file(self)
    }

    fn chunks(&self) -> Vec<(i64, Vec<u8>)> {
        scan(self.header(), |iterator| self.piece(iterator))
    }

    fn load(chunks: &[(i64, Vec<u8>)], limit: MemoryLimit) -> Option<Self> {
        native_load(chunks, limit)
    }

    fn take(&mut self, iterator: i64, chunk: &[u8]) {
        // A load that fails deletes the key; here it goes on as it was before.
        if let Some(value) = native_take(self.clone(), iterator, chunk) {
            *self = value;
        }
    }

    fn add(&mut self, item: u32) {
        if let Self::Whole(filter) = self {
            let _ = filter.insert_each(&[hash(item)], &mut [false], || LIMIT);
        }
    }

    fn remove(&mut self, _item: u32) {}

    fn merge(&mut self, other: &Self) {
        if let (Self::Whole(one), Self::Whole(two)) = (self, other) {
            let _ = one.union_with(two);
        }
    }

    fn compact(&mut self) {}

    fn compact_part(&mut self, _part: usize, _first: u64, _end: u64) {}

    fn contains(&self, item: u32) -> bool {
        matches!(self, Self::Whole(filter) if filter.contains(hash(item)))
    }
}

impl Life for Native<NativeCuckoo> {
    fn through_file(&self) -> Result<Self, String> {
        native_through_file(self)
    }

    fn chunks(&self) -> Vec<(i64, Vec<u8>)> {
        scan(self.header(), |iterator| self.piece(iterator))
    }

    fn load(chunks: &[(i64, Vec<u8>)], limit: MemoryLimit) -> Option<Self> {
        native_load(chunks, limit)
    }

    fn take(&mut self, iterator: i64, chunk: &[u8]) {
        if let Some(value) = native_take(self.clone(), iterator, chunk) {
            *self = value;
        }
    }

    fn add(&mut self, item: u32) {
        if let Self::Whole(filter) = self {
            let _ = filter.insert(hash(item), || LIMIT);
        }
    }

    fn remove(&mut self, item: u32) {
        if let Self::Whole(filter) = self {
            filter.remove(hash(item));
        }
    }

    fn merge(&mut self, _other: &Self) {}

    fn compact(&mut self) {
        if let Self::Whole(filter) = self {
            (0..filter.parts()).rev().for_each(|part| filter.compact_part(part, 0..u64::MAX));
        }
    }

    fn compact_part(&mut self, part: usize, first: u64, end: u64) {
        if let Self::Whole(filter) = self {
            filter.compact_part(part, first..end);
        }
    }

    fn contains(&self, item: u32) -> bool {
        matches!(self, Self::Whole(filter) if filter.contains(hash(item)))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..Default::default() })]

    #[test]
    fn chains_of_redisblooms_layout_survive(
        capacity in 1u64..300,
        rate in 0.0001..0.25,
        scaling in prop_oneof![(1u32..6).prop_map(Scaling::Growing), (0u32..3).prop_map(Scaling::Fixed)],
        steps in steps(),
    ) {
        law(Chain::new(capacity, rate, scaling, LIMIT).unwrap(), &steps)?;
    }

    #[test]
    fn cuckoo_filters_of_redisblooms_layout_survive(
        capacity in 2u64..300,
        bucket_size in 1u16..6,
        max_iterations in 1u16..30,
        expansion in 0u16..5,
        steps in steps(),
    ) {
        let shape = CuckooShape::new(capacity, bucket_size, max_iterations, expansion).unwrap();
        law(CuckooFilter::new(shape, LIMIT).unwrap(), &steps)?;
    }

    #[test]
    fn blocked_filters_that_grow_survive(
        capacity in 1u64..300,
        rate in 0.0001..0.25,
        growth in 2u64..17,
        steps in steps(),
    ) {
        let filter = NativeBloom::growing(capacity, rate, growth, HashFn::default(), LIMIT).unwrap();
        law(Native::whole(filter), &steps)?;
    }

    #[test]
    fn blocked_filters_and_windows_survive(
        capacity in 1u64..2000,
        rate in 0.0001..0.25,
        is_window: bool,
        steps in steps(),
    ) {
        let filter = if is_window {
            NativeBloom::window(capacity, rate, HashFn::default(), LIMIT)
        } else {
            NativeBloom::blocked(capacity, rate, HashFn::default(), LIMIT)
        };
        law(Native::whole(filter.unwrap()), &steps)?;
    }

    #[test]
    fn cuckoo_filters_of_our_layout_survive(
        capacity in 1u64..300,
        rate in 0.0001..0.25,
        is_growing: bool,
        steps in steps(),
    ) {
        let filter = NativeCuckoo::new(capacity, rate, is_growing, HashFn::default(), LIMIT).unwrap();
        law(Native::whole(filter), &steps)?;
    }
}

/// A header of LOADCHUNK may announce as many sub-filters as files can tell; no insert may add one more then.
#[test]
fn no_chain_grows_beyond_the_sub_filters_that_files_can_tell() {
    let mut chain = Chain::new(1, 0.25, Scaling::Growing(1), OBEY).unwrap();
    chain.add(0);
    let header = dump::chain_header(&chain);
    let many = |links: usize| {
        let mut many = header[..20].to_vec();
        many[..8].copy_from_slice(&(links as u64).to_le_bytes());
        many[8..12].copy_from_slice(&(links as u32).to_le_bytes());
        (0..links).for_each(|_| many.extend_from_slice(&header[20..]));
        many
    };
    assert!(dump::chain_from_header(&many(1101), OBEY).is_err());
    let mut chain = dump::chain_from_header(&many(1100), OBEY).unwrap();
    assert!(chain.insert(BloomHash::of(b"x"), OBEY).is_err());
    assert_eq!(chain.through_file().as_ref(), Ok(&chain));
}
