//! Lists of values that a column may have: lines of a file, or a column of a table.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use ironbloom_index::arrow::array::{Array, AsArray as _};
use ironbloom_index::arrow::datatypes::{DataType, Schema};
use ironbloom_index::{Condition, Literal, Predicate, Table};

use super::cell::texts;

/// Rows of a table read at a time.
const BATCH_ROWS: usize = 1 << 16;

/// The condition that a column has one of the values in a file. `column` may name the column of the file as well, if that is
/// another one: `user_id=id`.
pub(super) fn one_of(column: &str, file: &Path, schema: &Schema) -> Result<Predicate> {
    let (column, of_file) = match column.split_once('=') {
        Some((column, of_file)) if schema.field_with_name(column).is_ok() => {
            (column, Some(of_file))
        }
        _ => (column, None),
    };
    let values = match from_table(file, of_file.unwrap_or(column), of_file.is_some())? {
        Some(values) => values,
        None => lines(file)?,
    };
    let condition = Condition::In(column.to_owned(), values);
    condition.typed(schema).with_context(|| file.display().to_string())
}

/// The lines of a file, or of standard input, that are not empty.
fn lines(file: &Path) -> Result<Vec<Literal>> {
    let text = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin().lock()).context("standard input")?
    } else {
        std::fs::read_to_string(file).with_context(|| file.display().to_string())?
    };
    let lines = text.strip_prefix('\u{feff}').unwrap_or(&text).lines();
    Ok(lines.filter(|line| !line.is_empty()).map(|line| Literal::Text(line.to_owned())).collect())
}

/// The values of a column, if the file is a table that has it. Of CSV, that is known by its first line: a file without such a
/// column is a list of lines.
fn from_table(file: &Path, column: &str, is_named: bool) -> Result<Option<Vec<Literal>>> {
    let lower = file.to_string_lossy().to_lowercase();
    let is_parquet = [".parquet", ".pq"].iter().any(|end| lower.ends_with(end));
    let is_csv = [".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.zst", ".tsv.zst"]
        .iter()
        .any(|end| lower.ends_with(end));
    if !is_parquet && !is_csv {
        if is_named {
            bail!("{}: is not a table, so it has no column {column}", file.display());
        }
        return Ok(None);
    }
    let table = match Table::open(PathBuf::from(file)) {
        Err(_) if is_csv && !is_named && file.exists() => return Ok(None),
        table => table?,
    };
    let number = match (table.column(column), table.schema().fields().len()) {
        (Ok(number), _) => number,
        (Err(_), 1) if is_parquet => 0,
        (Err(_), _) if is_csv && !is_named => return Ok(None),
        (Err(error), _) => return Err(error.into()),
    };
    let mut values = Vec::new();
    for batch in table.scan(&[number], BATCH_ROWS)? {
        let batch = batch?;
        if let Some(bytes) = bytes(batch.column(0)) {
            values.extend(bytes);
            continue;
        }
        let cells = texts(&batch)?.into_iter().flatten().flatten();
        values.extend(cells.map(Literal::Text));
    }
    Ok(Some(values))
}

/// Values of a column of bytes, which are no text.
fn bytes(column: &dyn Array) -> Option<Vec<Literal>> {
    let literals = |values: &mut dyn Iterator<Item = Option<&[u8]>>| {
        values.flatten().map(|bytes| Literal::Bytes(bytes.to_vec())).collect()
    };
    Some(match column.data_type() {
        DataType::Binary => literals(&mut column.as_binary::<i32>().iter()),
        DataType::LargeBinary => literals(&mut column.as_binary::<i64>().iter()),
        DataType::BinaryView => literals(&mut column.as_binary_view().iter()),
        DataType::FixedSizeBinary(_) => literals(&mut column.as_fixed_size_binary().iter()),
        _ => return None,
    })
}
