//! Where a row is: `_file` and `_row`, which can be selected like columns.

use std::sync::Arc;

use anyhow::Result;
use ironbloom_index::arrow::array::{
    ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
};
use ironbloom_index::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use ironbloom_index::{Location, Match};

/// The table that a row is in.
const FILE: &str = "_file";
/// Its number there, counted from 0.
const ROW: &str = "_row";

/// Columns as they are asked for, of which some are read and others say where a row is.
pub(super) struct Places<'a> {
    asked: Vec<&'a str>,
    schema: &'a Schema,
}

impl<'a> Places<'a> {
    pub(super) fn new(asked: Vec<&'a str>, schema: &'a Schema) -> Self {
        Self { asked, schema }
    }

    /// True if this says where a row is. A column of this name is that column.
    fn is_place(&self, name: &str) -> bool {
        [FILE, ROW].contains(&name) && self.schema.field_with_name(name).is_err()
    }

    /// The columns that must be read.
    pub(super) fn read(&self) -> Vec<&'a str> {
        self.asked.iter().copied().filter(|name| !self.is_place(name)).collect()
    }

    /// The types of some of the columns that were asked for.
    pub(super) fn types(&self, names: &[&str]) -> Result<SchemaRef> {
        let field = |name: &&str| {
            Ok(match *name {
                FILE if self.is_place(FILE) => Field::new(FILE, DataType::Utf8, false),
                ROW if self.is_place(ROW) => Field::new(ROW, DataType::Int64, false),
                name => self.schema.field_with_name(name)?.clone(),
            })
        };
        Ok(Arc::new(Schema::new(names.iter().map(field).collect::<Result<Vec<_>>>()?)))
    }

    /// The rows that were read, with their places.
    pub(super) fn with_places(&self, found: &Match, table: &Location) -> Result<RecordBatch> {
        let mut read = found.batch.columns().iter().zip(found.batch.schema_ref().fields());
        if self.asked.iter().all(|name| !self.is_place(name)) {
            return Ok(found.batch.clone());
        }
        let rows = found.rows.len();
        let (mut fields, mut columns) = (Vec::new(), Vec::<ArrayRef>::new());
        for name in &self.asked {
            if !self.is_place(name) {
                let (column, field) = read.next().expect("every column that is read");
                fields.push(Arc::clone(field));
                columns.push(Arc::clone(column));
            } else if *name == FILE {
                let file = table.to_string();
                let file = file.strip_prefix("./").unwrap_or(&file);
                fields.push(Arc::new(Field::new(FILE, DataType::Utf8, false)));
                columns
                    .push(Arc::new(StringArray::from_iter_values(std::iter::repeat_n(file, rows))));
            } else {
                let numbers = found.rows.iter().map(|&row| row as i64);
                fields.push(Arc::new(Field::new(ROW, DataType::Int64, false)));
                columns.push(Arc::new(Int64Array::from_iter_values(numbers)));
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
    }
}
