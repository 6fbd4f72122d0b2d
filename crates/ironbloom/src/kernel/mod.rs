//! Memory and machine: everything below the level of "a filter is an array of words".
//!
//! This folder is the only one of the crate that may contain `unsafe`; each block says why it is sound.
//! `words` holds the bits of every filter (owned or memory-mapped), `batch` is the one loop that
//! overlaps memory latency when many hashes are looked up at once.
#![allow(unsafe_code)]

mod batch;
mod words;

pub(crate) use batch::{batch_contains, for_each_prefetched, prefetch};
pub(crate) use words::{AtomicWords, LINE_BYTES, LINE_WORDS, Mapping, Words, WordsBuilder};
