//! Parquet files that others wrote, odd and damaged ones among them: each is indexed and gives what pyarrow reads, or is refused
//! for a reason that is known.
//!
//! Files are taken from wherever they are: tests/others, a folder of Apache's parquet-testing beside the repository
//! (`../shared/parquet`), those that come with pyarrow, and the folders in IRONBLOOM_PARQUET_FILES, separated by colons. Needs
//! IRONBLOOM_PYTHON. IRONBLOOM_PARQUET_TABLE names a file to write the outcomes to, as a table in Markdown.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arrow::array::{Array, RecordBatch};
use ironbloom_index::{Indexed, Params, Predicate, Table, Value, index_tables, kind_of};
use ironbloom_testing::{Scratch, python};

use crate::common::canonical::canonical;
use crate::common::naive::value;
use crate::common::scan_all;
use crate::foreign_writers::script;

const WHAT: &str = "Parquet files of others beside pyarrow";

/// Files that are refused, and why. pyarrow refuses the damaged and the encrypted ones, too.
const REFUSED: &[(&str, &str)] = &[
    ("bad-ARROW-GH-41321.parquet", "damaged: "),
    ("bad-ARROW-GH-45185.parquet", "damaged: "),
    ("bad-ARROW-RS-GH-6229-DICTHEADER.parquet", "outside the file"),
    ("bad-PARQUET-1481.parquet", "damaged: Unexpected Type -7"),
    ("encrypt_columns_and_footer.parquet.encrypted", "is encrypted"),
    ("encrypt_columns_and_footer_bloom_filter.parquet.encrypted", "is encrypted"),
    ("encrypt_columns_and_footer_disable_aad_storage.parquet.encrypted", "is encrypted"),
    ("external_key_material_java.parquet.encrypted", "is encrypted"),
    ("uniform_encryption.parquet.encrypted", "is encrypted"),
    // Nanoseconds and the year 290000 in one column; pyarrow rounds to microseconds if it is told to.
    ("int96_from_spark.parquet", "column a has timestamps (INT96) too far from 1970"),
    // Two gigabytes in one value of a map; pyarrow refuses it as well.
    ("large_string_map.brotli.parquet", "index overflow"),
    // pyarrow does not compare the checksums of pages unless it is told to.
    ("rle-dict-uncompressed-corrupt-checksum.parquet", "does not match the checksum"),
];

/// Reasons that any file may have.
const REASONS: &[&str] = &[
    // Nothing but lists, structs and maps, or nothing at all.
    "no columns to index",
    "has no columns",
    // A list of lists as an early writer wrote it, which the `parquet` crate does not read.
    "List type cannot be repeated",
];

/// What pyarrow says about a file.
#[derive(Default)]
struct Theirs {
    rows: usize,
    error: Option<String>,
    columns: Vec<(String, Vec<String>)>,
}

fn folders() -> Option<Vec<PathBuf>> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![crates.join("tests/others"), crates.join("../../../shared/parquet")];
    let code = "import pathlib, pyarrow; print(pathlib.Path(pyarrow.__file__).parent / 'tests/data/parquet')";
    let mut python = python::interpreter(WHAT)?;
    let run = python.args(["-c", code]).output().unwrap();
    folders.push(PathBuf::from(String::from_utf8(run.stdout).unwrap().trim()));
    let more = std::env::var("IRONBLOOM_PARQUET_FILES").unwrap_or_default();
    folders.extend(more.split(':').filter(|name| !name.is_empty()).map(PathBuf::from));
    Some(folders)
}

/// By name, each once.
fn files() -> Option<BTreeMap<String, PathBuf>> {
    let mut files = BTreeMap::new();
    for folder in folders()?.into_iter().filter(|folder| folder.is_dir()) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if name.contains(".parq") {
                files.insert(name, path);
            }
        }
    }
    Some(files)
}

fn ask_pyarrow(files: &BTreeMap<String, PathBuf>) -> Option<BTreeMap<PathBuf, Theirs>> {
    let folder = Scratch::on_disk("files");
    let out = folder.file("values.txt");
    let mut script = script("files.py", WHAT)?;
    script.arg(&out).args(files.values());
    python::run(script);
    let mut all: BTreeMap<PathBuf, Theirs> = BTreeMap::new();
    let mut current = PathBuf::new();
    for line in std::fs::read_to_string(out).unwrap().lines() {
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["F", path, rows] => {
                current = path.into();
                all.entry(path.into()).or_default().rows = rows.parse().unwrap();
            }
            ["E", path, error] => {
                all.entry(path.into()).or_default().error = Some(error.to_owned());
            }
            ["C", name, values] => {
                let values = values.split(';').filter(|value| !value.is_empty());
                let column = (name.to_owned(), values.map(str::to_owned).collect());
                all.get_mut(&current).unwrap().columns.push(column);
            }
            _ => panic!("{line}"),
        }
    }
    Some(all)
}

fn cells(batch: &RecordBatch, column: usize) -> Option<Vec<Value>> {
    let array = batch.column(column);
    kind_of(array.data_type())?;
    Some((0..array.len()).map(|row| value(array, row)).collect())
}

/// Compares all columns with pyarrow's, and some values of each with what the index finds. How many columns there were.
fn compare(path: &Path, theirs: &Theirs) -> Result<usize, String> {
    let table = Table::open(path).map_err(|error| error.to_string())?;
    let columns: Vec<usize> = (0..table.schema().fields().len()).collect();
    let batches = table.scan(&columns, 333).map_err(|error| error.to_string())?;
    batches.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    let batch = scan_all(&table);
    let mut compared = 0;
    if theirs.error.is_none() && batch.num_rows() != theirs.rows {
        return Err(format!("differs: {} rows instead of {}", batch.num_rows(), theirs.rows));
    }
    for (name, wanted) in &theirs.columns {
        let Ok(number) = table.column(name) else { continue };
        let Some(values) = cells(&batch, number) else { continue };
        let ours: Vec<String> = values.iter().map(canonical).collect();
        if ours != *wanted {
            return Err(format!("differs: column {name}"));
        }
        compared += 1;
    }
    find_again(path, &batch)?;
    Ok(compared)
}

/// Values of every column, looked up in an index.
fn find_again(path: &Path, batch: &RecordBatch) -> Result<(), String> {
    let folder = Scratch::on_disk("file");
    let file = folder.file("t.ibx");
    let params = Params::new(64, 10).unwrap();
    let mut index = match index_tables(&[path.to_owned()], None, params, &file, &mut |_| {}) {
        Ok(index) => index,
        Err(error) => return Err(error.to_string()),
    };
    index.save(&file).unwrap();
    let indexed = Indexed::open(&file).unwrap();
    for column in indexed.index().columns() {
        let number = batch.schema().index_of(&column.name).unwrap();
        let Some(values) = cells(batch, number) else { continue };
        for wanted in values.iter().step_by(values.len().div_ceil(6).max(1)) {
            let predicate = match wanted {
                Value::Null => Predicate::IsNull(column.name.clone()),
                value => Predicate::Eq(column.name.clone(), value.clone()),
            };
            let same = |value: &Value| match (value, wanted) {
                (Value::Float(a), Value::Float(b)) => a == b || a.is_nan() && b.is_nan(),
                (a, b) => a == b,
            };
            let right: Vec<u64> =
                (0..).zip(&values).filter(|(_, v)| same(v)).map(|(row, _)| row).collect();
            let search = indexed.find(&predicate, &[]).map_err(|error| error.to_string())?;
            let mut found = Vec::new();
            for part in search {
                found.extend(part.map_err(|error| error.to_string())?.1.rows);
            }
            assert_eq!(found, right, "{}: {predicate:?}", path.display());
        }
    }
    Ok(())
}

#[test]
fn files_of_others_give_what_pyarrow_reads_or_are_refused_for_a_reason() {
    let Some(files) = files() else { return };
    let theirs = ask_pyarrow(&files).unwrap();
    let mut lines = vec!["| file | outcome | pyarrow |".to_owned(), "|---|---|---|".to_owned()];
    let mut wrong = Vec::new();
    for (name, path) in &files {
        let theirs = &theirs[path];
        let outcome = compare(path, theirs);
        let said = theirs
            .error
            .as_ref()
            .map_or_else(|| format!("{} rows", theirs.rows), |e| format!("refuses: {e}"));
        let told = match &outcome {
            Ok(columns) => format!("indexed, {columns} columns compared"),
            Err(error) => {
                let error = error.replace(&path.display().to_string(), "…");
                let own =
                    REFUSED.iter().filter(|(known, _)| known == name).map(|(_, reason)| reason);
                if !own.chain(REASONS).any(|reason| error.contains(reason)) {
                    wrong.push(format!("{name}: {error}; pyarrow: {said}"));
                }
                error
            }
        };
        lines.push(format!("| {name} | {told} | {said} |"));
    }
    if let Some(table) = std::env::var_os("IRONBLOOM_PARQUET_TABLE") {
        std::fs::write(table, lines.join("\n") + "\n").unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
