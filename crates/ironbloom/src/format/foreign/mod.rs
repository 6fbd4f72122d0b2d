//! Other programs' filters as bytes: one file per format, whose header is its specification.
//!
//! ```text
//! detect  which format?      read   bytes ──► AnyFilter      write   AnyFilter ──► bytes, or why not
//! ```
//!
//! A filter keeps the rule of its program when it is read ([`Foreign`]), so every answer is that program's, and saving
//! it as `.ibf` changes none. It can be written only in that program's format: bits cannot be rehashed.
//!
//! Bytes are never trusted. A length is compared with the bytes present before anything is allocated, and an error
//! gives the byte offset of the problem; damaged bytes never answer "absent".

pub(crate) mod bits_and_blooms;
mod bytes;
pub(crate) mod datasketches;
pub(crate) mod dcso;
pub(crate) mod ethereum;
pub(crate) mod guava;
mod java;
pub(crate) mod leveldb;
pub(crate) mod parquet;
mod redisbloom;
pub(crate) mod rocksdb;
pub(crate) mod spark;

use std::fmt;

use crate::hash::KeyForm;
use crate::kinds::{AnyFilter, Foreign, Rule};

/// The formats of other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Apache Spark's `BloomFilter`, both versions.
    Spark,
    /// Guava's `BloomFilter`.
    Guava,
    /// Apache DataSketches' Bloom filter.
    DataSketches,
    /// A Parquet split block filter: its header and its bits.
    Parquet,
    /// bits-and-blooms/bloom, in Go.
    BitsAndBlooms,
    /// DCSO/bloom, in Go.
    Dcso,
    /// Ethereum's logs bloom.
    Ethereum,
    /// RedisBloom's chunks, in one of our dumps.
    RedisBloom,
    /// The Bloom filter of a RocksDB table.
    RocksDb,
    /// The Bloom filter of a LevelDB block.
    LevelDb,
}

/// The operations and names of a format.
struct Entry {
    format: Format,
    name: &'static str,
    summary: &'static str,
    read: fn(&[u8]) -> Result<AnyFilter, ForeignError>,
    write: fn(&AnyFilter) -> Option<Vec<u8>>,
    /// Returns true if the bytes can be nothing else: the header is possible, and the length follows from it.
    is: fn(&[u8]) -> bool,
    /// The rule of new filters in this format; `None` if it is only read.
    new: Option<Rule>,
}

/// Lists a format whose filters are [`Foreign`], with its own module.
macro_rules! entry {
    ($format:ident, $module:ident, $name:literal, $summary:literal, $rule:expr) => {
        Entry {
            write: |filter| foreign(filter).and_then($module::write),
            new: Some($rule),
            ..entry!($format, $module, $name, $summary)
        }
    };
    // Only read.
    ($format:ident, $module:ident, $name:literal, $summary:literal) => {
        Entry {
            format: Format::$format,
            name: $name,
            summary: $summary,
            read: |bytes| $module::read(bytes).map(AnyFilter::Foreign),
            write: |_| None,
            is: $module::is,
            new: None,
        }
    };
}

/// The formats, in the order in which they are tried on bytes.
const ENTRIES: &[Entry] = &[
    entry!(
        Spark,
        spark,
        "spark",
        "Apache Spark BloomFilter, versions 1 and 2",
        Rule::Spark2 { seed: 0 }
    ),
    entry!(Guava, guava, "guava", "Guava BloomFilter", Rule::Guava64),
    entry!(
        DataSketches,
        datasketches,
        "datasketches",
        "Apache DataSketches Bloom filter",
        Rule::DataSketches { seed: 9001 }
    ),
    Entry {
        format: Format::Parquet,
        name: "parquet",
        summary: "split block filter of Parquet, header and bits",
        read: |bytes| parquet::read(bytes).map(AnyFilter::SplitBlock),
        write: parquet::write,
        is: parquet::is,
        new: None,
    },
    entry!(
        BitsAndBlooms,
        bits_and_blooms,
        "bits-and-blooms",
        "bits-and-blooms/bloom (Go)",
        Rule::BitsAndBlooms
    ),
    entry!(Dcso, dcso, "dcso", "DCSO/bloom (Go), version 1", Rule::Dcso),
    entry!(
        Ethereum,
        ethereum,
        "ethereum",
        "logs bloom of Ethereum, in hexadecimal digits",
        Rule::Ethereum
    ),
    Entry {
        format: Format::RedisBloom,
        name: "redisbloom",
        summary: "chunks of BF.SCANDUMP or CF.SCANDUMP, in an .ibd file",
        read: |bytes| redisbloom::read(bytes).map(AnyFilter::RedisBloom),
        write: |filter| match filter {
            AnyFilter::RedisBloom(filter) => redisbloom::write(filter),
            _ => None,
        },
        is: redisbloom::is,
        new: None,
    },
    entry!(RocksDb, rocksdb, "rocksdb", "Bloom filter of a RocksDB table"),
    entry!(LevelDb, leveldb, "leveldb", "Bloom filter of a LevelDB block"),
];

fn foreign(filter: &AnyFilter) -> Option<&Foreign> {
    match filter {
        AnyFilter::Foreign(filter) => Some(filter),
        _ => None,
    }
}

impl Format {
    /// All formats.
    pub fn all() -> impl Iterator<Item = Self> {
        ENTRIES.iter().map(|entry| entry.format)
    }

    fn entry(self) -> &'static Entry {
        ENTRIES.iter().find(|entry| entry.format == self).expect("every format has an entry")
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// Names its program in a few words.
    pub fn summary(self) -> &'static str {
        self.entry().summary
    }

    /// Returns the format with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|format| format.name() == name)
    }

    /// The rule of new filters in this format; `None` if it is only read, or needs no rule.
    pub fn rule(self) -> Option<Rule> {
        self.entry().new
    }

    /// Detects the format of these bytes, if they reveal it.
    pub fn detect(bytes: &[u8]) -> Option<Self> {
        ENTRIES.iter().find(|entry| (entry.is)(bytes)).map(|entry| entry.format)
    }

    /// Returns the format in which a filter can be written, if another program has one for it.
    pub fn of(filter: &AnyFilter) -> Option<Self> {
        Self::all().find(|&format| format.holds(filter))
    }

    /// Returns true if a filter can be written in this format.
    pub fn holds(self, filter: &AnyFilter) -> bool {
        (self.entry().write)(filter).is_some()
    }

    /// Reads a filter.
    pub fn read(self, bytes: &[u8]) -> Result<AnyFilter, ForeignError> {
        (self.entry().read)(bytes)
    }

    /// Writes a filter in this format, or returns the reason why that is impossible.
    pub fn write(self, filter: &AnyFilter) -> Result<Vec<u8>, CannotHold> {
        (self.entry().write)(filter).ok_or_else(|| CannotHold::new(self, filter))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Bits and probes as a program chooses them.
pub(crate) fn size(rule: Rule, capacity: u64, rate: f64) -> (u64, u32) {
    let (bits, probes) = match rule {
        Rule::Spark1 | Rule::Spark2 { .. } => spark::size(capacity, rate),
        Rule::Guava32 | Rule::Guava64 => guava::size(capacity, rate),
        Rule::DataSketches { .. } => datasketches::size(capacity, rate),
        Rule::BitsAndBlooms => bits_and_blooms::size(capacity, rate),
        Rule::Dcso | Rule::LevelDb | Rule::RocksDb => dcso::size(capacity, rate),
        Rule::Ethereum => (ethereum::BITS, ethereum::PROBES),
    };
    (bits.next_multiple_of(rule.unit()), probes)
}

/// Bytes that are not a filter of the expected format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignError {
    /// The format.
    pub format: Format,
    /// Byte offset of the problem.
    pub offset: u64,
    /// The problem.
    pub problem: Problem,
}

/// A problem with the bytes of a foreign filter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// They end too early.
    CutShort {
        /// Number of missing bytes.
        missing: u64,
    },
    /// There are bytes after the end.
    Trailing {
        /// Number of bytes.
        bytes: u64,
    },
    /// A field has an impossible value.
    Field {
        /// The field.
        what: &'static str,
        /// Its value.
        value: u64,
    },
    /// There is not enough memory.
    Memory {
        /// Bytes needed.
        bytes: u64,
    },
}

impl fmt::Display for ForeignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { format, offset, ref problem } = *self;
        write!(f, "not a whole {format} filter: byte {offset}: ")?;
        match problem {
            Problem::CutShort { missing: 1 } => write!(f, "cut short, 1 byte is missing"),
            Problem::CutShort { missing } => write!(f, "cut short, {missing} bytes are missing"),
            Problem::Trailing { bytes: 1 } => write!(f, "1 byte after the end"),
            Problem::Trailing { bytes } => write!(f, "{bytes} bytes after the end"),
            Problem::Field { what, value } => write!(f, "invalid {what}: {value}"),
            Problem::Memory { bytes } => write!(f, "cannot allocate {bytes} bytes of memory"),
        }
    }
}

impl std::error::Error for ForeignError {}

/// A filter that a format cannot hold, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CannotHold {
    /// The format.
    pub format: Format,
    /// Description of the filter.
    pub found: String,
    /// True if the format is the filter's, but is only read.
    pub only_read: bool,
}

impl CannotHold {
    fn new(format: Format, filter: &AnyFilter) -> Self {
        use crate::kinds::Filter as _;
        match filter {
            AnyFilter::Foreign(filter) => {
                let found = filter.rule().name().to_owned();
                Self { format, only_read: filter.rule().format() == Some(format), found }
            }
            other => {
                let found = format!("{} with {}", other.kind(), other.hash_fn());
                Self { format, found, only_read: false }
            }
        }
    }
}

impl fmt::Display for CannotHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { format, found, only_read } = self;
        if *only_read {
            return write!(f, "filters of {found} are only read, not written");
        }
        write!(
            f,
            "a {format} file cannot hold this filter ({found}): it hashes keys in another way, and bits cannot be hashed again"
        )
    }
}

impl std::error::Error for CannotHold {}

impl Rule {
    /// The format of its files.
    pub fn format(self) -> Option<Format> {
        match self {
            Self::Spark1 | Self::Spark2 { .. } => Some(Format::Spark),
            Self::Guava32 | Self::Guava64 => Some(Format::Guava),
            Self::DataSketches { .. } => Some(Format::DataSketches),
            Self::BitsAndBlooms => Some(Format::BitsAndBlooms),
            Self::Dcso => Some(Format::Dcso),
            Self::LevelDb => Some(Format::LevelDb),
            Self::RocksDb => Some(Format::RocksDb),
            Self::Ethereum => Some(Format::Ethereum),
        }
    }
}

/// Returns the filter with the key form given by the user. `None` keeps that of the file.
pub fn with_form(
    filter: AnyFilter,
    form: Option<KeyForm>,
) -> Result<AnyFilter, crate::error::Mismatch> {
    match (filter, form) {
        (AnyFilter::Foreign(filter), Some(form)) => Ok(AnyFilter::Foreign(filter.with_form(form)?)),
        (filter @ AnyFilter::RedisBloom(_), Some(form)) if form != KeyForm::Text => {
            drop(filter);
            Err(crate::error::Mismatch {
                what: "form of the keys",
                left: KeyForm::Text.name().to_owned(),
                right: form.name().to_owned(),
            })
        }
        (filter, _) => Ok(filter),
    }
}
