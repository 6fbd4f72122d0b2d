//! The size and the candidates are those of the theory, and skew makes neither worse than it may.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use ironbloom::hash::{fastrange, mix64};
use ironbloom_index::{
    ColumnInfo, Index, IndexBuilder, Params, Predicate, Value, columns_of, hash_value,
};

fn random(column: u64, row: u64, values: u64) -> i64 {
    fastrange(mix64(mix64(column) ^ row), values) as i64
}

/// An index of one source with these columns.
fn index_of(columns: Vec<(String, ArrayRef)>, params: Params) -> Index {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap();
    let mut builder = IndexBuilder::new(columns_of(&batch.schema()).unwrap(), params).unwrap();
    builder.push(&batch).unwrap();
    builder.finish().unwrap()
}

fn random_columns(columns: u64, rows: u64, values: u64) -> Vec<(String, ArrayRef)> {
    let column = |column| {
        let numbers = (0..rows).map(|row| random(column, row, values));
        (format!("c{column}"), Arc::new(Int64Array::from_iter_values(numbers)) as ArrayRef)
    };
    (0..columns).map(column).collect()
}

/// The mean number of candidate blocks of this many random questions on the first t columns.
fn mean_blocks(index: &Index, columns: u64, values: u64, questions: u64) -> f64 {
    let eq = |question: u64, column: u64| {
        let value = random(1000 + column, question, values);
        Predicate::Eq(format!("c{column}"), Value::Int(value.into()))
    };
    let blocks: usize = (0..questions)
        .map(|question| {
            let all = (0..columns).map(|column| eq(question, column)).collect();
            index.candidates(&Predicate::And(all)).unwrap().blocks.len()
        })
        .sum();
    blocks as f64 / questions as f64
}

/// Bits per cell of the lists of a column, without its bounds.
fn list_bits(column: &ColumnInfo) -> f64 {
    let lists = (column.bytes - column.bounds_bytes) as f64;
    column.bits_per_cell * lists / column.bytes as f64
}

/// Expected: 12.13 ± 0.02 bits per entry, 30 blocks for one column, 0.05 for two that do not match.
///
/// N/H = 19.07 blocks of other values and 10 of its own: 29.1 (a few share a block); over 5,000 questions the sum of about
/// three groups of ten has sigma 17/70 = 0.24. Two columns: 29.1² / 19,532 = 0.0433, sigma 0.003.
#[test]
fn ten_million_cells_take_twelve_bits_each_and_thirty_blocks_an_answer() {
    let index = index_of(random_columns(2, 10_000_000, 1_000_000), Params::default());
    let info = index.info();
    for column in &info.columns {
        let bits = list_bits(column);
        assert!((12.11..=12.15).contains(&bits), "{bits}");
    }
    let share = info.bounds_bytes as f64 / (info.bytes - info.bounds_bytes) as f64;
    assert!(share <= 0.01, "bounds take {share} of the lists");
    let one = mean_blocks(&index, 1, 1_000_000, 5_000);
    assert!((29.1 - 0.75..=29.1 + 0.75).contains(&one), "{one}");
    let two = mean_blocks(&index, 2, 1_000_000, 5_000);
    assert!((0.0433 - 0.009..=0.0433 + 0.009).contains(&two), "{two}");
}

#[test]
fn a_cell_takes_two_bits_and_an_eighth_more_than_the_selectivity() {
    for (block_rows, selectivity) in [(1024, 4), (512, 8), (128, 13), (1, 16)] {
        let params = Params::new(block_rows, selectivity).unwrap();
        let index = index_of(random_columns(1, 1_000_000, 1_000_000), params);
        let over = list_bits(&index.info().columns[0]) - f64::from(selectivity);
        // Less where a bucket meets a block twice, which is then one entry.
        // Checksums take one bit in 512.
        assert!((1.8..=2.17).contains(&over), "{block_rows} {selectivity}: {over}");
    }
}

#[test]
fn skewed_columns_take_no_more_than_twice_the_uniform_one() {
    const ROWS: u64 = 1_000_000;
    let zipf = zipf(100_000, 1.1);
    let numbers = |value: &dyn Fn(u64) -> i64| {
        Arc::new(Int64Array::from_iter_values((0..ROWS).map(value))) as ArrayRef
    };
    let columns: Vec<(String, ArrayRef)> = vec![
        ("uniform".into(), numbers(&|row| random(1, row, 100_000))),
        ("zipf".into(), numbers(&|row| zipf[random(2, row, zipf.len() as u64) as usize])),
        ("three".into(), numbers(&|row| random(3, row, 3))),
        ("thousand".into(), numbers(&|row| random(4, row, 1000))),
        ("unique".into(), numbers(&|row| row as i64)),
        ("sorted".into(), numbers(&|row| (row / 1000) as i64)),
        ("nulls".into(), Arc::new(Int64Array::from(vec![None; ROWS as usize]))),
        (
            "half null".into(),
            Arc::new(Int64Array::from_iter(
                (0..ROWS).map(|row| (row % 2 == 0).then(|| random(5, row, 100_000))),
            )),
        ),
    ];
    let index = index_of(columns, Params::default());
    let bits: Vec<(String, f64)> = index
        .info()
        .columns
        .iter()
        .map(|column| (column.name.clone(), column.bits_per_cell))
        .collect();
    for (name, bits_per_cell) in &bits {
        assert!(*bits_per_cell <= 2.0 * bits[0].1, "{name}: {bits:?}");
    }
    // Bounds never dominate: those of columns in no order take what 3 % of the lists allow, and an order a few bits a block.
    for column in &index.info().columns {
        let lists = column.bytes - column.bounds_bytes;
        let is_ordered = ["unique", "sorted"].contains(&column.name.as_str());
        let most = if is_ordered { lists / 2 } else { lists * 3 / 100 };
        assert!(column.bounds_bytes <= most, "{column:?}");
    }
    let of = |wanted: &str| bits.iter().find(|(name, _)| name == wanted).unwrap().1;
    // Few values are exact bitmaps, one bit a block each: 3/512, and nulls 1/512.
    assert!(of("three") < 0.01 && of("nulls") < 0.01, "{bits:?}");
    assert!(of("sorted") < 0.1 && of("zipf") < of("uniform"), "{bits:?}");
}

/// A heavy value must not fill the answers of those that share its bucket.
#[test]
fn a_heavy_value_is_in_nobody_elses_way() {
    const ROWS: u64 = 1_000_000;
    // 2^10 · 512 buckets: the first 19 bits of the hash.
    let bucket = |value: i64| hash_value(&Value::Int(value.into())).unwrap() >> (64 - 19);
    let mate = (100_000..).find(|&value| bucket(value) == bucket(-1)).unwrap();
    let value = |row| match row {
        700_001 => mate,
        row if row % 2 == 0 => -1,
        row => random(1, row, 100_000),
    };
    let array = Arc::new(Int64Array::from_iter_values((0..ROWS).map(value))) as ArrayRef;
    let index = index_of(vec![("c0".into(), array)], Params::default());
    let blocks = |value: i64| {
        let eq = Predicate::Eq("c0".into(), Value::Int(value.into()));
        index.candidates(&eq).unwrap().blocks
    };
    assert_eq!(blocks(-1).len() as u64, ROWS.div_ceil(512));
    // Its own block, and one of others on average; 64 would be a heavy value.
    assert!(blocks(mate).iter().any(|block| block.range().contains(&700_001)));
    assert!(blocks(mate).len() < 64, "{}", blocks(mate).len());
}

/// Merging segments gives what one segment would have been, up to a few values that were heavy in one part only.
#[test]
fn a_compacted_index_is_as_small_and_as_sharp_as_one_built_at_once() {
    let columns = random_columns(2, 2_000_000, 200_000);
    let batch = RecordBatch::try_from_iter(columns.clone()).unwrap();
    let builder = IndexBuilder::new(columns_of(&batch.schema()).unwrap(), Params::default());
    let mut builder = builder.unwrap().with_segment_rows(300_000);
    builder.push(&batch).unwrap();
    let mut index = builder.finish().unwrap();
    assert_eq!(index.info().segments, 7);
    index.compact().unwrap();
    let whole = index_of(columns, Params::default());
    assert_eq!((index.info().segments, index.info().blocks), (1, whole.info().blocks));
    assert_eq!(index.info(), whole.info());
    for question in 0..1000 {
        let value = Value::Int(random(7, question, 220_000).into());
        let predicate = Predicate::Eq("c1".into(), value);
        assert_eq!(index.candidates(&predicate).unwrap(), whole.candidates(&predicate).unwrap());
    }
}

/// Cell numbers as often as Zipf's law says, each rank's share rounded up.
fn zipf(values: u64, exponent: f64) -> Vec<i64> {
    let total: f64 = (1..=values).map(|rank| (rank as f64).powf(-exponent)).sum();
    (1..=values)
        .flat_map(|rank| {
            let share = (rank as f64).powf(-exponent) / total * 1e6;
            std::iter::repeat_n(rank as i64, share.ceil() as usize)
        })
        .collect()
}
