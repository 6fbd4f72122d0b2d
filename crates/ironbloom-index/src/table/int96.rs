//! Timestamps of 96 bits, as Spark, Hive and Impala wrote them: a day, and the nanoseconds within it.
//!
//! In 64 bits, nanoseconds reach only from 1677 to 2262, and a file may hold 9999-12-31. So all values of such a column
//! are looked at once, when the table is indexed. A column is read in nanoseconds if they all fit, in microseconds if
//! that is exact for all of them, and is refused otherwise: no value is shown as another. (Spark writes microseconds, but
//! wraps around beyond the year 292,000; the file then says something else.)

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use parquet::basic::Type;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{Int96, Int96Type};
use parquet::errors::Result;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::SerializedPageReader;

use super::held_bytes::HeldBytes;

/// Values that are read at once.
const BATCH: usize = 1 << 12;

/// The columns whose timestamps must be read in microseconds, as numbers of the schema.
pub(super) struct Coarse(pub(super) Vec<usize>);

/// The name of a column that cannot be read exactly.
pub(super) struct Inexact(pub(super) String);

/// Looks at all timestamps of 96 bits.
pub(super) fn look(
    file: &HeldBytes,
    metadata: &ParquetMetaData,
) -> Result<std::result::Result<Coarse, Inexact>> {
    let schema = metadata.file_metadata().schema_descr();
    let mut coarse = Vec::new();
    for leaf in 0..schema.num_columns() {
        if schema.column(leaf).physical_type() != Type::INT96 {
            continue;
        }
        let mut seen = Seen::default();
        for group in 0..metadata.num_row_groups() {
            seen.look_at(file, metadata, group, leaf)?;
        }
        let top_level = schema.column(leaf).path().parts().len() == 1;
        if seen.beyond_nanoseconds && (seen.beyond_microseconds || !top_level) {
            return Ok(Err(Inexact(schema.column(leaf).path().string())));
        }
        if seen.beyond_nanoseconds {
            coarse.push(schema.get_column_root_idx(leaf));
        }
    }
    Ok(Ok(Coarse(coarse)))
}

/// The schema with these columns in microseconds.
pub(super) fn with_coarse(schema: &SchemaRef, coarse: &[usize]) -> SchemaRef {
    let fields = schema.fields().iter().enumerate().map(|(number, field)| {
        if !coarse.contains(&number) {
            return Arc::clone(field);
        }
        let zone = match field.data_type() {
            DataType::Timestamp(_, zone) => zone.clone(),
            _ => None,
        };
        let microseconds = DataType::Timestamp(TimeUnit::Microsecond, zone);
        Arc::new(Field::clone(field).with_data_type(microseconds))
    });
    let fields: Vec<_> = fields.collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// What the values of a column need.
#[derive(Default)]
struct Seen {
    beyond_nanoseconds: bool,
    beyond_microseconds: bool,
}

impl Seen {
    fn look_at(
        &mut self,
        file: &HeldBytes,
        metadata: &ParquetMetaData,
        group: usize,
        leaf: usize,
    ) -> Result<()> {
        let group = metadata.row_group(group);
        let chunk = group.column(leaf);
        // There are no pages then, whatever the footer says of their place.
        if group.num_rows() == 0 || chunk.num_values() == 0 {
            return Ok(());
        }
        let rows = group.num_rows() as usize;
        let pages = SerializedPageReader::new(Arc::new(file.clone()), chunk, rows, None)?;
        let column = chunk.column_descr_ptr();
        let mut reader = ColumnReaderImpl::<Int96Type>::new(column, Box::new(pages));
        let (mut definitions, mut repetitions, mut values) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let (rows, ..) = reader.read_records(
                BATCH,
                Some(&mut definitions),
                Some(&mut repetitions),
                &mut values,
            )?;
            values.iter().for_each(|value| self.add(value));
            if rows == 0 {
                return Ok(());
            }
            definitions.clear();
            repetitions.clear();
            values.clear();
        }
    }

    fn add(&mut self, value: &Int96) {
        let nanoseconds = nanoseconds(value);
        self.beyond_nanoseconds |= i64::try_from(nanoseconds).is_err();
        self.beyond_microseconds |=
            nanoseconds % 1000 != 0 || i64::try_from(nanoseconds / 1000).is_err();
    }
}

/// Nanoseconds since 1970, exactly.
fn nanoseconds(value: &Int96) -> i128 {
    const JULIAN_DAY_OF_1970: i128 = 2_440_588;
    const NANOSECONDS_OF_A_DAY: i128 = 86_400_000_000_000;
    let &[low, high, day] = value.data() else { unreachable!("an INT96 is three words") };
    let within = (u64::from(high) << 32 | u64::from(low)).cast_signed();
    (i128::from(day.cast_signed()) - JULIAN_DAY_OF_1970) * NANOSECONDS_OF_A_DAY + i128::from(within)
}
