//! A table of Iceberg or Delta that an index follows: where it is, which snapshot of it is indexed, and what its columns are.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{Field, Schema, SchemaRef};
use serde_json::{Value as Json, json};

use crate::catalog::{DeltaShape, IcebergShape, Shape, TableFormat, id_of, physical_name};
use crate::constant::constant;
use crate::part::Part;
use crate::table::Matching;

/// What an index remembers of the table that it follows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Followed {
    /// The name under which the index keeps it, like those of files.
    pub(crate) path: String,
    /// The id of Iceberg's snapshot, or Delta's version.
    pub(crate) snapshot: i64,
    /// The version that was asked for, if the index is to stay with it.
    pub(crate) at: Option<String>,
    /// What tells the table from others; older indexes do not have it, nor have some tables of Iceberg's first version.
    pub(crate) table_id: Option<String>,
    pub(crate) shape: Shape,
    /// The [keys](Self::key) of the columns to index; `None` means all that can be.
    pub(crate) indexed: Option<Vec<String>>,
}

impl Followed {
    pub(crate) fn format(&self) -> TableFormat {
        match self.shape {
            Shape::Iceberg(_) => TableFormat::Iceberg,
            Shape::Delta(_) => TableFormat::Delta,
        }
    }

    /// `None` if it is invalid.
    pub(crate) fn read(json: &Json) -> Option<Self> {
        let shape = json.get("shape")?;
        let shape = match json.get("format")?.as_str()? {
            "Iceberg" => Shape::Iceberg(IcebergShape::read(shape)?),
            "Delta" => Shape::Delta(DeltaShape::read(shape)?),
            _ => return None,
        };
        let indexed = match json.get("indexed")? {
            Json::Null => None,
            keys => {
                let keys = keys.as_array()?.iter().map(|key| key.as_str().map(str::to_owned));
                Some(keys.collect::<Option<_>>()?)
            }
        };
        let path = json.get("path")?.as_str()?.to_owned();
        let snapshot = json.get("snapshot")?.as_i64()?;
        let table_id = json.get("id").and_then(Json::as_str).map(str::to_owned);
        let at = json.get("at").and_then(Json::as_str).map(str::to_owned);
        Some(Self { path, snapshot, at, table_id, shape, indexed })
    }

    pub(crate) fn write(&self) -> Json {
        let shape = match &self.shape {
            Shape::Iceberg(shape) => shape.write(),
            Shape::Delta(shape) => shape.write(),
        };
        json!({
            "format": self.format().to_string(),
            "path": self.path,
            "snapshot": self.snapshot,
            "at": self.at,
            "id": self.table_id,
            "shape": shape,
            "indexed": self.indexed,
        })
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        match &self.shape {
            Shape::Iceberg(shape) => Arc::clone(&shape.schema),
            Shape::Delta(shape) => Arc::clone(&shape.schema),
        }
    }

    pub(crate) fn matching(&self) -> Matching {
        match &self.shape {
            Shape::Iceberg(_) => Matching::Id,
            Shape::Delta(shape) => shape.matching(),
        }
    }

    /// What stays the same if a column is renamed.
    pub(crate) fn key<'a>(&self, field: &'a Field) -> &'a str {
        match &self.shape {
            Shape::Iceberg(_) => id_of(field).unwrap_or_default(),
            Shape::Delta(_) => physical_name(field),
        }
    }

    /// The key of the column with this name.
    pub(crate) fn key_of(&self, name: &str) -> Option<String> {
        let schema = self.schema();
        let field = schema.field_with_name(name).ok()?;
        Some(self.key(field).to_owned())
    }

    /// Columns that are not in the files, and need no index.
    pub(crate) fn constant_schema(&self) -> SchemaRef {
        let Shape::Delta(shape) = &self.shape else { return Arc::new(Schema::empty()) };
        let schema = self.schema();
        let fields = schema.fields().iter();
        let fields = fields.filter(|field| shape.partitioned_by.contains(field.name())).cloned();
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// Whether a column may have one value in all rows of a file.
    pub(crate) fn may_be_constant(&self, name: &str) -> bool {
        match &self.shape {
            Shape::Iceberg(shape) => {
                let id = self.key_of(name).and_then(|key| key.parse().ok());
                id.is_some_and(|id| shape.identity.contains(&id))
            }
            Shape::Delta(shape) => shape.partitioned_by.iter().any(|known| known == name),
        }
    }

    /// The columns of a file that have one value. `None` if the part is invalid.
    pub(crate) fn constants(&self, part: &Part) -> Option<Vec<(String, ArrayRef)>> {
        let mut constants = Vec::new();
        for field in self.schema().fields() {
            let value = match &self.shape {
                // Files may be partitioned in different ways, and have the column as well.
                Shape::Iceberg(_) => part.value(self.key(field)),
                Shape::Delta(shape) if shape.partitioned_by.contains(field.name()) => {
                    Some(part.value(self.key(field))?)
                }
                Shape::Delta(_) => None,
            };
            if let Some(value) = value {
                constants.push((field.name().clone(), constant(value, field.data_type())?));
            }
        }
        Some(constants)
    }
}
