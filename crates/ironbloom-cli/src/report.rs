//! Reports of commands, for people and for programs.
//!
//! A report is a list of records with named fields. A person gets an aligned table (or, for a single record, one
//! line per field); `--json` gets the same records with raw numbers.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::number;

/// One field: its value for programs, its text for people.
#[derive(Clone)]
pub(crate) struct Cell {
    value: Value,
    text: String,
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { value: Value::from(text.clone()), text }
    }

    pub(crate) fn count(value: u64) -> Self {
        Self { value: value.into(), text: number::count(value) }
    }

    pub(crate) fn bytes(value: u64) -> Self {
        Self { value: value.into(), text: number::bytes(value) }
    }

    pub(crate) fn rate(value: f64) -> Self {
        Self { value: value.into(), text: number::rate(value) }
    }

    /// A number with this many decimals.
    pub(crate) fn float(value: f64, decimals: usize) -> Self {
        Self { value: value.into(), text: format!("{value:.decimals$}") }
    }

    /// Replaces the words that people see for this value.
    pub(crate) fn saying(self, words: impl FnOnce(&str) -> String) -> Self {
        Self { text: words(&self.text), value: self.value }
    }

    /// A number, and how people read it.
    pub(crate) fn of(value: f64, text: String) -> Self {
        Self { value: value.into(), text }
    }

    pub(crate) fn yes_no(value: bool) -> Self {
        Self { value: value.into(), text: if value { "yes" } else { "–" }.to_owned() }
    }

    pub(crate) fn none(text: &str) -> Self {
        Self { value: Value::Null, text: text.to_owned() }
    }

    fn is_number(&self) -> bool {
        self.value.is_number() || self.value.is_null()
    }
}

/// A record: fields in the order in which they are shown.
pub(crate) type Record = Vec<(&'static str, Cell)>;

/// A JSON name from a column title: `bits/key` becomes `bits_per_key`.
fn json_name(title: &str) -> String {
    title.replace('/', " per ").replace('%', "percent").replace(' ', "_").to_lowercase()
}

/// The title for people: a time is shown with its unit, whereas programs need to know that it is in seconds.
fn shown(title: &str) -> &str {
    title.strip_suffix(" seconds").unwrap_or(title)
}

pub(crate) fn json_record(record: &Record) -> Value {
    let fields = record.iter().map(|(name, cell)| (json_name(name), cell.value.clone()));
    Value::Object(fields.collect::<Map<_, _>>())
}

pub(crate) fn json_records(records: &[Record]) -> Value {
    records.iter().map(json_record).collect()
}

/// One line per field, names padded.
pub(crate) fn text_record(record: &Record) -> String {
    let width = record.iter().map(|(name, _)| shown(name).chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, cell) in record {
        let _ = writeln!(text, "{:<width$}  {}", shown(name), cell.text);
    }
    text
}

/// A table with a heading; numbers are right-aligned. All records have the same fields. On a terminal that is too narrow for
/// the table, where its lines would be broken, each field has a line.
pub(crate) fn text_table(records: &[Record]) -> String {
    let room = terminal_size::terminal_size_of(std::io::stdout());
    table_within(records, room.map_or(usize::MAX, |(width, _)| usize::from(width.0)))
}

fn table_within(records: &[Record], room: usize) -> String {
    let Some(first) = records.first() else { return String::new() };
    let widths: Vec<usize> = (0..first.len())
        .map(|column| {
            let cells = records.iter().map(|record| record[column].1.text.chars().count());
            cells.chain([shown(first[column].0).chars().count()]).max().unwrap_or(0)
        })
        .collect();
    const GAP: usize = 2;
    if widths.iter().sum::<usize>() + GAP * (widths.len() - 1) > room {
        return records.iter().map(text_record).collect::<Vec<_>>().join("\n");
    }
    let right: Vec<bool> = (0..first.len())
        .map(|column| records.iter().all(|record| record[column].1.is_number()))
        .collect();
    let mut text = String::new();
    let mut line = |cells: Vec<&str>| {
        let padded = cells.iter().zip(widths.iter().zip(&right)).map(|(cell, (&width, &right))| {
            if right { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        let joined = padded.collect::<Vec<_>>().join(&" ".repeat(GAP));
        let _ = writeln!(text, "{}", joined.trim_end());
    };
    line(first.iter().map(|(name, _)| shown(name)).collect());
    for record in records {
        line(record.iter().map(|(_, cell)| cell.text.as_str()).collect());
    }
    text
}

/// The record as text, or as JSON if asked for.
pub(crate) fn show_record(record: &Record, json: bool) -> String {
    if json { format!("{:#}\n", json_record(record)) } else { text_record(record) }
}

/// The records as a table, or as JSON if asked for.
pub(crate) fn show_table(records: &[Record], json: bool) -> String {
    if json { format!("{:#}\n", json_records(records)) } else { text_table(records) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_aligns_text_left_and_numbers_right() {
        let records: Vec<Record> = vec![
            vec![("kind", Cell::text("bloom")), ("bits/key", Cell::float(9.59, 2))],
            vec![("kind", Cell::text("d-left")), ("bits/key", Cell::float(18.7, 2))],
        ];
        let table = "kind    bits/key\nbloom       9.59\nd-left     18.70\n";
        assert_eq!(table_within(&records, 16), table);
        let records_of_lines =
            "kind      bloom\nbits/key  9.59\n\nkind      d-left\nbits/key  18.70\n";
        assert_eq!(table_within(&records, 15), records_of_lines);
        assert_eq!(json_records(&records)[1]["bits_per_key"], 18.7);
    }
}
