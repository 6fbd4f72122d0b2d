//! Tables, one after the other, into an index: large ones by all threads together, small ones by a thread each.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use arrow::datatypes::DataType;
use ironbloom_blocks::{MAX_ROWS, RowRange};

use super::{BuildProgress, Meter, Rows, columns_of};
use crate::builder::{IndexBuilder, ReadTable};
use crate::compact::SMALL_ROWS;
use crate::error::Error;
use crate::index::Index;
use crate::indexed::source_name;
use crate::indexed_error::IndexedError;
use crate::layout::Layout;
use crate::location::Location;
use crate::resources::Resources;
use crate::schema::Column;
use crate::source::SourceMeta;
use crate::table::{Identity, Table, View};

/// A file of fewer bytes is read by one thread, beside others.
const SMALL_BYTES: u64 = 4 << 20;
/// Cells that such a file may have at most: 16 MiB of memory.
const SMALL_CELLS: u64 = 1 << 22;
/// Small tables whose columns are in memory before they are added.
const SMALL_TABLES: usize = 256;

/// A small table that was read; `None` if it is not small after all.
type SmallTable = Result<Option<ReadTable>, IndexedError>;

/// Opens a table as it is to be seen.
pub(crate) type OpenTable<'a> =
    &'a (dyn Fn(&Location) -> Result<(Table, SourceMeta), IndexedError> + Sync);

/// Tables to be read into an index.
pub(crate) struct NewTables<'a> {
    pub(crate) tables: &'a [Location],
    /// The index will be saved here.
    pub(crate) file: &'a Location,
    /// Opens one that is new, with what the index should keep of it besides.
    pub(crate) open: OpenTable<'a>,
    /// The index that has some of them already, and its layout with the new tables: of those, the new rows are read.
    pub(crate) grown: Option<(&'a Index, &'a Layout)>,
}

impl NewTables<'_> {
    /// Reads them all.
    pub(crate) fn read(
        &self,
        mut builder: IndexBuilder,
        progress: &mut dyn FnMut(BuildProgress),
    ) -> Result<Index, IndexedError> {
        let meter = Meter::new(self.tables.iter().map(bytes_of).sum());
        meter.watch(progress, || {
            let mut tables = self.tables;
            while let Some(first) = tables.first() {
                if meter.is_stopped() {
                    return Err(IndexedError::Stopped);
                }
                let most = tables.len().min(SMALL_TABLES);
                let small = tables[..most].iter().take_while(|table| self.is_small(table)).count();
                let read = if small > 1 && readers(&tables[..small], builder.resources()) > 1 {
                    self.read_small(&tables[..small], &mut builder, &meter)?;
                    small
                } else {
                    self.read_large(first, &mut builder, &meter)?;
                    1
                };
                tables = &tables[read..];
            }
            Ok(builder.finish()?)
        })
    }

    fn is_small(&self, table: &Location) -> bool {
        let is_new = || match (self.grown, source_name(table, self.file)) {
            (Some((index, _)), Ok(name)) => index.source(&name).is_none(),
            (_, name) => name.is_ok(),
        };
        // How large an object is shows when it is opened; those that are not small are opened again.
        (table.is_object() || (1..SMALL_BYTES).contains(&bytes_of(table))) && is_new()
    }

    /// By all threads together.
    fn read_large(
        &self,
        path: &Location,
        builder: &mut IndexBuilder,
        meter: &Meter,
    ) -> Result<(), IndexedError> {
        let name = source_name(path, self.file)?;
        let grown = self.grown.and_then(|(index, layout)| {
            let source = index.source(&name)?;
            Some((index, layout, source))
        });
        let ((table, meta), first_row) = match grown {
            None => ((self.open)(path)?, 0),
            Some((index, layout, source)) => {
                let (table, first_row) = open_grown(path, index, source)?;
                let view = index.sources()[source].view().to_vec();
                let united = View { united: layout.united().cloned(), ..View::default() };
                let table = table.with_view(&united)?;
                ((table, SourceMeta { view, ..SourceMeta::default() }), first_row)
            }
        };
        builder.check_new(&name).map_err(|error| about(&table, error))?;
        let columns = Reading::new(&table, builder.index().columns())?;
        builder.check_types(&columns.types).map_err(|error| about(&table, error))?;
        let read = columns.read((name, meta), first_row, builder, builder.resources(), meter)?;
        let rows = read.rows();
        builder.add(read).map_err(|error| about(&table, error))?;
        meter.end_table(rows, bytes_of(path));
        Ok(())
    }

    /// Each by one thread. They are added in order.
    fn read_small(
        &self,
        tables: &[Location],
        builder: &mut IndexBuilder,
        meter: &Meter,
    ) -> Result<(), IndexedError> {
        let (shared, resources) = (&*builder, builder.resources());
        let next = AtomicUsize::new(0);
        let read: Vec<Mutex<Option<SmallTable>>> =
            std::iter::repeat_with(Mutex::default).take(tables.len()).collect();
        let one = |path: &Location| {
            let (table, meta) = (self.open)(path)?;
            let name = source_name(path, self.file)?;
            // What the table is to the progress, all at once: several are read at the same time.
            let quiet = Meter::default();
            let columns = Reading::new(&table, shared.index().columns())?;
            // A small file may have many rows that are all the same.
            if table.rows().saturating_mul(columns.numbers.len() as u64) > SMALL_CELLS {
                return Ok(None);
            }
            let alone = resources.with_threads(1);
            let read = columns.read((name, meta), 0, shared, alone, &quiet)?;
            meter.end_table(read.rows(), bytes_of(path));
            Ok(Some(read))
        };
        let work = || {
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                let Some(path) = tables.get(place) else { return };
                let result =
                    if meter.is_stopped() { Err(IndexedError::Stopped) } else { one(path) };
                // Those after it will not be added.
                if result.is_err() {
                    next.fetch_max(tables.len(), Ordering::Relaxed);
                }
                *read[place].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..readers(tables, resources) {
                scope.spawn(work);
            }
            work();
        });
        for (read, path) in read.into_iter().zip(tables) {
            let result = read.into_inner().unwrap_or_else(PoisonError::into_inner);
            // All up to the first error were read.
            match result.transpose()? {
                Some(Some(read)) => {
                    let named = |error| IndexedError::Indexing { path: path.clone(), error };
                    builder.add(read).map_err(named)?;
                }
                Some(None) => self.read_large(path, builder, meter)?,
                None => break,
            }
        }
        Ok(())
    }
}

/// Threads that read small tables. Those that read objects wait most of the time, so there are more of them than processors, as
/// far as memory allows.
fn readers(tables: &[Location], resources: Resources) -> usize {
    const OF_OBJECTS: usize = 16;
    const BYTES_OF_EACH: u64 = 32 << 20;
    if !tables.iter().any(Location::is_object) {
        return resources.threads();
    }
    let fitting = usize::try_from(resources.memory() / BYTES_OF_EACH).unwrap_or(OF_OBJECTS);
    resources.threads().max(fitting.min(OF_OBJECTS))
}

/// Rows of the segment that a table of this many rows will be in: small ones are merged.
fn rows_of_segment(rows: u64, builder: &IndexBuilder) -> u64 {
    if rows >= SMALL_ROWS {
        return rows;
    }
    rows.max(builder.expected_rows().min(builder.resources().mergeable_rows()))
}

/// About how many rows these tables have, if others have this many rows in this many bytes.
pub(crate) fn about_rows(tables: &[Location], rows: u64, bytes: u64) -> u64 {
    let bytes_of = |table| match bytes_of(table) {
        // An object, perhaps. They are often of the same size.
        0 => bytes,
        known => known,
    };
    let all: u64 = tables.iter().map(bytes_of).sum();
    (u128::from(all) * u128::from(rows) / u128::from(bytes.max(1))).min(MAX_ROWS.into()) as u64
}

/// Length of a file; 0 if that is not known.
fn bytes_of(path: &Location) -> u64 {
    let file = path.as_file().and_then(|path| std::fs::metadata(path).ok());
    file.map_or(0, |file| file.len())
}

/// A table that has grown, and its first row that is not indexed.
fn open_grown(path: &Location, index: &Index, number: usize) -> Result<(Table, u64), IndexedError> {
    let source = &index.sources()[number];
    let known = Identity { length: source.bytes(), fingerprint: source.fingerprint() };
    let table = Table::open_grown(path, index.blob(number)?)?;
    if table.identity() == known {
        return Err(about(&table, Error::TwoSources { source: source.name().to_owned() }));
    }
    let first_row = table.rows_before(index.blob(number)?)?;
    Ok((table, first_row))
}

/// An error of the index because of a table.
pub(crate) fn about(table: &Table, error: Error) -> IndexedError {
    IndexedError::Indexing { path: table.location().clone(), error }
}

/// The columns of a table that are to be read.
struct Reading<'a> {
    table: &'a Table,
    numbers: Vec<usize>,
    types: Vec<DataType>,
}

impl<'a> Reading<'a> {
    fn new(table: &'a Table, columns: &[Column]) -> Result<Self, IndexedError> {
        let numbers: Vec<usize> =
            columns.iter().map(|column| table.column(&column.name)).collect::<Result<_, _>>()?;
        let type_of = |&number: &usize| table.schema().field(number).data_type().clone();
        let types = numbers.iter().map(type_of).collect();
        Ok(Self { table, numbers, types })
    }

    /// Reads the table from this row on. What is known of it besides becomes what the index keeps of it.
    fn read(
        self,
        (name, known): (String, SourceMeta),
        first_row: u64,
        builder: &IndexBuilder,
        resources: Resources,
        meter: &Meter,
    ) -> Result<ReadTable, IndexedError> {
        let Self { table, numbers, types } = self;
        let (params, workspace) = (builder.index().params(), builder.workspace());
        let rows = first_row..table.rows();
        let all_rows = rows.end.saturating_sub(rows.start);
        meter.start_table(all_rows, table.identity().length, numbers.len());
        let at_once = if table.has_separate_columns() { 1 } else { numbers.len() };
        let segment_rows = resources.segment_rows(at_once, params);
        let bucket_bits = params.bucket_bits(rows_of_segment(all_rows, builder));
        let mut segments = Vec::new();
        for start in rows.clone().step_by(segment_rows as usize) {
            let rows = start..rows.end.min(start + segment_rows);
            let range = RowRange { first_row: start, rows: rows.end - start };
            let rows = Rows { table, columns: &numbers, rows, params, bucket_bits };
            let (columns, bounds) = columns_of(&rows, resources, workspace, meter)?;
            segments.push((range, columns, bounds));
        }
        let Identity { length, fingerprint } = table.identity();
        let blob = table.notes(&numbers)?;
        table.check_unchanged()?;
        let version = table.version().to_owned();
        let meta = SourceMeta { bytes: length, fingerprint, version, blob, ..known };
        Ok(ReadTable { name, first_row, types, segments, meta })
    }
}
