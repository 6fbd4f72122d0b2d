//! Lists of column names, as they are typed: `a,b`, and `"a,b",c` for names with commas in them.

use anyhow::{Result, bail};
use ironbloom_index::arrow::datatypes::DataType;
use ironbloom_index::csv_type;

/// The names of some columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names(pub(super) Vec<String>);

impl Names {
    /// For clap.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let items = items(text)?;
        if items.iter().any(|item| !item.rest.is_empty()) {
            bail!("text follows a name in double quotes");
        }
        Ok(Self(items.into_iter().map(|item| item.name).collect()))
    }
}

/// Columns and their types: `zip:text,"a,b":int`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Types(pub(super) Vec<(String, DataType)>);

impl Types {
    /// For clap.
    pub(super) fn parse(text: &str) -> Result<Self> {
        const KNOWN: &str = "bool, int, float, text, date, timestamp, timestamp(s), (ms), (us) or (ns), or timestamptz";
        let mut types: Vec<(String, DataType)> = Vec::new();
        for Item { name, rest } in items(text)? {
            let (name, of) = match rest.strip_prefix(':') {
                Some(of) => (name, of.to_owned()),
                None => match name.rsplit_once(':') {
                    Some((name, of)) => (name.to_owned(), of.to_owned()),
                    None => bail!("`{name}` has no type; write {name}:TYPE, with {KNOWN}"),
                },
            };
            let Some(data_type) = csv_type(&of) else {
                bail!("`{of}` is not a type; there are {KNOWN}")
            };
            if types.iter().any(|(known, _)| *known == name) {
                bail!("column {name} is given twice");
            }
            types.push((name, data_type));
        }
        Ok(Self(types))
    }
}

/// One item of a list: a name, and what follows it if it was in quotes.
pub(super) struct Item {
    pub(super) name: String,
    pub(super) rest: String,
}

pub(super) fn items(text: &str) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    let mut left = text;
    loop {
        let (name, rest) = match left.trim_start().strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => (None, left),
        };
        let end = rest.find(',').unwrap_or(rest.len());
        let item = match name {
            Some(name) => Item { name, rest: rest[..end].trim().to_owned() },
            None if rest[..end].is_empty() => {
                bail!("a name is empty (a column without a name is written \"\")")
            }
            None => Item { name: rest[..end].to_owned(), rest: String::new() },
        };
        items.push(item);
        match rest[end..].strip_prefix(',') {
            Some(more) => left = more,
            None => return Ok(items),
        }
    }
}

/// A name up to its closing quote, and what follows that; a doubled quote is one.
fn unquoted(text: &str) -> Result<(Option<String>, &str)> {
    let mut name = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        if character != '"' {
            name.push(character);
        } else if characters.next_if(|&(_, next)| next == '"').is_some() {
            name.push('"');
        } else {
            return Ok((Some(name), &text[at + 1..]));
        }
    }
    bail!("a double quote is never closed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_have_commas_and_quotes_in_them() {
        let names = |text| Names::parse(text).map(|names| names.0).ok();
        assert_eq!(names("a,b c"), Some(vec!["a".into(), "b c".into()]));
        assert_eq!(names("\"a,b\",c"), Some(vec!["a,b".into(), "c".into()]));
        assert_eq!(names("\"say \"\"hi\"\"\""), Some(vec!["say \"hi\"".into()]));
        assert_eq!(names("\"\",a"), Some(vec!["".into(), "a".into()]));
        for wrong in ["", "a,", ",a", "\"a", "\"a\"b"] {
            assert_eq!(names(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn types_follow_their_columns() {
        let types = |text| Types::parse(text).map(|types| types.0).map_err(|e| e.to_string());
        let wanted = vec![("zip".into(), DataType::Utf8), ("a,b".into(), DataType::Int64)];
        assert_eq!(types("zip:text,\"a,b\":int"), Ok(wanted));
        assert_eq!(types("a:b:date"), Ok(vec![("a:b".into(), DataType::Date32)]));
        assert!(types("zip").unwrap_err().contains("zip:TYPE"));
        assert!(types("zip:zap").unwrap_err().contains("`zap` is not a type"));
        assert!(types("a:int,a:text").unwrap_err().contains("twice"));
    }
}
