//! What the files of an index are parts of: a set of files, or a table with columns of its own.
//!
//! An index keeps this as JSON: once for all files ([`Layout`]), and a little for each (`part.rs`). Neither is needed by a plain
//! set of files, which has no bytes here.
//!
//! ```text
//! layout   {"hive": [{"name": "country", "type": "text", "given": false}, {"name": "day", "type": "date", "given": true}]}
//! view     {"values": {"country": "SE", "day": null}}
//!
//! layout   {"united": {"columns": "ffff…", "hive": []}}                 (united.rs)
//!
//! layout   {"table": {"format": "Delta", "path": "sales", "snapshot": 12, "at": null, "id": "5f1c…", "shape": {…}, "indexed": null}}
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
use crate::united::{read_schema, write_schema};

/// What the files of an index have in common.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Layout {
    /// They are a set of files.
    Files(Files),
    /// They are the files of a table that has a list of them.
    Table(Box<Followed>),
}

/// A set of files.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Files {
    /// Columns in the names of their folders.
    hive: Vec<FolderColumn>,
    /// The columns of all of them, if these differ.
    united: Option<SchemaRef>,
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
            return Some(Self::files());
        }
        let json: Json = serde_json::from_slice(bytes).ok()?;
        if let Some(table) = json.get("table") {
            return Some(Self::Table(Box::new(Followed::read(table)?)));
        }
        let folders = |json: &Json| -> Option<Vec<FolderColumn>> {
            json.get("hive")?.as_array()?.iter().map(FolderColumn::read).collect()
        };
        let files = match json.get("united") {
            Some(json) => {
                let united = Some(read_schema(json.get("columns")?.as_str()?)?);
                Files { hive: folders(json)?, united }
            }
            None => Files { hive: folders(&json)?, united: None },
        };
        Some(Self::Files(files))
    }

    /// Files with nothing in common.
    fn files() -> Self {
        Self::Files(Files::default())
    }

    fn in_folders(hive: Vec<FolderColumn>) -> Self {
        Self::Files(Files { hive, united: None })
    }

    /// The same for files that have these columns, all of them together.
    pub(crate) fn with_united(&self, schema: SchemaRef) -> Self {
        match self {
            Self::Files(files) => Self::Files(Files { united: Some(schema), ..files.clone() }),
            Self::Table(_) => self.clone(),
        }
    }

    /// The columns of all files together, if these differ.
    pub(crate) fn united(&self) -> Option<&SchemaRef> {
        match self {
            Self::Files(files) => files.united.as_ref(),
            Self::Table(_) => None,
        }
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        match self {
            Self::Files(Files { hive, united }) => {
                let columns: Vec<Json> = hive.iter().map(FolderColumn::write).collect();
                match united {
                    None if hive.is_empty() => return Vec::new(),
                    None => json!({ "hive": columns }),
                    Some(schema) => json!({
                        "united": { "columns": write_schema(schema), "hive": columns }
                    }),
                }
                .to_string()
                .into_bytes()
            }
            Self::Table(table) => json!({ "table": table.write() }).to_string().into_bytes(),
        }
    }

    /// The layout of these new files, and what is known of each.
    pub(crate) fn of_folders(
        options: &HiveOptions,
        pairs: &[(String, Vec<Pair>)],
    ) -> Result<Self, FolderError> {
        let Some((first_file, first)) = pairs.first() else { return Ok(Self::files()) };
        let differs = pairs.iter().find(|(_, other)| !same_keys(first, other));
        let unknown =
            options.types.iter().find(|(name, _)| !first.iter().any(|(key, _)| key == name));
        match (options.folders, differs) {
            (HiveFolders::Off, _) => return Ok(Self::files()),
            (HiveFolders::Auto, Some(_)) if options.types.is_empty() => return Ok(Self::files()),
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
                _ => Ok(Self::files()),
            };
        }
        let column = |(name, _): &Pair| {
            let given = options.types.iter().find(|(known, _)| known == name);
            let data_type = given.map_or(DataType::Utf8, |(_, data_type)| data_type.clone());
            FolderColumn { name: name.clone(), data_type, is_given: given.is_some() }
        };
        let layout = Self::in_folders(first.iter().map(column).collect());
        layout.fitted(pairs.iter().map(|(file, pairs)| (file.as_str(), pairs.as_slice())))
    }

    /// The same columns, with types that hold the values of all these files.
    pub(crate) fn fitted<'a>(
        &self,
        named: impl Iterator<Item = (&'a str, &'a [Pair])> + Clone,
    ) -> Result<Self, FolderError> {
        let Self::Files(files) = self else { return Ok(self.clone()) };
        let united = files.united.clone();
        let mut fitted = files.hive.clone();
        for column in &mut fitted {
            let values = named.clone().filter_map(|(file, pairs)| {
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
        Ok(Self::Files(Files { hive: fitted, united }))
    }

    /// What is known of a file in these folders; an error if they are not those of this layout.
    pub(crate) fn part(&self, file: &str, pairs: &[Pair]) -> Result<Part, FolderError> {
        let Self::Files(Files { hive: columns, .. }) = self else { return Ok(Part::default()) };
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
            Self::Files(files) => &files.hive,
            Self::Table(table) => return table.constant_schema(),
        };
        let field =
            |column: &FolderColumn| Field::new(&column.name, column.data_type.clone(), true);
        Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
    }

    /// Whether a column may have one value in all rows of a file.
    pub(crate) fn may_be_constant(&self, column: &str) -> bool {
        match self {
            Self::Files(files) => files.hive.iter().any(|known| known.name == column),
            Self::Table(table) => table.may_be_constant(column),
        }
    }

    /// Names and types of all columns, if they are known without looking at a file.
    pub(crate) fn schema(&self) -> Option<SchemaRef> {
        match self {
            Self::Files(files) => {
                let united = files.united.as_ref()?;
                let folders = self.constant_schema();
                let of_folder = |field: &Arc<Field>| {
                    let folder = folders.field_with_name(field.name()).ok().cloned();
                    folder.map_or_else(|| Arc::clone(field), Arc::new)
                };
                let mut fields: Vec<_> = united.fields().iter().map(of_folder).collect();
                let others = folders.fields().iter();
                fields.extend(
                    others.filter(|field| united.field_with_name(field.name()).is_err()).cloned(),
                );
                Some(Arc::new(Schema::new(fields)))
            }
            Self::Table(table) => Some(table.schema()),
        }
    }

    /// The columns of a file that have one value, each as an array of one row. `None` if the part is invalid.
    pub(crate) fn constants(&self, part: &Part) -> Option<Vec<(String, ArrayRef)>> {
        match self {
            Self::Files(Files { hive: columns, .. }) => {
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
            Self::Files(_) => None,
            Self::Table(table) => Some((table.schema(), table.matching())),
        };
        let united = self.united().cloned();
        Some(View { columns, united, constants: self.constants(part)?, deleted })
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
