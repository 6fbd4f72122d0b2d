//! The columns of an Iceberg table: its schema in JSON, and Arrow types.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use serde_json::{Value as Json, json};

use crate::table::NAME_IN_FILES;

/// What an index keeps of a table.
#[derive(Clone, Debug)]
pub(crate) struct IcebergShape {
    /// As in the metadata of the table.
    json: Json,
    /// Names of columns in files without ids (`schema.name-mapping.default`), or null.
    names: Json,
    /// Ids of columns that some files are partitioned by as they are.
    pub(crate) identity: Vec<i64>,
    pub(crate) schema: SchemaRef,
}

impl PartialEq for IcebergShape {
    fn eq(&self, other: &Self) -> bool {
        let parts =
            |shape: &Self| (shape.json.clone(), shape.names.clone(), shape.identity.clone());
        parts(self) == parts(other)
    }
}

impl IcebergShape {
    /// The error says what is not supported.
    pub(crate) fn new(json: Json, names: Json, identity: Vec<i64>) -> Result<Self, String> {
        let fields = fields(&json, &names)?;
        Ok(Self { json, names, identity, schema: Arc::new(Schema::new(fields)) })
    }

    pub(crate) fn read(json: &Json) -> Option<Self> {
        let identity = json.get("identity")?.as_array()?;
        let identity = identity.iter().map(Json::as_i64).collect::<Option<_>>()?;
        Self::new(json.get("schema")?.clone(), json.get("names")?.clone(), identity).ok()
    }

    pub(crate) fn write(&self) -> Json {
        json!({ "schema": self.json, "names": self.names, "identity": self.identity })
    }
}

/// The id of a column, as text.
pub(crate) fn id_of(field: &Field) -> Option<&str> {
    field.metadata().get(PARQUET_FIELD_ID_META_KEY).map(String::as_str)
}

fn fields(of: &Json, names: &Json) -> Result<Fields, String> {
    let fields = of.get("fields").and_then(Json::as_array).ok_or("a struct without fields")?;
    fields.iter().map(|json| Ok(Arc::new(field(json, names)?))).collect()
}

fn field(json: &Json, names: &Json) -> Result<Field, String> {
    let name = json.get("name").and_then(Json::as_str).ok_or("a column without a name")?;
    let id = json.get("id").and_then(Json::as_i64).ok_or("a column without an id")?;
    for default in ["initial-default", "default"] {
        if json.get(default).is_some_and(|value| !value.is_null()) {
            return Err(format!("column {name} has a default for older rows"));
        }
    }
    let mapped = names.as_array().and_then(|all| {
        all.iter().find(|entry| entry.get("field-id").and_then(Json::as_i64) == Some(id))
    });
    let inner = mapped.and_then(|entry| entry.get("fields")).unwrap_or(&Json::Null);
    let of = json.get("type").ok_or("a column without a type")?;
    let data_type = data_type(of, inner).map_err(|what| format!("column {name}: {what}"))?;
    let mut metadata = HashMap::from([(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())]);
    if let Some(names) = mapped.and_then(|entry| entry.get("names")).and_then(Json::as_array) {
        let names: Vec<&str> = names.iter().filter_map(Json::as_str).collect();
        metadata.insert(NAME_IN_FILES.to_owned(), names.join("\n"));
    }
    Ok(Field::new(name, data_type, true).with_metadata(metadata))
}

fn data_type(json: &Json, names: &Json) -> Result<DataType, String> {
    let Some(name) = json.as_str() else { return nested(json, names) };
    let timestamp = |unit, zone: Option<&str>| DataType::Timestamp(unit, zone.map(Into::into));
    Ok(match name {
        "boolean" => DataType::Boolean,
        "int" => DataType::Int32,
        "long" => DataType::Int64,
        "float" => DataType::Float32,
        "double" => DataType::Float64,
        "date" => DataType::Date32,
        "time" => DataType::Time64(TimeUnit::Microsecond),
        "timestamp" => timestamp(TimeUnit::Microsecond, None),
        "timestamptz" => timestamp(TimeUnit::Microsecond, Some("UTC")),
        "timestamp_ns" => timestamp(TimeUnit::Nanosecond, None),
        "timestamptz_ns" => timestamp(TimeUnit::Nanosecond, Some("UTC")),
        "string" => DataType::Utf8,
        "uuid" => DataType::FixedSizeBinary(16),
        "binary" => DataType::Binary,
        "unknown" => DataType::Null,
        other => sized(other).ok_or_else(|| format!("the type {other} is not supported"))?,
    })
}

/// `decimal(9, 2)`, `fixed[16]`.
fn sized(name: &str) -> Option<DataType> {
    if let Some(size) = name.strip_prefix("fixed[").and_then(|rest| rest.strip_suffix(']')) {
        return Some(DataType::FixedSizeBinary(size.trim().parse().ok()?));
    }
    let digits = name.strip_prefix("decimal(").and_then(|rest| rest.strip_suffix(')'))?;
    let (precision, scale) = digits.split_once(',')?;
    let (precision, scale) = (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
    (1..=38).contains(&precision).then_some(DataType::Decimal128(precision, scale))
}

fn nested(json: &Json, names: &Json) -> Result<DataType, String> {
    let part = |key: &str| json.get(key).ok_or_else(|| format!("a type without {key}"));
    // The mapping of names calls what is in a list or a map by these names.
    let inner = |name: &str| {
        let entries = names.as_array();
        let found = entries.and_then(|all| {
            all.iter().find(|entry| {
                entry["names"].as_array().is_some_and(|known| known.iter().any(|n| n == name))
            })
        });
        found.and_then(|entry| entry.get("fields")).cloned().unwrap_or(Json::Null)
    };
    let with_id = |field: Field, key: &str| {
        let id = json.get(key).and_then(Json::as_i64).map(|id| id.to_string());
        field.with_metadata(
            id.map(|id| (PARQUET_FIELD_ID_META_KEY.to_owned(), id)).into_iter().collect(),
        )
    };
    match json.get("type").and_then(Json::as_str) {
        Some("struct") => Ok(DataType::Struct(fields(json, names)?)),
        Some("list") => {
            let item = data_type(part("element")?, &inner("element"))?;
            Ok(DataType::List(Arc::new(with_id(Field::new("element", item, true), "element-id"))))
        }
        Some("map") => {
            let key = data_type(part("key")?, &inner("key"))?;
            let value = data_type(part("value")?, &inner("value"))?;
            let entries = vec![
                with_id(Field::new("key", key, false), "key-id"),
                with_id(Field::new("value", value, true), "value-id"),
            ];
            let entries = Field::new("key_value", DataType::Struct(entries.into()), false);
            Ok(DataType::Map(Arc::new(entries), false))
        }
        _ => Err(format!("the type {json} is not supported")),
    }
}
