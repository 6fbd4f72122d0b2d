//! Promise: native filters lose nothing: beside exact models, through dumps and files, while they are compacted; and no image
//! makes the module panic or take memory that its limit forbids.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::common::envelope::{Field, Fields};
use ironbloom::{
    BinaryFuse, BlockedBloom, Bloom, BloomParams, Cuckoo, HashFn, Persist, Scalable, Windowed,
};
use ironbloom_redis::error::{CreateError, InsertError};
use ironbloom_redis::limits::MemoryLimit;
use ironbloom_redis::native::bloom::NativeBloom;
use ironbloom_redis::native::cuckoo::{MAX_PARTS, NativeCuckoo};
use ironbloom_redis::native::error::NativeError;
use ironbloom_redis::native::images::{Images, Origin};
use ironbloom_redis::native::whole::Whole;
use ironbloom_redis::native::wire::{self, Arrival, NotTaken};
use ironbloom_redis::native::{Imaged, Native, file};
use ironbloom_redis::redisbloom::batch::BATCH;
use ironbloom_redis::redisbloom::chain::{Chain, Scaling};
use ironbloom_redis::redisbloom::cuckoo::{CuckooFilter, CuckooShape};
use ironbloom_redis::redisbloom::murmur::{BloomHash, cuckoo_hash};
use ironbloom_testing::Random;
use proptest::prelude::*;

const NONE: MemoryLimit = MemoryLimit::NONE;

fn hash(key: u32) -> u64 {
    HashFn::default().hash(key.to_le_bytes())
}

fn hashes(keys: std::ops::Range<u32>) -> Vec<u64> {
    keys.map(hash).collect()
}

/// The filter that arrives when all pieces of this one are sent.
fn through_dump<T: Imaged + Clone>(filter: &T) -> T {
    let filter = Whole::from(filter.clone());
    let mut arrival = Arrival::begin::<T>(&wire::header(&filter), NONE).unwrap().unwrap();
    let mut iterator = 1;
    while let Some((next, piece)) = wire::piece(&filter, iterator) {
        // In halves, as another sender might cut them.
        let middle = piece.len() / 2;
        if middle > 0 {
            assert_eq!(arrival.take(iterator + middle as i64, &piece[..middle]), Ok(false));
        }
        let is_last = arrival.take(next, &piece[middle..]).unwrap();
        assert_eq!(is_last, arrival.arrived() == arrival.announced());
        iterator = next;
    }
    arrival.finish().unwrap()
}

fn through_file<T: Imaged>(value: &Native<T>) -> Native<T> {
    let mut fields = Fields::default();
    file::save(value, &mut fields);
    let read = file::load(&mut fields, file::VERSION).unwrap();
    assert!(fields.0.is_empty());
    read
}

#[derive(Clone, Copy, Debug)]
enum Layout {
    Growing(u64),
    Blocked,
    Window,
}

fn layouts() -> impl Strategy<Value = Layout> {
    prop_oneof![(2u64..6).prop_map(Layout::Growing), Just(Layout::Blocked), Just(Layout::Window)]
}

fn make(layout: Layout, capacity: u64, rate: f64) -> NativeBloom {
    match layout {
        Layout::Growing(growth) => {
            NativeBloom::growing(capacity, rate, growth, HashFn::default(), NONE)
        }
        Layout::Blocked => NativeBloom::blocked(capacity, rate, HashFn::default(), NONE),
        Layout::Window => NativeBloom::window(capacity, rate, HashFn::default(), NONE),
    }
    .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn native_filters_agree_with_a_set(
        layout in layouts(),
        capacity in 1u64..200,
        rate in 0.001..0.3,
        batches in prop::collection::vec(prop::collection::vec(0u32..500, 1..BATCH), 0..12),
    ) {
        let mut filter = make(layout, capacity, rate);
        let mut set = HashSet::new();
        let mut recent: Vec<u32> = Vec::new();
        for keys in &batches {
            let before = filter.clone();
            let hashes: Vec<u64> = keys.iter().map(|&key| hash(key)).collect();
            let mut new = vec![false; keys.len()];
            let outcome = filter.insert_each(&hashes, &mut new, || NONE);
            let taken = outcome.map_or_else(|(taken, _)| taken, |()| keys.len());
            if let Err((_, error)) = outcome {
                prop_assert_eq!(error, InsertError::Full);
                prop_assert!(matches!(layout, Layout::Blocked));
                prop_assert!(!filter.contains(hashes[taken]));
            }
            for (i, &key) in keys[..taken].iter().enumerate() {
                if !matches!(layout, Layout::Window) {
                    prop_assert!(!(new[i] && set.contains(&key)), "an inserted key is not new");
                    prop_assert!(new[i] || filter.contains(hashes[i]));
                    prop_assert!(!(new[i] && before.contains(hashes[i])));
                }
                set.insert(key);
                recent.push(key);
            }
            // One by one it is the same filter.
            let mut single = before;
            for (i, &hash) in hashes[..taken].iter().enumerate() {
                let mut is_new = [false];
                single.insert_each(&[hash], &mut is_new, || NONE).unwrap();
                prop_assert_eq!(is_new[0], new[i]);
            }
            prop_assert_eq!(&single, &filter);
        }
        let remembered: Vec<u32> = match layout {
            Layout::Window => recent.iter().rev().take(capacity as usize).copied().collect(),
            _ => set.iter().copied().collect(),
        };
        prop_assert!(remembered.iter().all(|&key| filter.contains(hash(key))), "a key is denied");
        let asked: Vec<u64> = hashes(0..500);
        let mut found = vec![false; 500];
        filter.contains_each(&asked, &mut found);
        prop_assert!(asked.iter().zip(&found).all(|(&hash, &found)| filter.contains(hash) == found));
        prop_assert_eq!(&through_dump(&filter), &filter);
        prop_assert_eq!(through_file(&Native::whole(filter.clone())), Native::whole(filter));
    }

    #[test]
    fn native_cuckoo_filters_agree_with_a_multiset(
        capacity in 20u64..150,
        rate in 0.0001..0.05,
        is_growing: bool,
        operations in prop::collection::vec((0u8..5, 0u32..150), 0..900),
    ) {
        let mut filter = NativeCuckoo::new(capacity, rate, is_growing, HashFn::default(), NONE).unwrap();
        let mut model: HashMap<u32, u64> = HashMap::new();
        for (operation, key) in operations {
            let before = filter.clone();
            match operation {
                0 | 1 => match filter.insert(hash(key), || NONE) {
                    Ok(()) => *model.entry(key).or_default() += 1,
                    Err(error) => {
                        prop_assert_eq!(error, InsertError::Full);
                        prop_assert!(!is_growing || filter.parts() == MAX_PARTS);
                        prop_assert_eq!(&filter, &before, "a refused insert changed something");
                    }
                },
                2 => if let Ok(true) = filter.insert_new(hash(key), || NONE) {
                    prop_assert!(!before.contains(hash(key)));
                    *model.entry(key).or_default() += 1;
                },
                // Only what was inserted may be removed: else another key's fingerprint goes.
                3 => if let Some(count) = model.get_mut(&key).filter(|count| **count > 0) {
                    prop_assert!(filter.remove(hash(key)));
                    *count -= 1;
                },
                _ => {
                    let part = filter.parts().saturating_sub(1);
                    filter.compact_part(part, u64::from(key) / 4..u64::from(key) / 2);
                    prop_assert_eq!((filter.len(), filter.removed()), (before.len(), 0));
                }
            }
            for (&key, &count) in &model {
                prop_assert!(filter.count(hash(key)) >= count, "a key is denied");
            }
        }
        prop_assert_eq!(filter.len(), model.values().sum::<u64>());
        // All at once, whatever the number of parts, as one by one.
        let asked = hashes(0..300);
        let mut found = vec![false; asked.len()];
        filter.contains_each(&asked, &mut found);
        prop_assert!(asked.iter().zip(&found).all(|(&hash, &found)| filter.contains(hash) == found));
        prop_assert_eq!(&through_dump(&filter), &filter);
        prop_assert_eq!(&through_file(&Native::whole(filter.clone())), &Native::whole(filter.clone()));
        let mut removed: Vec<u32> = model.iter().flat_map(|(&key, &count)| vec![key; count as usize]).collect();
        removed.sort_unstable();
        for key in removed {
            prop_assert!(filter.remove(hash(key)));
        }
        prop_assert!(filter.is_empty() && (0..150).all(|key| !filter.contains(hash(key))));
    }

    /// What a primary does in many short slices, its replica does in a few long ones.
    #[test]
    fn slices_of_any_length_compact_alike(
        keys in prop::collection::vec(0u32..3000, 300..900),
        removed in 0usize..250,
        cuts in prop::collection::vec(1u64..40, 1..20),
    ) {
        let mut native = NativeCuckoo::new(60, 0.01, true, HashFn::default(), NONE).unwrap();
        let shape = CuckooShape::new(64, 2, 20, 2).unwrap();
        let mut theirs = CuckooFilter::new(shape, NONE).unwrap();
        for &key in &keys {
            prop_assume!(native.insert(hash(key), || NONE).is_ok());
            theirs.insert(cuckoo_hash(&key.to_le_bytes()), NONE).unwrap();
        }
        for &key in &keys[..removed] {
            native.remove(hash(key));
        }
        // Fewer than a tenth: it is not compacted by itself, and older sub-filters have room.
        for &key in &keys[..keys.len() / 12] {
            theirs.remove(cuckoo_hash(&key.to_le_bytes()));
        }
        let (mut in_one, mut native_in_one) = (theirs.clone(), native.clone());
        let part = native.parts() - 1;
        native_in_one.compact_part(part, 0..native.params().buckets());
        let mut start = 0;
        for &cut in cuts.iter().cycle() {
            native.compact_part(part, start..start + cut);
            start += cut;
            if start >= native.params().buckets() {
                break;
            }
        }
        prop_assert_eq!(native, native_in_one);
        let part = theirs.sub_filters() - 1;
        prop_assume!(part > 0);
        let buckets = 32 << part;
        in_one.compact_part(part, 0..buckets);
        let mut start = 0;
        for &cut in cuts.iter().cycle() {
            theirs.compact_part(part, start..(start + cut).min(buckets));
            start += cut;
            if start >= buckets {
                break;
            }
        }
        prop_assert_eq!(theirs, in_one);
    }
}

/// A link larger than what is looked at without asking ahead; and one that is not, several deep.
#[test]
fn batches_of_a_chain_are_the_keys_one_by_one() {
    for (capacity, rate, keys, count) in
        [(400_000, 0.0001, 40_000, 9000), (50, 0.3, 900, 4000), (3, 0.2, 400, 300)]
    {
        let mut random = Random(capacity);
        let mut batched = Chain::new(capacity, rate, Scaling::Growing(2), NONE).unwrap();
        let mut single = batched.clone();
        let mut taken = 0;
        while taken < count {
            let len = 1 + random.index(BATCH);
            let hashes: Vec<BloomHash> = (0..len)
                .map(|_| BloomHash::of(&(random.index(keys) as u32).to_le_bytes()))
                .collect();
            let (mut new, mut found) = (vec![false; len], vec![false; len]);
            batched.contains_each(&hashes, &mut found);
            assert!(
                hashes.iter().zip(&found).all(|(&hash, &found)| single.contains(hash) == found)
            );
            batched.insert_each(&hashes, &mut new, || NONE).unwrap();
            let one_by_one: Vec<bool> =
                hashes.iter().map(|&hash| single.insert(hash, NONE).unwrap()).collect();
            assert_eq!(new, one_by_one);
            taken += len;
        }
        assert!(batched == single, "{capacity} keys");
        assert!(capacity > 50 || batched.links().len() > 3);
    }
}

#[test]
fn a_batch_stops_where_a_single_insert_is_refused() {
    let mut chain = Chain::new(5, 0.001, Scaling::Fixed(2), NONE).unwrap();
    let hashes: Vec<BloomHash> = [1u32, 2, 2, 3, 4, 5, 1, 6, 7]
        .iter()
        .map(|key| BloomHash::of(&key.to_le_bytes()))
        .collect();
    let mut new = [false; 9];
    assert_eq!(chain.insert_each(&hashes, &mut new, || NONE), Err((7, InsertError::Full)));
    assert_eq!(new[..7], [true, true, false, true, true, true, false]);
    assert_eq!(chain.len(), 5);
}

#[test]
fn native_growth_over_the_limit_is_refused_and_changes_nothing() {
    let limit = MemoryLimit::bytes(2000);
    let refused = InsertError::Growth(CreateError::OverLimit { limit: 2000 });
    let mut filter = NativeBloom::growing(200, 0.01, 2, HashFn::default(), limit).unwrap();
    let mut new = vec![false; 3000];
    let (taken, error) = filter.insert_each(&hashes(0..3000), &mut new, || limit).unwrap_err();
    assert_eq!(error, refused);
    assert!(filter.array_bytes() <= 2000 && filter.len() > 500, "{}", filter.len());
    let before = filter.clone();
    assert_eq!(
        filter.insert_each(&[hash(taken as u32)], &mut [false], || limit),
        Err((0, refused))
    );
    assert_eq!(filter, before);
    filter.insert_each(&[hash(taken as u32)], &mut [false], || NONE).unwrap();

    let mut filter = NativeCuckoo::new(200, 0.01, true, HashFn::default(), limit).unwrap();
    let first = (0..).find(|&key| filter.insert(hash(key), || limit).is_err()).unwrap();
    let before = filter.clone();
    assert_eq!(filter.insert(hash(first), || limit), Err(refused));
    assert_eq!(filter, before);
    assert!(filter.array_bytes() <= 2000 && filter.parts() > 2);
    for absurd in [1 << 40, 1 << 49] {
        assert!(NativeBloom::growing(absurd, 0.01, 2, HashFn::default(), limit).is_err());
        assert!(NativeBloom::blocked(absurd, 0.01, HashFn::default(), limit).is_err());
        assert!(NativeCuckoo::new(absurd, 0.01, true, HashFn::default(), limit).is_err());
    }
    assert!(NativeBloom::window(1 << 30, 0.01, HashFn::default(), limit).is_err());
}

/// All 16 parts full: the rate asked for, and not 16 times as much. Six sigma of 200,000 absent keys.
#[test]
fn a_growing_cuckoo_filter_keeps_its_rate() {
    let rate = 0.01;
    let mut filter = NativeCuckoo::new(500, rate, true, HashFn::default(), NONE).unwrap();
    for key in 0..16 * 500 {
        filter.insert(hash(key), || NONE).unwrap();
    }
    assert_eq!(filter.parts(), MAX_PARTS);
    assert_eq!(filter.insert(hash(1 << 30), || NONE), Err(InsertError::Full));
    let probes = 200_000;
    let found = (1 << 20..(1 << 20) + probes).filter(|&key| filter.contains(hash(key))).count();
    let bound = f64::from(probes) * rate + 6.0 * (f64::from(probes) * rate).sqrt();
    assert!((found as f64) < bound, "{found} of {probes}, at most {bound}");
    assert!(found > 100, "{found}: the parts are not that empty");
}

fn image(filter: &impl Persist) -> Images {
    images(&filter.to_bytes())
}

fn images(bytes: &[u8]) -> Images {
    let mut images = Images::new(bytes.len() as u64, Origin::Unknown);
    images.push(bytes).unwrap();
    images
}

#[test]
fn files_of_the_library_are_taken_and_answer_the_same() {
    let keys = hashes(0..2000);
    let mut blocked = BlockedBloom::with_rate(2000, 0.01).unwrap();
    let mut flat = Bloom::with_rate(2000, 0.01).unwrap();
    let mut segmented =
        Bloom::new(BloomParams::segmented_for_rate(2000, 0.01).unwrap(), HashFn::Xxh64 { seed: 7 })
            .unwrap();
    let mut growing = Scalable::with_rate(100, 0.01).unwrap();
    let mut window = Windowed::for_keys(500, 0.01).unwrap();
    blocked.insert_hashes(&keys);
    flat.insert_hashes(&keys);
    segmented.insert_hashes(&keys);
    growing.insert_hashes(&keys).unwrap();
    window.insert_hashes(&keys);
    for (image, len) in [
        (image(&blocked), blocked.len()),
        (image(&flat), flat.len()),
        (image(&segmented), segmented.len()),
        (image(&growing), growing.len()),
        (image(&window), window.len()),
    ] {
        let filter = NativeBloom::from_images(image, &[]).unwrap();
        assert_eq!(filter.len(), len);
        assert!(keys[1500..].iter().all(|&hash| filter.contains(hash)));
        assert_eq!(through_dump(&filter), filter);
    }
    let mut cuckoo = Cuckoo::with_rate(2000, 0.001).unwrap();
    cuckoo.insert_hashes(&keys).unwrap();
    let filter = NativeCuckoo::from_images(image(&cuckoo), &[]).unwrap();
    assert!(!filter.is_growing() && keys.iter().all(|&hash| filter.contains(hash)));
}

#[test]
fn what_keys_cannot_ask_is_refused() {
    let params = BloomParams::for_rate(100, 0.01).unwrap();
    let external = Bloom::new(params, HashFn::External { id: 9 }).unwrap();
    let refused = NativeBloom::from_images(image(&external), &[]);
    assert_eq!(refused, Err(NativeError::External { id: 9 }));
    let timed = Windowed::for_time(Duration::from_secs(9), 100, 0.01).unwrap();
    assert_eq!(NativeBloom::from_images(image(&timed), &[]), Err(NativeError::Clock));
    let cuckoo = Cuckoo::with_rate(100, 0.01).unwrap();
    let refused = NativeBloom::from_images(image(&cuckoo), &[]).unwrap_err();
    assert!(refused.to_string().contains("CF.LOADCHUNK"), "{refused}");
    let fuse = BinaryFuse::from_keys(["a", "b", "c"], 0.01).unwrap();
    assert!(matches!(NativeBloom::from_images(image(&fuse), &[]), Err(NativeError::Kind { .. })));
    let flat = Bloom::new(params, HashFn::default()).unwrap();
    assert!(matches!(NativeCuckoo::from_images(image(&flat), &[]), Err(NativeError::Kind { .. })));
    // Two filters, one after the other: of one shape a chain, else nothing.
    let two = images(&[cuckoo.to_bytes(), cuckoo.to_bytes()].concat());
    assert_eq!(NativeCuckoo::from_images(two.clone(), &[1, 0]).unwrap().parts(), 2);
    assert!(NativeCuckoo::from_images(two, &[0, 0]).is_err(), "it does not grow, and has two");
    let other = Cuckoo::with_rate(101 * 3, 0.01).unwrap();
    let differ = images(&[cuckoo.to_bytes(), other.to_bytes()].concat());
    assert_eq!(NativeCuckoo::from_images(differ, &[1, 0]), Err(NativeError::Shapes));
    for numbers in [&[2, 0][..], &[1], &[1, 0, 0]] {
        assert!(NativeCuckoo::from_images(image(&cuckoo), numbers).is_err(), "{numbers:?}");
    }
}

fn small_filters() -> (NativeBloom, NativeBloom, NativeCuckoo) {
    let mut growing = NativeBloom::growing(30, 0.05, 2, HashFn::default(), NONE).unwrap();
    growing.insert_each(&hashes(0..100), &mut [false; 100], || NONE).unwrap();
    let mut window = NativeBloom::window(50, 0.05, HashFn::default(), NONE).unwrap();
    window.insert_each(&hashes(0..100), &mut [false; 100], || NONE).unwrap();
    let mut cuckoo = NativeCuckoo::new(40, 0.05, true, HashFn::default(), NONE).unwrap();
    hashes(0..100).iter().for_each(|&hash| cuckoo.insert(hash, || NONE).unwrap());
    (growing, window, cuckoo)
}

/// Every byte of an image flipped: its own checksums see all of them, also when the sum of the header is made right.
#[test]
fn every_flipped_byte_of_an_image_is_refused() {
    fn check<T: Imaged>(filter: T) {
        let filter = Whole::from(filter);
        let header = wire::header(&filter);
        let mut bytes = Vec::new();
        while let Some((_, piece)) = wire::piece(&filter, 1 + bytes.len() as i64) {
            bytes.extend(piece);
        }
        for at in 0..bytes.len() {
            bytes[at] ^= 1 << (at % 8);
            assert!(T::from_images(images(&bytes), &filter.numbers()).is_err(), "byte {at}");
            let mut arrival = Arrival::begin::<T>(&header, NONE).unwrap().unwrap();
            assert_eq!(arrival.take(1 + bytes.len() as i64, &bytes), Ok(true));
            assert_eq!(arrival.finish::<T>().err(), Some(NativeError::Checksum), "byte {at}");
            bytes[at] ^= 1 << (at % 8);
        }
        for len in [0, 1, 100, 255, 256, 300, bytes.len() - 1] {
            let cut = images(&bytes[..len]);
            assert!(T::from_images(cut, &filter.numbers()).is_err(), "{len} bytes");
        }
        bytes.push(0);
        assert!(T::from_images(images(&bytes), &filter.numbers()).is_err(), "a byte too many");
    }
    let (growing, window, cuckoo) = small_filters();
    check(growing);
    check(window);
    check(cuckoo);
}

#[test]
fn headers_that_announce_no_filter_are_refused() {
    let (growing, _, cuckoo) = small_filters();
    let (header, longest) = (wire::header(&growing.into()), wire::header(&cuckoo.into()));
    assert!(wire::is_header(&header) && header.len() == 24 && longest.len() == 40);
    for len in 0..24 {
        assert!(Arrival::begin::<NativeBloom>(&header[..len], NONE).is_err());
    }
    let longer: Vec<u8> = header.iter().copied().chain([0; 16]).collect();
    assert!(Arrival::begin::<NativeBloom>(&longer, NONE).is_err());
    assert!(Arrival::begin::<NativeCuckoo>(&longer, NONE).is_ok());
    assert!(Arrival::begin::<NativeCuckoo>(&longer[..32], NONE).is_err());
    for len in [0, u64::MAX, i64::MAX as u64] {
        let mut forged = header.clone();
        forged[8..16].copy_from_slice(&len.to_le_bytes());
        assert!(Arrival::begin::<NativeBloom>(&forged, NONE).is_err(), "{len}");
    }
    let mut forged = header.clone();
    forged[8..16].copy_from_slice(&(1u64 << 50).to_le_bytes());
    let limit = MemoryLimit::bytes(1 << 20);
    let refused = Arrival::begin::<NativeBloom>(&forged, limit).unwrap();
    assert_eq!(refused, Err(CreateError::OverLimit { limit: 1 << 20 }));
}

#[test]
fn chunks_out_of_order_change_nothing() {
    let growing = Whole::from(small_filters().0);
    let mut arrival =
        Arrival::begin::<NativeBloom>(&wire::header(&growing), NONE).unwrap().unwrap();
    let (last, bytes) = wire::piece(&growing, 1).unwrap();
    assert_eq!(arrival.take(101, &bytes[..100]), Ok(false));
    let before = arrival.clone();
    for (iterator, chunk, expected) in [
        (101, &bytes[..100], NotTaken::Order { expected: 201 }),
        (301, &bytes[100..200], NotTaken::Order { expected: 201 }),
        (i64::MIN, &bytes[100..200], NotTaken::Order { expected: 201 }),
        (-1, &bytes[100..200], NotTaken::Order { expected: 201 }),
        (101, &[], NotTaken::Empty),
    ] {
        assert_eq!(arrival.take(iterator, chunk), Err(expected));
        assert_eq!(arrival, before);
    }
    let too_long: Vec<u8> = bytes[100..].iter().copied().chain([0]).collect();
    assert_eq!(arrival.take(last + 1, &too_long), Err(NotTaken::Length));
    assert_eq!(arrival, before);
    // Saved and read half way, it goes on.
    let Native::Arriving(mut arrival) = through_file(&Native::<NativeBloom>::Arriving(arrival))
    else {
        panic!("it is not whole")
    };
    assert_eq!(arrival, before);
    assert_eq!(arrival.take(last, &bytes[100..]), Ok(true));
    assert_eq!(arrival.finish::<NativeBloom>().unwrap(), *growing);
}

/// Header, arrays and checksums of each image are cut somewhere.
#[test]
fn a_load_goes_on_after_a_restart_at_any_byte() {
    fn check<T: Imaged + Clone + PartialEq + std::fmt::Debug>(filter: &T) {
        let header = wire::header(&Whole::from(filter.clone()));
        let mut image = Vec::new();
        filter.visit_image(&mut |part| image.extend_from_slice(part));
        let last = 1 + image.len() as i64;
        for cut in (1..image.len()).step_by(37).chain([255, 256, 257, image.len() - 1]) {
            let mut arrival = Arrival::begin::<T>(&header, NONE).unwrap().unwrap();
            assert_eq!(arrival.take(1 + cut as i64, &image[..cut]), Ok(false));
            let Native::Arriving(mut read) = through_file(&Native::<T>::Arriving(arrival.clone()))
            else {
                panic!("it is not whole")
            };
            assert_eq!(read, arrival);
            for mut arrival in [arrival, read.clone()] {
                assert_eq!(arrival.take(last, &image[cut..]), Ok(true), "{cut}");
                assert_eq!(arrival.finish::<T>().unwrap(), *filter, "{cut}");
            }
            // Another byte instead of the next one.
            let mut other = image[cut..].to_vec();
            other[0] ^= 1;
            assert_eq!(read.take(last, &other), Ok(true));
            assert_eq!(read.finish::<T>().err(), Some(NativeError::Checksum));
        }
    }
    let (growing, window, cuckoo) = small_filters();
    assert!(cuckoo.parts() > 1);
    check(&growing);
    check(&window);
    check(&cuckoo);
}

#[test]
fn a_file_that_announces_a_huge_filter_takes_little_memory() {
    let mut image = Bloom::with_rate(1 << 20, 0.001).unwrap().to_bytes();
    let all = image.len() as u64;
    image.truncate(3000);
    let mut fields = Fields::default();
    for number in [1, all, 7, 0, 1] {
        fields.0.push(Field::Unsigned(number));
    }
    fields.0.push(Field::String(image));
    let value = file::load::<NativeBloom>(&mut fields, file::VERSION).unwrap();
    assert!(matches!(value, Native::Arriving(_)));
    assert!(value.size_in_bytes() < 10 * 3000, "{} of {all}", value.size_in_bytes());
}

#[test]
fn forged_fields_of_files_are_refused() {
    fn check<T: Imaged + PartialEq + std::fmt::Debug>(value: &Native<T>, what: &str) {
        let mut fields = Fields::default();
        file::save(value, &mut fields);
        let load = |mut fields: Fields| file::load::<T>(&mut fields, file::VERSION);
        assert_eq!(load(fields.clone()).unwrap(), *value);
        for at in 0..fields.0.len() {
            let cut = Fields(fields.0[..at].to_vec());
            assert!(load(cut).is_err(), "{what}: cut at {at}");
            let forgeries = match &fields.0[at] {
                Field::Unsigned(number) => [0, 1, 2, number + 1, 1 << 40, u64::MAX]
                    .into_iter()
                    .filter(|forged| forged != number)
                    .map(Field::Unsigned)
                    .collect(),
                Field::String(bytes) => {
                    let mut longer = bytes.clone();
                    longer.push(0);
                    vec![Field::String(longer), Field::String(bytes[1..].to_vec())]
                }
                Field::Double(_) => unreachable!("there is none"),
            };
            for forgery in forgeries {
                let mut forged = fields.clone();
                forged.0[at] = forgery.clone();
                // What is read all the same is a filter, or pieces of one, that differs in a number that may be any.
                if let Ok(read) = load(forged) {
                    let is_free = match value {
                        Native::Whole(_) => at >= 4 && at < 4 + T::NUMBERS,
                        Native::Arriving(_) => at == 1 || at == 2 || at >= 4,
                    };
                    assert!(is_free, "{what}: field {at} {forgery:?} gave {read:?}");
                }
            }
        }
        let mut newer = fields.clone();
        assert!(file::load::<T>(&mut newer, file::VERSION + 1).is_err());
    }
    let (growing, window, cuckoo) = small_filters();
    let cuckoo = Whole::from(cuckoo);
    let mut arrival =
        Arrival::begin::<NativeCuckoo>(&wire::header(&cuckoo), NONE).unwrap().unwrap();
    let (_, bytes) = wire::piece(&cuckoo, 1).unwrap();
    arrival.take(301, &bytes[..300]).unwrap();
    check(&Native::whole(growing), "growing");
    check(&Native::whole(window), "window");
    check(&Native::Whole(cuckoo), "cuckoo");
    check(&Native::<NativeCuckoo>::Arriving(arrival), "arriving");
}

/// A filter of one size refuses what is too much, and never what it was planned for: 200 filters, each by chance less than
/// once in a million.
#[test]
fn a_filter_of_one_size_takes_as_many_keys_as_it_was_planned_for() {
    for round in 0..200 {
        for rate in [0.01, 0.1, 0.3] {
            let mut filter = NativeBloom::blocked(500, rate, HashFn::default(), NONE).unwrap();
            let some = hashes(round * 10_000..round * 10_000 + 500);
            let mut new = vec![false; some.len()];
            assert_eq!(filter.insert_each(&some, &mut new, || NONE), Ok(()), "{rate}, {round}");
        }
    }
    let mut filter = NativeBloom::blocked(500, 0.1, HashFn::default(), NONE).unwrap();
    let refused = filter.insert_each(&hashes(0..700), &mut [false; 700], || NONE);
    assert!(matches!(refused, Err((500.., InsertError::Full))), "{refused:?}");
}

#[test]
fn answers_of_another_number_than_the_questions_are_a_panic() {
    let assert_panics = |what: &str, work: &mut dyn FnMut()| {
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).expect_err(what);
        let message = panic.downcast::<String>().expect("a message with numbers");
        assert!(message.contains('5') && message.contains('3'), "{what}: {message}");
    };
    let five = hashes(0..5);
    for layout in [Layout::Growing(2), Layout::Blocked, Layout::Window] {
        let mut filter = make(layout, 100, 0.01);
        assert_panics("lookup", &mut || filter.contains_each(&five, &mut [true; 3]));
        assert_panics("insert", &mut || {
            filter.insert_each(&five, &mut [true; 3], || NONE).unwrap();
        });
        assert!(filter.is_empty());
    }
    let mut cuckoo = NativeCuckoo::new(20, 0.01, true, HashFn::default(), NONE).unwrap();
    assert_panics("cuckoo", &mut || cuckoo.contains_each(&five, &mut [true; 3]));
    for &hash in &hashes(0..100) {
        cuckoo.insert(hash, || NONE).unwrap();
    }
    assert_panics("parts", &mut || cuckoo.contains_each(&five, &mut [true; 3]));
    let chain = Chain::new(100, 0.01, Scaling::Growing(2), NONE).unwrap();
    let items: Vec<BloomHash> = (0..5u32).map(|i| BloomHash::of(&i.to_le_bytes())).collect();
    assert_panics("chain", &mut || chain.contains_each(&items, &mut [true; 3]));
}
