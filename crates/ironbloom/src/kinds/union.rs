//! Unions in steps: for programs that a large filter must not hold up, such as a server between two commands.
//!
//! ```text
//! stage 0 [words ──►              ]   stage 1 […]   …        a filter that does not grow is one stage
//!               ▲ word: next to be added            ones: bits set in the words before it
//! ```
//!
//! A step sets bits and clears none, so both filters may be read and take keys between two steps. A key that was in the
//! source before the first step is found in the destination after the last one. The ones are counted along the way, so
//! that the number of keys can be estimated at the end of a stage without another pass.

use crate::kernel::Words;

/// The progress of a union in steps. [`default`](Self::default) is the start. Plain numbers: another program that makes
/// the same steps on the same filters gets the same bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnionProgress {
    /// The stage being added; after the last step, the number of stages.
    pub stage: usize,
    /// Its next word.
    pub word: usize,
    /// Number of set bits in the words before it, counted as they were passed.
    pub ones: u64,
}

impl UnionProgress {
    /// Performs all steps of a union of this many stages, each as long as possible.
    pub(crate) fn all<E>(
        stages: usize,
        mut step: impl FnMut(&mut Self, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut progress = Self::default();
        while progress.stage < stages {
            step(&mut progress, usize::MAX)?;
        }
        Ok(())
    }

    /// Adds the next words of a stage, at most `most`. At its end, moves on to the next stage and returns the number of
    /// ones in this one.
    pub(crate) fn step(&mut self, to: &mut Words, from: &Words, most: usize) -> Option<u64> {
        let start = self.word.min(to.len());
        let end = start.saturating_add(most).min(to.len());
        self.ones = self.ones.saturating_add(to.union_words(from, start..end));
        self.word = end;
        if end < to.len() {
            return None;
        }
        let ones = self.ones;
        *self = Self { stage: self.stage + 1, word: 0, ones: 0 };
        Some(ones)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix64;
    use crate::{BlockedBloom, Bloom, HashFn, Mismatch, Scalable, ScalableParams, StageKind};

    /// Makes a union in steps and at once, and compares.
    fn check<F: Clone + PartialEq>(
        one: &F,
        two: &F,
        stages: usize,
        step: impl Fn(&mut F, &F, &mut UnionProgress, usize) -> Result<(), Mismatch>,
        at_once: impl Fn(&mut F, &F),
    ) {
        let mut expected = one.clone();
        at_once(&mut expected, two);
        for most in [1, 100, 1 << 30] {
            let (mut union, mut progress) = (one.clone(), UnionProgress::default());
            while progress.stage < stages {
                step(&mut union, two, &mut progress, most).unwrap();
            }
            assert!(union == expected, "{most} words at a time");
            // There is no stage after the last.
            assert!(step(&mut union, two, &mut progress, most).is_err());
            assert!(union == expected);
        }
    }

    fn hashes(from: u64, to: u64) -> Vec<u64> {
        (from..to).map(mix64).collect()
    }

    #[test]
    fn a_union_in_steps_equals_one_at_once() {
        let mut flat = [0, 1].map(|_| Bloom::with_rate(5000, 0.01).unwrap());
        flat[0].insert_hashes(&hashes(0, 3000));
        flat[1].insert_hashes(&hashes(2000, 4000));
        let at_once = |to: &mut Bloom, from: &Bloom| to.union_with(from).unwrap();
        check(&flat[0], &flat[1], 1, Bloom::union_step, at_once);

        let mut blocked = [0, 1].map(|_| BlockedBloom::with_rate(5000, 0.01).unwrap());
        blocked[0].insert_hashes(&hashes(0, 3000));
        blocked[1].insert_hashes(&hashes(2000, 4000));
        let at_once = |to: &mut BlockedBloom, from: &BlockedBloom| to.union_with(from).unwrap();
        check(&blocked[0], &blocked[1], 1, BlockedBloom::union_step, at_once);

        for kind in [StageKind::Bloom, StageKind::Blocked] {
            let params = ScalableParams::new(1000, 0.01).unwrap().with_stages_of(kind);
            let mut growing = [0, 1].map(|_| Scalable::new(params, HashFn::default()).unwrap());
            growing[0].insert_hashes(&hashes(0, 6000)).unwrap();
            growing[1].insert_hashes(&hashes(4000, 10_000)).unwrap();
            let at_once = |to: &mut Scalable, from: &Scalable| to.union_with(from).unwrap();
            check(&growing[0], &growing[1], 3, Scalable::union_step, at_once);
            // Into an empty filter of the same stages: the source itself.
            let mut empty = growing[1].empty_like().unwrap();
            assert!(empty.is_empty() && empty.check_union(&growing[1]).is_ok());
            check(&empty, &growing[1], 3, Scalable::union_step, at_once);
            empty.union_with(&growing[1]).unwrap();
            assert!(empty == growing[1]);
        }
    }

    #[test]
    fn filters_may_take_keys_and_grow_between_steps() {
        let mut one = Scalable::with_rate(1000, 0.01).unwrap();
        let mut two = one.clone();
        one.insert_hashes(&hashes(0, 900)).unwrap();
        two.insert_hashes(&hashes(5000, 5900)).unwrap();
        let (mut progress, mut next) = (UnionProgress::default(), 10_000);
        while progress.stage < 1 {
            one.union_step(&two, &mut progress, 8).unwrap();
            one.insert_hashes(&hashes(next, next + 20)).unwrap();
            two.insert_hashes(&hashes(next + 10_000, next + 10_020)).unwrap();
            next += 20;
        }
        assert!(one.stages().len() > 1 && two.stages().len() > 1, "both have grown");
        for hash in hashes(0, 900).into_iter().chain(hashes(5000, 5900)).chain(hashes(10_000, next))
        {
            assert!(one.contains_hash(hash));
        }
    }

    #[test]
    fn other_shapes_are_refused_and_nothing_changes() {
        let mut one = Bloom::with_rate(1000, 0.01).unwrap();
        let (before, mut progress) = (one.clone(), UnionProgress::default());
        let two = Bloom::with_rate(1001, 0.001).unwrap();
        assert!(one.union_step(&two, &mut progress, 10).is_err());
        assert!(one == before && progress == UnionProgress::default());
        // Numbers from elsewhere must not lead to positions outside the array.
        let mut far = UnionProgress { stage: 0, word: usize::MAX, ones: u64::MAX };
        one.union_step(&before, &mut far, usize::MAX).unwrap();
        assert!(one == before);
    }
}
