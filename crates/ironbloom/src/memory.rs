//! Where the memory of filters comes from, and asking for it early.
//!
//! For programs in which something else keeps the accounts: a server that counts what its allocator gave, for one.

use crate::kernel;

/// From now on all memory of filters comes from the program's allocator. Otherwise arrays of 2 MiB and more come straight
/// from the system, which has larger pages for them; but then whoever counts in the allocator does not see them.
pub fn take_all_from_allocator() {
    kernel::take_all_from_allocator();
}

/// Asks for the cache line that holds `bytes[index]`, so that it is near when it is read soon. An index outside is ignored:
/// this is advice.
#[inline(always)]
pub fn prefetch(bytes: &[u8], index: usize) {
    kernel::prefetch_line(bytes.as_ptr().wrapping_add(index).cast());
}
