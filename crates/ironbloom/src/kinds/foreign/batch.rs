//! Many keys at once, in groups.
//!
//! ```text
//! group of keys ──► hashes ── ask for 3 words each ──► look ── survivors ask for 4 more ──► look ── … ──► found
//! ```
//!
//! One absent key in eight survives the first look. All words of a look are fetched from memory together, and a
//! position, a remainder that is expensive to compute, is kept until its word has arrived.

use super::{Foreign, Probing, with_probing};
use crate::bits::address;
use crate::hash::{Key, KeyError, KeyForm};
use crate::kernel::{contains_each, is_near_for_many, prefetch};
use crate::kinds::check_lengths;

/// Keys per group: the words of a first look, one line each, stay in the nearest cache.
const GROUP: usize = 64;

/// Probes of the first look. With fewer, there is hardly anything to wait for.
const FIRST: usize = 3;

/// Probes of every further look: at 1 %, all that remain.
const NEXT: usize = 4;

impl Foreign {
    /// Sets `found[i]` to whether `keys[i]` might be present; memory accesses overlap. Fails at the first key that does
    /// not have the filter's form, with its position and the reason.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[track_caller]
    pub fn contains_keys<K: Key>(
        &self,
        keys: &[K],
        found: &mut [bool],
    ) -> Result<(), (usize, KeyError)> {
        check_lengths(keys.len(), found.len());
        let form = self.known_form().map_err(|error| (0, error))?;
        with_probing!(self.rule, |probing| self.contains_all(probing, form, keys, found))
    }

    fn contains_all<P: Probing, K: Key>(
        &self,
        probing: P,
        form: KeyForm,
        keys: &[K],
        found: &mut [bool],
    ) -> Result<(), (usize, KeyError)> {
        let in_steps = self.probes as usize >= FIRST && !is_near_for_many(self.size_in_bytes());
        let mut hashes = [P::Hash::default(); GROUP];
        let mut asked = [[0; NEXT]; GROUP];
        let groups = keys.chunks(GROUP).zip(found.chunks_mut(GROUP));
        for (number, (keys, found)) in groups.enumerate() {
            // Keys that are answered differently: some programs ignore the empty one, and a zero has two forms.
            let mut has_special = form == KeyForm::Double;
            for (i, (hash, key)) in hashes.iter_mut().zip(keys).enumerate() {
                // Not returned: a hash inside a result would go through memory.
                let hashed = form.with_bytes(key.encoded(), |bytes| {
                    has_special |= !self.takes(bytes);
                    *hash = probing.hash(bytes);
                });
                hashed.map_err(|error| (number * GROUP + i, error))?;
            }
            let hashes = &hashes[..keys.len()];
            if in_steps {
                self.has_in_steps(probing, hashes, &mut asked, found);
            } else {
                contains_each(hashes, found, |hash| self.has_at_once(probing, hash));
            }
            if has_special {
                self.answer_special(form, keys, found);
            }
        }
        Ok(())
    }

    #[cold]
    fn answer_special<K: Key>(&self, form: KeyForm, keys: &[K], found: &mut [bool]) {
        for (found, key) in found.iter_mut().zip(keys) {
            let taken = form.with_bytes(key.encoded(), |bytes| self.takes(bytes));
            if taken == Ok(false) || form.zeros(key.encoded()).is_some() {
                *found = self.contains(key) != Ok(false);
            }
        }
    }

    /// Looks up a group of hashes in a filter that is larger than the cache.
    #[inline(always)]
    fn has_in_steps<P: Probing>(
        &self,
        probing: P,
        hashes: &[P::Hash],
        asked: &mut [[u64; NEXT]; GROUP],
        found: &mut [bool],
    ) {
        for (asked, &hash) in asked.iter_mut().zip(hashes) {
            asked[..FIRST].copy_from_slice(&self.ask::<P, FIRST>(probing, hash, 0));
        }
        let mut left = Survivors::none();
        for (i, asked) in asked[..hashes.len()].iter().enumerate() {
            left.keep_if(self.are_set(&asked[..FIRST]), i as u8);
        }
        let mut looked = FIRST;
        while looked < self.probes as usize {
            // If fewer are left, some are looked at again.
            let first = looked.min(self.probes as usize - NEXT) as u32;
            left.places().for_each(|i| asked[i] = self.ask(probing, hashes[i], first));
            left.retain(|i| self.are_set(&asked[i]));
            looked += NEXT;
        }
        found.fill(false);
        left.places().for_each(|i| found[i] = true);
    }

    /// Computes the positions of `N` probes from `first` on, and prefetches their words.
    #[inline(always)]
    fn ask<P: Probing, const N: usize>(&self, probing: P, hash: P::Hash, first: u32) -> [u64; N] {
        let mut asked = [0; N];
        for (asked, position) in asked.iter_mut().zip(probing.positions(hash, self.range, first)) {
            prefetch(&self.words, address(position).0);
            *asked = position;
        }
        asked
    }

    #[inline(always)]
    fn are_set(&self, positions: &[u64]) -> bool {
        positions.iter().fold(1, |all, &position| all & self.bit(position)) & 1 == 1
    }

    /// Makes all probes without a branch: the outcome is hard to predict.
    #[inline(always)]
    fn has_at_once<P: Probing>(&self, probing: P, hash: P::Hash) -> bool {
        let positions = probing.positions(hash, self.range, 0).take(self.probes as usize);
        positions.fold(1, |all, position| all & self.bit(position)) & 1 == 1
    }
}

/// The keys of a group that may still be present, by their places.
struct Survivors {
    places: [u8; GROUP],
    len: usize,
}

impl Survivors {
    fn none() -> Self {
        Self { places: [0; GROUP], len: 0 }
    }

    fn places(&self) -> impl Iterator<Item = usize> {
        self.places[..self.len].iter().map(|&place| usize::from(place))
    }

    /// Adds a key that passed. It is always written, and counted only if kept: no branch to mispredict.
    #[inline(always)]
    fn keep_if(&mut self, passed: bool, place: u8) {
        self.places[self.len] = place;
        self.len += usize::from(passed);
    }

    /// Keeps those that pass.
    #[inline(always)]
    fn retain(&mut self, passes: impl Fn(usize) -> bool) {
        for n in 0..std::mem::take(&mut self.len) {
            let place = self.places[n];
            self.keep_if(passes(place.into()), place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Rule;

    const RULES: [(Rule, KeyForm); 9] = [
        (Rule::Spark1, KeyForm::Long),
        (Rule::Spark2 { seed: 3 }, KeyForm::Long),
        (Rule::Guava32, KeyForm::Long),
        (Rule::Guava64, KeyForm::Long),
        (Rule::DataSketches { seed: 9001 }, KeyForm::Long),
        (Rule::BitsAndBlooms, KeyForm::Text),
        (Rule::Dcso, KeyForm::Text),
        (Rule::LevelDb, KeyForm::Text),
        (Rule::RocksDb, KeyForm::Text),
    ];

    /// Half full, so that some keys drop out at each look; small only to save time.
    #[test]
    fn looks_find_what_single_lookups_find() {
        for (rule, form) in RULES {
            for probes in [3, 4, 5, 6, 7, 8, 11, 30] {
                let bits = 1 << 13;
                let mut filter = Foreign::new(rule, bits, probes, Some(form)).unwrap();
                let key = |i: u64| i.to_string();
                for i in 0..bits * 7 / 10 / u64::from(probes) {
                    filter.insert(key(i)).unwrap();
                }
                for len in [0, 1, GROUP - 1, GROUP] {
                    let keys: Vec<String> = (0..len as u64).map(|i| key(i * i)).collect();
                    let single: Vec<_> = keys.iter().map(|key| filter.contains(key)).collect();
                    let mut found = vec![len % 2 == 0; len];
                    let mut asked = [[0; NEXT]; GROUP];
                    with_probing!(rule, |probing| {
                        let hash = |key: &String| {
                            form.with_bytes(key.encoded(), |bytes| probing.hash(bytes)).unwrap()
                        };
                        let hashes: Vec<_> = keys.iter().map(hash).collect();
                        filter.has_in_steps(probing, &hashes, &mut asked, &mut found);
                    });
                    let batch = found.iter().map(|&found| Ok(found));
                    assert!(single.into_iter().eq(batch), "{rule:?}, {probes} probes, {len} keys");
                }
            }
        }
    }

    /// Large enough for several looks in [`Foreign::contains_keys`] itself, and with more than a group of keys.
    #[test]
    fn batches_of_large_filters_find_what_single_lookups_find() {
        let form = Some(KeyForm::Long);
        let mut filter = Foreign::new(Rule::Guava64, 1 << 26, 7, form).unwrap();
        assert!(!is_near_for_many(filter.size_in_bytes()));
        let keys: Vec<u64> = (0..1000).collect();
        keys.iter().step_by(2).for_each(|key| {
            filter.insert(key).unwrap();
        });
        let mut found = vec![false; keys.len()];
        filter.contains_keys(&keys, &mut found).unwrap();
        let single = keys.iter().map(|key| filter.contains(key).unwrap());
        assert!(single.eq(found.iter().copied()));
        let wrong: Vec<String> =
            keys.iter().map(|key| format!("{key}{}", if *key == 700 { "x" } else { "" })).collect();
        let refused = filter.contains_keys(&wrong, &mut found).unwrap_err();
        assert_eq!(refused.0, 700);
    }
}
