//! Which state of which guard a published file is: `users.ibf.stamp` beside `users.ibf`.
//!
//! ```text
//!   0  magic 89 49 42 53 0d 0a 1a 0a        4  length of the filter's file
//!   1  version, 1                           5  its header's checksum
//!   2  whose: the guard's lineage           6  its last checksum, which covers all others
//!   3  when it was taken, in nanoseconds    7  XXH3-64 of all before
//!      since 1970
//! ```
//!
//! In little-endian words of 8 bytes. The filter's file is replaced first and the stamp second; in between, and whenever
//! only one of them is copied, they do not match, and a reader keeps what it has. So the time and the guard are those of
//! the filter, whatever a file system says about either file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ironbloom::format::native::replace_file;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: [u8; 8] = *b"\x89IBS\r\n\x1a\n";
const VERSION: u64 = 1;
const WORDS: usize = 8;
/// Where the header's checksum is in a file of a filter, and where the header ends.
const HEADER_CHECKSUM_AT: usize = 248;
const HEADER_BYTES: usize = HEADER_CHECKSUM_AT + 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) lineage: u64,
    pub(super) taken: SystemTime,
    pub(super) file: Content,
}

/// What identifies the bytes of a filter's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content {
    len: u64,
    header: u64,
    last: u64,
}

impl Content {
    /// Of a whole file.
    pub(super) fn of(file: &mut File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        let mut header = [0; HEADER_BYTES];
        file.seek(SeekFrom::Start(0))?;
        file.read_exact(&mut header)?;
        let mut last = [0; 8];
        file.seek(SeekFrom::Start(len.saturating_sub(8)))?;
        file.read_exact(&mut last)?;
        let header = u64::from_le_bytes(std::array::from_fn(|i| header[HEADER_CHECKSUM_AT + i]));
        Ok(Self { len, header, last: u64::from_le_bytes(last) })
    }
}

/// The stamp of this file.
pub(super) fn stamp_path(filter: &Path) -> PathBuf {
    let mut name = filter.file_name().unwrap_or_default().to_owned();
    name.push(".stamp");
    filter.with_file_name(name)
}

impl Stamp {
    fn to_bytes(self) -> [u8; 8 * WORDS] {
        let since = self.taken.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let nanos = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        let Content { len, header, last } = self.file;
        let words = [u64::from_le_bytes(MAGIC), VERSION, self.lineage, nanos, len, header, last, 0];
        let mut bytes = [0; 8 * WORDS];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let seal = xxh3_64(&bytes[..8 * (WORDS - 1)]);
        bytes[8 * (WORDS - 1)..].copy_from_slice(&seal.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, &'static str> {
        let bytes: &[u8; 8 * WORDS] = bytes.try_into().map_err(|_| "not a stamp of a guard")?;
        let word = |i: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[8 * i + byte]));
        if word(0).to_le_bytes() != MAGIC {
            return Err("not a stamp of a guard");
        }
        if xxh3_64(&bytes[..8 * (WORDS - 1)]) != word(WORDS - 1) {
            return Err("the checksum of the stamp is wrong");
        }
        if word(1) != VERSION {
            return Err("the stamp has a version that this program does not know");
        }
        let taken = SystemTime::UNIX_EPOCH + Duration::from_nanos(word(3));
        let file = Content { len: word(4), header: word(5), last: word(6) };
        Ok(Self { lineage: word(2), taken, file })
    }

    pub(super) fn write(self, filter: &Path) -> io::Result<()> {
        let bytes = self.to_bytes();
        replace_file(&stamp_path(filter), |mut file| file.write_all(&bytes))
    }

    pub(super) fn read(filter: &Path) -> io::Result<Self> {
        let mut bytes = Vec::new();
        File::open(stamp_path(filter))?.take(8 * WORDS as u64 + 1).read_to_end(&mut bytes)?;
        Self::from_bytes(&bytes).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bit_of_a_stamp_can_be_changed() {
        let taken = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_800_000_000_123_456_789);
        let stamp = Stamp { lineage: 7, taken, file: Content { len: 1, header: 2, last: 3 } };
        let bytes = stamp.to_bytes();
        assert_eq!(Stamp::from_bytes(&bytes), Ok(stamp));
        for bit in 0..8 * bytes.len() {
            let mut other = bytes;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(Stamp::from_bytes(&other).is_err(), "bit {bit}");
        }
        assert!(Stamp::from_bytes(&bytes[1..]).is_err());
    }
}
