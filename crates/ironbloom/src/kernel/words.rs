//! The bits of a filter: whole cache lines, owned or mapped from a file.
//!
//! ```text
//!              ┌── Heap     small arrays: the allocator's
//!  Words ──────┼── Pages    large arrays: straight from the system, on huge pages, cleared when first touched; or
//!              │            pages of a file that become our own one by one, each when it is first written
//!  start, len  └── Mapped   the file is the filter: no copy, no parse
//! ```
//!
//! Readers see one `&[u64]`, a pointer and a length, whoever owns the memory: lookups pay nothing for the choice. The
//! first write to a mapped filter copies it ([`Words::to_mut`]), so a file is never changed under other processes that
//! map it.

use std::alloc::Layout;
#[cfg(feature = "mmap")]
use std::fs::File;
#[cfg(feature = "mmap")]
use std::io;
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::Arc;

use super::mapping::{Mapping, Pages};
use super::ones::{count_ones, or_counting};
use super::pages::{
    HUGE_PAGE, copy_to_zeros, is_allocator_alone, prefer_huge_pages_at_first,
    prefer_huge_pages_to_fill,
};
use crate::error::ParamError;

/// Bytes of one cache line, the unit in which filters are stored.
pub(crate) const LINE_BYTES: usize = 64;
/// 64-bit words of one line.
pub(crate) const LINE_WORDS: usize = LINE_BYTES / size_of::<u64>();

/// An array of 64-bit words in whole cache lines. See the module documentation.
pub(crate) struct Words {
    /// The first word, aligned to a line.
    start: NonNull<u64>,
    /// Number of visible words, whole lines.
    len: usize,
    owner: Owner,
}

/// The owner of the memory, which is not moved while the words live, and accessed only through `start`.
#[cfg_attr(not(feature = "mmap"), allow(dead_code))]
enum Owner {
    /// The allocator, with this layout, which is not empty.
    Heap(Layout),
    /// No memory at all.
    Nobody,
    #[allow(dead_code, reason = "held for its Drop")]
    Pages(Pages),
    /// A part of an array that was split; it overlaps no other part, and nothing else reads it any more.
    Part(Arc<Words>),
    Mapped(Mapping),
}

// SAFETY: Words owns its memory, or shares memory that is never written: it can go where a Box<[u64]> or an Arc<[u64]>
// can. `&Words` gives out only `&[u64]`.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    /// Allocates room for at least `bits` zero bits, rounded up to whole lines.
    pub(crate) fn zeroed(bits: u64) -> Result<Self, ParamError> {
        let lines = bits.div_ceil(8 * LINE_BYTES as u64);
        let bytes = lines.saturating_mul(LINE_BYTES as u64);
        let too_large = ParamError::Memory { bytes };
        match usize::try_from(bytes) {
            Ok(bytes) if bytes <= isize::MAX as usize => Self::of_zeros(bytes).ok_or(too_large),
            _ => Err(too_large),
        }
    }

    /// Allocates `bytes` zero bytes, in whole lines. `None` if allocation fails.
    fn of_zeros(bytes: usize) -> Option<Self> {
        let len = bytes / size_of::<u64>();
        if bytes == 0 {
            return Some(Self { start: NonNull::dangling(), len, owner: Owner::Nobody });
        }
        if cfg!(feature = "mmap") && bytes >= HUGE_PAGE && !is_allocator_alone() {
            // Linux aligns whole huge pages to their size; the surplus is never touched.
            let mut pages = Pages::zeroed(bytes.checked_next_multiple_of(HUGE_PAGE)?)?;
            let start = NonNull::new(pages.bytes_mut().as_mut_ptr())?.cast();
            return Some(Self { start, len, owner: Owner::Pages(pages) });
        }
        let layout = Layout::from_size_align(bytes, LINE_BYTES).ok()?;
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) })?;
        prefer_huge_pages_at_first(start.as_ptr(), bytes);
        let start = start.cast();
        Some(Self { start, len, owner: Owner::Heap(layout) })
    }

    /// Copies these words, which are whole lines.
    ///
    /// # Panics
    ///
    /// If allocation fails, like any other copy in Rust.
    fn copied(words: &[u64]) -> Self {
        let bytes = size_of_val(words);
        let mut copy = Self::of_zeros(bytes).unwrap_or_else(|| {
            std::alloc::handle_alloc_error(Layout::for_value(words));
        });
        copy_to_zeros(bytemuck::cast_slice_mut(copy.to_mut()), bytemuck::cast_slice(words));
        copy
    }

    /// Takes bytes `start..end` of a mapped file. `None` if they do not exist, or are not whole aligned lines.
    #[cfg(feature = "mmap")]
    pub(crate) fn mapped(map: &Mapping, start: usize, end: usize) -> Option<Self> {
        let bytes = map.bytes().get(start..end)?;
        let aligned = (bytes.as_ptr() as usize).is_multiple_of(LINE_BYTES);
        if !aligned || !bytes.len().is_multiple_of(LINE_BYTES) {
            return None;
        }
        let start = NonNull::new(bytes.as_ptr().cast_mut())?.cast();
        let owner = Owner::Mapped(map.clone());
        Some(Self { start, len: bytes.len() / size_of::<u64>(), owner })
    }

    /// Maps bytes `start..end` of a file as private memory: the system copies a page when it is first written, and the
    /// file is not changed. `None` if they do not exist, or are not whole aligned lines.
    ///
    /// # Safety
    ///
    /// The file must not be changed or truncated while the words live.
    #[cfg(feature = "mmap")]
    pub(crate) unsafe fn private(
        file: &File,
        start: usize,
        end: usize,
    ) -> io::Result<Option<Self>> {
        // SAFETY: guaranteed by the caller.
        let mut pages = unsafe { Pages::private(file)? };
        let Some(bytes) = pages.bytes_mut().get_mut(start..end) else { return Ok(None) };
        let (len, first) = (bytes.len(), NonNull::from(bytes).cast::<u64>());
        let aligned = first.addr().get().is_multiple_of(LINE_BYTES);
        if !aligned || !len.is_multiple_of(LINE_BYTES) {
            return Ok(None);
        }
        let owner = Owner::Pages(pages);
        Ok(Some(Self { start: first, len: len / size_of::<u64>(), owner }))
    }

    /// Splits off the first lines as a separate array. Nothing is copied: the memory is freed with the last part.
    /// `None` if there are too few lines.
    pub(crate) fn split_lines(&mut self, lines: usize) -> Option<Self> {
        let len = lines.checked_mul(LINE_WORDS).filter(|&len| len <= self.len)?;
        if let Owner::Heap(_) | Owner::Pages(_) = self.owner {
            let (start, len) = (self.start, self.len);
            let nothing = Self { start: NonNull::dangling(), len: 0, owner: Owner::Nobody };
            let whole = Arc::new(std::mem::replace(self, nothing));
            *self = Self { start, len, owner: Owner::Part(whole) };
        }
        let owner = match &self.owner {
            Owner::Part(whole) => Owner::Part(whole.clone()),
            Owner::Mapped(map) => Owner::Mapped(map.clone()),
            Owner::Nobody => Owner::Nobody,
            Owner::Heap(_) | Owner::Pages(_) => unreachable!("made a part above"),
        };
        let front = Self { start: self.start, len, owner };
        // SAFETY: `len` words from the start are within the same memory, or its end. From here on they belong to the
        // front alone.
        self.start = unsafe { self.start.add(len) };
        self.len -= len;
        Some(front)
    }

    /// Returns the words for writing. A mapped array is copied into memory first.
    #[inline]
    pub(crate) fn to_mut(&mut self) -> &mut [u64] {
        if let Owner::Mapped(_) = self.owner {
            self.own();
        }
        // SAFETY: `start` points to `len` initialised words that we own, as Mapped is excluded above, and `&mut self`
        // makes this the only access to them.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    #[cold]
    fn own(&mut self) {
        *self = Self::copied(self);
    }

    /// Keeps the first `len` words, whole lines. The memory of the others is kept but no longer visible.
    fn truncate(&mut self, len: usize) {
        debug_assert!(len.is_multiple_of(LINE_WORDS));
        self.len = self.len.min(len);
    }

    pub(crate) fn clear(&mut self) {
        self.to_mut().fill(0);
    }

    pub(crate) fn size_in_bytes(&self) -> usize {
        self.len * size_of::<u64>()
    }

    pub(crate) fn count_ones(&self) -> u64 {
        count_ones(bytemuck::cast_slice(self))
    }

    /// Merges a range of words from an array of the same length, and counts the ones of the result.
    pub(crate) fn union_words(&mut self, other: &Words, words: Range<usize>) -> u64 {
        debug_assert_eq!(self.len(), other.len());
        let to = &mut self.to_mut()[words.clone()];
        or_counting(bytemuck::cast_slice_mut(to), bytemuck::cast_slice(&other[words]))
    }

    /// Applies `op` to every pair of words. Both arrays must have the same length.
    pub(crate) fn combine(&mut self, other: &Words, op: impl Fn(u64, u64) -> u64) {
        debug_assert_eq!(self.len(), other.len());
        for (left, right) in self.to_mut().iter_mut().zip(other.iter()) {
            *left = op(*left, *right);
        }
    }

    /// The address of the words, for [`AtomicWords`](super::AtomicWords), which must not see them as `[u64]`.
    #[inline]
    pub(super) fn start(&self) -> NonNull<u64> {
        self.start
    }

    /// Number of words.
    #[inline]
    pub(super) fn number(&self) -> usize {
        self.len
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        if let Owner::Heap(layout) = self.owner {
            // SAFETY: the memory came from the allocator with this layout and is freed once.
            unsafe { std::alloc::dealloc(self.start.as_ptr().cast(), layout) };
        }
    }
}

impl Deref for Words {
    type Target = [u64];

    #[inline]
    fn deref(&self) -> &[u64] {
        // SAFETY: `start` points to `len` initialised, aligned words that live as long as the owner and are not written
        // while `&self` is shared.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Clone for Words {
    /// Shares a map, copies owned memory.
    fn clone(&self) -> Self {
        match &self.owner {
            Owner::Mapped(map) => Self { owner: Owner::Mapped(map.clone()), ..*self },
            _ => Self::copied(self),
        }
    }
}

impl PartialEq for Words {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = match self.owner {
            Owner::Mapped(_) => "mapped",
            _ => "owned",
        };
        write!(f, "Words({how}, {} bytes)", self.size_in_bytes())
    }
}

/// Collects little-endian bytes as they arrive.
#[derive(Clone)]
pub(crate) struct WordsBuilder {
    /// Zeros after the filled part.
    words: Words,
    /// Bytes received.
    filled: usize,
}

impl WordsBuilder {
    /// Allocates room for `bytes` bytes up front. The caller has checked that this many bytes are really available.
    pub(crate) fn new(bytes: u64) -> Result<Self, ParamError> {
        Ok(Self { words: Words::zeroed(bytes.saturating_mul(8))?, filled: 0 })
    }

    /// Appends bytes. At least doubles the capacity if needed; the unfilled part of a large array takes no memory.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), ParamError> {
        self.make_room(bytes.len(), 2 * self.filled as u64)?;
        self.push_bytes(bytes);
        Ok(())
    }

    /// Ensures that `more` bytes fit. If they do not, grows to `room` bytes in total, or as needed.
    pub(crate) fn make_room(&mut self, more: usize, room: u64) -> Result<(), ParamError> {
        let wanted = (self.filled as u64).saturating_add(more as u64);
        if wanted > self.room_bytes() {
            let mut larger = Words::zeroed(wanted.max(room).saturating_mul(8))?;
            let filled = self.filled_words();
            larger.to_mut()[..filled.len()].copy_from_slice(filled);
            self.words = larger;
        }
        Ok(())
    }

    /// Appends bytes, for which there must be room.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        let (first, in_word) = (self.filled / 8, self.filled % 8);
        prefer_huge_pages_to_fill(
            bytemuck::cast_slice(&self.words),
            self.filled..self.filled + bytes.len(),
        );
        self.filled += bytes.len();
        let words = &mut self.words.to_mut()[first..];
        // The rest of a partial word, whole words, and the start of another.
        let begun = if in_word == 0 { 0 } else { (8 - in_word).min(bytes.len()) };
        let (head, bytes) = bytes.split_at(begun);
        for (i, &byte) in head.iter().enumerate() {
            words[0] |= u64::from(byte) << (8 * (in_word + i));
        }
        let words = if in_word == 0 { words } else { &mut words[1..] };
        let (eights, tail) = bytes.as_chunks::<8>();
        for (word, eight) in words.iter_mut().zip(eights) {
            *word = u64::from_le_bytes(*eight);
        }
        for (i, &byte) in tail.iter().enumerate() {
            words[eights.len()] |= u64::from(byte) << (8 * i);
        }
    }

    /// Bytes received.
    pub(crate) fn filled_bytes(&self) -> u64 {
        self.filled as u64
    }

    /// Capacity in bytes.
    pub(crate) fn room_bytes(&self) -> u64 {
        self.words.size_in_bytes() as u64
    }

    /// The words received, with zeros in the rest of the last one.
    pub(crate) fn filled_words(&self) -> &[u64] {
        &self.words[..self.filled.div_ceil(8)]
    }

    /// Returns the whole lines received.
    pub(crate) fn finish(mut self) -> Words {
        self.words.truncate(self.filled / LINE_BYTES * LINE_WORDS);
        self.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_whole_aligned_zeroed_lines() {
        for bits in [0, 1, 513, 8 * HUGE_PAGE as u64 - 1, 8 * HUGE_PAGE as u64 + 1] {
            let words = Words::zeroed(bits).unwrap();
            assert_eq!(words.len() as u64, bits.div_ceil(512) * LINE_WORDS as u64);
            assert!(words.is_empty() || (words.as_ptr() as usize).is_multiple_of(LINE_BYTES));
            assert_eq!(words.count_ones(), 0);
        }
    }

    #[test]
    fn an_absurd_size_is_an_error_not_an_abort() {
        assert!(matches!(Words::zeroed(u64::MAX), Err(ParamError::Memory { .. })));
        assert!(matches!(Words::zeroed(1 << 62), Err(ParamError::Memory { .. })));
    }

    #[test]
    fn a_copy_is_another_array_whether_small_or_large() {
        for bits in [1024, 16 * HUGE_PAGE as u64] {
            let mut words = Words::zeroed(bits).unwrap();
            let last = words.len() - 1;
            words.to_mut()[last] = 7;
            let copy = words.clone();
            words.to_mut()[last] = 8;
            assert_eq!((copy[last], words[last]), (7, 8));
        }
    }

    #[test]
    fn parts_of_a_split_array_are_written_and_dropped_one_by_one() {
        for bits in [512 * 9, 16 * HUGE_PAGE as u64] {
            let mut rest = Words::zeroed(bits).unwrap();
            let len = rest.len();
            rest.to_mut().iter_mut().zip(0..).for_each(|(word, i)| *word = i);
            let mut first = rest.split_lines(2).unwrap();
            let second = rest.split_lines(3).unwrap();
            assert_eq!(first.len() + second.len() + rest.len(), len);
            first.to_mut().fill(7);
            drop(first);
            rest.to_mut()[0] = 9;
            let copy = second.clone();
            drop(second);
            assert_eq!((copy[0], copy[copy.len() - 1]), (16, 39));
            assert_eq!((rest[0], rest[rest.len() - 1]), (9, len as u64 - 1));
            let last = rest.split_lines(rest.len() / LINE_WORDS).unwrap();
            assert!(rest.is_empty() && last[0] == 9);
            assert!(rest.split_lines(0).unwrap().is_empty());
        }
    }

    #[test]
    fn more_lines_than_there_are_are_not_split_off() {
        let mut words = Words::zeroed(1024).unwrap();
        assert!(words.split_lines(3).is_none() && words.split_lines(usize::MAX).is_none());
        assert_eq!(words.len(), 2 * LINE_WORDS);
        assert!(words.split_lines(1).is_some());
        assert!(words.split_lines(2).is_none());
    }

    #[test]
    fn bytes_become_the_same_words_however_much_room_there_was() {
        let bytes: Vec<u8> = (0..3 * HUGE_PAGE).map(|i| (i * 7 % 251) as u8).collect();
        let mut sums = None;
        for (room, step) in [(0, 1 << 16), (64, 1013), (bytes.len() as u64, 3), (0, 1 << 30)] {
            let mut builder = WordsBuilder::new(room).unwrap();
            for chunk in bytes.chunks(step) {
                builder.push(chunk).unwrap();
            }
            let words = builder.finish();
            assert_eq!(words.size_in_bytes(), bytes.len());
            let first = u64::from_le_bytes(bytes[..8].try_into().unwrap());
            let last = u64::from_le_bytes(bytes[bytes.len() - 8..].try_into().unwrap());
            assert_eq!((words[0], words[words.len() - 1]), (first, last));
            let sum = words.iter().fold(0u64, |sum, word| sum.rotate_left(1) ^ word);
            assert_eq!(*sums.get_or_insert(sum), sum, "{step}");
        }
    }
}
