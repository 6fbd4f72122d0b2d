//! Promise: filters are RedisBloom's, to the byte. Every dump, file and reply in `tests/golden` is made again, false
//! positives included, and read back.

use crate::common::envelope::{self, Fields};
use crate::common::*;
use ironbloom_redis::limits::MemoryLimit;
use ironbloom_redis::redisbloom::chain::Chain;
use ironbloom_redis::redisbloom::cuckoo::CuckooFilter;
use ironbloom_redis::redisbloom::rdb;
use ironbloom_redis::redisbloom::{debug, dump};
use serde_json::Value;

/// What MEMORY USAGE of Redis 7.0 counts for the key itself, in all golden filters.
const ENTRY_BYTES: u64 = 40;

/// All pairs of iterator and bytes of a Bloom filter.
fn dump_chain(chain: &Chain) -> Vec<(i64, Vec<u8>)> {
    let mut pairs = vec![(1, dump::chain_header(chain))];
    while let Some((next, piece)) = dump::chain_chunk(chain, pairs.last().unwrap().0) {
        pairs.push((next, piece.to_vec()));
    }
    pairs
}

fn dump_cuckoo(filter: &CuckooFilter) -> Vec<(i64, Vec<u8>)> {
    let mut pairs = vec![(1, dump::cuckoo_header(filter))];
    while let Some((next, piece)) = dump::cuckoo_chunk(filter, pairs.last().unwrap().0) {
        pairs.push((next, piece.to_vec()));
    }
    pairs
}

/// Replies for the keys of the test, then for keys 20000 to 23999 that were never inserted.
fn answers(golden: &Value, contains: impl Fn(usize) -> bool) -> String {
    let count = golden["probes"][1].as_u64().unwrap() as usize;
    (0..count - 4000).chain(20_000..24_000).map(|i| digit(contains(i))).collect()
}

#[test]
fn bloom_filters_reply_to_inserts_as_redisbloom() {
    for case in CHAINS {
        let (_, replies) = filled_chain(case);
        assert!(replies == digits(&golden(case)["inserted"]), "{case}");
    }
}

#[test]
fn bloom_filters_have_the_bytes_of_redisbloom() {
    for case in CHAINS {
        let (chain, _) = filled_chain(case);
        assert!(dump_chain(&chain) == scandump(&golden(case)), "{case}: SCANDUMP");
        let mut fields = Fields::default();
        rdb::save_chain(&chain, &mut fields);
        let (name, version, stored) = envelope::open(&unbase64(digits(&golden(case)["dump"])));
        assert_eq!((name.as_str(), version), ("MBbloom--", rdb::VERSION), "{case}");
        assert!(fields == stored, "{case}: DUMP");
    }
}

#[test]
fn bloom_filters_answer_as_redisbloom() {
    for case in CHAINS.iter().filter(|&&case| case != "bf_binary") {
        let golden = golden(case);
        let (chain, _) = filled_chain(case);
        let answers = answers(&golden, |i| chain.contains(bloom(i)));
        assert!(answers == digits(&golden["exists"]), "{case}");
        // Absent keys that are found are part of the layout: there must be some to reproduce.
        assert!(answers[answers.len() - 4000..].contains('1'), "{case} has no false positive");
        assert_eq!(golden["debug"], serde_json::json!(debug::chain_lines(&chain)), "{case}");
        assert_eq!(golden["memory_usage"], ENTRY_BYTES + chain.size_in_bytes(), "{case}");
    }
}

#[test]
fn dumps_of_bloom_filters_load() {
    for case in CHAINS {
        let (chain, _) = filled_chain(case);
        let mut pairs = scandump(&golden(case)).into_iter();
        let (_, header) = pairs.next().unwrap();
        let mut loaded = dump::chain_from_header(&header, MemoryLimit::NONE).unwrap();
        assert!(loaded != chain, "{case}: the header alone is not the filter");
        for (iterator, piece) in pairs {
            dump::load_chain_chunk(&mut loaded, iterator, &piece).unwrap();
        }
        assert!(loaded == chain, "{case}: LOADCHUNK");

        let (_, version, mut fields) = envelope::open(&unbase64(digits(&golden(case)["dump"])));
        assert!(rdb::load_chain(&mut fields, version).unwrap() == chain, "{case}: RESTORE");
        assert_eq!(fields, Fields::default(), "{case}: every field was read");
    }
}

#[test]
fn cuckoo_filters_reply_as_redisbloom() {
    for case in CUCKOOS {
        let golden = golden(case);
        let (filter, inserted, removed) = filled_cuckoo(case);
        assert!(inserted == digits(&golden["inserted"]), "{case}: inserts");
        if case == "cf_bucket4" {
            assert!(removed == digits(&golden["deleted"]), "{case}: removals");
        }
        let answers = answers(&golden, |i| filter.contains(cuckoo(i)));
        assert!(answers == digits(&golden["exists"]), "{case}: lookups");
        assert!(answers[answers.len() - 4000..].contains('1'), "{case} has no false positive");
        if let Some(counts) = golden["counts"].as_array() {
            let ours: Vec<u64> = (0..counts.len()).map(|i| filter.count(cuckoo(i))).collect();
            assert_eq!(counts.iter().map(|n| n.as_u64().unwrap()).collect::<Vec<_>>(), ours);
        }
        assert_eq!(golden["debug"], debug::cuckoo_line(&filter), "{case}");
        assert_eq!(golden["memory_usage"], ENTRY_BYTES + filter.size_in_bytes(), "{case}");
    }
}

#[test]
fn cuckoo_filters_have_the_bytes_of_redisbloom() {
    for case in CUCKOOS {
        let (filter, ..) = filled_cuckoo(case);
        assert!(dump_cuckoo(&filter) == scandump(&golden(case)), "{case}: SCANDUMP");
        let mut fields = Fields::default();
        rdb::save_cuckoo(&filter, &mut fields);
        let (name, version, stored) = envelope::open(&unbase64(digits(&golden(case)["dump"])));
        assert_eq!((name.as_str(), version), ("MBbloomCF", rdb::VERSION), "{case}");
        assert!(fields == stored, "{case}: DUMP");
    }
}

#[test]
fn dumps_of_cuckoo_filters_load() {
    for case in CUCKOOS {
        let (filter, ..) = filled_cuckoo(case);
        let mut pairs = scandump(&golden(case)).into_iter();
        let (_, header) = pairs.next().unwrap();
        let mut loaded = dump::cuckoo_from_header(&header, MemoryLimit::NONE).unwrap();
        assert!(loaded != filter, "{case}: the header alone is not the filter");
        for (iterator, piece) in pairs {
            dump::load_cuckoo_chunk(&mut loaded, iterator, &piece).unwrap();
        }
        assert!(loaded == filter, "{case}: LOADCHUNK");

        let (_, version, mut fields) = envelope::open(&unbase64(digits(&golden(case)["dump"])));
        assert!(rdb::load_cuckoo(&mut fields, version).unwrap() == filter, "{case}: RESTORE");
        assert_eq!(fields, Fields::default(), "{case}: every field was read");
    }
}
