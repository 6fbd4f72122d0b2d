//! Files of sketches, `.ibs`. This header is their specification.
//!
//! ```text
//!  0  8  magic 89 49 42 53 0d 0a 1a 0a
//!  8  4  version, 1
//! 12  4  kind: 1 count-min, 2 top-k, 3 t-digest
//! 16  8  P, bytes of the fields
//! 24  8  XXH3-64 of bytes 0..24
//! 32  P  the fields: a number is 8 bytes, a double 8 bytes (IEEE 754), a string its length in 8 bytes and its bytes
//!  …  8  XXH3-64 of the fields, seeded with the checksum at 24
//! ```
//!
//! Numbers are little-endian. The fields and their order are those in RDB files of Redis, which the `encode` of each kind
//! lists: one encoding, and one decoder that has to stand up to anything. A sketch is not a kind of `.ibf`, because those are
//! filters: whoever reads one may ask it for keys.

use std::fs;
use std::io::Write;
use std::path::Path;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::error::SketchFileError;
use crate::format::native::replace_file;
use crate::redisbloom::error::DecodeError;
use crate::redisbloom::fields::{FieldReader, FieldWriter};

/// The first bytes of a sketch.
pub const MAGIC: [u8; 8] = *b"\x89IBS\r\n\x1a\n";

const VERSION: u32 = 1;
const HEADER_BYTES: usize = 32;
const CHECKSUM_AT: usize = 24;

/// A sketch that can be kept: in a file, or as the value of a key in a server.
pub trait Sketch: Sized {
    /// The number of its kind in files.
    const KIND: u32;
    /// The name of its kind.
    const NAME: &'static str;

    /// Writes its fields, which are RedisBloom's.
    fn encode(&self, to: &mut impl FieldWriter);

    /// Reads its fields, which may be anything.
    ///
    /// # Errors
    ///
    /// If no sketch has such fields.
    fn decode(from: &mut impl FieldReader) -> Result<Self, DecodeError>;

    /// The bytes of its file.
    fn to_bytes(&self) -> Vec<u8> {
        let mut fields = Fields(Vec::new());
        self.encode(&mut fields);
        let mut bytes = Vec::with_capacity(HEADER_BYTES + fields.0.len() + 8);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(Self::KIND.to_le_bytes());
        bytes.extend((fields.0.len() as u64).to_le_bytes());
        let checksum = xxh3_64(&bytes);
        bytes.extend(checksum.to_le_bytes());
        bytes.extend(&fields.0);
        bytes.extend(xxh3_64_with_seed(&fields.0, checksum).to_le_bytes());
        bytes
    }

    /// The sketch whose file has these bytes.
    ///
    /// # Errors
    ///
    /// If they are not the whole file of such a sketch, unharmed.
    fn from_bytes(bytes: &[u8]) -> Result<Self, SketchFileError> {
        if !bytes.starts_with(&MAGIC) {
            return Err(SketchFileError::NotASketch);
        }
        let (header, rest) =
            bytes.split_first_chunk::<HEADER_BYTES>().ok_or(SketchFileError::Length)?;
        let checksum = word(header, CHECKSUM_AT);
        if xxh3_64(&header[..CHECKSUM_AT]) != checksum {
            return Err(SketchFileError::Checksum);
        }
        let [version, kind] = [8, 12].map(|at| word(header, at) as u32);
        if version != VERSION {
            return Err(SketchFileError::Version { found: version });
        }
        if kind != Self::KIND {
            return Err(SketchFileError::Kind { found: kind, expected: Self::NAME });
        }
        let (fields, end) = rest.split_last_chunk::<8>().ok_or(SketchFileError::Length)?;
        if fields.len() as u64 != word(header, 16) {
            return Err(SketchFileError::Length);
        }
        if xxh3_64_with_seed(fields, checksum) != u64::from_le_bytes(*end) {
            return Err(SketchFileError::Checksum);
        }
        let mut left = Left(fields);
        let sketch = Self::decode(&mut left)?;
        if left.0.is_empty() { Ok(sketch) } else { Err(SketchFileError::Length) }
    }

    /// Saves it to a file, which is replaced as a whole.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    fn save(&self, path: impl AsRef<Path>) -> Result<(), SketchFileError> {
        Ok(replace_file(path.as_ref(), |mut file| file.write_all(&self.to_bytes()))?)
    }

    /// Loads it from a file, and verifies every checksum.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is not the file of such a sketch, unharmed.
    fn load(path: impl AsRef<Path>) -> Result<Self, SketchFileError> {
        Self::from_bytes(&fs::read(path)?)
    }
}

/// The eight bytes from `at` on, or as many as there are.
fn word(header: &[u8; HEADER_BYTES], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&header[at..at + 8]);
    u64::from_le_bytes(word)
}

/// Fields on their way into a file.
struct Fields(Vec<u8>);

impl FieldWriter for Fields {
    fn unsigned(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn double(&mut self, number: f64) {
        self.0.extend(number.to_le_bytes());
    }

    fn string(&mut self, bytes: &[u8]) {
        self.unsigned(bytes.len() as u64);
        self.0.extend(bytes);
    }
}

/// The fields of a file that are left.
struct Left<'a>(&'a [u8]);

impl FieldReader for Left<'_> {
    fn unsigned(&mut self) -> Result<u64, DecodeError> {
        let (number, rest) = self.0.split_first_chunk::<8>().ok_or(DecodeError::Length)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*number))
    }

    fn double(&mut self) -> Result<f64, DecodeError> {
        self.unsigned().map(f64::from_bits)
    }

    fn string(&mut self) -> Result<Vec<u8>, DecodeError> {
        let len = usize::try_from(self.unsigned()?).map_err(|_| DecodeError::Length)?;
        let (string, rest) = self.0.split_at_checked(len).ok_or(DecodeError::Length)?;
        self.0 = rest;
        Ok(string.to_vec())
    }
}
