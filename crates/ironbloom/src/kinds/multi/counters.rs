//! A Bloom filter of counters that do not stick: one attribute of a parallel Bloom filter.
//!
//! ```text
//! slice j   | 0 | 3 | 15 | 0 | 1 | …          counters of four bits, one slice per hash function
//!                     └──► surplus[position] = 99,985
//! ```
//!
//! An attribute such as *size* has few values, and every large row increments each counter of "large": 10^5 rows of
//! three sizes need 16 bits. Counters that wide would cost four times as much, wasted almost everywhere. So a counter
//! has four bits, and 15 means "15 plus the surplus": a table of the positions that need more. There are at most a
//! fifteenth as many of those as counter increments, and usually none. Nothing sticks, every removal is exact.

use super::tally::Tally;
use crate::bits::packed::Packed;
use crate::error::{DecodeError, ParamError};
use crate::format::native::{Image, Sections};
use crate::kinds::bloom::{BloomLayout, BloomParams};
use crate::sizing;

const COUNTER_BITS: u32 = 4;

/// The largest count that a counter can hold by itself.
const MOST: u64 = 15;

/// See the module documentation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Counters {
    params: BloomParams,
    counters: Packed,
    surplus: Tally,
}

/// Bits per position.
fn position_bits(params: &BloomParams) -> u32 {
    (u64::BITS - (params.bits() - 1).leading_zeros()).max(1)
}

impl Counters {
    /// Creates zero counters, in slices, so that the probes of one hash never fall on one counter.
    pub(super) fn new(params: BloomParams) -> Result<Self, ParamError> {
        debug_assert_eq!(params.layout(), BloomLayout::Segmented);
        let counters = Packed::zeroed(params.bits(), COUNTER_BITS)?;
        Ok(Self { params, counters, surplus: Tally::new(position_bits(&params))? })
    }

    pub(super) fn contains(&self, hash: u64) -> bool {
        self.params.contains(hash, |position| u64::from(self.counters.get(position) != 0))
    }

    /// Adds a hash. On error (allocation failed) nothing was counted.
    pub(super) fn insert(&mut self, hash: u64) -> Result<(), ParamError> {
        let (params, counters) = (self.params, &mut self.counters);
        let mut full = Vec::new(); // takes no memory unless a value is popular
        params.positions(hash, params.all(), |position| {
            if counters.get(position) == MOST {
                full.push(position);
            }
        });
        for (i, &position) in full.iter().enumerate() {
            if let Err(error) = self.surplus.add(position) {
                for &position in &full[..i] {
                    self.surplus.remove(position);
                }
                return Err(error);
            }
        }
        params.positions(hash, params.all(), |position| {
            let count = counters.get(position);
            if count < MOST {
                counters.set(position, count + 1);
            }
        });
        Ok(())
    }

    /// Removes a hash that is [contained](Self::contains).
    pub(super) fn remove(&mut self, hash: u64) {
        let (params, counters, surplus) = (self.params, &mut self.counters, &mut self.surplus);
        params.positions(hash, params.all(), |position| {
            let count = counters.get(position);
            if count < MOST || !surplus.remove(position) {
                counters.set(position, count.saturating_sub(1));
            }
        });
    }

    /// Number of counters above 0.
    fn used(&self) -> u64 {
        // The lowest bit of every counter shows whether any of its four bits is set.
        const LOWEST: u64 = 0x1111_1111_1111_1111;
        let used = |word: &u64| (word | word >> 1 | word >> 2 | word >> 3) & LOWEST;
        self.counters.words().iter().map(|word| u64::from(used(word).count_ones())).sum()
    }

    /// Fraction of the counters above 0.
    pub(super) fn fill(&self) -> f64 {
        self.used() as f64 / self.params.bits() as f64
    }

    /// Number of distinct hashes, estimated from the counters above 0.
    pub(super) fn estimate_distinct(&self) -> f64 {
        sizing::estimate_len(self.params.bits(), self.params.probes(), self.used())
    }

    /// Returns true if significantly more counters are in use than the planned number of distinct hashes would use.
    pub(super) fn is_over_capacity(&self) -> bool {
        self.used() > self.params.most_bits()
    }

    /// Number of counters whose count is above 15.
    pub(super) fn surpluses(&self) -> u64 {
        self.surplus.distinct()
    }

    pub(super) fn clear(&mut self) {
        self.counters.clear();
        self.surplus.clear();
    }

    pub(super) fn size_in_bytes(&self) -> usize {
        self.counters.words().size_in_bytes() + self.surplus.size_in_bytes()
    }

    /// The shape of the surplus, which a file stores in addition to the parameters.
    pub(super) fn shape(&self) -> [u64; 3] {
        self.surplus.shape()
    }

    pub(super) fn append_to<'a>(&'a self, image: Image<'a>) -> Image<'a> {
        self.surplus.append_to(image.section(self.counters.words()))
    }

    /// Reads the next counters of a file.
    pub(super) fn decode(
        params: BloomParams,
        shape: [u64; 3],
        sections: &mut Sections,
    ) -> Result<Self, DecodeError> {
        let counters = sections.take_packed(params.bits(), COUNTER_BITS)?;
        let surplus = Tally::decode(shape, position_bits(&params), sections)?;
        // A surplus for a counter that is not full would never be removed.
        let stray = |&key: &u64| key >= params.bits() || counters.get(key) != MOST;
        if let Some(value) = surplus.keys().find(stray) {
            return Err(DecodeError::Invalid { what: "surplus", value });
        }
        Ok(Self { params, counters, surplus })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Kind;
    use crate::hash::{HashFn, mix64};
    use crate::kernel::Words;

    fn counters() -> Counters {
        Counters::new(BloomParams::for_bits(700, 7).unwrap().segmented()).unwrap()
    }

    #[test]
    fn a_popular_value_is_counted_out_to_zero() {
        let mut counters = counters();
        let (popular, other) = (mix64(1), mix64(2));
        counters.insert(other).unwrap();
        let before = counters.clone();
        for _ in 0..100_000 {
            counters.insert(popular).unwrap();
        }
        assert_eq!(counters.surpluses(), 7);
        for _ in 0..100_000 {
            assert!(counters.contains(popular));
            counters.remove(popular);
        }
        assert!(!counters.contains(popular) && counters.contains(other));
        assert_eq!((counters.counters, counters.surplus.distinct()), (before.counters, 0));
    }

    #[test]
    fn the_fill_counts_what_is_above_zero() {
        let mut counters = counters();
        assert_eq!(counters.fill(), 0.0);
        counters.insert(mix64(1)).unwrap();
        counters.insert(mix64(1)).unwrap();
        assert_eq!(counters.fill(), 0.01);
        counters.clear();
        assert_eq!(counters.fill(), 0.0);
    }

    /// No filter writes a surplus for a position that does not exist or whose counter is not full.
    #[test]
    fn a_surplus_beside_a_counter_that_is_not_full_is_refused() {
        let mut counters = counters();
        (0..20).for_each(|_| counters.insert(mix64(1)).unwrap());
        let reread = |counters: &Counters| {
            let image = Image::new(Kind::Parallel, HashFn::default(), 0, 1);
            let image = counters.append_to(image);
            let words: Vec<u64> = image.sections.iter().flat_map(|s| s.iter().copied()).collect();
            let mut payload = Words::zeroed(words.len() as u64 * 64).unwrap();
            payload.to_mut().copy_from_slice(&words);
            Counters::decode(counters.params, counters.shape(), &mut Sections::new(payload))
        };
        assert_eq!(reread(&counters).as_ref(), Ok(&counters));
        for position in [0, 699, 700, 1023] {
            let mut forged = counters.clone();
            forged.surplus.add(position).unwrap();
            assert!(reread(&forged).is_err(), "{position}");
        }
    }
}
