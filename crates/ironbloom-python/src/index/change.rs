//! Building an index, and changing one that others change, too.

use std::path::PathBuf;
use std::time::Duration;

use ironbloom_index::{
    BuildProgress, CsvOptions, Error, HiveFolders, HiveOptions, Index as File, IndexLock,
    IndexedError, Location, Params, PathError, ReadOptions, Refresh, Refreshed, Resources,
    TableFormat, append_tables, change_index, csv_type, index_followed_table, index_tables_with,
    refresh_index, source_name, tables_at, temporary_folder,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::progress::{Listener, with_progress};
use crate::errors::{IntoPython, OrRaise, error, named};

/// How long to wait before asking again whether it is our turn.
const PAUSE: Duration = Duration::from_millis(20);

/// Memory and threads, if Python has said.
pub(crate) type Limits = (Option<u64>, Option<usize>);

fn resources((memory, threads): Limits) -> Resources {
    let mut resources = Resources::default();
    if let Some(bytes) = memory {
        resources = resources.with_memory(bytes);
    }
    if let Some(threads) = threads {
        resources = resources.with_threads(threads);
    }
    resources
}

/// How CSV is read: what Python has said, over what is usual.
fn csv_options(
    py: Python<'_>,
    given: Option<&Bound<'_, PyDict>>,
    mut options: CsvOptions,
) -> PyResult<CsvOptions> {
    let byte = |name: &str, text: String| match text.as_bytes() {
        &[byte] => Ok(byte),
        _ => Err(error("InvalidParameter", format!("{name} must be one ASCII character"))),
    };
    for (name, value) in given.into_iter().flat_map(|given| given.iter()) {
        match name.extract::<String>()?.as_str() {
            "delimiter" => options.delimiter = Some(byte("delimiter", value.extract()?)?),
            "quote" => {
                let quote: Option<String> = value.extract()?;
                options.quote = quote.map(|quote| byte("quote", quote)).transpose()?;
            }
            "header" => options.header = value.extract()?,
            "all_text" => options.all_text = value.extract()?,
            "nulls" => options.nulls = value.extract()?,
            "skip_bad_rows" => options.skip_bad_rows = value.extract()?,
            "types" => {
                for (column, name) in value.cast::<PyDict>()? {
                    let name: String = name.extract()?;
                    let known = csv_type(&name).ok_or_else(|| {
                        named(py, "InvalidParameter", format!("there is no type {name:?}"))
                    })?;
                    options.types.push((column.extract()?, known));
                }
            }
            other => return Err(PyTypeError::new_err(format!("CSV has no option {other:?}"))),
        }
    }
    Ok(options)
}

/// Sources that an index is built from.
enum Meant {
    Tables(Vec<Location>),
    /// A table of Iceberg or Delta, which says itself which files belong to it.
    Followed(TableFormat, Location),
}

fn meant(given: &[PathBuf]) -> Result<Meant, PathError> {
    let given: Vec<Location> = given.iter().map(Location::from).collect();
    let alone = <&[Location; 1]>::try_from(given.as_slice()).ok();
    if let Some([file]) = alone.filter(|[file]| file.name().ends_with(".metadata.json")) {
        return Ok(Meant::Followed(TableFormat::Iceberg, file.clone()));
    }
    match tables_at(&given) {
        Err(PathError::Followed { folder, format }) if alone.is_some() => {
            Ok(Meant::Followed(format, folder))
        }
        tables => tables.map(Meant::Tables),
    }
}

/// Waits until no other process changes the index, with an ear for Ctrl-C.
fn turn(file: &Location, listener: &Listener<'_>) -> Result<IndexLock, Error> {
    loop {
        if let Some(lock) = IndexLock::try_acquire(file)? {
            return Ok(lock);
        }
        listener.wait(PAUSE);
    }
}

/// Builds an index and saves it.
#[pyfunction]
#[pyo3(signature = (tables, path, columns, shape, csv, hive, limits, progress))]
#[expect(clippy::too_many_arguments, reason = "they are named in Python")]
pub(crate) fn build_index(
    py: Python<'_>,
    tables: Vec<PathBuf>,
    path: PathBuf,
    columns: Option<Vec<String>>,
    shape: (Option<u32>, Option<u32>),
    csv: Option<&Bound<'_, PyDict>>,
    hive: Option<bool>,
    limits: Limits,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let (block_rows, selectivity) = shape;
    let usual = Params::default();
    let params = Params::new(
        block_rows.unwrap_or(usual.block_rows()),
        selectivity.unwrap_or(usual.selectivity()),
    )
    .map_err(|error| named(py, "InvalidParameter", error))?;
    let mut options = ReadOptions::from(csv_options(py, csv, CsvOptions::default())?);
    options.hive = HiveOptions::default();
    options.hive.folders = match hive {
        None => HiveFolders::Auto,
        Some(true) => HiveFolders::On,
        Some(false) => HiveFolders::Off,
    };
    let file = Location::from(path);
    py.detach(|| File::check_replaceable(&file)).or_raise(py)?;
    let meant = py.detach(|| meant(&tables)).or_raise(py)?;
    let (columns, resources) = (columns.as_deref(), resources(limits));
    with_progress(py, progress, |listener| {
        let told = &mut |done: BuildProgress| listener.tell(done.rows);
        let mut index = match meant {
            Meant::Followed(format, table) => {
                index_followed_table(format, table, columns, params, &file, resources, told)?
            }
            Meant::Tables(tables) => {
                index_tables_with(&tables, columns, params, &file, &options, resources, told)?
            }
        };
        turn(&file, listener)?.save(&mut index)?;
        Ok::<_, IndexedError>(())
    })?
    .or_raise(py)
}

/// Adds tables, or the new rows of tables that have grown.
pub(super) fn append(
    py: Python<'_>,
    file: &Location,
    tables: &[PathBuf],
    csv: Option<&Bound<'_, PyDict>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    csv_options(py, csv, CsvOptions::default())?; // an error before anything is read
    let given: Vec<Location> = tables.iter().map(Location::from).collect();
    let tables = py.detach(|| tables_at(&given)).or_raise(py)?;
    let csv = csv.map(|csv| csv.clone().unbind());
    let options = move |remembered: CsvOptions| match &csv {
        None => remembered,
        Some(csv) => Python::attach(|py| {
            let kept = remembered.clone();
            csv_options(py, Some(csv.bind(py)), remembered).unwrap_or(kept)
        }),
    };
    with_progress(py, progress, |listener| {
        let told = &mut |done: BuildProgress| listener.tell(done.rows);
        let (lock, save) = (|| turn(file, listener), IndexLock::save);
        append_tables(file, &tables, options, Resources::default(), lock, save, told)
    })?
    .or_raise(py)
    .map(drop)
}

/// Merges the segments of each table.
pub(super) fn compact(py: Python<'_>, file: &Location, limits: Limits) -> PyResult<()> {
    let folder = temporary_folder(file);
    let compact = |index: &mut File| index.compact_within(resources(limits), &folder);
    with_progress(py, None, |listener| {
        change_index(file, || turn(file, listener), compact, IndexLock::save)
    })?
    .or_raise(py)
    .map(drop)
}

/// Why tables were not removed.
enum NotDropped {
    Index(Error),
    NoTable(String),
}

impl From<Error> for NotDropped {
    fn from(error: Error) -> Self {
        Self::Index(error)
    }
}

impl IntoPython for NotDropped {
    fn into_python(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Index(error) => error.into_python(py),
            Self::NoTable(name) => {
                named(py, "UnknownName", format!("the index has no table {name}"))
            }
        }
    }
}

/// Removes tables from an index that follows none.
pub(super) fn drop_tables(py: Python<'_>, file: &Location, tables: &[PathBuf]) -> PyResult<()> {
    let remove = |index: &mut File| {
        for table in tables {
            let as_given = table.to_string_lossy().into_owned();
            let names = [Some(as_given.clone()), source_name(table, file).ok()];
            let known = names.into_iter().flatten().find(|name| index.source(name).is_some());
            index.remove(&known.ok_or(NotDropped::NoTable(as_given))?)?;
        }
        Ok::<_, NotDropped>(())
    };
    with_progress(py, None, |listener| {
        change_index(file, || turn(file, listener), remove, IndexLock::save)
    })?
    .or_raise(py)
    .map(drop)
}

/// Brings an index up to date with the table that it follows, or only says what would change.
pub(super) fn refresh<'py>(
    py: Python<'py>,
    file: &Location,
    table: Option<PathBuf>,
    only_check: bool,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let what = if only_check { Refresh::Check } else { Refresh::Apply };
    let table = table.map(Location::from);
    let did: Refreshed = with_progress(py, progress, |listener| {
        let told = &mut |done: BuildProgress| listener.tell(done.rows);
        let (lock, save) = (|| turn(file, listener), IndexLock::save);
        refresh_index(file, table.as_ref(), what, Resources::default(), lock, save, told)
    })?
    .or_raise(py)?;
    let said = PyDict::new(py);
    said.set_item("before", did.before)?;
    said.set_item("now", did.now)?;
    said.set_item("files_added", did.added)?;
    said.set_item("files_dropped", did.dropped)?;
    said.set_item("files_with_other_deletes", did.with_other_deletes)?;
    said.set_item("columns_changed", did.columns_changed)?;
    Ok(said)
}
