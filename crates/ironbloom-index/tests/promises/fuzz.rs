//! Random tables of several writers, random conditions: rows and values are those that DuckDB finds.
//!
//! tests/foreign/fuzz.py writes the tables and asks DuckDB. Like the tables of foreign_writers.rs it needs IRONBLOOM_PYTHON.
//! IRONBLOOM_FUZZ=SEED,TABLES,CONDITIONS asks more than the fixed ones here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use ironbloom_index::{Index, Indexed, Params, index_more_tables, index_tables, parse};
use ironbloom_testing::{Scratch, python};

use crate::common::canonical::canonical;
use crate::common::naive::value;
use crate::foreign_writers::script;

/// A table of the script: its files, and what was asked.
struct Asked<'a> {
    block_rows: u32,
    files: Vec<&'a str>,
    questions: Vec<Question<'a>>,
}

struct Question<'a> {
    condition: &'a str,
    shown: Vec<&'a str>,
    /// The id of each row, and what is shown of it.
    rows: Vec<&'a str>,
}

fn parts(text: &str, separator: char) -> Vec<&str> {
    text.split(separator).filter(|part| !part.is_empty()).collect()
}

fn read(expected: &str) -> Vec<Asked<'_>> {
    let mut tables: Vec<Asked<'_>> = Vec::new();
    for line in expected.lines() {
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["T", block_rows, files] => tables.push(Asked {
                block_rows: block_rows.parse().unwrap(),
                files: parts(files, ';'),
                questions: Vec::new(),
            }),
            ["Q", condition, shown, rows] => {
                let (shown, rows) = (parts(shown, ','), parts(rows, ';'));
                let question = Question { condition, shown, rows };
                tables.last_mut().unwrap().questions.push(question);
            }
            _ => panic!("{line}"),
        }
    }
    tables
}

fn shown(batch: &RecordBatch) -> Vec<String> {
    let row = |row: usize| {
        let cells = batch.columns().iter().map(|column| canonical(&value(column, row)));
        cells.collect::<Vec<_>>().join(",")
    };
    (0..batch.num_rows()).map(row).collect()
}

/// An index on all files: at once, or one after the other and compacted.
fn index(folder: &Path, asked: &Asked<'_>, number: usize) -> PathBuf {
    let file = folder.join(format!("{number}.ibx"));
    let paths: Vec<PathBuf> = asked.files.iter().map(|name| folder.join(name)).collect();
    let params = Params::new(asked.block_rows, 10).unwrap();
    if number.is_multiple_of(2) {
        index_tables(&paths, None, params, &file, &mut |_| {}).unwrap().save(&file).unwrap();
        return file;
    }
    let (first, more) = paths.split_first().unwrap();
    let first = std::slice::from_ref(first);
    index_tables(first, None, params, &file, &mut |_| {}).unwrap().save(&file).unwrap();
    for path in more {
        let mut index = Index::open(&file).unwrap();
        let path = std::slice::from_ref(path);
        index.append(index_more_tables(&index, path, &file, &mut |_| {}).unwrap()).unwrap();
        index.compact().unwrap();
        index.save(&file).unwrap();
    }
    file
}

/// Blocks that the index named, of all blocks.
fn ask(folder: &Path, asked: &Asked<'_>, number: usize) -> (u64, u64) {
    let indexed = Indexed::open(index(folder, asked, number)).unwrap();
    assert!(indexed.index().verify().is_empty());
    let schema = indexed.schema().unwrap();
    let (mut named, mut all) = (0, 0);
    for question in &asked.questions {
        let told = || format!("{:?}: {}", asked.files, question.condition);
        let predicate = parse(question.condition, &schema)
            .unwrap_or_else(|error| panic!("{}: {error}", told()));
        let select: Vec<&str> = ["id"].into_iter().chain(question.shown.iter().copied()).collect();
        let mut search = indexed.find(&predicate, &select).unwrap();
        let mut rows = Vec::new();
        // Ids go on from file to file, so they say where a file begins.
        let mut first_ids = BTreeMap::new();
        for part in &mut search {
            let (table, part) = part.unwrap_or_else(|error| panic!("{}: {error}", told()));
            let ids = part.batch.column(0).as_primitive::<Int64Type>();
            for (id, row) in ids.values().iter().zip(&part.rows) {
                let first = *first_ids.entry(table).or_insert(id - *row as i64);
                assert_eq!(first + *row as i64, *id, "{}", told());
            }
            rows.extend(shown(&part.batch));
        }
        assert_eq!(rows, question.rows, "{}", told());
        named += search.explanation().candidates;
        all += search.explanation().considered;
    }
    (named, all)
}

#[test]
fn random_tables_and_conditions_give_the_rows_and_values_that_duckdb_finds() {
    let Some(mut script) = script("fuzz.py", "random tables beside DuckDB") else { return };
    let given = std::env::var("IRONBLOOM_FUZZ").unwrap_or_else(|_| "16,40,25".into());
    let numbers: Vec<&str> = given.split(',').collect();
    let folder = Scratch::on_disk("fuzz");
    script.arg(folder.path()).args(&numbers);
    python::run(script);
    let expected = std::fs::read_to_string(folder.file("expected.txt")).unwrap();
    let tables = read(&expected);
    assert_eq!(tables.len().to_string(), numbers[1]);
    let (mut named, mut all, mut found) = (0, 0, 0);
    for (number, asked) in tables.iter().enumerate() {
        let (some, of) = ask(folder.path(), asked, number);
        (named, all) = (named + some, all + of);
        found += asked.questions.iter().filter(|question| !question.rows.is_empty()).count();
    }
    let questions: usize = tables.iter().map(|table| table.questions.len()).sum();
    println!("{questions} conditions, {found} with rows; {named} of {all} blocks were named");
    assert!(found > questions / 4, "{found} of {questions} conditions found rows");
    assert!(named < all, "nothing was excluded");
}
