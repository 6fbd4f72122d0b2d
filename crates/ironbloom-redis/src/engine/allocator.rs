//! Memory from the server, so that it is counted in used_memory and `maxmemory` holds.
//!
//! Before a server has loaded the module there is no server to ask, and nothing that lives on: tests use the system's
//! allocator throughout, and [`api::find_all`] is the first thing a server calls.

use std::alloc::{GlobalAlloc, Layout, System};

use super::api::{self, Api};

/// What the server's allocator aligns to.
const ALIGNMENT: usize = 16;

struct ServerAllocator;

#[global_allocator]
static ALLOCATOR: ServerAllocator = ServerAllocator;

/// The server's functions if they can give what is asked for. Nothing in this crate asks for more alignment; what might
/// (a thread's stack, say) is not the server's business.
fn server(layout: Layout) -> Option<&'static Api> {
    if layout.align() <= ALIGNMENT { api::loaded() } else { None }
}

// SAFETY: every method passes on to one allocator or the other; which, depends on the alignment, which is the same for
// all requests that concern one piece of memory, and on whether a server has loaded the module, before which nothing is
// allocated that is freed after it.
unsafe impl GlobalAlloc for ServerAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout has a size, as the caller promises.
        unsafe {
            match server(layout) {
                Some(Api { try_alloc: Some(try_alloc), .. }) => try_alloc(layout.size()).cast(),
                Some(api) => (api.alloc)(layout.size()).cast(),
                None => System.alloc(layout),
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout has a size, as the caller promises.
        unsafe {
            match server(layout) {
                Some(Api { try_calloc: Some(try_calloc), .. }) => {
                    try_calloc(1, layout.size()).cast()
                }
                Some(api) => (api.calloc)(1, layout.size()).cast(),
                None => System.alloc_zeroed(layout),
            }
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the memory came from the same allocator.
        unsafe {
            match server(layout) {
                Some(api) => (api.free)(memory.cast()),
                None => System.dealloc(memory, layout),
            }
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the memory came from the same allocator.
        unsafe {
            match server(layout) {
                Some(api) => (api.realloc)(memory.cast(), size).cast(),
                None => System.realloc(memory, layout, size),
            }
        }
    }
}
