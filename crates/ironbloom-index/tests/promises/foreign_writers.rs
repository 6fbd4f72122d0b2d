//! Tables that pyarrow and DuckDB wrote give the rows that DuckDB finds in them.
//!
//! Needs Python with both: `make test` makes such an environment and names its interpreter in IRONBLOOM_PYTHON. Without that the
//! test says so on standard error and passes.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::common::{find, read, reopen, scan_all};
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use ironbloom_index::{Indexed, Params, Table, index_tables, parse};
use ironbloom_testing::{Scratch, python};

/// A script of tests/foreign; without Python, says what is skipped.
pub(crate) fn script(name: &str, what: &str) -> Option<Command> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign").join(name);
    python::script(path, what)
}

/// The files of tests/foreign/write.py; `None` without Python.
fn foreign_files() -> Option<Scratch> {
    let mut script = script("write.py", "tables of pyarrow and DuckDB")?;
    let folder = Scratch::on_disk("foreign");
    script.arg(folder.path());
    python::run(script);
    Some(folder)
}

#[test]
fn files_of_pyarrow_and_duckdb_give_what_duckdb_finds() {
    let Some(folder) = foreign_files() else { return };
    let expected = std::fs::read_to_string(folder.file("expected.txt")).unwrap();
    let mut questions: BTreeMap<&str, Vec<(&str, Vec<u64>)>> = BTreeMap::new();
    for line in expected.lines() {
        let [file, condition, ids] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let ids =
            ids.split(',').filter(|id| !id.is_empty()).map(|id| id.parse().unwrap()).collect();
        questions.entry(file).or_default().push((condition, ids));
    }
    assert!(questions.len() > 20, "only {} files", questions.len());
    for (file, questions) in questions {
        let table = Table::open(folder.file(file)).unwrap();
        ask(file, &reopen(&table), &questions);
        ask_index(&folder.file(file), &questions);
        selects_are_what_a_scan_says(file, &table);
    }
}

fn ask(file: &str, table: &Table, questions: &[(&str, Vec<u64>)]) {
    const BLOCK: u64 = 512;
    for (condition, ids) in questions {
        let predicate = parse(condition, table.schema()).unwrap();
        let all: Vec<u64> = (0..table.rows().div_ceil(BLOCK)).collect();
        let mut right: Vec<u64> = ids.iter().map(|id| id / BLOCK).collect();
        right.dedup();
        for blocks in [all, right] {
            let found = find(table, &predicate, &blocks, BLOCK, &["id"]);
            assert_eq!(&found.rows, ids, "{file}: {condition}");
            let shown = found.batch.column(0).as_primitive::<Int64Type>();
            assert!(shown.values().iter().map(|&id| id as u64).eq(ids.iter().copied()), "{file}");
        }
    }
}

/// The same through an index on all columns that can have one.
fn ask_index(file: &Path, questions: &[(&str, Vec<u64>)]) {
    let index = file.with_extension("ibx");
    let tables = [file.to_owned()];
    index_tables(&tables, None, Params::default(), &index, &mut |_| {})
        .unwrap()
        .save(&index)
        .unwrap();
    let indexed = Indexed::open(&index).unwrap();
    for (condition, ids) in questions {
        let predicate = parse(condition, &indexed.schema().unwrap()).unwrap();
        let found = indexed.find(&predicate, &["id"]).unwrap();
        let rows: Vec<u64> = found.flat_map(|part| part.unwrap().1.rows).collect();
        assert_eq!(&rows, ids, "{}: {condition}", file.display());
    }
}

/// Of all columns, also the nested ones, and also without notes.
fn selects_are_what_a_scan_says(file: &str, table: &Table) {
    let whole = scan_all(table);
    let columns: Vec<usize> = (0..whole.num_columns()).collect();
    for table in [table, &reopen(table)] {
        for start in [0, 511, 6000, 19_990] {
            let batch = read(table, start..start + 10, &columns);
            assert_eq!(
                batch.columns(),
                whole.slice(start as usize, 10).columns(),
                "{file} at {start}"
            );
        }
    }
}
