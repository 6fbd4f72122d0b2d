//! Inverting a law: the smallest integer at which it holds.
//!
//! Every rate falls as bits are added and rises as keys are added, so every sizing question is
//! "where does a predicate flip?". A formula without corrections gives a good guess; we gallop away
//! from it with doubling steps until the flip is between two numbers, then bisect.

/// Finds the smallest `x >= 1` at which `holds` is true, for a predicate that flips once from false
/// to true. `u64::MAX` if it never does.
pub(super) fn least(guess: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let start = guess.max(1);
    let mut step = start / 1024 + 1;
    let (mut low, mut high) = (0, u64::MAX);
    if holds(start) {
        high = start;
        while high > step {
            if !holds(high - step) {
                low = high - step;
                break;
            }
            high -= step;
            step = step.saturating_mul(2);
        }
    } else {
        low = start;
        while let Some(next) = low.checked_add(step) {
            if holds(next) {
                high = next;
                break;
            }
            low = next;
            step = step.saturating_mul(2);
        }
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle }
    }
    high
}

/// Finds the greatest `x` at which `holds` is true, for a predicate that is true at 0 and flips
/// once to false. `u64::MAX - 1` if it never does.
pub(super) fn greatest(guess: u64, holds: impl Fn(u64) -> bool) -> u64 {
    least(guess.saturating_add(1), |x| !holds(x)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_guess_finds_the_same_flip() {
        for flip in [1, 2, 3, 1000, 1_000_000, u64::MAX - 1, u64::MAX] {
            for guess in [0, 1, 2, 999, 5000, u64::MAX / 2, u64::MAX] {
                assert_eq!(least(guess, |x| x >= flip), flip, "guess {guess}");
                assert_eq!(greatest(guess, |x| x < flip), flip - 1, "guess {guess}");
            }
        }
    }

    #[test]
    fn a_predicate_that_never_holds_ends_at_the_last_number() {
        assert_eq!(least(7, |_| false), u64::MAX);
        assert_eq!(greatest(7, |_| true), u64::MAX - 1);
    }
}
