//! Rows of several attributes: columns of CSV, and what the commands do with them.
//!
//! A filter of rows remembers the names of its attributes. They are the columns that are read, unless `--csv` says
//! otherwise, and the words that `--where` takes.

use std::path::Path;

use anyhow::{Result, anyhow};
use ironbloom::any::{AnyFilter, KeyError, KeyHash};
use ironbloom::multi::{Attributes, MultiFilter};
use ironbloom::{KeyType, KeyTypes, RowError};

use crate::failure::Advice;
use crate::input::{self, BadKey, InputArgs, Keys};
use crate::report::Cell;
use crate::{file, number};

/// The names in `--csv size,color`: a line of CSV, so that a name with a comma can be quoted.
pub(crate) fn parse_columns(list: &str) -> Result<Vec<String>> {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).from_reader(list.trim().as_bytes());
    let Some(record) = reader.records().next() else { return Ok(Vec::new()) };
    Ok(record?.iter().map(|name| name.trim().to_owned()).collect())
}

/// The columns in which the values of a filter's attributes stand.
fn columns_for(input: &InputArgs, attributes: &Attributes) -> Result<Vec<String>> {
    let Some(list) = input.table.columns() else { return Ok(attributes.names().to_vec()) };
    let columns = parse_columns(list)?;
    if columns.len() != attributes.len() {
        return Err(Advice::error(
            format!(
                "--csv names {}, where the filter has {}",
                number::plural(columns.len() as u64, "column"),
                attributes.len()
            ),
            format!("the attributes are, in this order: {}", attributes.names().join(", ")),
        ));
    }
    Ok(columns)
}

/// How the values of each attribute are hashed: as text, or as integers where nothing else was given. `keys` is what the user
/// says of attributes that hold more than one type, or nothing yet; one that holds a single other type is read as that, unless
/// none can be what the user says.
pub(crate) fn values(attributes: &Attributes, keys: Option<KeyType>) -> Result<Vec<KeyHash>> {
    let known: Vec<KeyHash> =
        (0..attributes.len()).map(|i| attributes.key_hash_of(i)).collect::<Result<_, _>>()?;
    let Some(keys) = keys else {
        return Ok(known.into_iter().map(KeyHash::of_text).collect::<Result<_, _>>()?);
    };
    let said: Vec<_> = known.iter().map(|known| known.of_text_as(keys)).collect();
    if said.iter().all(Result::is_err) {
        return Ok(said.into_iter().collect::<Result<_, _>>()?);
    }
    let values = said.into_iter().zip(known).map(|(said, known)| said.or_else(|_| known.of_text()));
    Ok(values.collect::<Result<_, _>>()?)
}

/// Does the same for an existing filter, whose file is named in errors.
pub(crate) fn values_of(
    path: &Path,
    attributes: &Attributes,
    keys: Option<KeyType>,
) -> Result<Vec<KeyHash>> {
    values(attributes, keys).map_err(|error| match error.downcast::<KeyError>() {
        Ok(error) => file::key_error(path, error),
        Err(error) => file::named(path, error),
    })
}

/// Names the types of values that are hashed in these ways.
pub(crate) fn types(values: &[KeyHash]) -> Vec<KeyTypes> {
    values.iter().copied().map(file::line_types).collect()
}

/// Passes all rows of the input to `consume`, in order: the block, and the hashes of its rows one after the other.
pub(crate) fn for_each_block(
    input: &InputArgs,
    columns: Vec<String>,
    values: Vec<KeyHash>,
    threads: usize,
    consume: impl FnMut(&Keys, Vec<u64>) -> Result<()>,
) -> Result<()> {
    let input = InputArgs { row_columns: Some(columns), ..input.clone() };
    input::for_each_block(
        &input,
        threads,
        move |keys| {
            let mut hashes = Vec::with_capacity(keys.len() * values.len());
            for (place, row) in keys.iter().enumerate() {
                for (value, field) in values.iter().zip(input::fields(row)) {
                    let bad = |error| BadKey::error(place, file::shortened(error));
                    hashes.push(value.of(field).map_err(bad)?);
                }
            }
            Ok(hashes)
        },
        consume,
    )
}

/// Does the same for an existing filter, whose file is named in errors: takes the columns named after its attributes.
pub(crate) fn for_each_block_of(
    input: &InputArgs,
    path: &Path,
    attributes: &Attributes,
    keys: Option<KeyType>,
    threads: usize,
    consume: impl FnMut(&Keys, Vec<u64>) -> Result<()>,
) -> Result<()> {
    // Fails before any input is read.
    let values = values_of(path, attributes, keys)?;
    for_each_block(input, columns_for(input, attributes)?, values, threads, consume)
}

/// Distinct rows, by their hashes one after the other.
pub(crate) fn distinct(hashes: &[u64], attributes: usize) -> Vec<&[u64]> {
    let mut rows: Vec<&[u64]> = hashes.chunks_exact(attributes).collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// The query of `--where`: a value for each attribute that is named, none for the others.
pub(crate) fn query(attributes: &Attributes, clauses: &[String]) -> Result<Vec<Option<String>>> {
    let mut query = vec![None; attributes.len()];
    for clause in clauses {
        let (i, value) = resolve(attributes, clause)?;
        if query[i].replace(value.to_owned()).is_some() {
            let name = &attributes.names()[i];
            return Err(Advice::error(
                format!("attribute {name:?} is given twice"),
                "a row has one value for each attribute; run the command once for each row",
            ));
        }
    }
    Ok(query)
}

/// The attribute and the value of a clause. Names may hold a `=` too, so the longest name that fits is taken.
fn resolve<'a>(attributes: &Attributes, clause: &'a str) -> Result<(usize, &'a str)> {
    let names = attributes.names().iter().enumerate();
    let fitting = names.filter_map(|(i, name)| {
        let value = clause.strip_prefix(name.as_str())?.strip_prefix('=')?;
        Some((i, value))
    });
    if let Some(found) = fitting.min_by_key(|(_, value)| value.len()) {
        return Ok(found);
    }
    let names = attributes.names().join(", ");
    Err(match clause.split_once('=') {
        Some((name, _)) => {
            Advice::error(format!("no attribute {name:?}"), format!("the attributes are: {names}"))
        }
        None => Advice::error(
            format!("--where {clause:?} has no ="),
            format!("write --where NAME=VALUE; the attributes are: {names}"),
        ),
    })
}

/// Might there be such a row? A filter that was not built for it says how to build one that is.
pub(crate) fn contains(
    path: &Path,
    filter: &dyn MultiFilter,
    query: &[Option<String>],
    keys: Option<KeyType>,
) -> Result<bool> {
    let attributes = filter.attributes();
    let values = values_of(path, attributes, keys)?;
    let hash =
        |(value, of): (&KeyHash, &Option<String>)| of.as_ref().map(|of| value.of(of)).transpose();
    let hashes: Result<Vec<_>, _> = values.iter().zip(query).map(hash).collect();
    let answer = hashes.map_err(RowError::Key).and_then(|hashes| filter.contains_hashed(&hashes));
    answer.map_err(|error| match error {
        RowError::NotPartial { .. } => {
            let names = attributes.names();
            let missing = names.iter().zip(query).filter(|(_, value)| value.is_none());
            let missing: Vec<_> = missing.map(|(name, _)| name.as_str()).collect();
            Advice::error(
                format!("{}: {error}", path.display()),
                format!(
                    "give --where for {} too, or build it again for such queries:\n      \
                     ironbloom build --kind joint --partial --csv {} -o {} …",
                    missing.join(", "),
                    names.join(","),
                    path.display()
                ),
            )
        }
        other => file::named(path, other),
    })
}

/// An error for a filter that has no attributes.
pub(crate) fn refuse_keys(path: &Path, filter: &AnyFilter) -> anyhow::Error {
    Advice::error(
        format!(
            "{}: a {} filter holds keys, which have no attributes",
            path.display(),
            filter.kind()
        ),
        "--where is for filters built with --kind joint; give keys as lines of a file or of standard input",
    )
}

/// Inserts a row, once more if it is present.
pub(crate) fn insert(path: &Path, filter: &mut dyn MultiFilter, row: &[u64]) -> Result<()> {
    filter.insert_hashed(row).map_err(|error| file::named(path, error))
}

/// A number for each name: `size 3, color 17`.
pub(crate) fn by_name(counts: &[(String, Option<u64>)]) -> Cell {
    let text = |(name, count): &(String, Option<u64>)| match count {
        Some(count) => format!("{name} {}", number::count(*count)),
        None => format!("{name} unknown"),
    };
    Cell::text(counts.iter().map(text).collect::<Vec<_>>().join(", "))
}

/// The columns of a filter that is to be built.
pub(crate) fn columns_of_build(input: &InputArgs) -> Result<Vec<String>> {
    let Some(list) = input.table.columns() else {
        return Err(Advice::error(
            "--kind joint needs the columns that make a row",
            "name them: --csv size,color",
        ));
    };
    let columns = parse_columns(list)?;
    match columns.iter().position(String::is_empty) {
        _ if columns.is_empty() => Err(anyhow!("--csv {list:?} names no column")),
        Some(i) => Err(anyhow!("--csv {list:?}: column {} has no name", i + 1)),
        None => Ok(columns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironbloom::HashFn;

    fn attributes(names: &[&str]) -> Attributes {
        Attributes::new(names.iter().copied(), HashFn::default()).unwrap()
    }

    #[test]
    fn columns_are_a_line_of_csv() {
        let columns = |list: &str| parse_columns(list).unwrap();
        assert_eq!(columns("size,color"), ["size", "color"]);
        assert_eq!(columns("size, color"), ["size", "color"]);
        assert_eq!(columns("\"last, first\",b"), ["last, first", "b"]);
        assert_eq!(columns("a,,b"), ["a", "", "b"]);
        assert!(columns("").is_empty());
    }

    #[test]
    fn a_clause_is_split_where_a_name_ends() {
        let of = |names: &[&str], clause: &str| {
            resolve(&attributes(names), clause).map(|(i, value)| (i, value.to_owned()))
        };
        assert_eq!(of(&["size", "color"], "color=red").unwrap(), (1, "red".to_owned()));
        assert_eq!(of(&["size"], "size==x=").unwrap(), (0, "=x=".to_owned()));
        assert_eq!(of(&["size"], "size=").unwrap(), (0, String::new()));
        assert_eq!(of(&["a", "a=b"], "a=b=c").unwrap(), (1, "c".to_owned()));
        assert_eq!(of(&["a", "a=b"], "a=c").unwrap(), (0, "c".to_owned()));
        assert_eq!(of(&["size"], "siz=x").unwrap_err().to_string(), "no attribute \"siz\"");
        assert_eq!(of(&["size"], "size").unwrap_err().to_string(), "--where \"size\" has no =");
    }

    #[test]
    fn distinct_rows_are_whole_rows() {
        let rows = [1, 2, 2, 1, 1, 2, 1, 1];
        assert_eq!(distinct(&rows, 2), [&[1, 1][..], &[1, 2], &[2, 1]]);
    }
}
