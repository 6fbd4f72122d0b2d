//! Memory for the cells of a column, which grows by whole groups.
//!
//! A growing vector would be moved, or take pages of 4 KiB one by one: clearing those took a third of the build time.
//! These pieces never move, and large ones come on large pages.

use ironbloom::memory::WordArray;

use crate::zeros;

/// Cells of the largest piece: 8 MiB.
const MAX_CELLS: usize = 1 << 21;
/// Cells in a word.
const IN_WORD: usize = size_of::<u64>() / size_of::<u32>();

/// Groups of cells, several to a piece of memory.
#[derive(Default)]
pub(crate) struct CellMemory {
    pieces: Vec<WordArray>,
    /// Of each group: its piece, its first cell there, and its length.
    groups: Vec<(usize, usize, usize)>,
    /// Cells of the last piece that are in use.
    taken: usize,
    len: u64,
}

impl CellMemory {
    /// Room for a group of this many cells, all zero.
    pub(crate) fn add(&mut self, cells: usize) -> &mut [u32] {
        let room = self.pieces.last().map_or(0, |piece| IN_WORD * piece.len());
        if self.pieces.is_empty() || room - self.taken < cells {
            // As much again as there is, so that a small column takes little memory.
            let wanted = (self.len as usize).min(MAX_CELLS).max(cells);
            self.pieces.push(zeros(wanted.div_ceil(IN_WORD)));
            self.taken = 0;
        }
        let (piece, start) = (self.pieces.len() - 1, self.taken);
        self.groups.push((piece, start, cells));
        self.taken += cells;
        self.len += cells as u64;
        &mut bytemuck::cast_slice_mut(&mut self.pieces[piece][..])[start..start + cells]
    }

    /// Cells of all groups.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The groups, in the order in which they came.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &[u32]> + Clone {
        self.groups.iter().map(|&(piece, start, cells)| {
            &bytemuck::cast_slice(&self.pieces[piece][..])[start..start + cells]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_come_back_as_they_were_written() {
        let mut memory = CellMemory::default();
        // Odd lengths end in the middle of a word, and some are larger than any piece that was planned.
        let lengths = [0, 3, 1, 70_000, 65_536, 7, 3 << 20, 65_535, 1 << 20, 1 << 20, 0, 5];
        for (number, &length) in (1u32..).zip(&lengths) {
            let group = memory.add(length);
            assert!(group.len() == length && group.iter().all(|&cell| cell == 0));
            group.fill(number);
        }
        assert_eq!(memory.len(), lengths.iter().sum::<usize>() as u64);
        assert_eq!(memory.groups().count(), lengths.len());
        for ((number, &length), group) in (1u32..).zip(&lengths).zip(memory.groups()) {
            assert!(group.len() == length && group.iter().all(|&cell| cell == number), "{number}");
        }
        let room: usize = memory.pieces.iter().map(|piece| IN_WORD * piece.len()).sum();
        assert!(room as u64 <= 2 * memory.len() + 2, "{room} cells of room");
    }
}
