//! An exact set of integers below a bound, one bit each.
//!
//! ```text
//! integer i  ->  word i / 64, bit i % 64          0 <= i < bound
//! ```
//!
//! A bound of 10^8 takes 11.92 MiB however many integers are in the set; no other structure here is exact.
//! `i == bound`, one past the end, is rejected.

mod kind;

pub(super) use kind::PLANS;

use crate::bits::{address, count_ones_in};
use crate::error::{DecodeError, Mismatch, ParamError, check_range};
use crate::format::Kind;
use crate::format::native::{Image, Parts, Persist};
use crate::hash::HashFn;
use crate::kernel::Words;
use crate::kinds::check_lengths;

use std::fmt;

/// An integer outside the bound of a [`Bitmap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfBounds {
    /// The integer.
    pub index: u64,
    /// The bound it exceeds or equals.
    pub bound: u64,
}

impl fmt::Display for OutOfBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is outside the bitmap, which holds integers below {}", self.index, self.bound)
    }
}

impl std::error::Error for OutOfBounds {}

/// An exact set of integers in `0..bound`.
///
/// ```
/// let mut present = ironbloom::Bitmap::new(100)?;
/// assert_eq!(present.insert(42), Ok(true));
/// assert!(present.contains(42) && !present.contains(43));
/// assert!(present.insert(100).is_err());
/// # Ok::<(), ironbloom::ParamError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Bitmap {
    bound: u64,
    len: u64,
    words: Words,
}

impl Bitmap {
    /// Creates the empty set over `0..bound`. Fails if allocation fails or the bound is 0.
    pub fn new(bound: u64) -> Result<Self, ParamError> {
        check_range("bound", bound, 1, u64::MAX >> 4)?;
        Ok(Self { bound, len: 0, words: Words::zeroed(bound)? })
    }

    fn checked(&self, index: u64) -> Result<(usize, u64), OutOfBounds> {
        if index < self.bound {
            Ok(address(index))
        } else {
            Err(OutOfBounds { index, bound: self.bound })
        }
    }

    /// Adds an integer. Returns true if it was new.
    pub fn insert(&mut self, index: u64) -> Result<bool, OutOfBounds> {
        let (word, mask) = self.checked(index)?;
        let word = &mut self.words.to_mut()[word];
        let new = *word & mask == 0;
        *word |= mask;
        self.len = (self.len + u64::from(new)).min(self.bound); // a file's count cannot be trusted
        Ok(new)
    }

    /// Removes an integer. Returns true if it was in the set.
    pub fn remove(&mut self, index: u64) -> Result<bool, OutOfBounds> {
        let (word, mask) = self.checked(index)?;
        let word = &mut self.words.to_mut()[word];
        let present = *word & mask != 0;
        *word &= !mask;
        self.len = self.len.saturating_sub(u64::from(present));
        Ok(present)
    }

    /// Returns true if the integer is in the set. One outside the bound is not.
    #[inline]
    pub fn contains(&self, index: u64) -> bool {
        self.checked(index).is_ok_and(|(word, mask)| self.words[word] & mask != 0)
    }

    /// Adds many integers. Those before one out of bounds stay added.
    pub fn insert_all(&mut self, indices: &[u64]) -> Result<(), OutOfBounds> {
        indices.iter().try_for_each(|&index| self.insert(index).map(drop))
    }

    /// Sets `found[i]` to whether `indices[i]` is in the set.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[track_caller]
    pub fn contains_all(&self, indices: &[u64], found: &mut [bool]) {
        check_lengths(indices.len(), found.len());
        for (&index, found) in indices.iter().zip(found) {
            *found = self.contains(index);
        }
    }

    /// The bound: all integers are below it.
    pub fn bound(&self) -> u64 {
        self.bound
    }

    /// Number of integers in the set.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes all integers.
    pub fn clear(&mut self) {
        self.words.clear();
        self.len = 0;
    }

    /// Size of the bit array in bytes.
    pub fn size_in_bytes(&self) -> usize {
        self.words.size_in_bytes()
    }

    /// Number of integers in the set below `index`. Counts words: linear in `index`. For many ranks see [`Rank`].
    pub fn rank(&self, index: u64) -> u64 {
        count_ones_in(&self.words, 0, index.min(self.bound))
    }

    /// The integers of the set in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.words.iter().enumerate().flat_map(|(i, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| u64::from(rest.trailing_zeros()))?;
                rest &= rest - 1;
                Some(i as u64 * 64 + bit)
            })
        })
    }

    /// Adds the integers of `other`.
    pub fn union_with(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.combine(other, |a, b| a | b)
    }

    /// Keeps the integers that are also in `other`.
    pub fn intersect_with(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.combine(other, |a, b| a & b)
    }

    /// Removes the integers that are in `other`.
    pub fn difference_with(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.combine(other, |a, b| a & !b)
    }

    /// Keeps the integers that are in exactly one of the two sets.
    pub fn symmetric_difference_with(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.combine(other, |a, b| a ^ b)
    }

    /// Fails, changing nothing, if the bounds differ.
    fn combine(&mut self, other: &Self, op: impl Fn(u64, u64) -> u64) -> Result<(), Mismatch> {
        Mismatch::unless_equal("bound", self.bound, other.bound)?;
        self.words.combine(&other.words, op);
        self.len = self.words.count_ones();
        Ok(())
    }

    /// Builds a rank index for this set, for many queries.
    pub fn ranks(&self) -> Rank<'_> {
        Rank::new(self)
    }
}

/// Words between two stored counts: one cache line, 12.5 % of the bitmap's size.
const RANK_WORDS: usize = 8;

/// Rank and select in constant and logarithmic time: one count for each 512 bits.
pub struct Rank<'a> {
    bitmap: &'a Bitmap,
    /// Ones before each line of words, followed by their total.
    before: Vec<u64>,
}

impl<'a> Rank<'a> {
    fn new(bitmap: &'a Bitmap) -> Self {
        let mut total = 0;
        let mut before = vec![0];
        for line in bitmap.words.chunks(RANK_WORDS) {
            total += line.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
            before.push(total);
        }
        Self { bitmap, before }
    }

    /// Number of integers in the set below `index`.
    pub fn rank(&self, index: u64) -> u64 {
        let index = index.min(self.bitmap.bound);
        let line = (index / (64 * RANK_WORDS as u64)) as usize;
        self.before[line]
            + count_ones_in(&self.bitmap.words, line as u64 * 64 * RANK_WORDS as u64, index)
    }

    /// Returns the integer with exactly `rank` smaller ones in the set, if there is one.
    pub fn select(&self, rank: u64) -> Option<u64> {
        if rank >= *self.before.last()? {
            return None;
        }
        let line = self.before.partition_point(|&before| before <= rank) - 1;
        let mut left = rank - self.before[line];
        for word in line * RANK_WORDS.. {
            let mut bits = self.bitmap.words[word];
            let ones = u64::from(bits.count_ones());
            if left < ones {
                for _ in 0..left {
                    bits &= bits - 1;
                }
                return Some(word as u64 * 64 + u64::from(bits.trailing_zeros()));
            }
            left -= ones;
        }
        None
    }
}

impl Persist for Bitmap {
    fn encode(&self) -> Image<'_> {
        Image::new(Kind::Bitmap, HashFn::External { id: 0 }, self.len, self.bound)
            .section(&self.words)
    }

    fn decode(parts: Parts) -> Result<Self, DecodeError> {
        let header = parts.expect_kind(Kind::Bitmap)?;
        let (bound, len) = (header.capacity, header.len);
        let [] = header.first_params()?;
        if header.hash_fn != (HashFn::External { id: 0 }) {
            let value = header.hash_fn.seed();
            return Err(DecodeError::Invalid { what: "hash function of a bitmap", value });
        }
        check_range("bound", bound, 1, u64::MAX >> 4)?;
        if len > bound {
            return Err(DecodeError::Invalid { what: "number of keys", value: len });
        }
        let words = parts.words_of(bound)?;
        Ok(Self { bound, len, words })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix64;

    fn sample(bound: u64, count: u64) -> Bitmap {
        let mut bitmap = Bitmap::new(bound).unwrap();
        for i in 0..count {
            bitmap.insert(mix64(i) % bound).unwrap();
        }
        bitmap
    }

    #[test]
    fn ranks_and_selects_agree_with_counting() {
        for (bound, count) in [(1, 1), (64, 20), (513, 100), (5000, 2500), (100_000, 50)] {
            let bitmap = sample(bound, count);
            let members: Vec<u64> = bitmap.iter().collect();
            let ranks = bitmap.ranks();
            for index in (0..bound + 2).step_by(7).chain([bound, u64::MAX]) {
                let naive = members.iter().filter(|&&m| m < index).count() as u64;
                assert_eq!(
                    (bitmap.rank(index), ranks.rank(index)),
                    (naive, naive),
                    "{bound} {index}"
                );
            }
            for (rank, &member) in members.iter().enumerate() {
                assert_eq!(ranks.select(rank as u64), Some(member));
            }
            assert_eq!(ranks.select(members.len() as u64), None);
        }
    }

    #[test]
    fn the_bound_itself_is_outside() {
        for bound in [1, 64, 100, 512] {
            let mut bitmap = Bitmap::new(bound).unwrap();
            assert_eq!(bitmap.insert(bound - 1), Ok(true));
            assert_eq!(bitmap.insert(bound), Err(OutOfBounds { index: bound, bound }));
            assert_eq!(bitmap.remove(bound), Err(OutOfBounds { index: bound, bound }));
            assert!(!bitmap.contains(bound) && !bitmap.contains(u64::MAX));
            assert_eq!(bitmap.len(), 1);
        }
    }

    #[test]
    fn a_hundred_million_integers_take_a_bit_each() {
        let bytes = Bitmap::new(100_000_000).unwrap().size_in_bytes();
        assert_eq!((bytes as f64 / 1048576.0 * 100.0).round() / 100.0, 11.92);
    }
}
