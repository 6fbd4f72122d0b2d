//! Time zones of columns whose unit Parquet does not have.
//!
//! A writer of Arrow keeps its schema in the file (`ARROW:schema`), zones included. Parquet has no timestamps in seconds, so that
//! such a column is stored in milliseconds, and the `parquet` crate then drops all that the schema says about it.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::arrow::{ARROW_SCHEMA_META_KEY, parquet_to_arrow_schema};
use parquet::basic::Type as Physical;
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

/// The schema with zones that its writer gave and the crate has dropped; `None` if there are none.
pub(super) fn with_zones(metadata: &ArrowReaderMetadata) -> Option<SchemaRef> {
    let file = metadata.metadata().file_metadata();
    let written = file.key_value_metadata()?;
    let is_moment = |of: &DataType| matches!(of, DataType::Timestamp(_, Some(_)));
    let fields = metadata.schema().fields();
    if !written.iter().any(|pair| pair.key == ARROW_SCHEMA_META_KEY)
        || !fields.iter().any(|field| is_moment(field.data_type()))
    {
        return None;
    }
    // A plain integer becomes whatever the schema says.
    let columns = file.schema_descr().root_schema().get_fields();
    let plain: Vec<TypePtr> = columns.iter().map(plain).collect::<Option<_>>()?;
    let root = Type::group_type_builder("schema").with_fields(plain).build().ok()?;
    let root = SchemaDescriptor::new(Arc::new(root));
    let said = parquet_to_arrow_schema(&root, Some(written)).ok()?;
    let mut has_changed = false;
    let zoned = fields.iter().zip(said.fields()).map(|(field, said)| {
        match (field.data_type(), said.data_type()) {
            (DataType::Timestamp(unit, Some(zone)), DataType::Timestamp(_, Some(given)))
                if zone != given =>
            {
                has_changed = true;
                let zoned = DataType::Timestamp(*unit, Some(Arc::clone(given)));
                Arc::new(Field::clone(field).with_data_type(zoned))
            }
            _ => Arc::clone(field),
        }
    });
    let zoned: Vec<Arc<Field>> = zoned.collect();
    let schema = Schema::new_with_metadata(zoned, metadata.schema().metadata().clone());
    has_changed.then(|| Arc::new(schema))
}

/// A column of 64-bit integers without a meaning; others as they are.
fn plain(column: &TypePtr) -> Option<TypePtr> {
    if !column.is_primitive() || column.get_physical_type() != Physical::INT64 {
        return Some(Arc::clone(column));
    }
    let info = column.get_basic_info();
    let plain = Type::primitive_type_builder(info.name(), Physical::INT64);
    Some(Arc::new(plain.with_repetition(info.repetition()).build().ok()?))
}
