//! PBF-HT and PBF-BF (Xiao & Hua 2010): a parallel Bloom filter, plus one number per row to verify answers.
//!
//! ```text
//! v(row) = Σ_i F(H_i1 … H_iq)                        over the hash values that the PBF uses anyway
//!
//! insert(row):     PBF.insert(row), count v up       HT: a table of the numbers; BF: a Bloom filter of them
//! contains(row):   PBF.contains(row) and v is there
//! remove(row):     contains(row)?  then both count down
//! ```
//!
//! The number corrects the errors of the PBF, as far as different rows have different numbers. F is a sum, and sums of
//! uniform numbers cluster around their mean; [`Weights`] says by how much. It works only under two conditions:
//!
//! 1. **HT is a multiset.** A plain map `v → true` is not enough: among 10^5 rows of two attributes, about one in six
//!    shares its plain sum with another; removing one of the two would make the other disappear.
//! 2. **Every attribute hashes with its own seed.** Sums forget the order: with shared functions (x, y) and (y, x) always
//!    have the same number.
//!
//! A query that leaves out attributes has no number, so only the PBF answers it, and it mixes up rows.
//!
//! These exist for comparison with [`Joint`](super::Joint), which needs a ninth of their bits or less, and cannot be
//! saved to files.

use super::attributes::Attributes;
use super::counters::Counters;
use super::parallel::ParallelBloom;
use super::tally::Tally;
use super::{MultiFilter, as_query};
use crate::error::{ParamError, RowError};
use crate::hash::mix64;
use crate::kinds::bloom::BloomParams;

/// F: the sum of the q hash values of an attribute, each below m.
///
/// Wrong yes for rows of known values; m = n / ln 2, q = 7, two attributes (`tests/multi.rs` measures them):
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// Σ H_j. 16.3 %: see [`sum_rate`](crate::sizing::sum_rate).
    Equal,
    /// Σ H_j / 2^j to the last bit, that is, Σ H_j · 2^(q−j). 0.65 %: see
    /// [`weighted_sum_rate`](crate::sizing::weighted_sum_rate). Three quarters of its variance come from H_1.
    Halving,
    /// Σ ⌊H_j / 2^j⌋, the same in integer arithmetic. 53.8 %, above the claimed upper bound: see
    /// [`truncated_sum_rate`](crate::sizing::truncated_sum_rate). Only here to show that.
    HalvingTruncated,
}

impl Weights {
    /// The sum over one attribute, whose hash values H_1 … H_q are the places in its slices. Wraps around at 64 bits,
    /// which only shapes of 2^57 counters reach.
    fn sum(self, params: &BloomParams, hash: u64) -> u64 {
        let probes = params.probes();
        let slice = params.bits() / u64::from(probes);
        let (mut sum, mut j) = (0u64, 0);
        params.positions(hash, params.all(), |position| {
            let value = position - u64::from(j) * slice;
            j += 1;
            sum = sum.wrapping_add(match self {
                Self::Equal => value,
                Self::Halving => value.wrapping_shl(probes - j),
                Self::HalvingTruncated => value.checked_shr(j).unwrap_or(0),
            });
        });
        sum
    }

    /// Number of bits that hold every sum over this many attributes.
    fn bits(self, params: &BloomParams, attributes: usize) -> u32 {
        let slice = u128::from(params.bits() / u64::from(params.probes()));
        let most = match self {
            Self::Equal => slice * u128::from(params.probes()) * attributes as u128,
            Self::Halving => (slice * attributes as u128) << params.probes().min(57),
            Self::HalvingTruncated => slice * attributes as u128,
        };
        (u128::BITS - most.leading_zeros()).min(u64::BITS)
    }
}

/// The storage for the numbers of the rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Check {
    /// A hash table: PBF-HT.
    Table,
    /// A Bloom filter of counters, with its own rate: PBF-BF.
    Bloom {
        /// That rate.
        rate: f64,
    },
}

#[derive(Clone, Debug, PartialEq)]
enum Numbers {
    Table(Tally),
    Bloom(Counters),
}

impl Numbers {
    fn contains(&self, number: u64) -> bool {
        match self {
            Self::Table(table) => table.count(number) > 0,
            Self::Bloom(counters) => counters.contains(mix64(number)),
        }
    }

    fn insert(&mut self, number: u64) -> Result<(), ParamError> {
        match self {
            Self::Table(table) => table.add(number),
            Self::Bloom(counters) => counters.insert(mix64(number)),
        }
    }

    /// Removes a number that is contained.
    fn remove(&mut self, number: u64) {
        match self {
            Self::Table(table) => {
                table.remove(number);
            }
            Self::Bloom(counters) => counters.remove(mix64(number)),
        }
    }
}

/// A parallel Bloom filter with a number for each row: PBF-HT or PBF-BF.
///
/// ```
/// use ironbloom::HashFn;
/// use ironbloom::multi::{Attributes, Check, MultiFilter, ParallelBloom, VerifiedBloom, Weights};
/// let values = ParallelBloom::with_rate(1000, 0.01, ["size", "color"])?;
/// let mut tables = VerifiedBloom::new(values, Weights::Halving, Check::Table)?;
/// tables.insert(&["large", "red"])?;
/// tables.insert(&["small", "green"])?;
/// assert!(!tables.contains(&[Some("large"), Some("green")])?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedBloom {
    values: ParallelBloom,
    weights: Weights,
    numbers: Numbers,
}

impl VerifiedBloom {
    /// Creates an empty filter over an empty parallel Bloom filter: one that already has rows is emptied. The check is
    /// planned for as many rows as the filter for values.
    pub fn new(
        mut values: ParallelBloom,
        weights: Weights,
        check: Check,
    ) -> Result<Self, ParamError> {
        values.clear();
        let params = values.params();
        let rows = params.capacity();
        let numbers = match check {
            Check::Table => {
                let bits = weights.bits(&params, values.attributes().len());
                Numbers::Table(Tally::with_room(bits, rows)?)
            }
            Check::Bloom { rate } => {
                Numbers::Bloom(Counters::new(BloomParams::segmented_for_rate(rows, rate)?)?)
            }
        };
        Ok(Self { values, weights, numbers })
    }

    /// The parallel Bloom filter inside.
    pub fn values(&self) -> &ParallelBloom {
        &self.values
    }

    /// The weights of the sum.
    pub fn weights(&self) -> Weights {
        self.weights
    }

    /// The number of a row, v.
    pub fn number(&self, row: &[u64]) -> u64 {
        row.iter().fold(0, |sum, &hash| self.sum_with(sum, hash))
    }

    fn sum_with(&self, sum: u64, hash: u64) -> u64 {
        sum.wrapping_add(self.weights.sum(&self.values.params(), hash))
    }
}

impl MultiFilter for VerifiedBloom {
    fn attributes(&self) -> &Attributes {
        self.values.attributes()
    }

    fn attributes_mut(&mut self) -> &mut Attributes {
        self.values.attributes_mut()
    }

    fn insert_hashed(&mut self, row: &[u64]) -> Result<(), RowError> {
        self.values.insert_hashed(row)?;
        let number = self.number(row);
        if let Err(error) = self.numbers.insert(number) {
            self.values.remove_hashed(row)?;
            return Err(error.into());
        }
        Ok(())
    }

    fn contains_hashed(&self, query: &[Option<u64>]) -> Result<bool, RowError> {
        if !self.values.contains_hashed(query)? {
            return Ok(false);
        }
        let mut row = query.iter().copied();
        let number: Option<u64> = row.try_fold(0, |sum, hash| Some(self.sum_with(sum, hash?)));
        Ok(number.is_none_or(|number| self.numbers.contains(number)))
    }

    fn remove_hashed(&mut self, row: &[u64]) -> Result<bool, RowError> {
        if !self.contains_hashed(&as_query(row))? {
            return Ok(false);
        }
        self.numbers.remove(self.number(row));
        self.values.remove_hashed(row)
    }

    fn len(&self) -> u64 {
        self.values.len()
    }

    fn size_in_bytes(&self) -> usize {
        self.values.size_in_bytes()
            + match &self.numbers {
                Numbers::Table(table) => table.size_in_bytes(),
                Numbers::Bloom(counters) => counters.size_in_bytes(),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix64;

    /// The sums of one hash compared with a direct transcription of the formula.
    #[test]
    fn sums_are_those_of_the_seed() {
        let params = BloomParams::for_bits(700, 7).unwrap().segmented();
        for hash in (0..100).map(mix64) {
            let mut values = Vec::new();
            params.positions(hash, params.all(), |position| values.push(position % 100));
            let weighted = |j: usize| values[j] as f64 / 2f64.powi(j as i32 + 1);
            let exact = (0..7).map(weighted).sum::<f64>() * 128.0;
            let truncated = (0..7).map(|j| weighted(j).floor()).sum::<f64>();
            assert_eq!(Weights::Equal.sum(&params, hash), values.iter().sum::<u64>());
            assert_eq!(Weights::Halving.sum(&params, hash), exact as u64);
            assert_eq!(Weights::HalvingTruncated.sum(&params, hash), truncated as u64);
            for weights in [Weights::Equal, Weights::Halving, Weights::HalvingTruncated] {
                let bits = weights.bits(&params, 3);
                assert!((8..20).contains(&bits) && 3 * weights.sum(&params, hash) < 1 << bits);
            }
        }
    }
}
