//! Sets of block numbers: sorted, combined from the shortest on.

use crate::postings::List;

/// Calls back with the position of every set bit in these words.
pub(crate) fn each_bit(words: &[u64], mut call: impl FnMut(u32)) {
    for (i, &word) in words.iter().enumerate() {
        let mut rest = word;
        while rest != 0 {
            call(64 * i as u32 + rest.trailing_zeros());
            rest &= rest - 1;
        }
    }
}

/// Some or all blocks of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockSet {
    /// Nothing is known: any block may match.
    All,
    /// These blocks, ascending and distinct.
    Some(Vec<u32>),
}

impl BlockSet {
    /// No block.
    pub const NONE: Self = Self::Some(Vec::new());

    /// Returns true if there are no blocks.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Some(blocks) if blocks.is_empty())
    }

    /// Collects the blocks of a list.
    pub fn from_list(list: List<'_>) -> Self {
        match list {
            List::Empty => Self::NONE,
            List::Sequence(list) => {
                let mut blocks = Vec::with_capacity(list.room());
                list.each_some(|some| blocks.extend_from_slice(some));
                Self::Some(blocks)
            }
            List::Blocks(blocks) => Self::Some(blocks),
            List::Bitmap(words) => {
                let mut blocks = Vec::new();
                each_bit(words, |block| blocks.push(block));
                Self::Some(blocks)
            }
        }
    }

    /// Intersects with a list, which is read only as far as these blocks require.
    pub fn and_list(self, list: List<'_>) -> Self {
        let Self::Some(mut blocks) = self else { return Self::from_list(list) };
        match list {
            List::Empty => return Self::NONE,
            List::Blocks(other) => return Self::Some(blocks).and(Self::Some(other)),
            List::Bitmap(words) => {
                blocks.retain(|&block| words[(block / 64) as usize] >> (block % 64) & 1 == 1);
            }
            List::Sequence(list) if list.estimate / SEEK < blocks.len() as u64 => {
                let sieve = Sieve::new(&blocks);
                let mut other = Vec::with_capacity(list.room());
                list.each_some(|some| sieve.sift(some, &mut other));
                if other.len() as u64 * SEEK < blocks.len() as u64 {
                    return Self::Some(other).and(Self::Some(blocks));
                }
                keep_common(&mut blocks, &other);
            }
            List::Sequence(mut list) => {
                let mut next = None;
                blocks.retain(|&block| {
                    if next.is_none_or(|next| next < block) {
                        list.seek(block);
                        next = Some(list.next().unwrap_or(u32::MAX));
                    }
                    next == Some(block)
                });
            }
        }
        Self::Some(blocks)
    }

    /// Returns the blocks in both sets.
    pub fn and(self, other: Self) -> Self {
        let (Self::Some(left), Self::Some(right)) = (&self, &other) else {
            return if self == Self::All { other } else { self };
        };
        let (short, long) = if left.len() <= right.len() { (left, right) } else { (right, left) };
        let mut rest = &long[..];
        let mut both = short.clone();
        both.retain(|&block| {
            rest = &rest[gallop(rest, block)..];
            rest.first() == Some(&block)
        });
        Self::Some(both)
    }

    /// Returns the blocks in any of these sets.
    pub fn any_of(sets: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Vec::new();
        let mut several = false;
        for set in sets {
            let Self::Some(mut blocks) = set else { return Self::All };
            if all.is_empty() {
                all = blocks;
            } else {
                several |= !blocks.is_empty();
                all.append(&mut blocks);
            }
        }
        if several {
            all.sort_unstable();
            all.dedup();
        }
        Self::Some(all)
    }

    /// Like [`any_of`](Self::any_of), for any number of sets of blocks below `blocks`, with one flag per block.
    pub(crate) fn any_of_many<E>(
        sets: impl ExactSizeIterator<Item = Result<Self, E>>,
        blocks: u32,
    ) -> Result<Self, E> {
        const FEW: usize = 64;
        if sets.len() <= FEW {
            return Ok(Self::any_of(sets.collect::<Result<Vec<_>, _>>()?));
        }
        let mut seen = vec![false; blocks as usize];
        let mut unseen = blocks;
        for set in sets {
            let Self::Some(some) = set? else { return Ok(Self::All) };
            for block in some {
                unseen -= u32::from(!std::mem::replace(&mut seen[block as usize], true));
            }
            // Reading the other lists would take longer than reading the few blocks that they might spare.
            if unseen <= blocks / 64 {
                return Ok(Self::All);
            }
        }
        Ok(Self::Some((0..blocks).filter(|&block| seen[block as usize]).collect()))
    }
}

/// A list this many times as long is not read completely: seeking to each wanted block costs less.
const SEEK: u64 = 8;

/// A small filter over the low bits of block numbers. Two random lists have little in common, and a block that is not
/// in the sieve need not be compared.
struct Sieve([u64; SIEVE_WORDS]);

/// 4,096 bits, half a kilobyte: two lists of two hundred blocks leave ten to compare.
const SIEVE_WORDS: usize = 64;

impl Sieve {
    fn new(blocks: &[u32]) -> Self {
        let mut words = [0; SIEVE_WORDS];
        for &block in blocks {
            words[Self::word(block)] |= 1 << (block % 64);
        }
        Self(words)
    }

    #[inline]
    fn word(block: u32) -> usize {
        (block / 64) as usize % SIEVE_WORDS
    }

    /// Appends those of `some` (at most 64) that may be in the sieve.
    #[inline]
    fn sift(&self, some: &[u32], out: &mut Vec<u32>) {
        let mut kept = [0; 64];
        let mut count = 0;
        for &block in some {
            kept[count] = block;
            count += (self.0[Self::word(block)] >> (block % 64) & 1) as usize;
        }
        out.extend_from_slice(&kept[..count]);
    }
}

/// Keeps the blocks in both ascending lists. Which of two random lists advances next is unpredictable, so there is no
/// branch on it.
fn keep_common(blocks: &mut Vec<u32>, other: &[u32]) {
    let (mut i, mut j, mut kept) = (0, 0, 0);
    while i < blocks.len() && j < other.len() {
        let (left, right) = (blocks[i], other[j]);
        blocks[kept] = left;
        kept += usize::from(left == right);
        i += usize::from(left <= right);
        j += usize::from(right <= left);
    }
    blocks.truncate(kept);
}

/// Counts the elements of an ascending list that are less than `block`: galloping, then bisection.
fn gallop(blocks: &[u32], block: u32) -> usize {
    let mut step = 1;
    while step < blocks.len() && blocks[step] < block {
        step *= 2;
    }
    let (low, high) = (step / 2, (step + 1).min(blocks.len()));
    low + blocks[low..high].partition_point(|&other| other < block)
}

/// Approximate number of blocks in a list, out of `blocks`.
pub(crate) fn estimate(list: &List<'_>, blocks: u32) -> u64 {
    match list {
        List::Empty => 0,
        List::Sequence(list) => list.estimate,
        List::Bitmap(_) => u64::from(blocks) / 2,
        List::Blocks(list) => list.len() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn set() -> impl Strategy<Value = BTreeSet<u32>> {
        prop::collection::btree_set(0u32..300, 0..60)
    }

    fn blocks(set: &BTreeSet<u32>) -> BlockSet {
        BlockSet::Some(set.iter().copied().collect())
    }

    proptest! {
        #[test]
        fn blocks_combine_as_sets_do(a in set(), b in set(), c in set()) {
            let both: BTreeSet<u32> = a.intersection(&b).copied().collect();
            prop_assert_eq!(blocks(&a).and(blocks(&b)), blocks(&both));
            prop_assert_eq!(blocks(&a).and(BlockSet::All), blocks(&a));
            prop_assert_eq!(BlockSet::All.and(blocks(&a)), blocks(&a));
            let (BlockSet::Some(mut left), BlockSet::Some(right)) = (blocks(&a), blocks(&b)) else { unreachable!() };
            let mut sifted = Vec::new();
            right.chunks(64).for_each(|some| Sieve::new(&left).sift(some, &mut sifted));
            prop_assert!(both.iter().all(|block| sifted.contains(block)));
            keep_common(&mut left, &right);
            prop_assert_eq!(BlockSet::Some(left), blocks(&both));
            let any: BTreeSet<u32> = a.iter().chain(&b).chain(&c).copied().collect();
            prop_assert_eq!(BlockSet::any_of([&a, &b, &c].map(blocks)), blocks(&any));
            prop_assert_eq!(BlockSet::any_of([blocks(&a), BlockSet::All]), BlockSet::All);
        }

        #[test]
        fn a_bitmap_filters_as_its_set_does(a in set(), b in set()) {
            let mut words = [0u64; 5];
            for &block in &b {
                words[(block / 64) as usize] |= 1 << (block % 64);
            }
            let both: BTreeSet<u32> = a.intersection(&b).copied().collect();
            prop_assert_eq!(blocks(&a).and_list(List::Bitmap(&words)), blocks(&both));
            prop_assert_eq!(BlockSet::from_list(List::Bitmap(&words)), blocks(&b));
        }
    }
}
