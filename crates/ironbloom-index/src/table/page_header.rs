//! The header in front of every page of a Parquet file, as far as it says where the next page begins and how many rows
//! this one holds.
//!
//! A header is a Thrift struct (`thrift`). We need
//!
//! ```text
//!  PageHeader   1 type   2 uncompressed_page_size   3 compressed_page_size   4 crc
//!               5 data_page_header { 1 num_values, 2 encoding, 3 definition_level_encoding }
//!               8 data_page_header_v2 { 1 num_values, 3 num_rows }
//! ```
//!
//! and skip everything else by its type. Reference: parquet.thrift of apache/parquet-format.

use super::thrift::{Compact, I32, STRUCT};

/// What a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageKind {
    /// Values, or positions in the dictionary.
    Data,
    /// The dictionary of the chunk.
    Dictionary,
    /// Something that readers skip.
    Other,
}

/// The part of a page header that we need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageHeader {
    pub(super) kind: PageKind,
    /// Bytes of the header itself.
    pub(super) header_bytes: usize,
    /// Bytes of the page after its header.
    pub(super) body_bytes: usize,
    /// Values including nulls: the rows, unless the column is repeated.
    pub(super) values: Option<u64>,
    /// Number of rows, which only version 2 states.
    pub(super) rows: Option<u64>,
    /// CRC-32 of the bytes after the header, if the writer has computed it.
    pub(super) crc: Option<u32>,
    /// Bytes of the page when it is decompressed.
    pub(super) plain_bytes: usize,
    /// Of version 1: whether the values stand one after the other as they are, and the levels are run lengths.
    pub(super) is_plain_v1: bool,
}

/// The header at the start of these bytes, or `None` if they hold none.
pub(super) fn parse(bytes: &[u8]) -> Option<PageHeader> {
    let mut input = Compact::new(bytes);
    let (mut kind, mut plain, mut body, mut crc) = (None, None, None, None);
    let mut data = DataHeader::default();
    let mut field = 0;
    while let Some(of) = input.field(&mut field)? {
        match (field, of) {
            (1, I32) => kind = Some(input.integer()?),
            (2, I32) => plain = Some(input.integer()?),
            (3, I32) => body = Some(input.integer()?),
            (4, I32) => crc = Some(input.integer()? as u32), // signed in the file
            (5 | 8, STRUCT) => data = DataHeader::read(&mut input, field)?,
            _ => input.skip(of, 0)?,
        }
    }
    let kind = kind?;
    Some(PageHeader {
        kind: match kind {
            DATA_PAGE | DATA_PAGE_V2 => PageKind::Data,
            DICTIONARY_PAGE => PageKind::Dictionary,
            _ => PageKind::Other,
        },
        header_bytes: bytes.len() - input.rest().len(),
        body_bytes: usize::try_from(body?).ok()?,
        values: data.values,
        rows: data.rows,
        crc,
        plain_bytes: usize::try_from(plain?).ok()?,
        is_plain_v1: kind == DATA_PAGE
            && data.encoding == Some(PLAIN)
            && data.levels == Some(RUN_LENGTHS),
    })
}

// Types of pages, and encodings, by their numbers in parquet.thrift.
const DATA_PAGE: i64 = 0;
const DICTIONARY_PAGE: i64 = 2;
const DATA_PAGE_V2: i64 = 3;
const PLAIN: i64 = 0;
const RUN_LENGTHS: i64 = 3;

/// What the header of a data page says of its values.
#[derive(Default)]
struct DataHeader {
    values: Option<u64>,
    rows: Option<u64>,
    encoding: Option<i64>,
    levels: Option<i64>,
}

impl DataHeader {
    /// `version` is the number of its field: the two versions number theirs differently.
    fn read(input: &mut Compact<'_>, version: i64) -> Option<Self> {
        let is_v1 = version == 5;
        let mut header = Self::default();
        let mut field = 0;
        while let Some(of) = input.field(&mut field)? {
            match (field, of) {
                (1, I32) => header.values = Some(u64::try_from(input.integer()?).ok()?),
                (2, I32) if is_v1 => header.encoding = Some(input.integer()?),
                (3, I32) if is_v1 => header.levels = Some(input.integer()?),
                (3, I32) => header.rows = Some(u64::try_from(input.integer()?).ok()?),
                _ => input.skip(of, 0)?,
            }
        }
        Some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PageHeader { type: DATA_PAGE, uncompressed: 100, compressed: 60, data_page_header: { num_values: 25, encoding: PLAIN,
    /// levels: RLE, RLE, statistics: { max: "zz" } } }, by hand.
    const V1: &[u8] = &[
        0x15, 0x00, 0x15, 0xc8, 0x01, 0x15, 0x78, 0x2c, 0x15, 0x32, 0x15, 0x00, 0x15, 0x06, 0x15,
        0x06, 0x1c, 0x18, 0x02, b'z', b'z', 0x00, 0x00, 0x00, 0xaa,
    ];

    #[test]
    fn a_header_of_version_1_is_read() {
        let header = parse(V1).unwrap();
        let wanted = PageHeader {
            kind: PageKind::Data,
            header_bytes: V1.len() - 1,
            body_bytes: 60,
            values: Some(25),
            rows: None,
            crc: None,
            plain_bytes: 100,
            is_plain_v1: true,
        };
        assert_eq!(header, wanted);
    }

    #[test]
    fn every_cut_header_is_refused() {
        for length in 0..V1.len() - 1 {
            assert_eq!(parse(&V1[..length]), None, "{length} bytes");
        }
    }

    #[test]
    fn nothing_in_a_forged_header_loops_or_overflows() {
        assert_eq!(parse(&[0x1c; 1 << 16]), None); // structs in structs
        assert_eq!(parse(&[0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]), None); // an endless list
        assert_eq!(parse(&[0x15, 0x00, 0x25, 0x01, 0x00]), None); // a negative size
    }
}
