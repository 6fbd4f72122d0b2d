//! Columns in the names of folders, as Hive and Spark write them: `country=SE/day=2026-01-01/part-0.parquet`.
//!
//! As in DuckDB: text is %-decoded; `__HIVE_DEFAULT_PARTITION__` is null; a column that is in the file, too, has the value of
//! its folder; and types are inferred from all values: integers (without leading zeros), dates, or else text.

use arrow::compute::kernels::cast_utils::Parser as _;
use arrow::datatypes::{DataType, Date32Type};

/// The folder of rows without a value.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// Whether names of folders such as `country=SE` are columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HiveFolders {
    /// They are if all tables have the same ones.
    #[default]
    Auto,
    /// They are; a table without them is an error.
    On,
    /// They are not.
    Off,
}

/// How names of folders are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HiveOptions {
    /// Whether they are columns.
    pub folders: HiveFolders,
    /// Types of these columns. Those of the others are inferred.
    pub types: Vec<(String, DataType)>,
}

/// A column and its value, as text; `None` is null.
pub(crate) type Pair = (String, Option<String>);

/// What the folders in a path say, outermost first. Of two folders for one column, the first counts.
pub(crate) fn pairs(path: &str) -> Vec<Pair> {
    let mut folders = path.split(['/', std::path::MAIN_SEPARATOR]);
    folders.next_back();
    let mut pairs: Vec<Pair> = Vec::new();
    for folder in folders {
        let Some((key, value)) = folder.split_once('=') else { continue };
        if key.is_empty() || value.contains('=') {
            continue;
        }
        let key = decoded(key);
        if !pairs.iter().any(|(known, _)| *known == key) {
            pairs.push((key, (value != NULL).then(|| decoded(value))));
        }
    }
    pairs
}

/// `%41` is `A`. What is not two hexadecimal digits stays as it is, and so does what would not be UTF-8.
pub(crate) fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = (bytes[at] == b'%').then(|| bytes.get(at + 1..at + 3)).flatten();
        let digits = digits.and_then(|two| std::str::from_utf8(two).ok());
        let is_hex = digits.is_some_and(|two| two.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match digits.filter(|_| is_hex).and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) => (out.push(byte), at += 3).1,
            None => (out.push(bytes[at]), at += 1).1,
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

/// The type that all of these values have. Text if there are none.
pub(crate) fn inferred<'a>(values: impl Iterator<Item = &'a str> + Clone) -> DataType {
    if values.clone().next().is_none() {
        DataType::Utf8
    } else if values.clone().all(is_integer) {
        DataType::Int64
    } else if values.clone().all(is_date) {
        DataType::Date32
    } else {
        DataType::Utf8
    }
}

/// Only as integers are written: `01` is not the number 1, but a month or a code.
fn is_integer(text: &str) -> bool {
    text.parse::<i64>().is_ok_and(|number| number.to_string() == text)
}

/// Without a time, which the parser would drop.
fn is_date(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
        && Date32Type::parse(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_become_columns() {
        let pair = |key: &str, value: &str| (key.to_owned(), Some(value.to_owned()));
        assert_eq!(
            pairs("t/country=SE/day=2026-01-01/part-0.parquet"),
            [pair("country", "SE"), pair("day", "2026-01-01")]
        );
        assert_eq!(pairs("s3://bucket/t/a%20b=c%2Fd+%zz/x.parquet"), [pair("a b", "c/d+%zz")]);
        assert_eq!(pairs("n=__HIVE_DEFAULT_PARTITION__/x"), [("n".to_owned(), None)]);
        assert_eq!(pairs("n=1/n=2/x"), [pair("n", "1")]);
        assert_eq!(pairs("n=/x"), [pair("n", "")]);
        assert_eq!(pairs("a=b=c/=d/e/n=1"), []);
    }

    #[test]
    fn types_are_those_of_duckdb() {
        let cases: [(&[&str], DataType); 10] = [
            (&["1", "-20"], DataType::Int64),
            (&["01", "2"], DataType::Utf8),
            (&["+1"], DataType::Utf8),
            (&["9223372036854775808"], DataType::Utf8),
            (&["2026-01-01", "1999-12-31"], DataType::Date32),
            (&["2026-01-01", "2026-02-30"], DataType::Utf8),
            (&["2026-01-01 10:00:00"], DataType::Utf8),
            (&["1.5", "2"], DataType::Utf8),
            (&["1", ""], DataType::Utf8),
            (&[], DataType::Utf8),
        ];
        for (values, wanted) in cases {
            assert_eq!(inferred(values.iter().copied()), wanted, "{values:?}");
        }
    }
}
