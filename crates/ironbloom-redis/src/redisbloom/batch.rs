//! Many keys at once: lines of memory are asked for before they are needed.
//!
//! ```text
//! step one   the first probes of every key        most absent keys end here: half of the bits are set
//! step two   the others, of the keys that are left
//! ```
//!
//! A link of the size that pays for a filter is larger than the cache, and each probe of a key is a line of its own. One
//! after the other they would wait for memory each; asked for a few keys ahead they wait together. Answers are those of
//! one key after the other, and so is what an insert changes.

use super::chain::Chain;
use super::error::InsertError;
use super::link::Link;
use super::memory::MemoryLimit;
use super::murmur::BloomHash;

/// Most keys of a batch.
pub const BATCH: usize = 128;

/// Probes of the first step. Of absent keys, one in eight is left then.
const FIRST: u32 = 3;

/// Keys ahead for which lines are asked for, in step one and in step two.
const AHEAD: usize = 16;
const AHEAD_FULL: usize = 5;

/// Arrays up to this size are near anyway: to ask for their lines early is work without gain.
const NEAR_BYTES: u64 = 512 << 10;

impl Chain {
    /// `found[i]` tells whether `hashes[i]` might be here. [`BATCH`] hashes at most.
    pub fn contains_each(&self, hashes: &[BloomHash], found: &mut [bool]) {
        assert!(hashes.len() <= BATCH && hashes.len() == found.len());
        let mut places = [0u8; BATCH];
        places.iter_mut().enumerate().for_each(|(i, place)| *place = i as u8);
        let mut asked = hashes.len();
        found.fill(true);
        for link in self.links().iter().rev() {
            asked = keep_absent(link, hashes, &mut places, asked);
        }
        places[..asked].iter().for_each(|&place| found[usize::from(place)] = false);
    }

    /// Inserts hashes in their order; `new[i]` tells whether `hashes[i]` was new. Stops at the first that is refused: how
    /// many came before it, and why. The limit is asked only if the filter has to grow.
    pub fn insert_each(
        &mut self,
        hashes: &[BloomHash],
        new: &mut [bool],
        limit: impl Fn() -> MemoryLimit,
    ) -> Result<(), (usize, InsertError)> {
        self.contains_each(hashes, new);
        // Only the last link changes, and those that are added.
        let changing = self.links().len() - 1;
        let is_far = self.links()[changing].shape().bytes() > NEAR_BYTES;
        for i in 0..hashes.len() {
            if is_far && let Some(later) = (i + AHEAD_FULL < hashes.len()).then(|| i + AHEAD_FULL) {
                self.touch_absent(hashes, new, later);
            }
            new[i] = !new[i]
                && !self.links()[changing..].iter().any(|link| link.contains(hashes[i]))
                && self
                    .insert_absent(hashes[i], &limit)
                    .map(|()| true)
                    .map_err(|error| (i, error))?;
        }
        Ok(())
    }

    fn touch_absent(&self, hashes: &[BloomHash], found: &[bool], i: usize) {
        if !found[i] {
            let last = self.last();
            last.touch(hashes[i], 0..last.shape().probes);
        }
    }
}

/// Keeps those of the first `asked` places whose hashes are not in a link. How many these are.
fn keep_absent(link: &Link, hashes: &[BloomHash], places: &mut [u8; BATCH], asked: usize) -> usize {
    let probes = link.shape().probes;
    let is_far = link.shape().bytes() > NEAR_BYTES;
    let first = FIRST.min(probes);
    let hash_at = |place: u8| hashes[usize::from(place)];
    let mut left = [0u8; BATCH];
    let (mut kept, mut count) = (0, 0);
    if is_far {
        places[..asked.min(AHEAD)].iter().for_each(|&place| link.touch(hash_at(place), 0..first));
    }
    for i in 0..asked {
        if is_far && i + AHEAD < asked {
            link.touch(hash_at(places[i + AHEAD]), 0..first);
        }
        let place = places[i];
        let may_be = link.are_set(hash_at(place), 0..first);
        // Written always and counted if it stays: no branch to mispredict.
        left[count] = place;
        count += usize::from(may_be);
        places[kept] = place;
        kept += usize::from(!may_be);
    }
    if is_far {
        let ahead = &left[..count.min(AHEAD_FULL)];
        ahead.iter().for_each(|&place| link.touch(hash_at(place), first..probes));
    }
    for i in 0..count {
        if is_far && i + AHEAD_FULL < count {
            link.touch(hash_at(left[i + AHEAD_FULL]), first..probes);
        }
        if !link.are_set(hash_at(left[i]), first..probes) {
            places[kept] = left[i];
            kept += 1;
        }
    }
    kept
}
