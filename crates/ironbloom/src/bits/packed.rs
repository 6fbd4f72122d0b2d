//! Numbers of any width side by side: the fingerprints of the cuckoo, d-left and fuse filters.
//!
//! ```text
//! width 12    | 0·········· | 1·········· | 2·········· | …      number i is bits 12·i .. 12·i + 12
//! ```
//!
//! A number may straddle two words; a spare word after the last ensures that two can always be read.

use crate::error::ParamError;
use crate::kernel::{Words, prefetch};

/// Maximum width of a number. Two adjacent words always hold one, wherever it starts.
pub(crate) const MAX_WIDTH: u32 = 64;

/// Minimum number of bits that [`window`] reads, wherever it starts in a byte.
pub(crate) const WINDOW_BITS: u32 = 57;

/// Returns the bits from this one on as the low bits of the result: 64 - bit mod 8 of them, at least [`WINDOW_BITS`];
/// the bits above are unspecified. One unaligned load, where joining two aligned words takes two and twice the
/// instructions.
///
/// # Panics
///
/// If the eight bytes starting with the bit's byte are not all inside the array.
#[inline]
pub(crate) fn window(words: &[u64], bit: u64) -> u64 {
    if cfg!(target_endian = "little") {
        let bytes: &[u8] = bytemuck::cast_slice(words);
        let start = (bit / 8) as usize;
        let Some(eight) = bytes.get(start..start + 8) else { outside() };
        u64::from_le_bytes(eight.try_into().expect("eight bytes")) >> (bit % 8)
    } else {
        let (word, shift) = ((bit / 64) as usize, bit % 64);
        words[word] >> shift | (words[word + 1] << 1) << (63 - shift)
    }
}

/// Minimum number of bits that [`narrow`] reads, wherever it starts in a byte.
pub(crate) const NARROW_BITS: u32 = 9;

/// Like [`window`], but at least [`NARROW_BITS`] bits with a two-byte load.
#[inline]
pub(crate) fn narrow(words: &[u64], bit: u64) -> u64 {
    if cfg!(target_endian = "little") {
        let bytes: &[u8] = bytemuck::cast_slice(words);
        let start = (bit / 8) as usize;
        let Some(two) = bytes.get(start..start + 2) else { outside() };
        u64::from(u16::from_le_bytes(two.try_into().expect("two bytes"))) >> (bit % 8)
    } else {
        window(words, bit)
    }
}

/// Returns byte `index` of the array.
#[inline]
pub(crate) fn byte(words: &[u64], index: u64) -> u8 {
    if cfg!(target_endian = "little") {
        bytemuck::cast_slice::<u64, u8>(words)[index as usize]
    } else {
        (words[(index / 8) as usize] >> (8 * (index % 8))) as u8
    }
}

/// Panics without a position: formatting numbers would keep them in registers during every lookup.
#[cold]
#[inline(never)]
fn outside() -> ! {
    panic!("bits outside the array")
}

/// Flips those of the bits read by [`window`] that are set in `bits`.
///
/// # Panics
///
/// If the eight bytes starting with the bit's byte are not all inside the array.
#[inline]
pub(crate) fn flip(words: &mut [u64], bit: u64, bits: u64) {
    if cfg!(target_endian = "little") {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(words);
        let start = (bit / 8) as usize;
        let Some(eight) = bytes.get_mut(start..start + 8) else { outside() };
        let eight: &mut [u8; 8] = eight.try_into().expect("eight bytes");
        *eight = (u64::from_le_bytes(*eight) ^ bits << (bit % 8)).to_le_bytes();
    } else {
        let (word, shift) = ((bit / 64) as usize, bit % 64);
        words[word] ^= bits << shift;
        words[word + 1] ^= (bits >> 1) >> (63 - shift);
    }
}

/// An array of `len` numbers of `width` bits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Packed {
    words: Words,
    width: u32,
    mask: u64,
}

impl Packed {
    /// Bits of storage for `len` numbers, including the spare word. `None` if that exceeds 64 bits.
    pub(crate) fn bits_for(len: u64, width: u32) -> Option<u64> {
        len.checked_mul(u64::from(width))?.checked_add(64)
    }

    /// Creates an array of `len` zeros.
    pub(crate) fn zeroed(len: u64, width: u32) -> Result<Self, ParamError> {
        let bits = Self::bits_for(len, width).ok_or(ParamError::Memory { bytes: u64::MAX })?;
        Ok(Self::from_words(Words::zeroed(bits)?, width))
    }

    /// Takes words with room for [`bits_for`](Self::bits_for) bits.
    pub(crate) fn from_words(words: Words, width: u32) -> Self {
        debug_assert!((1..=MAX_WIDTH).contains(&width));
        Self { words, width, mask: u64::MAX >> (64 - width) }
    }

    #[inline]
    pub(crate) fn get(&self, index: u64) -> u64 {
        self.row::<1>(index)[0]
    }

    /// Returns `N` consecutive numbers. The array is accessed once, not N times.
    #[inline]
    pub(crate) fn row<const N: usize>(&self, index: u64) -> [u64; N] {
        let words: &[u64] = &self.words;
        let width = u64::from(self.width);
        let mut bit = index * width;
        std::array::from_fn(|_| {
            let (word, shift) = ((bit / 64) as usize, bit % 64);
            bit += width;
            // Shifting the high word in two steps keeps a shift by 64 out of the expression.
            let high = (words[word + 1] << 1) << (63 - shift);
            (words[word] >> shift | high) & self.mask
        })
    }

    #[inline]
    pub(crate) fn set(&mut self, index: u64, value: u64) {
        debug_assert_eq!(value & !self.mask, 0);
        let (word, shift) = self.address(index);
        let mask = self.mask;
        let words = self.words.to_mut();
        words[word] = words[word] & !(mask << shift) | value << shift;
        let high = (mask >> 1) >> (63 - shift);
        words[word + 1] = words[word + 1] & !high | (value >> 1) >> (63 - shift);
    }

    #[inline]
    pub(crate) fn touch(&self, index: u64) {
        prefetch(&self.words, self.address(index).0);
    }

    #[inline]
    fn address(&self, index: u64) -> (usize, u64) {
        let bit = index * u64::from(self.width);
        ((bit / 64) as usize, bit % 64)
    }

    pub(crate) fn width(&self) -> u32 {
        self.width
    }

    pub(crate) fn words(&self) -> &Words {
        &self.words
    }

    #[inline]
    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        self.words.to_mut()
    }

    /// Gives access for filling many numbers that are still zero.
    pub(crate) fn filler(&mut self) -> Filler<'_> {
        Filler { words: self.words.to_mut(), width: u64::from(self.width) }
    }

    pub(crate) fn clear(&mut self) {
        self.words.clear();
    }
}

/// The words of an array of numbers of at most [`WINDOW_BITS`] bits, for writing.
pub(crate) struct Filler<'a> {
    words: &'a mut [u64],
    width: u64,
}

impl Filler<'_> {
    /// Returns a number as the low bits of the result; the bits above are unspecified.
    #[inline]
    pub(crate) fn window(&self, index: u64) -> u64 {
        window(self.words, index * self.width)
    }

    /// Writes a number whose place is still zero.
    #[inline]
    pub(crate) fn fill(&mut self, index: u64, value: u64) {
        let bit = index * self.width;
        debug_assert_eq!(value >> self.width, 0);
        flip(self.words, bit, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix64;

    #[test]
    fn every_width_holds_what_was_put_and_disturbs_no_neighbour() {
        for width in 1..=MAX_WIDTH {
            let mut packed = Packed::zeroed(200, width).unwrap();
            let mut model = vec![0u64; 200];
            for step in 0..1000u64 {
                let index = mix64(step) % 200;
                let value = mix64(step << 20) >> (64 - width);
                packed.set(index, value);
                model[index as usize] = value;
            }
            let all: Vec<u64> = (0..200).map(|i| packed.get(i)).collect();
            assert_eq!(all, model, "width {width}");
            assert_eq!(packed.row::<8>(17), model[17..25], "width {width}");
        }
    }

    #[test]
    fn a_window_shows_the_bits_from_any_bit_on() {
        let words: Vec<u64> = (0..4).map(mix64).collect();
        let bit_at = |bit: u64| words[(bit / 64) as usize] >> (bit % 64) & 1;
        for start in 0..=128 {
            let seen = window(&words, start);
            for i in 0..u64::from(WINDOW_BITS) {
                assert_eq!(seen >> i & 1, bit_at(start + i), "bit {i} of the window at {start}");
            }
        }
    }

    #[test]
    fn flipping_bits_of_a_window_flips_no_others() {
        let words: Vec<u64> = (0..4).map(mix64).collect();
        for start in 0..=128 {
            let bits = mix64(start) >> (start % 8);
            let mut flipped = words.clone();
            flip(&mut flipped, start, bits);
            assert_eq!(window(&flipped, start), window(&words, start) ^ bits);
            flip(&mut flipped, start, bits);
            assert_eq!(flipped, words);
            flip(&mut flipped, start, bits & 1);
            let differing = words.iter().zip(&flipped).map(|(a, b)| (a ^ b).count_ones());
            assert_eq!(u64::from(differing.sum::<u32>()), bits & 1);
        }
    }

    #[test]
    #[should_panic]
    fn a_flip_behind_the_end_is_a_panic_and_not_a_write() {
        flip(&mut [1, 2, 3], 3 * 64 - 56, 1);
    }

    #[test]
    fn narrow_windows_and_bytes_show_what_windows_show() {
        let words: Vec<u64> = (0..4).map(mix64).collect();
        for start in 0..=128 {
            let mask = (1 << NARROW_BITS) - 1;
            assert_eq!(narrow(&words, start) & mask, window(&words, start) & mask);
        }
        for index in 0..24 {
            assert_eq!(u64::from(byte(&words, index)), window(&words, 8 * index) & 255);
        }
    }

    #[test]
    fn what_a_filler_wrote_is_what_set_would_have_written() {
        for width in 1..=WINDOW_BITS {
            let (mut filled, mut set) = (Packed::zeroed(99, width), Packed::zeroed(99, width));
            let (filled, set) = (filled.as_mut().unwrap(), set.as_mut().unwrap());
            let mut filler = filled.filler();
            for index in (0..99).map(|i| i * 31 % 99) {
                let value = mix64(index) >> (64 - width);
                filler.fill(index, value);
                set.set(index, value);
                assert_eq!(filler.window(index) << (64 - width) >> (64 - width), value);
            }
            assert_eq!(filled, set, "width {width}");
        }
    }

    #[test]
    #[should_panic]
    fn a_window_behind_the_end_is_a_panic_and_not_a_read() {
        window(&[1, 2, 3], 3 * 64 - 56);
    }

    #[test]
    fn the_last_number_has_its_spare_word() {
        for len in 1..=64 {
            let mut packed = Packed::zeroed(len, 64).unwrap();
            packed.set(len - 1, u64::MAX);
            assert_eq!(packed.get(len - 1), u64::MAX);
        }
    }
}
