//! Memory for the cells of a column, growing by whole groups.
//!
//! A growing vector would be moved, or take 4 KiB pages one by one: clearing those took a third of the build time.
//! These pieces never move, large ones use large pages, and the next column reuses the pieces of the previous one.

use ironbloom::memory::WordArray;

use crate::zeros;

/// Cells of the largest piece: 8 MiB.
const MAX_CELLS: usize = 1 << 21;
/// Cells in a word.
const IN_WORD: usize = size_of::<u64>() / size_of::<u32>();

/// Memory of one column's cells, to be reused for another column.
#[derive(Default)]
pub struct CellPieces(Vec<WordArray>);

impl CellPieces {
    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|piece| size_of_val(&piece[..]) as u64).sum()
    }

    /// Adds the memory of another column.
    pub fn add(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Splits off about this many bytes.
    pub fn take(&mut self, bytes: u64) -> Self {
        let mut taken = Self::default();
        while taken.bytes() < bytes {
            taken.0.extend(self.0.pop());
        }
        taken
    }
}

/// Groups of cells, several to a piece of memory.
#[derive(Default)]
pub(crate) struct CellMemory {
    pieces: Vec<WordArray>,
    /// Pieces to use before allocating new ones.
    spare: CellPieces,
    /// Piece, first cell in the piece, and length of each group.
    groups: Vec<(usize, usize, usize)>,
    /// Cells of the last piece in use.
    taken: usize,
    len: u64,
}

impl CellMemory {
    /// Starts with the memory of an earlier column.
    pub(crate) fn with_spare(spare: CellPieces) -> Self {
        Self { spare, ..Self::default() }
    }

    /// Returns all memory, for another column.
    pub(crate) fn into_pieces(self) -> CellPieces {
        let mut pieces = self.spare;
        pieces.0.extend(self.pieces);
        pieces
    }

    /// Size of all pieces in bytes, in use or not.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = |piece: &WordArray| size_of_val(&piece[..]) as u64;
        self.pieces.iter().map(bytes).sum::<u64>() + self.spare.bytes()
    }

    /// Allocates room for a group of this many cells, with arbitrary content.
    pub(crate) fn add(&mut self, cells: usize) -> &mut [u32] {
        let room = self.pieces.last().map_or(0, |piece| IN_WORD * piece.len());
        if self.pieces.is_empty() || room - self.taken < cells {
            let piece = self.piece(cells);
            self.pieces.push(piece);
            self.taken = 0;
        }
        let (piece, start) = (self.pieces.len() - 1, self.taken);
        self.groups.push((piece, start, cells));
        self.taken += cells;
        self.len += cells as u64;
        &mut bytemuck::cast_slice_mut(&mut self.pieces[piece][..])[start..start + cells]
    }

    /// Returns a piece with room for this many cells.
    fn piece(&mut self, cells: usize) -> WordArray {
        let spare = &mut self.spare.0;
        let large_enough = (0..spare.len()).filter(|&place| IN_WORD * spare[place].len() >= cells);
        match large_enough.min_by_key(|&place| spare[place].len()) {
            Some(place) => spare.swap_remove(place),
            // Doubles the memory, so that a small column takes little.
            None => {
                let wanted = (self.len as usize).min(MAX_CELLS).max(cells);
                zeros(wanted.div_ceil(IN_WORD))
            }
        }
    }

    /// Cells of all groups.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The groups, in order of arrival.
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
        let mut spare = CellPieces::default();
        for round in 0..2 {
            let mut memory = CellMemory::with_spare(std::mem::take(&mut spare));
            let before = memory.bytes();
            // Odd lengths end in the middle of a word, and some are larger than any planned piece.
            let lengths = [0, 3, 1, 70_000, 65_536, 7, 3 << 20, 65_535, 1 << 20, 1 << 20, 0, 5];
            for (number, &length) in (1u32..).zip(&lengths) {
                let group = memory.add(length);
                assert_eq!(group.len(), length);
                group.fill(number);
            }
            assert_eq!(memory.len(), lengths.iter().sum::<usize>() as u64);
            assert_eq!(memory.groups().count(), lengths.len());
            for ((number, &length), group) in (1u32..).zip(&lengths).zip(memory.groups()) {
                let is_as_written = group.iter().all(|&cell| cell == number);
                assert!(group.len() == length && is_as_written, "{number}");
            }
            let room = memory.bytes() / size_of::<u32>() as u64;
            assert!(room <= 2 * memory.len() + 2, "{room} cells of room");
            // The second time, everything fits into the memory of the first round.
            assert!(round == 0 || memory.bytes() == before, "{before} bytes became {room} cells");
            spare = memory.into_pieces();
        }
        let all = spare.bytes();
        let taken = spare.take(all / 2).bytes();
        assert!(taken >= all / 2 && spare.bytes() == all - taken);
    }
}
