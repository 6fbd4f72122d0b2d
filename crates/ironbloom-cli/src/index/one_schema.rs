//! Rows of several tables under one schema: the tables of an index may differ in the widths of numbers.

use std::sync::Arc;

use anyhow::{Result, bail};
use ironbloom_index::arrow::array::{ArrayRef, RecordBatch};
use ironbloom_index::arrow::datatypes::{Field, SchemaRef};
use ironbloom_index::converted;

/// Converts rows to the types of this schema, if that loses nothing. An integer that does not fit is an error, and so is
/// another type.
pub(super) fn in_schema(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| in_type(column, field));
    Ok(RecordBatch::try_new(Arc::clone(schema), columns.collect::<Result<_>>()?)?)
}

fn in_type(column: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    let (from, to) = (column.data_type(), field.data_type());
    let Some(fitted) = converted(column, field) else {
        bail!(
            "column {} is {to} in the first table and {from} in another, and its values do not fit; \
             --format jsonl and csv show them as they are",
            field.name()
        )
    };
    Ok(fitted)
}
