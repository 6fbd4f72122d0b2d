//! Memory for many numbers, in pages as large as the system has them.
//!
//! To touch a page of memory for the first time is a call of the kernel, which clears it: with pages of 4 KiB, that was a third of the
//! time in which a load is sealed. So memory is asked for once, as much as will probably be needed, and what is never
//! touched costs nothing.

use std::ops::{Deref, DerefMut};

use bytemuck::Pod;

/// A large page of the system, on most machines.
const LARGE: usize = 2 << 20;
/// From this number of bytes on, large pages are asked for: clearing one takes as long as touching a part of it in small ones.
const WORTH: usize = LARGE / 2;

/// A large page. It is only allocated, never made.
#[repr(C, align(2_097_152))]
struct Large([u8; LARGE]);

/// Numbers that are only added to.
pub(crate) struct Many<T> {
    memory: Vec<Large>,
    len: usize,
    kind: std::marker::PhantomData<T>,
}

impl<T: Pod> Many<T> {
    pub(crate) fn new() -> Self {
        Self { memory: Vec::new(), len: 0, kind: std::marker::PhantomData }
    }

    /// Makes room for this number in all.
    pub(crate) fn reserve(&mut self, count: usize) {
        let bytes = count * size_of::<T>();
        if bytes <= self.memory.capacity() * LARGE {
            return;
        }
        let mut memory: Vec<Large> = Vec::with_capacity(bytes.div_ceil(LARGE));
        if bytes >= WORTH {
            ask_for_large_pages(&mut memory);
        }
        // SAFETY: both have room for what there is, and they are different.
        unsafe {
            let to: *mut T = memory.as_mut_ptr().cast();
            std::ptr::copy_nonoverlapping(self.as_ptr(), to, self.len);
        }
        self.memory = memory;
    }

    pub(crate) fn extend_from_slice(&mut self, numbers: &[T]) {
        let len = self.len + numbers.len();
        if len * size_of::<T>() > self.memory.capacity() * LARGE {
            self.reserve(len.max(2 * self.len));
        }
        // SAFETY: there is room for them now, and they are elsewhere.
        unsafe {
            let to: *mut T = self.memory.as_mut_ptr().cast();
            std::ptr::copy_nonoverlapping(numbers.as_ptr(), to.add(self.len), numbers.len());
        }
        self.len = len;
    }

    /// Makes it this number of zeros.
    pub(crate) fn zeros(&mut self, count: usize) {
        self.len = 0;
        self.reserve(count);
        // SAFETY: there is room for them, and zeros are numbers.
        unsafe { std::ptr::write_bytes(self.memory.as_mut_ptr().cast::<T>(), 0, count) };
        self.len = count;
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }
}

impl<T: Pod> Deref for Many<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: as many have been written, and memory of large pages is aligned for every number.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast(), self.len) }
    }
}

impl<T: Pod> DerefMut for Many<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the same.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_mut_ptr().cast(), self.len) }
    }
}

/// Where the system does not have any, the memory is as good as other memory.
fn ask_for_large_pages(memory: &mut Vec<Large>) {
    #[cfg(target_os = "linux")]
    {
        const MADV_HUGEPAGE: std::ffi::c_int = 14;
        unsafe extern "C" {
            fn madvise(
                start: *mut std::ffi::c_void,
                len: usize,
                advice: std::ffi::c_int,
            ) -> std::ffi::c_int;
        }
        // SAFETY: whole pages that are ours. It is only advice, so its result does not matter.
        unsafe {
            madvise(memory.as_mut_ptr().cast(), memory.capacity() * LARGE, MADV_HUGEPAGE);
        }
    }
}
