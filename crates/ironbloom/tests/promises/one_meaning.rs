//! One key, one meaning, whichever program wrote the filter and whichever reads it.
//!
//! `tests/golden/keys/` has a filter for each type of keys. Every program that can write such a filter is tested to write the
//! same bytes, so that a file does not depend on its writer; and every program that reads filters is tested on all of the
//! files: it gives the right answers for 1,000 keys that are there and 1,000 that are not, or refuses and names both types.
//! Here is the library; the others are in the tests of the program and of the module (`one_meaning.rs`), of the package for
//! Python (`test_one_meaning.py`) and of the extension for PostgreSQL (`filters.rs`).

use std::fmt::Display;
use std::path::{Path, PathBuf};

use ironbloom::multi::{Joint, MultiFilter as _};
use ironbloom::*;

/// Both ends of 64 bits, and small numbers: the same for all types, as text and as numbers.
fn numbers() -> Vec<i64> {
    let edges = [i64::MIN, i64::MIN + 1, -2, -1, i64::MAX - 1, i64::MAX];
    edges.into_iter().chain(0..994).collect()
}

const ABSENT: std::ops::Range<i64> = 5000..6000;

fn text(number: &i64) -> String {
    number.to_string()
}

/// Not UTF-8.
fn bytes(number: &i64) -> Vec<u8> {
    [b"\xff", number.to_string().as_bytes()].concat()
}

/// The key that Python makes of a float that is not integral.
fn float(number: &i64) -> Float {
    let half = (number % 1_000_000) as f64 + 0.5;
    Float([&[0xff, b'f'][..], &half.to_bits().to_le_bytes()].concat())
}

struct Float(Vec<u8>);

impl Key for Float {
    fn encoded(&self) -> Encoded<'_> {
        Encoded::Value(&self.0)
    }
}

fn hashed(number: &i64) -> Hashed<(i64, i64)> {
    Hashed((*number, *number))
}

fn keys<K>(of: impl Fn(&i64) -> K) -> Vec<K> {
    numbers().iter().map(of).collect()
}

fn filled<K: Key>(mut filter: AnyFilter, keys: &[K]) -> AnyFilter {
    filter.insert_keys(keys).unwrap();
    filter
}

const SECRET: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Every file by name, made again from its keys.
fn files() -> Vec<(&'static str, AnyFilter)> {
    let (params, blocked) = (
        BloomParams::for_rate(1000, 1e-6).unwrap(),
        BlockedBloomParams::for_rate(1000, 1e-6).unwrap(),
    );
    let bloom = |hash_fn| AnyFilter::from(Bloom::new(params, hash_fn).unwrap());
    let blocked = |hash_fn| AnyFilter::from(BlockedBloom::new(blocked, hash_fn).unwrap());
    let key = HashKey::from_bytes(SECRET);
    let plain = HashFn::default;
    let mut several = filled(bloom(plain()), &keys(text)[..500]);
    several.insert_keys(&numbers()[500..]).unwrap();
    vec![
        ("text", filled(bloom(plain()), &keys(text))),
        ("text-blocked", filled(blocked(plain()), &keys(text))),
        ("text-keyed", filled(blocked(HashFn::SipHash13 { key, in_files: true }), &keys(text))),
        ("text-secret", filled(bloom(HashFn::secret(key)), &keys(text))),
        ("bytes", filled(bloom(plain()), &keys(bytes))),
        ("bytes-blocked", filled(blocked(plain()), &keys(bytes))),
        ("integers", filled(bloom(plain()), &numbers())),
        ("integers-blocked", filled(blocked(plain()), &numbers())),
        (
            "integers-declared",
            filled(bloom(HashFn::Typed { keys: KeyType::Integer, seed: 0 }), &numbers()),
        ),
        ("floats", filled(bloom(plain()), &keys(float))),
        ("hashed", filled(bloom(plain()), &keys(hashed))),
        ("several", several),
        ("rows-of-text", AnyFilter::from(rows(KeyType::Bytes))),
        ("rows-typed", AnyFilter::from(rows(KeyType::Integer))),
    ]
}

/// Rows `id, name`: a number, or its text, and the text `n` with the number.
fn rows(ids: KeyType) -> Joint {
    let mut rows = Joint::with_rate(1000, 1e-6, ["id", "name"]).unwrap();
    rows.note_keys(&[ids.into(), KeyType::Bytes.into()]);
    for number in numbers() {
        let row = hashes_of_row(&rows, ids, number, &format!("n{number}")).unwrap();
        rows.insert_hashed(&row).unwrap();
    }
    rows
}

fn hashes_of_row(rows: &Joint, ids: KeyType, id: i64, name: &str) -> Result<[u64; 2], String> {
    let hash = |i| rows.attributes().key_hash_of(i).unwrap();
    let id = if ids == KeyType::Integer { hash(0).of(id) } else { hash(0).of(id.to_string()) };
    let message = |error: hash::KeyError| error.to_string();
    Ok([id.map_err(message)?, hash(1).of(name).map_err(message)?])
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/keys")
}

fn read(name: &str) -> AnyFilter {
    AnyFilter::load(folder().join(format!("{name}.ibf"))).unwrap()
}

#[test]
fn the_library_writes_the_same_files_as_all_other_programs() {
    for (name, filter) in files() {
        let path = folder().join(format!("{name}.ibf"));
        if std::env::var_os("IRONBLOOM_WRITE_GOLDEN").is_some() && !path.exists() {
            filter.save(&path).unwrap();
        }
        let golden = std::fs::read(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(golden == filter.to_bytes(), "{name}");
    }
    let found = std::fs::read_dir(folder()).unwrap();
    let found = found.filter(|entry| {
        entry.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "ibf")
    });
    assert_eq!(found.count(), files().len(), "files that no test knows");
}

/// How many of the keys, and how many of the absent ones, are there; or why they cannot be asked.
fn ask<K: Key>(filter: &AnyFilter, of: impl Fn(&i64) -> K) -> Result<(usize, usize), String> {
    let count = |numbers: Vec<i64>| {
        let found = numbers.iter().map(|number| filter.contains(of(number)));
        let found: Result<Vec<bool>, _> = found.collect();
        found.map(|found| found.into_iter().filter(|&found| found).count())
    };
    let message = |error: hash::KeyError| error.to_string();
    Ok((count(numbers()).map_err(message)?, count(ABSENT.collect()).map_err(message)?))
}

fn refused(held: impl Display, asked: KeyType) -> Result<(usize, usize), String> {
    Err(format!("the filter holds {held}, not {asked}"))
}

#[test]
fn the_library_answers_for_the_keys_of_every_file_or_refuses_by_name() {
    for (name, _) in files() {
        let filter = read(name);
        let answers = [
            (KeyType::Bytes, ask(&filter, text)),
            (KeyType::Bytes, ask(&filter, bytes)),
            (KeyType::Integer, ask(&filter, |number| *number)),
            (KeyType::Value, ask(&filter, float)),
            (KeyType::Hashed, ask(&filter, hashed)),
        ];
        let held = filter.key_types();
        for (i, (asked, answer)) in answers.into_iter().enumerate() {
            let expected = match (name, i) {
                ("text" | "text-blocked" | "text-keyed", 0) => Ok((1000, 0)),
                ("bytes" | "bytes-blocked", 1) => Ok((1000, 0)),
                ("text" | "text-blocked" | "text-keyed", 1) | ("bytes" | "bytes-blocked", 0) => {
                    Ok((0, 0))
                }
                ("integers" | "integers-blocked", 2) => Ok((1000, 0)),
                // Text is read as an integer there.
                ("integers-declared", 0 | 2) => Ok((1000, 0)),
                ("integers-declared", 1) => {
                    assert!(answer.unwrap_err().starts_with("not an integer"), "{name}");
                    continue;
                }
                ("floats", 3) | ("hashed", 4) => Ok((1000, 0)),
                ("several", 0 | 2) => Ok((500, 0)),
                ("several", 1) => Ok((0, 0)),
                ("text-secret", 0 | 1) => {
                    assert!(answer.unwrap_err().contains("a secret key that is not in its file"));
                    continue;
                }
                ("rows-of-text" | "rows-typed", _) => {
                    Err("the filter holds rows of several attributes, not keys".to_owned())
                }
                _ => refused(held, asked),
            };
            assert_eq!(answer, expected, "{name} asked for {asked} ({i})");
        }
    }
    // The largest unsigned number has the bits of -1, and is the same key.
    assert!(read("integers").contains(u64::MAX).unwrap());
    let unlocked = folder().join("text-secret.ibf");
    let unlocked = AnyFilter::load_with_key(unlocked, HashKey::from_bytes(SECRET)).unwrap();
    assert_eq!(ask(&unlocked, text), Ok((1000, 0)));
    assert_eq!(ask(&unlocked, |number| *number), refused(KeyType::Bytes, KeyType::Integer));
}

#[test]
fn rows_are_answered_for_by_the_types_of_their_attributes_or_refused() {
    for (name, ids) in [("rows-of-text", KeyType::Bytes), ("rows-typed", KeyType::Integer)] {
        let rows = Joint::load(folder().join(format!("{name}.ibf"))).unwrap();
        let contains = |id: i64, name: i64| {
            let row = hashes_of_row(&rows, ids, id, &format!("n{name}")).unwrap();
            rows.contains_hashed(&row.map(Some)).unwrap()
        };
        assert!(numbers().into_iter().all(|number| contains(number, number)), "{name}");
        let other = numbers().into_iter().filter(|&number| contains(number, number ^ 1)).count();
        assert_eq!(other, 0, "{name}");
        let wrong = if ids == KeyType::Bytes { KeyType::Integer } else { KeyType::Bytes };
        let refused = hashes_of_row(&rows, wrong, 7, "n7").unwrap_err();
        assert_eq!(refused, format!("the filter holds {ids}, not {wrong}"), "{name}");
    }
}

/// Full or static filters of integers, which refuse a text.
fn that_refuse() -> Vec<AnyFilter> {
    let mut cuckoo = Cuckoo::with_rate(10, 0.01).unwrap();
    while cuckoo.insert(7).is_ok() {}
    for number in 0..100_000 {
        let _ = cuckoo.insert(number);
    }
    let mut dleft = DLeft::with_rate(10, 0.01).unwrap();
    for number in 0..100_000 {
        let _ = dleft.insert(number);
    }
    let mut joint = Joint::with_rate(10, 0.01, ["a", "b"]).unwrap();
    for number in 0..100_000 {
        let _ = joint.insert(&[number, number]);
    }
    let fuse = BinaryFuse::from_keys([1, 2, 3], 0.01).unwrap();
    vec![cuckoo.into(), dleft.into(), joint.into(), fuse.into()]
}

#[test]
fn a_refused_key_leaves_the_filter_as_it_was_to_the_last_bit() {
    for filter in that_refuse() {
        let before = filter.to_bytes();
        let hash = filter.hash_fn().hash("text");
        let refused = |what: &str, change: &dyn Fn(&mut AnyFilter) -> bool| {
            let mut changed = filter.clone();
            let taken = (0..1000).any(|_| change(&mut changed));
            assert!(!taken, "{what} was taken by {}", filter.kind());
            assert!(changed.to_bytes() == before, "{what} of {}", filter.kind());
        };
        if let Some(rows) = filter.as_multi() {
            let row = [0, 1].map(|i| rows.attributes().hash_fn_of(i).unwrap().hash("text"));
            let types = [KeyTypes::from(KeyType::Bytes); 2];
            refused("a row by its hashes", &|filter| {
                filter.as_multi_mut().unwrap().insert_hashed_of(&types, &row).is_ok()
            });
            refused("a row", &|filter| {
                let AnyFilter::Joint(joint) = filter else { unreachable!() };
                joint.insert(&["text", "text"]).is_ok()
            });
            continue;
        }
        refused("a key", &|filter| filter.insert("text").is_ok());
        refused("keys", &|filter| filter.insert_keys(&["text"]).is_ok());
        refused("a hash", &|filter| filter.insert_hash_of(KeyType::Bytes, hash).is_ok());
        refused("hashes", &|filter| {
            filter.insert_hashes_of(KeyType::Bytes.into(), &[hash]).is_ok()
        });
        match &filter {
            AnyFilter::Cuckoo(cuckoo) => {
                let mut changed = cuckoo.clone();
                assert!(changed.insert("text").is_err() && changed.insert_keys(&["text"]).is_err());
                assert!(changed.insert_new("text").is_err() && changed.to_bytes() == before);
            }
            AnyFilter::DLeft(dleft) => {
                let mut changed = dleft.clone();
                assert!(changed.insert("text").is_err() && changed.insert_keys(&["text"]).is_err());
                assert!(changed.to_bytes() == before);
            }
            _ => {}
        }
    }
}

#[test]
fn keys_before_a_refused_one_are_there_with_their_type() {
    let mut filter = AnyFilter::from(Cuckoo::with_rate(10, 0.01).unwrap());
    filter.insert(1).unwrap();
    let texts: Vec<String> = (0..100_000).map(|number| format!("text {number}")).collect();
    assert!(filter.insert_keys(&texts).is_err());
    assert!(filter.len() > 1 && filter.key_types().contains(KeyType::Bytes));
    let after = AnyFilter::from_bytes(&filter.to_bytes()).unwrap();
    assert!(after.contains(&*texts[0]).unwrap());
}
