//! The bits of a filter: whole cache lines, owned or mapped from a file.
//!
//! ```text
//!  Words ──┬── owned:  Box<[Line]>            64-byte aligned, on huge pages if it is large
//!          └── mapped: Arc<Mmap> + a range    the file is the filter: no copy, no parse
//! ```
//!
//! Readers see one `&[u64]` either way. The first write to a mapped filter copies it ([`Words::to_mut`]),
//! so a file is never changed behind the back of whoever else maps it.

use std::alloc::Layout;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::{Pod, Zeroable};

use crate::error::ParamError;

/// Bytes of one cache line, the unit in which filters are stored.
pub(crate) const LINE_BYTES: usize = 64;
/// 64-bit words of one line.
pub(crate) const LINE_WORDS: usize = LINE_BYTES / size_of::<u64>();

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u64; LINE_WORDS]);

#[repr(C, align(64))]
struct AtomicLine([AtomicU64; LINE_WORDS]);

const _: () = assert!(size_of::<Line>() == LINE_BYTES && size_of::<AtomicLine>() == LINE_BYTES);

/// A memory-mapped file, shared by the filters that look into it.
#[derive(Clone)]
pub(crate) struct Mapping(Arc<memmap2::Mmap>);

impl Mapping {
    pub(crate) fn open(file: &File) -> io::Result<Self> {
        // SAFETY: the map is read-only and lives as long as the Arc. Rust asks that nobody changes the
        // file meanwhile; our own writers never do (they write a new file and rename it), and the public
        // functions that end up here document it as the caller's duty for everybody else's.
        let map = unsafe { memmap2::Mmap::map(file)? };
        Ok(Self(Arc::new(map)))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// An array of 64-bit words in whole cache lines. See the module header.
#[derive(Clone)]
pub(crate) struct Words(Repr);

#[derive(Clone)]
enum Repr {
    Owned(Box<[Line]>),
    Mapped { map: Mapping, start: usize, end: usize },
}

impl Words {
    /// Room for at least `bits` bits, all zero, rounded up to whole lines.
    pub(crate) fn zeroed(bits: u64) -> Result<Self, ParamError> {
        let lines = bits.div_ceil(8 * LINE_BYTES as u64);
        let too_large = ParamError::Memory { bytes: lines.saturating_mul(LINE_BYTES as u64) };
        let lines = usize::try_from(lines).map_err(|_| too_large)?;
        if lines > isize::MAX as usize / LINE_BYTES {
            return Err(too_large);
        }
        Ok(Self(Repr::Owned(zeroed_lines(lines).ok_or(too_large)?)))
    }

    /// Bytes `start..end` of a mapped file. `None` if they are not there, or not whole aligned lines.
    pub(crate) fn mapped(map: &Mapping, start: usize, end: usize) -> Option<Self> {
        let bytes = map.bytes().get(start..end)?;
        bytemuck::try_cast_slice::<u8, Line>(bytes).ok()?;
        Some(Self(Repr::Mapped { map: map.clone(), start, end }))
    }

    /// Some of the lines as an array of their own: shared if mapped, copied if owned.
    pub(crate) fn section(&self, first_line: usize, lines: usize) -> Option<Self> {
        let end_line = first_line.checked_add(lines)?;
        match &self.0 {
            Repr::Owned(all) => Some(Self(Repr::Owned(all.get(first_line..end_line)?.into()))),
            Repr::Mapped { map, start, end } => {
                let from = start.checked_add(first_line.checked_mul(LINE_BYTES)?)?;
                let to = start.checked_add(end_line.checked_mul(LINE_BYTES)?)?;
                (to <= *end).then(|| Self(Repr::Mapped { map: map.clone(), start: from, end: to }))
            }
        }
    }

    /// The words for writing. A mapped array is copied into memory first.
    pub(crate) fn to_mut(&mut self) -> &mut [u64] {
        if let Repr::Mapped { .. } = self.0 {
            self.0 = Repr::Owned(self.lines().into());
        }
        match &mut self.0 {
            Repr::Owned(lines) => bytemuck::cast_slice_mut(lines),
            Repr::Mapped { .. } => unreachable!("copied above"),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.to_mut().fill(0);
    }

    pub(crate) fn size_in_bytes(&self) -> usize {
        self.len() * size_of::<u64>()
    }

    pub(crate) fn count_ones(&self) -> u64 {
        self.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Applies `op` to every pair of words. Both arrays must have the same length.
    pub(crate) fn combine(&mut self, other: &Words, op: impl Fn(u64, u64) -> u64) {
        debug_assert_eq!(self.len(), other.len());
        for (left, right) in self.to_mut().iter_mut().zip(other.iter()) {
            *left = op(*left, *right);
        }
    }

    fn lines(&self) -> &[Line] {
        match &self.0 {
            Repr::Owned(lines) => lines,
            Repr::Mapped { map, start, end } => bytemuck::cast_slice(&map.bytes()[*start..*end]),
        }
    }
}

/// Lines of zeros. `None` if the memory is not to be had.
///
/// As `alloc_zeroed`, which for an alignment of 64 allocates and then clears, but with a word to the kernel in between:
/// pages that have been touched stay small.
fn zeroed_lines(lines: usize) -> Option<Box<[Line]>> {
    let layout = Layout::array::<Line>(lines).ok()?;
    if lines == 0 {
        return Some(Box::default());
    }
    // SAFETY: the layout is not empty, and it is that with which a Box<[Line]> of this length frees its memory. All
    // bytes are written before the box exists, and zeros are a valid Line.
    unsafe {
        let start = std::alloc::alloc(layout);
        if start.is_null() {
            return None;
        }
        ask_for_huge_pages(start as usize, layout.size());
        start.write_bytes(0, layout.size());
        Some(Box::from_raw(std::ptr::slice_from_raw_parts_mut(start.cast(), lines)))
    }
}

/// Asks Linux to back a large array with pages of 2 MiB. Random probes into pages of 4 KiB miss the TLB each time, and
/// even a prefetch then waits for the page table.
#[cfg(target_os = "linux")]
fn ask_for_huge_pages(start: usize, bytes: usize) {
    const HUGE_PAGE: usize = 2 << 20;
    let (first, end) = (start.next_multiple_of(HUGE_PAGE), (start + bytes) / HUGE_PAGE * HUGE_PAGE);
    if first < end {
        // SAFETY: the range is whole pages inside memory that we own, and this advice changes neither its contents nor
        // its validity. A refusal (an old kernel, a container) costs nothing, so the result does not matter.
        unsafe { libc::madvise(first as *mut libc::c_void, end - first, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages(_: usize, _: usize) {}

/// Collects little-endian bytes as they are read.
pub(crate) struct WordsBuilder(Vec<Line>);

impl WordsBuilder {
    /// `bytes` of room at once. The caller has seen that so many bytes are really there.
    pub(crate) fn new(bytes: u64) -> Result<Self, ParamError> {
        let mut lines = Vec::new();
        let wanted = usize::try_from(bytes.div_ceil(LINE_BYTES as u64));
        match wanted.map(|wanted| lines.try_reserve_exact(wanted)) {
            Ok(Ok(())) => Ok(Self(lines)),
            _ => Err(ParamError::Memory { bytes }),
        }
    }

    /// Appends whole lines; a last part of a line is dropped.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let word = |b: &[u8]| u64::from_le_bytes(b.try_into().expect("chunks of eight"));
        self.0.extend(bytes.chunks_exact(LINE_BYTES).map(|line| {
            let mut words = line.chunks_exact(size_of::<u64>()).map(word);
            Line(std::array::from_fn(|_| words.next().expect("eight words a line")))
        }));
    }

    pub(crate) fn finish(self) -> Words {
        Words(Repr::Owned(self.0.into_boxed_slice()))
    }
}

impl Deref for Words {
    type Target = [u64];

    #[inline]
    fn deref(&self) -> &[u64] {
        bytemuck::cast_slice(self.lines())
    }
}

impl PartialEq for Words {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = match self.0 {
            Repr::Owned(_) => "owned",
            Repr::Mapped { .. } => "mapped",
        };
        write!(f, "Words({how}, {} bytes)", self.size_in_bytes())
    }
}

/// The same array, written through `&self` by many threads.
///
/// All accesses are relaxed: a bit once set stays set, and no other memory is published through it.
pub(crate) struct AtomicWords(Box<[AtomicLine]>);

impl AtomicWords {
    pub(crate) fn from_words(mut words: Words) -> Self {
        words.to_mut();
        let Repr::Owned(lines) = words.0 else { unreachable!("to_mut leaves an owned array") };
        // SAFETY: AtomicLine has the size, alignment and validity of Line (AtomicU64 has those of u64, and
        // both are aligned to 64), and the box is unique, so the allocation simply changes its type.
        Self(unsafe { Box::from_raw(Box::into_raw(lines) as *mut [AtomicLine]) })
    }

    pub(crate) fn into_words(self) -> Words {
        // SAFETY: as in `from_words`, the other way round; owning self proves that no thread writes any more.
        Words(Repr::Owned(unsafe { Box::from_raw(Box::into_raw(self.0) as *mut [Line]) }))
    }

    pub(crate) fn clear(&mut self) {
        for cell in self.0.iter_mut().flat_map(|line| &mut line.0) {
            *cell.get_mut() = 0;
        }
    }

    /// A copy of the words as they are. Inserts that run meanwhile may or may not be in it.
    pub(crate) fn snapshot(&self) -> Words {
        let words: Box<[Line]> = self
            .0
            .iter()
            .map(|line| Line(std::array::from_fn(|word| line.0[word].load(Ordering::Relaxed))))
            .collect();
        Words(Repr::Owned(words))
    }

    #[inline]
    pub(crate) fn load(&self, word: usize) -> u64 {
        self.0[word / LINE_WORDS].0[word % LINE_WORDS].load(Ordering::Relaxed)
    }

    /// Sets the bits of `mask`; returns the word as it was before.
    #[inline]
    pub(crate) fn set(&self, word: usize, mask: u64) -> u64 {
        let cell = &self.0[word / LINE_WORDS].0[word % LINE_WORDS];
        let before = cell.load(Ordering::Relaxed);
        // Most inserts into a half-full filter find some bits already there; a plain load keeps the line shared.
        if before & mask == mask { before } else { cell.fetch_or(mask, Ordering::Relaxed) }
    }

    #[inline]
    pub(crate) fn prefetch(&self, word: usize) {
        super::batch::prefetch_line(self.0.as_ptr().wrapping_add(word / LINE_WORDS).cast());
    }

    pub(crate) fn size_in_bytes(&self) -> usize {
        self.0.len() * LINE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_whole_aligned_zeroed_lines() {
        let words = Words::zeroed(513).unwrap();
        assert_eq!(words.len(), 2 * LINE_WORDS);
        assert_eq!(words.as_ptr() as usize % LINE_BYTES, 0);
        assert_eq!(words.count_ones(), 0);
    }

    #[test]
    fn an_absurd_size_is_an_error_not_an_abort() {
        assert!(matches!(Words::zeroed(u64::MAX), Err(ParamError::Memory { .. })));
    }

    #[test]
    fn atomic_and_plain_words_are_the_same_bits() {
        let mut words = Words::zeroed(1024).unwrap();
        words.to_mut()[3] = 0b101;
        let atomic = AtomicWords::from_words(words);
        assert_eq!(atomic.set(3, 0b110), 0b101);
        assert_eq!(atomic.set(15, 1 << 63), 0);
        assert_eq!(atomic.snapshot()[3], 0b111);
        let words = atomic.into_words();
        assert_eq!((words[3], words[15], words.count_ones()), (0b111, 1 << 63, 4));
    }

    #[test]
    fn a_section_outside_the_array_is_refused() {
        let words = Words::zeroed(1024).unwrap();
        assert!(words.section(1, 1).is_some());
        assert!(words.section(1, 2).is_none());
        assert!(words.section(usize::MAX, 2).is_none());
    }
}
