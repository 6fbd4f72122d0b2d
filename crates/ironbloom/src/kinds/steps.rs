//! Batch lookups in filters that read many cache lines per key: in two steps.
//!
//! ```text
//! all hashes  ── the first three probes ──►  survivors  ── the other probes ──►  found
//! ```
//!
//! Each step prefetches only its own lines, and only the keys that survive the first take the second. One absent key in
//! eight does, so absent keys cost three or four lines instead of all.

use std::ops::Range;

use crate::kernel::{FIRST_PROBES, for_each_ahead};

/// Number of hashes per step: few enough to stay on the stack and in cache, many enough that the pause between steps
/// does not matter.
pub(crate) const BATCH: usize = 512;

/// The probes that a lookup makes first, all together, and the remaining ones. Except in the smallest filters the split
/// point is a constant, so the compiler knows how many come first.
#[inline(always)]
pub(crate) fn steps(probes: u32) -> [Range<u32>; 2] {
    if probes >= FIRST_PROBES {
        [0..FIRST_PROBES, FIRST_PROBES..probes]
    } else {
        [0..probes, probes..probes]
    }
}

/// Sets `found[i]` to whether all `probes` of `hashes[i]` find a one, according to `are_set`. `ask` prefetches the
/// lines of some probes; its result is passed to `are_set`, for positions that are expensive to compute.
#[inline(always)]
pub(crate) fn contains_in_steps<H: Copy + Default, Q: Copy>(
    hashes: &[H],
    found: &mut [bool],
    probes: u32,
    ask: impl Fn(H, Range<u32>) -> Q,
    are_set: impl Fn(H, Range<u32>, Q) -> bool,
) {
    let [first, second] = steps(probes);
    for (hashes, found) in hashes.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
        let mut survivors = Survivors::none();
        for_each_ahead(
            &mut survivors,
            hashes,
            |_, hash| ask(hash, first.clone()),
            |survivors, i, hash, asked| {
                survivors.keep_if(are_set(hash, first.clone(), asked), hash, i);
            },
        );
        found.fill(false);
        let Survivors { hashes, places, len } = &survivors;
        for_each_ahead(
            found,
            &hashes[..*len],
            |_, hash| ask(hash, second.clone()),
            |found, i, hash, asked| {
                found[usize::from(places[i])] = are_set(hash, second.clone(), asked);
            },
        );
    }
}

/// Keys that may still be present: their hashes, and their places in the batch.
struct Survivors<H> {
    hashes: [H; BATCH],
    places: [u16; BATCH],
    len: usize,
}

impl<H: Copy + Default> Survivors<H> {
    fn none() -> Self {
        Self { hashes: [H::default(); BATCH], places: [0; BATCH], len: 0 }
    }

    /// Keeps the i-th key if it passed. It is always written, and counted only if kept: no branch to mispredict.
    #[inline(always)]
    fn keep_if(&mut self, passed: bool, hash: H, i: usize) {
        self.hashes[self.len] = hash;
        self.places[self.len] = i as u16;
        self.len += usize::from(passed);
    }
}
