//! What a server puts around the fields of a module's value in DUMP, and takes off in RESTORE.
//!
//! ```text
//! 07                      a module's value
//! 81 + 8 bytes            name of the type (nine letters of six bits) and version (ten bits), big endian
//! 02 number | 04 double | 05 string    the fields, each with its mark
//! 00                      the end
//! 2 bytes, 8 bytes        version of the format, checksum
//!
//! number  00xxxxxx | 01xxxxxx + 1 byte | 80 + 4 bytes, big endian | 81 + 8 bytes, big endian
//! string  number and as many bytes, or c3, packed length, length, bytes packed by LZF
//! ```

use ironbloom_redis::error::DecodeError;
use ironbloom_redis::fields::{FieldReader, FieldWriter};
use ironbloom_testing::Random;

/// A field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Field {
    Unsigned(u64),
    Double(f64),
    String(Vec<u8>),
}

/// Fields that are read from the front and written to the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fields(pub(crate) Vec<Field>);

impl FieldReader for Fields {
    fn unsigned(&mut self) -> Result<u64, DecodeError> {
        match self.next()? {
            Field::Unsigned(number) => Ok(number),
            _ => Err(DecodeError::Length),
        }
    }

    fn double(&mut self) -> Result<f64, DecodeError> {
        match self.next()? {
            Field::Double(number) => Ok(number),
            _ => Err(DecodeError::Length),
        }
    }

    fn string(&mut self) -> Result<Vec<u8>, DecodeError> {
        match self.next()? {
            Field::String(bytes) => Ok(bytes),
            _ => Err(DecodeError::Length),
        }
    }
}

impl Fields {
    fn next(&mut self) -> Result<Field, DecodeError> {
        if self.0.is_empty() { Err(DecodeError::Length) } else { Ok(self.0.remove(0)) }
    }
}

impl FieldWriter for Fields {
    fn unsigned(&mut self, number: u64) {
        self.0.push(Field::Unsigned(number));
    }

    fn double(&mut self, number: f64) {
        self.0.push(Field::Double(number));
    }

    fn string(&mut self, bytes: &[u8]) {
        self.0.push(Field::String(bytes.to_vec()));
    }
}

/// Name, version and fields of a DUMP.
pub(crate) fn open(dump: &[u8]) -> (String, u32, Fields) {
    let mut input = Input(&dump[..dump.len() - 10]);
    assert_eq!(input.byte(), 7, "not a module's value");
    let id = input.number();
    let mut fields = Vec::new();
    loop {
        match input.number() {
            0 => break,
            2 => fields.push(Field::Unsigned(input.number())),
            4 => fields.push(Field::Double(f64::from_le_bytes(input.take(8).try_into().unwrap()))),
            5 => fields.push(Field::String(input.string())),
            other => panic!("no mark of a field: {other}"),
        }
    }
    assert!(input.0.is_empty(), "{} bytes after the end", input.0.len());
    (type_name(id), (id & 1023) as u32, Fields(fields))
}

fn type_name(id: u64) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    (0..9).map(|i| char::from(LETTERS[(id >> (58 - 6 * i)) as usize & 63])).collect()
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }

    fn byte(&mut self) -> u8 {
        self.take(1)[0]
    }

    fn big_endian(&mut self, len: usize) -> u64 {
        self.take(len).iter().fold(0, |number, &byte| (number << 8) | u64::from(byte))
    }

    fn number(&mut self) -> u64 {
        let first = self.byte();
        match first {
            0..0x40 => u64::from(first),
            0x40..0x80 => (u64::from(first & 63) << 8) | u64::from(self.byte()),
            0x80 => self.big_endian(4),
            0x81 => self.big_endian(8),
            other => panic!("no number: {other:#x}"),
        }
    }

    fn string(&mut self) -> Vec<u8> {
        if self.0[0] != 0xc3 {
            let len = self.number() as usize;
            return self.take(len).to_vec();
        }
        self.byte();
        let packed = self.number() as usize;
        let len = self.number() as usize;
        let bytes = unpack(self.take(packed));
        assert_eq!(bytes.len(), len);
        bytes
    }
}

/// LZF: a byte below 32 announces this many literal bytes and one; any other a copy of earlier bytes, its length in the
/// upper three bits (7: and the next byte), its distance in the rest and the next byte.
fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut input = Input(packed);
    let mut bytes: Vec<u8> = Vec::new();
    while !input.0.is_empty() {
        let control = usize::from(input.byte());
        if control < 32 {
            bytes.extend(input.take(control + 1));
            continue;
        }
        let mut len = control >> 5;
        if len == 7 {
            len += usize::from(input.byte());
        }
        let distance = ((control & 31) << 8) + usize::from(input.byte()) + 1;
        for _ in 0..len + 2 {
            bytes.push(bytes[bytes.len() - distance]);
        }
    }
    bytes
}

/// A DUMP that holds these bytes: its last eight are the checksum, which is computed again.
pub(crate) fn sealed(mut dump: Vec<u8>) -> Vec<u8> {
    let end = dump.len() - 8;
    let sum = crc64(&dump[..end]);
    dump[end..].copy_from_slice(&sum.to_le_bytes());
    dump
}

/// A DUMP with a flipped bit, and in every fifth round truncated, under a right checksum. The numbers stand in the first bytes
/// and between the arrays: half of the flips are among the first.
pub(crate) fn forged(dump: &[u8], round: usize, random: &mut Random) -> Vec<u8> {
    let mut forged = dump.to_vec();
    let near = if round.is_multiple_of(2) { 60 } else { dump.len() - 10 };
    forged[random.index(near)] ^= 1 << random.index(8);
    if round.is_multiple_of(5) {
        forged.drain(dump.len() / 2..dump.len() - 10 - random.index(40));
    }
    sealed(forged)
}

/// The CRC of Redis: Jones' polynomial, bits reversed, from zero. 0xe9c6d914c4b8d9ca for "123456789".
pub(crate) fn crc64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, &byte| {
        (0..8).fold(sum ^ u64::from(byte), |sum, _| {
            (sum >> 1) ^ if sum & 1 == 1 { 0x95ac_9329_ac4b_c9b5 } else { 0 }
        })
    })
}
