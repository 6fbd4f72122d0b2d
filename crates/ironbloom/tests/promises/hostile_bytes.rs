//! Promise: damage is an error, never the answer "absent"; and no bytes make the library panic or allocate memory for
//! data that is not there.

use crate::common::{self, FILTERS, hashes};
use crate::mapped;
use ironbloom::any::AnyFilter;
use ironbloom::hash::mix64;
use ironbloom::multi::{Joint, MultiFilter, ParallelBloom};
use ironbloom::*;
use ironbloom_testing::TemporaryFile;
use xxhash_rust::xxh3::xxh3_64;

const HEADER: usize = 256;

/// A small filter of every kind with forty keys, its bytes and the keys.
fn samples() -> Vec<(&'static str, Vec<u8>, Vec<u64>)> {
    let keys = hashes(1, 40);
    let mut samples: Vec<_> = FILTERS
        .iter()
        .map(|config| (config.name, (config.build)(&keys, 40, 0.01).to_bytes(), keys.clone()))
        .collect();
    let mut bitmap = Bitmap::new(500).unwrap();
    let integers: Vec<u64> = (0..40).map(|i| i * 12).collect();
    integers.iter().for_each(|&i| assert!(bitmap.insert(i).unwrap()));
    samples.push(("bitmap", bitmap.to_bytes(), integers));
    samples.extend(row_samples(&keys));
    samples
}

const ATTRIBUTES: [&str; 2] = ["size", "color"];

/// Like [`samples`], for rows of two attributes. Twenty rows of each size, so that counters have a surplus; and one row
/// twice.
fn row_samples(keys: &[u64]) -> Vec<(&'static str, Vec<u8>, Vec<u64>)> {
    fn filled(mut filter: impl MultiFilter + Persist, keys: &[u64]) -> Vec<u8> {
        for &key in keys.iter().chain(&keys[..1]) {
            filter.insert_hashed(&row(key)).unwrap();
        }
        filter.to_bytes()
    }
    let parallel = ParallelBloom::with_rate(40, 0.01, ATTRIBUTES).unwrap();
    let joint = Joint::with_rate(40, 0.01, ATTRIBUTES).unwrap();
    let partial = Joint::partial_with_rate(40, 0.01, ATTRIBUTES).unwrap();
    vec![
        ("parallel", filled(parallel, keys), keys.to_vec()),
        ("joint", filled(joint, keys), keys.to_vec()),
        ("joint-partial", filled(partial, keys), keys.to_vec()),
    ]
}

fn row(key: u64) -> [u64; 2] {
    [mix64(key % 2), key]
}

/// Returns true if there may be such a row, by all attributes and, if partial queries work, by the second alone.
fn has_row(filter: &dyn MultiFilter, [first, second]: [u64; 2]) -> bool {
    filter.contains_hashed(&[Some(first), Some(second)]).unwrap()
        && filter.contains_hashed(&[None, Some(second)]).unwrap_or(true)
}

fn has_all(filter: &AnyFilter, keys: &[u64]) -> bool {
    match filter.as_multi() {
        // An accepted flipped bit must not change the number of attributes either.
        Some(rows) => keys.iter().all(|&key| has_row(rows, row(key))),
        None => common::found(filter, keys) == keys.len() as u64,
    }
}

#[test]
fn every_flipped_byte_is_detected_or_harmless() {
    for (name, bytes, keys) in samples() {
        assert!(has_all(&AnyFilter::from_bytes(&bytes).unwrap(), &keys), "{name}");
        let mut damaged = bytes.clone();
        for at in 0..bytes.len() {
            for flip in [0x01, 0x80, 0xff] {
                damaged[at] ^= flip;
                if let Ok(filter) = AnyFilter::from_bytes(&damaged) {
                    assert!(has_all(&filter, &keys), "{name}: byte {at} ^ {flip:#x} loses a key");
                }
                damaged[at] ^= flip;
            }
        }
    }
}

#[test]
fn every_truncation_and_every_surplus_byte_is_refused() {
    for (name, bytes, _) in samples() {
        for len in 0..bytes.len() {
            assert!(AnyFilter::from_bytes(&bytes[..len]).is_err(), "{name}: cut to {len} bytes");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(AnyFilter::from_bytes(&longer).is_err(), "{name}: one byte more");
    }
}

/// The same for files: loading and mapping see the same damage, and `verify` locates it.
#[test]
fn damaged_files_are_refused_by_load_map_and_verify() {
    let path = TemporaryFile::new("ibf");
    for (name, bytes, _) in samples() {
        for at in [0, 9, 20, 100, HEADER, bytes.len() / 2, bytes.len() - 20, bytes.len() - 1] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            std::fs::write(&path, &damaged).unwrap();
            assert!(AnyFilter::load(&path).is_err(), "{name}: load, byte {at}");
            assert!(mapped::map::<AnyFilter>(&path).is_err(), "{name}: map, byte {at}");
            match format::native::verify(&path) {
                Err(_) => assert!(at < HEADER, "{name}: byte {at}"),
                Ok(found) => assert!(!found.damaged.is_empty(), "{name}: verify, byte {at}"),
            }
        }
    }
}

#[test]
fn verify_names_the_damaged_chunk() {
    let path = TemporaryFile::new("ibf");
    let mut bloom = Bloom::with_rate(200_000, 0.01).unwrap();
    bloom.insert_hashes(&hashes(1, 200_000));
    let mut bytes = bloom.to_bytes();
    for chunk in [1, 3] {
        bytes[HEADER + chunk * 65536 + 77] ^= 1;
    }
    std::fs::write(&path, bytes).unwrap();
    let damaged = format::native::verify(&path).unwrap().damaged;
    let offsets: Vec<u64> = damaged
        .iter()
        .map(|error| match error {
            DecodeError::Damaged { part: "payload", offset, .. } => *offset,
            other => panic!("{other}"),
        })
        .collect();
    assert_eq!(offsets, [256 + 65536, 256 + 3 * 65536]);
}

/// Puts a number into the header and fixes the checksum, like an attacker.
fn forge(bytes: &[u8], at: usize, value: u64) -> Vec<u8> {
    let mut forged = bytes.to_vec();
    forged[at..at + 8].copy_from_slice(&value.to_le_bytes());
    let checksum = xxh3_64(&forged[..HEADER - 8]);
    forged[HEADER - 8..HEADER].copy_from_slice(&checksum.to_le_bytes());
    // The table is sealed with the header's checksum, so it is sealed again as well.
    let payload = u64::from_le_bytes(forged[40..48].try_into().unwrap());
    let table = payload.checked_add(HEADER as u64).and_then(|at| usize::try_from(at).ok());
    let end = forged.len() - 8;
    if let Some(table) = table.filter(|&table| table <= end) {
        let seal = xxhash_rust::xxh3::xxh3_64_with_seed(&forged[table..end], checksum);
        forged[end..].copy_from_slice(&seal.to_le_bytes());
    }
    forged
}

/// Uses everything a filter offers; only a panic, or endless memory, is a failure.
fn exercise(filter: &mut AnyFilter) {
    let some = hashes(9, 64);
    let mut found = vec![false; some.len()];
    filter.contains_hashes(&some, &mut found);
    assert!(filter.estimate_len() >= 0.0);
    assert!((0.0..=1.0).contains(&filter.estimate_rate()), "{filter:?}");
    let _ = (filter.is_over_capacity(), filter.capacity());
    let copy = filter.clone();
    let _ = filter.union_with(&copy);
    let _ = filter.intersect_with(&copy);
    for &hash in &some {
        let _ = filter.remove_hash(hash);
    }
    let _ = filter.insert_hashes(&some);
    let _ = filter.insert_hashes(&[0, 1, 499, u64::MAX]);
    if let Some(rows) = filter.as_multi_mut() {
        exercise_rows(rows, &some);
    }
    let _ = filter.to_bytes();
}

/// A row that was just inserted is present, and can be removed, whatever the file said.
fn exercise_rows(filter: &mut dyn MultiFilter, hashes: &[u64]) {
    let attributes = filter.attributes().len();
    for &hash in hashes {
        let row: Vec<u64> = (0..attributes as u64).map(|i| mix64(hash ^ i)).collect();
        let query: Vec<Option<u64>> = row.iter().copied().map(Some).collect();
        let _ = filter.remove_hashed(&row).unwrap();
        if filter.insert_hashed(&row).is_ok() {
            assert!(filter.contains_hashed(&query).unwrap());
            assert!(filter.remove_hashed(&row).unwrap());
        }
        let _ = filter.contains_hashed(&vec![None; attributes]);
    }
}

/// Every field of the header gets every nasty number, with matching checksums.
#[test]
fn forged_headers_never_panic_and_never_allocate_what_is_not_there() {
    let fields = (8..HEADER - 8).step_by(8);
    for (name, bytes, _) in samples() {
        for at in fields.clone() {
            let old = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
            let mut values: Vec<u64> = (0..64).map(|bit| old ^ (1 << bit)).collect();
            values.extend([
                0,
                1,
                2,
                3,
                63,
                64,
                65,
                u32::MAX.into(),
                1 << 32,
                u64::MAX / 2,
                u64::MAX - 1,
                u64::MAX,
            ]);
            values.extend([
                old.wrapping_add(1),
                old.wrapping_sub(1),
                old.wrapping_mul(2),
                f64::NAN.to_bits(),
            ]);
            values.extend([f64::INFINITY.to_bits(), (-1.0f64).to_bits(), 1e-300f64.to_bits()]);
            for value in values {
                let forged = forge(&bytes, at, value);
                if let Ok(mut filter) = AnyFilter::from_bytes(&forged) {
                    assert!(
                        filter.size_in_bytes() <= forged.len(),
                        "{name}: field {at} = {value:#x}"
                    );
                    exercise(&mut filter);
                }
            }
        }
    }
}

/// Changes the payload, which is one chunk, and fixes the checksums.
fn forge_payload(bytes: &[u8], change: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut forged = bytes.to_vec();
    let end = forged.len() - 16;
    change(&mut forged[HEADER..end]);
    let checksum = xxhash_rust::xxh3::xxh3_64_with_seed(&forged[HEADER..end], 0);
    forged[end..end + 8].copy_from_slice(&checksum.to_le_bytes());
    let len = u64::from_le_bytes(forged[24..32].try_into().unwrap());
    forge(&forged, 24, len)
}

/// A payload of noise under a good header: nonsense, but no panic. Zeros must follow the last bit, so the noise ends
/// where the file may be accepted.
#[test]
fn noise_as_payload_never_panics() {
    for (name, bytes, _) in samples() {
        let mut accepted = 0;
        for round in 0..200u64 {
            let noisy = |zeros: usize| {
                forge_payload(&bytes, |payload| {
                    let end = payload.len() - zeros;
                    payload[end..].fill(0);
                    for (i, byte) in payload[..end].iter_mut().enumerate() {
                        *byte = match round {
                            0 => 0xff,
                            1 => 0,
                            _ => mix64(round << 32 | i as u64) as u8,
                        };
                    }
                })
            };
            let filter = (0..64).find_map(|zeros| AnyFilter::from_bytes(&noisy(zeros)).ok());
            if let Some(mut filter) = filter {
                exercise(&mut filter);
                accepted += 1;
            }
        }
        // The payloads of two also count keys, which noise contradicts; rows begin with names.
        let mut structured = ["scalable", "windowed", "parallel", "joint"].into_iter();
        assert!(
            structured.any(|kind| name.starts_with(kind)) || accepted >= 100,
            "{name}: {accepted}"
        );
    }
}

/// Every word of a payload of names, tables and counters gets nasty numbers, with matching checksums. Most are refused;
/// an accepted filter may answer nonsense, but neither panics nor loses keys inserted afterwards.
#[test]
fn forged_tables_never_panic() {
    for (name, bytes, _) in row_samples(&hashes(1, 40)) {
        let words = (bytes.len() - HEADER - 16) / 8;
        let mut refused = 0;
        for word in 0..words {
            let old = u64::from_le_bytes(bytes[HEADER + 8 * word..][..8].try_into().unwrap());
            let near = [old ^ 1, old ^ 1 << 63, old.wrapping_add(1), old << 1];
            for value in near.into_iter().chain([0, 1, 8, 1 << 48, u64::MAX]) {
                let forged = forge_payload(&bytes, |payload| {
                    payload[8 * word..][..8].copy_from_slice(&value.to_le_bytes());
                });
                match AnyFilter::from_bytes(&forged) {
                    Ok(mut filter) => {
                        assert!(filter.size_in_bytes() <= forged.len(), "{name}: word {word}");
                        assert_eq!(filter.to_bytes(), forged, "{name}: word {word} = {value:#x}");
                        exercise(&mut filter);
                    }
                    Err(_) => refused += 1,
                }
            }
        }
        assert!(refused > words, "{name}: only {refused} refused");
    }
}

/// Found by reading: a count of 2^64 - 1 in the header made the next insert overflow.
#[test]
fn a_count_that_could_overflow_is_refused() {
    for (name, bytes, _) in samples() {
        let error = AnyFilter::from_bytes(&forge(&bytes, 24, u64::MAX)).unwrap_err();
        assert!(
            matches!(error, DecodeError::Invalid { what: "number of keys", .. }),
            "{name}: {error}"
        );
    }
}

/// Found by fuzzing: a forged count made a bitmap count more integers than its bound allows, and its own file was then
/// refused.
#[test]
fn a_bitmap_never_counts_beyond_its_bound() {
    let empty = Bitmap::new(500).unwrap().to_bytes();
    let mut bitmap = Bitmap::from_bytes(&forge(&empty, 24, 500)).unwrap();
    assert!(bitmap.insert(7).unwrap());
    assert_eq!(Bitmap::from_bytes(&bitmap.to_bytes()), Ok(bitmap));
}

/// Found by fuzzing: bits that no key has were counted, so that the estimated rate exceeded 1 and a bitmap listed
/// integers beyond its bound.
#[test]
fn bits_behind_the_end_are_refused() {
    let mut refused = Vec::new();
    for (name, bytes, _) in samples() {
        let forged = forge_payload(&bytes, |payload| *payload.last_mut().unwrap() = 0x80);
        if let Err(error) = AnyFilter::from_bytes(&forged) {
            assert_eq!(error, DecodeError::Invalid { what: "padding", value: 1 }, "{name}");
            refused.push(name);
        }
    }
    // The blocks of a blocked filter end with a line, and others may do so by chance.
    for name in ["bloom", "segmented", "counting", "bitmap"] {
        assert!(refused.contains(&name), "{name}: {refused:?}");
    }
}

/// Found by reading: fields without meaning were ignored, so that a later version could never assign one, and two
/// different files held the same filter.
#[test]
fn what_is_unused_must_be_zero() {
    for (name, bytes, _) in samples() {
        assert!(AnyFilter::from_bytes(&forge(&bytes, 56, 1)).is_err(), "{name}: field 56");
        for at in (64..HEADER - 8).step_by(8).rev() {
            let forged = forge(&bytes, at, 1);
            let Ok(filter) = AnyFilter::from_bytes(&forged) else { continue };
            assert_eq!(filter.to_bytes(), forged, "{name}: parameter at {at}");
        }
    }
    let bitmap = Bitmap::new(500).unwrap().to_bytes();
    for (at, value) in [(16, 7), (8, 1 | 1 << 16 | 1 << 32 | 2 << 48)] {
        assert!(Bitmap::from_bytes(&forge(&bitmap, at, value)).is_err(), "a hash at {at}");
    }
}

#[test]
fn other_files_are_not_filters() {
    for bytes in [&b""[..], b"x", b"\x89PNG\r\n\x1a\n", &[0; 300], &[0xff; 10_000]] {
        assert_eq!(AnyFilter::from_bytes(bytes).unwrap_err(), DecodeError::NotAFilter);
    }
    let newer = forge(&samples()[0].1, 8, 2 | 2 << 16 | 1 << 32 | 1 << 48);
    assert_eq!(AnyFilter::from_bytes(&newer).unwrap_err(), DecodeError::Version { found: 2 });
    let wrong_kind = Cuckoo::from_bytes(&samples()[0].1).unwrap_err();
    assert_eq!(wrong_kind, DecodeError::Kind { wanted: Kind::Cuckoo, found: Kind::Bloom });
}
