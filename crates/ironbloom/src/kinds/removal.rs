//! Checks before removal whether a list of keys is plausible.
//!
//! Counting, d-left and cuckoo filters remove a key by removing its trace. A key that was never inserted (or was
//! removed before) has none; but at the filter's rate it *looks* present, and the removed trace then belongs to another
//! key, which is reported absent from then on: a false negative. A single such key cannot be detected. A list of them
//! can, because its other wrong keys turn out to be absent:
//!
//! ```text
//! asked      N distinct keys:    A certainly absent,    P that look present
//! wrong      W keys of the list were never inserted: each looks present with probability r, the filter's rate,
//!            so A = W − F, where F of the P are false positives
//! therefore  F has mean A r / (1 − r) and deviation √(A r) / (1 − r)
//! ```
//!
//! That gives [`expected_wrong`](RemovalCheck::expected_wrong), how many other keys the list would probably destroy,
//! and three reasons to reject it ([`Verdict`]):
//!
//! 1. **Too many**: with all copies, more of its keys look present than the filter holds.
//! 2. **Chance**: P is not more than the mean of F plus five deviations. Possibly no key of the list was ever inserted.
//! 3. **Mixed**: many keys are right, but at least one other key is expected to be lost.
//!
//! A key that is in the list more often than it was inserted looks present when looked up, and is absent only once it
//! has been removed. Remove the list from a copy (or from a filter in memory whose file is unchanged) and tell the
//! check how many keys were found: [`removed`](RemovalCheck::removed) counts the others as absent.
//!
//! **Limits.** It cannot detect wrong keys that look present without any absent ones in the list: one or a few of them,
//! or a list made by querying this filter (`ironbloom check` prints exactly the false positives of its input). Keep a
//! separate list of inserted keys, and remove only keys from that list.
//!
//! ```
//! use ironbloom::removal::Verdict;
//! use ironbloom::{Cuckoo, HashFn, RemovalCheck};
//! let mut online = Cuckoo::with_rate(1000, 0.01)?;
//! online.insert_keys(&(0..1000).collect::<Vec<u32>>())?;
//!
//! let check = |keys: std::ops::Range<u32>| {
//!     let hashes: Vec<u64> = keys.map(|key| HashFn::default().hash(key)).collect();
//!     RemovalCheck::of(&online, online.len(), online.estimate_rate(), &hashes).verdict()
//! };
//! assert_eq!(check(0..500), Verdict::Plausible);          // all of them were inserted
//! assert_eq!(check(5000..10_000), Verdict::Chance);       // none of them was
//! assert_eq!(check(500..5000), Verdict::Mixed);           // one in nine was
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::hash::GROUP;
use crate::kinds::filter::Filter;

/// Tolerance for chance before a list counts as more than false positives.
const SIGMAS: f64 = 5.0;

/// Expected number of other keys destroyed above which a list is rejected.
const MAX_WRONG: f64 = 1.0;

/// The same for a doubtful list: a chance of one in a hundred that one key is lost.
const DOUBTFUL: f64 = 0.01;

/// A filter's view of a list of keys to remove. Checking changes nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RemovalCheck {
    keys: u64,
    rate: f64,
    present: u64,
    copies: u64,
    absent: u64,
    gone: u64,
}

/// The plausibility of a list of keys to remove: see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// No objection, or nothing would be removed.
    Plausible,
    /// Some keys are certainly absent, and with a probability above 1 % another one only looks present.
    Doubtful,
    /// More removals than the filter holds keys.
    TooMany,
    /// All keys that look present may be false positives: their number is within 5 standard deviations.
    Chance,
    /// At least one other key is expected to be lost.
    Mixed,
}

impl RemovalCheck {
    /// Checks a list of keys against a filter that holds `keys` keys (its `len`) and currently has this rate (its
    /// `estimate_rate`). The keys are given by their [uniform](crate::hash#uniform-hashes) hashes, in any order and
    /// each as often as it is to be removed.
    pub fn of(filter: &(impl Filter + ?Sized), keys: u64, rate: f64, hashes: &[u64]) -> Self {
        let mut sorted = hashes.to_vec();
        sorted.sort_unstable();
        let copies: Vec<u64> = sorted.chunk_by(u64::eq).map(|same| same.len() as u64).collect();
        sorted.dedup();
        let mut found = [false; GROUP];
        let mut check = Self::nothing(keys, rate);
        for (hashes, copies) in sorted.chunks(GROUP).zip(copies.chunks(GROUP)) {
            let found = &mut found[..hashes.len()];
            filter.contains_hashes(hashes, found);
            copies.iter().zip(&*found).for_each(|(&copies, &found)| check.count(copies, found));
        }
        check
    }

    /// Starts with an empty list. For filters of rows: [count](Self::count) every distinct row.
    pub fn nothing(keys: u64, rate: f64) -> Self {
        Self { keys, rate, present: 0, copies: 0, absent: 0, gone: 0 }
    }

    /// Counts a key: how often it is in the list, and whether the filter found it. Call it once for every distinct key.
    pub fn count(&mut self, copies: u64, found: bool) {
        self.present += u64::from(found);
        self.copies += if found { copies } else { 0 };
        self.absent += u64::from(!found);
    }

    /// Records how many of the [copies](Self::copies) were found when the list was removed. If each key is in the list
    /// as often as it was inserted, all were.
    pub fn removed(&mut self, found: u64) {
        self.gone = self.copies.saturating_sub(found);
    }

    /// Number of keys that the filter holds.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Number of distinct keys of the list that look present.
    pub fn present(&self) -> u64 {
        self.present
    }

    /// Number of those with repetitions: removals that would be tried.
    pub fn copies(&self) -> u64 {
        self.copies
    }

    /// Number of distinct keys of the list that are certainly absent.
    pub fn absent(&self) -> u64 {
        self.absent
    }

    /// Number of removals that found nothing although their key looked present before: its trace had already been
    /// removed, as its own or as another key's. Known after [`removed`](Self::removed).
    pub fn gone(&self) -> u64 {
        self.gone
    }

    /// Expected number of keys that look present but were never inserted, or not that often, each of which would take
    /// another key with it. At most as many as look present, with their copies.
    pub fn expected_wrong(&self) -> f64 {
        self.false_positives(self.absent + self.gone, 0.0)
    }

    /// Expected number of false positives given this many absent keys, plus `sigmas` standard deviations, but no more
    /// than look present.
    fn false_positives(&self, absent: u64, sigmas: f64) -> f64 {
        if absent == 0 {
            return 0.0;
        }
        let (absent, rate) = (absent as f64, self.rate.clamp(0.0, 1.0));
        let number = (absent * rate + sigmas * (absent * rate).sqrt()) / (1.0 - rate); // or infinite
        number.min(self.copies as f64)
    }

    /// Judges the list.
    pub fn verdict(&self) -> Verdict {
        if self.rate <= 0.0 || self.present == 0 {
            return Verdict::Plausible; // without false positives nothing is lost
        }
        match self.expected_wrong() {
            _ if self.copies > self.keys => Verdict::TooMany,
            _ if self.absent > 0
                && self.false_positives(self.absent, SIGMAS) >= self.present as f64 =>
            {
                Verdict::Chance
            }
            wrong if wrong >= MAX_WRONG => Verdict::Mixed,
            wrong if wrong >= DOUBTFUL => Verdict::Doubtful,
            _ => Verdict::Plausible,
        }
    }
}

impl Verdict {
    /// Returns true if keys that are not in the list would be lost, or the list cannot be right at all.
    pub fn is_wrong(self) -> bool {
        matches!(self, Self::TooMany | Self::Chance | Self::Mixed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(keys: u64, rate: f64, present: u64, absent: u64) -> RemovalCheck {
        RemovalCheck { keys, rate, present, copies: present, absent, gone: 0 }
    }

    #[test]
    fn the_numbers_of_a_trial_are_refused() {
        // 1,000 keys and 500,000 that were never inserted, at 1 %.
        let trial = check(1000, 0.01, 5000, 495_000);
        assert_eq!((trial.verdict(), trial.expected_wrong()), (Verdict::TooMany, 5000.0));
        // The same numbers for a filter that holds more keys.
        assert_eq!(check(10_000, 0.01, 5000, 495_000).verdict(), Verdict::Chance);
        assert_eq!(check(10_000, 0.01, 5500, 495_000).verdict(), Verdict::Mixed);
    }

    #[test]
    fn the_bound_is_five_deviations() {
        // Mean 101.0, deviation 10.1: up to 151.
        assert_eq!(check(10_000, 0.01, 151, 10_000).verdict(), Verdict::Chance);
        assert_eq!(check(10_000, 0.01, 152, 10_000).verdict(), Verdict::Mixed);
    }

    #[test]
    fn a_few_slips_among_right_keys_are_no_reason() {
        assert_eq!(check(1000, 0.01, 1, 0).verdict(), Verdict::Plausible);
        assert_eq!(check(1000, 0.01, 500, 0).verdict(), Verdict::Plausible);
        assert_eq!(check(1000, 1e-6, 500, 500).verdict(), Verdict::Plausible);
        assert_eq!(check(1000, 0.01, 500, 10).verdict(), Verdict::Doubtful);
        assert_eq!(check(1000, 0.01, 500, 200).verdict(), Verdict::Mixed);
        assert_eq!(check(1000, 0.01, 0, 500).verdict(), Verdict::Plausible);
        assert_eq!(check(5, 0.0, 5, 500).verdict(), Verdict::Plausible);
    }

    #[test]
    fn removals_that_found_nothing_count_as_absent() {
        let mut twice = check(100_000, 0.01, 45_000, 0);
        twice.copies = 90_000;
        assert_eq!(twice.verdict(), Verdict::Plausible);
        twice.removed(45_300);
        assert_eq!((twice.verdict(), twice.gone()), (Verdict::Mixed, 44_700));
        assert_eq!(twice.expected_wrong().round(), 452.0);
        let mut one_slip = check(1000, 0.011, 500, 0);
        one_slip.removed(499);
        assert_eq!(one_slip.verdict(), Verdict::Doubtful);
        one_slip.removed(500);
        assert_eq!(one_slip.verdict(), Verdict::Plausible);
    }

    #[test]
    fn a_filter_that_says_yes_to_everything_is_no_division_by_zero() {
        let all = check(1000, 1.0, 500, 0);
        assert_eq!((all.verdict(), all.expected_wrong().is_finite()), (Verdict::Plausible, true));
        assert_eq!(check(1000, 1.0, 500, 1).verdict(), Verdict::Chance);
    }
}
