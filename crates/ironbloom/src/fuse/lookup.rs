//! Lookups: from a hash to its cells, and from what they hold to the answer.
//!
//! In the cache a lookup is as fast as its instructions are few, since the processor then overlaps more of them. A cell
//! is read by one load that may go past its end ([`window`]); cells of a byte, a width often chosen, need less.

use super::{Layout, MAX_WIDTH, mix, second};
use crate::ahead::batch_ahead;
use crate::kernel::prefetch;
use crate::packed::{Packed, WINDOW_BITS, window};

const _: () = assert!(MAX_WIDTH <= WINDOW_BITS);

/// A filter opened for lookups.
pub(super) struct Reader<'a, const N: usize> {
    layout: Layout,
    words: &'a [u64],
    width: u32,
}

/// What a lookup asks: which cells, and the bits that begin with what their exclusive or must be.
#[derive(Clone, Copy)]
struct Question<const N: usize> {
    cells: [u64; N],
    second: u64,
}

impl<'a, const N: usize> Reader<'a, N> {
    #[inline]
    pub(super) fn new(layout: Layout, cells: &'a Packed) -> Self {
        Self { layout, words: cells.words(), width: cells.width() }
    }

    #[inline]
    pub(super) fn contains(&self, hash: u64) -> bool {
        self.answer(&self.question(hash))
    }

    pub(super) fn contains_all(&self, hashes: &[u64], found: &mut [bool]) {
        batch_ahead(hashes, found, |hash| self.ask(hash), |question| self.answer(question));
    }

    #[inline]
    fn question(&self, hash: u64) -> Question<N> {
        let mixed = mix(hash, self.layout.seed);
        Question { cells: self.layout.cells_of(mixed), second: second(mixed) }
    }

    /// A question whose lines are on their way.
    #[inline]
    fn ask(&self, hash: u64) -> Question<N> {
        let question = self.question(hash);
        for cell in question.cells {
            prefetch(self.words, (cell * u64::from(self.width) / 64) as usize);
        }
        question
    }

    #[inline]
    fn answer(&self, question: &Question<N>) -> bool {
        if self.width == 8 && cfg!(target_endian = "little") {
            let bytes: &[u8] = bytemuck::cast_slice(self.words);
            let xor = question.cells.iter().fold(0, |xor, cell| xor ^ bytes[*cell as usize]);
            return xor == (question.second >> 56) as u8;
        }
        let unused = 64 - self.width;
        let read = |cell: &u64| window(self.words, cell * u64::from(self.width));
        let xor = question.cells.iter().fold(0, |xor, cell| xor ^ read(cell));
        (xor << unused ^ question.second) >> unused == 0
    }
}
