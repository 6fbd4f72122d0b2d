//! The columns of a Delta table: its schema in JSON, and Arrow types.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use serde_json::{Value as Json, json};

use crate::table::{Matching, NAME_IN_FILES};

/// What an index keeps of a table.
#[derive(Clone, Debug)]
pub(crate) struct DeltaShape {
    /// As in the log of the table.
    json: Json,
    /// Names of columns that are not in the files, but in the log.
    pub(crate) partitioned_by: Vec<String>,
    mapping: Mapping,
    pub(crate) schema: SchemaRef,
}

/// How columns are called in files (`delta.columnMapping.mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mapping {
    None,
    Name,
    Id,
}

impl Mapping {
    /// `None` if there is no such mode.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "none" => Self::None,
            "name" => Self::Name,
            "id" => Self::Id,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Name => "name",
            Self::Id => "id",
        }
    }
}

impl PartialEq for DeltaShape {
    fn eq(&self, other: &Self) -> bool {
        (&self.json, &self.partitioned_by, self.mapping)
            == (&other.json, &other.partitioned_by, other.mapping)
    }
}

impl DeltaShape {
    /// The error says what is not supported.
    pub(super) fn new(
        json: Json,
        partitioned_by: Vec<String>,
        mapping: Mapping,
    ) -> Result<Self, String> {
        let schema = Arc::new(Schema::new(fields(&json, mapping)?));
        if let Some(name) = partitioned_by.iter().find(|name| schema.field_with_name(name).is_err())
        {
            return Err(format!("it is partitioned by {name}, which is not a column of it"));
        }
        Ok(Self { json, partitioned_by, mapping, schema })
    }

    pub(crate) fn read(json: &Json) -> Option<Self> {
        let columns = json.get("partitioned by")?.as_array()?;
        let columns = columns.iter().map(|column| column.as_str().map(str::to_owned));
        let mapping = Mapping::named(json.get("mapping")?.as_str()?)?;
        Self::new(json.get("schema")?.clone(), columns.collect::<Option<_>>()?, mapping).ok()
    }

    pub(crate) fn write(&self) -> Json {
        json!({
            "schema": self.json,
            "partitioned by": self.partitioned_by,
            "mapping": self.mapping.name(),
        })
    }

    pub(crate) fn matching(&self) -> Matching {
        match self.mapping {
            Mapping::None | Mapping::Name => Matching::Name,
            Mapping::Id => Matching::Id,
        }
    }
}

/// What a column is called in files and in the log.
pub(crate) fn physical_name(field: &Field) -> &str {
    field.metadata().get(NAME_IN_FILES).unwrap_or(field.name())
}

fn fields(of: &Json, mapping: Mapping) -> Result<Fields, String> {
    let fields = of.get("fields").and_then(Json::as_array).ok_or("a struct without fields")?;
    fields.iter().map(|json| Ok(Arc::new(field(json, mapping)?))).collect()
}

fn field(json: &Json, mapping: Mapping) -> Result<Field, String> {
    let name = json.get("name").and_then(Json::as_str).ok_or("a column without a name")?;
    let of = json.get("type").ok_or("a column without a type")?;
    let data_type = data_type(of, mapping).map_err(|what| format!("column {name}: {what}"))?;
    let mut metadata = HashMap::new();
    if mapping != Mapping::None {
        let own = |key: &str| json.get("metadata").and_then(|metadata| metadata.get(key));
        let physical = own("delta.columnMapping.physicalName").and_then(Json::as_str);
        let physical = physical.ok_or_else(|| format!("column {name} has no physical name"))?;
        metadata.insert(NAME_IN_FILES.to_owned(), physical.to_owned());
        if let Some(id) = own("delta.columnMapping.id").and_then(Json::as_i64) {
            metadata.insert(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string());
        }
    }
    Ok(Field::new(name, data_type, true).with_metadata(metadata))
}

fn data_type(json: &Json, mapping: Mapping) -> Result<DataType, String> {
    let Some(name) = json.as_str() else { return nested(json, mapping) };
    Ok(match name {
        "string" => DataType::Utf8,
        "long" => DataType::Int64,
        "integer" => DataType::Int32,
        "short" => DataType::Int16,
        "byte" => DataType::Int8,
        "float" => DataType::Float32,
        "double" => DataType::Float64,
        "boolean" => DataType::Boolean,
        "binary" => DataType::Binary,
        "date" => DataType::Date32,
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        "timestamp_ntz" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "void" | "null" => DataType::Null,
        other => decimal(other).ok_or_else(|| format!("the type {other} is not supported"))?,
    })
}

/// `decimal(9,2)`
fn decimal(name: &str) -> Option<DataType> {
    let digits = name.strip_prefix("decimal(").and_then(|rest| rest.strip_suffix(')'))?;
    let (precision, scale) = digits.split_once(',')?;
    let (precision, scale) = (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
    (1..=38).contains(&precision).then_some(DataType::Decimal128(precision, scale))
}

fn nested(json: &Json, mapping: Mapping) -> Result<DataType, String> {
    let part = |key: &str| {
        let part = json.get(key).ok_or_else(|| format!("a type without {key}"))?;
        data_type(part, mapping)
    };
    match json.get("type").and_then(Json::as_str) {
        Some("struct") => Ok(DataType::Struct(fields(json, mapping)?)),
        Some("array") => {
            Ok(DataType::List(Arc::new(Field::new("element", part("elementType")?, true))))
        }
        Some("map") => {
            let entries = vec![
                Field::new("key", part("keyType")?, false),
                Field::new("value", part("valueType")?, true),
            ];
            let entries = Field::new("key_value", DataType::Struct(entries.into()), false);
            Ok(DataType::Map(Arc::new(entries), false))
        }
        _ => Err(format!("the type {json} is not supported")),
    }
}
