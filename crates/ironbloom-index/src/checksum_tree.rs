//! The checksums of a section that is read in small pieces: each piece is verified when it is touched, and no other.
//!
//! ```text
//!  root, in the directory ──► │ checksums of the nodes below │                            one node of at most 4 KiB
//!                                  │                   │
//!                             │ checksums of … │  │ checksums of … │                      nodes of 512 checksums
//!                                  │
//!                             │ 4 KiB of words │  │ 4 KiB of words │  …                   the section itself
//! ```
//!
//! A node is 4 KiB of its level (the last one less); its checksum is the XXH3-64 of its bytes. The levels are stored one
//! after the other, the words first, then their checksums, and so on up to a level of one node, whose checksum is the
//! root. So a section of at most 4 KiB has no other level, and a piece of 150 MB is verified by reading 12 KiB.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use xxhash_rust::xxh3::xxh3_64;

use crate::file_bytes::FileBytes;
use crate::section::Fault;

/// Bytes of a node: what a disk reads at once anyway.
pub(crate) const NODE_BYTES: u64 = 4096;
const CHECKSUM_BYTES: u64 = 8;

/// Bytes of every level of a section of this length, the section first.
fn levels(bytes: u64) -> Vec<u64> {
    let mut levels = vec![bytes];
    let mut last = bytes;
    while last > NODE_BYTES {
        last = last.div_ceil(NODE_BYTES) * CHECKSUM_BYTES;
        levels.push(last);
    }
    levels
}

/// Bytes of a section of this length with its checksums. `None` if no file is that long.
pub(crate) fn stored_bytes(bytes: u64) -> Option<u64> {
    levels(bytes).into_iter().try_fold(0u64, u64::checked_add)
}

/// Makes the levels above a section, from its bytes in order.
#[derive(Default)]
pub(crate) struct TreeBuilder {
    /// Checksums of all nodes so far.
    checksums: Vec<u8>,
    /// That of the last node: the root if it is the only one.
    last: u64,
}

impl TreeBuilder {
    /// Takes the next bytes: whole nodes, except at the end.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        for node in bytes.chunks(NODE_BYTES as usize) {
            self.last = xxh3_64(node);
            self.checksums.extend_from_slice(&self.last.to_le_bytes());
        }
    }

    /// All levels above the section, and the root.
    pub(crate) fn finish(self) -> (Vec<u8>, u64) {
        match self.checksums.len() as u64 / CHECKSUM_BYTES {
            0 => (Vec::new(), xxh3_64(&[])),
            1 => (Vec::new(), self.last),
            _ => {
                let mut above = Self::default();
                above.update(&self.checksums);
                let (rest, root) = above.finish();
                ([self.checksums, rest].concat(), root)
            }
        }
    }
}

/// Reads nodes, verifies them, and keeps them.
#[derive(Debug)]
pub(crate) struct TreeReader {
    file: FileBytes,
    /// Where each level is in the file, the section first.
    levels: Vec<Range<u64>>,
    root: u64,
    held: Mutex<Held>,
}

/// Nodes that were read, by level and number.
type Held = HashMap<(usize, u64), Arc<[u8]>>;

impl TreeReader {
    /// Of a section that starts here and has this length without its checksums.
    pub(crate) fn new(file: FileBytes, start: u64, bytes: u64, root: u64) -> Self {
        let mut at = start;
        let place = |bytes| {
            let range = at..at + bytes;
            at = range.end;
            range
        };
        let levels = levels(bytes).into_iter().map(place).collect();
        Self { file, levels, root, held: Mutex::default() }
    }

    /// Bytes `range` of the section, which has them, as they were written.
    pub(crate) fn read(&self, range: Range<u64>) -> Result<Vec<u8>, Fault> {
        let mut bytes = Vec::with_capacity((range.end - range.start) as usize);
        if range.is_empty() {
            return Ok(bytes);
        }
        let nodes = range.start / NODE_BYTES..range.end.div_ceil(NODE_BYTES);
        self.prefetch([range.clone()])?;
        for number in nodes {
            let node = self.node(0, number)?;
            let first = number * NODE_BYTES;
            let from = range.start.saturating_sub(first);
            let to = (range.end - first).min(NODE_BYTES);
            bytes.extend_from_slice(&node[from as usize..to as usize]);
        }
        Ok(bytes)
    }

    /// Requests these bytes of the section, and the checksums that they are verified by, together, if the file is an object.
    pub(crate) fn prefetch(
        &self,
        ranges: impl IntoIterator<Item = Range<u64>>,
    ) -> Result<(), Fault> {
        if !self.file.is_object() {
            return Ok(());
        }
        let mut wanted = Vec::new();
        for range in ranges.into_iter().filter(|range| !range.is_empty()) {
            let mut nodes = range.start / NODE_BYTES..range.end.div_ceil(NODE_BYTES);
            for (level, place) in self.levels.iter().enumerate() {
                let held = self.held();
                let missing = nodes.clone().filter(|&number| !held.contains_key(&(level, number)));
                wanted.extend(missing.map(|number| {
                    let start = place.start + number * NODE_BYTES;
                    start..(start + NODE_BYTES).min(place.end)
                }));
                let per_node = NODE_BYTES / CHECKSUM_BYTES;
                nodes = nodes.start / per_node..nodes.end.div_ceil(per_node);
            }
        }
        self.file.prefetch(&wanted).map_err(Fault::Io)
    }

    /// Where all checksums are in the file.
    pub(crate) fn checksums(&self) -> Range<u64> {
        let end = |level: Option<&Range<u64>>| level.map_or(0, |level| level.end);
        end(self.levels.first())..end(self.levels.last())
    }

    /// Whether at least half of the section has been read.
    pub(crate) fn is_half_read(&self) -> bool {
        let nodes = (self.levels[0].end - self.levels[0].start).div_ceil(NODE_BYTES);
        2 * self.held().len() as u64 >= nodes
    }

    /// Whether the stored checksums are those that were written.
    pub(crate) fn verify_checksums(&self) -> Result<(), Fault> {
        let again = Self {
            file: self.file.clone(),
            levels: self.levels.clone(),
            root: self.root,
            held: Mutex::default(),
        };
        let Some(level) = self.levels.get(1) else { return Ok(()) };
        let nodes = (level.end - level.start).div_ceil(NODE_BYTES);
        (0..nodes).try_for_each(|number| again.node(1, number).map(drop))
    }

    /// Forgets all nodes.
    pub(crate) fn clear(&self) {
        *self.held() = Held::default();
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A node as it was written.
    fn node(&self, level: usize, number: u64) -> Result<Arc<[u8]>, Fault> {
        if let Some(node) = self.held().get(&(level, number)) {
            return Ok(Arc::clone(node));
        }
        let wanted = match level + 1 {
            above if above == self.levels.len() => self.root,
            above => {
                let place = number * CHECKSUM_BYTES;
                let node = self.node(above, place / NODE_BYTES)?;
                let at = (place % NODE_BYTES) as usize;
                u64::from_le_bytes(std::array::from_fn(|i| node[at + i]))
            }
        };
        let start = self.levels[level].start + number * NODE_BYTES;
        let range = start..(start + NODE_BYTES).min(self.levels[level].end);
        let node: Arc<[u8]> = match self.file.read(range.clone()) {
            Ok(bytes) => bytes.into(),
            Err(error) => return Err(Fault::at(error, range)),
        };
        if xxh3_64(&node) != wanted {
            return Err(Fault::Damaged(range));
        }
        self.held().insert((level, number), Arc::clone(&node));
        Ok(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironbloom_testing::TemporaryFile;

    /// A file with a section of this length after 64 other bytes, and its reader.
    fn file(len: usize) -> (TemporaryFile, Vec<u8>, TreeReader) {
        let bytes: Vec<u8> = (0..len).map(|i| (i * i / 7 % 251) as u8).collect();
        let mut builder = TreeBuilder::default();
        let (some, others) = bytes.split_at(len / 3 / NODE_BYTES as usize * NODE_BYTES as usize);
        builder.update(some);
        builder.update(others);
        let (tree, root) = builder.finish();
        assert_eq!(Some((len + tree.len()) as u64), stored_bytes(len as u64));
        let path = TemporaryFile::new("bytes");
        std::fs::write(&path, [&[7; 64], &bytes[..], &tree[..]].concat()).unwrap();
        let reader = TreeReader::new(FileBytes::open(path.path()).unwrap(), 64, len as u64, root);
        (path, bytes, reader)
    }

    #[test]
    fn every_range_is_what_was_written() {
        // No node, one, two, and three levels.
        for len in [0, 1, 4096, 4097, 8192, 100_000, 3_000_000] {
            let (_path, bytes, reader) = file(len);
            for (start, end) in [(0, 0), (0, 9), (0, len), (4000, 4200), (len / 2, len)] {
                let range = start.min(len)..end.min(len);
                let read = reader.read(range.start as u64..range.end as u64).unwrap();
                assert_eq!(read, bytes[range], "{len}");
            }
        }
    }

    #[test]
    fn damage_is_seen_where_it_is_and_nowhere_else() {
        let (path, bytes, _) = file(3_000_000);
        let whole = std::fs::read(&path).unwrap();
        // In the section; in a checksum of its node 600; in the last level.
        let at = [64 + 600 * 4096 + 5, 64 + 3_000_000 + 600 * 8, whole.len() - 8];
        for (at, refused) in at.into_iter().zip([1, 221, 733]) {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            let (_, root) = {
                let mut builder = TreeBuilder::default();
                builder.update(&bytes);
                builder.finish()
            };
            let reader =
                TreeReader::new(FileBytes::open(path.path()).unwrap(), 64, 3_000_000, root);
            let mut failed = 0;
            for node in 0..3_000_000u64.div_ceil(NODE_BYTES) {
                let range = node * NODE_BYTES..((node + 1) * NODE_BYTES).min(3_000_000);
                match reader.read(range.clone()) {
                    Ok(read) => {
                        assert_eq!(read, bytes[range.start as usize..range.end as usize]);
                    }
                    Err(_) => failed += 1,
                }
            }
            assert_eq!(failed, refused, "byte {at}");
        }
    }
}
