//! The Bloom filters in Parquet files exclude row groups for columns that are not indexed, and never a row that matches.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;

use arrow::array::RecordBatch;
use ironbloom_index::{
    Indexed, OwnFilters, Params, Predicate, Table, Value, index_tables, kind_of,
};
use ironbloom_testing::{Random, Scratch, TemporaryFile, python};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader as _, SerializedFileReader};

use crate::common::naive::{matching_rows, value};
use crate::common::{random, scan_all};
use crate::foreign_writers::script;

/// A file with a filter of each column in each row group of 16 rows.
fn with_filters(batch: &RecordBatch) -> TemporaryFile {
    let properties = WriterProperties::builder()
        .set_bloom_filter_enabled(true)
        .set_bloom_filter_max_ndv(16)
        .set_max_row_group_row_count(Some(16))
        .build();
    let file = TemporaryFile::new("parquet");
    let output = File::create(file.path()).unwrap();
    let mut writer = ArrowWriter::try_new(output, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    file
}

/// An index on this column alone.
fn indexed(table: &Path, column: &str) -> (TemporaryFile, Indexed) {
    let file = TemporaryFile::new("ibx");
    let columns = [column.to_owned()];
    index_tables(&[table], Some(&columns), Params::default(), file.path(), &mut |_| {})
        .unwrap()
        .save(file.path())
        .unwrap();
    let indexed = Indexed::open(file.path()).unwrap();
    (file, indexed)
}

/// The rows that are found, and what the filters did.
fn found(indexed: &Indexed, predicate: &Predicate) -> (Vec<u64>, OwnFilters) {
    let mut search = indexed.find(predicate, &[]).unwrap();
    let mut rows = Vec::new();
    for part in &mut search {
        rows.extend(part.unwrap().1.rows);
    }
    (rows, search.explanation().tables.own_filters)
}

#[test]
fn any_predicate_finds_what_a_scan_finds() {
    let random = &mut Random(19);
    let names = random::comparable_columns();
    let mut did = OwnFilters::default();
    for _ in 0..40 {
        let batch = random::table(random.next(), 200);
        let batch = if random.one_in(2) { random::ordered(random, &batch) } else { batch };
        let table = with_filters(&batch);
        let column = &names[random.index(names.len())];
        let (_file, indexed) = indexed(table.path(), column);
        for _ in 0..60 {
            let predicate = random::predicate(random, &batch, 2);
            let (rows, filters) = found(&indexed, &predicate);
            assert_eq!(rows, matching_rows(&predicate, &batch), "{predicate:?}");
            did.add(filters);
        }
    }
    assert!(did.excluded > 1000 && did.excluded < did.asked, "{did:?}");
}

/// Equality with values of each column, one that is there and one that is not; which columns have been asked, and which of them
/// have excluded something.
fn ask_all_columns(path: &Path, random: &mut Random) -> BTreeMap<String, OwnFilters> {
    let batch = scan_all(&Table::open(path).unwrap());
    let (_file, indexed) = indexed(path, "id");
    let mut did = BTreeMap::new();
    for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
        if kind_of(field.data_type()).is_none() || field.name() == "id" {
            continue;
        }
        let name = field.name();
        let cell = |random: &mut Random| value(array, random.index(batch.num_rows()));
        for _ in 0..12 {
            let absent = match cell(random) {
                Value::Int(number) => Value::Int(number / 3 + 1),
                Value::Float(number) => Value::Float(number / 3.0 + 0.01),
                Value::Text(text) => Value::Text(text + "?"),
                Value::Date(days) => Value::Date(days - 1000),
                Value::Timestamp(moment) => Value::Timestamp(moment - 86_400_000_000_000),
                other => other,
            };
            let several = vec![cell(random), Value::Null, cell(random)];
            for predicate in [
                Predicate::Eq(name.clone(), cell(random)),
                Predicate::Eq(name.clone(), absent.clone()),
                Predicate::In(name.clone(), several),
                Predicate::Not(Box::new(Predicate::Eq(name.clone(), absent))),
            ] {
                let (rows, filters) = found(&indexed, &predicate);
                let path = path.display();
                assert_eq!(rows, matching_rows(&predicate, &batch), "{path}: {predicate:?}");
                did.entry(name.clone()).or_insert_with(OwnFilters::default).add(filters);
            }
        }
    }
    did
}

#[test]
fn filters_of_pyarrow_and_duckdb_exclude_row_groups_and_lose_no_row() {
    let Some(mut script) = script("filters.py", "Bloom filters of pyarrow and DuckDB") else {
        return;
    };
    let folder = Scratch::new("own-filters");
    script.arg(folder.path());
    python::run(script);
    let random = &mut Random(7);
    let mut files = 0;
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "parquet") {
            continue;
        }
        files += 1;
        let did = ask_all_columns(&path, random);
        let excluding =
            |(name, did): (&String, &OwnFilters)| (did.excluded > 0).then(|| name.clone());
        let excluding: BTreeSet<String> = did.iter().filter_map(excluding).collect();
        for name in ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64"] {
            assert!(excluding.contains(name), "{}: {name}: {did:?}", path.display());
        }
        for name in ["text", "large text", "binary", "day"] {
            assert!(excluding.contains(name), "{}: {name}: {did:?}", path.display());
        }
        // Writers do not agree on these, or did not.
        for name in ["bool", "price", "wide price"] {
            assert_eq!(did[name], OwnFilters::default(), "{}: {name}", path.display());
        }
        let is_int96 = path.to_string_lossy().contains("int96");
        assert_eq!(excluding.contains("us"), !is_int96, "{}: {did:?}", path.display());
    }
    assert_eq!(files, 8);
}

#[test]
fn a_damaged_filter_excludes_nothing() {
    let batch = random::table(3, 200);
    let table = with_filters(&batch);
    let predicate = Predicate::Eq("i32".into(), Value::Int(7));
    let wanted = matching_rows(&predicate, &batch);
    let filters_of = |path: &Path| found(&indexed(path, "bool").1, &predicate);
    let (rows, filters) = filters_of(table.path());
    assert_eq!(rows, wanted);
    assert!(!rows.is_empty() && filters.excluded > 0, "{filters:?}");
    // The headers of all filters: another algorithm, another hash, a forged length, nothing.
    let reader = SerializedFileReader::new(File::open(table.path()).unwrap()).unwrap();
    let offsets: Vec<i64> = reader
        .metadata()
        .row_groups()
        .iter()
        .flat_map(|group| group.columns().iter().filter_map(|chunk| chunk.bloom_filter_offset()))
        .collect();
    let (file, indexed) = indexed(table.path(), "bool");
    drop(indexed);
    for header in
        [&[0xff; 12][..], &[0; 12], &[0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f], b"\x15\x40\x1c\x2c"]
    {
        let mut table = File::options().write(true).open(table.path()).unwrap();
        for &offset in &offsets {
            table.seek(SeekFrom::Start(offset as u64)).unwrap();
            table.write_all(header).unwrap();
        }
        // Opened again: a table that is written to while it is open is an error.
        let indexed = Indexed::open(file.path()).unwrap();
        let (rows, filters) = found(&indexed, &predicate);
        assert_eq!((rows, filters), (wanted.clone(), OwnFilters::default()), "{header:?}");
    }
}

#[test]
fn indexed_columns_do_not_ask_and_others_only_candidates() {
    let batch = random::table(5, 400);
    let table = with_filters(&batch);
    let (_file, indexed) = indexed(table.path(), "i32");
    let eq = |name: &str, number| Predicate::Eq(name.into(), Value::Int(number));
    assert_eq!(found(&indexed, &eq("i32", 7)).1, OwnFilters::default());
    let all = found(&indexed, &eq("i16", 7)).1;
    assert_eq!(all.asked, 25, "400 rows, 16 in a row group");
    // One block of 512 rows has them all, so the index does not help; but a negation asks nothing.
    let not = Predicate::Not(Box::new(eq("i16", 7)));
    assert_eq!(found(&indexed, &not).1, OwnFilters::default());
    let nowhere = Predicate::And(vec![eq("i32", 1 << 40), eq("i16", 7)]);
    assert_eq!(found(&indexed, &nowhere), (vec![], OwnFilters::default()));
    let either = Predicate::Or(vec![eq("i16", 7), eq("i32", 7)]);
    assert_eq!(
        found(&indexed, &either).1,
        OwnFilters::default(),
        "an indexed part may be anywhere"
    );
}
