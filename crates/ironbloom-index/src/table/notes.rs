//! The bytes in which an index stores what building learned about a table: where its pages or lines start.
//!
//! ```text
//!  tag      4 bytes     IBNG Parquet, IBNP Parquet whose footer must be read as a whole, IBNC CSV
//!  content  …           numbers as LEB128 varints, checksums as 4 bytes
//!  check    8 bytes     XXH3-64 of everything before
//! ```
//!
//! All little-endian. The reader returns nothing before the checksum is verified, and numbers are checked against the
//! table: a correct checksum means that the notes are what was written, not that they are valid.

use xxhash_rust::xxh3::xxh3_64;

const CHECK_BYTES: usize = 8;
const TAG_BYTES: usize = 4;

/// A checksum of one page or of some lines. 32 bits: it is meant to detect damage, not attacks.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    xxh3_64(bytes) as u32
}

/// Notes being written.
pub(super) struct NotesWriter(Vec<u8>);

impl NotesWriter {
    pub(super) fn new(tag: [u8; TAG_BYTES]) -> Self {
        Self(tag.to_vec())
    }

    /// Notes inside others, without a tag and a checksum of their own.
    pub(super) fn part() -> Self {
        Self(Vec::new())
    }

    /// Bytes so far.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Appends a part.
    pub(super) fn append(&mut self, part: &Self) {
        self.0.extend_from_slice(&part.0);
    }

    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub(super) fn checksum(&mut self, checksum: u32) {
        self.0.extend_from_slice(&checksum.to_le_bytes());
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        let check = xxh3_64(&self.0);
        self.0.extend_from_slice(&check.to_le_bytes());
        self.0
    }
}

/// Notes being read. Every function reports problems in human-readable form.
pub(super) struct NotesReader<'a>(&'a [u8]);

const CUT: &str = "they end too early";

impl<'a> NotesReader<'a> {
    pub(super) fn new(bytes: &'a [u8], tag: [u8; TAG_BYTES]) -> Result<Self, &'static str> {
        let length = bytes.len().checked_sub(CHECK_BYTES).ok_or(CUT)?;
        let (content, check) = bytes.split_at(length);
        if xxh3_64(content).to_le_bytes() != check {
            return Err("wrong checksum");
        }
        let content = content.strip_prefix(&tag[..]).ok_or("they are of another kind of file")?;
        Ok(Self(content))
    }

    pub(super) fn number(&mut self) -> Result<u64, &'static str> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or(CUT)?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("a number is too large")
    }

    /// The next bytes, as a part.
    pub(super) fn part(&mut self, bytes: usize) -> Result<&'a [u8], &'static str> {
        let (part, rest) = self.0.split_at_checked(bytes).ok_or(CUT)?;
        self.0 = rest;
        Ok(part)
    }

    /// Reads a part, of which the checksum of the whole has been verified.
    pub(super) fn of_part(part: &'a [u8]) -> Self {
        Self(part)
    }

    /// A number of things that each take at least `bytes` of the remaining bytes: nothing is allocated for more.
    pub(super) fn count(&mut self, bytes: usize) -> Result<usize, &'static str> {
        let count = self.number()?;
        let room = self.0.len() / bytes;
        usize::try_from(count).ok().filter(|&count| count <= room).ok_or(CUT)
    }

    pub(super) fn checksum(&mut self) -> Result<u32, &'static str> {
        let (checksum, rest) = self.0.split_first_chunk().ok_or(CUT)?;
        self.0 = rest;
        Ok(u32::from_le_bytes(*checksum))
    }

    pub(super) fn text(&mut self) -> Result<&'a str, &'static str> {
        let length = self.count(1)?;
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        std::str::from_utf8(text).map_err(|_| "a name is not UTF-8")
    }

    /// Whether everything has been read.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn finish(self) -> Result<(), &'static str> {
        if self.0.is_empty() { Ok(()) } else { Err("they do not end where they should") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut writer = NotesWriter::new(*b"TEST");
        for number in [0, 1, 127, 128, 300, u64::MAX] {
            writer.number(number);
        }
        writer.checksum(7);
        writer.text("größe");
        let bytes = writer.finish();
        let mut reader = NotesReader::new(&bytes, *b"TEST").unwrap();
        for number in [0, 1, 127, 128, 300, u64::MAX] {
            assert_eq!(reader.number(), Ok(number));
        }
        assert_eq!(reader.checksum(), Ok(7));
        assert_eq!(reader.text(), Ok("größe"));
        assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let mut writer = NotesWriter::new(*b"TEST");
        writer.text("abc");
        let bytes = writer.finish();
        for bit in 0..bytes.len() * 8 {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(NotesReader::new(&wrong, *b"TEST").is_err(), "bit {bit}");
        }
    }

    #[test]
    fn no_count_is_believed_beyond_the_bytes_that_are_there() {
        let mut writer = NotesWriter::new(*b"TEST");
        writer.number(1 << 60);
        let bytes = writer.finish();
        assert!(NotesReader::new(&bytes, *b"TEST").unwrap().count(1).is_err());
    }

    #[test]
    fn numbers_of_more_than_64_bits_are_refused() {
        let mut writer = NotesWriter::new(*b"TEST");
        writer.0.extend_from_slice(&[0xff; 9]);
        writer.0.push(2);
        let bytes = writer.finish();
        assert!(NotesReader::new(&bytes, *b"TEST").unwrap().number().is_err());
    }
}
