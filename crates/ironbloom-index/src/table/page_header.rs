//! The header in front of every page of a Parquet file, as far as it says where the next page begins and how many rows
//! this one holds.
//!
//! A header is a Thrift struct in the compact protocol: each field is one byte (how far its number is from the last one,
//! and its type) and its value; a zero byte ends the struct. We need
//!
//! ```text
//!  PageHeader   1 type   2 uncompressed_page_size   3 compressed_page_size
//!               5 data_page_header { 1 num_values, 2 encoding, 3 definition_level_encoding }
//!               8 data_page_header_v2 { 1 num_values, 3 num_rows }
//! ```
//!
//! and skip everything else by its type. Reference: parquet.thrift of apache/parquet-format and the Thrift compact protocol
//! specification.

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
    /// Bytes of the page when it is decompressed.
    pub(super) plain_bytes: usize,
    /// Of version 1: whether the values stand one after the other as they are, and the levels are run lengths.
    pub(super) is_plain_v1: bool,
}

/// The header at the start of these bytes, or `None` if they hold none.
pub(super) fn parse(bytes: &[u8]) -> Option<PageHeader> {
    let mut input = Compact(bytes);
    let (mut kind, mut plain, mut body, mut data) = (None, None, None, DataHeader::default());
    let mut field = 0;
    while let Some(of) = input.field(&mut field)? {
        match (field, of) {
            (1, I32) => kind = Some(input.integer()?),
            (2, I32) => plain = Some(input.integer()?),
            (3, I32) => body = Some(input.integer()?),
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
        header_bytes: bytes.len() - input.0.len(),
        body_bytes: usize::try_from(body?).ok()?,
        values: data.values,
        rows: data.rows,
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

// Types of the compact protocol.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I8: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// Deeper than any header of this or the next version; keeps forged ones from overflowing the stack.
const MAX_DEPTH: u32 = 16;

/// Bytes in the compact protocol. `None` always means that they end too early or are invalid.
struct Compact<'a>(&'a [u8]);

impl Compact<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// A signed number: zigzag, so that small negative ones are short.
    fn integer(&mut self) -> Option<i64> {
        let number = self.varint()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn pass(&mut self, bytes: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    /// The type of the next field, whose number is put into `field`; `Some(None)` at the end of the struct.
    fn field(&mut self, field: &mut i64) -> Option<Option<u8>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Some(None);
        }
        *field = match byte >> 4 {
            0 => self.integer()?,
            distance => field.checked_add(i64::from(distance))?,
        };
        Some(Some(byte & 0x0f))
    }

    fn skip(&mut self, of: u8, depth: u32) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match of {
            TRUE | FALSE => Some(()), // the type is the value
            I8 => self.pass(1),
            I16 | I32 | I64 => self.varint().map(|_| ()),
            DOUBLE => self.pass(8),
            BINARY => {
                let length = self.varint()?;
                self.pass(length)
            }
            LIST | SET => self.skip_list(depth),
            MAP => self.skip_map(depth),
            STRUCT => {
                let mut field = 0;
                while let Some(of) = self.field(&mut field)? {
                    self.skip(of, depth + 1)?;
                }
                Some(())
            }
            _ => None,
        }
    }

    fn skip_list(&mut self, depth: u32) -> Option<()> {
        let head = self.byte()?;
        let length = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        self.skip_elements(length, &[head & 0x0f], depth)
    }

    fn skip_map(&mut self, depth: u32) -> Option<()> {
        let length = self.varint()?;
        if length == 0 {
            return Some(());
        }
        let types = self.byte()?;
        self.skip_elements(length, &[types >> 4, types & 0x0f], depth)
    }

    fn skip_elements(&mut self, length: u64, types: &[u8], depth: u32) -> Option<()> {
        // Every element takes at least one byte, so a longer list is invalid.
        if length > self.0.len() as u64 {
            return None;
        }
        for _ in 0..length {
            for &of in types {
                // Inside a list a boolean is a byte of its own.
                if of == TRUE || of == FALSE { self.pass(1)? } else { self.skip(of, depth + 1)? }
            }
        }
        Some(())
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
