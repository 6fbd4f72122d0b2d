//! Bytes that came in pieces, and are read once from the front. What was read is given back, so that a large filter is not
//! twice in memory while it is made from them.

use std::collections::VecDeque;
use std::io::{self, Read};

use xxhash_rust::xxh3::Xxh3;

/// A piece shorter than this takes what comes next: a sender of single bytes must not cost a piece of memory each.
const LEAST_PIECE: usize = 64 << 10;

/// Bytes in pieces.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    pieces: VecDeque<Vec<u8>>,
    /// Bytes of the first piece that were read.
    read: usize,
    len: u64,
}

impl Pieces {
    /// Appends bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        match self.pieces.back_mut() {
            Some(last) if last.len() < LEAST_PIECE => last.extend_from_slice(bytes),
            _ => self.pieces.push_back(bytes.to_vec()),
        }
    }

    /// Appends bytes that are there already.
    pub fn push_owned(&mut self, bytes: Vec<u8>) {
        self.len += bytes.len() as u64;
        self.pieces.push_back(bytes);
    }

    /// Bytes that are left to read.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The parts, one behind the other.
    fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let read = self.read;
        self.pieces.iter().enumerate().map(
            move |(i, piece)| {
                if i == 0 { &piece[read..] } else { &piece[..] }
            },
        )
    }

    /// XXH3-64 of all bytes.
    pub fn hash(&self) -> u64 {
        let mut hash = Xxh3::new();
        self.parts().for_each(|part| hash.update(part));
        hash.digest()
    }

    /// Bytes from `offset` on, `most` at most, as far as one part goes. Empty behind the end.
    pub fn piece(&self, mut offset: u64, most: usize) -> &[u8] {
        for part in self.parts() {
            if offset < part.len() as u64 {
                let rest = &part[offset as usize..];
                return &rest[..rest.len().min(most)];
            }
            offset -= part.len() as u64;
        }
        &[]
    }

    /// Up to `most` bytes at the front, which stay.
    pub fn front(&self, most: usize) -> Vec<u8> {
        let mut front = Vec::with_capacity(most);
        for part in self.parts() {
            front.extend_from_slice(&part[..part.len().min(most - front.len())]);
        }
        front
    }
}

impl PartialEq for Pieces {
    /// Equal bytes, however they came.
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.parts().flatten().eq(other.parts().flatten())
    }
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(first) = self.pieces.front() {
            if self.read == first.len() {
                self.pieces.pop_front();
                self.read = 0;
                continue;
            }
            let rest = &first[self.read..];
            let len = rest.len().min(buffer.len());
            buffer[..len].copy_from_slice(&rest[..len]);
            self.read += len;
            self.len -= len as u64;
            return Ok(len);
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_same_however_they_came() {
        let bytes: Vec<u8> = (0..300_000u32).map(|i| (i * 7 % 251) as u8).collect();
        let mut whole = Pieces::default();
        whole.push_owned(bytes.clone());
        for step in [1, 1000, 64 << 10, 200_000] {
            let mut pieces = Pieces::default();
            bytes.chunks(step).for_each(|chunk| pieces.push(chunk));
            assert!(pieces == whole && pieces.hash() == xxhash_rust::xxh3::xxh3_64(&bytes));
            // A piece that is long enough takes no more; one that is not takes one chunk more.
            let shortest = step.max(LEAST_PIECE);
            assert!(pieces.pieces.len() <= bytes.len().div_ceil(shortest), "{step}");
            assert_eq!(pieces.front(300), bytes[..300]);
            let mut offset = 0;
            while !pieces.piece(offset, 999).is_empty() {
                let piece = pieces.piece(offset, 999);
                assert_eq!(piece, &bytes[offset as usize..][..piece.len()]);
                offset += piece.len() as u64;
            }
            assert_eq!(offset, bytes.len() as u64);
            let mut read = vec![0; 70_000];
            pieces.read_exact(&mut read).unwrap();
            assert!(pieces.len() == bytes.len() as u64 - 70_000 && read == bytes[..70_000]);
            assert_eq!(pieces.front(5), bytes[70_000..70_005]);
            read.clear();
            pieces.read_to_end(&mut read).unwrap();
            assert!(read == bytes[70_000..] && pieces.is_empty());
        }
    }
}
