//! A version of a Delta table, by its log: the current one, or an earlier one.

use std::collections::HashMap;

use serde_json::Value as Json;

use super::deletes::Deletes;
use super::delta_log::Log;
use super::delta_schema::{DeltaShape, Mapping};
use super::{CatalogError, DataFile, Shape, Snapshot, local};
use crate::hive::{Pair, decoded};
use crate::location::Location;
use crate::part::Part;

/// Features that a reader must know, by the names in the protocol of a table, and that are known here. (`vacuumProtocolCheck`
/// concerns who removes files.)
const FEATURES: [&str; 7] = [
    COLUMN_MAPPING,
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
];
/// Features that concern columns of one type, and nothing else. Writers list them for tables without such columns; a table that
/// has one is refused by its type.
const FEATURES_OF_TYPES: [&str; 5] = [
    "geospatial",
    "variantShredding",
    "variantShredding-preview",
    "variantType",
    "variantType-preview",
];
const COLUMN_MAPPING: &str = "columnMapping";
/// The version of the protocol that names features.
const VERSION_OF_FEATURES: i64 = 3;
/// The version that allows the mapping of columns and nothing more.
const VERSION_OF_COLUMN_MAPPING: i64 = 2;

/// The table in this folder as it is now, or in the version of this number.
pub(super) fn snapshot(table: &Location, at: Option<&str>) -> Result<Snapshot, CatalogError> {
    let number = |at: &str| {
        let what = || format!("versions of Delta are numbers, which {at:?} is not");
        at.parse().map_err(|_| CatalogError::invalid(table, what()))
    };
    let log = Log::open(table, at.map(number).transpose()?)?;
    let mut state = State::default();
    log.replay(|action| {
        state.act(action);
        Ok(())
    })?;
    let protocol = Protocol::new(table, &state.protocol)?;
    let shape = shape(table, &state.metadata, protocol)?;
    let mut files = Vec::new();
    let mut adds: Vec<&Json> = state.files.values().collect();
    adds.sort_by_key(|add| add["path"].as_str());
    for add in adds {
        files.push(data_file(table, add)?);
    }
    let id = i64::try_from(log.version).unwrap_or(i64::MAX);
    let table_id = state.metadata["id"].as_str().map(str::to_owned);
    Ok(Snapshot { id, table_id, shape: Shape::Delta(shape), files })
}

/// What the actions so far amount to.
#[derive(Default)]
struct State {
    protocol: Json,
    metadata: Json,
    /// By path and deletion vector: a file whose deleted rows change is removed and added again.
    files: HashMap<(String, Option<String>), Json>,
}

impl State {
    fn act(&mut self, action: &Json) {
        // One member says what is done; some writers put the others beside it, as null.
        let members = action.as_object().into_iter().flatten();
        for (name, what) in members.filter(|(_, what)| !what.is_null()) {
            match name.as_str() {
                "protocol" => self.protocol = what.clone(),
                "metaData" => self.metadata = what.clone(),
                "add" => {
                    self.files.insert(key(what), what.clone());
                }
                "remove" => {
                    self.files.remove(&key(what));
                }
                _ => {}
            }
        }
    }
}

fn key(file: &Json) -> (String, Option<String>) {
    (file["path"].as_str().unwrap_or_default().to_owned(), vector_key(&file["deletionVector"]))
}

/// What tells a deletion vector from others.
fn vector_key(vector: &Json) -> Option<String> {
    let kind = vector["storageType"].as_str()?;
    let place = vector["pathOrInlineDv"].as_str().unwrap_or_default();
    Some(match vector["offset"].as_i64() {
        Some(offset) => format!("{kind}{place}@{offset}"),
        None => format!("{kind}{place}"),
    })
}

/// Things that the protocol of a table enables. Properties that it does not enable mean nothing.
#[derive(Clone, Copy)]
struct Protocol {
    maps_columns: bool,
}

impl Protocol {
    fn new(table: &Location, protocol: &Json) -> Result<Self, CatalogError> {
        let unsupported = |what: String| Err(CatalogError::unsupported(table, what));
        let Some(version) = protocol["minReaderVersion"].as_i64() else {
            return Err(CatalogError::invalid(table, "its log has no protocol"));
        };
        if version > VERSION_OF_FEATURES {
            return unsupported(format!("it needs version {version} of Delta's protocol"));
        }
        let listed = protocol["readerFeatures"].as_array().into_iter().flatten();
        let listed = listed.filter(|_| version == VERSION_OF_FEATURES).filter_map(Json::as_str);
        let mut maps_columns = version == VERSION_OF_COLUMN_MAPPING;
        for feature in listed {
            if !FEATURES.contains(&feature) && !FEATURES_OF_TYPES.contains(&feature) {
                return unsupported(format!("it uses {feature}"));
            }
            maps_columns |= feature == COLUMN_MAPPING;
        }
        Ok(Self { maps_columns })
    }
}

fn shape(
    table: &Location,
    metadata: &Json,
    protocol: Protocol,
) -> Result<DeltaShape, CatalogError> {
    let invalid = |what: &str| CatalogError::invalid(table, what);
    let schema =
        metadata["schemaString"].as_str().ok_or_else(|| invalid("its log has no schema"))?;
    let schema = serde_json::from_str(schema).map_err(|error| invalid(&error.to_string()))?;
    let format = metadata["format"]["provider"].as_str().unwrap_or("parquet");
    if format != "parquet" {
        return Err(CatalogError::unsupported(
            table,
            format!("its files have the format {format}"),
        ));
    }
    let columns = metadata["partitionColumns"].as_array().into_iter().flatten();
    let columns = columns.filter_map(Json::as_str).map(str::to_owned).collect();
    let mode = metadata["configuration"]["delta.columnMapping.mode"].as_str();
    let mode = mode.filter(|_| protocol.maps_columns).unwrap_or("none");
    let mapping = Mapping::named(mode)
        .ok_or_else(|| CatalogError::unsupported(table, format!("it maps columns by {mode}")))?;
    DeltaShape::new(schema, columns, mapping).map_err(|what| CatalogError::unsupported(table, what))
}

fn data_file(table: &Location, add: &Json) -> Result<DataFile, CatalogError> {
    let path = add["path"].as_str();
    let path =
        path.ok_or_else(|| CatalogError::invalid(table, "its log adds a file without a path"))?;
    let values = add["partitionValues"].as_object().into_iter().flatten();
    // An empty text is null there.
    let value = |value: &Json| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let values: Vec<Pair> = values.map(|(key, text)| (key.clone(), value(text))).collect();
    let vector = &add["deletionVector"];
    let part = Part { values, deletes: vector_key(vector) };
    Ok(DataFile { path: place(table, path), part, deletes: deletes(table, vector)? })
}

/// Where a file is: its path is an address, usually relative to the table.
fn place(table: &Location, address: &str) -> Location {
    table.join(&decoded(local(address)))
}

fn deletes(table: &Location, vector: &Json) -> Result<Deletes, CatalogError> {
    let Some(kind) = vector["storageType"].as_str() else { return Ok(Deletes::None) };
    let invalid = || CatalogError::invalid(table, "a deletion vector in its log is invalid");
    let text = vector["pathOrInlineDv"].as_str().ok_or_else(invalid)?;
    let start = match vector["offset"].as_i64() {
        Some(offset) => u64::try_from(offset).map_err(|_| invalid())?,
        None => 0,
    };
    Ok(match kind {
        "i" => Deletes::Inline(z85(text).ok_or_else(invalid)?),
        "p" => Deletes::Vector { file: place(table, text), start, len: None },
        // A folder, perhaps, and then a UUID in 20 characters.
        "u" => {
            let at = text.len().checked_sub(20).filter(|&at| text.is_char_boundary(at));
            let (folder, id) = text.split_at(at.ok_or_else(invalid)?);
            let id = z85(id).ok_or_else(invalid)?;
            let file = table.join(folder).join(&format!("deletion_vector_{}.bin", uuid(&id)));
            Deletes::Vector { file, start, len: None }
        }
        other => {
            let what = format!("it has deletion vectors of type {other}");
            return Err(CatalogError::unsupported(table, what));
        }
    })
}

fn uuid(bytes: &[u8]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let cuts = [0, 8, 12, 16, 20, hex.len()];
    cuts.windows(2).map(|cut| &hex[cut[0]..cut[1]]).collect::<Vec<_>>().join("-")
}

/// Five characters for four bytes (ZeroMQ's RFC 32).
#[expect(clippy::big_endian_bytes, reason = "that is how it is defined")]
fn z85(text: &str) -> Option<Vec<u8>> {
    const DIGITS: &[u8] =
        b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
    if !text.len().is_multiple_of(5) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 5 * 4);
    for five in text.as_bytes().chunks(5) {
        let mut number = 0u64;
        for byte in five {
            number = number * 85 + DIGITS.iter().position(|digit| digit == byte)? as u64;
        }
        bytes.extend(u32::try_from(number).ok()?.to_be_bytes());
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_count_whatever_is_null_beside_them() {
        let mut state = State::default();
        let lines = [
            r#"{"add":null,"cdc":null,"protocol":{"minReaderVersion":1}}"#,
            r#"{"cdc":null,"metaData":{"id":"7"},"remove":null}"#,
            r#"{"commitInfo":null,"add":{"path":"a"}}"#,
            r#"{"add":{"path":"b"},"remove":null}"#,
            r#"{"cdc":null,"remove":{"path":"a"}}"#,
            r#"{"txn":{"appId":"x"}}"#,
            "null",
        ];
        for line in lines {
            state.act(&serde_json::from_str(line).unwrap());
        }
        assert_eq!(state.protocol["minReaderVersion"], 1);
        assert_eq!(state.metadata["id"], "7");
        let files: Vec<_> = state.files.keys().map(|(path, _)| path.as_str()).collect();
        assert_eq!(files, ["b"]);
    }

    /// The examples of ZeroMQ's and of Delta's specification.
    #[test]
    fn z85_is_read_as_its_specification_says() {
        let hello = [0x86, 0x4f, 0xd2, 0x6f, 0xb5, 0x59, 0xf7, 0x5b];
        assert_eq!(z85("HelloWorld").unwrap(), hello);
        let id = z85("ab^-aqEH.-t@S}K{vb[*k^").map(|_| ());
        assert_eq!(id, None, "22 characters");
        let id = z85("^-aqEH.-t@S}K{vb[*k^").unwrap();
        assert_eq!(uuid(&id), "d2c639aa-8816-431a-aaf6-d3fe2512ff61");
        assert_eq!(z85("~~~~~"), None);
        assert_eq!(z85("#####"), None, "more than 32 bits");
    }
}
