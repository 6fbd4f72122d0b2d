//! Timestamps of CSV with and without an offset.
//!
//! `2024-06-01T12:00:00+02:00` is a moment, and `2024-06-01T12:00:00` is what a clock shows somewhere. A column of the one kind has
//! the zone UTC, a column of the other has none, and a column of both is text: they cannot be compared.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, RecordBatch, make_array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use memchr::memmem;

/// The forms that the values of a column have had so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Offsets {
    with: bool,
    without: bool,
}

impl Offsets {
    pub(super) fn add(&mut self, text: &str) {
        let has = has_offset(text);
        self.with |= has;
        self.without |= !has;
    }

    /// The type of such a column that was taken to be of this one.
    pub(super) fn fitted(self, inferred: &DataType) -> DataType {
        match (inferred, self) {
            (DataType::Timestamp(unit, _), Self { with: true, without: false }) => {
                DataType::Timestamp(*unit, Some("UTC".into()))
            }
            (_, Self { with: true, without: true }) => DataType::Utf8,
            _ => inferred.clone(),
        }
    }
}

/// True if a date and time ends with `Z` or an offset such as `+02:00`.
fn has_offset(text: &str) -> bool {
    const DATE: usize = "2024-06-01".len();
    text.get(DATE..).is_some_and(|time| time.contains(['Z', 'z', '+', '-']))
}

/// True if a date and time is in a second 60: `2016-12-31T23:59:60`.
pub(super) fn is_leap_second(text: &str) -> bool {
    const MINUTES: usize = "2016-12-31T23:59".len();
    text.trim_start().get(MINUTES..).is_some_and(|seconds| seconds.starts_with(":60"))
}

/// False if no text in these bytes is in a second 60.
pub(super) fn may_have_leap_seconds(bytes: &[u8]) -> bool {
    memmem::find(bytes, b":60").is_some()
}

/// The schema as the reader of `arrow` takes it, which knows no names of zones; it makes moments in UTC of all offsets.
pub(super) fn without_zones(schema: &SchemaRef) -> SchemaRef {
    let is_zoned =
        |field: &Arc<Field>| matches!(field.data_type(), DataType::Timestamp(_, Some(_)));
    if !schema.fields().iter().any(is_zoned) {
        return Arc::clone(schema);
    }
    let plain = |field: &Arc<Field>| match field.data_type() {
        DataType::Timestamp(unit, Some(_)) => {
            let plain = DataType::Timestamp(*unit, None);
            Arc::new(field.as_ref().clone().with_data_type(plain))
        }
        _ => Arc::clone(field),
    };
    Arc::new(Schema::new(schema.fields().iter().map(plain).collect::<Vec<_>>()))
}

/// Rows that were read like that, with the types of the schema.
pub(super) fn with_zones(batch: RecordBatch, schema: &Schema) -> Result<RecordBatch, ArrowError> {
    let typed = |(array, field): (&ArrayRef, &Arc<Field>)| {
        let wanted =
            schema.field_with_name(field.name()).map_or(field.data_type(), Field::data_type);
        if array.data_type() == wanted || !matches!(wanted, DataType::Timestamp(_, Some(_))) {
            return Ok(Arc::clone(array));
        }
        let data = array.to_data().into_builder().data_type(wanted.clone()).build()?;
        Ok(make_array(data))
    };
    let columns = batch.columns().iter().zip(batch.schema_ref().fields());
    let columns = columns.map(typed).collect::<Result<Vec<_>, ArrowError>>()?;
    let fields = batch.schema_ref().fields().iter().zip(&columns).map(|(field, array)| {
        Arc::new(field.as_ref().clone().with_data_type(array.data_type().clone()))
    });
    let schema = Schema::new(fields.collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns)
}
