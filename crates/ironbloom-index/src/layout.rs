//! What the files of an index are parts of: a set of files, or a table with columns of its own.
//!
//! An index keeps this as JSON: once for all files ([`Layout`]), and a little for each (`part.rs`). Neither is needed by a plain
//! set of files, which has no bytes here.
//!
//! ```text
//! layout   {"hive": [{"name": "country", "type": "text", "given": false}, {"name": "day", "type": "date", "given": true}]}
//! view     {"values": {"country": "SE", "day": null}}
//!
//! layout   {"table": {"format": "Delta", "path": "sales", "snapshot": 12, "id": "5f1c…", "shape": {…}, "indexed": null}}
//! view     {"values": {"country": "SE"}, "deletes": "u…@1"}
//! ```

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use roaring::RoaringTreemap;
use serde_json::{Value as Json, json};

use crate::constant::constant;
use crate::followed::Followed;
use crate::hive::{self, HiveFolders, HiveOptions, Pair};
use crate::part::Part;
use crate::table::{View, csv_type, type_name};

/// What the files of an index have in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Layout {
    /// Nothing.
    #[default]
    Files,
    /// Columns in the names of their folders.
    Hive(Vec<FolderColumn>),
    /// They are the files of a table that has a list of them.
    Table(Box<Followed>),
}

/// A column in the names of folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FolderColumn {
    pub(crate) name: String,
    pub(crate) data_type: DataType,
    /// The type was given, and not inferred.
    pub(crate) is_given: bool,
}

/// Tables whose folders do not fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FolderError(pub(crate) String);

impl Layout {
    /// `None` if the bytes are invalid.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self::Files);
        }
        let json: Json = serde_json::from_slice(bytes).ok()?;
        if let Some(table) = json.get("table") {
            return Some(Self::Table(Box::new(Followed::read(table)?)));
        }
        let columns = json.get("hive")?.as_array()?;
        Some(Self::Hive(columns.iter().map(FolderColumn::read).collect::<Option<_>>()?))
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        match self {
            Self::Files => Vec::new(),
            Self::Hive(columns) => {
                let columns: Vec<Json> = columns.iter().map(FolderColumn::write).collect();
                json!({ "hive": columns }).to_string().into_bytes()
            }
            Self::Table(table) => json!({ "table": table.write() }).to_string().into_bytes(),
        }
    }

    /// The layout of these new files, and what is known of each.
    pub(crate) fn of_folders(
        options: &HiveOptions,
        pairs: &[(String, Vec<Pair>)],
    ) -> Result<Self, FolderError> {
        let Some((first_file, first)) = pairs.first() else { return Ok(Self::Files) };
        let differs = pairs.iter().find(|(_, other)| !same_keys(first, other));
        let unknown =
            options.types.iter().find(|(name, _)| !first.iter().any(|(key, _)| key == name));
        match (options.folders, differs) {
            (HiveFolders::Off, _) => return Ok(Self::Files),
            (HiveFolders::Auto, Some(_)) if options.types.is_empty() => return Ok(Self::Files),
            (_, Some((file, _))) => {
                return Err(FolderError(format!(
                    "{file} and {first_file} are not in folders of the same columns"
                )));
            }
            _ => {}
        }
        if let Some((name, _)) = unknown {
            return Err(FolderError(format!(
                "{first_file}: there is no folder {name}=… in its path"
            )));
        }
        if first.is_empty() {
            return match options.folders {
                HiveFolders::On => Err(FolderError(format!(
                    "{first_file}: there is no folder such as column=value in its path"
                ))),
                _ => Ok(Self::Files),
            };
        }
        let column = |(name, _): &Pair| {
            let given = options.types.iter().find(|(known, _)| known == name);
            let data_type = given.map_or(DataType::Utf8, |(_, data_type)| data_type.clone());
            FolderColumn { name: name.clone(), data_type, is_given: given.is_some() }
        };
        let layout = Self::Hive(first.iter().map(column).collect());
        layout.fitted(pairs.iter().map(|(file, pairs)| (file.as_str(), pairs.as_slice())))
    }

    /// The same columns, with types that hold the values of all these files.
    pub(crate) fn fitted<'a>(
        &self,
        files: impl Iterator<Item = (&'a str, &'a [Pair])> + Clone,
    ) -> Result<Self, FolderError> {
        let Self::Hive(columns) = self else { return Ok(self.clone()) };
        let mut fitted = columns.clone();
        for column in &mut fitted {
            let values = files.clone().filter_map(|(file, pairs)| {
                let (_, value) = pairs.iter().find(|(key, _)| *key == column.name)?;
                Some((file, value.as_deref()?))
            });
            if !column.is_given {
                column.data_type = hive::inferred(values.map(|(_, value)| value));
                continue;
            }
            let mut wrong =
                values.filter(|(_, value)| constant(Some(value), &column.data_type).is_none());
            if let Some((file, value)) = wrong.next() {
                let FolderColumn { name, data_type, .. } = column;
                return Err(FolderError(format!(
                    "{file}: {name} is {data_type}, which {value} is not"
                )));
            }
        }
        Ok(Self::Hive(fitted))
    }

    /// What is known of a file in these folders; an error if they are not those of this layout.
    pub(crate) fn part(&self, file: &str, pairs: &[Pair]) -> Result<Part, FolderError> {
        let Self::Hive(columns) = self else { return Ok(Part::default()) };
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let values = columns.iter().map(|column| {
            pairs.iter().find(|(key, _)| *key == column.name).cloned().ok_or_else(|| {
                FolderError(format!(
                    "{file}: is not in folders of the columns {}, as the other tables are",
                    names.join(", ")
                ))
            })
        });
        Ok(Part { values: values.collect::<Result<_, _>>()?, deletes: None })
    }

    /// Columns that have one value in each file, and so need no index.
    pub(crate) fn constant_schema(&self) -> SchemaRef {
        let columns = match self {
            Self::Files => [].as_slice(),
            Self::Hive(columns) => columns,
            Self::Table(table) => return table.constant_schema(),
        };
        let field =
            |column: &FolderColumn| Field::new(&column.name, column.data_type.clone(), true);
        Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
    }

    /// Whether a column may have one value in all rows of a file.
    pub(crate) fn may_be_constant(&self, column: &str) -> bool {
        match self {
            Self::Files => false,
            Self::Hive(columns) => columns.iter().any(|known| known.name == column),
            Self::Table(table) => table.may_be_constant(column),
        }
    }

    /// Names and types of all columns, if they are known without looking at a file.
    pub(crate) fn schema(&self) -> Option<SchemaRef> {
        match self {
            Self::Files | Self::Hive(_) => None,
            Self::Table(table) => Some(table.schema()),
        }
    }

    /// The columns of a file that have one value, each as an array of one row. `None` if the part is invalid.
    pub(crate) fn constants(&self, part: &Part) -> Option<Vec<(String, ArrayRef)>> {
        match self {
            Self::Files => Some(Vec::new()),
            Self::Hive(columns) => {
                let value = |column: &FolderColumn| {
                    let array = constant(part.value(&column.name)?, &column.data_type)?;
                    Some((column.name.clone(), array))
                };
                columns.iter().map(value).collect()
            }
            Self::Table(table) => table.constants(part),
        }
    }

    /// How a file is seen. `None` if the part is invalid.
    pub(crate) fn view(&self, part: &Part, deleted: RoaringTreemap) -> Option<View> {
        let columns = match self {
            Self::Files | Self::Hive(_) => None,
            Self::Table(table) => Some((table.schema(), table.matching())),
        };
        Some(View { columns, constants: self.constants(part)?, deleted })
    }
}

impl FolderColumn {
    fn read(json: &Json) -> Option<Self> {
        Some(Self {
            name: json.get("name")?.as_str()?.to_owned(),
            data_type: csv_type(json.get("type")?.as_str()?)?,
            is_given: json.get("given")?.as_bool()?,
        })
    }

    fn write(&self) -> Json {
        json!({ "name": self.name, "type": type_name(&self.data_type), "given": self.is_given })
    }
}

/// The rows in a list of an index, which is empty if there are none. `None` if the list is invalid.
pub(crate) fn deleted_rows(bytes: &[u8]) -> Option<RoaringTreemap> {
    if bytes.is_empty() {
        return Some(RoaringTreemap::new());
    }
    RoaringTreemap::deserialize_from(bytes).ok()
}

fn same_keys(left: &[Pair], right: &[Pair]) -> bool {
    let has = |pairs: &[Pair], key: &str| pairs.iter().any(|(known, _)| known == key);
    left.len() == right.len() && left.iter().all(|(key, _)| has(right, key))
}
