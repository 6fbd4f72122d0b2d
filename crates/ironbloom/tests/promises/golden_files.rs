//! Files written by an earlier release can be read forever, and the same keys still result in the same bytes (for a
//! cuckoo filter: the same answers).
//!
//! `tests/golden/` holds one small file per kind; its README says which release wrote it. A file is never changed:
//! a new format version adds new ones. `IRONBLOOM_WRITE_GOLDEN=1 cargo test --test promises golden_files` writes those that
//! are missing.

use std::path::{Path, PathBuf};

use crate::mapped;
use ironbloom::any::AnyFilter;
use ironbloom::multi::{Attributes, Joint, MultiFilter, ParallelBloom};
use ironbloom::*;

const KEYS: u32 = 100;

fn key(number: u32) -> String {
    format!("golden key {number}")
}

fn all_hashes(hash_fn: HashFn) -> Vec<u64> {
    (0..KEYS).map(|number| hash_fn.hash(key(number))).collect()
}

fn filled(mut filter: AnyFilter) -> AnyFilter {
    let any::KeyHash::Hash(hash_fn) = filter.key_hash() else { panic!("keys are hashed") };
    filter.insert_hashes(&all_hashes(hash_fn)).unwrap();
    filter
}

/// The golden rows: three sizes, so that values are popular.
fn row(number: u32) -> [String; 2] {
    [["small", "large", "huge"][number as usize % 3].to_owned(), key(number)]
}

/// By hash, because key types were not yet recorded.
fn filled_with_rows<F: MultiFilter>(mut filter: F) -> F {
    for number in (0..KEYS).chain(0..10) {
        let row = filter.attributes().hash_row(&row(number)).unwrap();
        filter.insert_hashed(&row).unwrap();
    }
    filter
}

/// Every golden file by name, rebuilt from its keys.
fn goldens() -> Vec<(&'static str, AnyFilter)> {
    let seeded = HashFn::Xxh3 { seed: 42 };
    let bloom = |params: BloomParams| filled(AnyFilter::Bloom(Bloom::new(params, seeded).unwrap()));
    let mut bitmap = Bitmap::new(1000).unwrap();
    (0..KEYS).for_each(|number| assert!(bitmap.insert(u64::from(number) * 7).unwrap()));
    let fuse = |arity| {
        let params = FuseParams::for_rate(0.01).unwrap().with_arity(arity);
        AnyFilter::Fuse(BinaryFuse::from_hashes(&all_hashes(seeded), params, seeded).unwrap())
    };
    let attributes = || Attributes::new(["size", "golden key"], seeded).unwrap();
    let rows = CuckooParams::for_rate(100, 0.01).unwrap();
    let scheme = |scheme| BloomParams::for_rate(100, 0.01).unwrap().with_scheme(scheme).unwrap();
    let scalable = |of| {
        let params = ScalableParams::new(20, 0.01).unwrap().with_stages_of(of);
        filled(AnyFilter::Scalable(Scalable::new(params, seeded).unwrap()))
    };
    vec![
        ("bitmap", AnyFilter::Bitmap(bitmap)),
        ("bloom-remix", bloom(scheme(Scheme::Remix))),
        ("bloom-independent", bloom(scheme(Scheme::Independent))),
        ("bloom-enhanced", bloom(scheme(Scheme::Enhanced))),
        ("bloom-double", bloom(scheme(Scheme::Double))),
        ("bloom-leveldb", bloom(scheme(Scheme::LevelDb))),
        ("bloom-segmented", bloom(BloomParams::segmented_for_rate(100, 0.01).unwrap())),
        ("blocked", filled(AnyFilter::Blocked(BlockedBloom::with_rate(100, 0.01).unwrap()))),
        ("split-block", filled(AnyFilter::SplitBlock(SplitBlock::with_rate(100, 0.01).unwrap()))),
        ("counting", filled(AnyFilter::Counting(CountingBloom::with_rate(100, 0.01).unwrap()))),
        ("d-left", filled(AnyFilter::DLeft(DLeft::with_rate(100, 0.01).unwrap()))),
        ("cuckoo", filled(AnyFilter::Cuckoo(Cuckoo::with_rate(100, 0.01).unwrap()))),
        (
            "cuckoo-packed",
            filled(AnyFilter::Cuckoo(
                Cuckoo::new(CuckooParams::packed_for_rate(100, 0.01).unwrap(), seeded).unwrap(),
            )),
        ),
        ("fuse", fuse(Arity::Three)),
        ("fuse4", fuse(Arity::Four)),
        ("scalable", scalable(StageKind::Bloom)),
        ("scalable-blocked", scalable(StageKind::Blocked)),
        (
            "windowed",
            filled(AnyFilter::Windowed(
                Windowed::new(WindowedParams::for_keys(60, 0.01).unwrap(), seeded).unwrap(),
            )),
        ),
        (
            "parallel",
            AnyFilter::Parallel(filled_with_rows(
                ParallelBloom::new(BloomParams::for_bits(700, 7).unwrap(), attributes()).unwrap(),
            )),
        ),
        ("joint", AnyFilter::Joint(filled_with_rows(Joint::new(rows, attributes()).unwrap()))),
        (
            "joint-partial",
            AnyFilter::Joint(filled_with_rows(Joint::new_partial(rows, attributes()).unwrap())),
        ),
    ]
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("v1-{name}.ibf"))
}

#[test]
fn golden_files_are_read_and_hold_their_keys() {
    for (name, _) in goldens() {
        let filter = AnyFilter::load(path(name)).unwrap_or_else(|error| panic!("{error}"));
        let mapped = mapped::map::<AnyFilter>(path(name)).unwrap();
        for number in 0..KEYS {
            if name == "bitmap" {
                assert!(filter.contains_hash(u64::from(number) * 7));
                continue;
            }
            if let (Some(filter), Some(mapped)) = (filter.as_multi(), mapped.as_multi()) {
                assert_eq!(filter.attributes().names(), ["size", "golden key"]);
                let query = filter.attributes().hash_query(&row(number).map(Some)).unwrap();
                for filter in [filter, mapped] {
                    assert!(filter.contains_hashed(&query).unwrap(), "{name}: row {number}");
                }
                continue;
            }
            if name == "windowed" && number < KEYS - 60 {
                continue; // forgotten, as intended
            }
            let hash = filter.key_hash().of(key(number).as_bytes()).unwrap();
            assert!(
                filter.contains_hash(hash) && mapped.contains_hash(hash),
                "{name}: key {number}"
            );
        }
    }
}

#[test]
fn the_same_keys_make_the_same_bytes() {
    for (name, filter) in goldens() {
        let path = path(name);
        if std::env::var_os("IRONBLOOM_WRITE_GOLDEN").is_some() && !path.exists() {
            filter.save(&path).unwrap();
        }
        let golden =
            std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if let AnyFilter::Cuckoo(filter) = filter {
            assert_same_answers(&Cuckoo::from_bytes(&golden).unwrap(), &filter);
            continue;
        }
        if let AnyFilter::Joint(filter) = filter {
            assert_same_rows(&Joint::from_bytes(&golden).unwrap(), &filter);
            continue;
        }
        let bytes = filter.to_bytes();
        if name.starts_with("fuse") {
            // Many cell contents give the same answers; which one is found is not part of the format.
            assert_eq!(golden.len(), bytes.len());
            continue;
        }
        assert!(golden == bytes, "{name}: the bytes have changed");
    }
}

/// The insert decides which of its two buckets a fingerprint is in, and no answer depends on it.
fn assert_same_answers(golden: &Cuckoo, filter: &Cuckoo) {
    assert_eq!((golden.params(), golden.hash_fn()), (filter.params(), filter.hash_fn()));
    assert_eq!((golden.len(), golden.estimate_len()), (filter.len(), filter.estimate_len()));
    for key in (0..100_000).map(key) {
        assert_eq!(golden.count(&key), filter.count(&key), "{key}");
    }
}

/// As above: a joint filter keeps its rows in a cuckoo filter.
fn assert_same_rows(golden: &Joint, filter: &Joint) {
    assert_eq!((golden.params(), golden.attributes()), (filter.params(), filter.attributes()));
    assert_eq!((golden.len(), golden.copied()), (filter.len(), filter.copied()));
    assert_eq!(golden.is_partial(), filter.is_partial());
    for i in 0..2 {
        assert_eq!(golden.distinct_values(i), filter.distinct_values(i));
    }
    for query in (0..100_000).map(|number| row(number).map(Some)) {
        assert_eq!(golden.contains(&query), filter.contains(&query), "{query:?}");
        let [_, key] = query;
        assert_eq!(golden.contains(&[None, key.clone()]), filter.contains(&[None, key]));
    }
}
