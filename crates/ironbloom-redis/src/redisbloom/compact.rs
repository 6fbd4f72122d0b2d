//! Moving fingerprints into older sub-filters, so that the newest can be dropped.
//!
//! ```text
//! for every slot of a sub-filter: is an empty slot at its places in some older one (oldest first)?  then move it there
//! newest sub-filter empty now?    drop it, and go on with the one before
//! ```
//!
//! The bucket a fingerprint is in, and the fingerprint, are all that is known of its key; they say its places in every
//! sub-filter with as many buckets or fewer, and the older ones never have more.

use super::cuckoo::{CuckooFilter, EMPTY, Places, SubFilter};

impl CuckooFilter {
    /// Moves what can be moved, from every sub-filter.
    pub fn compact(&mut self) {
        for i in (1..self.sub_filters.len()).rev() {
            self.empty_into_older(i);
        }
        self.removed = 0;
    }

    /// The same up to the first sub-filter that keeps something: older ones cannot be dropped then.
    pub(crate) fn compact_until_stuck(&mut self) {
        for i in (1..self.sub_filters.len()).rev() {
            if !self.empty_into_older(i) {
                break;
            }
        }
        self.removed = 0;
    }

    /// Moves what can be moved from sub-filter `i`, and drops it if that is all and it is the newest. False if
    /// something stays.
    fn empty_into_older(&mut self, i: usize) -> bool {
        let is_newest = i + 1 == self.sub_filters.len();
        let bucket_size = usize::from(self.shape().bucket_size());
        let (older, rest) = self.sub_filters.split_at_mut(i);
        let mut is_empty = true;
        for (place, bucket) in rest[0].slots_mut().chunks_mut(bucket_size).enumerate() {
            for slot in bucket.iter_mut().filter(|slot| **slot != EMPTY) {
                let places = Places::from_place(*slot, place as u64);
                if store(older, places) {
                    *slot = EMPTY;
                } else {
                    is_empty = false;
                }
            }
        }
        if is_empty && is_newest {
            self.sub_filters.pop();
        }
        is_empty
    }
}

/// Puts a fingerprint into the first of these tables that has an empty slot for it.
fn store(tables: &mut [SubFilter], places: Places) -> bool {
    for table in tables {
        if let Some(slot) = table.find(places, EMPTY) {
            table.slots_mut()[slot] = places.fingerprint;
            return true;
        }
    }
    false
}
