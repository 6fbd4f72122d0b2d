//! An index and its tables together: files in, rows out.
//!
//! ```text
//!  build     tables ──► Index ──► t.ibx
//!  open      t.ibx ──► Index
//!  find      predicate ──► candidates (index) ──► rows (tables that have candidates, compared with what they were)
//! ```
//!
//! A table that is missing or has changed is an error for the questions whose answer may be in it, and for no others.
//!
//! Tables are remembered by their path relative to the folder of the index if they are in it, and by their full path if
//! not: a folder with both can be moved. So are objects, by their key relative to that of the index, or by their URL.

use std::borrow::Borrow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;

use crate::build::{BuildProgress, NewTables, about, about_rows};
use crate::catalog::TableFormat;
use crate::change::{is_worth_another, pause};
use crate::error::Error;
use crate::find::Report;
use crate::hive::{self, HiveOptions, Pair};
use crate::index::Index;
use crate::indexed_error::IndexedError;
use crate::layout::Layout;
use crate::location::Location;
use crate::lock::IndexLock;
use crate::open_tables::{OpenTables, with_types};
use crate::part::Part;
use crate::predicate::Predicate;
use crate::prune::{self, Group};
use crate::query::Unknown;
use crate::resources::Resources;
use crate::schema::{columns_named, columns_of};
use crate::search::{Explanation, Search, by_source};
use crate::source::{Source, SourceMeta};
use crate::table::{Compared, CsvOptions, Table, TableError, csv_options_in};
use crate::united::{United, united};
use crate::{Block, Candidates, IndexBuilder};
use ironbloom_blocks::Params;

/// Indexes whole tables: these columns of each, or all that can be indexed. `progress` is called every now and then. The index
/// will be saved as `file`.
pub fn index_tables(
    tables: &[impl Clone + Into<Location>],
    columns: Option<&[String]>,
    params: Params,
    file: impl Into<Location>,
    progress: &mut dyn FnMut(BuildProgress),
) -> Result<Index, IndexedError> {
    let (options, resources) = (ReadOptions::default(), Resources::default());
    index_tables_with(tables, columns, params, file, &options, resources, progress)
}

/// How tables are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadOptions {
    /// How CSV files are read.
    pub csv: CsvOptions,
    /// Whether names of folders are columns.
    pub hive: HiveOptions,
}

impl From<CsvOptions> for ReadOptions {
    fn from(csv: CsvOptions) -> Self {
        Self { csv, ..Self::default() }
    }
}

/// As [`index_tables`], with tables read by these options, and with this memory and these threads. What does not fit into memory
/// goes to a temporary file, without a name, in the folder of `file`.
pub fn index_tables_with(
    tables: &[impl Clone + Into<Location>],
    columns: Option<&[String]>,
    params: Params,
    file: impl Into<Location>,
    options: &ReadOptions,
    resources: Resources,
    progress: &mut dyn FnMut(BuildProgress),
) -> Result<Index, IndexedError> {
    let (tables, file) = (locations(tables), file.into());
    let folders = tables.iter().map(folders_of).collect::<Result<Vec<_>, _>>()?;
    let layout = Layout::of_folders(&options.hive, &folders)?;
    let united = United::of(&tables, &options.csv, None)?;
    let layout = if united.is_mixed { layout.with_united(united.schema.clone()) } else { layout };
    let reading = Reading { csv: &options.csv, layout: &layout, united: &united };
    let first = reading.open(&tables[0])?.0;
    let columns = match columns {
        Some(names) => columns_named(first.schema(), names),
        None => columns_of(first.schema()),
    };
    let mut columns = columns.map_err(|error| about(&first, error))?;
    // A file is excluded as a whole by what its folders say.
    columns.retain(|column| !layout.may_be_constant(&column.name));
    let rows = about_rows(&tables, first.rows(), first.identity().length);
    united.keep(&tables[0], first);
    let folder = temporary_folder(&file);
    let builder = IndexBuilder::new(columns, params)?.with_resources(resources, &folder);
    let builder = builder.with_expected_rows(rows);
    let open = |path: &Location| reading.open(path);
    let tables = NewTables { tables: &tables, file: &file, open: &open, grown: None };
    let mut index = tables.read(builder, progress)?;
    index.layout = layout.write();
    Ok(index)
}

/// A path, and what its folders say. The path is made absolute, but links are not resolved: their names may be meant.
fn folders_of(table: &Location) -> Result<(String, Vec<Pair>), IndexedError> {
    let full = match table.as_file() {
        Some(path) => std::path::absolute(path)
            .map_err(|error| TableError::Io { path: table.clone(), error })?
            .to_string_lossy()
            .into_owned(),
        None => table.to_string(),
    };
    Ok((table.to_string(), hive::pairs(&full)))
}

/// Indexes more tables, or the new rows of tables that have grown, to be [appended](Index::append) to an index that is saved
/// as `file`.
///
/// CSV is read like the CSV files of the index. (If those were read differently: like the first of them.)
pub fn index_more_tables(
    index: &Index,
    tables: &[impl Clone + Into<Location>],
    file: impl Into<Location>,
    progress: &mut dyn FnMut(BuildProgress),
) -> Result<Index, IndexedError> {
    let csv = remembered_options(index)?.unwrap_or_default();
    index_more_tables_with(index, tables, file, &csv, Resources::default(), progress)
}

/// The types of columns in folders, for the values of all tables, old and new.
fn fitted(layout: &Layout, indexes: &[&Index]) -> Result<Layout, IndexedError> {
    let mut parts = Vec::new();
    for source in indexes.iter().flat_map(|index| index.sources()) {
        parts.push((source.name(), part_of(source)?.values));
    }
    Ok(layout.fitted(parts.iter().map(|(name, values)| (*name, values.as_slice())))?)
}

/// What an index knows of a file without opening it.
pub(crate) fn part_of(source: &Source) -> Result<Part, IndexedError> {
    let wrong = || TableError::notes(&source.name().into(), "an invalid view");
    Ok(Part::read(source.view()).ok_or_else(wrong)?)
}

/// What the files of an index have in common.
pub(crate) fn layout_of(index: &Index, file: &Location) -> Result<Layout, IndexedError> {
    let wrong = || TableError::notes(file, "an unknown layout");
    Ok(Layout::read(&index.layout).ok_or_else(wrong)?)
}

/// As [`index_more_tables`], with new CSV files read by these options, and with this memory and these threads.
pub fn index_more_tables_with(
    index: &Index,
    tables: &[impl Clone + Into<Location>],
    file: impl Into<Location>,
    csv: &CsvOptions,
    resources: Resources,
    progress: &mut dyn FnMut(BuildProgress),
) -> Result<Index, IndexedError> {
    let (tables, file) = (locations(tables), file.into());
    let layout = layout_of(index, &file)?;
    if matches!(layout, Layout::Table(_)) {
        return Err(IndexedError::Following { path: file });
    }
    let known = match layout.united() {
        Some(known) => Some(known.clone()),
        None => file_schema(index, &file),
    };
    let united = United::of(&tables, csv, known)?;
    let layout = if united.is_mixed { layout.with_united(united.schema.clone()) } else { layout };
    let reading = Reading { csv, layout: &layout, united: &united };
    let folder = temporary_folder(&file);
    let builder = IndexBuilder::like(index)?.with_resources(resources, &folder);
    let builder = builder.with_expected_rows(rows_with(index, &tables));
    let open = |path: &Location| reading.open(path);
    let tables =
        NewTables { tables: &tables, file: &file, open: &open, grown: Some((index, &layout)) };
    let mut more = tables.read(builder, progress)?;
    more.layout = fitted(&layout, &[index, &more])?.write();
    Ok(more)
}

/// The columns of the files of an index, if one of them can be opened: all have the same.
fn file_schema(index: &Index, file: &Location) -> Option<SchemaRef> {
    let tables = OpenTables::new(file.folder());
    let plain = Layout::read(&[])?;
    let mut opened = (0..index.sources().len()).map(|number| tables.open(index, &plain, number));
    opened.find_map(|table| Some(Arc::clone(table.ok()?.schema())))
}

/// About how many rows an index will have with these tables.
pub(crate) fn rows_with(index: &Index, more: &[Location]) -> u64 {
    let rows: u64 = index.sources().iter().map(Source::rows).sum();
    let bytes = index.sources().iter().map(Source::bytes).sum();
    rows + about_rows(more, rows, bytes)
}

/// Adds tables, or the new rows of tables that have grown, to the index that is saved as `file`, and returns it as `save` has
/// saved it (with [`IndexLock::save`]). `csv` makes the options of new CSV files from those of the index.
///
/// The tables are read before `lock` is called, so that others can change the index meanwhile; the rows are then appended to
/// the changed index. Tables are read again only if those changes concern them.
pub fn append_tables<L: Borrow<IndexLock>>(
    file: impl Into<Location>,
    tables: &[impl Clone + Into<Location>],
    csv: impl Fn(CsvOptions) -> CsvOptions,
    resources: Resources,
    mut lock: impl FnMut() -> Result<L, Error>,
    mut save: impl FnMut(&L, &mut Index) -> Result<(), Error>,
    progress: &mut dyn FnMut(BuildProgress),
) -> Result<Index, IndexedError> {
    let file = file.into();
    let mut rows_of = |index: &Index| {
        let csv = csv(remembered_options(index)?.unwrap_or_default());
        index_more_tables_with(index, tables, &file, &csv, resources, progress)
    };
    let mut seen = Index::open(&file)?;
    let mut more = rows_of(&seen)?;
    for number in 1.. {
        let lock = lock()?;
        let mut index = lock.borrow().open()?;
        if !still_fits(&more, &seen, &index) {
            more = rows_of(&index)?;
        }
        let starts = more.starts();
        let before = layout_of(&index, &file)?;
        index.append(more)?;
        // Others may have added values of other types, and other columns.
        let mut layout = fitted(&layout_of(&index, &file)?, &[&index])?;
        if let Some(others) = before.united() {
            let both = layout.united().map_or_else(|| others.clone(), |own| united(others, own));
            layout = layout.with_united(both);
        }
        index.layout = layout.write();
        match save(&lock, &mut index) {
            Ok(()) => return Ok(index),
            Err(error) if is_worth_another(&error, &file, number) => {
                drop(lock);
                more = index.into_appended(&starts);
                seen = Index::open(&file)?;
                pause(number);
            }
            Err(error) => return Err(error.into()),
        }
    }
    unreachable!("the last one returns")
}

/// Whether rows that were indexed to be appended to `seen` can be appended to its current state.
fn still_fits(more: &Index, seen: &Index, now: &Index) -> bool {
    let state = |index: &Index, name: &str| {
        let source = &index.sources()[index.source(name)?];
        Some((source.bytes(), source.fingerprint(), source.rows()))
    };
    let unchanged = |source: &Source| state(seen, source.name()) == state(now, source.name());
    seen.is_same_state(now)
        || (seen.columns() == now.columns()
            && seen.params() == now.params()
            && more.sources().iter().all(unchanged))
}

/// How the first CSV file of an index was read; `None` if it has none.
pub fn remembered_options(index: &Index) -> Result<Option<CsvOptions>, IndexedError> {
    for source in 0..index.sources().len() {
        if let Some((options, _)) = csv_options_in(index.blob(source)?) {
            return Ok(Some(options));
        }
    }
    Ok(None)
}

/// How new tables are read.
struct Reading<'a> {
    csv: &'a CsvOptions,
    layout: &'a Layout,
    united: &'a United,
}

impl Reading<'_> {
    fn open(&self, path: &Location) -> Result<(Table, SourceMeta), IndexedError> {
        let (name, pairs) = folders_of(path)?;
        let part = self.layout.part(&name, &pairs)?;
        // Types of new values may not be known yet, and need not be: these columns are not indexed.
        let view = self.layout.fitted(std::iter::once((name.as_str(), pairs.as_slice())))?;
        let view = view.view(&part, Default::default());
        let view = view.ok_or_else(|| TableError::notes(path, "an invalid view"))?;
        let meta = SourceMeta { view: part.write(), ..SourceMeta::default() };
        Ok((self.united.open(path, self.csv)?.with_view(&view)?, meta))
    }
}

/// The name under which an index saved as `file` keeps a table.
pub fn source_name(
    table: impl Into<Location>,
    file: impl Into<Location>,
) -> Result<String, IndexedError> {
    let (table, folder) = (table.into(), file.into().folder());
    let Some(path) = table.as_file() else {
        let name = table.within(&folder).map(str::to_owned);
        return Ok(name.unwrap_or_else(|| table.to_string()));
    };
    let full = std::fs::canonicalize(path)
        .map_err(|error| TableError::Io { path: table.clone(), error })?;
    let name = match folder.as_file().map(std::fs::canonicalize) {
        Some(Ok(folder)) => full.strip_prefix(folder).unwrap_or(&full),
        _ => &full,
    };
    let name = name.to_str().map(str::to_owned);
    name.ok_or(IndexedError::Path { path: table.clone() })
}

fn locations(given: &[impl Clone + Into<Location>]) -> Vec<Location> {
    given.iter().cloned().map(Into::into).collect()
}

/// Where files that are gone with the process may be written for an index: in its folder, or among the temporary files of the
/// system if it is in a bucket.
pub fn temporary_folder(index: &Location) -> PathBuf {
    index.folder().as_file().map_or_else(std::env::temp_dir, Into::into)
}

/// An index with its tables, ready for queries. See the module documentation.
pub struct Indexed {
    pub(crate) index: Index,
    pub(crate) layout: Layout,
    pub(crate) tables: OpenTables,
}

impl Indexed {
    /// Opens an index. Its tables are opened when a question needs them.
    pub fn open(file: impl Into<Location>) -> Result<Self, IndexedError> {
        let file = file.into();
        let index = Index::open(&file)?;
        let layout = layout_of(&index, &file)?;
        Ok(Self { index, layout, tables: OpenTables::new(file.folder()) })
    }

    /// The index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// A table by its position in [`Index::sources`].
    ///
    /// # Errors
    ///
    /// [`IndexedError::Table`] if it is missing or has changed: it must be indexed again.
    ///
    /// # Panics
    ///
    /// If there is no such table.
    pub fn table(&self, number: usize) -> Result<Arc<Table>, IndexedError> {
        self.tables.get(&self.index, &self.layout, number)
    }

    /// Where a table is, by its position in [`Index::sources`].
    ///
    /// # Panics
    ///
    /// If there is no such table.
    pub fn location(&self, number: usize) -> Location {
        self.tables.path(self.index.sources()[number].name())
    }

    /// Names and types of columns: those of the first table that exists and is unchanged. A column in which it has only nulls
    /// has its type in other tables.
    ///
    /// # Errors
    ///
    /// What is wrong with the first table if there is no such table, and [`IndexedError::NoTables`] if there are none.
    pub fn schema(&self) -> Result<SchemaRef, IndexedError> {
        if let Some(schema) = self.layout.schema() {
            return Ok(schema);
        }
        let first = self.any_table()?;
        let others = (0..self.index.sources().len()).filter_map(|number| self.table(number).ok());
        Ok(with_types(first.schema(), self.index.columns(), others))
    }

    fn any_table(&self) -> Result<Arc<Table>, IndexedError> {
        let mut first_error = None;
        for number in 0..self.index.sources().len() {
            match self.table(number) {
                Ok(table) => return Ok(table),
                Err(error) if error.is_of_one_table() => {
                    first_error.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(first_error.unwrap_or(IndexedError::NoTables))
    }

    /// The blocks that may contain a matching row; no other block does. Columns that are not indexed may be in the predicate,
    /// too: they exclude no blocks, unless they have one value in all rows of a table.
    pub fn candidates(&self, predicate: &Predicate) -> Result<Candidates, IndexedError> {
        Ok(self.pruned(predicate)?.candidates)
    }

    /// The rows that match, table by table in the order of rows, with these columns. Columns that are not indexed may be in the
    /// predicate, too: they are compared, and exclude row groups of Parquet that have Bloom filters of them.
    pub fn find<'a>(
        &'a self,
        predicate: &Predicate,
        select: &[&str],
    ) -> Result<Search<'a>, IndexedError> {
        let start = Instant::now();
        let Pruned { candidates: Candidates { blocks, considered }, excluded_tables, groups } =
            self.pruned(predicate)?;
        let certain = self.certain(&blocks, groups);
        let explanation = Explanation {
            considered,
            candidates: blocks.len() as u64,
            excluded_tables,
            index_time: start.elapsed(),
            tables: Report::default(),
        };
        let (predicate, select) = (predicate.clone(), select.iter().map(|&s| s.into()).collect());
        let search = Search {
            indexed: self,
            predicate,
            select,
            left: by_source(&blocks),
            certain: by_source(&certain).into_iter().collect(),
            current: None,
            explanation,
            skipped: None,
            opened: 0,
            counts_only: false,
        };
        search.open_ahead()?;
        // A value or column that does not match is an error even if there is nothing to search. The index has checked those
        // that it knows.
        if search.left.is_empty()
            && !self.knows(&search.predicate, &search.select)
            && let Ok(table) = self.any_table()
        {
            search.within(table, Vec::new())?;
        }
        Ok(search)
    }

    /// Where matching rows may be.
    fn pruned(&self, predicate: &Predicate) -> Result<Pruned, IndexedError> {
        let tables = self.index.sources().len();
        let mut candidates = Candidates { blocks: Vec::new(), considered: self.index.blocks() };
        let groups = self.groups(predicate)?;
        let mut asked = 0;
        for Group { predicate, files } in &groups {
            let is_meant = among(files, tables);
            let meant = self.index.candidates_in(predicate, Unknown::IsAnything, &is_meant)?;
            candidates.blocks.extend(meant.blocks);
            asked += files.len();
        }
        candidates.blocks.sort_unstable();
        Ok(Pruned { candidates, excluded_tables: (tables - asked) as u64, groups })
    }

    /// Those of the candidates all of whose rows match, as far as the index knows.
    fn certain(&self, candidates: &[Block], groups: Vec<Group>) -> Vec<Block> {
        /// Comparing fewer blocks costs no more than asking for them.
        const MANY: usize = 64;
        let mut certain = Vec::new();
        if candidates.len() < MANY {
            return certain;
        }
        for Group { predicate, files } in groups {
            let is_meant = among(&files, self.index.sources().len());
            if let Some(misses) = self.index.misses_in(&predicate, &is_meant) {
                let mut misses = misses.into_iter().peekable();
                certain.extend(candidates.iter().copied().filter(|block| {
                    while misses.next_if(|miss| miss < block).is_some() {}
                    is_meant(block.source) && misses.peek() != Some(block)
                }));
            }
        }
        certain.sort_unstable();
        certain
    }

    /// The tables that may have matching rows, and what the index is asked for.
    fn groups(&self, predicate: &Predicate) -> Result<Vec<Group>, IndexedError> {
        let is_asked = predicate.columns().iter().any(|name| self.layout.may_be_constant(name));
        prune::groups(predicate, self.index.sources().len(), |number| {
            if is_asked { self.constants(number) } else { Ok(Vec::new()) }
        })
    }

    /// The columns that have one value in all rows of a table, such as those in the names of its folders, each with an array of
    /// this value.
    pub fn constants(&self, number: usize) -> Result<Vec<(String, ArrayRef)>, IndexedError> {
        let source = &self.index.sources()[number];
        let wrong = || TableError::notes(&source.name().into(), "an invalid view");
        Ok(self.layout.constants(&part_of(source)?).ok_or_else(wrong)?)
    }

    /// Columns that have one value in all rows of a table, such as those in the names of folders: tables are excluded by them, and
    /// they are not in the index.
    pub fn constant_schema(&self) -> SchemaRef {
        self.layout.constant_schema()
    }

    /// The table that the index follows: its format, where it is, and the snapshot that is indexed (its id in Iceberg, its version
    /// in Delta).
    pub fn followed(&self) -> Option<(TableFormat, Location, i64)> {
        let Layout::Table(table) = &self.layout else { return None };
        Some((table.format(), self.tables.path(&table.path), table.snapshot))
    }

    /// The version of that table that was asked for ([`TableFormat::at`]); `None` if the index follows it.
    pub fn version_asked_for(&self) -> Option<&str> {
        let Layout::Table(table) = &self.layout else { return None };
        table.at.as_deref()
    }

    /// The tables all of whose rows satisfy a predicate on columns that have one value in each table, such as those in the
    /// names of folders. Other columns are an error.
    pub fn tables_where(&self, predicate: &Predicate) -> Result<Vec<usize>, IndexedError> {
        for column in predicate.columns() {
            if !self.layout.may_be_constant(column) {
                let known = self.layout.constant_schema();
                let known = known.fields().iter().map(|field| field.name().clone()).collect();
                return Err(Error::NoColumn { column: column.to_owned(), known }.into());
            }
        }
        let mut tables: Vec<usize> =
            self.groups(predicate)?.into_iter().flat_map(|group| group.files).collect();
        tables.sort_unstable();
        Ok(tables)
    }

    /// Whether all these columns are in the index.
    fn knows(&self, predicate: &Predicate, select: &[String]) -> bool {
        let mut names = predicate.columns();
        names.extend(select.iter().map(String::as_str));
        let is_known =
            |name: &&str| self.index.columns().iter().any(|column| column.name == **name);
        names.iter().all(is_known)
    }

    /// Reads all tables and compares them with what they were when they were indexed. `progress` is called with the number
    /// of rows of the tables that are done.
    pub fn verify_tables(&self, progress: &mut dyn FnMut(u64)) -> TableCheck {
        let mut check = TableCheck::default();
        let mut rows = 0;
        for (number, source) in self.index.sources().iter().enumerate() {
            match self.tables.open(&self.index, &self.layout, number) {
                Ok(table) => {
                    let Compared { errors, unchecked } = table.verify();
                    check.errors.extend(errors.into_iter().map(IndexedError::Table));
                    if !unchecked.is_empty() {
                        check.unchecked.push((source.name().to_owned(), unchecked));
                    }
                }
                Err(error) => check.errors.push(error),
            }
            rows += source.rows();
            progress(rows);
        }
        check
    }
}

/// Where matching rows may be.
struct Pruned {
    candidates: Candidates,
    /// Tables that are excluded by the values that they have in all of their rows.
    excluded_tables: u64,
    groups: Vec<Group>,
}

/// Says which of this many tables are among these.
fn among(files: &[usize], tables: usize) -> impl Fn(usize) -> bool + use<> {
    let mut is_meant = vec![false; tables];
    files.iter().for_each(|&file| is_meant[file] = true);
    move |source| is_meant[source]
}

/// What reading all tables has shown.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct TableCheck {
    /// Every table that is missing or has changed, and how; once for each of its columns.
    pub errors: Vec<IndexedError>,
    /// Tables with columns that could not be compared because there are no checksums: neither of the index, which has them
    /// for indexed columns, nor of the writer of the table.
    pub unchecked: Vec<(String, Vec<String>)>,
}
