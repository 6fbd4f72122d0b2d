//! An index of logs blooms names exactly the blocks whose blooms match, and damage never becomes an
//! answer.

use std::io::Cursor;

use ironbloom::ethereum::{Index, IndexError, IndexWriter, LogQuery, LogsBloom, OutOfOrder};
use ironbloom::hash::SplitMix64;

fn key(number: u64) -> Vec<u8> {
    let length = if number.is_multiple_of(2) { 20 } else { 32 };
    let mut key = vec![0; length];
    key[length - 8..].copy_from_slice(&number.to_le_bytes());
    key
}

/// Blocks with a few out of some hundred keys each; some numbers are left out.
fn chain(blocks: usize, keys_per_block: u64, seed: u64) -> Vec<(u64, LogsBloom)> {
    let mut random = SplitMix64(seed);
    let mut number = 1_000_000;
    (0..blocks)
        .map(|_| {
            number +=
                if random.next_u64().is_multiple_of(1000) { random.next_u64() % 50 + 1 } else { 1 };
            let mut bloom = LogsBloom::default();
            (0..keys_per_block).for_each(|_| bloom.insert(&key(random.next_u64() % 400)));
            (number, bloom)
        })
        .collect()
}

fn indexed(chain: &[(u64, LogsBloom)]) -> Vec<u8> {
    let mut writer = IndexWriter::new(Vec::new()).unwrap();
    chain.iter().for_each(|(number, bloom)| writer.push(*number, bloom).unwrap());
    writer.finish().unwrap()
}

fn open(bytes: &[u8]) -> Index<Cursor<&[u8]>> {
    Index::open(Cursor::new(bytes)).unwrap()
}

fn query(clauses: &[&[u64]]) -> LogQuery {
    clauses.iter().fold(LogQuery::default(), |query, clause| {
        query.any_of(clause.iter().map(|&number| key(number)))
    })
}

#[test]
fn an_index_names_the_blocks_whose_blooms_match() {
    let queries: [&[&[u64]]; 6] =
        [&[&[7]], &[&[7], &[8]], &[&[7, 9, 11], &[8]], &[&[1], &[3], &[5]], &[], &[&[999]]];
    for (blocks, keys) in [(0, 0), (1, 5), (63, 5), (64, 20), (65, 60), (40_000, 12)] {
        let chain = chain(blocks, keys, blocks as u64);
        let bytes = indexed(&chain);
        let index = open(&bytes);
        assert_eq!(index.blocks(), blocks as u64);
        let ends = chain.first().zip(chain.last()).map(|(first, last)| (first.0, last.0));
        assert_eq!(index.range(), ends);
        index.verify().unwrap();
        let (low, high) = ends.unwrap_or((5, 5));
        let middle = low + (high - low) / 2;
        let ranges =
            [0..=u64::MAX, low..=high, low + 1..=middle, middle..=middle, 0..=low, high..=u64::MAX];
        for clauses in queries {
            let query = query(clauses);
            for range in ranges.clone() {
                let expected: Vec<u64> = chain
                    .iter()
                    .filter(|(number, bloom)| range.contains(number) && query.matches(bloom))
                    .map(|(number, _)| *number)
                    .collect();
                let found = index.find(&query, range.clone()).unwrap();
                assert_eq!(found, expected, "{blocks} blocks, {clauses:?}, {range:?}");
            }
        }
    }
}

#[test]
fn numbers_must_ascend_and_a_refused_block_changes_nothing() {
    let bloom = LogsBloom::default();
    let mut writer = IndexWriter::new(Vec::new()).unwrap();
    writer.push(7, &bloom).unwrap();
    for number in [7, 3] {
        let error = writer.push(number, &bloom).unwrap_err();
        let inner = error.get_ref().and_then(|error| error.downcast_ref());
        assert_eq!(inner, Some(&OutOfOrder { number, previous: 7 }));
    }
    writer.push(8, &bloom).unwrap();
    let bytes = writer.finish().unwrap();
    assert_eq!(open(&bytes).find(&LogQuery::default(), 0..=100).unwrap(), [7, 8]);
}

/// Changes every byte of a small index: the result is an error, or the query does not need the
/// byte.
#[test]
fn damage_is_an_error_or_does_not_matter_but_never_another_answer() {
    let chain = chain(70, 30, 5);
    let bytes = indexed(&chain);
    let question = query(&[&[7], &[8, 10]]);
    let expected = open(&bytes).find(&question, 0..=u64::MAX).unwrap();
    let mut random = SplitMix64(1);
    let mut noticed = 0;
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= (random.next_u64() % 255 + 1) as u8;
        let answer = Index::open(Cursor::new(&damaged[..]))
            .and_then(|index| index.find(&question, 0..=u64::MAX));
        match answer {
            Ok(found) => assert_eq!(found, expected, "byte {at}"),
            Err(_) => noticed += 1,
        }
        if at % 97 == 0 {
            let verified = Index::open(Cursor::new(&damaged[..])).and_then(|index| index.verify());
            assert!(verified.is_err(), "byte {at} is not noticed");
        }
    }
    assert!(noticed >= 9 * 24, "{noticed}: nine slices, and both ends");
    for len in 0..bytes.len() {
        assert!(Index::open(Cursor::new(&bytes[..len])).is_err(), "{len} bytes");
    }
    let longer = [&bytes[..], &[0; 8]].concat();
    assert!(Index::open(Cursor::new(&longer[..])).is_err());
    let other = Index::open(Cursor::new(b"hello, world".as_slice())).unwrap_err();
    assert!(matches!(other, IndexError::NotAnIndex));
}

/// Numbers that announce missing data, with a right checksum.
#[test]
fn forged_ends_are_refused_before_memory_is_taken() {
    let forged = |runs: &[(u64, u64)], blocks: u64, count: u64| {
        let mut bytes = indexed(&[])[..16].to_vec();
        let mut end = Vec::new();
        for (number, place) in runs {
            end.extend(number.to_le_bytes());
            end.extend(place.to_le_bytes());
        }
        end.extend(blocks.to_le_bytes());
        end.extend(count.to_le_bytes());
        let checksum = xxhash_rust::xxh3::xxh3_64(&[&bytes[..], &end].concat());
        bytes.extend(end);
        bytes.extend(checksum.to_le_bytes());
        Index::open(Cursor::new(bytes)).map(|_| ())
    };
    assert!(forged(&[], 0, 0).is_ok(), "an empty one is whole");
    assert!(forged(&[], 1 << 60, 0).is_err());
    assert!(forged(&[], 0, u64::MAX).is_err());
    assert!(forged(&[(1, 0)], 0, 1).is_err(), "a run without blocks");
}
