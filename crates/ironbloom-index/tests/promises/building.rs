//! A build takes the memory and the threads that it is given, and its result does not depend on them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::layouts;
use crate::common::random;
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use ironbloom_index::{
    BuildProgress, CsvOptions, Error, Index, IndexBuilder, Indexed, Params, Predicate, Resources,
    SourceMeta, Value, columns_of, index_tables_with,
};
use ironbloom_testing::TemporaryFile;

/// An index file of these tables, as bytes.
fn built(tables: &[PathBuf], resources: Resources) -> Vec<u8> {
    let file = TemporaryFile::new("ibx");
    build(tables, file.path(), resources).unwrap().save(file.path()).unwrap();
    std::fs::read(file.path()).unwrap()
}

fn build(tables: &[PathBuf], file: &Path, resources: Resources) -> Result<Index, String> {
    let (params, csv) = (Params::new(64, 8).unwrap(), CsvOptions::default());
    let index = index_tables_with(tables, None, params, file, &csv.into(), resources, &mut |_| {});
    index.map_err(|error| error.to_string())
}

/// Parquet of many layouts, with few and many row groups, and CSV.
fn tables() -> Vec<TemporaryFile> {
    let layouts = layouts();
    let rows = |number: u64| [0, 1, 700, 3000][(number % 4) as usize];
    let mut tables: Vec<TemporaryFile> = (0..)
        .zip(&layouts)
        .map(|(number, layout)| layout.write(&random::table(7 + number, rows(number))))
        .collect();
    tables.truncate(12);
    tables
}

fn paths(tables: &[TemporaryFile]) -> Vec<PathBuf> {
    tables.iter().map(|table| table.path().to_owned()).collect()
}

/// 200,000 rows: several parts, of which any can be the last to be read.
fn csv() -> TemporaryFile {
    use std::fmt::Write as _;
    let mut text = "a,b,c\n".to_owned();
    for row in 0..200_000u64 {
        let few = row % 7;
        writeln!(text, "{},{few},text {}", row * row % 100_003, row % 5_000).unwrap();
    }
    TemporaryFile::with("csv", text)
}

#[test]
fn the_bytes_of_an_index_do_not_depend_on_the_number_of_threads() {
    let (parquet, text) = (tables(), csv());
    // Of small tables, each thread takes some; a single one is divided among them.
    let parquet = paths(&parquet);
    for (tables, memories) in [
        (&parquet[..], [1 << 30, 0]),
        (&parquet[3..4], [1 << 30, 0]),
        (&paths(&[text]), [1 << 30, 1 << 20]),
    ] {
        for memory in memories {
            let resources = Resources::default().with_memory(memory);
            let one = built(tables, resources.with_threads(1));
            for threads in [2, 3, 8] {
                let several = built(tables, resources.with_threads(threads));
                assert!(several == one, "{threads} threads, {memory} bytes");
            }
        }
    }
}

#[test]
fn a_bound_of_memory_that_divides_no_table_changes_no_byte() {
    let text = csv();
    let tables = [text.path().to_owned()];
    let most = built(&tables, Resources::default());
    // Of this, nothing is spilled; of 16 MiB, every column is.
    assert!(built(&tables, Resources::default().with_memory(16 << 20)) == most);
    assert!(built(&tables, Resources::default().with_memory(256 << 20)) == most);
}

#[test]
fn segments_that_memory_made_necessary_are_merged_and_no_row_is_lost() {
    let text = csv();
    let file = TemporaryFile::new("ibx");
    let resources = Resources::default().with_memory(400 << 10);
    let mut index = build(&[text.path().to_owned()], file.path(), resources).unwrap();
    // 16 rows of 64 bytes each would make hundreds.
    let segments = index.info().segments;
    assert!((2..=8).contains(&segments), "{segments} segments");
    index.save(file.path()).unwrap();
    let indexed = Indexed::open(file.path()).unwrap();
    for row in (0..200_000u64).step_by(9973) {
        let value = |number: u64| Value::Int(number.into());
        let wanted = Predicate::And(vec![
            Predicate::Eq("a".into(), value(row * row % 100_003)),
            Predicate::Eq("b".into(), value(row % 7)),
            Predicate::Eq("c".into(), Value::Text(format!("text {}", row % 5_000))),
        ]);
        let found = indexed.find(&wanted, &[]).unwrap();
        let rows: Vec<u64> = found.flat_map(|part| part.unwrap().1.rows).collect();
        assert!(rows.contains(&row), "{row}: {rows:?}");
    }
}

fn numbers(rows: i64) -> RecordBatch {
    let column = |step: i64| Arc::new(Int64Array::from_iter_values((0..rows).map(|i| i * step)));
    RecordBatch::try_from_iter([("a", column(3) as ArrayRef), ("b", column(-7))]).unwrap()
}

/// A builder in this much memory that has taken three million rows.
fn full_builder(memory: u64) -> IndexBuilder {
    let batch = numbers(1 << 16);
    let resources = Resources::default().with_memory(memory);
    let mut builder = IndexBuilder::new(columns_of(&batch.schema()).unwrap(), Params::default())
        .unwrap()
        .with_resources(resources, std::env::temp_dir());
    for _ in 0..46 {
        builder.push(&batch).unwrap();
    }
    builder.end(SourceMeta::default()).unwrap();
    builder
}

#[test]
fn a_builder_holds_no_more_than_its_memory() {
    // Unbounded, the cells of all rows: two columns of four bytes.
    assert!(full_builder(1 << 30).peak_bytes() > 3_000_000 * 8);
    for memory in [8 << 20, 16 << 20] {
        let peak = full_builder(memory).peak_bytes();
        assert!((memory / 3..=memory).contains(&peak), "{peak} of {memory} bytes");
    }
}

#[test]
fn a_folder_without_room_for_the_temporary_file_is_named() {
    let missing = TemporaryFile::new("folder").path().to_owned();
    let batch = numbers(5000);
    let mut builder = IndexBuilder::new(columns_of(&batch.schema()).unwrap(), Params::default())
        .unwrap()
        .with_resources(Resources::default().with_memory(0), &missing);
    let error = builder.push(&batch).unwrap_err();
    assert!(
        matches!(&error, Error::Io { path, .. } if path.as_file() == Some(&*missing)),
        "{error}"
    );
    assert!(error.to_string().contains("temporary file"), "{error}");
}

#[test]
fn the_first_table_with_an_error_is_the_one_that_is_reported() {
    let held = tables();
    let mut tables = paths(&held);
    let damaged = TemporaryFile::with("parquet", b"PAR1 and nothing more");
    let missing = TemporaryFile::new("parquet").path().to_owned();
    tables.insert(5, damaged.path().to_owned());
    tables.insert(8, missing);
    let file = TemporaryFile::new("ibx");
    for threads in [1, 2, 4] {
        let resources = Resources::default().with_threads(threads);
        let error = build(&tables, file.path(), resources).map(|_| ()).unwrap_err();
        assert!(error.starts_with(&damaged.path().display().to_string()), "{error}");
    }
}

#[test]
fn progress_ends_with_all_rows_and_all_bytes() {
    let text = csv();
    let tables = [text.path().to_owned()];
    let file = TemporaryFile::new("ibx");
    let (params, csv) = (Params::default(), CsvOptions::default());
    let mut all: Vec<BuildProgress> = Vec::new();
    let resources = Resources::default();
    index_tables_with(&tables, None, params, file.path(), &csv.into(), resources, &mut |now| {
        all.push(now)
    })
    .unwrap();
    let bytes = std::fs::metadata(text.path()).unwrap().len();
    let last = all.last().unwrap();
    assert_eq!((last.rows, last.bytes, last.total_bytes), (200_000, bytes, bytes));
    assert!(all.is_sorted_by_key(|now| now.rows) && all.is_sorted_by_key(|now| now.bytes));
}
