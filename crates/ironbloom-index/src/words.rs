//! The words of a chunk, in our own memory: from the allocator, or, if there are many, directly from the system on
//! large pages, because lookups access them at random.

use std::io;
use std::ops::{Deref, Range};

use memmap2::MmapMut;
use xxhash_rust::xxh3::Xxh3;

use crate::file_bytes::{FileBytes, PIECE_BYTES};

/// An array of 64-bit words.
pub(crate) enum Words {
    /// From the allocator.
    Heap(Vec<u64>),
    /// Directly from the system; the number of words in use.
    Pages(MmapMut, usize),
}

/// From this size on, memory comes directly from the system. Random probes into pages of 4 KiB miss the TLB each time.
const HUGE_PAGE: usize = 2 << 20;

impl Words {
    /// This many zeros.
    pub(crate) fn zeroed(len: usize) -> Self {
        Self::pages(len).unwrap_or_else(|| Self::Heap(vec![0; len]))
    }

    /// Zeros straight from the system; `None` if they are too few for that, or if it has none.
    fn pages(len: usize) -> Option<Self> {
        let bytes = len.checked_mul(size_of::<u64>()).filter(|&bytes| bytes >= HUGE_PAGE)?;
        let pages = MmapMut::map_anon(bytes.checked_next_multiple_of(HUGE_PAGE)?).ok()?;
        // Advice: a refusal (an old kernel, a container) costs nothing but speed.
        #[cfg(target_os = "linux")]
        let _ = pages.advise(memmap2::Advice::HugePage);
        Some(Self::Pages(pages, len))
    }

    /// These bytes of a file, and their XXH3-64. The hash is that of the bytes that are returned, whatever happens to the
    /// file. There must be whole words of them.
    pub(crate) fn read(file: &FileBytes, range: Range<u64>) -> io::Result<(Self, u64)> {
        let out_of_memory = || io::Error::from(io::ErrorKind::OutOfMemory);
        let bytes = usize::try_from(range.end - range.start).map_err(|_| out_of_memory())?;
        let len = bytes / size_of::<u64>();
        let mut words = match Self::pages(len) {
            Some(words) => words,
            None => {
                let mut words = Vec::new();
                words.try_reserve_exact(len).map_err(|_| out_of_memory())?;
                words.resize(len, 0);
                Self::Heap(words)
            }
        };
        let mut hasher = Xxh3::new();
        let target: &mut [u8] = bytemuck::cast_slice_mut(words.to_mut());
        let mut at = range.start;
        // Hashed while it is still in the cache.
        for piece in target.chunks_mut(PIECE_BYTES) {
            file.read_into(piece, at)?;
            hasher.update(piece);
            at += piece.len() as u64;
        }
        if cfg!(target_endian = "big") {
            words.to_mut().iter_mut().for_each(|word| *word = u64::from_le(*word));
        }
        Ok((words, hasher.digest()))
    }

    /// The words, to be written.
    pub(crate) fn to_mut(&mut self) -> &mut [u64] {
        match self {
            Self::Heap(words) => words,
            Self::Pages(pages, len) => &mut bytemuck::cast_slice_mut(pages)[..*len],
        }
    }
}

impl Deref for Words {
    type Target = [u64];

    #[inline]
    fn deref(&self) -> &[u64] {
        match self {
            Self::Heap(words) => words,
            Self::Pages(pages, len) => &bytemuck::cast_slice(pages)[..*len],
        }
    }
}

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Words({})", self.len())
    }
}
