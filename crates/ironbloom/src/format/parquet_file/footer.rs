//! The footer's description of columns and their filters. Field numbers are those of
//! parquet.thrift.

use crate::format::thrift::{BINARY, Compact, I32, I64, LIST, STRUCT};

/// The physical type of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the type of Parquet of this name")]
pub enum Physical {
    Boolean,
    Int32,
    Int64,
    Int96,
    Float,
    Double,
    ByteArray,
    Fixed,
}

/// The meaning of values, as far as it affects how text becomes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Plain,
    Text,
    Unsigned,
    Decimal {
        scale: i32,
    },
    Date,
    /// Units since 1970-01-01, in UTC or by clocks of no place.
    Timestamp {
        units_per_second: i64,
        is_utc: bool,
    },
    Uuid,
    Float16,
}

/// A column that has values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its dotted path.
    pub path: String,
    /// The physical type of its values.
    pub physical: Physical,
    /// Bytes of a value, if all have the same length.
    pub(super) length: usize,
    pub(super) meaning: Meaning,
}

/// A column in a row group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Offset of its filter in the file.
    pub filter_offset: Option<u64>,
}

/// A group of rows stored together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowGroup {
    /// Number of rows.
    pub rows: u64,
    /// Its columns, in the order of the file.
    pub chunks: Vec<Chunk>,
}

/// A node of the schema.
#[derive(Default)]
struct Element {
    physical: Option<i64>,
    length: i64,
    name: String,
    children: i64,
    converted: Option<i64>,
    scale: i64,
    logical: Option<i64>,
    signed: bool,
    is_utc: bool,
    /// Of a time: 1 milliseconds, 2 microseconds, 3 nanoseconds.
    unit: i64,
}

/// Parses the columns and row groups of a footer; `None` if it is damaged.
pub(super) fn parse(footer: &[u8]) -> Option<(Vec<Column>, Vec<RowGroup>)> {
    let (mut schema, mut groups) = (Vec::new(), Vec::new());
    let mut left = Compact::new(footer);
    let mut field = 0;
    while let Some(of) = left.field(&mut field)? {
        match (field, of) {
            (2, LIST) => schema = list(&mut left, element)?,
            (4, LIST) => groups = list(&mut left, row_group)?,
            _ => left.skip(of, 0)?,
        }
    }
    let columns = columns(&schema)?;
    let is_whole = groups.iter().all(|group: &RowGroup| group.chunks.len() == columns.len());
    is_whole.then_some((columns, groups))
}

fn list<'a, T>(
    left: &mut Compact<'a>,
    read: impl Fn(&mut Compact<'a>) -> Option<T>,
) -> Option<Vec<T>> {
    let head = left.byte()?;
    let length = if head >> 4 == 15 { left.varint()? } else { u64::from(head >> 4) };
    // Every element takes at least a byte: a longer list is forged.
    if head & 0x0f != STRUCT || length > left.rest().len() as u64 {
        return None;
    }
    (0..length).map(|_| read(left)).collect()
}

fn text(left: &mut Compact<'_>) -> Option<String> {
    let length = usize::try_from(left.varint()?).ok()?;
    let bytes = left.rest().get(..length)?;
    let text = String::from_utf8_lossy(bytes).into_owned();
    for _ in 0..length {
        left.byte()?;
    }
    Some(text)
}

fn element(left: &mut Compact<'_>) -> Option<Element> {
    let mut element = Element { signed: true, ..Element::default() };
    let mut field = 0;
    while let Some(of) = left.field(&mut field)? {
        match (field, of) {
            (1, I32) => element.physical = Some(left.integer()?),
            (2, I32) => element.length = left.integer()?,
            (4, BINARY) => element.name = text(left)?,
            (5, I32) => element.children = left.integer()?,
            (6, I32) => element.converted = Some(left.integer()?),
            (7, I32) => element.scale = left.integer()?,
            (10, STRUCT) => logical(left, &mut element)?,
            _ => left.skip(of, 1)?,
        }
    }
    Some(element)
}

/// Reads the logical type: a union, whose variant identifies it.
fn logical(left: &mut Compact<'_>, element: &mut Element) -> Option<()> {
    const FALSE: u8 = 2;
    let mut variant = 0;
    while let Some(of) = left.field(&mut variant)? {
        element.logical = Some(variant);
        if of != STRUCT {
            left.skip(of, 2)?;
            continue;
        }
        let mut field = 0;
        while let Some(of) = left.field(&mut field)? {
            match (variant, field, of) {
                (5, 1, I32) => element.scale = left.integer()?,
                (8, 1, of) => {
                    element.is_utc = of != FALSE;
                    left.skip(of, 3)?;
                }
                (8, 2, STRUCT) => {
                    while let Some(of) = left.field(&mut element.unit)? {
                        left.skip(of, 4)?;
                    }
                }
                (10, 2, of) => {
                    element.signed = of != FALSE;
                    left.skip(of, 3)?;
                }
                _ => left.skip(of, 3)?,
            }
        }
    }
    Some(())
}

fn row_group(left: &mut Compact<'_>) -> Option<RowGroup> {
    let mut group = RowGroup::default();
    let mut field = 0;
    while let Some(of) = left.field(&mut field)? {
        match (field, of) {
            (1, LIST) => group.chunks = list(left, chunk)?,
            (3, I64) => group.rows = u64::try_from(left.integer()?).ok()?,
            _ => left.skip(of, 1)?,
        }
    }
    Some(group)
}

fn chunk(left: &mut Compact<'_>) -> Option<Chunk> {
    let mut chunk = Chunk::default();
    let mut field = 0;
    while let Some(of) = left.field(&mut field)? {
        if (field, of) != (3, STRUCT) {
            left.skip(of, 2)?;
            continue;
        }
        let mut field = 0;
        while let Some(of) = left.field(&mut field)? {
            match (field, of) {
                (14, I64) => chunk.filter_offset = u64::try_from(left.integer()?).ok(),
                _ => left.skip(of, 3)?,
            }
        }
    }
    Some(chunk)
}

/// The leaves of the schema, a tree in depth-first order.
fn columns(schema: &[Element]) -> Option<Vec<Column>> {
    let mut columns = Vec::new();
    // Names of the enclosing nodes, and their remaining numbers of children.
    let mut above: Vec<(&str, i64)> = Vec::new();
    let (root, nodes) = schema.split_first()?;
    above.push(("", root.children));
    for node in nodes {
        let (_, left) = above.last_mut()?;
        *left -= 1;
        if node.physical.is_none() {
            above.push((&node.name, node.children));
        } else {
            let names = above.iter().skip(1).map(|(name, _)| *name).chain([&*node.name]);
            columns.push(column(node, names.collect::<Vec<&str>>().join("."))?);
        }
        while above.last().is_some_and(|&(_, left)| left <= 0) {
            above.pop();
        }
    }
    Some(columns)
}

fn column(node: &Element, path: String) -> Option<Column> {
    let physical = match node.physical? {
        0 => Physical::Boolean,
        1 => Physical::Int32,
        2 => Physical::Int64,
        3 => Physical::Int96,
        4 => Physical::Float,
        5 => Physical::Double,
        6 => Physical::ByteArray,
        7 => Physical::Fixed,
        _ => return None,
    };
    let meaning = match (node.logical, node.converted) {
        (Some(1 | 4), _) | (None, Some(0 | 4)) => Meaning::Text,
        (Some(5), _) | (None, Some(5)) => {
            Meaning::Decimal { scale: i32::try_from(node.scale).ok()? }
        }
        (Some(6), _) | (None, Some(6)) => Meaning::Date,
        (Some(8), _) => match node.unit {
            1 => Meaning::Timestamp { units_per_second: 1_000, is_utc: node.is_utc },
            2 => Meaning::Timestamp { units_per_second: 1_000_000, is_utc: node.is_utc },
            3 => Meaning::Timestamp { units_per_second: 1_000_000_000, is_utc: node.is_utc },
            _ => Meaning::Plain,
        },
        (None, Some(9)) => Meaning::Timestamp { units_per_second: 1_000, is_utc: true },
        (None, Some(10)) => Meaning::Timestamp { units_per_second: 1_000_000, is_utc: true },
        (Some(10), _) if !node.signed => Meaning::Unsigned,
        (None, Some(11..=14)) => Meaning::Unsigned,
        (Some(14), _) => Meaning::Uuid,
        (Some(15), _) => Meaning::Float16,
        _ => Meaning::Plain,
    };
    let length = usize::try_from(node.length).unwrap_or(0);
    Some(Column { path, physical, length, meaning })
}
