//! RedisBloom's cuckoo filter: one-byte fingerprints, in sub-filters that are added when there is no room.
//!
//! ```text
//! fingerprint F = hash mod 255 + 1            0 is an empty slot
//! places        hash, hash xor F·0x5bd1e995   each mod the number of buckets, which is a power of two
//!
//! sub-filter 0 [B buckets of b slots]   1 [B·e]   2 [B·e²]   …        e: expansion, a power of two; 0: never grow
//!
//! insert: an empty slot at one of the two places, the newest sub-filter first;
//!         else move fingerprints about in the newest;  else a new sub-filter
//! remove: the first slot with F, the newest sub-filter first
//! ```
//!
//! Since the numbers of buckets are powers of two, a place in a large sub-filter determines the places in a smaller
//! one: this is how fingerprints move to older sub-filters (`compact.rs`) without their keys.
//!
//! Moving starts at the first place and cycles through the slots: slot 0 of this bucket, slot 1 of the bucket its
//! fingerprint went to, and so on. It is deterministic, so a replica that sees the same commands has the same bytes. If
//! it fails after the allowed number of steps, the steps are undone.

use crate::kernel::prefer_huge_pages_to_fill;
use crate::memory::{dense_at, prefer_huge_pages, prefetch};

use super::error::{CreateError, DecodeError, InsertError};
use super::limits::{self, MemoryLimit};
use super::stats;

/// Spreads fingerprints over the second places. Multiplier of 32-bit MurmurHash2 (Appleby).
const SPREAD: u64 = 0x5bd1_e995;

/// A slot without a fingerprint.
pub(crate) const EMPTY: u8 = 0;

/// Bytes that RedisBloom counts for a filter and for a sub-filter besides the slots: the sizes of its structures.
const FILTER_BYTES: u64 = 40;
const SUB_FILTER_BYTES: u64 = 16;

/// Prefetch distance in keys, and the size up to which tables stay in the cache anyway.
const AHEAD: usize = 16;
const NEAR_BYTES: usize = 512 << 10;

/// Maximum number of slots in a sub-filter. RedisBloom counts them in 32 bits, and confuses slots beyond.
const MAX_SLOTS: u64 = u32::MAX as u64;

/// Maximum number of sub-filters: RedisBloom counts them in 16 bits, and so do files.
pub(crate) const MAX_SUB_FILTERS: u64 = u16::MAX as u64;

/// The validated shape of a [`CuckooFilter`]: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CuckooShape {
    buckets: u64,
    bucket_size: u16,
    max_iterations: u16,
    expansion: u16,
}

impl CuckooShape {
    /// Describes a filter that starts with about `capacity` slots. The expansion is rounded up to a power of two.
    pub fn new(
        capacity: u64,
        bucket_size: u16,
        max_iterations: u16,
        expansion: u16,
    ) -> Result<Self, CreateError> {
        if bucket_size == 0 || capacity / u64::from(bucket_size) > MAX_SLOTS {
            return Err(CreateError::Shape);
        }
        let buckets = (capacity / u64::from(bucket_size)).max(1).next_power_of_two();
        let expansion = match expansion {
            0 => 0,
            other => other.checked_next_power_of_two().ok_or(CreateError::Shape)?,
        };
        let shape = Self { buckets, bucket_size, max_iterations, expansion };
        shape.checked().map_err(|_| CreateError::Shape)
    }

    /// Creates a shape from the numbers of a dump or file.
    pub(crate) fn from_numbers(
        buckets: u64,
        bucket_size: u64,
        max_iterations: u64,
        expansion: u64,
    ) -> Result<Self, DecodeError> {
        fn short(number: u64, what: &'static str) -> Result<u16, DecodeError> {
            u16::try_from(number).map_err(|_| DecodeError::Field { what })
        }
        Self {
            buckets,
            bucket_size: short(bucket_size, "bucket size")?,
            max_iterations: short(max_iterations, "number of iterations")?,
            expansion: short(expansion, "expansion")?,
        }
        .checked()
    }

    fn checked(self) -> Result<Self, DecodeError> {
        DecodeError::unless(self.buckets.is_power_of_two(), "number of buckets")?;
        DecodeError::unless((1..=255).contains(&self.bucket_size), "bucket size")?;
        DecodeError::unless(self.max_iterations >= 1, "number of iterations")?;
        let is_expansion = self.expansion == 0 || self.expansion.is_power_of_two();
        DecodeError::unless(is_expansion && self.expansion <= 1 << 15, "expansion")?;
        DecodeError::unless(self.slots_of(0).is_some(), "number of buckets")?;
        Ok(self)
    }

    /// Buckets of the first sub-filter.
    pub fn buckets(&self) -> u64 {
        self.buckets
    }

    /// Slots per bucket.
    pub fn bucket_size(&self) -> u16 {
        self.bucket_size
    }

    /// Maximum number of fingerprints that an insert may move.
    pub fn max_iterations(&self) -> u16 {
        self.max_iterations
    }

    /// Factor between the sizes of successive sub-filters; 0 if there may be only one.
    pub fn expansion(&self) -> u16 {
        self.expansion
    }

    /// Buckets of sub-filter `i`, if possible.
    pub(crate) fn buckets_of(&self, i: usize) -> Option<u64> {
        let power = u64::from(self.expansion).checked_pow(u32::try_from(i).ok()?)?;
        self.buckets.checked_mul(power).filter(|&buckets| buckets > 0)
    }

    /// Slots of sub-filter `i`, if possible.
    pub(crate) fn slots_of(&self, i: usize) -> Option<u64> {
        let slots = self.buckets_of(i)?.checked_mul(u64::from(self.bucket_size))?;
        (slots <= MAX_SLOTS).then_some(slots)
    }
}

/// A fingerprint and its two possible places, before they are reduced to the size of a sub-filter.
#[derive(Clone, Copy)]
pub(crate) struct Places {
    pub(crate) fingerprint: u8,
    pub(crate) first: u64,
    pub(crate) second: u64,
}

impl Places {
    /// The places of no key.
    const NOWHERE: Self = Self { fingerprint: EMPTY, first: 0, second: 0 };

    #[inline]
    fn of(hash: u64) -> Self {
        Self::from_place((hash % 255) as u8 + 1, hash)
    }

    /// Computes the places of a fingerprint found at one of them.
    pub(crate) fn from_place(fingerprint: u8, place: u64) -> Self {
        Self { fingerprint, first: place, second: other_place(fingerprint, place) }
    }
}

fn other_place(fingerprint: u8, place: u64) -> u64 {
    place ^ u64::from(fingerprint).wrapping_mul(SPREAD)
}

/// One table of fingerprints.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SubFilter {
    bucket_size: usize,
    /// Number of buckets minus one.
    mask: u64,
    slots: Vec<u8>,
    /// Number of slots that are not empty, so that an empty table is recognised without a scan.
    occupied: u64,
    /// Occupancy at which huge pages are requested for the slots.
    dense_at: u64,
}

impl Clone for SubFilter {
    fn clone(&self) -> Self {
        Self { slots: limits::copy(&self.slots), ..*self }
    }
}

impl SubFilter {
    /// Creates a table of empty slots, with a power of two of buckets.
    fn empty(bucket_size: u16, slots: u64) -> Result<Self, CreateError> {
        Ok(Self::with_slots(bucket_size, limits::zeros(slots)?))
    }

    /// Creates a table of these slots, with a power of two of buckets. Scans all of them.
    pub(crate) fn from_slots(bucket_size: u16, slots: Vec<u8>) -> Self {
        prefer_huge_pages(&slots);
        let occupied = count_occupied(&slots);
        Self { occupied, ..Self::with_slots(bucket_size, slots) }
    }

    fn with_slots(bucket_size: u16, slots: Vec<u8>) -> Self {
        let bucket_size = usize::from(bucket_size);
        let buckets = slots.len() / bucket_size;
        debug_assert!(buckets.is_power_of_two() && buckets * bucket_size == slots.len());
        let dense_at = dense_at(slots.len() as u64, 1);
        Self { bucket_size, mask: buckets as u64 - 1, slots, occupied: 0, dense_at }
    }

    pub(crate) fn buckets(&self) -> u64 {
        self.mask + 1
    }

    pub(crate) fn slots(&self) -> &[u8] {
        &self.slots
    }

    /// Returns true if no slot is occupied.
    pub(crate) fn is_clear(&self) -> bool {
        self.occupied == 0
    }

    /// Returns true if every slot is occupied.
    pub(crate) fn is_full(&self) -> bool {
        self.occupied == self.slots.len() as u64
    }

    /// Puts a fingerprint into an empty slot.
    pub(crate) fn put(&mut self, slot: usize, fingerprint: u8) {
        debug_assert!(self.slots[slot] == EMPTY && fingerprint != EMPTY);
        self.slots[slot] = fingerprint;
        self.occupied += 1;
        if self.occupied == self.dense_at {
            prefer_huge_pages(&self.slots);
        }
    }

    /// Empties a slot.
    pub(crate) fn clear(&mut self, slot: usize) {
        debug_assert_ne!(self.slots[slot], EMPTY);
        self.slots[slot] = EMPTY;
        self.occupied -= 1;
    }

    /// Replaces existing slots from `start` on.
    pub(crate) fn overwrite(&mut self, start: usize, piece: &[u8]) {
        let range = start..start + piece.len();
        prefer_huge_pages_to_fill(&self.slots, range.clone());
        let place = &mut self.slots[range];
        self.occupied -= count_occupied(place);
        place.copy_from_slice(piece);
        self.occupied += count_occupied(place);
    }

    #[inline]
    fn start(&self, place: u64) -> usize {
        (place & self.mask) as usize * self.bucket_size
    }

    #[inline]
    fn bucket(&self, place: u64) -> &[u8] {
        let start = self.start(place);
        &self.slots[start..start + self.bucket_size]
    }

    /// Prefetches both buckets, unless the table is small enough to stay in the cache.
    fn touch(&self, places: Places) {
        if self.slots.len() > NEAR_BYTES {
            prefetch(&self.slots, self.start(places.first));
            prefetch(&self.slots, self.start(places.second));
        }
    }

    /// Finds the first slot at this place with this fingerprint.
    fn find_at(&self, place: u64, fingerprint: u8) -> Option<usize> {
        let within = self.bucket(place).iter().position(|&slot| slot == fingerprint)?;
        Some(self.start(place) + within)
    }

    /// Finds the first slot at either place with this fingerprint, or an empty one if it is [`EMPTY`].
    pub(crate) fn find(&self, places: Places, fingerprint: u8) -> Option<usize> {
        self.find_at(places.first, fingerprint).or_else(|| self.find_at(places.second, fingerprint))
    }

    /// Returns true if the fingerprint is at either place.
    #[inline]
    fn has(&self, places: Places) -> bool {
        match self.bucket_size {
            // The default, and the next powers of two: loops of known length are unrolled.
            2 => self.has_in::<2>(places),
            4 => self.has_in::<4>(places),
            8 => self.has_in::<8>(places),
            _ => self.find(places, places.fingerprint).is_some(),
        }
    }

    /// Compares all slots of both buckets: the position of a match is unpredictable, so a branch on it would be slow.
    #[inline]
    fn has_in<const SLOTS: usize>(&self, places: Places) -> bool {
        let (buckets, _) = self.slots.as_chunks::<SLOTS>();
        let bucket = |place: u64| &buckets[(place & self.mask) as usize];
        let (first, second) = (bucket(places.first), bucket(places.second));
        let is_it = |slot: u8| slot == places.fingerprint;
        first.iter().zip(second).fold(false, |found, (&one, &two)| found | is_it(one) | is_it(two))
    }

    /// Counts the slots at both places with the fingerprint. A bucket that is both places counts twice, as in
    /// RedisBloom.
    fn count(&self, places: Places) -> u64 {
        [places.first, places.second]
            .iter()
            .flat_map(|&place| self.bucket(place))
            .filter(|&&slot| slot == places.fingerprint)
            .count() as u64
    }

    /// Makes room by moving fingerprints. Returns false, with nothing changed, if that fails.
    fn insert_moving(&mut self, places: Places, max_iterations: u16) -> bool {
        let mut moved = places.fingerprint;
        let mut place = places.first & self.mask;
        let mut turn = 0;
        for _ in 0..max_iterations {
            let at = self.start(place) + turn;
            std::mem::swap(&mut self.slots[at], &mut moved);
            place = other_place(moved, place) & self.mask;
            if let Some(empty) = self.find_at(place, EMPTY) {
                self.put(empty, moved);
                return true;
            }
            turn = (turn + 1) % self.bucket_size;
        }
        for _ in 0..max_iterations {
            turn = (turn + self.bucket_size - 1) % self.bucket_size;
            place = other_place(moved, place) & self.mask;
            let at = self.start(place) + turn;
            std::mem::swap(&mut self.slots[at], &mut moved);
        }
        debug_assert_eq!(moved, places.fingerprint, "all steps were taken back");
        false
    }
}

/// Counts the slots that are not empty: in short runs, whose counts fit a byte, many at a time.
fn count_occupied(slots: &[u8]) -> u64 {
    let in_run = |run: &[u8]| run.iter().map(|&slot| u8::from(slot != EMPTY)).sum::<u8>();
    slots.chunks(255).map(|run| u64::from(in_run(run))).sum()
}

/// A cuckoo filter in RedisBloom's layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CuckooFilter {
    shape: CuckooShape,
    /// The sub-filters, at least one.
    pub(crate) sub_filters: Vec<SubFilter>,
    len: u64,
    pub(crate) removed: u64,
}

impl CuckooFilter {
    /// Creates an empty filter of this shape.
    pub fn new(shape: CuckooShape, limit: MemoryLimit) -> Result<Self, CreateError> {
        Self::with_sub_filters(shape, 1, limit)
    }

    /// Creates an empty filter with this many sub-filters.
    pub(crate) fn with_sub_filters(
        shape: CuckooShape,
        count: u64,
        limit: MemoryLimit,
    ) -> Result<Self, CreateError> {
        let mut filter = Self { shape, sub_filters: Vec::new(), len: 0, removed: 0 };
        let mut bytes = 0;
        for _ in 0..count {
            bytes += filter.add_sub_filter(bytes, limit)?;
        }
        Ok(filter)
    }

    /// Builds a filter from checked parts. The sub-filters have the sizes given by the shape. The numbers of keys are
    /// bookkeeping and not checked: a header announces them before the keys arrive.
    pub(crate) fn from_parts(
        shape: CuckooShape,
        sub_filters: Vec<SubFilter>,
        len: u64,
        removed: u64,
    ) -> Result<Self, DecodeError> {
        DecodeError::unless(!sub_filters.is_empty(), "number of sub-filters")?;
        Ok(Self { shape, sub_filters, len, removed })
    }

    fn grow(&mut self, limit: MemoryLimit) -> Result<(), CreateError> {
        self.add_sub_filter(self.slot_bytes(), limit).map(|_| ())
    }

    /// Adds a sub-filter to those that have `present` bytes; returns its size in bytes.
    fn add_sub_filter(&mut self, present: u64, limit: MemoryLimit) -> Result<u64, CreateError> {
        if self.sub_filters.len() as u64 >= MAX_SUB_FILTERS {
            return Err(CreateError::Shape);
        }
        let slots = self.shape.slots_of(self.sub_filters.len()).ok_or(CreateError::Shape)?;
        limit.check(present, slots)?;
        self.sub_filters.push(SubFilter::empty(self.shape.bucket_size, slots)?);
        Ok(slots)
    }

    /// Inserts a key, again if it is already present.
    pub fn insert(&mut self, hash: u64, limit: MemoryLimit) -> Result<(), InsertError> {
        self.insert_asking(hash, || limit)
    }

    /// Like [`insert`](Self::insert), with a limit that is evaluated only if the filter has to grow.
    pub fn insert_asking(
        &mut self,
        hash: u64,
        limit: impl FnOnce() -> MemoryLimit,
    ) -> Result<(), InsertError> {
        let places = Places::of(hash);
        if !self.insert_in_place(places) && !self.insert_moving(places) {
            if self.shape.expansion == 0 {
                return Err(InsertError::Full);
            }
            self.grow(limit()).map_err(InsertError::Growth)?;
            stats::GROWTHS.add(1);
            let found_room = self.insert_in_place(places);
            debug_assert!(found_room, "the new sub-filter is empty");
        }
        self.len = self.len.saturating_add(1);
        Ok(())
    }

    /// Inserts a key unless it might already be present. Returns true if it was new.
    pub fn insert_new(&mut self, hash: u64, limit: MemoryLimit) -> Result<bool, InsertError> {
        if self.contains(hash) {
            return Ok(false);
        }
        self.insert(hash, limit).map(|()| true)
    }

    fn insert_in_place(&mut self, places: Places) -> bool {
        self.sub_filters.iter_mut().rev().any(|table| match table.find(places, EMPTY) {
            Some(slot) => {
                table.put(slot, places.fingerprint);
                true
            }
            None => false,
        })
    }

    fn insert_moving(&mut self, places: Places) -> bool {
        let max_iterations = self.shape.max_iterations;
        let newest = self.sub_filters.last_mut().expect("a filter has a sub-filter");
        newest.insert_moving(places, max_iterations)
    }

    /// Returns true if a key might be present.
    pub fn contains(&self, hash: u64) -> bool {
        self.has(Places::of(hash))
    }

    #[inline]
    fn has(&self, places: Places) -> bool {
        self.sub_filters.iter().any(|table| table.has(places))
    }

    /// Sets `found[i]` to whether `hashes[i]` might be present. The buckets of later keys are prefetched while earlier
    /// ones are compared, in all sub-filters: an absent key is looked up in each.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    pub fn contains_each(&self, hashes: &[u64], found: &mut [bool]) {
        assert_eq!(hashes.len(), found.len(), "hashes and answers of a batch");
        let mut ring = [Places::NOWHERE; AHEAD];
        for (place, &hash) in ring.iter_mut().zip(hashes) {
            *place = self.touch_all(hash);
        }
        for (i, found) in found.iter_mut().enumerate() {
            *found = self.has(ring[i % AHEAD]);
            if let Some(&later) = hashes.get(i + AHEAD) {
                ring[i % AHEAD] = self.touch_all(later);
            }
        }
    }

    /// Prefetches both buckets of a key in the sub-filter that is tried first.
    pub fn touch(&self, hash: u64) {
        if let Some(newest) = self.sub_filters.last() {
            newest.touch(Places::of(hash));
        }
    }

    #[inline]
    fn touch_all(&self, hash: u64) -> Places {
        let places = Places::of(hash);
        self.sub_filters.iter().for_each(|table| table.touch(places));
        places
    }

    /// Returns how often a key might have been inserted.
    pub fn count(&self, hash: u64) -> u64 {
        let places = Places::of(hash);
        self.sub_filters.iter().map(|table| table.count(places)).sum()
    }

    /// Removes a key once; false if it is absent. When a tenth of the keys have been removed, the filter is compacted.
    pub fn remove(&mut self, hash: u64) -> bool {
        let is_found = self.take_out(hash);
        if is_found && self.is_due() {
            self.compact_until_stuck();
        }
        is_found
    }

    /// Returns true if a tenth of the keys have been removed since the last time, and compacting may drop a sub-filter.
    pub fn is_due(&self) -> bool {
        self.sub_filters.len() > 1 && self.removed as f64 > self.len as f64 * 0.10
    }

    /// Removes a key once; false if it is absent.
    pub fn take_out(&mut self, hash: u64) -> bool {
        let places = Places::of(hash);
        let is_found = self.sub_filters.iter_mut().rev().any(|table| {
            match table.find(places, places.fingerprint) {
                Some(slot) => {
                    table.clear(slot);
                    true
                }
                None => false,
            }
        });
        if is_found {
            // A forged header may announce fewer keys than there are.
            self.len = self.len.saturating_sub(1);
            self.removed = self.removed.saturating_add(1);
        }
        is_found
    }

    /// The arrays, for defragmentation. Their lengths must not change.
    pub fn arrays_to_move(&mut self) -> Vec<&mut Vec<u8>> {
        self.sub_filters.iter_mut().map(|table| &mut table.slots).collect()
    }

    /// The slots of each sub-filter, oldest first.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &[u8]> {
        self.sub_filters.iter().map(SubFilter::slots).inspect(|_| stats::visit())
    }

    /// Buckets of a sub-filter.
    ///
    /// # Panics
    ///
    /// If there is no such sub-filter.
    pub fn buckets_in(&self, sub_filter: usize) -> u64 {
        self.sub_filters[sub_filter].buckets()
    }

    /// Resets the count of removals, as after compacting.
    pub fn forget_removed(&mut self) {
        self.removed = 0;
    }

    /// Its shape.
    pub fn shape(&self) -> CuckooShape {
        self.shape
    }

    /// Number of sub-filters.
    pub fn sub_filters(&self) -> usize {
        self.sub_filters.len()
    }

    /// Number of keys, each counted as often as it was inserted.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns true if it holds no keys.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns true if there is nothing to dump: no key was counted, and no slot is in use. A header may announce fewer
    /// keys than arrive.
    pub fn is_blank(&self) -> bool {
        self.is_empty() && self.sub_filters.iter().all(SubFilter::is_clear)
    }

    /// Keys removed since the filter was last compacted.
    pub fn removed(&self) -> u64 {
        self.removed
    }

    /// Bytes of all slots.
    pub fn slot_bytes(&self) -> u64 {
        self.tables().map(|slots| slots.len() as u64).sum()
    }

    /// Bytes as RedisBloom counts them: 1080 for the default filter.
    pub fn size_in_bytes(&self) -> u64 {
        FILTER_BYTES + SUB_FILTER_BYTES * self.sub_filters.len() as u64 + self.slot_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files cannot represent one more, so an insert must not add it.
    #[test]
    fn no_filter_grows_beyond_the_sub_filters_that_files_can_tell() {
        let shape = CuckooShape::new(2, 1, 1, 1).unwrap();
        let full = SubFilter::from_slots(1, vec![9, 9]);
        let mut sub_filters = vec![full.clone(); MAX_SUB_FILTERS as usize - 1];
        let mut filter = CuckooFilter::from_parts(shape, sub_filters.clone(), 0, 0).unwrap();
        assert_eq!(filter.insert(7, MemoryLimit::NONE), Ok(()), "the last one");
        assert_eq!(filter.sub_filters() as u64, MAX_SUB_FILTERS);
        sub_filters.push(full);
        let mut filter = CuckooFilter::from_parts(shape, sub_filters, 0, 0).unwrap();
        let refused = InsertError::Growth(CreateError::Shape);
        assert_eq!(filter.insert(7, MemoryLimit::NONE), Err(refused));
        assert_eq!(filter.sub_filters() as u64, MAX_SUB_FILTERS);
    }
}
