//! Thrift structs in the compact protocol, in which Parquet writes its footer, page headers and filter headers.
//!
//! Each field is one byte (the difference from the last field number, and its type) and its value; a zero byte ends the
//! struct. Reference: the specification of the Thrift compact protocol.

// Types of the compact protocol.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I8: u8 = 3;
const I16: u8 = 4;
/// A 32-bit number.
pub const I32: u8 = 5;
/// A 64-bit number.
pub const I64: u8 = 6;
const DOUBLE: u8 = 7;
/// Bytes, or text.
pub const BINARY: u8 = 8;
/// A list.
pub const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
/// A struct.
pub const STRUCT: u8 = 12;

/// Deeper than any header of this or the next version; keeps forged ones from overflowing the stack.
const MAX_DEPTH: u32 = 16;

/// Bytes in the compact protocol. `None` always means that they end too early or are invalid.
pub struct Compact<'a>(&'a [u8]);

impl<'a> Compact<'a> {
    /// Starts at the beginning of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The bytes not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Reads the next byte.
    pub fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    /// Reads an unsigned number, seven bits per byte.
    pub fn varint(&mut self) -> Option<u64> {
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

    /// Reads a signed number: zigzag, so that small negative ones are short.
    pub fn integer(&mut self) -> Option<i64> {
        let number = self.varint()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn pass(&mut self, bytes: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    /// Reads the type of the next field and puts its number into `field`; `Some(None)` at the end of the struct.
    pub fn field(&mut self, field: &mut i64) -> Option<Option<u8>> {
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

    /// Skips a value of this type, nested in `depth` others.
    pub fn skip(&mut self, of: u8, depth: u32) -> Option<()> {
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
                // Inside a list a boolean takes a byte.
                if of == TRUE || of == FALSE { self.pass(1)? } else { self.skip(of, depth + 1)? }
            }
        }
        Some(())
    }
}
