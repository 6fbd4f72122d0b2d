//! A file that arrives in pieces and becomes a filter with the last byte.
//!
//! ```text
//! header   256 bytes, all at once          checked: gives the length of the file
//! payload  pieces of any length            written to their place in the filter, checksums updated
//! table    checksums and their seal        compared at the end
//! ```
//!
//! The work is done as bytes arrive. Finishing only compares the table, so a program that must not pause for long, such
//! as a server, can receive a filter of any size.

use std::fmt;

use xxhash_rust::xxh3::Xxh3;

use super::header::{CHECKSUM_AT, CHUNK_BYTES, HEADER_BYTES, Header, get64};
use super::piece::Piece;
use super::read::table_damage;
use super::{Parts, Persist, header_of};
use crate::error::{DecodeError, ParamError};
use crate::kernel::WordsBuilder;

/// The part of a file received so far. See the module documentation.
#[derive(Clone)]
pub struct Incoming {
    head: [u8; HEADER_BYTES],
    header: Header,
    words: WordsBuilder,
    /// Checksum of the incomplete chunk.
    chunk: Xxh3,
    /// Checksums of the complete chunks.
    checksums: Vec<u8>,
    /// The table as received.
    table: Vec<u8>,
}

impl Incoming {
    /// Size of the header, which is needed to start.
    pub const HEADER_BYTES: usize = HEADER_BYTES;

    /// Starts with a header. Allocates memory for at most `room` bytes of the payload: those known to arrive. Later
    /// pieces may ask for more.
    pub fn begin(head: &[u8; HEADER_BYTES], room: u64) -> Result<Self, DecodeError> {
        let header = header_of(head)?;
        let words = WordsBuilder::new(whole_lines(room).min(header.payload_bytes))?;
        Ok(Self {
            head: *head,
            header,
            words,
            chunk: Xxh3::with_seed(0),
            checksums: Vec::new(),
            table: Vec::new(),
        })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes received, including the header.
    pub fn arrived(&self) -> u64 {
        HEADER_BYTES as u64 + self.words.filled_bytes() + self.table.len() as u64
    }

    /// Returns true if all bytes have arrived.
    pub fn is_whole(&self) -> bool {
        self.arrived() == self.header.file_bytes()
    }

    /// Memory taken by the arrays, in bytes.
    pub fn size_in_bytes(&self) -> u64 {
        self.words.room_bytes() + (self.checksums.len() + self.table.len()) as u64
    }

    /// Takes the next bytes, up to the end of the file, and returns how many it took. If there was too little room,
    /// memory is allocated for `room` bytes of the payload, or for as many as there are now. Returns `Err`, changing
    /// nothing, if that fails.
    pub fn take(&mut self, bytes: &[u8], room: u64) -> Result<usize, ParamError> {
        let missing = self.header.payload_bytes - self.words.filled_bytes();
        let (payload, after) = bytes.split_at(at_most(bytes.len(), missing));
        self.words.make_room(payload.len(), whole_lines(room).min(self.header.payload_bytes))?;
        let mut rest = payload;
        while !rest.is_empty() {
            let in_chunk = (self.words.filled_bytes() % CHUNK_BYTES as u64) as usize;
            let (part, next) = rest.split_at(rest.len().min(CHUNK_BYTES - in_chunk));
            self.chunk.update(part);
            self.words.push_bytes(part);
            rest = next;
            let filled = self.words.filled_bytes();
            let is_complete = filled.is_multiple_of(CHUNK_BYTES as u64);
            if is_complete || filled == self.header.payload_bytes {
                self.checksums.extend_from_slice(&self.chunk.digest().to_le_bytes());
                self.chunk = Xxh3::with_seed(self.checksums.len() as u64 / 8);
            }
        }
        let missing = self.header.file_bytes() - self.arrived();
        let table = &after[..at_most(after.len(), missing)];
        self.table.extend_from_slice(table);
        Ok(payload.len() + table.len())
    }

    /// Returns at most `most` of the bytes received, starting at `offset`. Empty past the last one.
    pub fn piece(&self, offset: u64, most: usize) -> Vec<u8> {
        let end = self.arrived().min(offset.saturating_add(most as u64));
        if offset >= end {
            return Vec::new();
        }
        let mut piece = Piece::of(offset..end);
        piece.pass(&self.head);
        piece.pass_words(self.words.filled_words());
        piece.pass(&self.table);
        piece.into_bytes()
    }

    /// Returns the filter. `Err` if bytes are missing or damaged, or are another kind of filter.
    pub fn finish<T: Persist>(self) -> Result<T, DecodeError> {
        if !self.is_whole() {
            let (expected, found) = (self.header.file_bytes(), self.arrived());
            return Err(DecodeError::Length { expected, found });
        }
        let checksum = get64(&self.head, CHECKSUM_AT);
        let damage = table_damage(&self.header, checksum, &self.checksums, &self.table);
        match damage.into_iter().next() {
            Some(damage) => Err(damage),
            None => T::decode(Parts { header: self.header, words: self.words.finish() }),
        }
    }
}

fn at_most(len: usize, most: u64) -> usize {
    usize::try_from(most).map_or(len, |most| len.min(most))
}

/// `bytes` rounded up to whole lines, of which the payload consists.
fn whole_lines(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(crate::kernel::LINE_BYTES as u64).unwrap_or(u64::MAX)
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (arrived, all) = (self.arrived(), self.header.file_bytes());
        write!(f, "Incoming({arrived} of {all} bytes, {:?})", self.header.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix64;
    use crate::{BlockedBloom, Bloom, Cuckoo, Scalable, Windowed};

    fn hashes() -> Vec<u64> {
        (0..30_000).map(mix64).collect()
    }

    fn begin(bytes: &[u8], room: u64) -> Result<Incoming, DecodeError> {
        Incoming::begin(bytes[..HEADER_BYTES].try_into().unwrap(), room)
    }

    /// Receives the file in pieces of `step` bytes.
    fn receive<T: Persist>(bytes: &[u8], step: usize, room: u64) -> Result<T, DecodeError> {
        let mut incoming = begin(bytes, room)?;
        for piece in bytes[HEADER_BYTES..].chunks(step) {
            assert!(!incoming.is_whole());
            let taken = incoming.take(piece, room).unwrap();
            assert_eq!(taken, piece.len());
            // Received bytes can be passed on.
            let last = incoming.arrived() as usize - 1;
            assert_eq!(incoming.piece(last as u64, 9), bytes[last..=last]);
        }
        assert!(incoming.is_whole() && incoming.piece(0, usize::MAX) == bytes);
        incoming.finish()
    }

    fn check<T: Persist + PartialEq>(filter: &T) {
        let bytes = filter.to_bytes();
        for (step, room) in [(7, u64::MAX), (64, 0), (1000, 5000), (1 << 16, 0), (1 << 30, 0)] {
            assert!(receive::<T>(&bytes, step, room).unwrap() == *filter, "{step}, {room}");
        }
    }

    #[test]
    fn a_filter_is_the_same_however_it_was_cut() {
        let hashes = hashes();
        let mut blocked = BlockedBloom::with_rate(100_000, 0.001).unwrap();
        blocked.insert_hashes(&hashes);
        check(&blocked);
        let mut growing = Scalable::with_rate(1000, 0.01).unwrap();
        growing.insert_hashes(&hashes).unwrap();
        check(&growing);
        let mut window = Windowed::for_keys(10_000, 0.01).unwrap();
        window.insert_hashes(&hashes);
        check(&window);
        let mut cuckoo = Cuckoo::with_rate(30_000, 0.001).unwrap();
        cuckoo.insert_hashes(&hashes).unwrap();
        check(&cuckoo);
    }

    #[test]
    fn damage_anywhere_is_found_at_the_end() {
        let mut filter = Bloom::with_rate(60_000, 0.01).unwrap();
        filter.insert_hashes(&hashes());
        let mut bytes = filter.to_bytes();
        for at in (0..bytes.len()).step_by(331).chain([bytes.len() - 1]) {
            bytes[at] ^= 1;
            assert!(receive_quietly(&bytes).is_err(), "byte {at}");
            bytes[at] ^= 1;
        }
        assert!(receive_quietly(&bytes).unwrap() == filter);
        assert!(matches!(receive_quietly(&bytes[..9000]), Err(DecodeError::Length { .. })));
    }

    fn receive_quietly(bytes: &[u8]) -> Result<Bloom, DecodeError> {
        let mut incoming = begin(bytes, 0)?;
        incoming.take(&bytes[HEADER_BYTES..], 0)?;
        incoming.finish()
    }

    #[test]
    fn bytes_behind_the_end_are_left_to_others() {
        let bytes = Bloom::with_rate(100, 0.01).unwrap().to_bytes();
        let mut longer = bytes[HEADER_BYTES..].to_vec();
        longer.extend([1, 2, 3]);
        let mut incoming = begin(&bytes, 0).unwrap();
        assert_eq!(incoming.take(&longer, 0).unwrap(), longer.len() - 3);
        assert_eq!(incoming.take(&[1, 2, 3], 0).unwrap(), 0);
        assert!(incoming.finish::<Bloom>().is_ok());
    }

    #[test]
    fn a_header_alone_takes_no_memory_that_was_not_offered() {
        let mut header = Bloom::with_rate(100, 0.01).unwrap().encode().header;
        header.payload_bytes = 1 << 45;
        let head = super::super::header::encode_header(&header);
        let mut incoming = Incoming::begin(&head, 4096).unwrap();
        assert_eq!(incoming.size_in_bytes(), 4096);
        incoming.take(&[1; 5000], 0).unwrap();
        assert!(incoming.size_in_bytes() <= 8192 && incoming.arrived() == 5256);
        // More memory than any machine has: refused, and the received bytes are still there.
        assert!(incoming.take(&[2; 5000], u64::MAX).is_err());
        assert!(incoming.arrived() == 5256 && incoming.piece(5255, 9) == [1]);
    }
}
