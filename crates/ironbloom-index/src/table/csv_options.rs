//! How a CSV file is read. An index remembers it for each of its files, with the types of the columns.

use arrow::datatypes::{DataType, TimeUnit};
use regex::Regex;

use super::notes::{NotesReader, NotesWriter};

/// How CSV files are read. The default: commas (tabs in `.tsv` files), fields in double quotes, a line of names, types as
/// they are inferred, empty fields are null, and a bad row is an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CsvOptions {
    /// Delimiter of fields. If given, every file that is not Parquet is CSV, whatever its name.
    pub delimiter: Option<u8>,
    /// Quote around fields that contain delimiters or line ends; `None` if there are no quotes.
    pub quote: Option<u8>,
    /// Whether the first row has the names of the columns. If not, they are `column_1`, `column_2` and so on.
    pub header: bool,
    /// Every column is text, unless `types` says otherwise: nothing is inferred.
    pub all_text: bool,
    /// The types of these columns, each one of those that [`csv_type`] knows.
    pub types: Vec<(String, DataType)>,
    /// Words that mean null, besides the empty field.
    pub nulls: Vec<String>,
    /// Rows with a wrong number of fields, bytes that are not UTF-8, or a value that is not of the type given for its
    /// column are skipped instead of being an error.
    pub skip_bad_rows: bool,
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self {
            delimiter: None,
            quote: Some(b'"'),
            header: true,
            all_text: false,
            types: Vec::new(),
            nulls: Vec::new(),
            skip_bad_rows: false,
        }
    }
}

impl CsvOptions {
    pub(super) fn dialect(&self, delimiter: u8) -> Dialect {
        Dialect { delimiter, quote: self.quote }
    }

    /// Matches what is null; `None` if that is only the empty field.
    pub(super) fn null_regex(&self) -> Option<Regex> {
        if self.nulls.is_empty() {
            return None;
        }
        let words: Vec<String> = self.nulls.iter().map(|word| regex::escape(word)).collect();
        let regex = Regex::new(&format!("^(?:|{})$", words.join("|")));
        Some(regex.expect("escaped words are a valid expression"))
    }

    /// All fields, in order.
    pub(super) fn write(&self, writer: &mut NotesWriter) {
        writer.number(self.delimiter.unwrap_or(0).into());
        writer.number(self.quote.unwrap_or(0).into());
        writer.number(self.header.into());
        writer.number(self.all_text.into());
        writer.number(self.types.len() as u64);
        for (column, data_type) in &self.types {
            writer.text(column);
            writer.number(type_number(data_type));
        }
        writer.number(self.nulls.len() as u64);
        self.nulls.iter().for_each(|word| writer.text(word));
        writer.number(self.skip_bad_rows.into());
    }

    pub(super) fn read(reader: &mut NotesReader<'_>) -> Result<Self, &'static str> {
        let byte = |number: u64| match u8::try_from(number) {
            Ok(0) => Ok(None),
            Ok(byte) if byte.is_ascii() => Ok(Some(byte)),
            _ => Err("a delimiter is not ASCII"),
        };
        let (delimiter, quote) = (byte(reader.number()?)?, byte(reader.number()?)?);
        let (header, all_text) = (reader.number()? == 1, reader.number()? == 1);
        let mut types = Vec::new();
        for _ in 0..reader.count(2)? {
            let name = reader.text()?.to_owned();
            types.push((name, type_by_number(reader.number()?).ok_or("an unknown type")?));
        }
        let words = (0..reader.count(1)?).map(|_| Ok(reader.text()?.to_owned()));
        let nulls = words.collect::<Result<_, &'static str>>()?;
        let skip_bad_rows = reader.number()? == 1;
        Ok(Self { delimiter, quote, header, all_text, types, nulls, skip_bad_rows })
    }
}

/// The bytes that structure a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dialect {
    pub(super) delimiter: u8,
    pub(super) quote: Option<u8>,
}

impl Dialect {
    pub(super) fn parser(self) -> csv_core::Reader {
        let mut builder = csv_core::ReaderBuilder::new();
        builder.delimiter(self.delimiter).quote(self.quote_byte()).build()
    }

    /// Without quotes, a byte that is in no text.
    pub(super) fn quote_byte(self) -> u8 {
        const IN_NO_TEXT: u8 = 0xff;
        self.quote.unwrap_or(IN_NO_TEXT)
    }
}

/// The type with this name: bool, int, float, text, date, timestamp (microseconds), timestamp(s), (ms), (us) or (ns), or
/// timestamptz (microseconds, in UTC).
pub fn csv_type(name: &str) -> Option<DataType> {
    let timestamp = |unit| Some(DataType::Timestamp(unit, None));
    match name.trim().to_ascii_lowercase().as_str() {
        "bool" | "boolean" => Some(DataType::Boolean),
        "int" | "integer" | "bigint" | "int64" => Some(DataType::Int64),
        "float" | "double" | "float64" => Some(DataType::Float64),
        "text" | "string" | "varchar" => Some(DataType::Utf8),
        "date" => Some(DataType::Date32),
        "timestamp(s)" => timestamp(TimeUnit::Second),
        "timestamp(ms)" => timestamp(TimeUnit::Millisecond),
        "timestamp" | "timestamp(us)" => timestamp(TimeUnit::Microsecond),
        "timestamp(ns)" => timestamp(TimeUnit::Nanosecond),
        "timestamptz" => Some(DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
        _ => None,
    }
}

/// The name by which [`csv_type`] knows a type.
pub(crate) fn type_name(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Boolean => "bool",
        DataType::Int64 => "int",
        DataType::Float64 => "float",
        DataType::Date32 => "date",
        DataType::Timestamp(TimeUnit::Second, None) => "timestamp(s)",
        DataType::Timestamp(TimeUnit::Millisecond, None) => "timestamp(ms)",
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp(us)",
        DataType::Timestamp(TimeUnit::Nanosecond, None) => "timestamp(ns)",
        DataType::Timestamp(_, Some(_)) => "timestamptz",
        _ => "text",
    }
}

/// The types of columns of CSV, by their numbers in the notes.
const TYPES: [DataType; 10] = [
    DataType::Null,
    DataType::Boolean,
    DataType::Int64,
    DataType::Float64,
    DataType::Utf8,
    DataType::Date32,
    DataType::Timestamp(TimeUnit::Second, None),
    DataType::Timestamp(TimeUnit::Millisecond, None),
    DataType::Timestamp(TimeUnit::Microsecond, None),
    DataType::Timestamp(TimeUnit::Nanosecond, None),
];

/// Numbers from here on are of timestamps in UTC, by their units.
const IN_UTC: usize = TYPES.len();
const UNITS: [TimeUnit; 4] =
    [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];

pub(super) fn type_number(data_type: &DataType) -> u64 {
    let number = match data_type {
        DataType::Timestamp(unit, Some(_)) => {
            UNITS.iter().position(|known| known == unit).map(|place| IN_UTC + place)
        }
        other => TYPES.iter().position(|known| known == other),
    };
    number.expect("a column of CSV has one of these types") as u64
}

pub(super) fn type_by_number(number: u64) -> Option<DataType> {
    let number = usize::try_from(number).ok()?;
    let in_utc = |unit: &TimeUnit| DataType::Timestamp(*unit, Some("UTC".into()));
    let in_utc = || UNITS.get(number.checked_sub(IN_UTC)?).map(in_utc);
    TYPES.get(number).cloned().or_else(in_utc)
}
