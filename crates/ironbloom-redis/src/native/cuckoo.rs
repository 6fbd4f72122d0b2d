//! The native filter of CF.*: cuckoo filters whose fingerprints are as wide as the rate requires.
//!
//! ```text
//! CF.RESERVE key n ERROR P EXPANSION 0     one filter for n keys at P
//! CF.RESERVE key n ERROR P                 parts of n keys each at P/16, added one by one, 16 at most
//!
//! insert: the newest part that has fewer keys than planned, and room;  else a new part
//! remove: the newest part that has the fingerprint at its places
//! ```
//!
//! All parts have the same shape, so a key has the same fingerprint and the same two buckets in each. Two keys that one
//! part confuses are therefore confused by all, and removing a key from the first part that seems to have it is as
//! good as from the right one: what stays in the other part answers for both. Parts of different sizes
//! would not have that property, and a removal could take away somebody else's key; so EXPANSION is 0 or 1 here.
//!
//! A key is wrongly found if any part finds it. P/16 each keeps P with all 16, for four bits a key.

use std::ops::Range;

use ironbloom::format::native::{Table, image_bytes, image_piece, prefer_huge_pages, table_start};
use ironbloom::memory::dense_at;
use ironbloom::{Cuckoo, CuckooParams, HashFn, KeyType, Kind};

use super::bloom::{PlanError, check_keys};
use super::error::NativeError;
use super::images::Images;
use super::{Imaged, Reading};
use crate::error::{CreateError, InsertError};
use crate::limits::MemoryLimit;
use crate::stats;

/// Maximum number of parts of a filter.
pub const MAX_PARTS: usize = 16;

/// A cuckoo filter of crate `ironbloom`, or several of the same shape.
#[derive(Clone, Debug, PartialEq)]
pub struct NativeCuckoo {
    /// At least one.
    parts: Vec<Cuckoo>,
    is_growing: bool,
    removed: u64,
}

impl NativeCuckoo {
    /// An empty filter for `capacity` keys at `rate`, or one that starts so and grows.
    pub fn new(
        capacity: u64,
        rate: f64,
        is_growing: bool,
        hash_fn: HashFn,
        limit: MemoryLimit,
    ) -> Result<Self, PlanError> {
        let rate = if is_growing { rate / MAX_PARTS as f64 } else { rate };
        let params = CuckooParams::for_rate(capacity, rate)?;
        limit.check(0, params.bits() / 8)?;
        let first = Cuckoo::new(params, hash_fn)?;
        Ok(Self { parts: vec![first], is_growing, removed: 0 })
    }

    /// The function that keys are hashed with, which is never an external one.
    pub fn hash_fn(&self) -> HashFn {
        self.parts[0].hash_fn()
    }

    /// The shape of every part.
    pub fn params(&self) -> CuckooParams {
        self.parts[0].params()
    }

    /// Inserts a key, once more if it is already there.
    pub fn insert(
        &mut self,
        hash: u64,
        limit: impl Fn() -> MemoryLimit,
    ) -> Result<(), InsertError> {
        let params = self.params();
        let capacity = params.capacity();
        for part in self.parts.iter_mut().rev().filter(|part| part.len() < capacity) {
            part.note_keys(KeyType::Bytes.into());
            if part.insert_hash_again(hash).is_ok() {
                if part.len() == dense_at(params.bits() / 8, 1) {
                    prefer_huge_pages(part);
                }
                return Ok(());
            }
        }
        if !self.is_growing || self.parts.len() >= MAX_PARTS {
            return Err(InsertError::Full);
        }
        let more = self.params().bits() / 8;
        limit().check(self.array_bytes(), more).map_err(InsertError::Growth)?;
        let memory = InsertError::Growth(CreateError::Memory { bytes: more });
        let mut part = Cuckoo::new(self.params(), self.hash_fn()).map_err(|_| memory)?;
        part.note_keys(KeyType::Bytes.into());
        part.insert_hash_again(hash).map_err(|_| InsertError::Full)?;
        self.parts.push(part);
        stats::GROWTHS.add(1);
        Ok(())
    }

    /// Prefetches where a key would be inserted: in the newest part that has fewer keys than planned.
    pub fn touch(&self, hash: u64) {
        let capacity = self.params().capacity();
        if let Some(part) = self.parts.iter().rev().find(|part| part.len() < capacity) {
            part.prefetch_hash(hash);
        }
    }

    /// Inserts a key unless it might be here already. True if it was new.
    pub fn insert_new(
        &mut self,
        hash: u64,
        limit: impl Fn() -> MemoryLimit,
    ) -> Result<bool, InsertError> {
        if self.contains(hash) {
            return Ok(false);
        }
        self.insert(hash, limit).map(|()| true)
    }

    /// Whether a key might be here.
    pub fn contains(&self, hash: u64) -> bool {
        self.parts.iter().rev().any(|part| part.contains_hash(hash))
    }

    /// `found[i]` tells whether `hashes[i]` might be here.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    pub fn contains_each(&self, hashes: &[u64], found: &mut [bool]) {
        assert_eq!(hashes.len(), found.len(), "hashes and answers of a batch");
        if let [only] = &self.parts[..] {
            return only.contains_hashes(hashes, found);
        }
        // The newest part first, each asked only for what those before it have not found.
        let mut asked = hashes.to_vec();
        let mut places: Vec<usize> = (0..hashes.len()).collect();
        let mut here = vec![false; hashes.len()];
        found.fill(true);
        for part in self.parts.iter().rev() {
            part.contains_hashes(&asked, &mut here[..asked.len()]);
            let absent = |i: &usize| !here[*i];
            let left: Vec<usize> = (0..asked.len()).filter(absent).collect();
            asked = left.iter().map(|&i| asked[i]).collect();
            places = left.iter().map(|&i| places[i]).collect();
            if asked.is_empty() {
                return;
            }
        }
        places.iter().for_each(|&place| found[place] = false);
    }

    /// How often a key might have been inserted.
    pub fn count(&self, hash: u64) -> u64 {
        self.parts.iter().map(|part| u64::from(part.count_hash(hash))).sum()
    }

    /// Removes a key once; false if it is not here.
    pub fn remove(&mut self, hash: u64) -> bool {
        let is_found = self.parts.iter_mut().rev().any(|part| part.remove_hash(hash));
        self.removed = self.removed.saturating_add(u64::from(is_found));
        is_found
    }

    /// Whether a tenth of the keys were removed since the last time, and moving the others together may drop a part. The
    /// count starts again then.
    pub fn is_due(&mut self) -> bool {
        let is_due = self.parts.len() > 1 && self.removed as f64 > self.len() as f64 * 0.10;
        if is_due {
            self.removed = 0;
        }
        is_due
    }

    /// Moves keys of some buckets of part `i` to older parts, and drops that part if it is the newest and empty.
    pub fn compact_part(&mut self, i: usize, buckets: Range<u64>) {
        self.removed = 0;
        if i == 0 || i >= self.parts.len() {
            return;
        }
        let is_newest = i + 1 == self.parts.len();
        let (older, rest) = self.parts.split_at_mut(i);
        // Each part is offered the keys in the order of their buckets, so many short ranges do the same as one long one.
        for part in older {
            rest[0].move_into(part, buckets.clone()).expect("all parts have one shape");
        }
        // A file may say that it has no keys and have some: only what is in the slots counts here.
        if is_newest && rest[0].is_empty() && rest[0].estimate_len() == 0.0 {
            self.parts.pop();
        }
    }

    /// Number of parts.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Whether it adds parts.
    pub fn is_growing(&self) -> bool {
        self.is_growing
    }

    /// Keys in it, each as often as it was inserted.
    pub fn len(&self) -> u64 {
        self.parts.iter().map(Cuckoo::len).fold(0, u64::saturating_add)
    }

    /// Whether no key is in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keys removed since the filter was last compacted.
    pub fn removed(&self) -> u64 {
        self.removed
    }

    /// The line of CF.DEBUG, in RedisBloom's form.
    pub fn debug_line(&self) -> String {
        let params = self.params();
        format!(
            "bktsize:4 buckets:{} items:{} deletes:{} filters:{} fingerprint_bits:{} expansion:{}",
            params.buckets(),
            self.len(),
            self.removed,
            self.parts.len(),
            params.fingerprint_bits(),
            u8::from(self.is_growing)
        )
    }
}

impl Imaged for NativeCuckoo {
    const NUMBERS: usize = 2;

    fn numbers(&self) -> Vec<u64> {
        vec![u64::from(self.is_growing), self.removed]
    }

    fn image_bytes(&self) -> u64 {
        self.parts.iter().map(image_bytes).sum()
    }

    fn image_piece<'t>(
        &self,
        mut offset: u64,
        most: usize,
        tables: &dyn Fn() -> &'t [Table],
    ) -> Vec<u8> {
        for (i, part) in self.parts.iter().enumerate() {
            let len = image_bytes(part);
            if offset < len {
                return image_piece(part, offset, most, || &tables()[i]);
            }
            offset -= len;
        }
        Vec::new()
    }

    fn needs_table(&self, mut offset: u64, most: usize) -> bool {
        for part in &self.parts {
            let len = image_bytes(part);
            if offset < len {
                return offset.saturating_add(most as u64) > table_start(part);
            }
            offset -= len;
        }
        false
    }

    fn read_image(
        &self,
        reading: &mut Reading,
        most_chunks: usize,
        visit: &mut dyn FnMut(&[u8]),
    ) -> bool {
        let Some(part) = self.parts.get(reading.tables.len()) else { return true };
        reading.read_on(part, most_chunks, visit) && reading.tables.len() == self.parts.len()
    }

    fn from_images(images: Images, numbers: &[u64]) -> Result<Self, NativeError> {
        let (is_growing, removed) = match *numbers {
            [] => (false, 0),
            [expansion @ 0..=1, removed] => (expansion == 1, removed),
            _ => return Err(NativeError::Number { what: "expansion" }),
        };
        let mut parts: Vec<Cuckoo> = Vec::new();
        for image in images.finish()? {
            let header = image.header();
            check_keys(header)?;
            if header.kind != Kind::Cuckoo {
                return Err(NativeError::Kind { found: header.kind });
            }
            let part: Cuckoo = image.finish()?;
            if let Some(first) = parts.first()
                && (first.params() != part.params() || first.hash_fn() != part.hash_fn())
            {
                return Err(NativeError::Shapes);
            }
            parts.push(part);
        }
        let is_possible = (1..=if is_growing { MAX_PARTS } else { 1 }).contains(&parts.len());
        if !is_possible {
            return Err(NativeError::Number { what: "number of filters" });
        }
        Ok(Self { parts, is_growing, removed })
    }

    fn array_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.size_in_bytes() as u64).sum()
    }
}
