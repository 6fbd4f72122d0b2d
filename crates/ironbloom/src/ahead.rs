//! Batch lookups of filters whose addresses are dear: computed once, when the lines are asked for, and kept until these
//! have arrived.
//!
//! [`batch_contains`](crate::kernel::batch_contains) computes them twice, which is as good where that is one
//! multiplication.

/// Hashes whose lines have been asked for and not yet looked at.
const AHEAD: usize = 16;

/// `found[i]` is what `answer` makes of `ask(hashes[i])`, which prefetches. Surplus entries of either slice are left
/// alone.
#[inline]
pub(crate) fn batch_ahead<Q: Copy>(
    hashes: &[u64],
    found: &mut [bool],
    ask: impl Fn(u64) -> Q,
    answer: impl Fn(&Q) -> bool,
) {
    let len = hashes.len().min(found.len());
    let hashes = &hashes[..len];
    let Some(first) = hashes.first() else { return };
    let mut asked = [ask(*first); AHEAD];
    for (slot, hash) in asked.iter_mut().zip(hashes) {
        *slot = ask(*hash);
    }
    for (i, found) in found[..len].iter_mut().enumerate() {
        let slot = &mut asked[i % AHEAD];
        *found = answer(slot);
        if let Some(later) = hashes.get(i + AHEAD) {
            *slot = ask(*later);
        }
    }
}
