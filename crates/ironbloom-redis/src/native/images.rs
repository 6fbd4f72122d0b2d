//! Images that arrive in pieces, one after the other, and are turned into filters byte by byte.
//!
//! ```text
//! whole or arriving images  │  raw: the start of a header, or bytes that are no image
//! ```
//!
//! Bytes go straight to their final place in the filter, and with the last one only checksums are compared: no step of a load
//! holds the server up. Bytes that are not an image are kept as they came, because an incomplete load must survive a restart
//! whatever its bytes are; the end of the load reports what is wrong.

use std::fmt;

use ironbloom::DecodeError;
use ironbloom::format::native::{Incoming, header_of};
use xxhash_rust::xxh3::Xxh3;

use super::cuckoo::MAX_PARTS;
use super::error::NativeError;
use super::pieces::Pieces;

/// How much memory bytes of unknown origin may ask for, as a multiple of their number.
const ROOM_PER_BYTE: u64 = 8;

/// Where the bytes come from, which decides how much memory the numbers in them may claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The memory limit was checked for all announced bytes: they are allocated at the header.
    Announced,
    /// A file, or RESTORE. No number in it is trusted: memory is allocated as bytes arrive.
    Unknown,
}

/// See the module header.
#[derive(Clone)]
pub struct Images {
    /// Total number of bytes to come.
    announced: u64,
    origin: Origin,
    /// Only the last may be incomplete.
    images: Vec<Incoming>,
    raw: Pieces,
    refused: Option<NativeError>,
    /// Of all bytes. In a box: half a kilobyte that whole filters need not have.
    hash: Box<Xxh3>,
}

impl Images {
    /// Nothing yet, with `announced` bytes to come.
    pub fn new(announced: u64, origin: Origin) -> Self {
        let (images, raw) = (Vec::new(), Pieces::default());
        Self { announced, origin, images, raw, refused: None, hash: Box::new(Xxh3::new()) }
    }

    /// Bytes that have arrived.
    pub fn len(&self) -> u64 {
        self.images.iter().map(Incoming::arrived).sum::<u64>() + self.raw.len()
    }

    /// Whether none has arrived.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory.
    pub fn size_in_bytes(&self) -> u64 {
        let images =
            self.images.iter().map(|image| Incoming::HEADER_BYTES as u64 + image.size_in_bytes());
        images.sum::<u64>() + self.raw.len()
    }

    /// XXH3-64 of what came.
    pub fn hash(&self) -> u64 {
        self.hash.digest()
    }

    /// Takes the next bytes. `Err` if there is no memory for them; nothing has changed then.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), NativeError> {
        let room = match self.origin {
            Origin::Announced => u64::MAX,
            Origin::Unknown => (self.len() + bytes.len() as u64).saturating_mul(ROOM_PER_BYTE),
        };
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = &rest[self.push_some(rest, room)?..];
        }
        self.hash.update(bytes);
        Ok(())
    }

    /// Takes some of the bytes: how many. Only the first part of a push can find too little memory: an image that begins
    /// has room for all of it.
    fn push_some(&mut self, bytes: &[u8], room: u64) -> Result<usize, NativeError> {
        if self.refused.is_some() {
            self.raw.push(bytes);
            return Ok(bytes.len());
        }
        if let Some(last) = self.images.last_mut().filter(|last| !last.is_whole()) {
            return last.take(bytes, room).map_err(|error| DecodeError::from(error).into());
        }
        let missing = Incoming::HEADER_BYTES - self.raw.len() as usize;
        let len = missing.min(bytes.len());
        self.raw.push(&bytes[..len]);
        if len == missing {
            match self.begin(room) {
                Ok(image) => {
                    self.images.push(image);
                    self.raw = Pieces::default();
                }
                Err(error) => self.refused = Some(error),
            }
        }
        Ok(len)
    }

    /// The image whose header has come.
    fn begin(&self, room: u64) -> Result<Incoming, NativeError> {
        if self.images.len() == MAX_PARTS {
            return Err(NativeError::Number { what: "number of filters" });
        }
        let head = self.raw.front(Incoming::HEADER_BYTES);
        let head = head.first_chunk().ok_or(NativeError::Header)?;
        // Asked before memory is: the header must not promise more than will come.
        let expected = header_of(head)?.file_bytes();
        let found = self.announced.saturating_sub(self.len() - self.raw.len());
        if expected > found {
            return Err(DecodeError::Length { expected, found }.into());
        }
        Ok(Incoming::begin(head, room)?)
    }

    /// Bytes from `offset` on, at most `most`, and at most to the end of one image. Empty past the end.
    pub fn piece(&self, mut offset: u64, most: usize) -> Vec<u8> {
        for image in &self.images {
            if offset < image.arrived() {
                return image.piece(offset, most);
            }
            offset -= image.arrived();
        }
        self.raw.piece(offset, most).to_vec()
    }

    /// The images, all of them whole, and at least one; or why there are none.
    pub fn finish(self) -> Result<Vec<Incoming>, NativeError> {
        if let Some(error) = self.refused {
            return Err(error);
        }
        if self.images.is_empty() || !self.raw.is_empty() {
            let front = self.raw.front(Incoming::HEADER_BYTES);
            return Err(header_of(&front).err().map_or(NativeError::Header, NativeError::Image));
        }
        match self.images.last().filter(|last| !last.is_whole()) {
            Some(last) => {
                let (expected, found) = (last.header().file_bytes(), last.arrived());
                Err(DecodeError::Length { expected, found }.into())
            }
            None => Ok(self.images),
        }
    }
}

impl fmt::Debug for Images {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes: {:?}", self.len(), self.announced, self.images)
    }
}

impl PartialEq for Images {
    /// Equal bytes, however they came.
    fn eq(&self, other: &Self) -> bool {
        const STEP: usize = 64 << 10;
        let mut at = 0;
        while at < self.len() {
            let mut one = self.piece(at, STEP);
            let two = other.piece(at, STEP);
            one.truncate(two.len());
            if one.is_empty() || two[..one.len()] != one {
                return false;
            }
            at += one.len() as u64;
        }
        self.len() == other.len() && self.announced == other.announced
    }
}
