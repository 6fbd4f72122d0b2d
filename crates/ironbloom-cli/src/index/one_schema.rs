//! Rows of several tables under one schema: the tables of an index may differ in the widths of numbers.
//!
//! Not by `arrow`'s `cast`: it knows every pair of types, which adds megabytes to the program.

use std::sync::Arc;

use anyhow::{Result, bail};
use ironbloom_index::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray as _, Float64Array, PrimitiveArray, RecordBatch,
    new_null_array,
};
use ironbloom_index::arrow::datatypes::{
    DataType, Field, Float32Type, Int8Type, Int16Type, Int32Type, Int64Type, SchemaRef, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};

/// The same rows with the types of this schema: nulls, integers of another width, and floats of 32 bits as 64. Anything
/// else, or an integer that does not fit, is an error.
pub(super) fn in_schema(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| in_type(column, field));
    Ok(RecordBatch::try_new(Arc::clone(schema), columns.collect::<Result<_>>()?)?)
}

fn in_type(column: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    let (from, to) = (column.data_type(), field.data_type());
    let fitted = match (from, to) {
        (from, to) if from == to => Some(Arc::clone(column)),
        (DataType::Null, to) => Some(new_null_array(to, column.len())),
        (DataType::Float32, DataType::Float64) => {
            let floats = column.as_primitive::<Float32Type>().iter();
            let wide: Float64Array = floats.map(|float| float.map(f64::from)).collect();
            Some(Arc::new(wide) as ArrayRef)
        }
        (_, to) => integers(column.as_ref()).and_then(|integers| of_type(&integers, to)),
    };
    let Some(fitted) = fitted else {
        bail!(
            "column {} is {to} in the first table and {from} in another, and its values do not fit; \
             --format jsonl and csv show them as they are",
            field.name()
        )
    };
    Ok(fitted)
}

type Integers = Vec<Option<i128>>;

fn integers(column: &dyn Array) -> Option<Integers> {
    Some(match column.data_type() {
        DataType::Int8 => wide::<Int8Type>(column),
        DataType::Int16 => wide::<Int16Type>(column),
        DataType::Int32 => wide::<Int32Type>(column),
        DataType::Int64 => wide::<Int64Type>(column),
        DataType::UInt8 => wide::<UInt8Type>(column),
        DataType::UInt16 => wide::<UInt16Type>(column),
        DataType::UInt32 => wide::<UInt32Type>(column),
        DataType::UInt64 => wide::<UInt64Type>(column),
        _ => return None,
    })
}

fn wide<T: ArrowPrimitiveType<Native: Into<i128>>>(column: &dyn Array) -> Integers {
    column.as_primitive::<T>().iter().map(|integer| integer.map(Into::into)).collect()
}

fn of_type(integers: &Integers, to: &DataType) -> Option<ArrayRef> {
    match to {
        DataType::Int8 => narrow::<Int8Type>(integers),
        DataType::Int16 => narrow::<Int16Type>(integers),
        DataType::Int32 => narrow::<Int32Type>(integers),
        DataType::Int64 => narrow::<Int64Type>(integers),
        DataType::UInt8 => narrow::<UInt8Type>(integers),
        DataType::UInt16 => narrow::<UInt16Type>(integers),
        DataType::UInt32 => narrow::<UInt32Type>(integers),
        DataType::UInt64 => narrow::<UInt64Type>(integers),
        _ => None,
    }
}

/// `None` if one does not fit.
fn narrow<T: ArrowPrimitiveType<Native: TryFrom<i128>>>(integers: &Integers) -> Option<ArrayRef> {
    let fitted = integers.iter().map(|integer| match integer {
        Some(integer) => T::Native::try_from(*integer).ok().map(Some),
        None => Some(None),
    });
    let fitted: Vec<Option<T::Native>> = fitted.collect::<Option<_>>()?;
    Some(Arc::new(fitted.into_iter().collect::<PrimitiveArray<T>>()))
}
