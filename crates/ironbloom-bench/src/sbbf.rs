//! `sbbf-rs` as a filter: the crate brings the instructions, the caller the memory.
//!
//! The memory is an ordinary allocation of whole cache lines, as in its documentation.

#![expect(unsafe_code, reason = "the peer has no safe interface")]

use sbbf_rs::{ALIGNMENT, BUCKET_SIZE, FilterFn};

use crate::contender::ByHash;

/// A cache line: two buckets.
#[derive(Clone)]
#[repr(C, align(64))]
struct Line([u8; 2 * BUCKET_SIZE]);

const _: () = assert!(align_of::<Line>() == ALIGNMENT && size_of::<Line>() == 2 * BUCKET_SIZE);

/// A split block filter.
pub(crate) struct SplitBlocks {
    operations: FilterFn,
    lines: Box<[Line]>,
    buckets: usize,
}

impl SplitBlocks {
    /// Creates a filter of this many bits, rounded up to whole buckets.
    pub(crate) fn with_bits(bits: u64) -> Self {
        Self::with_buckets(bits.div_ceil(8 * BUCKET_SIZE as u64))
    }

    /// Creates the smallest filter that delivers this rate by our formulas: the crate has none.
    pub(crate) fn with_rate(n: u64, rate: f64) -> Self {
        Self::with_buckets(ironbloom::sizing::split_blocks(n, rate, 8, 32))
    }

    fn with_buckets(buckets: u64) -> Self {
        let buckets = usize::try_from(buckets.max(1)).expect("fits into memory");
        let lines = vec![Line([0; 2 * BUCKET_SIZE]); buckets.div_ceil(2)].into_boxed_slice();
        Self { operations: FilterFn::new(), lines, buckets }
    }
}

impl ByHash for SplitBlocks {
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        // SAFETY: the lines are aligned and hold at least `buckets` buckets, one or more.
        unsafe { self.operations.contains(self.lines.as_ptr().cast(), self.buckets, hash) }
    }

    fn size_in_bytes(&self) -> usize {
        self.buckets * BUCKET_SIZE
    }

    #[inline]
    fn insert_hash(&mut self, hash: u64) -> bool {
        // SAFETY: as above, and the exclusive borrow makes the memory writable.
        unsafe { self.operations.insert(self.lines.as_mut_ptr().cast(), self.buckets, hash) };
        true
    }
}
