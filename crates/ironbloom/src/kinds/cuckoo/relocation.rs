//! Making room in two full buckets: fingerprints move to their alternate buckets until one finds an empty slot.
//!
//! ```text
//! new F ──► bucket i   [ A | B | C | D ]          first the eight buckets that A, B, … could move to,
//!      └──► bucket j   [ G | H | I | J ]          then the 32 that *their* fingerprints could move to, and so on
//!                            │
//!                            └──► [ K | L | M | N ]
//!                                       │
//!                                       └──► [ O | P | · | Q ]        found: L moves here, then H to L's place,
//!                                                                     then F to H's
//! ```
//!
//! The paper evicts fingerprints at random until one fits. A breadth-first search moves nothing until it knows a path,
//! so there is nothing to undo; it moves the fewest fingerprints; and its bucket reads do not depend on each other, as
//! those of a random walk do. 10^6 keys at 1 %, filled to 94.6 %, AMD EPYC Zen 3, 2026-11-15, per insert:
//!
//! ```text
//! load              0 to .7   .8     .85    .9     .92    .94    .946   all
//! both full         .001      .096   .235   .381   .523   .617   .678   .074      of these inserts
//! no single move    0         .0002  .007   .048   .154   .281   .401   .015
//! ```
//!
//! An insert takes 22 ns on average in a batch, 12 up to a load of .57; with the random walk it took 80.

use super::bucket::{Buckets, EMPTY};
use super::placement::{Place, Places};

/// Number of full buckets searched before an insert fails.
const MAX_BUCKETS: usize = 500;

/// A fingerprint that would enter a bucket once another there has made room for it.
#[derive(Clone, Copy)]
struct Move {
    bucket: u64,
    fingerprint: u32,
    /// The queue index of the move that evicts this fingerprint from its old bucket; [`FIRST`] for the new one.
    because_of: u32,
}

const FIRST: u32 = u32::MAX;

/// Stores a fingerprint in one of its two buckets, both full. Returns false, changing nothing, if there is no path.
///
/// Four in five inserts that get here need a single move, which is tried without a queue.
#[inline]
pub(super) fn make_room(places: &Places, buckets: &mut Buckets, place: Place) -> bool {
    // Numbers rather than a struct, which would have to be in memory even where this is not called.
    let Place { fingerprint, bucket, other } = place;
    touch_moves(places, buckets, bucket);
    touch_moves(places, buckets, other);
    by_one_move(places, buckets, bucket, fingerprint)
        || by_one_move(places, buckets, other, fingerprint)
        || by_many_moves(places, buckets, [bucket, other], fingerprint)
}

/// Prefetches the buckets that the fingerprints of a bucket could move to: they are needed soon, one after the other.
#[inline]
fn touch_moves(places: &Places, buckets: &Buckets, bucket: u64) {
    for slot in buckets.get(bucket) {
        buckets.touch(places.alternate(bucket, slot));
    }
}

/// Stores a fingerprint in a full bucket if one there has room in its other bucket. (Choosing the emptiest of the four
/// such buckets, or of all eight, was 6 and 15 % slower.)
#[cold]
#[inline(never)]
fn by_one_move(places: &Places, buckets: &mut Buckets, bucket: u64, fingerprint: u32) -> bool {
    for slot in buckets.get(bucket) {
        let to = places.alternate(bucket, slot);
        let room = buckets.room(to);
        if room != 0 {
            buckets.put(to, room, slot);
            return buckets.replace(bucket, slot, fingerprint);
        }
    }
    false
}

/// Stores a fingerprint in one of a pair of full buckets by the shortest chain of moves.
#[cold]
#[inline(never)]
fn by_many_moves(places: &Places, buckets: &mut Buckets, pair: [u64; 2], fingerprint: u32) -> bool {
    let mut queue = Vec::with_capacity(64);
    queue.extend(pair.map(|bucket| Move { bucket, fingerprint, because_of: FIRST }));
    let mut next = 0;
    while let Some(&Move { bucket, .. }) = queue.get(next) {
        for slot in buckets.get(bucket) {
            let other = places.alternate(bucket, slot);
            let step = Move { bucket: other, fingerprint: slot, because_of: next as u32 };
            if buckets.room(other) != 0 {
                carry_out(buckets, &queue, step);
                return true;
            }
            if queue.len() < MAX_BUCKETS {
                touch_moves(places, buckets, other);
                queue.push(step);
            }
        }
        next += 1;
    }
    false
}

/// Performs a move into a bucket with an empty slot, and all moves before it, last first.
///
/// No bucket is on the path twice: the end would have been found earlier from its first visit.
fn carry_out(buckets: &mut Buckets, queue: &[Move], last: Move) {
    let (mut step, mut place) = (last, EMPTY);
    loop {
        let moved = buckets.replace(step.bucket, place, step.fingerprint);
        debug_assert!(moved);
        if step.because_of == FIRST {
            return;
        }
        place = step.fingerprint;
        step = queue[step.because_of as usize];
    }
}

#[cfg(test)]
mod tests {
    use super::super::bucket::{CuckooLayout, SLOTS};
    use super::super::params::CuckooParams;
    use super::*;
    use crate::hash::mix64;

    /// Every fingerprint with the lower of its buckets, in order: invariant under moves.
    fn contents(places: &Places, buckets: &Buckets, len: u64) -> Vec<(u64, u32)> {
        let home = |bucket, slot| (places.alternate(bucket, slot).min(bucket), slot);
        let mut all: Vec<_> = (0..len)
            .flat_map(|bucket| buckets.get(bucket).map(|slot| (bucket, slot)))
            .filter(|&(_, slot)| slot != EMPTY)
            .map(|(bucket, slot)| home(bucket, slot))
            .collect();
        all.sort_unstable();
        all
    }

    /// Fills tables until they are full, comparing them after every insert that had to move.
    #[test]
    fn moves_lose_and_invent_nothing_and_a_search_without_end_moves_nothing() {
        for (layout, bits) in [CuckooLayout::Plain, CuckooLayout::Packed]
            .into_iter()
            .flat_map(|layout| [5, 8, 13, 16, 17, 32].map(|bits| (layout, bits)))
        {
            let len = 300;
            let params = CuckooParams::for_buckets(len, bits, layout).unwrap();
            let places = Places::new(params);
            let mut buckets = Buckets::empty(len, bits, layout).unwrap();
            let (mut moved, mut refused) = (0, 0);
            for place in (0..1400).map(|key| places.of(mix64(key << 8 | u64::from(bits)))) {
                if buckets.put_in_emptier(place) {
                    continue;
                }
                let mut before = contents(&places, &buckets, len);
                let copy = buckets.clone();
                if make_room(&places, &mut buckets, place) {
                    moved += 1;
                    before.push((place.bucket.min(place.other), place.fingerprint));
                    before.sort_unstable();
                } else {
                    refused += 1;
                    assert_eq!(buckets, copy);
                }
                assert_eq!(contents(&places, &buckets, len), before, "{bits} bits, {layout:?}");
            }
            assert!(moved > 100 && refused > 100, "{moved} moved, {refused} refused");
            assert!(
                contents(&places, &buckets, len).len()
                    > (0.95 * (len * SLOTS as u64) as f64) as usize
            );
        }
    }
}
