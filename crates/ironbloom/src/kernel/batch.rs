//! The loop behind every batch call: prefetch the cache lines of a later hash, then work on this one.
//!
//! ```text
//! hashes   … i          i + 1      …          i + AHEAD …
//!              work on it                       ask for its lines, remember where they are
//! ```
//!
//! A filter larger than the cache answers one lookup in one memory latency, but memory serves dozens of requests at a
//! time. Prefetching turns latency into throughput. The result of `ask` for a hash (a block, buckets, positions) waits
//! in a ring for its turn, so that it is computed only once.

use std::convert::Infallible;

use crate::kinds::check_lengths;

/// Prefetch distance, in hashes, where a hash has several cache lines. More requests than memory serves at a time would
/// only wait (docs/benchmarks/kernels.md).
const AHEAD: usize = 16;

/// Prefetch distance where each hash has one cache line.
pub(super) const AHEAD_BY_LINE: usize = 32;

/// Arrays up to this size stay in the second-level cache of nearly every processor when in heavy use: prefetching them
/// gains nothing (2.9 ns per lookup without, 3.6 with; docs/benchmarks/kernels.md).
const NEAR_BYTES: usize = 512 << 10;

/// Returns true if an array of this size is too small for prefetching to pay, given one cache line per hash.
#[inline]
pub(super) fn is_near(bytes: usize) -> bool {
    bytes <= NEAR_BYTES
}

/// Like [`is_near`], given many cache lines per hash. Finding and prefetching them takes longer, and some are not
/// needed, so it starts to pay later: a lookup in 1.2 MB took 17 ns without and 24 with, in 12 MB 40 without and 32
/// with.
#[inline]
pub(crate) fn is_near_for_many(bytes: usize) -> bool {
    bytes <= 8 * NEAR_BYTES
}

/// Calls `work(filter, i, hash, asked)` for every hash in order until one fails. `asked` comes from `ask`, which is
/// called once for each hash, a little ahead; it may be empty where addresses are cheap to recompute. A hash is a number
/// of 64 bits, or whatever else a filter derives from a key.
#[inline(always)]
pub(crate) fn try_for_each_ahead<T: ?Sized, H: Copy, Q: Copy, E>(
    filter: &mut T,
    hashes: &[H],
    ask: impl Fn(&T, H) -> Q,
    work: impl FnMut(&mut T, usize, H, Q) -> Result<(), E>,
) -> Result<(), E> {
    try_for_each_so_far_ahead::<AHEAD, T, H, Q, E>(filter, hashes, ask, work)
}

#[inline(always)]
fn try_for_each_so_far_ahead<const AHEAD: usize, T: ?Sized, H: Copy, Q: Copy, E>(
    filter: &mut T,
    hashes: &[H],
    ask: impl Fn(&T, H) -> Q,
    mut work: impl FnMut(&mut T, usize, H, Q) -> Result<(), E>,
) -> Result<(), E> {
    let Some(&first) = hashes.first() else { return Ok(()) };
    let mut ring = [ask(filter, first); AHEAD];
    for (slot, &hash) in ring.iter_mut().zip(hashes).skip(1) {
        *slot = ask(filter, hash);
    }
    for (i, &hash) in hashes.iter().enumerate() {
        let slot = &mut ring[i % AHEAD];
        let asked = *slot;
        if let Some(&later) = hashes.get(i + AHEAD) {
            *slot = ask(filter, later);
        }
        work(filter, i, hash, asked)?;
    }
    Ok(())
}

/// [`try_for_each_ahead`] for work that cannot fail.
#[inline(always)]
pub(crate) fn for_each_ahead<T: ?Sized, H: Copy, Q: Copy>(
    filter: &mut T,
    hashes: &[H],
    ask: impl Fn(&T, H) -> Q,
    work: impl FnMut(&mut T, usize, H, Q),
) {
    for_each_so_far_ahead::<AHEAD, T, H, Q>(filter, hashes, ask, work);
}

/// [`for_each_ahead`] at a given distance.
#[inline(always)]
pub(super) fn for_each_so_far_ahead<const AHEAD: usize, T: ?Sized, H: Copy, Q: Copy>(
    filter: &mut T,
    hashes: &[H],
    ask: impl Fn(&T, H) -> Q,
    mut work: impl FnMut(&mut T, usize, H, Q),
) {
    let work = |filter: &mut T, i, hash, asked| {
        work(filter, i, hash, asked);
        Ok::<(), Infallible>(())
    };
    let Ok(()) = try_for_each_so_far_ahead::<AHEAD, T, H, Q, Infallible>(filter, hashes, ask, work);
}

/// Batch lookup: sets `found[i]` to `answer` of `hashes[i]` and of the earlier result of `ask` for it.
///
/// # Panics
///
/// If the slices differ in length.
#[inline(always)]
pub(crate) fn contains_ahead<Q: Copy>(
    hashes: &[u64],
    found: &mut [bool],
    ask: impl Fn(u64) -> Q,
    answer: impl Fn(u64, Q) -> bool,
) {
    check_lengths(hashes.len(), found.len());
    let ask = |_: &[bool], hash| ask(hash);
    for_each_ahead(found, hashes, ask, |found, i, hash, asked| found[i] = answer(hash, asked));
}

/// Batch lookup in a filter that is in the cache: nothing to prefetch.
///
/// # Panics
///
/// If the slices differ in length.
#[inline(always)]
pub(crate) fn contains_each<H: Copy>(hashes: &[H], found: &mut [bool], answer: impl Fn(H) -> bool) {
    check_lengths(hashes.len(), found.len());
    for (found, &hash) in found.iter_mut().zip(hashes) {
        *found = answer(hash);
    }
}

/// Prefetches the cache line that holds `words[index]`. An out-of-range index is ignored: a prefetch is only a hint.
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
    // The intrinsic is not stable on this architecture, but the instruction is.
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch never faults and never changes memory, a register or a flag, whatever the address.
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{address}]",
            address = in(reg) address,
            options(nostack, preserves_flags, readonly),
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hash_is_asked_and_worked_on_once_in_order_and_up_to_the_first_failure() {
        for len in [0, 1, AHEAD - 1, AHEAD, AHEAD + 1, 5 * AHEAD + 3] {
            let hashes: Vec<u64> = (0..len as u64).map(|i| 7 * i).collect();
            let all: Vec<_> = hashes.iter().copied().enumerate().collect();
            for fail_at in [0, len / 2, len] {
                let mut seen = Vec::new();
                let outcome = try_for_each_ahead(
                    &mut seen,
                    &hashes,
                    |_, hash| hash + 1,
                    |seen, i, hash, asked| {
                        assert_eq!(asked, hash + 1);
                        seen.push((i, hash));
                        if i == fail_at { Err(i) } else { Ok(()) }
                    },
                );
                assert_eq!(outcome, if fail_at < len { Err(fail_at) } else { Ok(()) });
                assert_eq!(seen, all[..len.min(fail_at + 1)]);
            }
        }
    }

    #[test]
    fn prefetching_outside_the_array_is_harmless() {
        prefetch(&[1, 2, 3], usize::MAX / 16);
    }
}
