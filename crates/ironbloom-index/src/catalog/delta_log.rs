//! The actions in a log of Delta: what the last checkpoint says, and the commits after it.
//!
//! ```text
//! 00000000000000000010.checkpoint.parquet                             all of it in one file
//! 00000000000000000010.checkpoint.0000000001.0000000002.parquet       in several
//! 00000000000000000010.checkpoint.80a083e8-….json or .parquet         a list of files in _sidecars/
//! 00000000000000000011.json                                           a commit
//! ```
//!
//! Actions of checkpoints are made JSON, as they are in commits: there is one way to read them.

use std::sync::Arc;

use arrow::array::{Array, AsArray as _, RecordBatch, StructArray};
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema};
use serde_json::{Map, Value as Json};

use super::{CatalogError, bytes_of, names_in};
use crate::location::Location;
use crate::table::{Matching, Table, View};

/// Rows of a checkpoint read at a time.
const BATCH_ROWS: usize = 1 << 13;

/// A log, as the names of its files show it.
pub(super) struct Log {
    folder: Location,
    /// The files of the last complete checkpoint.
    checkpoint: Vec<String>,
    /// Commits after it.
    commits: Vec<u64>,
    /// The version that these make.
    pub(super) version: u64,
}

impl Log {
    /// The log up to its last version, or up to an earlier one.
    pub(super) fn open(table: &Location, until: Option<u64>) -> Result<Self, CatalogError> {
        let folder = table.join("_delta_log");
        let names = names_in(&folder)?;
        let is_meant = |version: u64| until.is_none_or(|until| version <= until);
        let mut commits: Vec<u64> = names.iter().filter_map(|name| commit(name)).collect();
        commits.retain(|&version| is_meant(version));
        commits.sort_unstable();
        let mut checkpoints = checkpoints(&names, is_meant);
        // A writer may have begun one, or left it behind.
        let checkpoint = loop {
            let Some((version, files)) = checkpoints.pop() else { break None };
            let mut is_empty = false;
            for file in &files {
                is_empty |= super::is_empty(&folder.join(file))?;
            }
            if !is_empty {
                break Some((version, files));
            }
        };
        let first = checkpoint.as_ref().map_or(0, |(version, _)| version + 1);
        commits.retain(|&version| version >= first);
        for (expected, &found) in (first..).zip(&commits) {
            if expected != found {
                let what = format!("the commit of version {expected} is missing");
                return Err(CatalogError::invalid(&folder, what));
            }
        }
        let version = match (commits.last(), &checkpoint) {
            (Some(last), _) => *last,
            (None, Some((version, _))) => *version,
            (None, None) if until.is_none() => {
                return Err(CatalogError::invalid(&folder, "there is no commit"));
            }
            (None, None) => u64::MAX,
        };
        if let Some(until) = until.filter(|&until| until != version) {
            let what = format!("version {until} is not in this log, or not any more");
            return Err(CatalogError::invalid(&folder, what));
        }
        let checkpoint = checkpoint.map(|(_, files)| files).unwrap_or_default();
        Ok(Self { folder, checkpoint, commits, version })
    }

    /// Passes on all actions, the oldest first.
    pub(super) fn replay(
        &self,
        mut act: impl FnMut(&Json) -> Result<(), CatalogError>,
    ) -> Result<(), CatalogError> {
        for name in &self.checkpoint {
            let mut sidecars = Vec::new();
            self.read(&self.folder.join(name), &mut |action| {
                if let Some(path) = action["sidecar"]["path"].as_str() {
                    sidecars.push(path.to_owned());
                }
                act(action)
            })?;
            for path in sidecars {
                // Usually a name, which is in this folder.
                let place = self.folder.join("_sidecars").join(super::local(&path));
                self.read(&place, &mut act)?;
            }
        }
        for version in &self.commits {
            self.read(&self.folder.join(&format!("{version:020}.json")), &mut act)?;
        }
        Ok(())
    }

    fn read(
        &self,
        file: &Location,
        act: &mut dyn FnMut(&Json) -> Result<(), CatalogError>,
    ) -> Result<(), CatalogError> {
        if file.name().ends_with(".json") {
            let bytes = bytes_of(file)?;
            for line in
                bytes.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty())
            {
                let action = serde_json::from_slice(line)
                    .map_err(|error| CatalogError::invalid(file, error.to_string()))?;
                act(&action)?;
            }
            return Ok(());
        }
        let view = View { columns: Some((Arc::new(actions()), Matching::Name)), ..View::default() };
        let table = Table::open(file)?.with_view(&view)?;
        let columns: Vec<usize> = (0..table.schema().fields().len()).collect();
        for batch in table.scan(&columns, BATCH_ROWS)? {
            let batch: RecordBatch = batch?;
            for row in 0..batch.num_rows() {
                for (name, column) in batch.schema().fields().iter().zip(batch.columns()) {
                    if column.is_valid(row) {
                        let mut action = Map::new();
                        action.insert(name.name().clone(), json(column.as_ref(), row));
                        act(&Json::Object(action))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The version of a commit.
fn commit(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".json")?;
    (digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| digits.parse().ok())?
}

/// The files of each checkpoint of the versions that are meant that has all of its parts, and its version; the last one at the end.
fn checkpoints(names: &[String], is_meant: impl Fn(u64) -> bool) -> Vec<(u64, Vec<String>)> {
    let mut complete: Vec<(u64, Vec<String>)> = Vec::new();
    for name in names {
        let Some((digits, rest)) = name.split_once(".checkpoint.") else { continue };
        let Some(version) = digits.parse().ok().filter(|&version| is_meant(version)) else {
            continue;
        };
        let parts: Vec<&str> = rest.split('.').collect();
        match parts[..] {
            ["parquet"] | [_, "parquet" | "json"] => complete.push((version, vec![name.clone()])),
            [part, of, "parquet"] if part.parse() == Ok(1u64) => {
                let Some(of_all) = of.parse().ok().filter(|&of: &u64| of > 0) else { continue };
                let part = |part: u64| format!("{digits}.checkpoint.{part:010}.{of}.parquet");
                let files: Vec<String> = (1..=of_all.min(names.len() as u64)).map(part).collect();
                if files.len() as u64 == of_all && files.iter().all(|file| names.contains(file)) {
                    complete.push((version, files));
                }
            }
            _ => {}
        }
    }
    complete.sort_by_key(|(version, _)| *version);
    complete
}

/// The columns of checkpoints that matter here.
fn actions() -> Schema {
    let text = |name: &str| Field::new(name, DataType::Utf8, true);
    let long = |name: &str| Field::new(name, DataType::Int64, true);
    let int = |name: &str| Field::new(name, DataType::Int32, true);
    let texts = |name: &str| {
        let item = Field::new("element", DataType::Utf8, true);
        Field::new(name, DataType::List(Arc::new(item)), true)
    };
    let map = |name: &str| {
        let entries = vec![Field::new("key", DataType::Utf8, false), text("value")];
        let entries = Field::new("key_value", DataType::Struct(entries.into()), false);
        Field::new(name, DataType::Map(Arc::new(entries), false), true)
    };
    let of =
        |name: &str, fields: Vec<Field>| Field::new(name, DataType::Struct(fields.into()), true);
    let vector = || {
        let fields = vec![text("storageType"), text("pathOrInlineDv"), int("offset")];
        of("deletionVector", fields)
    };
    Schema::new(vec![
        of("protocol", vec![int("minReaderVersion"), texts("readerFeatures")]),
        of(
            "metaData",
            vec![
                text("id"),
                of("format", vec![text("provider")]),
                text("schemaString"),
                texts("partitionColumns"),
                map("configuration"),
            ],
        ),
        of("add", vec![text("path"), map("partitionValues"), long("size"), vector()]),
        of("remove", vec![text("path"), vector()]),
        of("sidecar", vec![text("path")]),
    ])
}

/// A value of a checkpoint.
fn json(array: &dyn Array, row: usize) -> Json {
    if array.is_null(row) {
        return Json::Null;
    }
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(row).into(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).into(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into(),
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            (0..items.len()).map(|item| json(items.as_ref(), item)).collect()
        }
        DataType::Map(..) => {
            let entries: StructArray = array.as_map().value(row);
            let (keys, values) = (entries.column(0).as_string::<i32>(), entries.column(1));
            let entry = |at| (keys.value(at).to_owned(), json(values.as_ref(), at));
            Json::Object((0..entries.len()).map(entry).collect())
        }
        DataType::Struct(fields) => {
            let members = array.as_struct().columns().iter().zip(fields);
            let member = |(member, field): (&Arc<dyn Array>, &Arc<Field>)| {
                (field.name().clone(), json(member.as_ref(), row))
            };
            Json::Object(members.map(member).collect())
        }
        _ => Json::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_counts_if_it_has_all_of_its_parts() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let found = |listed: &[&str]| -> Vec<u64> {
            let all = checkpoints(&names(listed), |version| version < 100);
            all.into_iter().map(|(version, _)| version).collect()
        };
        let whole = "00000000000000000010.checkpoint.parquet";
        let [one, two] = ["0000000001", "0000000002"]
            .map(|part| format!("00000000000000000020.checkpoint.{part}.0000000002.parquet"));
        assert_eq!(found(&[&one, &two, whole]), [10, 20]);
        assert_eq!(found(&[&one, whole]), [10]);
        // None of none parts.
        let none = "00000000000000000030.checkpoint.0000000001.0000000000.parquet";
        let no_number = "00000000000000000030.checkpoint.0000000001.x.parquet";
        assert_eq!(found(&[none, no_number, whole]), [10]);
        assert_eq!(found(&["00000000000000000100.checkpoint.parquet"]), [0u64; 0]);
    }

    #[test]
    fn an_empty_checkpoint_does_not_hide_the_commits() {
        let folder = ironbloom_testing::Scratch::new("delta log");
        let log = folder.file("_delta_log");
        std::fs::create_dir(&log).unwrap();
        let write = |name: &str, text: &str| std::fs::write(log.join(name), text).unwrap();
        for version in 0..3 {
            let line = format!("{{\"add\":{{\"path\":\"{version}\"}}}}\n");
            write(&format!("{version:020}.json"), &line);
        }
        write("00000000000000000001.checkpoint.parquet", "");
        write("00000000000000000002.checkpoint.parquet", "");
        let log = Log::open(&folder.path().to_owned().into(), None).unwrap();
        let mut paths = Vec::new();
        log.replay(|action| {
            paths.push(action["add"]["path"].as_str().unwrap().to_owned());
            Ok(())
        })
        .unwrap();
        assert_eq!((log.version, paths.join(" ")), (2, "0 1 2".to_owned()));
    }
}
