//! The loop behind every batch call: ask memory for the lines of a later hash, then work on this one.
//!
//! A filter larger than the cache answers one lookup in one memory latency, but memory serves a dozen
//! requests at a time. Touching the lines [`AHEAD`] hashes early turns latency into throughput.

/// How many hashes ahead lines are asked for. Prefetches in flight are limited by the core's line-fill
/// buffers, 10 to 16 on x86-64; which distance is best has not been measured yet.
const AHEAD: usize = 16;

/// Hashes that take the first of two steps before the second begins: few enough to keep on the stack and in cache,
/// many enough that the pause between steps does not matter.
const STEP: usize = 512;

/// Calls `work(filter, i, hash)` for every hash in order, and `touch` for the hash a little ahead of it.
#[inline(always)]
pub(crate) fn for_each_prefetched<T: ?Sized>(
    filter: &mut T,
    hashes: &[u64],
    touch: impl Fn(&T, u64),
    mut work: impl FnMut(&mut T, usize, u64),
) {
    for &hash in hashes.iter().take(AHEAD) {
        touch(filter, hash);
    }
    for (i, &hash) in hashes.iter().enumerate() {
        if let Some(&later) = hashes.get(i + AHEAD) {
            touch(filter, later);
        }
        work(filter, i, hash);
    }
}

/// Batch lookup: `found[i]` is `test(hashes[i])`. Surplus entries of either slice are left alone.
#[inline(always)]
pub(crate) fn batch_contains(
    hashes: &[u64],
    found: &mut [bool],
    touch: impl Fn(u64),
    test: impl Fn(u64) -> bool,
) {
    let len = hashes.len().min(found.len());
    let mut nothing = ();
    for_each_prefetched(
        &mut nothing,
        &hashes[..len],
        |(), hash| touch(hash),
        |(), i, hash| found[i] = test(hash),
    );
}

/// Batch lookup of a filter that probes many lines for a key: a first step of few probes, which most keys that are not
/// there do not survive, and a second of the others. Each step asks for the lines that it needs, and no more.
///
/// A step is what touches the lines of a hash, and what tests it.
#[inline(always)]
pub(crate) fn batch_contains_in_two_steps(
    hashes: &[u64],
    found: &mut [bool],
    first: (impl Fn(u64), impl Fn(u64) -> bool),
    second: (impl Fn(u64), impl Fn(u64) -> bool),
) {
    let mut survivors = [0; STEP];
    let mut places = [0; STEP];
    for (hashes, found) in hashes.chunks(STEP).zip(found.chunks_mut(STEP)) {
        let hashes = &hashes[..hashes.len().min(found.len())];
        let mut len = 0;
        for_each_prefetched(
            &mut len,
            hashes,
            |_, hash| first.0(hash),
            |len, i, hash| {
                let passed = first.1(hash);
                found[i] = passed;
                // Written always and kept if passed: no branch to mispredict.
                (survivors[*len], places[*len]) = (hash, i);
                *len += usize::from(passed);
            },
        );
        for_each_prefetched(
            &mut (),
            &survivors[..len],
            |(), hash| second.0(hash),
            |(), i, hash| {
                found[places[i]] = second.1(hash);
            },
        );
    }
}

/// Asks for the cache line that holds `words[index]`. An index outside is ignored: prefetching is advice.
#[inline(always)]
pub(crate) fn prefetch(words: &[u64], index: usize) {
    prefetch_line(words.as_ptr().wrapping_add(index).cast());
}

#[inline(always)]
pub(crate) fn prefetch_line(address: *const i8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch never faults and never changes memory, whatever the address; SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hash_is_worked_on_once_and_in_order() {
        for len in [0, 1, AHEAD - 1, AHEAD, AHEAD + 1, 100] {
            let hashes: Vec<u64> = (0..len as u64).collect();
            let mut seen = Vec::new();
            for_each_prefetched(
                &mut seen,
                &hashes,
                |_, _| {},
                |seen, i, hash| seen.push((i as u64, hash)),
            );
            assert_eq!(seen, hashes.iter().map(|&h| (h, h)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn prefetching_outside_the_array_is_harmless() {
        prefetch(&[1, 2, 3], usize::MAX / 16);
    }
}
