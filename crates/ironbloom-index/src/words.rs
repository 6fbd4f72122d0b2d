//! The words of a chunk: owned, or mapped from a file.
//!
//! Readers see one `&[u64]` whoever owns it, so a chunk of a file is used in place: no copy, no parse. Memory that was
//! built is taken straight from the system, on large pages, because lookups jump about in it.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::sync::Arc;

use memmap2::{Mmap, MmapMut};

/// A memory-mapped file, shared by the chunks that look into it.
#[derive(Clone, Debug)]
pub(crate) struct Mapping(Arc<Mmap>);

impl Mapping {
    #[expect(unsafe_code, reason = "the one way to map a file")]
    pub(crate) fn open(file: &File) -> io::Result<Self> {
        // SAFETY: the map is read-only and lives as long as the Arc. Rust asks that nobody changes the file meanwhile; our
        // own writers never do (they write a new file and rename it), and `Index::open` documents it as the caller's duty
        // for everybody else's.
        let map = unsafe { Mmap::map(file)? };
        Ok(Self(Arc::new(map)))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// An array of 64-bit words.
pub(crate) enum Words {
    /// Of the allocator.
    Heap(Vec<u64>),
    /// Straight from the system; the number of words in use.
    Pages(MmapMut, usize),
    /// Part of a file: bytes that are whole words and aligned to them, as was checked.
    Mapped(Mapping, Range<usize>),
}

/// From this size on memory comes straight from the system. Random probes into pages of 4 KiB miss the TLB each time.
const HUGE_PAGE: usize = 2 << 20;

impl Words {
    /// So many zeros.
    pub(crate) fn zeroed(len: usize) -> Self {
        let bytes = len * size_of::<u64>();
        if bytes >= HUGE_PAGE
            && let Ok(pages) = MmapMut::map_anon(bytes.next_multiple_of(HUGE_PAGE))
        {
            // Advice: a refusal (an old kernel, a container) costs nothing but speed.
            #[cfg(target_os = "linux")]
            let _ = pages.advise(memmap2::Advice::HugePage);
            return Self::Pages(pages, len);
        }
        Self::Heap(vec![0; len])
    }

    /// These bytes of a file. `None` if they are not there, or not whole aligned words.
    pub(crate) fn mapped(map: &Mapping, bytes: Range<usize>) -> Option<Self> {
        let words: &[u64] = bytemuck::try_cast_slice(map.bytes().get(bytes.clone())?).ok()?;
        if cfg!(target_endian = "big") {
            return Some(Self::Heap(words.iter().map(|&word| u64::from_le(word)).collect()));
        }
        Some(Self::Mapped(map.clone(), bytes))
    }

    /// The words, to be written.
    ///
    /// # Panics
    ///
    /// If they are those of a file.
    pub(crate) fn to_mut(&mut self) -> &mut [u64] {
        match self {
            Self::Heap(words) => words,
            Self::Pages(pages, len) => &mut bytemuck::cast_slice_mut(pages)[..*len],
            Self::Mapped(..) => unreachable!("a file is never changed in place"),
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
            Self::Mapped(map, bytes) => bytemuck::cast_slice(&map.bytes()[bytes.clone()]),
        }
    }
}

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Words({})", self.len())
    }
}
