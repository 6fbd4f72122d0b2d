//! The tables of an index: opened when a query needs them, and closed when too many are open.
//!
//! An index may have more tables than a process may have open files, and a table that no query needs may be missing.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::index::Index;
use crate::indexed_error::IndexedError;
use crate::layout::{Layout, deleted_rows};
use crate::location::Location;
use crate::part::Part;
use crate::schema::{Column, type_of};
use crate::table::{Identity, Table, TableError, View};

/// Tables that stay open. Systems allow a process 256 open files or more.
const MAX_OPEN: usize = 128;

pub(crate) struct OpenTables {
    /// Names of tables are relative to this.
    folder: Location,
    /// By number, the one used last at the end.
    open: Mutex<Vec<(usize, Arc<Table>)>>,
}

impl OpenTables {
    pub(crate) fn new(folder: Location) -> Self {
        Self { folder, open: Mutex::default() }
    }

    /// A table, which stays open for the next query. It is the one that was indexed, as far as opening it shows.
    pub(crate) fn get(
        &self,
        index: &Index,
        layout: &Layout,
        number: usize,
    ) -> Result<Arc<Table>, IndexedError> {
        if let Some(table) = self.used_before(number) {
            return Ok(table);
        }
        // Not while the list is locked, because it takes long. If another thread does the same, one of the two is dropped.
        let table = match self.open(index, layout, number) {
            // Fewer may be open here than elsewhere.
            Err(error) if error.is_of_too_many_files() && self.close_half() => {
                return self.get(index, layout, number);
            }
            opened => Arc::new(opened?),
        };
        self.keep(number, &table);
        Ok(table)
    }

    /// Closes half of the tables, those that were not used for the longest time; false if none is open.
    fn close_half(&self) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let half = open.len().div_ceil(2);
        open.drain(..half).count() > 0
    }

    /// A table as it is now, compared with what was indexed by its content, not by its version.
    pub(crate) fn get_anew(
        &self,
        index: &Index,
        layout: &Layout,
        number: usize,
    ) -> Result<Arc<Table>, IndexedError> {
        let source = &index.sources()[number];
        let identity = Identity { length: source.bytes(), fingerprint: source.fingerprint() };
        let path = self.folder.join(source.name());
        let table = Table::open_known(path, identity, index.blob(number)?)?;
        let table = Arc::new(table.with_view(&self.view(index, layout, number)?)?);
        self.keep(number, &table);
        Ok(table)
    }

    fn keep(&self, number: usize, table: &Arc<Table>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(other, _)| *other != number);
        if open.len() == MAX_OPEN {
            open.remove(0);
        }
        open.push((number, Arc::clone(table)));
    }

    /// A table, which the caller closes.
    pub(crate) fn open(
        &self,
        index: &Index,
        layout: &Layout,
        number: usize,
    ) -> Result<Table, IndexedError> {
        let source = &index.sources()[number];
        let identity = Identity { length: source.bytes(), fingerprint: source.fingerprint() };
        let path = self.folder.join(source.name());
        let table = Table::open_version(path, identity, source.version(), index.blob(number)?)?;
        Ok(table.with_view(&self.view(index, layout, number)?)?)
    }

    /// How a table is seen.
    fn view(&self, index: &Index, layout: &Layout, number: usize) -> Result<View, IndexedError> {
        let source = &index.sources()[number];
        let wrong = || TableError::notes(&self.path(source.name()), "an invalid view");
        let deleted = deleted_rows(index.deleted(number)?).ok_or_else(wrong)?;
        let part = Part::read(source.view()).ok_or_else(wrong)?;
        Ok(layout.view(&part, deleted).ok_or_else(wrong)?)
    }

    /// Where a table of this name is.
    pub(crate) fn path(&self, name: &str) -> Location {
        self.folder.join(name)
    }

    /// Whether a table is an object in a bucket.
    pub(crate) fn is_object(&self, index: &Index, number: usize) -> bool {
        self.folder.join(index.sources()[number].name()).is_object()
    }

    fn used_before(&self, number: usize) -> Option<Arc<Table>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let place = open.iter().position(|(other, _)| *other == number)?;
        let used = open.remove(place);
        let table = Arc::clone(&used.1);
        open.push(used);
        Some(table)
    }
}

/// The schema of a table, with the types of the index or of the other tables for columns in which it has only nulls.
/// These are opened only if there is such a column.
pub(crate) fn with_types(
    schema: &SchemaRef,
    columns: &[Column],
    others: impl Iterator<Item = Arc<Table>> + Clone,
) -> SchemaRef {
    let is_null = |field: &Field| *field.data_type() == DataType::Null;
    if !schema.fields().iter().any(|field| is_null(field)) {
        return Arc::clone(schema);
    }
    let typed = |field: &Arc<Field>| {
        if !is_null(field) {
            return Arc::clone(field);
        }
        let mut others = others.clone().filter_map(|table| {
            let other = table.schema().field_with_name(field.name()).ok()?;
            (!is_null(other)).then(|| other.data_type().clone())
        });
        let other = others.next();
        let indexed = columns.iter().find(|column| column.name == *field.name());
        let data_type = other.or(indexed.map(|column| type_of(column.kind)));
        Arc::new(Field::new(field.name(), data_type.unwrap_or(DataType::Null), true))
    };
    Arc::new(Schema::new(schema.fields().iter().map(typed).collect::<Vec<_>>()))
}
