//! Avro files ("object container files"), as far as Iceberg uses them for its manifests: every type, read into one tree of
//! values for each record. Logical types are left to whoever asks.
//!
//! The crates for this take longer to build than all that is here to be tested, for manifests of some kilobytes. Every length
//! is compared with the bytes that are left before anything is allocated.

use std::collections::HashMap;
use std::io::Read as _;

use serde_json::Value as Json;

/// A value of any type. Enums are their names, and a union is the value that it has.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Bytes(Vec<u8>),
    Text(String),
    List(Vec<Value>),
    /// Fields of a record, or entries of a map.
    Record(Vec<(String, Value)>),
}

impl Value {
    /// A field of a record; null if it has none of this name.
    pub(super) fn get(&self, name: &str) -> &Value {
        self.field(name).unwrap_or(&Self::Null)
    }

    /// A field of a record, if it has one of this name.
    pub(super) fn field(&self, name: &str) -> Option<&Value> {
        let Self::Record(fields) = self else { return None };
        fields.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    pub(super) fn int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn is_null(&self) -> bool {
        *self == Self::Null
    }
}

/// What is wrong with a file.
pub(super) type Wrong = String;

const MAGIC: &[u8] = b"Obj\x01";
const SYNC_BYTES: usize = 16;
/// No manifest is nested deeper, and a type that contains itself could be without end.
const MAX_DEPTH: u32 = 32;
/// A block of a manifest is compressed as a whole; more than this is no manifest.
const MAX_BLOCK_BYTES: u64 = 1 << 30;

/// All records of a file.
pub(super) fn records(bytes: &[u8]) -> Result<Vec<Value>, Wrong> {
    let mut rest = Rest(bytes);
    if rest.take(MAGIC.len())? != MAGIC {
        return Err("it is not an Avro file".to_owned());
    }
    let header = Type::Map(Box::new(Type::Bytes)).read(&mut rest, &Named::new(), 0)?;
    let entry = |name: &str| match header.get(name) {
        Value::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    };
    let schema = entry("avro.schema").ok_or("it has no schema")?;
    let schema: Json =
        serde_json::from_str(schema).map_err(|error| format!("its schema: {error}"))?;
    let mut named = Named::new();
    let schema = Type::parse(&schema, &mut named, 0)?;
    let codec = entry("avro.codec").unwrap_or("null").to_owned();
    let sync = rest.take(SYNC_BYTES)?.to_vec();
    let mut records = Vec::new();
    while !rest.0.is_empty() {
        let count = rest.long()?;
        let len = rest.length()?;
        let block = decompressed(&codec, rest.take(len)?)?;
        if rest.take(SYNC_BYTES)? != sync {
            return Err("a block does not end where it should".to_owned());
        }
        let mut block = Rest(&block);
        for _ in 0..count {
            // Every record of a manifest takes a byte at least: a count beyond the block ends here.
            if block.0.is_empty() {
                return Err("a block is too short".to_owned());
            }
            records.push(schema.read(&mut block, &named, 0)?);
        }
    }
    Ok(records)
}

fn decompressed(codec: &str, block: &[u8]) -> Result<Vec<u8>, Wrong> {
    let mut out = Vec::new();
    let read = match codec {
        "null" => return Ok(block.to_vec()),
        "deflate" => {
            flate2::read::DeflateDecoder::new(block).take(MAX_BLOCK_BYTES).read_to_end(&mut out)
        }
        "zstandard" => zstd::stream::read::Decoder::new(block)
            .and_then(|decoder| decoder.take(MAX_BLOCK_BYTES).read_to_end(&mut out)),
        other => return Err(format!("its compression {other} is not supported")),
    };
    read.map_err(|error| format!("a block cannot be decompressed: {error}"))?;
    Ok(out)
}

/// Bytes that are left.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Wrong> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or("it is cut off")?;
        self.0 = rest;
        Ok(taken)
    }

    /// A number in zigzag form, seven bits to a byte.
    fn long(&mut self) -> Result<i64, Wrong> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok((number >> 1) as i64 ^ -((number & 1) as i64));
            }
        }
        Err("a number is too long".to_owned())
    }

    /// A number of bytes that are there.
    fn length(&mut self) -> Result<usize, Wrong> {
        let len = usize::try_from(self.long()?).map_err(|_| "a length is negative")?;
        if len > self.0.len() { Err("it is cut off".to_owned()) } else { Ok(len) }
    }

    fn text(&mut self) -> Result<String, Wrong> {
        let len = self.length()?;
        String::from_utf8(self.take(len)?.to_vec()).map_err(|_| "a text is not UTF-8".to_owned())
    }
}

/// Types that others refer to by their names.
type Named = HashMap<String, Type>;

#[derive(Clone, Debug)]
enum Type {
    Null,
    Bool,
    Int,
    Float,
    Double,
    Bytes,
    Text,
    Fixed(usize),
    Enum(Vec<String>),
    List(Box<Type>),
    Map(Box<Type>),
    Union(Vec<Type>),
    Record(Vec<(String, Type)>),
    /// One that has been, or is being, defined.
    Reference(String),
}

impl Type {
    fn parse(json: &Json, named: &mut Named, depth: u32) -> Result<Self, Wrong> {
        if depth > MAX_DEPTH {
            return Err("its schema is nested too deeply".to_owned());
        }
        let unknown = || format!("its schema: {json} is no type");
        if let Json::Array(branches) = json {
            let branches = branches.iter().map(|branch| Self::parse(branch, named, depth + 1));
            return Ok(Self::Union(branches.collect::<Result<_, _>>()?));
        }
        if let Json::String(name) = json {
            return Ok(Self::primitive(name).unwrap_or_else(|| Self::Reference(name.clone())));
        }
        let inner = |key: &str, named: &mut Named| {
            Self::parse(json.get(key).ok_or_else(unknown)?, named, depth + 1).map(Box::new)
        };
        let defined = match json.get("type").ok_or_else(unknown)? {
            Json::String(kind) => match kind.as_str() {
                "array" => return Ok(Self::List(inner("items", named)?)),
                "map" => return Ok(Self::Map(inner("values", named)?)),
                "record" => {
                    let fields = json.get("fields").and_then(Json::as_array).ok_or_else(unknown)?;
                    let field = |field: &Json| {
                        let name = field.get("name").and_then(Json::as_str).ok_or_else(unknown)?;
                        let of = field.get("type").ok_or_else(unknown)?;
                        Ok((name.to_owned(), Self::parse(of, named, depth + 1)?))
                    };
                    Self::Record(fields.iter().map(field).collect::<Result<_, Wrong>>()?)
                }
                "fixed" => {
                    let size = json.get("size").and_then(Json::as_u64).ok_or_else(unknown)?;
                    Self::Fixed(usize::try_from(size).map_err(|_| unknown())?)
                }
                "enum" => {
                    let symbols =
                        json.get("symbols").and_then(Json::as_array).ok_or_else(unknown)?;
                    let symbols = symbols.iter().map(|symbol| symbol.as_str().map(str::to_owned));
                    Self::Enum(symbols.collect::<Option<_>>().ok_or_else(unknown)?)
                }
                _ => return Self::parse(&json["type"], named, depth + 1),
            },
            nested => return Self::parse(nested, named, depth + 1),
        };
        if let Some(name) = json.get("name").and_then(Json::as_str) {
            named.insert(name.to_owned(), defined.clone());
        }
        Ok(defined)
    }

    fn primitive(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::Null,
            "boolean" => Self::Bool,
            "int" | "long" => Self::Int,
            "float" => Self::Float,
            "double" => Self::Double,
            "bytes" => Self::Bytes,
            "string" => Self::Text,
            _ => return None,
        })
    }

    fn read(&self, rest: &mut Rest<'_>, named: &Named, depth: u32) -> Result<Value, Wrong> {
        if depth > MAX_DEPTH {
            return Err("a value is nested too deeply".to_owned());
        }
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool => Value::Bool(rest.take(1)?[0] != 0),
            Self::Int => Value::Int(rest.long()?),
            Self::Float => {
                let bytes = rest.take(4)?.try_into().expect("four bytes");
                Value::Float(f32::from_le_bytes(bytes).into())
            }
            Self::Double => {
                let bytes = rest.take(8)?.try_into().expect("eight bytes");
                Value::Float(f64::from_le_bytes(bytes))
            }
            Self::Bytes => {
                let len = rest.length()?;
                Value::Bytes(rest.take(len)?.to_vec())
            }
            Self::Text => Value::Text(rest.text()?),
            Self::Fixed(len) => Value::Bytes(rest.take(*len)?.to_vec()),
            Self::Enum(symbols) => {
                let symbol = usize::try_from(rest.long()?).ok().and_then(|at| symbols.get(at));
                Value::Text(symbol.ok_or("an unknown symbol")?.clone())
            }
            Self::List(item) => {
                let mut items = Vec::new();
                blocks(rest, |rest| {
                    items.push(item.read(rest, named, depth + 1)?);
                    Ok(())
                })?;
                Value::List(items)
            }
            Self::Map(value) => {
                let mut entries = Vec::new();
                blocks(rest, |rest| {
                    let key = rest.text()?;
                    entries.push((key, value.read(rest, named, depth + 1)?));
                    Ok(())
                })?;
                Value::Record(entries)
            }
            Self::Union(branches) => {
                let branch = usize::try_from(rest.long()?).ok().and_then(|at| branches.get(at));
                branch.ok_or("an unknown branch of a union")?.read(rest, named, depth + 1)?
            }
            Self::Record(fields) => {
                let field = |(name, of): &(String, Type)| {
                    Ok((name.clone(), of.read(rest, named, depth + 1)?))
                };
                Value::Record(fields.iter().map(field).collect::<Result<_, Wrong>>()?)
            }
            Self::Reference(name) => {
                let known = named.get(name).ok_or_else(|| format!("no type is called {name}"))?;
                known.read(rest, named, depth + 1)?
            }
        })
    }
}

/// Items in blocks, each with its count, up to one of none. A negative count is followed by the bytes of the block.
fn blocks(
    rest: &mut Rest<'_>,
    mut item: impl FnMut(&mut Rest<'_>) -> Result<(), Wrong>,
) -> Result<(), Wrong> {
    loop {
        let mut count = rest.long()?;
        if count == 0 {
            return Ok(());
        }
        if count < 0 {
            rest.long()?;
            count = count.checked_neg().ok_or("a count is too large")?;
        }
        for _ in 0..count {
            // Items without bytes (nulls) would let a few bytes stand for any number of them.
            if rest.0.is_empty() {
                return Err("it is cut off".to_owned());
            }
            item(rest)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of these tests are small: zigzag, in one byte.
    fn small(number: i8) -> u8 {
        ((number << 1) ^ (number >> 7)) as u8
    }

    fn file(schema: &str, codec: &str, count: i8, block: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.push(small(2));
        for (key, value) in [("avro.schema", schema), ("avro.codec", codec)] {
            for text in [key, value] {
                let len = (text.len() as u64) << 1;
                let mut rest = len;
                while rest >= 0x80 {
                    bytes.push((rest & 0x7f) as u8 | 0x80);
                    rest >>= 7;
                }
                bytes.push(rest as u8);
                bytes.extend(text.as_bytes());
            }
        }
        bytes.push(0);
        bytes.extend([7; SYNC_BYTES]);
        bytes.extend([small(count), small(block.len() as i8)]);
        bytes.extend(block);
        bytes.extend([7; SYNC_BYTES]);
        bytes
    }

    const SCHEMA: &str = r#"{"type": "record", "name": "r", "fields": [
        {"name": "a", "type": ["null", "long"]},
        {"name": "b", "type": {"type": "array", "items": "string"}},
        {"name": "c", "type": {"type": "fixed", "name": "two", "size": 2}},
        {"name": "d", "type": {"type": "map", "values": "double"}},
        {"name": "e", "type": {"type": "enum", "name": "which", "symbols": ["x", "y"]}},
        {"name": "f", "type": "two"},
        {"name": "g", "type": "boolean"}]}"#;

    fn record() -> Vec<u8> {
        let mut bytes = vec![small(1), small(-3)];
        // A list of one item, in a block that says how long it is, and then one of another.
        bytes.extend([small(-1), small(2), small(1), b'p', small(1), small(0), 0]);
        bytes.extend([0xca, 0xfe]);
        bytes.extend([small(1), small(1), b'k']);
        bytes.extend(0.5f64.to_le_bytes());
        bytes.extend([0, small(1), 1, 2, 1]);
        bytes
    }

    #[test]
    fn values_of_all_types_are_read() {
        let records = records(&file(SCHEMA, "null", 1, &record())).unwrap();
        let [record] = &records[..] else { panic!("{records:?}") };
        assert_eq!(record.get("a").int(), Some(-3));
        let items = [Value::Text("p".into()), Value::Text(String::new())];
        assert_eq!(*record.get("b"), Value::List(items.to_vec()));
        assert_eq!(*record.get("c"), Value::Bytes(vec![0xca, 0xfe]));
        assert_eq!(*record.get("d").get("k"), Value::Float(0.5));
        assert_eq!(record.get("e").text(), Some("y"));
        assert_eq!(*record.get("f"), Value::Bytes(vec![1, 2]));
        assert_eq!(*record.get("g"), Value::Bool(true));
        assert!(record.get("h").is_null() && record.field("h").is_none());
    }

    #[test]
    fn whatever_is_wrong_is_an_error() {
        let sound = file(SCHEMA, "null", 1, &record());
        for len in 0..sound.len() {
            // A file may end after its header.
            let cut = records(&sound[..len]);
            assert!(cut.is_err() || cut == Ok(Vec::new()), "{len} bytes");
        }
        for at in 0..sound.len() {
            for bit in 0..8 {
                let mut broken = sound.clone();
                broken[at] ^= 1 << bit;
                // Whatever it says, it ends.
                let _ = records(&broken);
            }
        }
        assert!(records(&file(SCHEMA, "snappy", 1, &record())).unwrap_err().contains("snappy"));
        assert!(records(&file("\"unknown\"", "null", 1, &[0])).is_err());
        // A type that contains itself, and a list of two billion nulls.
        let itself = r#"{"type": "record", "name": "r", "fields": [{"name": "a", "type": "r"}]}"#;
        assert!(records(&file(itself, "null", 1, &[0])).is_err());
        let nulls = r#"{"type": "array", "items": "null"}"#;
        let many = [0xfe, 0xff, 0xff, 0xff, 0x0f];
        assert!(records(&file(nulls, "null", 1, &many)).is_err());
    }
}
