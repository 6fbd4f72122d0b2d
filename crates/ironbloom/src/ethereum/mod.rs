//! Logs of an Ethereum chain: finds the blocks that may hold one.
//!
//! Every block header has a logs bloom: 2048 bits with the addresses and topics of its logs. To find logs, a client tests
//! the bloom of each header, 256 bytes of which it needs three bits per key. [`Index`] stores the blooms of many headers
//! transposed, so that a query reads only the bits it needs: three slices per key.
//!
//! ```
//! use ironbloom::ethereum::{Index, IndexWriter, LogQuery, LogsBloom};
//! use std::io::Cursor;
//!
//! let address = [7; 20];
//! let mut writer = IndexWriter::new(Vec::new())?;
//! for number in 0..100u64 {
//!     let mut bloom = LogsBloom::default();
//!     if number % 40 == 0 {
//!         bloom.insert(&address);
//!     }
//!     writer.push(number, &bloom)?;
//! }
//! let index = Index::open(Cursor::new(writer.finish()?))?;
//! let query = LogQuery::default().any_of([&address]);          // and … .any_of(topics), by position
//! assert_eq!(index.find(&query, 0..=u64::MAX)?, [0, 40, 80]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod index;
mod read_at;
mod transpose;
mod write;

pub use index::{Index, IndexError};
pub use read_at::ReadAt;
pub use write::{IndexWriter, MAGIC, OutOfOrder};

use crate::format::foreign::ethereum::{BITS, BYTES, Pairs, bytes_of};
use crate::kinds::foreign::Probing as _;

/// The logs bloom of a block or receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogsBloom([u8; BYTES]);

impl Default for LogsBloom {
    fn default() -> Self {
        Self([0; BYTES])
    }
}

impl LogsBloom {
    /// Parses 256 bytes, or 512 hexadecimal digits with or without `0x`. `None` for anything else.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        bytes_of(bytes).map(Self)
    }

    /// The bytes, as in a header.
    pub fn bytes(&self) -> &[u8; BYTES] {
        &self.0
    }

    /// Adds an address or a topic.
    pub fn insert(&mut self, key: &[u8]) {
        for position in positions(key) {
            let (byte, mask) = place(position);
            self.0[byte] |= mask;
        }
    }

    /// Returns true if a log with this address or topic may be in the block.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.has(positions(key))
    }

    fn has(&self, positions: [u16; 3]) -> bool {
        positions.into_iter().all(|position| {
            let (byte, mask) = place(position);
            self.0[byte] & mask != 0
        })
    }

    /// Share of bits that are set.
    pub fn fill(&self) -> f64 {
        crate::memory::count_ones(&self.0) as f64 / BITS as f64
    }
}

fn positions(key: &[u8]) -> [u16; 3] {
    Pairs.hash(key)
}

/// Returns byte and mask of a bit; bits are counted from the end.
fn place(position: u16) -> (usize, u8) {
    (BYTES - 1 - usize::from(position / 8), 1 << (position % 8))
}

/// A query in the form of `eth_getLogs`: any of these addresses, and at each position any of these topics.
///
/// A bloom records neither the position of a topic nor whether address and topic were in one log; the logs of the
/// blocks found must be checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// Clauses that must all hold; one key of each suffices. Keys are given by their positions.
    clauses: Vec<Vec<[u16; 3]>>,
}

impl LogQuery {
    /// Adds the condition that one of these keys is present. Without keys, adds no condition.
    #[must_use]
    pub fn any_of<K: AsRef<[u8]>>(mut self, keys: impl IntoIterator<Item = K>) -> Self {
        let clause: Vec<_> = keys.into_iter().map(|key| positions(key.as_ref())).collect();
        if !clause.is_empty() {
            self.clauses.push(clause);
        }
        self
    }

    /// Returns true if a block with this bloom may hold such a log.
    pub fn matches(&self, bloom: &LogsBloom) -> bool {
        self.clauses.iter().all(|keys| keys.iter().any(|&key| bloom.has(key)))
    }
}
