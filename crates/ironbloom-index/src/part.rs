//! What is known of one file without opening it. An index keeps this as JSON; see `layout.rs`.

use serde_json::{Map, Value as Json, json};

use crate::hive::Pair;

/// What is known of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// Columns with one value in all rows, by the key that the layout has for them, as text; `None` is null.
    pub(crate) values: Vec<Pair>,
    /// Where its deleted rows are listed: another text if these have changed.
    pub(crate) deletes: Option<String>,
}

impl Part {
    /// `None` if the bytes are invalid.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self::default());
        }
        let json: Json = serde_json::from_slice(bytes).ok()?;
        let text = |value: &Json| match value {
            Json::Null => Some(None),
            Json::String(text) => Some(Some(text.clone())),
            _ => None,
        };
        let values = json.get("values")?.as_object()?.iter();
        let values = values.map(|(key, value)| Some((key.clone(), text(value)?)));
        let deletes = json.get("deletes").map_or(Some(None), text)?;
        Some(Self { values: values.collect::<Option<_>>()?, deletes })
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        if *self == Self::default() {
            return Vec::new();
        }
        let values: Map<String, Json> =
            self.values.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        let mut json = json!({ "values": values });
        if let Some(deletes) = &self.deletes {
            json["deletes"] = json!(deletes);
        }
        json.to_string().into_bytes()
    }

    /// The value of a column, if it has one in all rows.
    pub(crate) fn value(&self, key: &str) -> Option<Option<&str>> {
        let found = self.values.iter().find(|(known, _)| known == key)?;
        Some(found.1.as_deref())
    }
}
