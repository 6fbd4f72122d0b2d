//! The `.ibf` file, version 1. This page is its specification; `docs/formats.md` lists the parameters by kind.
//!
//! ```text
//!      0  8   magic 89 49 42 46 0d 0a 1a 0a        (a text-mode transfer corrupts it, like PNG's)
//!      8  2   version, 1
//!     10  2   kind                                 (numbers of `Kind`)
//!     12  2   hash function                        1 XXH3-64, 2 XXH64, 3 external, 4 the rule of another program,
//!                                                  5 SipHash-1-3 with a key in the file, 6 with a key elsewhere
//!     14  2   key encoding                         0 external hash, 1 hashed key, 2 integer, 3 row; plus 256 times the
//!                                                  type that keys were declared to have (1 text and bytes, 2 integers,
//!                                                  4 hashed values, 3 those of release 0.2, 5 other values), or 128 and
//!                                                  the types that they had (1 text and bytes, 2 integers, 4 hashed
//!                                                  values, 8 other values); 4 another program's, plus 256 times the
//!                                                  number of `KeyForm`
//!     16  8   seed of the hash                     5: first half of the key; 6: a number that identifies the key
//!     24  8   len, keys counted
//!     32  8   capacity, keys planned for
//!     40  8   payload bytes                        a multiple of 64
//!     48  8   chunk bytes, 65536
//!     56  8   second half of the key               of hash function 5, otherwise zero
//!     64 184  23 parameters of 8 bytes             meaning by kind, unused ones zero
//!    248  8   XXH3-64 of bytes 0..248
//!    256  …   payload                              64-byte aligned: a memory map of it is the filter
//!      …  8·c checksums of the c chunks            XXH3-64, seeded with the chunk's number
//!      …  8   XXH3-64 of the checksums, seeded with the header's checksum
//! ```
//!
//! All numbers are little-endian and 64 bits wide where they count anything. The length of the file follows from the
//! header, so a truncated file, or one with trailing bytes, is rejected before anything is allocated. A later version
//! may assign meaning to fields that are zero here; readers reject versions they do not know.

mod header;
mod lock;
#[cfg(feature = "mmap")]
mod map;
mod piece;
mod read;
mod receive;
mod replace;
mod write;

use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::path::Path;

pub use header::Header;
pub use lock::{FileLock, Replacing, behind_links};
pub use piece::{ImageReading, Table, image_bytes, image_piece, table_start, visit_image};
pub use receive::Incoming;
pub use replace::{
    is_temporary_suffix, remove_if_abandoned, replace_file, replace_file_at, temporary_path,
};

use self::header::{chunk_count, read_header};
#[cfg(feature = "mmap")]
use self::map::{Mapped, map_checked, map_private};
use self::read::{open, read_damage, read_parts};
use self::write::{save_image, write_image};
use super::Kind;
use crate::bits::count_ones_in;
use crate::bits::packed::Packed;
use crate::error::{DecodeError, FileError};
use crate::hash::{HashFn, HashKey, KeyTypes};
use crate::kernel::{LINE_BYTES, Words};

/// A filter disassembled for writing: its header and the consecutive arrays of the payload.
#[doc(hidden)]
pub struct Image<'a> {
    pub(crate) header: Header,
    pub(crate) sections: Vec<Cow<'a, [u64]>>,
}

impl<'a> Image<'a> {
    pub(crate) fn new(kind: Kind, hash_fn: HashFn, len: u64, capacity: u64) -> Self {
        let header = Header::new(kind, hash_fn, len, capacity);
        Self { header, sections: Vec::new() }
    }

    /// Sets the types of the keys.
    pub(crate) fn of_keys(mut self, key_types: KeyTypes) -> Self {
        self.header.key_types = key_types;
        self
    }

    pub(crate) fn params(mut self, params: &[u64]) -> Self {
        self.header = self.header.with_params(params);
        self
    }

    /// Appends an array of whole lines to the payload.
    pub(crate) fn section(self, words: &'a [u64]) -> Self {
        self.push(Cow::Borrowed(words))
    }

    /// Appends an array of whole lines that was built for the file.
    pub(crate) fn owned_section(self, words: Vec<u64>) -> Self {
        self.push(Cow::Owned(words))
    }

    pub(crate) fn push(mut self, words: Cow<'a, [u64]>) -> Self {
        debug_assert!((words.len() * 8).is_multiple_of(LINE_BYTES));
        self.header.payload_bytes += words.len() as u64 * 8;
        self.sections.push(words);
        self
    }
}
/// Tells the system that the arrays of a filter are accessed at random, so that it may use 2 MiB pages. For programs
/// that [take all memory from their allocator](crate::memory::take_all_from_allocator); others need not call it.
pub fn prefer_huge_pages(filter: &impl Persist) {
    for section in filter.encode().sections {
        if let Cow::Borrowed(words) = section {
            crate::memory::prefer_huge_pages(bytemuck::cast_slice(words));
        }
    }
}

/// The contents of a file: the header, and the whole payload as one array.
#[doc(hidden)]
pub struct Parts {
    pub(crate) header: Header,
    pub(crate) words: Words,
}
impl Parts {
    /// Applies the key that the file does not contain. A key for a file that needs none is also an error: lookups would
    /// not mean what the caller intended.
    fn unlock(mut self, key: HashKey) -> Result<Self, DecodeError> {
        let found = key.check();
        match self.header.hash_fn {
            HashFn::Locked { check } if check == found => {
                self.header.hash_fn = HashFn::secret(key);
                Ok(self)
            }
            HashFn::Locked { check } => Err(DecodeError::HashKey { wanted: Some(check), found }),
            _ => Err(DecodeError::HashKey { wanted: None, found }),
        }
    }

    /// Returns the header, if it is of this kind.
    pub(crate) fn expect_kind(&self, wanted: Kind) -> Result<&Header, DecodeError> {
        let found = self.header.kind;
        if found == wanted { Ok(&self.header) } else { Err(DecodeError::Kind { wanted, found }) }
    }

    /// Returns parameter `i` as a number that fits 32 bits.
    pub(crate) fn small(&self, i: usize, what: &'static str) -> Result<u32, DecodeError> {
        let value = self.header.params[i];
        u32::try_from(value).map_err(|_| DecodeError::Invalid { what, value })
    }

    /// Returns the payload, which must have exactly the length of a filter of `bits` bits, followed by zeros.
    pub(crate) fn words_of(self, bits: u64) -> Result<Words, DecodeError> {
        let expected = bits.div_ceil(8 * LINE_BYTES as u64).saturating_mul(LINE_BYTES as u64);
        let found = self.words.size_in_bytes() as u64;
        if expected != found {
            return Err(DecodeError::Length { expected, found });
        }
        zero_after(self.words, bits)
    }
}

/// The consecutive arrays of a payload, as written by an [`Image`].
pub(crate) struct Sections {
    rest: Words,
    /// Bytes of all arrays.
    all: u64,
}

impl Sections {
    pub(crate) fn new(words: Words) -> Self {
        Self { all: words.size_in_bytes() as u64, rest: words }
    }

    /// Bytes of the arrays taken so far.
    fn taken(&self) -> u64 {
        self.all - self.rest.size_in_bytes() as u64
    }

    /// Takes the next array, of `lines` lines. `Err` if the payload is too short.
    pub(crate) fn take_lines(&mut self, lines: u64) -> Result<Words, DecodeError> {
        let section = usize::try_from(lines).ok().and_then(|lines| self.rest.split_lines(lines));
        section.ok_or_else(|| {
            let more = lines.saturating_mul(LINE_BYTES as u64);
            DecodeError::Length { expected: self.taken().saturating_add(more), found: self.all }
        })
    }

    /// Takes the next array, of `len` numbers of `width` bits, followed by zeros.
    pub(crate) fn take_packed(&mut self, len: u64, width: u32) -> Result<Packed, DecodeError> {
        let room = Packed::bits_for(len, width)
            .ok_or(DecodeError::Invalid { what: "length of an array", value: len })?;
        let section = self.take_lines(room.div_ceil(8 * LINE_BYTES as u64))?;
        Ok(Packed::from_words(zero_after(section, len * u64::from(width))?, width))
    }

    /// Returns an error if lines follow the last array.
    pub(crate) fn finish(self) -> Result<(), DecodeError> {
        let (expected, found) = (self.taken(), self.all);
        if expected == found { Ok(()) } else { Err(DecodeError::Length { expected, found }) }
    }
}

/// Returns the words, if everything after the first `bits` bits is zero. The trailing bits are counted with the others,
/// so they must be as written.
pub(crate) fn zero_after(words: Words, bits: u64) -> Result<Words, DecodeError> {
    match count_ones_in(&words, bits, words.size_in_bytes() as u64 * 8) {
        0 => Ok(words),
        value => Err(DecodeError::Invalid { what: "padding", value }),
    }
}

/// Saving and loading, the same for every kind.
///
/// ```
/// use ironbloom::{Bloom, Persist};
/// let mut seen = Bloom::with_rate(1000, 0.01)?;
/// seen.insert("alice");
/// let copy = Bloom::from_bytes(&seen.to_bytes())?;
/// assert!(copy.contains("alice"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Persist: Sized {
    #[doc(hidden)]
    fn encode(&self) -> Image<'_>;

    #[doc(hidden)]
    fn decode(parts: Parts) -> Result<Self, DecodeError>;

    /// Writes the filter to a file: under a temporary name beside it, synced, then renamed, so that the real name
    /// always refers to the old or the new file, never a mix.
    fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        let path = path.as_ref();
        save_image(&self.encode(), path)
            .map_err(|error| FileError::Io { path: path.to_owned(), error })
    }

    /// Reads a filter into memory. Every checksum is verified: a damaged file results in an error, never a wrong
    /// answer.
    fn load(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let (file, available) = open(path)?;
        read_parts(file, available)
            .and_then(|parts| Ok(Self::decode(parts)?))
            .map_err(|error| error.at(path))
    }

    /// Like [`load`](Persist::load), for a file without its hash key ([`HashFn::secret`]). `Err` if it was written with
    /// another key, or needs none.
    fn load_with_key(path: impl AsRef<Path>, key: HashKey) -> Result<Self, FileError> {
        let path = path.as_ref();
        let (file, available) = open(path)?;
        read_parts(file, available)
            .and_then(|parts| Ok(Self::decode(parts.unlock(key)?)?))
            .map_err(|error| error.at(path))
    }

    /// Memory-maps a file: the pages of the file are the filter, shared with every other process that maps it, and
    /// nothing is copied until the filter is changed. Every checksum is verified, which reads the file once.
    ///
    /// [`load`](Persist::load) takes about twice as long (50 ms instead of 25 for 120 MB in the page cache), and the
    /// filter then has its own memory, which no other process can change. Mapping is for many processes that share one
    /// large file, and, with [`map_unverified`](Persist::map_unverified), for opening it instantly.
    ///
    /// ```
    /// # use ironbloom::{Bloom, Persist};
    /// # let path = std::env::temp_dir().join(format!("ironbloom-map-doc-{}.ibf", std::process::id()));
    /// # Bloom::with_rate(1000, 0.01)?.save(&path)?;
    /// // SAFETY: the file is ours, and we only ever replace it as a whole.
    /// let seen = unsafe { Bloom::map(&path)? };
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// ```compile_fail,E0133
    /// # use ironbloom::{Bloom, Persist};
    /// let seen = Bloom::map("seen.ibf");
    /// ```
    ///
    /// # Safety
    ///
    /// As long as the filter or a clone of it lives, the file must not be changed or truncated, by this process or any
    /// other. Replacing it is fine: [`save`](Persist::save) and everything else in Ironbloom writes a new file and
    /// renames it. If this contract is broken, lookups may be wrong, including false "absent" answers; a read beyond
    /// the new end of a truncated file kills the process with a signal (SIGBUS).
    #[cfg(feature = "mmap")]
    #[expect(unsafe_code, reason = "the caller promises that the file does not change")]
    unsafe fn map(path: impl AsRef<Path>) -> Result<Self, FileError> {
        // SAFETY: guaranteed by the caller.
        unsafe { map_checked(path.as_ref(), Mapped::check) }
    }

    /// Like [`map`](Persist::map), but only the header is verified, so opening is instant whatever the size.
    ///
    /// A payload damaged since it was written would give wrong answers, including false "absent" ones. Use it for files
    /// that [`verify`] has checked, or that this machine has just written.
    ///
    /// # Safety
    ///
    /// Same as [`map`](Persist::map).
    #[cfg(feature = "mmap")]
    #[expect(unsafe_code, reason = "as `map`")]
    unsafe fn map_unverified(path: impl AsRef<Path>) -> Result<Self, FileError> {
        // SAFETY: guaranteed by the caller.
        unsafe { map_checked(path.as_ref(), |_| Ok(())) }
    }

    /// Like [`map_unverified`](Persist::map_unverified), for a filter that will be changed: the first change to a
    /// mapped filter copies all of it, whereas here the system copies each page when it is first written. The file is
    /// not changed. Kinds with several arrays are still copied.
    ///
    /// # Safety
    ///
    /// Same as [`map`](Persist::map): unwritten pages are still the file's.
    #[cfg(feature = "mmap")]
    #[expect(unsafe_code, reason = "as `map`")]
    unsafe fn map_private(path: impl AsRef<Path>) -> Result<Self, FileError> {
        // SAFETY: guaranteed by the caller.
        unsafe { map_private(path.as_ref()) }
    }

    /// Writes the bytes of a file to any writer.
    fn write_to(&self, out: impl Write) -> io::Result<()> {
        write_image(&self.encode(), out)
    }

    /// Reads a filter from any reader, to its end. Memory is allocated only as bytes arrive.
    fn read_from(input: impl Read) -> Result<Self, io::Error> {
        let parts = read_parts(input, None).map_err(ReadError::into_io)?;
        Self::decode(parts).map_err(|error| ReadError::Decode(error).into_io())
    }

    /// Like [`read_from`](Persist::read_from), if exactly `len` bytes are known to be available: the memory is
    /// allocated up front.
    fn read_sized(input: impl Read, len: u64) -> Result<Self, io::Error> {
        let parts = read_parts(input, Some(len)).map_err(ReadError::into_io)?;
        Self::decode(parts).map_err(|error| ReadError::Decode(error).into_io())
    }

    /// Returns the bytes of a file.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes).expect("writing to a Vec cannot fail");
        bytes
    }

    /// Like [`from_bytes`](Persist::from_bytes), for a file without its hash key ([`HashFn::secret`]). `Err` if it was
    /// written with another key, or needs none.
    ///
    /// ```
    /// use ironbloom::{Bloom, BloomParams, HashFn, HashKey, Persist};
    /// let key = HashKey::random();
    /// let mut seen = Bloom::new(BloomParams::for_rate(1000, 0.01)?, HashFn::secret(key))?;
    /// seen.insert("alice");
    /// let file = seen.to_bytes();                                      // does not contain the key
    /// assert!(Bloom::from_bytes_with_key(&file, key)?.contains("alice"));
    /// assert!(Bloom::from_bytes_with_key(&file, HashKey::random()).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn from_bytes_with_key(bytes: &[u8], key: HashKey) -> Result<Self, DecodeError> {
        match read_parts(bytes, Some(bytes.len() as u64)) {
            Ok(parts) => Self::decode(parts.unlock(key)?),
            Err(ReadError::Decode(error)) => Err(error),
            Err(ReadError::Io(_)) => unreachable!("reading from a slice cannot fail"),
        }
    }

    /// Reads a filter from the bytes of a file. Every checksum is verified.
    fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        match read_parts(bytes, Some(bytes.len() as u64)) {
            Ok(parts) => Self::decode(parts),
            Err(ReadError::Decode(error)) => Err(error),
            Err(ReadError::Io(_)) => unreachable!("reading from a slice cannot fail"),
        }
    }
}
/// Reads only the header of a file, and checks it.
pub fn header(path: impl AsRef<Path>) -> Result<Header, FileError> {
    let path = path.as_ref();
    let (mut file, _) = open(path)?;
    read_header(&mut file).map(|(header, _)| header).map_err(|error| error.at(path))
}

/// Reads and checks the header at the front of these bytes; the rest may be missing or belong to something else.
pub fn header_of(bytes: &[u8]) -> Result<Header, DecodeError> {
    match read_header(&mut &*bytes) {
        Ok((header, _)) => Ok(header),
        Err(ReadError::Decode(error)) => Err(error),
        Err(ReadError::Io(_)) => unreachable!("reading from a slice cannot fail"),
    }
}

/// The result of [`verify`].
#[derive(Debug)]
pub struct Verification {
    /// The header, which is intact.
    pub header: Header,
    /// Number of chunks checked.
    pub chunks: u64,
    /// Every damaged part. Empty if the file is as it was written.
    pub damaged: Vec<DecodeError>,
}

/// Reads a whole file and names every damaged part. `Err` if not even the header is valid.
pub fn verify(path: impl AsRef<Path>) -> Result<Verification, FileError> {
    let path = path.as_ref();
    let (file, available) = open(path)?;
    let (header, damaged) = read_damage(file, available).map_err(|error| error.at(path))?;
    Ok(Verification { chunks: chunk_count(header.payload_bytes), header, damaged })
}
/// An error from the operating system, or in the bytes.
enum ReadError {
    Io(io::Error),
    Decode(DecodeError),
}

impl ReadError {
    fn at(self, path: &Path) -> FileError {
        let path = path.to_owned();
        match self {
            Self::Io(error) => FileError::Io { path, error },
            Self::Decode(error) => FileError::Decode { path, error },
        }
    }
}

impl ReadError {
    fn into_io(self) -> io::Error {
        match self {
            Self::Io(error) => error,
            Self::Decode(error) => io::Error::new(io::ErrorKind::InvalidData, error),
        }
    }
}

impl From<DecodeError> for ReadError {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
