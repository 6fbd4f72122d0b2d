//! Index and tables together: whatever is built, appended, compacted, dropped, saved and opened again, the rows found are
//! those of a naive scan.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::naive::matching_rows;
use crate::common::random;
use crate::common::{layouts, other};
use arrow::array::{ArrayRef, Float32Array, Float64Array, RecordBatch};
use ironbloom_index::{
    CsvOptions, Index, Indexed, IndexedError, Params, Predicate, Resources, TableCheck, Value,
    index_more_tables, index_more_tables_with, index_tables, index_tables_with, parse,
};
use ironbloom_testing::{Random, TemporaryFile};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use proptest::prelude::*;

/// Tables in the index, with their files and what is in them.
struct Model {
    tables: Vec<(TemporaryFile, RecordBatch)>,
    file: TemporaryFile,
}

impl Model {
    fn add(&mut self, random: &mut Random) -> PathBuf {
        let layouts = layouts();
        let mut batch = random::table(random.next(), random.below(1500) as usize);
        if random.one_in(2) {
            batch = random::ordered(random, &batch);
        }
        let layout = &layouts[random.below(layouts.len() as u64) as usize];
        let table = layout.write(&batch);
        let path = table.path().to_owned();
        self.tables.push((table, batch));
        path
    }

    /// Opens the file and compares some answers.
    fn check(&self, random: &mut Random) -> Result<(), TestCaseError> {
        let indexed = Indexed::open(self.file.path()).unwrap();
        for _ in 0..12 {
            let (_, batch) = &self.tables[random.below(self.tables.len() as u64) as usize];
            let predicate = random::predicate(random, batch, 2);
            let mut found = vec![Vec::new(); self.tables.len()];
            for part in indexed.find(&predicate, &["i64"]).unwrap() {
                let (table, part) = part.unwrap();
                prop_assert_eq!(part.batch.num_rows(), part.rows.len());
                found[table].extend(part.rows);
            }
            let wanted: Vec<Vec<u64>> =
                self.tables.iter().map(|(_, batch)| matching_rows(&predicate, batch)).collect();
            prop_assert_eq!(found, wanted.clone(), "{:?}", predicate);
            let mut search = indexed.find(&predicate, &[]).unwrap();
            search.count_only();
            let mut counts = vec![0; self.tables.len()];
            for part in search {
                let (table, part) = part.unwrap();
                counts[table] += part.batch.num_rows();
            }
            let wanted: Vec<usize> = wanted.iter().map(Vec::len).collect();
            prop_assert_eq!(counts, wanted, "{:?}", predicate);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn whatever_happens_to_an_index_the_rows_are_those_of_a_naive_scan(
        seed: u64, block_bits in 0u32..9, selectivity in 1u32..14,
    ) {
        let random = &mut Random(seed);
        let mut model = Model { tables: Vec::new(), file: TemporaryFile::new("ibx") };
        let first = model.add(random);
        let Ok(params) = Params::new(1 << block_bits, selectivity) else { return Ok(()) };
        // Sometimes not all columns are indexed; conditions are on any.
        let names = random.one_in(2).then(|| vec!["i64".to_owned(), "text".into(), "f64".into()]);
        let file = model.file.path().to_owned();
        let csv = CsvOptions::default();
        // From everything in memory to every block in the temporary file.
        let resources = |random: &mut Random| {
            let memory = [1 << 30, 1 << 20, 30_000, 0][random.below(4) as usize];
            Resources::default().with_memory(memory).with_threads(1 + random.below(4) as usize)
        };
        index_tables_with(&[first], names.as_deref(), params, &file, &csv.clone().into(), resources(random), &mut |_| {})
            .unwrap().save(&file).unwrap();
        model.check(random)?;
        for _ in 0..4 {
            let mut index = Index::open(&file).unwrap();
            match random.below(3) {
                0 => {
                    let paths = [model.add(random), model.add(random)];
                    let resources = resources(random);
                    let more =
                        index_more_tables_with(&index, &paths, &file, &csv, resources, &mut |_| {});
                    index.append(more.unwrap()).unwrap();
                }
                1 => index.compact_within(resources(random), std::env::temp_dir()).unwrap(),
                _ if model.tables.len() > 1 => {
                    let gone = random.below(model.tables.len() as u64) as usize;
                    let name = index.sources()[gone].name().to_owned();
                    index.remove(&name).unwrap();
                    model.tables.remove(gone);
                }
                _ => {}
            }
            index.save(&file).unwrap();
            model.check(random)?;
        }
    }
}

#[test]
fn an_index_without_tables_is_refused_and_one_without_rows_is_not() {
    let file = TemporaryFile::new("ibx");
    let none = index_tables(&[] as &[PathBuf], None, Params::default(), file.path(), &mut |_| {});
    assert!(matches!(none, Err(IndexedError::NoTables)));
    let table = layouts()[0].write(&random::table(1, 0));
    let paths = [table.path().to_owned()];
    index_tables(&paths, None, Params::default(), file.path(), &mut |_| {})
        .unwrap()
        .save(file.path())
        .unwrap();
    let indexed = Indexed::open(file.path()).unwrap();
    assert_eq!(indexed.find(&Predicate::IsNull("i64".into()), &[]).unwrap().count(), 0);
    let misfit = indexed.find(&Predicate::Eq("i64".into(), Value::Text("x".into())), &[]);
    assert!(misfit.is_err(), "a value of another type is an error even if there are no rows");
}

// ------------------------------------------------------------------------------------------- what verifying tables finds

/// An index on these columns of a table, or on all.
fn index_on(table: &Path, columns: Option<&[&str]>) -> TemporaryFile {
    let file = TemporaryFile::new("ibx");
    let columns: Option<Vec<String>> =
        columns.map(|names| names.iter().map(|&name| name.to_owned()).collect());
    index_tables(&[table], columns.as_deref(), Params::default(), file.path(), &mut |_| {})
        .unwrap()
        .save(file.path())
        .unwrap();
    file
}

fn verify_tables(file: &TemporaryFile) -> TableCheck {
    Indexed::open(file.path()).unwrap().verify_tables(&mut |_| {})
}

/// Runs `check` while one byte of a file is another.
fn with_flipped(path: &Path, at: u64, check: impl FnOnce()) {
    let whole = std::fs::read(path).unwrap();
    let mut bytes = whole.clone();
    bytes[at as usize] ^= 0x10;
    std::fs::write(path, bytes).unwrap();
    check();
    std::fs::write(path, whole).unwrap();
}

#[test]
fn every_changed_page_of_an_indexed_column_is_found_by_reading_all() {
    for layout in layouts() {
        let table = layout.write(&random::table(7, 1200));
        let file = index_on(table.path(), None);
        let check = verify_tables(&file);
        assert!(check.errors.is_empty(), "{}: {:?}", layout.name, check.errors);
        let reader = SerializedFileReader::new(File::open(table.path()).unwrap()).unwrap();
        let index = Index::open(file.path()).unwrap();
        for group in reader.metadata().row_groups().iter().take(1) {
            for chunk in group.columns() {
                let name = chunk.column_path().string();
                if !index.columns().iter().any(|column| column.name == name) {
                    continue;
                }
                let (start, length) = chunk.byte_range();
                for at in [start + length / 2, start + length - 1] {
                    with_flipped(table.path(), at, || {
                        let check = verify_tables(&file);
                        let text = format!("{:?}", check.errors);
                        assert!(check.errors.len() == 1, "{}, {name}, {at}: {text}", layout.name);
                        assert!(text.contains(&name), "{}, {name}, {at}: {text}", layout.name);
                    });
                }
            }
        }
    }
}

#[test]
fn columns_that_are_not_indexed_are_compared_if_their_writer_made_checksums() {
    let table = TemporaryFile::with("parquet", other("plain-dict-uncompressed-checksum.parquet"));
    let file = index_on(table.path(), Some(&["long_field"]));
    let check = verify_tables(&file);
    assert!(check.errors.is_empty() && check.unchecked.is_empty(), "{check:?}");
    let reader = SerializedFileReader::new(File::open(table.path()).unwrap()).unwrap();
    let (start, length) = reader.metadata().row_group(0).column(1).byte_range();
    with_flipped(table.path(), start + length - 1, || {
        let check = verify_tables(&file);
        let text = format!("{:?}", check.errors);
        assert!(check.errors.len() == 1 && text.contains("binary_field"), "{text}");
        // So does a question that shows this column; one that does not, does not read it.
        let indexed = Indexed::open(file.path()).unwrap();
        let all = Predicate::And(Vec::new());
        let error = indexed.find(&all, &["binary_field"]).unwrap().find_map(Result::err);
        assert!(error.unwrap().to_string().contains("checksum of its writer"));
        assert!(indexed.find(&all, &["long_field"]).unwrap().all(|found| found.is_ok()));
    });
    // Our own writer makes none: such columns are named.
    let table = layouts()[0].write(&random::table(1, 100));
    let check = verify_tables(&index_on(table.path(), Some(&["i64"])));
    assert!(
        check.errors.is_empty() && check.unchecked[0].1.contains(&"text".to_owned()),
        "{check:?}"
    );
    assert!(!check.unchecked[0].1.contains(&"i64".to_owned()), "{check:?}");
}

// ------------------------------------------------------------------------------------------- files of different types

/// The rows of each table that satisfy a condition, typed by the first.
fn ask(tables: &[&TemporaryFile], condition: &str) -> Vec<Vec<u64>> {
    let file = TemporaryFile::new("ibx");
    let paths: Vec<PathBuf> = tables.iter().map(|table| table.path().to_owned()).collect();
    let params = Params::default();
    let mut index = index_tables(&paths, None, params, file.path(), &mut |_| {}).unwrap();
    index.save(file.path()).unwrap();
    let indexed = Indexed::open(file.path()).unwrap();
    let predicate = parse(condition, &indexed.schema().unwrap()).unwrap();
    let mut rows = vec![Vec::new(); tables.len()];
    for part in indexed.find(&predicate, &[]).unwrap() {
        let (table, part) = part.unwrap();
        rows[table].extend(part.rows);
    }
    rows
}

#[test]
fn files_of_different_float_widths_are_each_asked_in_their_own() {
    let write = |column: ArrayRef| {
        layouts()[0].write(&RecordBatch::try_from_iter([("x", column)]).unwrap())
    };
    let numbers = [0.5, 0.1, 0.3, f64::INFINITY, -0.0];
    let narrow = write(Arc::new(Float32Array::from_iter_values(numbers.map(|x| x as f32))));
    let wide = write(Arc::new(Float64Array::from_iter_values(numbers)));
    for tables in [[&narrow, &wide], [&wide, &narrow]] {
        let both = |rows: &[u64]| vec![rows.to_vec(); 2];
        assert_eq!(ask(&tables, "x = 0.1"), both(&[1]));
        assert_eq!(ask(&tables, "x in (0.1, 0.3)"), both(&[1, 2]));
        assert_eq!(ask(&tables, "x != 0.1"), both(&[0, 2, 3, 4]));
        assert_eq!(ask(&tables, "x <= 0.1"), both(&[1, 4]));
        assert_eq!(ask(&tables, "x > 0.1"), both(&[0, 2, 3]));
        assert_eq!(ask(&tables, "x = 0.5"), both(&[0]));
        assert_eq!(ask(&tables, "x = 0"), both(&[4]));
        assert_eq!(ask(&tables, "x > 1e300"), both(&[3]));
        assert_eq!(ask(&tables, "x = 1e300"), both(&[]));
    }
}

#[test]
fn a_column_that_is_null_in_the_first_files_gets_its_type_from_a_later_one() {
    let empty = TemporaryFile::with("csv", "id,n,t\n1,,\n2,,\n");
    let numbers = TemporaryFile::with("csv", "id,n,t\n3,5,\n4,,x\n");
    for tables in [[&empty, &numbers], [&numbers, &empty]] {
        let first = usize::from(std::ptr::eq(tables[0], &empty));
        let only = |row: u64| {
            let mut rows = vec![Vec::new(), Vec::new()];
            rows[first].push(row);
            rows
        };
        assert_eq!(ask(&tables, "n = 5"), only(0));
        assert_eq!(ask(&tables, "t = 'x'"), only(1));
        assert_eq!(ask(&tables, "n is null").concat().len(), 3);
    }
    // The same if the file comes later, or grows.
    let file = TemporaryFile::new("ibx");
    let path = file.path();
    let paths = [empty.path().to_owned()];
    let mut index = index_tables(&paths, None, Params::default(), path, &mut |_| {}).unwrap();
    index.save(path).unwrap();
    let mut index = Index::open(path).unwrap();
    std::fs::write(empty.path(), "id,n,t\n1,,\n2,,\n6,7,\n").unwrap();
    let both = [numbers.path().to_owned(), empty.path().to_owned()];
    let more = index_more_tables(&index, &both, path, &mut |_| {}).unwrap();
    index.append(more).unwrap();
    index.save(path).unwrap();
    let indexed = Indexed::open(path).unwrap();
    for (condition, wanted) in [("n = 5", 1), ("n = 7", 1), ("n is null", 3), ("t = 'x'", 1)] {
        let predicate = parse(condition, &indexed.schema().unwrap()).unwrap();
        let found = indexed.find(&predicate, &[]).unwrap();
        assert_eq!(
            found.map(|part| part.unwrap().1.rows.len()).sum::<usize>(),
            wanted,
            "{condition}"
        );
    }
    // Another type is still another type.
    let text = TemporaryFile::with("csv", "id,n,t\n8,many,\n");
    let more = index_more_tables(&index, &[text.path().to_owned()], path, &mut |_| {});
    assert!(more.is_err());
}
