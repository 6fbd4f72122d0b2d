//! Transposes many blooms of 2048 bits into 2048 slices of many bits.

use super::LogsBloom;
use crate::format::foreign::ethereum::{BITS, BYTES};

/// Returns the slices of some blooms, one after the other: bit b of slice i is bit i of bloom b. Each slice has whole
/// words.
pub(super) fn slices(blooms: &[LogsBloom]) -> Vec<u8> {
    let bytes = slice_bytes(blooms.len());
    let mut slices = vec![0; bytes * BITS as usize];
    for (group, eight) in blooms.chunks(8).enumerate() {
        for byte in 0..BYTES {
            let mut rows = [0; 8];
            for (row, bloom) in rows.iter_mut().zip(eight) {
                *row = bloom.0[byte];
            }
            let columns = transposed(u64::from_le_bytes(rows)).to_le_bytes();
            let first = 8 * (BYTES - 1 - byte);
            for (bit, &column) in columns.iter().enumerate() {
                slices[(first + bit) * bytes + group] = column;
            }
        }
    }
    slices
}

/// Bytes per slice of this many blooms.
pub(super) fn slice_bytes(blooms: usize) -> usize {
    blooms.div_ceil(64) * 8
}

/// Transposes eight rows of eight bits: bit c of byte r becomes bit r of byte c. Three exchanges of ever larger squares
/// (Hacker's Delight, 7-3).
fn transposed(mut x: u64) -> u64 {
    for (shift, mask) in
        [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)]
    {
        let moved = (x ^ (x >> shift)) & mask;
        x ^= moved ^ (moved << shift);
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix64;

    #[test]
    fn every_bit_is_where_its_slice_and_its_bloom_say() {
        for count in [1, 7, 8, 9, 64, 65, 200] {
            let blooms: Vec<LogsBloom> = (0..count)
                .map(|b| LogsBloom(std::array::from_fn(|i| mix64(b * 1000 + i as u64) as u8)))
                .collect();
            let (slices, bytes) = (slices(&blooms), slice_bytes(blooms.len()));
            for (b, bloom) in blooms.iter().enumerate() {
                for i in 0..BITS as usize {
                    let (byte, mask) = super::super::place(i as u16);
                    let expected = bloom.0[byte] & mask != 0;
                    let found = slices[i * bytes + b / 8] >> (b % 8) & 1 == 1;
                    assert_eq!(found, expected, "bit {i} of bloom {b} of {count}");
                }
            }
        }
    }
}
