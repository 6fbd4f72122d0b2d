//! The fingerprints whose four buckets were full.
//!
//! ```text
//! line    | bucket | cell | bucket | cell | bucket | cell | bucket | cell |       a word each; zeros: free
//! ```
//!
//! Whole cache lines, as many as needed and none at first, as in the file.

use super::fingerprint::{DLeftParams, Fingerprint};
use super::{COUNTER_BITS, STUCK};
use crate::error::DecodeError;
use crate::kernel::LINE_WORDS;

/// A few fingerprints, searched one by one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Stash(Vec<u64>);

impl Stash {
    const MAX_ENTRIES: u64 = 64;
    const ENTRY_WORDS: usize = 2;
    pub(super) const MAX_LINES: u64 = Self::MAX_ENTRIES / (LINE_WORDS / Self::ENTRY_WORDS) as u64;

    /// The words as stored in the file.
    pub(super) fn words(&self) -> &[u64] {
        &self.0
    }

    pub(super) fn lines(&self) -> u64 {
        (self.0.len() / LINE_WORDS) as u64
    }

    pub(super) fn cell(&self, entry: usize) -> u64 {
        self.0[entry * Self::ENTRY_WORDS + 1]
    }

    /// Changes an entry; a cell of 0 frees it.
    pub(super) fn set_cell(&mut self, entry: usize, cell: u64) {
        let at = entry * Self::ENTRY_WORDS;
        self.0[at + 1] = cell;
        if cell == 0 {
            self.0[at] = 0;
            let used = self.0.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1);
            self.0.truncate(used.next_multiple_of(LINE_WORDS));
        }
    }

    #[inline]
    pub(super) fn find(&self, wanted: Fingerprint) -> Option<usize> {
        self.0.chunks_exact(Self::ENTRY_WORDS).position(|entry| {
            let kept = Fingerprint { bucket: entry[0], remainder: entry[1] >> COUNTER_BITS };
            entry[1] & STUCK != 0 && kept == wanted
        })
    }

    /// Inserts a fingerprint; false if there is no room.
    pub(super) fn insert(&mut self, fingerprint: Fingerprint, count: u64) -> bool {
        let mut entries = self.0.chunks_exact(Self::ENTRY_WORDS);
        let at = match entries.position(|entry| entry[1] == 0) {
            Some(entry) => entry * Self::ENTRY_WORDS,
            None if self.lines() < Self::MAX_LINES => {
                let end = self.0.len();
                self.0.resize(end + LINE_WORDS, 0);
                end
            }
            None => return false,
        };
        self.0[at] = fingerprint.bucket;
        self.0[at + 1] = fingerprint.remainder << COUNTER_BITS | count;
        true
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (Fingerprint, u64)> {
        let used = self.0.chunks_exact(Self::ENTRY_WORDS).filter(|entry| entry[1] != 0);
        used.map(|entry| {
            let remainder = entry[1] >> COUNTER_BITS;
            (Fingerprint { bucket: entry[0], remainder }, entry[1] & STUCK)
        })
    }

    /// Reads the stash from a file; every entry is checked.
    pub(super) fn decode(words: &[u64], params: &DLeftParams) -> Result<Self, DecodeError> {
        for entry in words.chunks_exact(Self::ENTRY_WORDS) {
            let [bucket, cell] = [entry[0], entry[1]];
            if bucket >= params.buckets || cell == 0 && bucket != 0 {
                return Err(DecodeError::Invalid { what: "bucket in the stash", value: bucket });
            }
            if cell >> params.width() != 0 || cell != 0 && cell & STUCK == 0 {
                return Err(DecodeError::Invalid { what: "cell in the stash", value: cell });
            }
        }
        Ok(Self(words.to_vec()))
    }
}
