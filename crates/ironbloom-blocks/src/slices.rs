//! Growing slices: one Bloom filter per block, stored transposed, so that one lookup covers 512 blocks.
//!
//! ```text
//! 512 blocks are a group                     block  0 1 2 3 …        511
//!                              bit 0 of their filters │ one line, 64 bytes │
//!                              bit 1                  │ one line           │
//!                              …                      │                    │
//!                              bit m-1                │ one line           │
//!
//! insert(value, block): in k lines, set the bit of the block          lookup(value): k lines, ANDed
//! ```
//!
//! (BIGSI and COBS, applied to tables instead of genomes.) Rows are added in place, one after the
//! other, and are found immediately. Sealed postings are smaller and faster, so slices hold only rows that are not yet
//! sealed.

use ironbloom::hash::{fastrange, mix64};

/// Blocks per group: the bits of a line.
const GROUP_BLOCKS: u32 = 512;
const LINE_WORDS: usize = 8;
/// Filter bits per row of a block, and lines read per lookup: 0.8 % of the blocks are named wrongly.
const BITS_PER_ROW: u64 = 10;
const PROBES: u32 = 7;

/// The slices of one column.
#[derive(Clone, Debug)]
pub struct Slices {
    /// Bits of a block's filter.
    bits: u64,
    /// The lines of each group.
    groups: Vec<Vec<[u64; LINE_WORDS]>>,
    /// Blocks with nulls, ascending.
    nulls: Vec<u32>,
}

/// The lines of a value.
fn probes(print: u32, bits: u64) -> impl Iterator<Item = usize> {
    let mut hash = u64::from(print);
    (0..PROBES).map(move |_| {
        hash = mix64(hash);
        fastrange(hash, bits) as usize
    })
}

impl Slices {
    /// Creates slices for blocks of this many rows.
    pub fn new(block_rows: u32) -> Self {
        let bits = BITS_PER_ROW * u64::from(block_rows);
        Self { bits, groups: Vec::new(), nulls: Vec::new() }
    }

    /// Adds a value of this block.
    pub fn insert(&mut self, print: u32, block: u32) {
        let group = (block / GROUP_BLOCKS) as usize;
        while self.groups.len() <= group {
            self.groups.push(vec![[0; LINE_WORDS]; self.bits as usize]);
        }
        let bit = block % GROUP_BLOCKS;
        for line in probes(print, self.bits) {
            self.groups[group][line][(bit / 64) as usize] |= 1 << (bit % 64);
        }
    }

    /// Adds a null of this block, which must not precede the last block with a null.
    pub fn insert_null(&mut self, block: u32) {
        if self.nulls.last() != Some(&block) {
            self.nulls.push(block);
        }
    }

    /// Returns the blocks that may hold a value with this fingerprint; no other block does.
    pub fn blocks(&self, print: u32) -> Vec<u32> {
        let mut blocks = Vec::new();
        for (group, lines) in (0..).zip(&self.groups) {
            let mut all = [u64::MAX; LINE_WORDS];
            for line in probes(print, self.bits) {
                all.iter_mut().zip(lines[line]).for_each(|(all, word)| *all &= word);
            }
            crate::block_set::each_bit(&all, |bit| blocks.push(group * GROUP_BLOCKS + bit));
        }
        blocks
    }

    /// Returns the blocks that hold nulls.
    pub fn null_blocks(&self) -> &[u32] {
        &self.nulls
    }

    /// Size in bytes.
    pub fn size_in_bytes(&self) -> usize {
        self.groups.len() * self.bits as usize * LINE_WORDS * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 512 distinct values per block at 10 bits and 7 probes: (1 - e^(-0.7))^7 = 0.00819 of the blocks are named
    /// wrongly. 1000 absent values query 1,024,000 blocks; the blocks' fill varies, so the bound is wide: 10 %.
    #[test]
    fn absent_values_are_found_in_eight_blocks_of_a_thousand() {
        let mut slices = Slices::new(512);
        for row in 0..1024 * 512u64 {
            slices.insert((mix64(row) >> 32) as u32, (row / 512) as u32);
        }
        for row in (0..1024 * 512u64).step_by(1009) {
            assert!(slices.blocks((mix64(row) >> 32) as u32).contains(&((row / 512) as u32)));
        }
        let wrong: usize =
            (0..1000).map(|i| slices.blocks((mix64(1 << 40 | i) >> 32) as u32).len()).sum();
        assert!((7_550..=9_230).contains(&wrong), "{wrong}");
    }
}
