//! Rows on standard output, in one of several forms.

use anyhow::Result;
use ironbloom_index::arrow::array::{Array, AsArray as _, RecordBatch};
use ironbloom_index::arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use ironbloom_index::arrow::util::display::{ArrayFormatter, FormatOptions};
use serde_json::{Map, Value};

use crate::{number, output};

/// Takes rows, batch by batch.
pub(super) trait Show {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()>;
    fn finish(&mut self) -> Result<()>;
}

/// Only their number.
#[derive(Default)]
pub(super) struct Count(u64);

impl Show for Count {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0 += batch.num_rows() as u64;
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        output::print(&format!("{}\n", self.0))
    }
}

/// The cells of a batch as text, row by row; what stands for null is the form's choice.
fn texts(batch: &RecordBatch, null: &str) -> Result<Vec<Vec<String>>> {
    let options = FormatOptions::default().with_null(null);
    let columns = batch
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column.as_ref(), &options))
        .collect::<Result<Vec<_>, _>>()?;
    let row = |i| columns.iter().map(|column| Ok(column.value(i).try_to_string()?)).collect();
    (0..batch.num_rows()).map(row).collect()
}

/// A table for people. All rows must be known before the first is printed.
pub(super) struct Aligned {
    rows: Vec<Vec<String>>,
    is_number: Vec<bool>,
}

impl Aligned {
    pub(super) fn new(names: &[&str]) -> Self {
        let head = names.iter().map(|&name| name.to_owned()).collect();
        Self { rows: vec![head], is_number: vec![false; names.len()] }
    }
}

impl Show for Aligned {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        self.is_number = batch.columns().iter().map(|c| c.data_type().is_numeric()).collect();
        for row in texts(batch, "–")? {
            // One line a row, whatever the text in it.
            self.rows.push(row.iter().map(|cell| in_line(cell)).collect());
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let width = |column: usize| {
            self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.is_number.len()).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).zip(&self.is_number);
            let padded = cells.map(|((cell, &width), &right)| {
                if right { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
            });
            text += padded.collect::<Vec<_>>().join("  ").trim_end();
            text.push('\n');
        }
        let count = self.rows.len() as u64 - 1;
        text +=
            &format!("\n{} {}\n", number::count(count), if count == 1 { "row" } else { "rows" });
        output::print(&text)
    }
}

/// Text that stays on its line.
fn in_line(text: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_debug().to_string() } else { c.into() };
    text.chars().map(escape).collect()
}

/// CSV with a line of names; null is an empty field.
pub(super) struct Csv {
    head: Option<Vec<String>>,
}

impl Csv {
    pub(super) fn new(names: &[&str]) -> Self {
        Self { head: Some(names.iter().map(|&name| name.to_owned()).collect()) }
    }

    fn write(&mut self, rows: Vec<Vec<String>>) -> Result<()> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        for row in self.head.take().into_iter().chain(rows) {
            writer.write_record(row)?;
        }
        output::write(&writer.into_inner()?)
    }
}

impl Show for Csv {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        self.write(texts(batch, "")?)
    }

    fn finish(&mut self) -> Result<()> {
        self.write(Vec::new())
    }
}

/// A JSON object a line. Numbers and booleans are such, null is null, everything else is text.
pub(super) struct JsonLines {
    names: Vec<String>,
}

impl JsonLines {
    pub(super) fn new(names: &[&str]) -> Self {
        Self { names: names.iter().map(|&name| name.to_owned()).collect() }
    }
}

impl Show for JsonLines {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let texts = texts(batch, "")?;
        let mut lines = String::new();
        for (i, row) in texts.into_iter().enumerate() {
            let fields = self.names.iter().zip(batch.columns()).zip(row);
            let object: Map<String, Value> = fields
                .map(|((name, column), text)| (name.clone(), json(column.as_ref(), i, text)))
                .collect();
            lines += &Value::Object(object).to_string();
            lines.push('\n');
        }
        output::print(&lines)
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// A cell for programs; a float that JSON cannot hold is text.
fn json(column: &dyn Array, row: usize, text: String) -> Value {
    macro_rules! number {
        ($type:ty) => {
            column.as_primitive::<$type>().value(row).into()
        };
    }
    if column.is_null(row) || matches!(column.data_type(), DataType::Null) {
        return Value::Null;
    }
    let value: Value = match column.data_type() {
        DataType::Boolean => column.as_boolean().value(row).into(),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Float32 => number!(Float32Type),
        DataType::Float64 => number!(Float64Type),
        _ => return text.into(),
    };
    if value.is_null() { text.into() } else { value }
}
