//! The smallest and the largest value of each block exclude blocks from ranges, patterns and values that are not there: many
//! where rows are in order, and never one with a matching row.

use std::fs;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray as _, Decimal128Array, Decimal256Array, Float16Array, Float32Array,
    Float64Array, Int64Array, NullArray, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{Float16Type, Int64Type, i256};
use ironbloom_index::{
    Error, FilePart, Index, IndexBuilder, Indexed, Params, Pattern, Predicate, SourceMeta, Value,
    columns_of, evaluate, index_more_tables, index_tables, parse,
};
use ironbloom_testing::{Scratch, TemporaryFile};

use crate::common::layouts;
use crate::common::naive::matching_rows;

const ROWS: i64 = 200_000;

/// Events as they come: a time that goes on with jitter, a number that does too, a host by day, a random amount.
fn events(rows: i64) -> RecordBatch {
    let random = |row: i64, salt: i64| ironbloom::hash::mix64((row ^ (salt << 40)) as u64) as i64;
    let time =
        |row: i64| 1_700_000_000_000_000 + row * 1_000_000 + random(row, 1).rem_euclid(60_000_000);
    let columns: [(&str, ArrayRef); 4] = [
        ("time", Arc::new(TimestampMicrosecondArray::from_iter_values((0..rows).map(time)))),
        ("id", Arc::new(Int64Array::from_iter_values((0..rows).map(|row| 1_000_000 + 3 * row)))),
        (
            "host",
            Arc::new(StringArray::from_iter_values(
                (0..rows)
                    .map(|row| format!("host-{:03}.{}", row / 2000, random(row, 2).rem_euclid(9))),
            )),
        ),
        (
            "amount",
            Arc::new(Int64Array::from_iter_values(
                (0..rows).map(|row| random(row, 3).rem_euclid(1_000_000)),
            )),
        ),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn index_of(batch: &RecordBatch) -> Index {
    let columns = columns_of(&batch.schema()).unwrap();
    let mut builder = IndexBuilder::new(columns, Params::default()).unwrap();
    builder.start("t.parquet").unwrap();
    builder.push(batch).unwrap();
    builder.end(SourceMeta::default()).unwrap();
    builder.finish().unwrap()
}

/// Candidate blocks of a condition, all of them with the rows that match.
fn blocks(index: &Index, batch: &RecordBatch, condition: &str) -> usize {
    let predicate = parse(condition, &batch.schema()).unwrap();
    let found = index.candidates(&predicate).unwrap().blocks;
    for row in evaluate(&predicate, batch).unwrap().set_indices() {
        let row = row as u64;
        assert!(found.iter().any(|block| block.range().contains(&row)), "row {row}: {condition}");
    }
    found.len()
}

#[test]
fn ranges_of_a_table_in_order_name_the_blocks_around_them() {
    let batch = events(ROWS);
    let index = index_of(&batch);
    // A block is 512 s, the day 168.75 of them, and 60 s of jitter reach into one more on either side; rounding, likewise.
    let cases = [
        ("time between '2023-11-15' and '2023-11-15 23:59:59.999999'", 169, 173),
        ("time >= '2023-11-16' and time < '2023-11-16 01:00'", 8, 11),
        ("not (time < '2023-11-15' or time >= '2023-11-15 01:00')", 8, 11),
        ("time < '2023-11-14 22:13:20' or time > '2023-11-17'", 40, 43),
        ("id = 1300000 or id = 1300003", 1, 3),
        ("id in (1003000, 1300000, 1590000)", 2, 4),
        ("id <= 1000000", 1, 1),
        ("id < 1000000", 0, 0),
        ("id > 1599997", 0, 0),
        ("host like 'host-050%'", 4, 7),
        ("host like 'host-05%.3'", 40, 43),
        ("starts_with(host, 'host-099')", 3, 6),
        ("host = 'host-050.3'", 4, 7),
        ("host like '%3'", 391, 391),
        ("host like 'nohost%'", 0, 0),
        ("host > 'host-099.8'", 0, 6),
        // One of 512 values of a block is below 20 with 1 %.
        ("amount < 20", 1, 12),
        ("amount >= 20", 391, 391),
        ("id between 1300000 and 1306000 and amount = 77", 0, 1),
        ("id is not null", 391, 391),
        ("id is null", 0, 0),
    ];
    let file = TemporaryFile::new("ibx");
    let mut saved = index_of(&batch);
    saved.save(&file.0).unwrap();
    let opened = Index::open(&file.0).unwrap();
    for (condition, least, most) in cases {
        let found = blocks(&index, &batch, condition);
        assert!((least..=most).contains(&found), "{found} blocks for {condition}");
        assert_eq!(blocks(&opened, &batch, condition), found, "{condition}");
    }
}

#[test]
fn bounds_survive_merging() {
    let batch = events(ROWS);
    let columns = columns_of(&batch.schema()).unwrap();
    // Segments of whole groups of 64 blocks, and others.
    for segment_rows in [64 * 512, 10_000 / 512 * 512] {
        let builder = IndexBuilder::new(columns.clone(), Params::default()).unwrap();
        let mut builder = builder.with_segment_rows(segment_rows);
        builder.push(&batch).unwrap();
        let mut index = builder.finish().unwrap();
        let conditions = ["time < '2023-11-15'", "id = 1300000", "host like 'host-050%'", "id < 5"];
        let before = conditions.map(|condition| blocks(&index, &batch, condition));
        index.compact().unwrap();
        assert_eq!(index.info().segments, 1);
        for (condition, before) in conditions.into_iter().zip(before) {
            let after = blocks(&index, &batch, condition);
            assert!(after <= before + 2, "{before}, then {after}: {condition}");
        }
    }
}

#[test]
fn rows_that_are_not_sealed_yet_have_bounds() {
    let batch = events(5000);
    let mut index = index_of(&events(0));
    batch_by_batch(&mut index, &batch, 700);
    assert!(blocks(&index, &batch, "id < 1003000") <= 3);
    assert_eq!(blocks(&index, &batch, "id < 5"), 0);
    index.seal();
    assert!(blocks(&index, &batch, "id < 1003000") <= 3);
}

fn batch_by_batch(index: &mut Index, batch: &RecordBatch, rows: usize) {
    for start in (0..batch.num_rows()).step_by(rows) {
        let part = batch.slice(start, rows.min(batch.num_rows() - start));
        index.push(0, &part).unwrap();
    }
}

/// An index on the table in a scratch folder, as files.
fn index_files(folder: &Scratch, tables: &[(&str, RecordBatch)]) -> std::path::PathBuf {
    let file = folder.file("t.ibx");
    let path = |name: &str| folder.file(&format!("{name}.parquet"));
    for (name, batch) in tables {
        fs::copy(layouts()[2].write(batch).path(), path(name)).unwrap();
    }
    let (first, more) = tables.split_first().unwrap();
    let params = Params::new(64, 10).unwrap();
    let mut index = index_tables(&[path(first.0)], None, params, &file, &mut |_| {}).unwrap();
    for (name, _) in more {
        index
            .append(index_more_tables(&index, &[path(name)], &file, &mut |_| {}).unwrap())
            .unwrap();
    }
    index.save(&file).unwrap();
    file
}

#[test]
fn a_value_that_no_table_can_have_opens_none_and_reads_the_directory_only() {
    let folder = Scratch::new("beyond");
    let file = index_files(&folder, &[("a", events(9000)), ("b", events(3000))]);
    let schema = events(0).schema();
    fs::remove_file(folder.file("a.parquet")).unwrap();
    fs::remove_file(folder.file("b.parquet")).unwrap();
    let indexed = Indexed::open(&file).unwrap();
    let opening = indexed.index().bytes_read();
    let rows = |condition: &str, select: &[&str]| {
        let predicate = parse(condition, &schema).unwrap();
        let mut rows = 0;
        for part in indexed.find(&predicate, select).unwrap() {
            rows += part.map_err(|error| error.to_string())?.1.rows.len();
        }
        Ok::<usize, String>(rows)
    };
    let beyond = [
        "id = 5",
        "id in (1, 2, 9000000) and amount = 3",
        "time = '2024-02-29'",
        "time > '2024-01-01'",
        "host = 'zebra'",
        "host like 'hosts%' or id = 3",
        "amount = -1 and host is not null",
    ];
    for condition in beyond {
        assert_eq!(rows(condition, &["id", "host"]).unwrap(), 0, "{condition}");
    }
    assert_eq!(indexed.index().bytes_read(), opening);
    // Rows up to 1,008,997 are in the first table only.
    assert!(rows("id = 1021000", &[]).unwrap_err().contains("a.parquet"));
    assert!(indexed.index().bytes_read() > opening);
}

#[test]
fn decimals_and_floats_of_any_width_are_in_one_order() {
    let decimal = |step: i128, scale: i8| -> ArrayRef {
        let digits = (0..640).map(|row| row * step);
        Arc::new(
            Decimal128Array::from_iter_values(digits).with_precision_and_scale(38, scale).unwrap(),
        )
    };
    let wide: ArrayRef = Arc::new(
        Decimal256Array::from_iter_values(
            (0..640).map(|row| i256::from_i128(row * 7) * i256::from_i128(10).wrapping_pow(33)),
        )
        .with_precision_and_scale(70, 35)
        .unwrap(),
    );
    let floats = |row: i64| row as f64 / 10.0 - 3.0;
    let half =
        |number: f64| <Float16Type as arrow::array::ArrowPrimitiveType>::Native::from_f64(number);
    let widths: [ArrayRef; 3] = [
        Arc::new(Float64Array::from_iter_values((0..640).map(floats))),
        Arc::new(Float32Array::from_iter_values((0..640).map(|row| floats(row) as f32))),
        Arc::new(Float16Array::from_iter_values((0..640).map(|row| half(floats(row))))),
    ];
    let decimals = [decimal(7, 2), decimal(7_000_000_000, 11), wide];
    let folder = Scratch::new("widths");
    let batch = |(x, price): (ArrayRef, ArrayRef)| {
        RecordBatch::try_from_iter([("x", x), ("price", price)]).unwrap()
    };
    let batches: Vec<RecordBatch> = widths.into_iter().zip(decimals).map(batch).collect();
    let tables: Vec<(&str, RecordBatch)> =
        ["a", "b", "c"].into_iter().zip(batches.clone()).collect();
    let indexed = Indexed::open(index_files(&folder, &tables)).unwrap();
    let conditions = [
        "x = 0.1",
        "x < 0.1",
        "x <= 0.1",
        "x > 0.1",
        "x >= 0.1",
        "x between 0.3 and 0.3",
        "not (x >= 60.9)",
        "x > 1e300",
        "price = 0.07",
        "price < 0.07",
        "price >= 44.73",
        "price > 44.73",
        "price between 10 and 10.08",
        "price <= 0",
        "price > 1000",
        "not (price between 0.01 and 44)",
        "x < -2.9 or price > 44.6",
    ];
    let schema = indexed.schema().unwrap();
    for condition in conditions {
        let predicate = parse(condition, &schema).unwrap();
        let mut found = vec![Vec::new(); 3];
        for part in indexed.find(&predicate, &[]).unwrap() {
            let (table, part) = part.unwrap();
            found[table].extend(part.rows);
        }
        let wanted: Vec<Vec<u64>> =
            batches.iter().map(|batch| matching_rows(&predicate, batch)).collect();
        assert_eq!(found, wanted, "{condition}");
        let candidates = indexed.index().candidates(&predicate).unwrap();
        assert!(
            candidates.considered == 30 && candidates.blocks.len() < 30 || wanted[0].len() > 500,
            "{condition}"
        );
    }
}

#[test]
fn a_column_of_nulls_has_no_block_for_any_comparison() {
    let folder = Scratch::new("nulls");
    let nothing = |rows: usize| {
        RecordBatch::try_from_iter([("x", Arc::new(NullArray::new(rows)) as ArrayRef)]).unwrap()
    };
    let numbers = Int64Array::from_iter((0..1000).map(|row| (row / 100 % 2 == 0).then_some(row)));
    let some =
        RecordBatch::try_from_iter_with_nullable([("x", Arc::new(numbers) as ArrayRef, true)])
            .unwrap();
    let indexed = Indexed::open(index_files(&folder, &[("a", nothing(500)), ("b", some)])).unwrap();
    let found = |condition: &str| {
        let predicate = parse(condition, &indexed.schema().unwrap()).unwrap();
        let blocks = indexed.index().candidates(&predicate).unwrap().blocks;
        let rows = indexed.find(&predicate, &[]).unwrap().map(|part| part.unwrap().1.rows.len());
        (blocks.iter().filter(|block| block.source == 0).count(), blocks.len(), rows.sum::<usize>())
    };
    assert_eq!(found("x >= 0"), (0, 11, 500));
    assert_eq!(found("x is not null"), (0, 11, 500));
    assert_eq!(found("x <> 3").0, 0);
    assert_eq!(found("x < 64"), (0, 1, 64));
    assert_eq!(found("x is null"), (8, 8 + 14, 500 + 500));
}

#[test]
fn damaged_bounds_harm_ranges_and_nothing_else() {
    let batch = events(20_000);
    let file = TemporaryFile::new("ibx");
    index_of(&batch).save(&file.0).unwrap();
    let whole = fs::read(&file.0).unwrap();
    let eq = parse("id = 1030000", &batch.schema()).unwrap();
    let range = parse("id between 1030000 and 1030100", &batch.schema()).unwrap();
    let right = Index::open(&file.0).unwrap().candidates(&eq).unwrap();
    let mut harmed = 0;
    for at in (64..whole.len()).step_by(37) {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        fs::write(&file.0, &damaged).unwrap();
        let Ok(index) = Index::open(&file.0) else { continue };
        let Err(error) = index.candidates(&range) else { continue };
        let part = FilePart::Bounds { source: "t.parquet".into(), segment: 0 };
        assert!(matches!(&error, Error::Damaged { part: found, .. } if *found == part), "{error}");
        harmed += 1;
        // Lists are enough for values; the bounds only remove blocks of other values.
        let found = index.candidates(&eq).unwrap().blocks;
        assert!(right.blocks.iter().all(|block| found.contains(block)));
        assert_eq!(index.verify().len(), 1);
        assert!(error.to_string().contains("smallest and largest values of t.parquet"), "{error}");
    }
    assert!(harmed > 5, "{harmed}");
}

/// An index of version 2 has no bounds, says so, and answers as before; merged with new rows too.
#[test]
fn an_index_without_bounds_names_all_blocks() {
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let folder = Scratch::new("version-2");
    for name in ["v2.ibx", "trees.csv"] {
        fs::copy(golden.join(name), folder.file(name)).unwrap();
    }
    let file = folder.file("v2.ibx");
    let range = |low: i128| Predicate::Range {
        column: "id".into(),
        low: std::ops::Bound::Included(Value::Int(low)),
        high: std::ops::Bound::Unbounded,
    };
    let mut index = Index::open(&file).unwrap();
    assert_eq!(index.info().bounds_bytes, 0);
    assert_eq!(index.candidates(&range(5000)).unwrap().blocks.len(), 18);
    index.save(&file).unwrap();
    let mut text = fs::read_to_string(folder.file("trees.csv")).unwrap();
    let line = text.lines().last().unwrap().replacen("1099", "1100", 1);
    text += &(line + "\n");
    fs::write(folder.file("trees.csv"), text).unwrap();
    let more = index_more_tables(&index, &[folder.file("trees.csv")], &file, &mut |_| {}).unwrap();
    index.append(more).unwrap();
    assert_eq!(
        index.candidates(&range(5000)).unwrap().blocks.len(),
        18,
        "the new block is excluded"
    );
    assert_eq!(index.candidates(&range(1100)).unwrap().blocks.len(), 19);
    index.compact().unwrap();
    index.save(&file).unwrap();
    let indexed = Indexed::open(&file).unwrap();
    assert!(indexed.index().verify().is_empty());
    let rows = indexed.find(&range(1099), &[]).unwrap().flat_map(|part| part.unwrap().1.rows);
    assert_eq!(rows.collect::<Vec<_>>(), [1099, 1100]);
}

#[test]
fn a_pattern_without_wildcards_is_a_value() {
    let schema = events(0).schema();
    let parsed = |condition| parse(condition, &schema).unwrap();
    assert_eq!(parsed("host like 'abc'"), parsed("host = 'abc'"));
    assert_eq!(parsed("host like 'a!%' escape '!'"), parsed("host = 'a%'"));
    let pattern = Pattern::new("a%", None).unwrap();
    assert_eq!(parsed("host like 'a%'"), Predicate::Like("host".into(), pattern));
    let error = parse("id like '1%'", &schema).unwrap_err();
    assert_eq!(error.to_string(), "column id is Int64, which '1%' is not");
}

/// Where the bounds of a block and its nulls say that every row matches, its pages are not read: 200,000 events in two files.
#[test]
fn what_bounds_prove_is_not_read() {
    let folder = Scratch::on_disk("certain");
    let batch = events(ROWS);
    let half = ROWS as usize / 2;
    let halves = [batch.slice(0, half), batch.slice(half, half)];
    let index = index_files(&folder, &[("a", halves[0].clone()), ("b", halves[1].clone())]);
    let indexed = Indexed::open(&index).unwrap();
    // The most rows that are compared: those of some blocks of 64 rows at the ends of a range.
    let cases = [
        ("id >= 1000000", 0),
        ("id < 1300000", 3 * 512),
        ("not (id >= 1300000)", 3 * 512),
        ("id != 1300000", 512),
        ("id is not null", 0),
        ("id between 1060000 and 1540000 or amount = -1", 4 * 512),
        ("time >= '2023-11-15 00:00' and id is not null", 4 * 512),
        ("time < '2023-11-15' and host < 'host-099'", 4 * 512 + 512),
        ("id >= 1000000 and amount >= 20", ROWS as u64),
        ("not (id < 1000000 and amount < 20)", 12 * 512),
    ];
    for (condition, most) in cases {
        let predicate = parse(condition, &batch.schema()).unwrap();
        let wanted: Vec<Vec<u64>> =
            halves.iter().map(|half| matching_rows(&predicate, half)).collect();
        let mut search = indexed.find(&predicate, &[]).unwrap();
        search.count_only();
        let mut counts = vec![0; halves.len()];
        for found in &mut search {
            let (table, found) = found.unwrap();
            counts[table] += found.batch.num_rows();
        }
        let lengths: Vec<usize> = wanted.iter().map(Vec::len).collect();
        assert_eq!(counts, lengths, "{condition}");
        let did = search.explanation().tables;
        assert!(did.rows_verified <= most, "{condition}: {} rows compared", did.rows_verified);
        let pages = did.verify_reads.pages + did.verify_reads.cached_pages;
        assert_eq!(pages == 0, did.rows_verified == 0, "{condition}");

        let (mut rows, mut ids) = (vec![Vec::new(); halves.len()], Vec::new());
        let mut search = indexed.find(&predicate, &["id"]).unwrap();
        for found in &mut search {
            let (table, found) = found.unwrap();
            rows[table].extend(found.rows);
            ids.extend(found.batch.column(0).as_primitive::<Int64Type>().values().to_vec());
        }
        assert!(rows == wanted, "{condition}");
        let all = wanted[0].iter().copied().chain(wanted[1].iter().map(|row| row + half as u64));
        assert!(all.map(|row| 1_000_000 + 3 * row as i64).eq(ids), "{condition}");
        assert_eq!(search.explanation().tables.rows_verified, did.rows_verified, "{condition}");
    }
}

/// A block with one null or one NaN among values that match is compared: it may have a row that does not.
#[test]
fn a_null_or_nan_in_a_block_is_seen_by_a_count() {
    let folder = Scratch::on_disk("nulls");
    let rows = 64 * 512;
    let odd = 100 * 300 + 7;
    let column = |cell: &dyn Fn(i64) -> Option<f64>| -> ArrayRef {
        Arc::new((0..rows).map(cell).collect::<Float64Array>())
    };
    let batch = RecordBatch::try_from_iter([
        ("nulls", column(&|row| (row != odd).then_some(row as f64))),
        ("nans", column(&|row| Some(if row == odd { f64::NAN } else { row as f64 }))),
    ])
    .unwrap();
    let index = index_files(&folder, &[("a", batch.clone())]);
    let indexed = Indexed::open(&index).unwrap();
    let conditions = [
        "nulls >= 0",
        "nulls < 1e9",
        "not (nulls < 0)",
        "nulls is not null",
        "nulls is null or nulls >= 0",
        "nans >= 0",
        "nans < 1e9",
        "not (nans < 1e9)",
        "nans > 1e9 or nans <= 1e9",
        "nans is not null",
        "nulls >= 0 and nans < 1e9",
    ];
    for condition in conditions {
        let predicate = parse(condition, &batch.schema()).unwrap();
        let mut search = indexed.find(&predicate, &[]).unwrap();
        search.count_only();
        let count: usize = (&mut search).map(|found| found.unwrap().1.batch.num_rows()).sum();
        assert_eq!(count, matching_rows(&predicate, &batch).len(), "{condition}");
        let compared = search.explanation().tables.rows_verified;
        // NaN widens the bounds of a group of 64 blocks.
        assert!(compared <= 64 * 64, "{condition}: {compared} rows compared");
    }
}
