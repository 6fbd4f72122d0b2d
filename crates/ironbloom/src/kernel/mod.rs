//! Memory and machine: everything below "a filter is an array of words".
//!
//! Only this module of the crate may contain `unsafe`; each block says why it is sound.
//!
//! ```text
//! words, atomic_words   the bits of a filter: owned, mapped from a file, or shared between threads
//! mapping               memory straight from the system
//! pages                 small pages and huge ones
//! batch                 the loop that overlaps memory latency when many hashes are looked up at once
//! blocks                the blocks of a filter
//! address, dispatch     the block of a hash, and the kernel that works on it
//! flat                  the probes of a plain Bloom filter
//! ones                  counting set bits, alone and of a union
//! segments              the cells of a fuse filter
//! scalar, avx2, avx512  the kernels: plain Rust, which defines correctness, and vector instructions
//! ```
#![allow(unsafe_code)]

mod address;
mod atomic_words;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
mod avx2;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
mod avx512;
mod batch;
mod blocks;
mod dispatch;
mod flat;
mod mapping;
mod ones;
mod pages;
mod scalar;
mod segments;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use atomic_words::{AtomicWords, set};
pub(crate) use batch::{
    contains_ahead, contains_each, for_each_ahead, is_near_for_many, prefetch, prefetch_line,
    try_for_each_ahead,
};
pub(crate) use blocks::{
    Blocks, contains_all_shared, contains_shared, insert_shared, touch_shared,
};
pub(crate) use flat::{FIRST_PROBES, Flat};
#[cfg(feature = "mmap")]
pub(crate) use mapping::Mapping;
pub(crate) use ones::{count_ones, or_counting};
pub(crate) use pages::{
    copy_to_zeros, dense_at, prefer_huge_pages, prefer_huge_pages_at_first,
    prefer_huge_pages_to_fill, take_all_from_allocator,
};
#[cfg(test)]
pub(crate) use scalar::SALTS;
pub(crate) use scalar::{LANES, block_of};
pub(crate) use segments::{OFFSET_BITS, Segments};
pub(crate) use words::{LINE_BYTES, LINE_WORDS, Words, WordsBuilder};
