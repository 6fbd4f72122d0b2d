//! An index that follows a table of Iceberg or Delta: built from its current snapshot, and brought up to date later.
//!
//! ```text
//!  snapshot of the table      a  b  c           a  c' d            c' is c, with more rows deleted
//!                             │                 │
//!  index                      a  b  c  ──────►  a  c' d            d is read, b dropped, of c only the deletes change
//!                                      refresh
//! ```
//!
//! The new index replaces the old one as a whole, as after any change: it answers for one snapshot or the other.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};

use ironbloom_blocks::Params;

use crate::IndexBuilder;
use crate::build::{BuildProgress, NewTables, about_rows};
use crate::catalog::{self, DataFile, Snapshot, TableVersion, write_rows};
use crate::change::{is_worth_another, pause};
use crate::error::Error;
use crate::followed::Followed;
use crate::index::Index;
use crate::indexed::{layout_of, part_of, source_name, temporary_folder};
use crate::indexed_error::IndexedError;
use crate::layout::Layout;
use crate::location::Location;
use crate::lock::IndexLock;
use crate::reshape::NewColumn;
use crate::resources::Resources;
use crate::schema::{Column, columns_named, columns_of};
use crate::source::{Blob, SourceMeta};
use crate::table::{Table, TableError};

/// Indexes a table that has a list of its files: these columns, or all that can be indexed. The index will be saved as `file`. If
/// it is of the current version of the table, it follows it by [`refresh_index`]; if another one was asked for
/// ([`TableFormat::at`](crate::TableFormat::at)), it stays with that one.
///
/// Columns by which a Delta table is partitioned are not indexed: whole files are excluded by them.
///
/// # Errors
///
/// [`IndexedError::Catalog`] if the table cannot be read, or uses what is not supported.
pub fn index_followed_table(
    version: impl Into<TableVersion>,
    table: impl Into<Location>,
    columns: Option<&[String]>,
    params: Params,
    file: impl Into<Location>,
    resources: Resources,
    progress: &mut dyn FnMut(BuildProgress),
) -> Result<Index, IndexedError> {
    let (version, table, file) = (version.into(), &table.into(), &file.into());
    let snapshot = catalog::snapshot(&version, table)?;
    let mut followed = followed(&snapshot, source_name(table, file)?, None);
    followed.at = version.at;
    let schema = followed.schema();
    let wrong = |error| IndexedError::Indexing { path: table.into(), error };
    if let Some(names) = columns {
        columns_named(&schema, names).map_err(wrong)?;
        let key = |name: &String| followed.key_of(name).expect("it is known");
        followed.indexed = Some(names.iter().map(key).collect());
    }
    let columns = indexed_columns(&followed).map_err(wrong)?;
    let layout = Layout::Table(Box::new(followed));
    let reading = Reading { file, layout: &layout, rows_before: 0, resources };
    let files: Vec<&DataFile> = snapshot.files.iter().collect();
    let mut index = reading.index(&files, columns, params, progress)?;
    index.layout = layout.write();
    Ok(index)
}

/// What [`refresh_index`] has changed, or would change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refreshed {
    /// The snapshot that was indexed before: its id in Iceberg, its version in Delta.
    pub before: i64,
    /// The snapshot that is indexed now.
    pub now: i64,
    /// Files that were read, because they are new, or have a column that the index did not have.
    pub added: usize,
    /// Files that are not in the table any more.
    pub dropped: usize,
    /// Files of which other rows are deleted now.
    pub with_other_deletes: usize,
    /// Whether columns of the table were added, dropped, renamed or otherwise changed.
    pub columns_changed: bool,
}

impl Refreshed {
    /// Whether the index is up to date already.
    pub fn is_nothing(&self) -> bool {
        let before = Self { now: self.now, before: self.now, ..Self::default() };
        *self == before
    }
}

/// What to do about an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// Bring it up to date.
    Apply,
    /// Only say what would change.
    Check,
}

/// Brings the index that is saved as `file` up to date with the table that it follows, and returns what has changed. It is saved
/// by `save` (with [`IndexLock::save`]), unless nothing has changed or it is only checked.
///
/// New files are read before `lock` is called, so that others can use the index meanwhile. `table` is where the table is now, if
/// it is no longer where it was.
///
/// # Errors
///
/// [`IndexedError::NotFollowing`] if the index was not built from such a table, [`IndexedError::OneVersion`] if it stays with one
/// version of it, [`IndexedError::AnotherTable`] if there is another one now, and as [`index_followed_table`].
pub fn refresh_index<L: Borrow<IndexLock>>(
    file: impl Into<Location>,
    table: Option<&Location>,
    what: Refresh,
    resources: Resources,
    mut lock: impl FnMut() -> Result<L, Error>,
    mut save: impl FnMut(&L, &mut Index) -> Result<(), Error>,
    progress: &mut dyn FnMut(BuildProgress),
) -> Result<Refreshed, IndexedError> {
    let file = &file.into();
    let seen = Index::open(file)?;
    let mut changes = Changes::find(&seen, file, table, resources)?;
    if what == Refresh::Check || changes.refreshed.is_nothing() && table.is_none() {
        return Ok(changes.refreshed);
    }
    let mut more = Some(changes.read(&seen, progress)?);
    for number in 1.. {
        let lock = lock()?;
        let mut index = lock.borrow().open()?;
        let rows = match more.take().filter(|_| seen.is_same_state(&index)) {
            Some(rows) => rows,
            // Somebody else was faster, with this snapshot or an older one.
            None => {
                changes = Changes::find(&index, file, table, resources)?;
                changes.read(&index, progress)?
            }
        };
        changes.apply(&mut index, rows)?;
        match save(&lock, &mut index) {
            Ok(()) => return Ok(changes.refreshed),
            Err(error) if is_worth_another(&error, file, number) => {
                drop(lock);
                pause(number);
            }
            Err(error) => return Err(error.into()),
        }
    }
    unreachable!("the last one returns")
}

/// What an index remembers of this snapshot.
fn followed(snapshot: &Snapshot, path: String, indexed: Option<Vec<String>>) -> Followed {
    let (table_id, shape) = (snapshot.table_id.clone(), snapshot.shape.clone());
    Followed { path, snapshot: snapshot.id, at: None, table_id, shape, indexed }
}

/// The columns that an index on this table has.
fn indexed_columns(followed: &Followed) -> Result<Vec<Column>, Error> {
    let schema = followed.schema();
    let mut columns = match &followed.indexed {
        None => columns_of(&schema)?,
        Some(keys) => {
            let fields = schema.fields().iter();
            let chosen = fields.filter(|field| keys.iter().any(|key| key == followed.key(field)));
            let names: Vec<&String> = chosen.map(|field| field.name()).collect();
            columns_named(&schema, &names)?
        }
    };
    let constant = followed.constant_schema();
    columns.retain(|column| constant.field_with_name(&column.name).is_err());
    Ok(columns)
}

/// How files are read.
struct Reading<'a> {
    /// The index.
    file: &'a Location,
    layout: &'a Layout,
    /// That are indexed already.
    rows_before: u64,
    resources: Resources,
}

impl Reading<'_> {
    fn open(&self, file: &DataFile) -> Result<Table, IndexedError> {
        let wrong = || TableError::View {
            path: file.path.clone(),
            what: "a value of its partition is not of the type of its column".to_owned(),
        };
        let view = self.layout.view(&file.part, Default::default()).ok_or_else(wrong)?;
        Ok(Table::open(&file.path)?.with_view(&view)?)
    }

    fn index(
        &self,
        files: &[&DataFile],
        columns: Vec<Column>,
        params: Params,
        progress: &mut dyn FnMut(BuildProgress),
    ) -> Result<Index, IndexedError> {
        let builder = IndexBuilder::new(columns, params)?;
        let builder = builder.with_resources(self.resources, temporary_folder(self.file));
        let tables: Vec<Location> = files.iter().map(|file| file.path.clone()).collect();
        let new_rows = match files.first().map(|first| self.open(first)).transpose()? {
            Some(first) => about_rows(&tables, first.rows(), first.identity().length),
            None => 0,
        };
        let builder = builder.with_expected_rows(self.rows_before + new_rows);
        let by_path: HashMap<&Location, &DataFile> =
            files.iter().map(|file| (&file.path, *file)).collect();
        let open = |path: &Location| {
            let file = by_path[path];
            let deleted = write_rows(&file.deleted()?);
            let meta = SourceMeta { view: file.part.write(), deleted, ..SourceMeta::default() };
            Ok((self.open(file)?, meta))
        };
        let tables = NewTables { tables: &tables, file: self.file, open: &open, grown: None };
        tables.read(builder, progress)
    }
}

/// What is different between an index and its table.
struct Changes {
    file: Location,
    resources: Resources,
    layout: Layout,
    snapshot: Snapshot,
    columns: Vec<NewColumn>,
    /// Numbers of files in the snapshot.
    added: Vec<usize>,
    /// Names of sources that stay, and what is new about them: the number of the file in the snapshot.
    kept: HashMap<String, Option<usize>>,
    refreshed: Refreshed,
}

impl Changes {
    fn find(
        index: &Index,
        file: &Location,
        table: Option<&Location>,
        resources: Resources,
    ) -> Result<Self, IndexedError> {
        let Layout::Table(old) = layout_of(index, file)? else {
            return Err(IndexedError::NotFollowing { path: file.into() });
        };
        if let Some(at) = old.at {
            return Err(IndexedError::OneVersion { path: file.into(), at });
        }
        let before = file.folder().join(&old.path);
        let (place, snapshot) = match table {
            // Whoever names a file of metadata means that one.
            Some(table) => (table.clone(), catalog::snapshot(&old.format().into(), table)?),
            None => catalog::newest(old.format(), &before)?,
        };
        if let (Some(known), Some(found)) = (&old.table_id, &snapshot.table_id)
            && known != found
        {
            let (known, found) = (known.clone(), found.clone());
            return Err(IndexedError::AnotherTable { path: place, known, found });
        }
        let is_elsewhere = table.is_some() || place != before;
        let path = if is_elsewhere { source_name(&place, file)? } else { old.path.clone() };
        let new = followed(&snapshot, path, old.indexed.clone());
        let columns = new_columns(index.columns(), &old, &new)
            .map_err(|error| IndexedError::Indexing { path: place.clone(), error })?;
        let layout = Layout::Table(Box::new(new.clone()));
        let reading = Reading { file, layout: &layout, rows_before: 0, resources };
        let has_new_columns = columns.iter().any(|new| new.from.is_none());
        let sources: HashMap<&str, usize> = index
            .sources()
            .iter()
            .enumerate()
            .map(|(place, source)| (source.name(), place))
            .collect();
        let (mut added, mut kept) = (Vec::new(), HashMap::new());
        let mut with_other_deletes = 0;
        for (number, data) in snapshot.files.iter().enumerate() {
            let name = source_name(&data.path, file)?;
            let Some(&source) = sources.get(name.as_str()) else {
                added.push(number);
                continue;
            };
            if has_new_columns && has_one_of(&reading.open(data)?, &columns) {
                added.push(number);
                continue;
            }
            let part = part_of(&index.sources()[source])?;
            let changed = part.write() != data.part.write();
            with_other_deletes += usize::from(part.deletes != data.part.deletes);
            kept.insert(name, changed.then_some(number));
        }
        let names: HashSet<&str> = index.sources().iter().map(|source| source.name()).collect();
        let was_added = added.iter().map(|&number| &snapshot.files[number].path);
        let read_again = was_added.filter(|&path| {
            source_name(path, file).is_ok_and(|name| names.contains(name.as_str()))
        });
        let dropped = index.sources().len() - kept.len() - read_again.count();
        // The shape may differ although the index has the same columns: in a member of a struct, or a column that is not indexed.
        let columns_changed = old.shape != new.shape
            || columns.len() != index.columns().len()
            || columns.iter().enumerate().any(|(place, new)| {
                new.from != Some(place) || new.column.name != index.columns()[place].name
            });
        let refreshed = Refreshed {
            before: old.snapshot,
            now: snapshot.id,
            added: added.len(),
            dropped,
            with_other_deletes,
            columns_changed,
        };
        let file = file.to_owned();
        Ok(Self { file, resources, layout, snapshot, columns, added, kept, refreshed })
    }

    /// Indexes the files that must be read.
    fn read(
        &self,
        index: &Index,
        progress: &mut dyn FnMut(BuildProgress),
    ) -> Result<Index, IndexedError> {
        let reading = Reading {
            file: &self.file,
            layout: &self.layout,
            rows_before: index.sources().iter().map(|source| source.rows).sum(),
            resources: self.resources,
        };
        let files: Vec<&DataFile> =
            self.added.iter().map(|&number| &self.snapshot.files[number]).collect();
        let columns = self.columns.iter().map(|new| new.column.clone()).collect();
        reading.index(&files, columns, index.params(), progress)
    }

    fn apply(&self, index: &mut Index, more: Index) -> Result<(), IndexedError> {
        let keep: Vec<bool> =
            index.sources().iter().map(|source| self.kept.contains_key(source.name())).collect();
        index.retain(|place| keep[place]);
        index.reshape(self.columns.clone())?;
        for source in &mut index.sources {
            let Some(&Some(number)) = self.kept.get(source.name()) else { continue };
            let file = &self.snapshot.files[number];
            source.view = file.part.write();
            source.deleted = Blob::Owned(write_rows(&file.deleted()?));
        }
        index.append(more)?;
        index.layout = self.layout.write();
        Ok(())
    }
}

/// The columns that an index should have now, and where they are in it.
fn new_columns(now: &[Column], old: &Followed, new: &Followed) -> Result<Vec<NewColumn>, Error> {
    let keys: Vec<Option<String>> = now.iter().map(|column| old.key_of(&column.name)).collect();
    let columns = indexed_columns(new)?;
    let column = |column: Column| {
        let key = new.key_of(&column.name);
        let from = keys.iter().position(|known| key.is_some() && *known == key);
        // Of another kind, its values are other ones: it must be read again.
        let from = from.filter(|&place| now[place].kind == column.kind);
        NewColumn { column, from }
    };
    Ok(columns.into_iter().map(column).collect())
}

/// Whether a file has one of the new columns, so that it must be read.
fn has_one_of(table: &Table, columns: &[NewColumn]) -> bool {
    let new = columns.iter().filter(|new| new.from.is_none());
    new.into_iter().any(|new| !table.lacks(&new.column.name))
}
