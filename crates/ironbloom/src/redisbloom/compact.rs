//! Moving fingerprints into older sub-filters, so that the newest can be dropped.
//!
//! ```text
//! for every slot of a sub-filter: is an empty slot at its places in some older one (oldest first)?  then move it there
//! newest sub-filter empty now?    drop it, and go on with the one before
//! ```
//!
//! Only the fingerprint of a key and its bucket are known. They determine its places in every sub-filter with as many
//! buckets or fewer, and older ones never have more.

use std::ops::Range;

use super::cuckoo::{CuckooFilter, EMPTY, Places, SubFilter};

impl CuckooFilter {
    /// Moves fingerprints from every sub-filter, as far as possible.
    pub fn compact(&mut self) {
        for i in (1..self.sub_filters.len()).rev() {
            self.compact_part(i, 0..u64::MAX);
        }
        self.removed = 0;
    }

    /// Like [`compact`](Self::compact), up to the first sub-filter that keeps a fingerprint: older ones cannot be
    /// dropped then.
    pub fn compact_until_stuck(&mut self) {
        for i in (1..self.sub_filters.len()).rev() {
            if !self.compact_part(i, 0..u64::MAX) {
                break;
            }
        }
        self.removed = 0;
    }

    /// Returns how often [`compact`](Self::compact) may have to offer a fingerprint to a sub-filter: once to each older one. A
    /// few bytes can have many sub-filters, and time goes with the square of their number.
    pub fn most_offers(&self) -> u64 {
        let offers = self.tables().zip(0u64..).map(|(slots, older)| slots.len() as u64 * older);
        offers.fold(0, u64::saturating_add)
    }

    /// Moves fingerprints from some buckets of sub-filter `i`, as far as possible. If these are the last buckets and
    /// nothing is left in the newest sub-filter, it is dropped. Returns false if a fingerprint stays.
    ///
    /// Anything may happen between two ranges: every fingerprint is at its old place or at its new one.
    pub fn compact_part(&mut self, i: usize, buckets: Range<u64>) -> bool {
        self.removed = 0;
        if i == 0 || i >= self.sub_filters.len() {
            return false;
        }
        let is_newest = i + 1 == self.sub_filters.len();
        let bucket_size = usize::from(self.shape().bucket_size());
        let (older, rest) = self.sub_filters.split_at_mut(i);
        let count = rest[0].buckets();
        let (first, end) = (buckets.start.min(count), buckets.end.min(count));
        for place in first..end {
            let start = place as usize * bucket_size;
            for slot in start..start + bucket_size {
                let fingerprint = rest[0].slots()[slot];
                if fingerprint != EMPTY && store(older, Places::from_place(fingerprint, place)) {
                    rest[0].clear(slot);
                }
            }
        }
        // Other buckets were done earlier, and keys may have arrived since.
        let is_empty = end == count && rest[0].is_clear();
        if is_empty && is_newest {
            self.sub_filters.pop();
        }
        is_empty
    }
}

/// Puts a fingerprint into the first of these tables that has an empty slot for it.
fn store(tables: &mut [SubFilter], places: Places) -> bool {
    for table in tables.iter_mut().filter(|table| !table.is_full()) {
        if let Some(slot) = table.find(places, EMPTY) {
            table.put(slot, places.fingerprint);
            return true;
        }
    }
    false
}
