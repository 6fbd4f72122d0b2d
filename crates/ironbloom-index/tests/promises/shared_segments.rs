//! Many small sources share a segment: a question reads one list, whatever their number, and removing a source leaves the others.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use ironbloom_index::{Index, IndexBuilder, Params, Predicate, SourceMeta, Value, columns_of};
use ironbloom_testing::TemporaryFile;

const SOURCES: i64 = 400;
const ROWS: i64 = 70;

/// Source `number` has the ids from `ROWS * number` on, and a group that it shares with every tenth source.
fn batch(number: i64) -> RecordBatch {
    let ids = Int64Array::from_iter_values((0..ROWS).map(|row| ROWS * number + row));
    let groups = Int64Array::from_iter_values((0..ROWS).map(|_| number % 10));
    let columns = [("id", Arc::new(ids) as ArrayRef), ("group", Arc::new(groups))];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn name(number: i64) -> String {
    format!("{number}.parquet")
}

fn index_of(numbers: impl Iterator<Item = i64>) -> Index {
    let columns = columns_of(&batch(0).schema()).unwrap();
    let mut builder = IndexBuilder::new(columns, Params::new(32, 10).unwrap()).unwrap();
    for number in numbers {
        builder.start(name(number)).unwrap();
        builder.push(&batch(number)).unwrap();
        builder.end(SourceMeta::default()).unwrap();
    }
    builder.finish().unwrap()
}

/// The sources and first rows of the blocks that may have this value.
fn found(index: &Index, column: &str, value: i64) -> Vec<(String, u64)> {
    let wanted = Predicate::Eq(column.into(), Value::Int(value.into()));
    let blocks = index.candidates(&wanted).unwrap().blocks;
    assert!(blocks.is_sorted(), "{blocks:?}");
    let place = |source: usize| index.sources()[source].name().to_owned();
    blocks.iter().map(|block| (place(block.source), block.first_row)).collect()
}

/// Every id of these sources is found, and no other source is ever named.
fn has_exactly(index: &Index, numbers: &BTreeSet<i64>) {
    let all: BTreeSet<String> = index.sources().iter().map(|source| source.name().into()).collect();
    assert_eq!(all, numbers.iter().copied().map(name).collect());
    for number in 0..SOURCES {
        for row in [0, 31, 32, ROWS - 1] {
            let blocks = found(index, "id", ROWS * number + row);
            let block = (name(number), (row / 32 * 32) as u64);
            assert_eq!(blocks.contains(&block), numbers.contains(&number), "{number} {row}");
        }
    }
    for group in 0..10 {
        let blocks = found(index, "group", group);
        let expected = numbers.iter().filter(|&number| number % 10 == group).count();
        assert_eq!(blocks.len(), 3 * expected, "group {group}");
    }
    let everything = index.candidates(&Predicate::And(vec![])).unwrap();
    assert_eq!(everything.blocks.len(), 3 * numbers.len());
    assert_eq!(
        (everything.considered, index.info().blocks),
        (3 * numbers.len() as u64, everything.considered)
    );
}

#[test]
fn small_sources_share_a_segment_until_the_last_is_removed() {
    let mut index = index_of(0..SOURCES);
    let mut numbers: BTreeSet<i64> = (0..SOURCES).collect();
    assert_eq!(index.info().segments, 1);
    has_exactly(&index, &numbers);

    // Some from the middle, the first and the last.
    for number in (0..SOURCES).filter(|number| number % 3 == 0 || *number == SOURCES - 1) {
        index.remove(&name(number)).unwrap();
        numbers.remove(&number);
    }
    has_exactly(&index, &numbers);
    let file = TemporaryFile::new("ibx");
    index.save(&file.0).unwrap();
    let mut index = Index::open(&file.0).unwrap();
    assert!(index.verify().is_empty());
    has_exactly(&index, &numbers);

    // A removed one comes back, another one grows, and all of it is merged.
    index.append(index_of([0, 3].into_iter())).unwrap();
    numbers.extend([0, 3]);
    assert_eq!(index.info().segments, 2);
    has_exactly(&index, &numbers);
    let before = index.info().bytes;
    index.compact().unwrap();
    assert_eq!(index.info().segments, 1);
    assert!(index.info().bytes < before, "{} of {before}", index.info().bytes);
    has_exactly(&index, &numbers);
    index.save(&file.0).unwrap();
    has_exactly(&Index::open(&file.0).unwrap(), &numbers);

    for number in std::mem::take(&mut numbers) {
        index.remove(&name(number)).unwrap();
    }
    assert_eq!(index.info().segments, 0);
    has_exactly(&index, &numbers);
}

#[test]
fn what_is_left_of_a_single_segment_is_compacted() {
    let mut index = index_of(0..SOURCES);
    let before = index.info().bytes;
    for number in 1..SOURCES {
        index.remove(&name(number)).unwrap();
    }
    index.compact().unwrap();
    has_exactly(&index, &BTreeSet::from([0]));
    assert!(index.info().bytes * 20 < before, "{} of {before}", index.info().bytes);
}

#[test]
fn a_question_reads_no_more_for_many_sources() {
    let read = |sources: i64| {
        let file = TemporaryFile::new("ibx");
        index_of(0..sources).save(&file.0).unwrap();
        let index = Index::open(&file.0).unwrap();
        let before = index.bytes_read();
        found(&index, "id", 7);
        index.bytes_read() - before
    };
    let (few, many) = (read(20), read(SOURCES));
    // Pieces of 4 KiB instead of the whole, but not a piece of each source.
    assert!(many <= few + 4 * 4096, "{many} bytes instead of {few}");
}
