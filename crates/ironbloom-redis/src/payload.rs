//! The bytes of a DUMP, made without a server: sketches have no chunks, so that an append-only file recreates them by RESTORE.
//!
//! ```text
//! 07                      a module's value
//! 81 + 8 bytes            name of the type (nine letters of six bits) and version (ten bits), big endian
//! 02 number | 04 double | 05 string    the fields, each with its mark
//! 00                      the end
//! 2 bytes, 8 bytes        version of the format, checksum
//! ```
//!
//! The server's own DUMP holds the same fields. It compresses strings, which is left out here, and has the version of the
//! server's files; here it is the one that Redis 6.2 has, which all later servers accept.

use crate::fields::FieldWriter;

const MODULE_VALUE: u8 = 7;
const END: u64 = 0;
const UNSIGNED: u64 = 2;
const DOUBLE: u64 = 4;
const STRING: u64 = 5;

const FORMAT_VERSION: u16 = 9;

/// The letters of the names of types.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The DUMP of a value of the type with this name of nine letters: version, and what `encode` writes.
pub fn payload(name: &[u8], version: u32, encode: impl FnOnce(&mut Payload)) -> Vec<u8> {
    let mut payload = Payload(vec![MODULE_VALUE]);
    payload.number(type_id(name, version));
    encode(&mut payload);
    payload.number(END);
    let mut bytes = payload.0;
    bytes.extend(FORMAT_VERSION.to_le_bytes());
    bytes.extend(crc64(&bytes).to_le_bytes());
    bytes
}

fn type_id(name: &[u8], version: u32) -> u64 {
    let letters = name.iter().fold(0, |id, letter| {
        let place = LETTERS.iter().position(|known| known == letter);
        (id << 6) | place.unwrap_or_default() as u64
    });
    (letters << 10) | u64::from(version & 1023)
}

/// Fields of a DUMP that is being made.
pub struct Payload(Vec<u8>);

impl Payload {
    /// A number in as few bytes as it needs: the length encoding of RDB files.
    #[expect(clippy::big_endian_bytes, reason = "so are these numbers in RDB files")]
    fn number(&mut self, number: u64) {
        match number {
            0..0x40 => self.0.push(number as u8),
            0x40..0x4000 => self.0.extend((number as u16 | 0x4000).to_be_bytes()),
            0x4000..=0xffff_ffff => {
                self.0.push(0x80);
                self.0.extend((number as u32).to_be_bytes());
            }
            _ => {
                self.0.push(0x81);
                self.0.extend(number.to_be_bytes());
            }
        }
    }
}

impl FieldWriter for Payload {
    fn unsigned(&mut self, number: u64) {
        self.number(UNSIGNED);
        self.number(number);
    }

    fn double(&mut self, number: f64) {
        self.number(DOUBLE);
        self.0.extend(number.to_le_bytes());
    }

    fn string(&mut self, bytes: &[u8]) {
        self.number(STRING);
        self.number(bytes.len() as u64);
        self.0.extend(bytes);
    }
}

/// The remainder of each byte by Jones' polynomial, bits reversed.
const REMAINDERS: [u64; 256] = {
    let mut remainders = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            rest = (rest >> 1) ^ if rest & 1 == 1 { 0x95ac_9329_ac4b_c9b5 } else { 0 };
            bit += 1;
        }
        remainders[byte] = rest;
        byte += 1;
    }
    remainders
};

/// The CRC of Redis, from zero.
fn crc64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, &byte| REMAINDERS[usize::from(sum as u8 ^ byte)] ^ (sum >> 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_servers() {
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }

    /// A DUMP that RedisBloom made, but for the version of the format and the checksum.
    #[test]
    fn a_payload_is_what_the_server_dumps() {
        let theirs = b"\x07\x81\x08\xc4\xa4\xf9\x36\x0f\x10\x00\x02\x01\x02\x01\x02\x2d\x05\x04\x2d\x00\x00\x00\x00";
        let ours = payload(b"CMSk-TYPE", 0, |fields| {
            fields.unsigned(1);
            fields.unsigned(1);
            fields.unsigned(45);
            fields.string(&[45, 0, 0, 0]);
        });
        assert_eq!(&ours[..ours.len() - 10], theirs);
    }

    #[test]
    fn numbers_have_the_length_that_the_server_gives_them() {
        for (number, bytes) in [
            (63, &b"\x3f"[..]),
            (64, b"\x40\x40"),
            (16383, b"\x7f\xff"),
            (16384, b"\x80\x00\x00\x40\x00"),
            (u64::from(u32::MAX), b"\x80\xff\xff\xff\xff"),
            (1 << 32, b"\x81\x00\x00\x00\x01\x00\x00\x00\x00"),
        ] {
            let mut payload = Payload(Vec::new());
            payload.number(number);
            assert_eq!(payload.0, bytes, "{number}");
        }
    }
}
