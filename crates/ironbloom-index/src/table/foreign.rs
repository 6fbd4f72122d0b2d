//! Footers that the `parquet` crate rejects or misreads, although they are harmless and other readers accept them.
//!
//! | file | what is odd | what is done |
//! |---|---|---|
//! | of Dremio | a field has another type than the standard says | it is left out, as by every reader that Thrift generates |
//! | of fastparquet | an empty list names another type of elements | it becomes an empty list of the right type |
//! | of Dremio | a dictionary at byte 0, which there is not | there is no dictionary (as in Arrow C++) |
//! | of parquet-mr before 1.2.9 | the length of a column lacks the header of its dictionary page | it is computed from the pages (IMPALA-694, PARQUET-816) |
//!
//! Numbers and types of fields are those of parquet.thrift.

use std::borrow::Cow;

use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};

use super::page_header::PageKind;
use super::page_map::header_at;
use super::thrift::{BINARY, Compact, I32, I64, LIST, STRUCT};
use crate::file_bytes::FileBytes;

/// A field as it should be.
struct Field {
    number: i64,
    of: u8,
    /// The type of its elements if it is a list.
    elements: u8,
    /// The fields inside, if it is a struct, or a list of structs, that is looked into.
    inside: &'static [Field],
}

const fn field(number: i64, of: u8) -> Field {
    Field { number, of, elements: 0, inside: &[] }
}

const fn list(number: i64, elements: u8, inside: &'static [Field]) -> Field {
    Field { number, of: LIST, elements, inside }
}

const FILE: &[Field] = &[
    field(1, I32),
    list(2, STRUCT, &[]),
    field(3, I64),
    list(4, STRUCT, ROW_GROUP),
    list(5, STRUCT, &[]),
    field(6, BINARY),
    list(7, STRUCT, &[]),
    field(ENCRYPTION, STRUCT),
    field(9, BINARY),
];

/// The number of the field of a file that says how it is encrypted.
const ENCRYPTION: i64 = 8;

const ROW_GROUP: &[Field] = &[
    list(1, STRUCT, COLUMN_CHUNK),
    field(2, I64),
    field(3, I64),
    list(4, STRUCT, &[]),
    field(5, I64),
    field(6, I64),
];

const COLUMN_CHUNK: &[Field] = &[
    field(1, BINARY),
    field(2, I64),
    Field { number: 3, of: STRUCT, elements: 0, inside: COLUMN },
    field(4, I64),
    field(5, I32),
    field(6, I64),
    field(7, I32),
    field(8, STRUCT),
    field(9, BINARY),
];

const COLUMN: &[Field] = &[
    field(1, I32),
    list(2, I32, &[]),
    list(3, BINARY, &[]),
    field(4, I32),
    field(5, I64),
    field(6, I64),
    field(7, I64),
    list(8, STRUCT, &[]),
    field(9, I64),
    field(10, I64),
    field(11, I64),
    field(12, STRUCT),
    list(13, STRUCT, &[]),
    field(14, I64),
    field(15, I32),
    field(16, STRUCT),
    field(17, STRUCT),
];

/// Whether columns are encrypted in a file whose footer is not.
pub(super) fn is_encrypted(footer: &[u8]) -> bool {
    let mut input = Compact::new(footer);
    let mut number = 0;
    while let Some(Some(of)) = input.field(&mut number) {
        if (number, of) == (ENCRYPTION, STRUCT) {
            return true;
        }
        if input.skip(of, 0).is_none() {
            break;
        }
    }
    false
}

/// The footer without what a strict reader stumbles over; `None` if there is no such thing, or if it is not a footer.
pub(super) fn repaired(footer: &[u8]) -> Option<Vec<u8>> {
    let mut output = Vec::with_capacity(footer.len());
    rewrite(&mut Compact::new(footer), FILE, &mut output)?;
    (output != footer).then_some(output)
}

/// Copies a struct without the fields that have a wrong type.
fn rewrite(input: &mut Compact<'_>, fields: &[Field], output: &mut Vec<u8>) -> Option<()> {
    let (mut number, mut last) = (0, 0);
    while let Some(of) = input.field(&mut number)? {
        let known = fields.iter().find(|known| known.number == number);
        let start = input.rest();
        let mut copy: Cow<'_, [u8]> = Cow::Borrowed(&[]);
        let keep = match known {
            Some(known) if known.of != of => false,
            Some(known) if of == LIST => {
                let head = *start.first()?;
                let (length, elements) = (head >> 4, head & 0x0f);
                if length == 0 {
                    copy = vec![known.elements].into();
                } else if !known.inside.is_empty() && elements == STRUCT {
                    copy = rewrite_list(&mut Compact::new(start), known.inside)?.into();
                }
                length == 0 || elements == known.elements
            }
            Some(known) if !known.inside.is_empty() => {
                let mut inner = Vec::new();
                rewrite(&mut Compact::new(start), known.inside, &mut inner)?;
                copy = inner.into();
                true
            }
            _ => true,
        };
        input.skip(of, 0)?;
        if keep {
            if copy.is_empty() {
                copy = Cow::Borrowed(&start[..start.len() - input.rest().len()]);
            }
            write_head(number, last, of, output);
            output.extend_from_slice(&copy);
            last = number;
        }
    }
    output.push(0);
    Some(())
}

/// A list of structs, each rewritten.
fn rewrite_list(input: &mut Compact<'_>, fields: &[Field]) -> Option<Vec<u8>> {
    let start = input.rest();
    let head = input.byte()?;
    let length = if head >> 4 == 15 { input.varint()? } else { u64::from(head >> 4) };
    let mut output = start[..start.len() - input.rest().len()].to_vec();
    for _ in 0..length {
        rewrite(input, fields, &mut output)?;
    }
    Some(output)
}

/// The number and type of a field that follows another.
fn write_head(number: i64, last: i64, of: u8, output: &mut Vec<u8>) {
    match number.checked_sub(last) {
        Some(distance @ 1..=15) => output.push((distance as u8) << 4 | of),
        _ => {
            output.push(of);
            let mut zigzag = ((number << 1) ^ (number >> 63)) as u64;
            while zigzag >= 0x80 {
                output.push(zigzag as u8 | 0x80);
                zigzag >>= 7;
            }
            output.push(zigzag as u8);
        }
    }
}

/// The metadata with the places of columns as they are; `None` if they are right.
pub(super) fn corrected(
    metadata: &ParquetMetaData,
    file: &FileBytes,
    footer_start: u64,
) -> Result<Option<ParquetMetaData>, ParquetError> {
    let writer = metadata.file_metadata().created_by().unwrap_or("");
    let sizes_lack_headers = is_old_parquet_mr(writer);
    let mut chunks = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    // Copying the metadata of thousands of columns to change none would take longer than parsing it.
    if !sizes_lack_headers && !chunks.any(has_odd_dictionary) {
        return Ok(None);
    }
    let mut changed = false;
    let mut correct = |chunk: &ColumnChunkMetaData| {
        let mut chunk = chunk.clone();
        if has_odd_dictionary(&chunk) {
            chunk = chunk.into_builder().set_dictionary_page_offset(None).build()?;
            changed = true;
        }
        if sizes_lack_headers
            && let Some(size) = size_by_pages(&chunk, file, footer_start)
            && size > chunk.compressed_size()
        {
            chunk = chunk.into_builder().set_total_compressed_size(size).build()?;
            changed = true;
        }
        Ok::<_, ParquetError>(chunk)
    };
    let mut groups: Vec<RowGroupMetaData> = Vec::new();
    for group in metadata.row_groups() {
        let columns = group.columns().iter().map(&mut correct).collect::<Result<_, _>>()?;
        groups.push(group.clone().into_builder().set_column_metadata(columns).build()?);
    }
    Ok(changed.then(|| metadata.clone().into_builder().set_row_groups(groups).build()))
}

/// A dictionary is before the pages that use it, and not in front of the file's magic.
fn has_odd_dictionary(chunk: &ColumnChunkMetaData) -> bool {
    let before_data = 1..chunk.data_page_offset();
    chunk.dictionary_page_offset().is_some_and(|dictionary| !before_data.contains(&dictionary))
}

/// `parquet-mr` without a version, or `parquet-mr version 1.2.8 (…)` and before.
fn is_old_parquet_mr(writer: &str) -> bool {
    let Some(rest) = writer.strip_prefix("parquet-mr") else { return false };
    let version = rest.trim_start().strip_prefix("version ").unwrap_or("");
    let mut parts =
        version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    let version: [u32; 3] = std::array::from_fn(|_| parts.next().unwrap_or(0));
    version < [1, 2, 9]
}

/// The bytes of all pages of a column, if they are at most a header more than is said.
fn size_by_pages(chunk: &ColumnChunkMetaData, file: &FileBytes, footer_start: u64) -> Option<i64> {
    /// More than the header of a dictionary page takes.
    const HEADER: u64 = 100;
    let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
    let start = u64::try_from(start).ok()?;
    let said = u64::try_from(chunk.compressed_size()).ok()?;
    let end = start.checked_add(said)?.checked_add(HEADER)?.min(footer_start).min(file.len());
    let (mut at, mut values) = (start, 0);
    while values < u64::try_from(chunk.num_values()).ok()? && at < end {
        let header = header_at(file, at..end).ok()??;
        let bytes = header.header_bytes.checked_add(header.body_bytes)?;
        at = at.checked_add(u64::try_from(bytes).ok()?).filter(|&next| next > at && next <= end)?;
        if header.kind == PageKind::Data {
            values = values.saturating_add(header.values?);
        }
    }
    i64::try_from(at - start).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_right_is_left_alone() {
        // FileMetaData { version 1, schema [], rows 0, row groups [] }
        let footer = [0x15, 2, 0x19, 0x0c, 0x16, 0, 0x19, 0x0c, 0];
        assert_eq!(repaired(&footer), None);
        // An empty list of bytes for row groups, and a number where the writer should be.
        let odd = [0x15, 2, 0x19, 0x0c, 0x16, 0, 0x19, 0x03, 0x25, 4, 0];
        assert_eq!(repaired(&odd), Some(footer.to_vec()));
        for length in 0..odd.len() {
            assert_eq!(repaired(&odd[..length]), None, "{length} bytes");
        }
    }

    #[test]
    fn fields_after_one_that_is_left_out_keep_their_numbers() {
        // Version 1; field 2 as a number; rows 0; field 40, unknown, in the long form.
        let odd = [0x15, 2, 0x15, 8, 0x16, 0, 0x05, 80, 8, 0];
        assert_eq!(repaired(&odd), Some(vec![0x15, 2, 0x26, 0, 0x05, 80, 8, 0]));
    }

    #[test]
    fn versions_of_parquet_mr_are_compared_by_numbers() {
        for old in
            ["parquet-mr", "parquet-mr version 1.2.8 (build x)", "parquet-mr version 1.0.0-t4"]
        {
            assert!(is_old_parquet_mr(old), "{old}");
        }
        for new in
            ["parquet-mr version 1.2.9", "parquet-mr version 1.12.0-2018 (build 1)", "parquet-cpp"]
        {
            assert!(!is_old_parquet_mr(new), "{new}");
        }
    }
}
