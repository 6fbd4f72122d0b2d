//! Memory from the server, so that it is counted in used_memory and `maxmemory` holds.
//!
//! Before a server has loaded the module there is no server to ask, and nothing that lives on: tests use the system's
//! allocator throughout, and [`api::find_all`] is the first thing a server calls.

use std::alloc::{GlobalAlloc, Layout, System};

use std::sync::atomic::{AtomicU64, Ordering};

use super::api::{self, Api};

/// Bytes that were asked for and not given back: filters, and next to nothing else.
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// Bytes that the module has of the server.
pub(super) fn taken() -> u64 {
    TAKEN.load(Ordering::Relaxed)
}

/// Counts bytes that the server allocated and gave to us, to be freed here.
pub(super) fn take_over(bytes: usize) {
    TAKEN.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// Counts an allocation, unless it failed.
fn counted(memory: *mut u8, layout: Layout) -> *mut u8 {
    if !memory.is_null() {
        TAKEN.fetch_add(layout.size() as u64, Ordering::Relaxed);
    }
    memory
}

/// What the server's allocator aligns to.
const ALIGNMENT: usize = 16;

struct ServerAllocator;

#[global_allocator]
static ALLOCATOR: ServerAllocator = ServerAllocator;

/// Bytes to ask for so that an aligned place with `layout.size()` bytes is among them, and before it one for an address.
fn padded(layout: Layout) -> usize {
    // No overflow: a layout rounded up to its alignment fits.
    layout.size() + layout.align()
}

/// The aligned place among the bytes at this address, which is remembered before it.
///
/// ```text
/// from the server      ▼                         ▼ aligned
///                      | ……… | server's address | layout.size() bytes … |
/// ```
///
/// # Safety
///
/// Null, or [`padded`] bytes that begin at a multiple of [`ALIGNMENT`], which is less than the alignment asked for.
unsafe fn align(memory: *mut u8, layout: Layout) -> *mut u8 {
    if memory.is_null() {
        return memory;
    }
    let skipped = layout.align() - memory.addr() % layout.align();
    // SAFETY: between ALIGNMENT, since both are multiples of it, and the alignment itself: inside, with room for an address
    // before it.
    unsafe {
        let aligned = memory.add(skipped);
        aligned.cast::<*mut u8>().sub(1).write(memory);
        aligned
    }
}

/// The server's address of a place that [`align`] made.
///
/// # Safety
///
/// Such a place.
unsafe fn unaligned(aligned: *mut u8) -> *mut u8 {
    // SAFETY: the address stands before it.
    unsafe { aligned.cast::<*mut u8>().sub(1).read() }
}

unsafe fn alloc_bytes(api: &Api, size: usize) -> *mut u8 {
    // SAFETY: the server's functions take any size but 0.
    unsafe {
        match api.try_alloc {
            Some(try_alloc) => try_alloc(size).cast(),
            None => (api.alloc)(size).cast(),
        }
    }
}

unsafe fn alloc_zeros(api: &Api, size: usize) -> *mut u8 {
    // SAFETY: the server's functions take any size but 0.
    unsafe {
        match api.try_calloc {
            Some(try_calloc) => try_calloc(1, size).cast(),
            None => (api.calloc)(1, size).cast(),
        }
    }
}

// SAFETY: every method passes on to one allocator or the other; which, depends on whether a server has loaded the module,
// before which nothing is allocated that is freed after it. Whether a place is inside a larger one depends on the
// alignment, which is the same for all requests that concern one piece of memory.
unsafe impl GlobalAlloc for ServerAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout has a size, as the caller promises.
        unsafe {
            match api::loaded() {
                Some(api) if layout.align() <= ALIGNMENT => {
                    counted(alloc_bytes(api, layout.size()), layout)
                }
                Some(api) => counted(align(alloc_bytes(api, padded(layout)), layout), layout),
                None => counted(System.alloc(layout), layout),
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout has a size, as the caller promises.
        unsafe {
            match api::loaded() {
                Some(api) if layout.align() <= ALIGNMENT => {
                    counted(alloc_zeros(api, layout.size()), layout)
                }
                Some(api) => counted(align(alloc_zeros(api, padded(layout)), layout), layout),
                None => counted(System.alloc_zeroed(layout), layout),
            }
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        TAKEN.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the memory came from the same allocator.
        unsafe {
            match api::loaded() {
                Some(api) if layout.align() <= ALIGNMENT => (api.free)(memory.cast()),
                Some(api) => (api.free)(unaligned(memory).cast()),
                None => System.dealloc(memory, layout),
            }
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the memory came from the same allocator; the new size with the old alignment is a layout, as the caller
        // promises.
        unsafe {
            match api::loaded() {
                Some(api) if layout.align() <= ALIGNMENT => {
                    TAKEN.fetch_sub(layout.size() as u64, Ordering::Relaxed);
                    let larger = Layout::from_size_align_unchecked(size, layout.align());
                    // The server's function ends the process if there is too little, and does not fail.
                    counted((api.realloc)(memory.cast(), size).cast(), larger)
                }
                Some(_) => {
                    // The aligned place may lie elsewhere in the new bytes, so they are not moved as a whole.
                    let larger = Layout::from_size_align_unchecked(size, layout.align());
                    let moved = self.alloc(larger);
                    if !moved.is_null() {
                        moved.copy_from_nonoverlapping(memory, layout.size().min(size));
                        self.dealloc(memory, layout);
                    }
                    moved
                }
                None => {
                    let moved = System.realloc(memory, layout, size);
                    if !moved.is_null() {
                        TAKEN.fetch_add(size as u64, Ordering::Relaxed);
                        TAKEN.fetch_sub(layout.size() as u64, Ordering::Relaxed);
                    }
                    moved
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every place an allocation can begin at, for the alignment of a cache line.
    #[test]
    fn aligned_places_are_inside_and_lead_back() {
        let layout = Layout::from_size_align(200, 64).unwrap();
        let mut memory = vec![0u128; 64];
        for start in 0..8 {
            let begin = memory[start..].as_mut_ptr().cast::<u8>();
            // SAFETY: 64 · 16 bytes are there, of which 8 · 16 are skipped at most.
            unsafe {
                let aligned = align(begin, layout);
                assert!(aligned.addr().is_multiple_of(64));
                let offset = aligned.offset_from(begin) as usize;
                assert!((16..=64).contains(&offset) && offset + 200 <= padded(layout));
                assert_eq!(unaligned(aligned), begin);
            }
        }
    }
}
