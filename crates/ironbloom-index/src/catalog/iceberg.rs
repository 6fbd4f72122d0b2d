//! A snapshot of an Iceberg table (versions 1 to 3 of its specification): the current one, or an earlier one.

use std::collections::HashMap;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use serde_json::Value as Json;

use super::avro::{self, Value};
use super::deletes::{Deletes, PositionFile};
use super::iceberg_schema::IcebergShape;
use super::{CatalogError, DataFile, Shape, Snapshot, bytes_of, local, names_in};
use crate::calendar::show_date;
use crate::hive::Pair;
use crate::location::Location;
use crate::part::Part;
use crate::zone::show_moment;

/// The end of the name of a file of metadata.
const METADATA: &str = ".metadata.json";

/// The table of this file of metadata, or in this folder: as it is now, or the snapshot of this id, branch or tag.
pub(super) fn snapshot(table: &Location, at: Option<&str>) -> Result<Snapshot, CatalogError> {
    let file = metadata_file(table)?;
    let json = metadata_json(&file)?;
    snapshot_of(table, &file, &json, at)
}

/// The table that was last read from this place, as it is now, and where that is said: a file of metadata is never changed, so
/// that its folder is looked through for a newer one.
pub(super) fn newest(table: &Location) -> Result<(Location, Snapshot), CatalogError> {
    if !is_metadata(table) {
        return Ok((table.clone(), snapshot(table, None)?));
    }
    let folder = table.folder();
    let names = names_in(&folder)?;
    let known = names.iter().any(|name| *name == table.name());
    let latest = newest_in(table, &folder, &names)?;
    let read = |file: Location| metadata_json(&file).map(|json| (file, json));
    let (file, json) = match (latest, known) {
        (Some(latest), true) if latest != *table => {
            let (before, now) = (read(table.clone())?, read(latest)?);
            let updated = |json: &Json| json["last-updated-ms"].as_i64();
            let is_newer = match (version(&table.name()), version(&now.0.name())) {
                (Some(known), Some(found)) => found > known,
                _ => updated(&now.1) > updated(&before.1),
            };
            if is_newer { now } else { before }
        }
        (Some(latest), false) => read(latest)?,
        _ => read(table.clone())?,
    };
    let snapshot = snapshot_of(&file, &file, &json, None)?;
    Ok((file, snapshot))
}

fn snapshot_of(
    table: &Location,
    file: &Location,
    json: &Json,
    at: Option<&str>,
) -> Result<Snapshot, CatalogError> {
    let metadata = Metadata { table, file, places: Places::new(file, json), json };
    metadata.check_version()?;
    let (found, schema) = match at {
        Some(at) => metadata.snapshot_at(at)?,
        None => (metadata.current_snapshot()?, &json["current-schema-id"]),
    };
    let shape = Shape::Iceberg(metadata.shape(schema)?);
    let table_id = json["table-uuid"].as_str().map(str::to_owned);
    let Some(current) = found else {
        return Ok(Snapshot { id: -1, table_id, shape, files: Vec::new() });
    };
    let id = current["snapshot-id"]
        .as_i64()
        .ok_or_else(|| metadata.invalid("a snapshot without an id"))?;
    let mut entries = Entries::default();
    for manifest in metadata.manifests(current)? {
        metadata.read_manifest(&manifest, &mut entries)?;
    }
    Ok(Snapshot { id, table_id, shape, files: metadata.data_files(entries)? })
}

/// True of a file of metadata, false of the folder of a table.
fn is_metadata(table: &Location) -> bool {
    table.name().ends_with(".json")
}

/// Reads a file of metadata, which may be compressed (`write.metadata.compression-codec`).
fn metadata_json(file: &Location) -> Result<Json, CatalogError> {
    const GZIP: [u8; 2] = [0x1f, 0x8b];
    let bytes = bytes_of(file)?;
    let json = if bytes.starts_with(&GZIP) {
        serde_json::from_reader(MultiGzDecoder::new(bytes.as_slice()))
    } else {
        serde_json::from_slice(&bytes)
    };
    json.map_err(|error| CatalogError::invalid(file, error.to_string()))
}

/// Which file of metadata is the current one.
fn metadata_file(table: &Location) -> Result<Location, CatalogError> {
    if is_metadata(table) {
        return Ok(table.clone());
    }
    let folder = table.join("metadata");
    let names = names_in(&folder)?;
    let none = || CatalogError::invalid(&folder, format!("there is no file *{METADATA}"));
    newest_in(table, &folder, &names)?.ok_or_else(none)
}

/// The current one of these files in a folder of metadata.
fn newest_in(
    table: &Location,
    folder: &Location,
    names: &[String],
) -> Result<Option<Location>, CatalogError> {
    if names.iter().any(|name| name == "version-hint.text") {
        let hint = bytes_of(&folder.join("version-hint.text"))?;
        let hint = String::from_utf8_lossy(&hint).trim().to_owned();
        let found = named_by(&hint, names).ok_or_else(|| {
            CatalogError::invalid(folder, format!("there is no metadata of version {hint}"))
        })?;
        return Ok(Some(folder.join(&found)));
    }
    // Catalogs number the files, but which of two with one number counts is known to the catalog alone.
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| version(name)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    for newest in numbers.into_iter().rev() {
        let newest = names.iter().filter(|name| version(name) == Some(newest));
        let newest = newest.map(|name| folder.join(name));
        match newest.filter(|file| !is_only_begun(file)).collect::<Vec<_>>().as_slice() {
            [] => {}
            [found] => return Ok(Some(found.clone())),
            _ => {
                return Err(CatalogError::unsupported(
                    table,
                    "several files of metadata have the last number: name the one that its catalog names",
                ));
            }
        }
    }
    Ok(None)
}

/// True of an empty file: its writer has just begun, or has failed, and no catalog names it. Objects are there as a whole or not at
/// all.
fn is_only_begun(file: &Location) -> bool {
    let length = file.as_file().and_then(|path| std::fs::metadata(path).ok());
    length.is_some_and(|found| found.len() == 0)
}

/// The file that a hint means. Writers make the file first and the hint then, so the files that follow it count as well.
fn named_by(hint: &str, names: &[String]) -> Option<String> {
    let of_version = |version: &str| {
        let forms = [
            format!("v{version}{METADATA}"),
            format!("v{version}.gz{METADATA}"),
            format!("{version}{METADATA}"),
        ];
        forms.into_iter().find(|name| names.contains(name))
    };
    let mut found =
        of_version(hint).or_else(|| names.contains(&hint.to_owned()).then(|| hint.to_owned()))?;
    let later = hint.parse::<u64>().into_iter().flat_map(|hint| hint.saturating_add(1)..);
    for version in later {
        match of_version(&version.to_string()) {
            Some(next) => found = next,
            None => break,
        }
    }
    Some(found)
}

/// The number of a file of metadata: `v3.metadata.json`, `00003-….metadata.json`, `00003-….gz.metadata.json`.
fn version(name: &str) -> Option<u64> {
    let stem = name.strip_suffix(METADATA)?;
    stem.strip_prefix('v').unwrap_or(stem).split(['-', '.']).next()?.parse().ok()
}

/// Where files are: a table that was moved still has its old paths in its metadata.
struct Places {
    /// Where the table says that it is.
    location: String,
    /// Where it is.
    folder: Location,
}

impl Places {
    fn new(file: &Location, json: &Json) -> Self {
        let location = json["location"].as_str().unwrap_or_default();
        let folder = file.folder().folder();
        Self { location: location.trim_end_matches('/').to_owned(), folder }
    }

    fn of(&self, address: &str) -> Location {
        let inside = address.strip_prefix(&self.location).and_then(|rest| rest.strip_prefix('/'));
        match inside {
            Some(inside) if !self.location.is_empty() => self.folder.join(inside),
            _ => Location::from(local(address)),
        }
    }
}

struct Metadata<'a> {
    table: &'a Location,
    file: &'a Location,
    places: Places,
    json: &'a Json,
}

/// What the manifests list.
#[derive(Default)]
struct Entries {
    data: Vec<Entry>,
    deletes: Vec<Entry>,
}

/// A file in a manifest.
struct Entry {
    file: Value,
    spec: i64,
    sequence: i64,
}

/// A manifest in the list.
struct Manifest {
    path: Location,
    spec: i64,
    sequence: i64,
}

impl Metadata<'_> {
    fn invalid(&self, what: impl Into<String>) -> CatalogError {
        CatalogError::invalid(self.file, what)
    }

    fn unsupported(&self, what: impl Into<String>) -> CatalogError {
        CatalogError::unsupported(self.table, what)
    }

    fn check_version(&self) -> Result<(), CatalogError> {
        let version = self.json["format-version"].as_i64();
        let version =
            version.ok_or_else(|| self.invalid("it is no metadata of an Iceberg table"))?;
        if !(1..=3).contains(&version) {
            return Err(self.unsupported(format!("it has version {version} of Iceberg's format")));
        }
        if self.json["encryption-keys"].as_array().is_some_and(|keys| !keys.is_empty()) {
            return Err(self.unsupported("it is encrypted"));
        }
        Ok(())
    }

    fn shape(&self, id: &Json) -> Result<IcebergShape, CatalogError> {
        let schemas = self.json["schemas"].as_array();
        let schema = schemas.and_then(|all| all.iter().find(|one| one["schema-id"] == *id));
        let schema =
            schema.or(self.json.get("schema")).ok_or_else(|| self.invalid("it has no schema"))?;
        let names = match self.json["properties"]["schema.name-mapping.default"].as_str() {
            Some(text) => serde_json::from_str(text)
                .map_err(|error| self.invalid(format!("its mapping of names: {error}")))?,
            None => Json::Null,
        };
        let mut identity: Vec<i64> =
            self.specs().iter().flat_map(|(_, fields)| fields).map(|field| field.source).collect();
        identity.sort_unstable();
        identity.dedup();
        IcebergShape::new(schema.clone(), names, identity).map_err(|what| self.unsupported(what))
    }

    /// The fields by which files are partitioned as they are, for each partition spec.
    fn specs(&self) -> Vec<(i64, Vec<IdentityField>)> {
        let fields = |json: &Json| -> Vec<IdentityField> {
            let fields = json.as_array().into_iter().flatten();
            let identity = fields.filter(|field| field["transform"] == "identity");
            let field = |field: &Json| {
                let name = field["name"].as_str()?.to_owned();
                Some(IdentityField { name, source: field["source-id"].as_i64()? })
            };
            identity.filter_map(field).collect()
        };
        match self.json["partition-specs"].as_array() {
            Some(specs) => specs
                .iter()
                .map(|spec| (spec["spec-id"].as_i64().unwrap_or(0), fields(&spec["fields"])))
                .collect(),
            None => vec![(0, fields(&self.json["partition-spec"]))],
        }
    }

    fn current_snapshot(&self) -> Result<Option<&Json>, CatalogError> {
        let id = &self.json["current-snapshot-id"];
        if id.is_null() || id.as_i64() == Some(-1) {
            return Ok(None);
        }
        self.snapshot_of_id(id).map(Some)
    }

    fn snapshot_of_id(&self, id: &Json) -> Result<&Json, CatalogError> {
        let snapshots = self.json["snapshots"].as_array();
        let found = snapshots.and_then(|all| all.iter().find(|one| one["snapshot-id"] == *id));
        found.ok_or_else(|| self.invalid(format!("there is no snapshot {id}, or not any more")))
    }

    /// The snapshot of this id, branch or tag, and the id of its schema: the one that it was written with, but for a branch, which
    /// has the columns of the table.
    fn snapshot_at(&self, at: &str) -> Result<(Option<&Json>, &Json), CatalogError> {
        let named = &self.json["refs"][at];
        let id = match (named["snapshot-id"].as_i64(), at.parse::<i64>()) {
            (Some(id), _) | (None, Ok(id)) => id,
            _ => return Err(self.invalid(format!("there is no branch or tag {at:?}"))),
        };
        let found = self.snapshot_of_id(&id.into())?;
        let current = &self.json["current-schema-id"];
        let schema = match found.get("schema-id") {
            Some(schema) if named["type"] != "branch" => schema,
            _ => current,
        };
        Ok((Some(found), schema))
    }

    fn manifests(&self, snapshot: &Json) -> Result<Vec<Manifest>, CatalogError> {
        let Some(list) = snapshot["manifest-list"].as_str() else {
            let paths = snapshot["manifests"].as_array();
            let paths = paths.ok_or_else(|| self.invalid("a snapshot without manifests"))?;
            let manifest = |path: &Json| {
                let path =
                    path.as_str().ok_or_else(|| self.invalid("a manifest without a path"))?;
                Ok(Manifest { path: self.places.of(path), spec: 0, sequence: 0 })
            };
            return paths.iter().map(manifest).collect();
        };
        let list = self.places.of(list);
        let manifest = |entry: &Value| {
            let path = entry.get("manifest_path").text();
            let path =
                path.ok_or_else(|| CatalogError::invalid(&list, "a manifest without a path"))?;
            if !entry.get("key_metadata").is_null() {
                return Err(self.unsupported("a manifest is encrypted"));
            }
            Ok(Manifest {
                path: self.places.of(path),
                spec: entry.get("partition_spec_id").int().unwrap_or(0),
                sequence: entry.get("sequence_number").int().unwrap_or(0),
            })
        };
        records(&list)?.iter().map(manifest).collect()
    }

    fn read_manifest(
        &self,
        manifest: &Manifest,
        entries: &mut Entries,
    ) -> Result<(), CatalogError> {
        const DELETED: i64 = 2;
        for record in records(&manifest.path)? {
            let wrong = |what: &str| CatalogError::invalid(&manifest.path, what);
            let status =
                record.get("status").int().ok_or_else(|| wrong("an entry without a status"))?;
            if status == DELETED {
                continue;
            }
            let file = record.get("data_file").clone();
            // Only new entries may leave it out: then it is that of the manifest.
            let sequence = record.get("sequence_number").int().unwrap_or(manifest.sequence);
            let entry = Entry { file, spec: manifest.spec, sequence };
            match entry.file.get("content").int().unwrap_or(0) {
                0 => entries.data.push(entry),
                1 => entries.deletes.push(entry),
                2 => return Err(self.unsupported("it has equality deletes")),
                other => return Err(self.unsupported(format!("it has files of kind {other}"))),
            }
        }
        Ok(())
    }

    fn data_files(&self, entries: Entries) -> Result<Vec<DataFile>, CatalogError> {
        let specs: HashMap<i64, Vec<IdentityField>> = self.specs().into_iter().collect();
        let deletes = self.delete_files(&entries.deletes)?;
        let mut files = Vec::new();
        for entry in &entries.data {
            let name = self.path_of(entry)?;
            let format = entry.file.get("file_format").text().unwrap_or_default().to_owned();
            if !format.eq_ignore_ascii_case("parquet") {
                return Err(self.unsupported(format!("it has data files in the format {format}")));
            }
            let fields = specs.get(&entry.spec).map(Vec::as_slice).unwrap_or_default();
            let partition = entry.file.get("partition");
            let values = fields.iter().filter_map(|field| self.value(partition, field)).collect();
            let (deletes, key) = applied(&deletes, entry, name);
            let part = Part { values, deletes: key };
            files.push(DataFile { path: self.places.of(name), part, deletes });
        }
        Ok(files)
    }

    fn path_of<'e>(&self, entry: &'e Entry) -> Result<&'e str, CatalogError> {
        if !entry.file.get("key_metadata").is_null() {
            return Err(self.unsupported("its files are encrypted"));
        }
        let path = entry.file.get("file_path").text();
        path.ok_or_else(|| self.invalid("a manifest lists a file without a path"))
    }

    fn delete_files<'e>(&self, entries: &'e [Entry]) -> Result<Vec<DeleteFile<'e>>, CatalogError> {
        let file = |entry: &'e Entry| {
            let path = self.places.of(self.path_of(entry)?);
            let format = entry.file.get("file_format").text().unwrap_or_default();
            let only = entry.file.get("referenced_data_file").text();
            let range = |name| {
                let number = entry.file.get(name).int().and_then(|n| u64::try_from(n).ok());
                number.ok_or_else(|| self.invalid("a deletion vector without a place"))
            };
            let listed = match format.to_ascii_lowercase().as_str() {
                "parquet" => Listed::Positions(Arc::new(PositionFile::new(path))),
                "puffin" => Listed::Vector {
                    file: path,
                    start: range("content_offset")?,
                    len: range("content_size_in_bytes")?,
                },
                other => {
                    return Err(
                        self.unsupported(format!("it has delete files in the format {other}"))
                    );
                }
            };
            Ok(DeleteFile { entry, only, listed })
        };
        entries.iter().map(file).collect()
    }

    /// The value that a column has in all rows of a file: its id, and the value as text.
    fn value(&self, partition: &Value, field: &IdentityField) -> Option<Pair> {
        let schemas = self.json["schemas"].as_array().into_iter().flatten();
        let schemas = schemas.chain(self.json.get("schema"));
        let mut columns =
            schemas.flat_map(|schema| schema["fields"].as_array().into_iter().flatten());
        let column = columns.find(|column| column["id"].as_i64() == Some(field.source))?;
        let text = as_text(partition.field(&field.name)?, column["type"].as_str()?)?;
        Some((field.source.to_string(), text))
    }
}

/// A field by which files are partitioned as it is.
struct IdentityField {
    /// In the partition of an entry.
    name: String,
    /// The id of the column.
    source: i64,
}

/// A delete file.
struct DeleteFile<'a> {
    entry: &'a Entry,
    /// The data file that it is about, if it is about one.
    only: Option<&'a str>,
    listed: Listed,
}

enum Listed {
    Positions(Arc<PositionFile>),
    Vector { file: Location, start: u64, len: u64 },
}

/// The deletes of a data file, and a text that is another one if they change.
fn applied(deletes: &[DeleteFile<'_>], data: &Entry, name: &str) -> (Deletes, Option<String>) {
    let applies = |delete: &&DeleteFile<'_>| {
        let entry = delete.entry;
        data.sequence <= entry.sequence
            && match delete.only {
                Some(only) => only == name,
                None => {
                    entry.spec == data.spec
                        && entry.file.get("partition") == data.file.get("partition")
                }
            }
    };
    let mut files = Vec::new();
    let mut keys = Vec::new();
    for delete in deletes.iter().filter(applies) {
        let path = delete.entry.file.get("file_path").text().unwrap_or_default();
        match &delete.listed {
            // It includes whatever was deleted before.
            Listed::Vector { file, start, len } => {
                let vector = Deletes::Vector { file: file.clone(), start: *start, len: Some(*len) };
                return (vector, Some(format!("{path}@{start}")));
            }
            Listed::Positions(file) => {
                files.push(Arc::clone(file));
                keys.push(path);
            }
        }
    }
    if files.is_empty() {
        return (Deletes::None, None);
    }
    keys.sort_unstable();
    (Deletes::Positions { files, name: name.to_owned() }, Some(keys.join("\n")))
}

/// A value of a partition as text, of those types that are simple enough; null is `Some(None)`.
fn as_text(value: &Value, of: &str) -> Option<Option<String>> {
    Some(Some(match (value, of) {
        (Value::Null, _) => return Some(None),
        (Value::Bool(value), _) => value.to_string(),
        (Value::Int(days), "date") => show_date(*days),
        (Value::Int(count), "timestamp" | "timestamptz") => {
            show_moment(i128::from(*count) * 1000, "UTC")
        }
        (Value::Int(number), "int" | "long") => number.to_string(),
        (Value::Text(text), "string") => text.clone(),
        _ => return None,
    }))
}

fn records(path: &Location) -> Result<Vec<Value>, CatalogError> {
    avro::records(&bytes_of(path)?).map_err(|what| CatalogError::invalid(path, what))
}
