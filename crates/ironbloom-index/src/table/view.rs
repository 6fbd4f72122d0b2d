//! A file as a part of a larger table: some columns have one value in all of its rows, others have another name or type in the
//! file than in the table, and some rows have been deleted.
//!
//! ```text
//!  file      id: int32    kund: text                      rows 0 … 999
//!              │            │         (not in the file)
//!  view      id: int64    customer    country = 'SE'      rows 0 … 999 without 17 and 18
//! ```

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array, new_empty_array, new_null_array,
};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use roaring::RoaringTreemap;

use super::Table;
use super::conform::{Matching, NAME_IN_FILES, conform, field_id};

/// How a file is to be seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// The columns of the table, and how they are found in the file; `None` if the file's own are meant.
    pub(crate) columns: Option<(SchemaRef, Matching)>,
    /// The columns of all tables of an index, if these differ: columns that the file lacks are null, and those of another kind
    /// are converted.
    pub(crate) united: Option<SchemaRef>,
    /// Columns with one value, each as an array of one row. They replace columns of the same name in the file.
    pub(crate) constants: Vec<(String, ArrayRef)>,
    /// Rows that are not shown.
    pub(crate) deleted: RoaringTreemap,
}

impl View {
    /// Whether nothing is different from the file.
    pub(crate) fn is_plain(&self) -> bool {
        self.columns.is_none()
            && self.united.is_none()
            && self.constants.is_empty()
            && self.deleted.is_empty()
    }
}

/// A view of a file with these columns.
#[derive(Debug)]
pub(super) struct BoundView {
    schema: SchemaRef,
    columns: Vec<Seen>,
    by: Matching,
    pub(super) deleted: RoaringTreemap,
}

/// Where a column comes from.
#[derive(Debug)]
enum Seen {
    File(usize),
    /// One row, which is repeated.
    Constant(ArrayRef),
    /// The file lacks it: one null, which is repeated.
    Missing(ArrayRef),
}

impl BoundView {
    /// The error says which column cannot be seen like that.
    pub(super) fn new(view: &View, file: &Schema) -> Result<Self, String> {
        let constant = |name: &str| {
            let known = view.constants.iter().find(|(known, _)| known == name);
            known.map(|(_, value)| Arc::clone(value))
        };
        let mut fields: Vec<Arc<Field>> = Vec::new();
        let mut columns = Vec::new();
        let mut by = Matching::Name;
        if let Some((schema, matching)) = &view.columns {
            by = *matching;
            if by == Matching::Id && file.fields().iter().all(|field| field_id(field).is_none()) {
                // Files that were made part of the table later; it then says how their columns are called.
                by = Matching::Name;
                if !schema.fields().iter().any(|field| field.metadata().contains_key(NAME_IN_FILES))
                {
                    return Err(
                        "its columns have no field ids, and the table has no mapping of names"
                            .to_owned(),
                    );
                }
            }
            for field in schema.fields() {
                fields.push(Arc::clone(field));
                columns.push(match (constant(field.name()), by.find(field, file.fields())) {
                    (Some(value), _) => Seen::Constant(value),
                    (None, Some(place)) => {
                        let empty = new_empty_array(file.field(place).data_type());
                        conform(&empty, field, by)
                            .map_err(|what| format!("column {}: {what}", field.name()))?;
                        Seen::File(place)
                    }
                    (None, None) => Seen::Missing(new_null_array(field.data_type(), 1)),
                });
            }
        } else {
            for (place, field) in file.fields().iter().enumerate() {
                let value = constant(field.name());
                fields.push(value.as_ref().map_or_else(
                    || of_its_kind(field, view.united.as_deref()),
                    |value| Arc::new(Field::new(field.name(), value.data_type().clone(), true)),
                ));
                columns.push(value.map_or(Seen::File(place), Seen::Constant));
            }
            for field in view.united.iter().flat_map(|schema| schema.fields()) {
                let is_known = fields.iter().any(|known| known.name() == field.name());
                if !is_known && constant(field.name()).is_none() {
                    fields.push(Arc::clone(field));
                    columns.push(Seen::Missing(new_null_array(field.data_type(), 1)));
                }
            }
            for (name, value) in &view.constants {
                if !fields.iter().any(|field| field.name() == name) {
                    fields.push(Arc::new(Field::new(name, value.data_type().clone(), true)));
                    columns.push(Seen::Constant(Arc::clone(value)));
                }
            }
        }
        let schema = Arc::new(Schema::new(fields));
        Ok(Self { schema, columns, by, deleted: view.deleted.clone() })
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(super) fn lacks(&self, column: &str) -> bool {
        let fields = self.schema.fields().iter().zip(&self.columns);
        let mut found = fields.filter(|(field, _)| field.name() == column);
        matches!(found.next(), Some((_, Seen::Missing(_))))
    }

    /// The columns of the file that these are read from, each once.
    pub(super) fn in_file(&self, columns: &[usize]) -> Vec<usize> {
        let mut found: Vec<usize> = Vec::new();
        for &column in columns {
            if let Seen::File(place) = self.columns[column]
                && !found.contains(&place)
            {
                found.push(place);
            }
        }
        found
    }

    /// These columns, of rows whose columns [in the file](Self::in_file) are in the batch.
    pub(super) fn seen(
        &self,
        columns: &[usize],
        batch: &RecordBatch,
    ) -> Result<RecordBatch, String> {
        let in_file = self.in_file(columns);
        let array = |column: &usize| match &self.columns[*column] {
            Seen::File(place) => {
                let at = in_file.iter().position(|known| known == place).expect("it was read");
                let field = self.schema.field(*column);
                conform(batch.column(at), field, self.by)
                    .map_err(|what| format!("column {}: {what}", field.name()))
            }
            Seen::Constant(value) | Seen::Missing(value) => Ok(repeated(value, batch.num_rows())),
        };
        let arrays = columns.iter().map(array).collect::<Result<Vec<_>, _>>()?;
        // A column that the table says has no nulls may have some in a file that lacks it.
        let field = |(&column, array): (&usize, &ArrayRef)| {
            let field = self.schema.field(column);
            Field::new(field.name(), array.data_type().clone(), true)
                .with_metadata(field.metadata().clone())
        };
        let fields: Vec<Field> = columns.iter().zip(&arrays).map(field).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
            .map_err(|error| error.to_string())
    }
}

impl Table {
    /// The same table as it is in the file.
    pub(crate) fn without_view(self) -> Self {
        Self { view: None, ..self }
    }

    /// Whether a row has been deleted, although the file has it.
    pub fn is_deleted(&self, row: u64) -> bool {
        self.view.as_ref().is_some_and(|view| view.deleted.contains(row))
    }

    /// Whether the file does not have a column of the view, so that it is null in all rows.
    pub(crate) fn lacks(&self, column: &str) -> bool {
        self.view.as_ref().is_some_and(|view| view.lacks(column))
    }

    /// Whether any row has been deleted.
    pub(crate) fn has_deleted_rows(&self) -> bool {
        self.view.as_ref().is_some_and(|view| !view.deleted.is_empty())
    }
}

/// A column of a file, in the type that it has in all tables together if its own is of another kind: no values, or integers
/// among floats. Within a kind, values keep the width of their file.
fn of_its_kind(field: &Arc<Field>, united: Option<&Schema>) -> Arc<Field> {
    let wanted = united.and_then(|united| united.field_with_name(field.name()).ok());
    let wanted = wanted.filter(|wanted| {
        let (from, to) = (field.data_type(), wanted.data_type());
        *from == DataType::Null || (from.is_integer() && *to == DataType::Float64)
    });
    wanted.map_or_else(|| Arc::clone(field), |wanted| Arc::new(wanted.clone()))
}

/// A batch without columns.
pub(super) fn rows_alone(rows: usize) -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)
        .expect("no columns have any number of rows")
}

fn repeated(value: &ArrayRef, rows: usize) -> ArrayRef {
    if value.is_null(0) {
        return new_null_array(value.data_type(), rows);
    }
    take(value, &UInt32Array::from(vec![0; rows]), None).expect("there is a first row")
}
