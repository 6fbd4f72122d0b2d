//! Bytes that arrived in pieces.

/// A piece shorter than this is extended by the next one, so that single bytes do not cost an allocation each.
const LEAST_PIECE: usize = 64 << 10;

/// Bytes in pieces.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    pieces: Vec<Vec<u8>>,
    len: u64,
}

impl Pieces {
    /// Appends bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        match self.pieces.last_mut() {
            Some(last) if last.len() < LEAST_PIECE => last.extend_from_slice(bytes),
            _ => self.pieces.push(bytes.to_vec()),
        }
    }

    /// Number of bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes from `offset` on, at most `most`, and at most to the end of one piece. Empty past the end.
    pub fn piece(&self, mut offset: u64, most: usize) -> &[u8] {
        for part in &self.pieces {
            if offset < part.len() as u64 {
                let rest = &part[offset as usize..];
                return &rest[..rest.len().min(most)];
            }
            offset -= part.len() as u64;
        }
        &[]
    }

    /// Up to `most` bytes at the front.
    pub fn front(&self, most: usize) -> Vec<u8> {
        let mut front = Vec::with_capacity(most);
        for part in &self.pieces {
            front.extend_from_slice(&part[..part.len().min(most - front.len())]);
        }
        front
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_same_however_they_came() {
        let bytes: Vec<u8> = (0..300_000u32).map(|i| (i * 7 % 251) as u8).collect();
        for step in [1, 1000, 64 << 10, 200_000] {
            let mut pieces = Pieces::default();
            bytes.chunks(step).for_each(|chunk| pieces.push(chunk));
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
            assert_eq!((offset, pieces.len()), (bytes.len() as u64, bytes.len() as u64));
        }
        assert!(Pieces::default().is_empty());
    }
}
