//! Rows on standard output, in one of several forms.

use std::io::{self, BufWriter, IsTerminal as _, Stdout};

use anyhow::{Context as _, Result, bail};
use ironbloom_index::arrow::array::RecordBatch;
use ironbloom_index::arrow::datatypes::SchemaRef;
use ironbloom_index::arrow::ipc::writer::StreamWriter;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde_json::{Map, Value};

use super::cell::{Cells, texts, values};
use super::one_schema::in_schema;
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
        for row in texts(batch)? {
            // One line per row, whatever its text.
            let cell = |cell: Option<String>| cell.map_or("–".to_owned(), |text| in_line(&text));
            self.rows.push(row.into_iter().map(cell).collect());
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

/// CSV with a header line. Null is an empty field, and empty text is `""`, as PostgreSQL and DuckDB read it.
pub(super) struct Csv {
    /// Lines that are not printed yet: the head, at first.
    text: String,
}

impl Csv {
    pub(super) fn new(names: &[&str]) -> Self {
        let mut text = String::new();
        for name in names {
            let start = text.len();
            text.push_str(name);
            end_field(&mut text, start);
        }
        end_line(&mut text);
        Self { text }
    }
}

/// Quotes the field that starts here and is not null, if it must be; and separates it from the next.
fn end_field(text: &mut String, start: usize) {
    let field = &text[start..];
    if field.is_empty() || field.bytes().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        let quoted = format!("\"{}\"", field.replace('"', "\"\""));
        text.truncate(start);
        text.push_str(&quoted);
    }
    text.push(',');
}

fn end_line(text: &mut String) {
    if text.ends_with(',') {
        text.pop();
    }
    text.push('\n');
}

impl Show for Csv {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = batch.columns().iter().zip(batch.schema_ref().fields());
        let columns = columns.map(|(column, field)| Ok((Cells::new(column)?, field.name())));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            for (cells, name) in &columns {
                let start = self.text.len();
                let is_null =
                    !cells.append(row, &mut self.text).with_context(|| format!("column {name}"))?;
                match is_null || cells.are_numbers() {
                    true => self.text.push(','),
                    false => end_field(&mut self.text, start),
                }
            }
            end_line(&mut self.text);
        }
        output::print(&self.text)?;
        self.text.clear();
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        output::print(&self.text)
    }
}

/// One JSON object per line.
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
        let mut lines = String::new();
        for row in values(batch)? {
            let object: Map<String, Value> = self.names.iter().cloned().zip(row).collect();
            lines += &Value::Object(object).to_string();
            lines.push('\n');
        }
        output::print(&lines)
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// An Arrow IPC stream, with types: for other programs.
pub(super) struct ArrowStream {
    writer: StreamWriter<BufWriter<Stdout>>,
    schema: SchemaRef,
}

impl ArrowStream {
    pub(super) fn new(schema: SchemaRef) -> Result<Self> {
        let writer = StreamWriter::try_new(binary_output()?, &schema)?;
        Ok(Self { writer, schema })
    }
}

impl Show for ArrowStream {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let batch = in_schema(batch, &self.schema)?;
        self.writer.write(&batch).context("standard output")
    }

    fn finish(&mut self) -> Result<()> {
        self.writer.finish().context("standard output")
    }
}

/// A Parquet file.
pub(super) struct ParquetFile {
    writer: Option<ArrowWriter<BufWriter<Stdout>>>,
    schema: SchemaRef,
}

impl ParquetFile {
    pub(super) fn new(schema: SchemaRef) -> Result<Self> {
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = ArrowWriter::try_new(binary_output()?, schema.clone(), Some(properties))?;
        Ok(Self { writer: Some(writer), schema })
    }
}

impl Show for ParquetFile {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let batch = in_schema(batch, &self.schema)?;
        let writer = self.writer.as_mut().expect("it is not finished");
        writer.write(&batch).context("standard output")
    }

    fn finish(&mut self) -> Result<()> {
        let writer = self.writer.take().expect("it is finished once");
        writer.close().map(|_| ()).context("standard output")
    }
}

/// Standard output for bytes that are not text.
fn binary_output() -> Result<BufWriter<Stdout>> {
    if io::stdout().is_terminal() {
        bail!("this form is for programs: send it to a file (> FILE) or a pipe");
    }
    Ok(BufWriter::with_capacity(1 << 16, io::stdout()))
}
