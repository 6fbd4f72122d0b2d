//! Promise: no dump or file makes the module panic, take memory that its limit forbids, or reach outside an array.

use crate::common::envelope::{Field, Fields};
use crate::common::*;
use ironbloom_redis::error::{ChunkError, CreateError, DecodeError};
use ironbloom_redis::limits::MemoryLimit;
use ironbloom_redis::redisbloom::chain::Chain;
use ironbloom_redis::redisbloom::cuckoo::CuckooFilter;
use ironbloom_redis::redisbloom::dump;
use ironbloom_redis::redisbloom::rdb;

/// Far above the golden filters, far below what a forged header asks for.
const LIMIT: MemoryLimit = MemoryLimit::bytes(1 << 20);

/// Everything a client can do with a Bloom filter it forged.
fn use_chain(mut chain: Chain) {
    assert!(chain.array_bytes() <= 1 << 20);
    for i in 0..50 {
        let _ = chain.insert(bloom(i), LIMIT);
        chain.contains(bloom(i + 1000));
    }
    for iterator in [i64::MIN, -1, 0, 1, 100, i64::MAX] {
        dump::chain_chunk(&chain, iterator);
        let _ = dump::load_chain_chunk(&mut chain, iterator, b"0123456789");
    }
    let mut fields = Fields::default();
    rdb::save_chain(&chain, &mut fields);
    assert_eq!(rdb::load_chain(&mut fields, rdb::VERSION).as_ref(), Ok(&chain));
}

fn use_cuckoo(mut filter: CuckooFilter) {
    assert!(filter.slot_bytes() <= 1 << 20);
    for i in 0..50 {
        let _ = filter.insert(cuckoo(i), LIMIT);
        filter.count(cuckoo(i));
        filter.remove(cuckoo(i * 2));
    }
    filter.compact();
    for iterator in [i64::MIN, -1, 0, 1, 100, i64::MAX] {
        dump::cuckoo_chunk(&filter, iterator);
        let _ = dump::load_cuckoo_chunk(&mut filter, iterator, b"0123456789");
    }
}

#[test]
fn every_flipped_byte_of_a_header_is_refused_or_harmless() {
    for case in CHAINS {
        let (_, header) = scandump(&golden(case)).remove(0);
        for_each_flip(&header, |flipped| {
            if let Ok(chain) = dump::chain_from_header(flipped, LIMIT) {
                use_chain(chain);
            }
        });
    }
    for case in CUCKOOS {
        let (_, header) = scandump(&golden(case)).remove(0);
        for_each_flip(&header, |flipped| {
            if let Ok(filter) = dump::cuckoo_from_header(flipped, LIMIT) {
                use_cuckoo(filter);
            }
        });
    }
}

fn for_each_flip(bytes: &[u8], mut visit: impl FnMut(&[u8])) {
    let mut flipped = bytes.to_vec();
    for at in 0..bytes.len() {
        for flip in [0x01, 0x10, 0x80, 0xff] {
            flipped[at] ^= flip;
            visit(&flipped);
            flipped[at] ^= flip;
        }
    }
}

#[test]
fn every_truncation_and_every_surplus_byte_of_a_header_is_refused() {
    for case in CHAINS {
        let (_, mut header) = scandump(&golden(case)).remove(0);
        assert!(dump::chain_from_header(&header, LIMIT).is_ok());
        for len in 0..header.len() {
            let refused = dump::chain_from_header(&header[..len], LIMIT);
            assert_eq!(refused, Err(DecodeError::Length), "{case}: {len} bytes");
        }
        header.push(0);
        assert_eq!(dump::chain_from_header(&header, LIMIT), Err(DecodeError::Length), "{case}");
    }
    for case in CUCKOOS {
        let (_, mut header) = scandump(&golden(case)).remove(0);
        assert!(dump::cuckoo_from_header(&header, LIMIT).is_ok());
        for len in 0..header.len() {
            let refused = dump::cuckoo_from_header(&header[..len], LIMIT);
            assert_eq!(refused, Err(DecodeError::Length), "{case}: {len} bytes");
        }
        header.push(0);
        assert_eq!(dump::cuckoo_from_header(&header, LIMIT), Err(DecodeError::Length), "{case}");
    }
}

/// (where in the header, what is written there, what is found wrong)
#[test]
fn forged_bloom_headers_are_refused() {
    let (_, header) = scandump(&golden("bf_reserved")).remove(0);
    let field = |what| Err(DecodeError::Field { what });
    let forged = |at: usize, bytes: &[u8]| {
        let mut header = header.clone();
        header[at..at + bytes.len()].copy_from_slice(bytes);
        dump::chain_from_header(&header, LIMIT)
    };
    let huge = u64::MAX.to_le_bytes();
    assert_eq!(forged(0, &huge), field("number of keys"));
    assert_eq!(forged(8, &[0xff; 4]), Err(DecodeError::Length), "four billion links");
    assert_eq!(forged(8, &[0; 4]), Err(DecodeError::Length), "no link, but bytes of one");
    let unsupported = |result| matches!(result, Err(DecodeError::Unsupported { .. }));
    assert!(unsupported(forged(12, &[0, 0, 0, 0])), "hashes of 32 bits");
    assert!(unsupported(forged(12, &[4, 0, 0, 0])), "rounded to a power of two");
    assert_eq!(forged(12, &[0x45, 0, 0, 0]), field("options"));
    assert_eq!(forged(16, &[0; 4]), field("growth"));
    assert_eq!(forged(20, &(5936u64 + 8).to_le_bytes()), field("number of bytes"));
    assert_eq!(forged(28, &(47488u64 + 64).to_le_bytes()), field("number of bytes"));
    assert_eq!(forged(28, &(47488u64 + 1).to_le_bytes()), field("number of bits"));
    let mut more_than_planned = header.clone();
    more_than_planned[..8].copy_from_slice(&3001u64.to_le_bytes());
    more_than_planned[36..44].copy_from_slice(&3001u64.to_le_bytes());
    assert_eq!(dump::chain_from_header(&more_than_planned, LIMIT), field("number of keys"));
    assert_eq!(forged(36, &2999u64.to_le_bytes()), field("number of keys"), "not the sum");
    for rate in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(forged(44, &rate.to_le_bytes()), field("rate"), "{rate}");
    }
    for bits_per_key in [0.0, -3.0, f64::NAN, f64::INFINITY] {
        let what = "number of bits per key";
        assert_eq!(forged(52, &bits_per_key.to_le_bytes()), field(what), "{bits_per_key}");
    }
    assert_eq!(forged(60, &[0xff; 4]), field("number of probes"), "four billion probes");
    assert_eq!(forged(64, &[0; 8]), field("capacity"));
    assert_eq!(forged(72, &[6]), field("power of two"));

    let probes_that_fit = [1e9f64.to_le_bytes().to_vec(), 693_147_181u32.to_le_bytes().to_vec()];
    assert_eq!(forged(52, &probes_that_fit.concat()), field("number of probes"), "bits too");
    let petabyte = [(1u64 << 50).to_le_bytes(), (1u64 << 53).to_le_bytes()].concat();
    let over = Err(DecodeError::TooLarge(CreateError::OverLimit { limit: 1 << 20 }));
    assert_eq!(forged(20, &petabyte), over);
}

#[test]
fn links_that_are_too_large_only_together_are_refused() {
    let (chain, _) = filled_chain("bf_default");
    let header = dump::chain_header(&chain);
    let bytes = chain.array_bytes();
    assert!(dump::chain_from_header(&header, MemoryLimit::bytes(bytes)).is_ok());
    let over = dump::chain_from_header(&header, MemoryLimit::bytes(bytes - 1));
    assert_eq!(over, Err(DecodeError::TooLarge(CreateError::OverLimit { limit: bytes - 1 })));
    let (filter, ..) = filled_cuckoo("cf_default");
    let header = dump::cuckoo_header(&filter);
    let bytes = filter.slot_bytes();
    assert!(dump::cuckoo_from_header(&header, MemoryLimit::bytes(bytes)).is_ok());
    let over = dump::cuckoo_from_header(&header, MemoryLimit::bytes(bytes - 1));
    assert_eq!(over, Err(DecodeError::TooLarge(CreateError::OverLimit { limit: bytes - 1 })));
}

#[test]
fn forged_cuckoo_headers_are_refused() {
    let (_, header) = scandump(&golden("cf_bucket4")).remove(0);
    let field = |what| Err(DecodeError::Field { what });
    let forged = |at: usize, bytes: &[u8]| {
        let mut header = header.clone();
        header[at..at + bytes.len()].copy_from_slice(bytes);
        dump::cuckoo_from_header(&header, LIMIT)
    };
    assert!(forged(0, &[0xff; 8]).is_ok(), "a count is bookkeeping: the keys come later");
    assert_eq!(forged(8, &1000u64.to_le_bytes()), field("number of buckets"));
    assert_eq!(forged(8, &[0; 8]), field("number of buckets"));
    assert_eq!(forged(8, &(1u64 << 63).to_le_bytes()), field("number of buckets"));
    assert_eq!(forged(24, &[0; 8]), field("number of sub-filters"));
    assert_eq!(forged(24, &(1u64 << 16).to_le_bytes()), field("number of sub-filters"));
    assert_eq!(forged(32, &[0, 0]), field("bucket size"));
    assert_eq!(forged(32, &[0, 1]), field("bucket size"));
    assert_eq!(forged(34, &[0, 0]), field("number of iterations"));
    assert_eq!(forged(36, &[3, 0]), field("expansion"));
    let shape = Err(DecodeError::TooLarge(CreateError::Shape));
    assert_eq!(forged(36, &[0, 0]), shape, "a second sub-filter of a filter that never grows");
    let over = Err(DecodeError::TooLarge(CreateError::OverLimit { limit: 1 << 20 }));
    assert_eq!(forged(8, &(1u64 << 25).to_le_bytes()), over);
    assert_eq!(forged(24, &20u64.to_le_bytes()), over, "twenty sub-filters, each twice the last");
}

#[test]
fn pieces_that_belong_nowhere_are_refused_and_change_nothing() {
    let (mut chain, _) = filled_chain("bf_default");
    let (mut filter, ..) = filled_cuckoo("cf_bucket4");
    let (chain_before, filter_before) = (chain.clone(), filter.clone());
    let bytes = chain.array_bytes() as i64;
    for (iterator, len, error) in [
        (i64::MIN, 1, ChunkError::NoSuchPlace),
        (-1, 1, ChunkError::NoSuchPlace),
        (0, 0, ChunkError::NoSuchPlace),
        (1, 1, ChunkError::NoSuchPlace),
        (5, 5, ChunkError::NoSuchPlace),
        (i64::MAX, 1, ChunkError::NoSuchPlace),
        (bytes + 2, 1, ChunkError::NoSuchPlace),
        (1 + 145, 145, ChunkError::TooLong),
        (1 + 145, 2, ChunkError::TooLong),
        (bytes + 2, 2, ChunkError::TooLong),
    ] {
        let piece = vec![0xff; len];
        let refused = dump::load_chain_chunk(&mut chain, iterator, &piece);
        assert_eq!(refused, Err(error), "{len} bytes up to {iterator}");
        assert!(chain == chain_before);
    }
    assert_eq!(dump::load_cuckoo_chunk(&mut filter, 4098, &[1; 2]), Err(ChunkError::TooLong));
    assert_eq!(dump::load_cuckoo_chunk(&mut filter, 12290, &[1]), Err(ChunkError::NoSuchPlace));
    assert!(filter == filter_before);
    assert_eq!(dump::load_cuckoo_chunk(&mut filter, 12289, &[1]), Ok(()), "the last slot");
    assert!(filter != filter_before);
}

/// Every field of a file, replaced by numbers, by other kinds and by strings of other lengths.
#[test]
fn forged_files_are_refused_or_harmless() {
    let forgeries = |field: &Field| -> Vec<Field> {
        let mut forged: Vec<_> =
            [0, 1, 3, 255, 1 << 16, 1 << 31, 1 << 40, u64::MAX].map(Field::Unsigned).to_vec();
        forged.extend([0.0, f64::NAN, 1e300, 0.1].map(Field::Double));
        forged.extend([0, 1, 8, 1 << 16].map(|len| Field::String(vec![0xa5; len])));
        if let Field::String(bytes) = field {
            forged.push(Field::String(bytes[1..].to_vec()));
            forged.push(Field::String([bytes.as_slice(), &[1]].concat()));
        }
        forged
    };
    let mut refused = 0;
    for case in CHAINS {
        let mut fields = Fields::default();
        rdb::save_chain(&filled_chain(case).0, &mut fields);
        for at in 0..fields.0.len() {
            for forgery in forgeries(&fields.0[at]) {
                let mut forged = fields.clone();
                forged.0[at] = forgery;
                match rdb::load_chain(&mut forged, rdb::VERSION) {
                    Ok(chain) => use_chain(chain),
                    Err(_) => refused += 1,
                }
            }
            let mut cut = Fields(fields.0[..at].to_vec());
            assert_eq!(rdb::load_chain(&mut cut, rdb::VERSION), Err(DecodeError::Length));
        }
    }
    for case in CUCKOOS {
        let mut fields = Fields::default();
        rdb::save_cuckoo(&filled_cuckoo(case).0, &mut fields);
        for at in 0..fields.0.len() {
            for forgery in forgeries(&fields.0[at]) {
                let mut forged = fields.clone();
                forged.0[at] = forgery;
                match rdb::load_cuckoo(&mut forged, rdb::VERSION) {
                    Ok(filter) => use_cuckoo(filter),
                    Err(_) => refused += 1,
                }
            }
            let mut cut = Fields(fields.0[..at].to_vec());
            assert_eq!(rdb::load_cuckoo(&mut cut, rdb::VERSION), Err(DecodeError::Length));
        }
    }
    assert!(refused > 1000, "only {refused} forgeries were refused");
}

#[test]
fn files_of_newer_versions_are_refused() {
    let (chain, _) = filled_chain("bf_default");
    let mut fields = Fields::default();
    rdb::save_chain(&chain, &mut fields);
    assert!(matches!(rdb::load_chain(&mut fields, 5), Err(DecodeError::Unsupported { .. })));
    assert!(matches!(rdb::load_cuckoo(&mut fields, 5), Err(DecodeError::Unsupported { .. })));
}

/// Version 3 of a Bloom filter has no growth; version 3 of a cuckoo filter says no more than its buckets.
#[test]
fn files_of_older_versions_are_read() {
    let (chain, _) = filled_chain("bf_default");
    let mut fields = Fields::default();
    rdb::save_chain(&chain, &mut fields);
    fields.0.remove(3);
    assert_eq!(rdb::load_chain(&mut fields.clone(), 3).as_ref(), Ok(&chain));
    assert_eq!(rdb::load_chain(&mut fields, 2).as_ref(), Ok(&chain));
    assert!(matches!(rdb::load_chain(&mut fields, 1), Err(DecodeError::Unsupported { .. })));

    let (filter, ..) = filled_cuckoo("cf_default");
    let mut fields = Fields::default();
    rdb::save_cuckoo(&filter, &mut fields);
    fields.0.drain(3..7);
    let mut at = 0;
    fields.0.retain(|field| {
        at += 1;
        at <= 3 || matches!(field, Field::String(_))
    });
    assert_eq!(rdb::load_cuckoo(&mut fields, 3).as_ref(), Ok(&filter));
}
