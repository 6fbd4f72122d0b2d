//! The `.ibf` file, version 1. This header is its specification; `docs/formats.md` lists the parameters by kind.
//!
//! ```text
//!      0  8   magic 89 49 42 46 0d 0a 1a 0a        (a transfer in text mode breaks it, as PNG's)
//!      8  2   version, 1
//!     10  2   kind                                 (numbers of `Kind`)
//!     12  2   hash function                        1 XXH3-64, 2 XXH64, 3 external
//!     14  2   key encoding                         0 external hash, 1 bytes as they are, 2 integer
//!     16  8   seed of the hash
//!     24  8   len, keys counted
//!     32  8   capacity, keys planned for
//!     40  8   payload bytes                        a multiple of 64
//!     48  8   chunk bytes, 65536
//!     56  8   zero
//!     64 184  23 parameters of 8 bytes             meaning by kind, unused ones zero
//!    248  8   XXH3-64 of bytes 0..248
//!    256  …   payload                              64-byte aligned: a memory map of it is the filter
//!      …  8·c checksums of the c chunks            XXH3-64, seeded with the chunk's number
//!      …  8   XXH3-64 of the checksums, seeded with the header's checksum
//! ```
//!
//! All numbers are little-endian and 64 bits wide where they count anything. The length of the file follows from
//! the header, so a file cut short or with bytes behind it is refused before anything is allocated. A later
//! version may give meaning to what is zero here; a reader refuses versions it does not know.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::Kind;
use crate::error::{DecodeError, FileError};
use crate::hash::HashFn;
use crate::kernel::{LINE_BYTES, Mapping, Words, WordsBuilder};

const MAGIC: [u8; 8] = [0x89, b'I', b'B', b'F', b'\r', b'\n', 0x1a, b'\n'];
const VERSION: u16 = 1;
const VERSION_AT: usize = MAGIC.len();
const KIND_AT: usize = VERSION_AT + 2;
const HASH_AT: usize = KIND_AT + 2;
const ENCODING_AT: usize = HASH_AT + 2;
const SEED_AT: usize = ENCODING_AT + 2;
const LEN_AT: usize = SEED_AT + 8;
const CAPACITY_AT: usize = LEN_AT + 8;
const PAYLOAD_AT: usize = CAPACITY_AT + 8;
const CHUNK_AT: usize = PAYLOAD_AT + 8;
const ZERO_AT: usize = CHUNK_AT + 8;
const PARAMS_AT: usize = ZERO_AT + 8;
const PARAMS: usize = 23;
const CHECKSUM_AT: usize = PARAMS_AT + 8 * PARAMS;
const HEADER_BYTES: usize = CHECKSUM_AT + 8;
const CHUNK_BYTES: usize = 64 * 1024;

const _: () = assert!(HEADER_BYTES == 256 && HEADER_BYTES.is_multiple_of(LINE_BYTES));

/// What the header says of a filter, whatever its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// The kind of filter.
    pub kind: Kind,
    /// The function its keys were hashed with.
    pub hash_fn: HashFn,
    /// Keys counted.
    pub len: u64,
    /// Keys planned for.
    pub capacity: u64,
    /// Bytes of the payload.
    pub payload_bytes: u64,
    pub(crate) params: [u64; PARAMS],
}

/// A filter taken apart for writing: its header and the arrays that follow each other in the payload.
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

    pub(crate) fn params(mut self, params: &[u64]) -> Self {
        self.header = self.header.with_params(params);
        self
    }

    /// Appends an array of whole lines to the payload.
    pub(crate) fn section(self, words: &'a [u64]) -> Self {
        self.push(Cow::Borrowed(words))
    }

    /// Appends an array of whole lines that was made up for the file.
    pub(crate) fn owned_section(self, words: Vec<u64>) -> Self {
        self.push(Cow::Owned(words))
    }

    fn push(mut self, words: Cow<'a, [u64]>) -> Self {
        debug_assert!((words.len() * 8).is_multiple_of(LINE_BYTES));
        self.header.payload_bytes += words.len() as u64 * 8;
        self.sections.push(words);
        self
    }
}

/// What was read from a file: the header, and the whole payload as one array.
#[doc(hidden)]
pub struct Parts {
    pub(crate) header: Header,
    pub(crate) words: Words,
}

impl Header {
    /// A header without parameters, of an empty payload.
    pub(crate) fn new(kind: Kind, hash_fn: HashFn, len: u64, capacity: u64) -> Self {
        Self { kind, hash_fn, len, capacity, payload_bytes: 0, params: [0; PARAMS] }
    }

    pub(crate) fn with_params(mut self, params: &[u64]) -> Self {
        self.params[..params.len()].copy_from_slice(params);
        self
    }

    /// The first parameters.
    pub(crate) fn first_params<const N: usize>(&self) -> [u64; N] {
        std::array::from_fn(|i| self.params[i])
    }
}

impl Parts {
    /// The header, if it is that of this kind.
    pub(crate) fn expect_kind(&self, wanted: Kind) -> Result<&Header, DecodeError> {
        let found = self.header.kind;
        if found == wanted { Ok(&self.header) } else { Err(DecodeError::Kind { wanted, found }) }
    }

    /// Parameter `i` as a number that fits 32 bits.
    pub(crate) fn small(&self, i: usize, what: &'static str) -> Result<u32, DecodeError> {
        let value = self.header.params[i];
        u32::try_from(value).map_err(|_| DecodeError::Invalid { what, value })
    }

    /// The payload, which must have just the length that a filter of `bits` bits has.
    pub(crate) fn words_of(self, bits: u64) -> Result<Words, DecodeError> {
        let expected = bits.div_ceil(8 * LINE_BYTES as u64).saturating_mul(LINE_BYTES as u64);
        let found = self.words.size_in_bytes() as u64;
        if expected == found {
            Ok(self.words)
        } else {
            Err(DecodeError::Length { expected, found })
        }
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

    /// Writes the filter to a file: to a temporary name beside it, synced, then renamed, so that the file under
    /// the real name is the old one or the new one and never half of either.
    fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        let path = path.as_ref();
        save_image(&self.encode(), path)
            .map_err(|error| FileError::Io { path: path.to_owned(), error })
    }

    /// Reads a filter into memory. Every checksum is verified: a damaged file is an error, never an answer.
    fn load(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let file = open(path)?;
        let available = file.metadata().ok().filter(|m| m.is_file()).map(|m| m.len());
        read_parts(file, available)
            .and_then(|parts| Ok(Self::decode(parts)?))
            .map_err(|error| error.at(path))
    }

    /// Maps a file: the pages of the file are the filter, shared with whoever else maps it, and nothing is
    /// copied until the filter is changed. Every checksum is verified, which reads the file once.
    ///
    /// The file must not be changed or truncated while it is mapped. Ironbloom itself never does: it replaces.
    fn map(path: impl AsRef<Path>) -> Result<Self, FileError> {
        map_checked(path.as_ref(), Mapped::check)
    }

    /// As [`map`](Persist::map), but only the header is verified, so opening takes no time whatever the size.
    ///
    /// A payload damaged since it was written would then give wrong answers, "absent" among them: for files
    /// that [`verify`] has seen, or that this machine has just written.
    fn map_unverified(path: impl AsRef<Path>) -> Result<Self, FileError> {
        map_checked(path.as_ref(), |_| Ok(()))
    }

    /// Writes the bytes of a file to any writer.
    fn write_to(&self, out: impl Write) -> io::Result<()> {
        write_image(&self.encode(), out)
    }

    /// The bytes of a file.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes).expect("writing to a Vec cannot fail");
        bytes
    }

    /// A filter from the bytes of a file. Every checksum is verified.
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
    let mut file = open(path)?;
    read_header(&mut file).map(|(header, _)| header).map_err(|error| error.at(path))
}

/// What [`verify`] found.
#[derive(Debug)]
pub struct Verification {
    /// The header, which is whole.
    pub header: Header,
    /// Chunks looked at.
    pub chunks: u64,
    /// Every damaged part. Empty if the file is as it was written.
    pub damaged: Vec<DecodeError>,
}

/// Reads a whole file and names every damaged part. `Err` if not even the header can be believed.
pub fn verify(path: impl AsRef<Path>) -> Result<Verification, FileError> {
    let path = path.as_ref();
    let mapped = Mapped::open(path).map_err(|error| error.at(path))?;
    let damaged = mapped.damage();
    Ok(Verification {
        chunks: chunk_count(mapped.header.payload_bytes),
        header: mapped.header,
        damaged,
    })
}

/// The name under which [`Persist::save`] writes before it renames. A program that is interrupted may remove it.
pub fn temporary_path(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}

/// A refusal of the operating system, or of the bytes.
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

fn open(path: &Path) -> Result<File, FileError> {
    File::open(path).map_err(|error| FileError::Io { path: path.to_owned(), error })
}

fn chunk_count(payload_bytes: u64) -> u64 {
    payload_bytes.div_ceil(CHUNK_BYTES as u64)
}

/// Length of the file with this payload, or `None` if it exceeds 64 bits.
fn file_bytes(payload_bytes: u64) -> Option<u64> {
    let table = chunk_count(payload_bytes).checked_mul(8)?.checked_add(8)?;
    payload_bytes.checked_add(table)?.checked_add(HEADER_BYTES as u64)
}

// ---------------------------------------------------------------------------------------------- header

fn get16(bytes: &[u8; HEADER_BYTES], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn get64(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn hash_number(hash_fn: HashFn) -> u16 {
    match hash_fn {
        HashFn::Xxh3 { .. } => 1,
        HashFn::Xxh64 { .. } => 2,
        HashFn::External { .. } => 3,
    }
}

/// Follows from kind and hash today; a field of its own because typed keys will need it.
fn encoding_number(kind: Kind, hash_fn: HashFn) -> u16 {
    match (kind, hash_fn) {
        (Kind::Bitmap, _) => 2,
        (_, HashFn::External { .. }) => 0,
        _ => 1,
    }
}

fn encode_header(header: &Header) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
    put(0, &MAGIC);
    put(VERSION_AT, &VERSION.to_le_bytes());
    put(KIND_AT, &(header.kind as u16).to_le_bytes());
    put(HASH_AT, &hash_number(header.hash_fn).to_le_bytes());
    put(ENCODING_AT, &encoding_number(header.kind, header.hash_fn).to_le_bytes());
    put(SEED_AT, &header.hash_fn.seed().to_le_bytes());
    put(LEN_AT, &header.len.to_le_bytes());
    put(CAPACITY_AT, &header.capacity.to_le_bytes());
    put(PAYLOAD_AT, &header.payload_bytes.to_le_bytes());
    put(CHUNK_AT, &(CHUNK_BYTES as u64).to_le_bytes());
    for (i, param) in header.params.iter().enumerate() {
        put(PARAMS_AT + 8 * i, &param.to_le_bytes());
    }
    let checksum = xxh3_64(&bytes[..CHECKSUM_AT]);
    bytes[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn decode_header(bytes: &[u8; HEADER_BYTES]) -> Result<Header, DecodeError> {
    if bytes[..MAGIC.len()] != MAGIC {
        return Err(DecodeError::NotAFilter);
    }
    let version = get16(bytes, VERSION_AT);
    let whole = xxh3_64(&bytes[..CHECKSUM_AT]) == get64(bytes, CHECKSUM_AT);
    if !whole {
        return Err(DecodeError::Damaged { part: "header", offset: 0, len: HEADER_BYTES as u64 });
    }
    if version != VERSION {
        return Err(DecodeError::Version { found: version });
    }
    let invalid = |what, value: u16| DecodeError::Invalid { what, value: u64::from(value) };
    let kind = get16(bytes, KIND_AT);
    let kind = Kind::from_number(kind).ok_or(invalid("kind", kind))?;
    let seed = get64(bytes, SEED_AT);
    let hash_fn = match get16(bytes, HASH_AT) {
        1 => HashFn::Xxh3 { seed },
        2 => HashFn::Xxh64 { seed },
        3 => HashFn::External { id: seed },
        other => return Err(invalid("hash function", other)),
    };
    let encoding = get16(bytes, ENCODING_AT);
    if encoding != encoding_number(kind, hash_fn) {
        return Err(invalid("key encoding", encoding));
    }
    let chunk = get64(bytes, CHUNK_AT);
    if chunk != CHUNK_BYTES as u64 {
        return Err(DecodeError::Invalid { what: "chunk length", value: chunk });
    }
    let payload_bytes = get64(bytes, PAYLOAD_AT);
    if !payload_bytes.is_multiple_of(LINE_BYTES as u64) || file_bytes(payload_bytes).is_none() {
        return Err(DecodeError::Invalid { what: "payload length", value: payload_bytes });
    }
    Ok(Header {
        kind,
        hash_fn,
        len: get64(bytes, LEN_AT),
        capacity: get64(bytes, CAPACITY_AT),
        payload_bytes,
        params: std::array::from_fn(|i| get64(bytes, PARAMS_AT + 8 * i)),
    })
}

/// The header, and its checksum, which seeds that of the table.
fn read_header(input: &mut impl Read) -> Result<(Header, u64), ReadError> {
    let mut bytes = [0; HEADER_BYTES];
    let got = read_up_to(input, &mut bytes)?;
    if got < HEADER_BYTES {
        let magic = got.min(MAGIC.len());
        return Err(if got == 0 || bytes[..magic] != MAGIC[..magic] {
            DecodeError::NotAFilter
        } else {
            DecodeError::Length { expected: HEADER_BYTES as u64, found: got as u64 }
        }
        .into());
    }
    Ok((decode_header(&bytes)?, get64(&bytes, CHECKSUM_AT)))
}

// --------------------------------------------------------------------------------------------- writing

/// Cuts what is written into chunks and remembers their checksums.
struct ChunkWriter<W> {
    out: W,
    chunk: Vec<u8>,
    checksums: Vec<u8>,
}

impl<W: Write> ChunkWriter<W> {
    fn new(out: W) -> Self {
        Self { out, chunk: Vec::with_capacity(CHUNK_BYTES), checksums: Vec::new() }
    }

    fn write(&mut self, word: u64) -> io::Result<()> {
        self.chunk.extend_from_slice(&word.to_le_bytes());
        if self.chunk.len() == CHUNK_BYTES { self.finish_chunk() } else { Ok(()) }
    }

    fn finish_chunk(&mut self) -> io::Result<()> {
        let number = self.checksums.len() as u64 / 8;
        let checksum = xxh3_64_with_seed(&self.chunk, number);
        self.checksums.extend_from_slice(&checksum.to_le_bytes());
        self.out.write_all(&self.chunk)?;
        self.chunk.clear();
        Ok(())
    }

    fn finish(mut self, header_checksum: u64) -> io::Result<()> {
        if !self.chunk.is_empty() {
            self.finish_chunk()?;
        }
        let table = xxh3_64_with_seed(&self.checksums, header_checksum);
        self.out.write_all(&self.checksums)?;
        self.out.write_all(&table.to_le_bytes())?;
        self.out.flush()
    }
}

fn write_image(image: &Image<'_>, mut out: impl Write) -> io::Result<()> {
    let header = encode_header(&image.header);
    out.write_all(&header)?;
    let mut chunks = ChunkWriter::new(out);
    for section in &image.sections {
        for &word in section.iter() {
            chunks.write(word)?;
        }
    }
    chunks.finish(get64(&header, CHECKSUM_AT))
}

fn save_image(image: &Image<'_>, path: &Path) -> io::Result<()> {
    let existing = fs::metadata(path).ok();
    if existing.as_ref().is_some_and(|m| !m.is_file()) {
        // A pipe or a device is written to; renaming over it would replace it.
        return write_image(image, BufWriter::new(File::options().write(true).open(path)?));
    }
    // Behind a symbolic link it is the file that changes, not the link.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let temporary = temporary_path(&target);
    let written = write_synced(image, &temporary).and_then(|()| {
        if let Some(existing) = existing {
            fs::set_permissions(&temporary, existing.permissions())?;
        }
        fs::rename(&temporary, &target)
    });
    if let Err(error) = written {
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    sync_directory(&target)
}

fn write_synced(image: &Image<'_>, path: &Path) -> io::Result<()> {
    let file = File::create(path)?;
    write_image(image, BufWriter::new(&file))?;
    file.sync_all()
}

/// Makes the rename itself survive a power cut. A file system that cannot sync a directory is not an error.
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(directory) = File::open(parent) {
        let _ = directory.sync_all();
    }
    Ok(())
}

// --------------------------------------------------------------------------------------------- reading

/// Fills as much of `buffer` as there is input for.
fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match input.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// Reads and verifies a whole filter. `available` is the length of the input if it is known; otherwise memory
/// is taken only as bytes arrive, so that a header alone can never make us allocate.
fn read_parts(mut input: impl Read, available: Option<u64>) -> Result<Parts, ReadError> {
    let (header, header_checksum) = read_header(&mut input)?;
    let expected = file_bytes(header.payload_bytes).expect("checked with the header");
    let cut_short = |found| DecodeError::Length { expected, found };
    if let Some(found) = available.filter(|&found| found != expected) {
        return Err(cut_short(found).into());
    }
    let mut words = WordsBuilder::new(available.map_or(0, |_| header.payload_bytes))
        .map_err(DecodeError::from)?;
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut checksums = Vec::new();
    let mut offset = HEADER_BYTES as u64;
    let end = offset + header.payload_bytes;
    while offset < end {
        let want = (end - offset).min(CHUNK_BYTES as u64) as usize;
        let got = read_up_to(&mut input, &mut buffer[..want])?;
        if got < want {
            return Err(cut_short(offset + got as u64).into());
        }
        let checksum = xxh3_64_with_seed(&buffer[..want], checksums.len() as u64 / 8);
        checksums.extend_from_slice(&checksum.to_le_bytes());
        words.push(&buffer[..want]);
        offset += want as u64;
    }
    let mut table = vec![0; checksums.len() + 8 + 1];
    let got = read_up_to(&mut input, &mut table)?;
    if got != checksums.len() + 8 {
        return Err(cut_short(offset + got as u64).into());
    }
    table.truncate(got);
    match table_damage(&header, header_checksum, &checksums, &table).into_iter().next() {
        Some(damage) => Err(damage.into()),
        None => Ok(Parts { header, words: words.finish() }),
    }
}

/// Compares the table as stored with the checksums of the chunks as they are.
fn table_damage(
    header: &Header,
    header_checksum: u64,
    actual: &[u8],
    stored: &[u8],
) -> Vec<DecodeError> {
    let payload_bytes = header.payload_bytes;
    let (stored, seal) = stored.split_at(actual.len());
    let sealed = xxh3_64_with_seed(stored, header_checksum).to_le_bytes() == seal;
    let table = (!sealed).then(|| DecodeError::Damaged {
        part: "checksum table",
        offset: HEADER_BYTES as u64 + payload_bytes,
        len: actual.len() as u64 + 8,
    });
    let chunks = actual
        .chunks_exact(8)
        .zip(stored.chunks_exact(8))
        .enumerate()
        .filter(|(_, (actual, stored))| actual != stored)
        .map(|(i, _)| {
            let start = i as u64 * CHUNK_BYTES as u64;
            let len = (payload_bytes - start).min(CHUNK_BYTES as u64);
            DecodeError::Damaged { part: "payload", offset: HEADER_BYTES as u64 + start, len }
        });
    table.into_iter().chain(chunks).collect()
}

/// A mapped file whose header and length are right.
struct Mapped {
    map: Mapping,
    header: Header,
    header_checksum: u64,
}

impl Mapped {
    fn open(path: &Path) -> Result<Self, ReadError> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
        }
        if metadata.len() == 0 {
            return Err(DecodeError::NotAFilter.into());
        }
        let map = Mapping::open(&file)?;
        let (header, header_checksum) = read_header(&mut map.bytes())?;
        let expected = file_bytes(header.payload_bytes).expect("checked with the header");
        let found = map.bytes().len() as u64;
        if found != expected {
            return Err(DecodeError::Length { expected, found }.into());
        }
        Ok(Self { map, header, header_checksum })
    }

    /// Where the payload ends and the table begins. The length of the map has been checked.
    fn payload_end(&self) -> usize {
        HEADER_BYTES + self.header.payload_bytes as usize
    }

    fn damage(&self) -> Vec<DecodeError> {
        let (payload, table) =
            self.map.bytes()[HEADER_BYTES..].split_at(self.payload_end() - HEADER_BYTES);
        let mut checksums = Vec::new();
        for (i, chunk) in payload.chunks(CHUNK_BYTES).enumerate() {
            checksums.extend_from_slice(&xxh3_64_with_seed(chunk, i as u64).to_le_bytes());
        }
        table_damage(&self.header, self.header_checksum, &checksums, table)
    }

    fn check(&self) -> Result<(), DecodeError> {
        self.damage().into_iter().next().map_or(Ok(()), Err)
    }
}

fn map_checked<T: Persist>(
    path: &Path,
    check: impl Fn(&Mapped) -> Result<(), DecodeError>,
) -> Result<T, FileError> {
    if cfg!(target_endian = "big") {
        return T::load(path); // the file is little-endian, so its pages cannot be the filter
    }
    let parts = || -> Result<Parts, ReadError> {
        let mapped = Mapped::open(path)?;
        check(&mapped)?;
        let words = Words::mapped(&mapped.map, HEADER_BYTES, mapped.payload_end())
            .expect("maps are page-aligned and the header is whole lines");
        Ok(Parts { header: mapped.header, words })
    };
    parts().and_then(|parts| Ok(T::decode(parts)?)).map_err(|error| error.at(path))
}
