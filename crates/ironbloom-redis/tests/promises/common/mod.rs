//! The filters that RedisBloom itself wrote (`tests/golden`), and the outer bytes of a DUMP.

pub(crate) mod envelope;

use std::fs;
use std::path::PathBuf;

use ironbloom_redis::limits::MemoryLimit;
use ironbloom_redis::redisbloom::chain::{Chain, Scaling};
use ironbloom_redis::redisbloom::cuckoo::{CuckooFilter, CuckooShape};
use ironbloom_redis::redisbloom::murmur::{BloomHash, cuckoo_hash};
use serde_json::Value;

/// A file of the golden folder.
pub(crate) fn golden_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// The replies of RedisBloom for the filters of this name.
pub(crate) fn golden(case: &str) -> Value {
    let text = fs::read_to_string(golden_path("redisbloom-2.8.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let found = all["cases"][case].clone();
    assert!(found.is_object(), "no case {case}");
    found
}

/// The names of all Bloom and of all cuckoo filters with replies for every operation.
pub(crate) const CHAINS: [&str; 5] =
    ["bf_default", "bf_reserved", "bf_nonscaling", "bf_expansion4", "bf_binary"];
pub(crate) const CUCKOOS: [&str; 3] = ["cf_default", "cf_bucket4", "cf_nx_dups"];

/// Key `i` of the golden filters.
pub(crate) fn key(i: usize) -> String {
    format!("user:1:{i}")
}

pub(crate) fn bloom(i: usize) -> BloomHash {
    BloomHash::of(key(i).as_bytes())
}

pub(crate) fn cuckoo(i: usize) -> u64 {
    cuckoo_hash(key(i).as_bytes())
}

/// The keys that were inserted into a Bloom filter, in order.
pub(crate) fn chain_keys(case: &str) -> Vec<Vec<u8>> {
    let golden = golden(case);
    match golden["keys_b64"].as_array() {
        Some(keys) => keys.iter().map(|key| unbase64(key.as_str().unwrap())).collect(),
        None => (0..digits(&golden["inserted"]).len()).map(|i| key(i).into_bytes()).collect(),
    }
}

/// The Bloom filter of a case before anything was inserted.
pub(crate) fn empty_chain(case: &str) -> Chain {
    let (capacity, rate, scaling) = match case {
        "bf_default" => (100, 0.01, Scaling::Growing(2)),
        "bf_reserved" => (3000, 0.001, Scaling::Growing(2)),
        "bf_nonscaling" => (1000, 0.02, Scaling::Fixed(2)),
        "bf_expansion4" => (200, 0.05, Scaling::Growing(4)),
        "bf_binary" => (500, 0.01, Scaling::Growing(2)),
        other => panic!("no case {other}"),
    };
    Chain::new(capacity, rate, scaling, MemoryLimit::NONE).unwrap()
}

/// The cuckoo filter of a case before anything was inserted.
pub(crate) fn empty_cuckoo(case: &str) -> CuckooFilter {
    let shape = match case {
        "cf_default" => CuckooShape::new(1024, 2, 20, 1),
        "cf_bucket4" => CuckooShape::new(3000, 4, 50, 2),
        "cf_nx_dups" => CuckooShape::new(1000, 2, 20, 1),
        other => panic!("no case {other}"),
    };
    CuckooFilter::new(shape.unwrap(), MemoryLimit::NONE).unwrap()
}

/// The Bloom filter of a case, filled, and a digit for each reply.
pub(crate) fn filled_chain(case: &str) -> (Chain, String) {
    let mut chain = empty_chain(case);
    let replies = chain_keys(case)
        .iter()
        .map(|key| digit(chain.insert(BloomHash::of(key), MemoryLimit::NONE).unwrap()))
        .collect();
    (chain, replies)
}

/// The cuckoo filter of a case, filled, and a digit for each reply to an insert and to a removal.
pub(crate) fn filled_cuckoo(case: &str) -> (CuckooFilter, String, String) {
    let mut filter = empty_cuckoo(case);
    let (mut inserted, mut removed) = (String::new(), String::new());
    let limit = MemoryLimit::NONE;
    match case {
        "cf_default" | "cf_bucket4" => {
            for i in 0..if case == "cf_default" { 4000 } else { 5000 } {
                filter.insert(cuckoo(i), limit).unwrap();
                inserted.push('1');
            }
        }
        _ => {
            for i in 0..1500 {
                inserted.push(digit(filter.insert_new(cuckoo(i % 1000), limit).unwrap()));
            }
            for i in 0..300 {
                filter.insert(cuckoo(i % 30), limit).unwrap();
                inserted.push('1');
            }
        }
    }
    if case == "cf_bucket4" {
        for i in (0..900).step_by(3) {
            removed.push(digit(filter.remove(cuckoo(i))));
        }
    }
    (filter, inserted, removed)
}

/// The digits of a reply.
pub(crate) fn digits(value: &Value) -> &str {
    value.as_str().unwrap()
}

pub(crate) fn digit(is_one: bool) -> char {
    if is_one { '1' } else { '0' }
}

/// The pairs of iterator and bytes that SCANDUMP gave.
pub(crate) fn scandump(golden: &Value) -> Vec<(i64, Vec<u8>)> {
    golden["scandump"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| (pair[0].as_i64().unwrap(), unbase64(pair[1].as_str().unwrap())))
        .collect()
}

/// Bytes from base64.
pub(crate) fn unbase64(text: &str) -> Vec<u8> {
    let value = |c: u8| -> u32 {
        match c {
            b'A'..=b'Z' => u32::from(c - b'A'),
            b'a'..=b'z' => u32::from(c - b'a') + 26,
            b'0'..=b'9' => u32::from(c - b'0') + 52,
            b'+' => 62,
            b'/' => 63,
            other => panic!("no digit of base64: {other}"),
        }
    };
    let digits: Vec<u32> = text.bytes().filter(|&c| c != b'=').map(value).collect();
    let mut bytes = Vec::new();
    for four in digits.chunks(4) {
        let word = four.iter().fold(0, |word, digit| (word << 6) | digit) << (6 * (4 - four.len()));
        bytes.extend(
            &word.to_le_bytes()[..3].iter().rev().copied().collect::<Vec<u8>>()[..four.len() - 1],
        );
    }
    bytes
}
