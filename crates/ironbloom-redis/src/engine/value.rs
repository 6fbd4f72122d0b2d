//! A filter as a value of the server: saved, loaded, rewritten as commands, measured, copied, moved and freed.
//!
//! The functions that the server calls are written once, over [`Value`]; a filter says what is in it.

use std::borrow::Cow;
use std::ffi::{CStr, c_int, c_void};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use super::api::{
    Api, Ctx, Defrag, Digest, Io, Opaque, Str, TYPE_METHODS_VERSION, Type, TypeMethods, api,
};
use super::io::{Reader, Writer, emit_chunk, fail};
use crate::error::LoadError;
use crate::fields::{FieldReader, FieldWriter};
use crate::limits;
use crate::stats;

/// A filter of 1 MiB counts 64 efforts, above which servers free in another thread.
const BYTES_PER_EFFORT: u64 = 16 << 10;

/// A data type of the server; its address is known once it is registered.
pub(crate) struct DataType {
    address: AtomicPtr<Opaque>,
    /// Number of live values.
    count: AtomicU64,
}

impl DataType {
    /// A type that is not registered yet.
    pub(crate) const fn new() -> Self {
        Self { address: AtomicPtr::new(ptr::null_mut()), count: AtomicU64::new(0) }
    }

    pub(super) fn get(&self) -> Type {
        self.address.load(Ordering::Relaxed)
    }

    /// Number of live values of this type.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

/// A filter that can be the value of a key.
pub(crate) trait Value: Clone + 'static {
    /// The type's name in files, nine letters.
    const NAME: &'static CStr;
    /// The version of the encoding.
    const VERSION: u32;
    /// The command that recreates such a filter from an append-only file.
    const LOAD_COMMAND: &'static CStr;
    /// The number that this command has beside the header.
    const HEADER_NUMBER: i64 = 1;
    /// What such a value is, in the server's log.
    const NOUN: &'static str = "filter";

    /// The registered type.
    fn data_type() -> &'static DataType;
    /// Reads a filter.
    fn load(from: &mut impl FieldReader, version: u32) -> Result<Self, LoadError>;
    /// Writes a filter.
    fn save(&self, to: &mut impl FieldWriter);
    /// Its header.
    fn header(&self) -> Vec<u8>;
    /// The pieces of its arrays in order, each with the next iterator.
    fn chunks(&self) -> impl Iterator<Item = (i64, Cow<'_, [u8]>)>;
    /// Size in bytes.
    fn size_in_bytes(&self) -> u64;
    /// Number of arrays.
    fn arrays(&self) -> usize;
    /// Arrays that defragmentation may move.
    fn arrays_mut(&mut self) -> Vec<&mut Vec<u8>>;
}

/// Registers a type. False if its name is taken.
///
/// # Safety
///
/// `ctx` is the context with which a server loads the module.
pub(super) unsafe fn register<T: Value>(ctx: Ctx) -> bool {
    let mut methods = TypeMethods {
        version: TYPE_METHODS_VERSION,
        rdb_load: Some(load::<T>),
        rdb_save: Some(save::<T>),
        aof_rewrite: Some(rewrite::<T>),
        mem_usage: Some(mem_usage::<T>),
        digest: Some(digest::<T>),
        free: Some(free::<T>),
        aux_load: None,
        aux_save: None,
        aux_save_triggers: 0,
        free_effort: Some(free_effort::<T>),
        unlink: None,
        copy: Some(copy::<T>),
        defrag: Some(defrag::<T>),
    };
    // SAFETY: the context of loading; the server copies the functions.
    let created = unsafe {
        (api().create_data_type)(ctx, T::NAME.as_ptr(), T::VERSION as c_int, &raw mut methods)
    };
    T::data_type().address.store(created, Ordering::Relaxed);
    !created.is_null()
}

/// A filter as the server has it.
pub(super) struct Stored<T> {
    /// Different for every value that a key was ever given, and for one whose keys were overwritten: by it, work that goes on
    /// between commands knows its filter again. An address would not do, since the next filter may be made there.
    pub(super) id: u64,
    pub(super) value: T,
}

impl<T: Value> Stored<T> {
    /// A value for a key, counted until the server frees it.
    pub(super) fn new(value: T) -> *mut Self {
        T::data_type().count.fetch_add(1, Ordering::Relaxed);
        Box::into_raw(Box::new(Self { id: new_id(), value }))
    }

    /// The filter that the server points to.
    ///
    /// # Safety
    ///
    /// A value of this type, which the server does not free as long as the filter is used.
    unsafe fn get<'a>(value: *const c_void) -> &'a T {
        // SAFETY: promised by the caller; every value was made by `new`.
        unsafe { &(*value.cast::<Self>()).value }
    }
}

/// An id that no value has had.
pub(super) fn new_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Runs a callback. A panic must not reach the server, which gets `otherwise` instead.
fn guarded<R>(otherwise: R, run: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or(otherwise)
}

unsafe extern "C" fn load<T: Value>(file: Io, version: c_int) -> *mut c_void {
    guarded(ptr::null_mut(), || {
        let mut reader = Reader(file);
        match stats::timed(|| T::load(&mut reader, version as u32)) {
            Ok(value) => Stored::new(value).cast(),
            Err(error) => {
                reader.refuse(T::NOUN, &error);
                ptr::null_mut()
            }
        }
    })
}

unsafe extern "C" fn save<T: Value>(file: Io, value: *mut c_void) {
    // SAFETY: the file that is being written, and a value of this type.
    unsafe { written(file, || Stored::<T>::get(value).save(&mut Writer(file))) };
}

unsafe extern "C" fn rewrite<T: Value>(file: Io, key: Str, value: *mut c_void) {
    let write = || {
        // SAFETY: a value of this type.
        let value = unsafe { Stored::<T>::get(value) };
        // SAFETY: file and key of this rewrite.
        unsafe { emit_chunk(file, key, T::LOAD_COMMAND, T::HEADER_NUMBER, &value.header()) };
        for (next, piece) in value.chunks() {
            // SAFETY: file and key of this rewrite.
            unsafe { emit_chunk(file, key, T::LOAD_COMMAND, next, &piece) };
        }
    };
    // SAFETY: the file that is being rewritten.
    unsafe { written(file, write) };
}

/// Writes a value. After a panic the file has a part of it, with which no server starts: it must not replace an older one.
///
/// # Safety
///
/// The file is one that the server writes right now.
unsafe fn written(file: Io, write: impl FnOnce()) {
    let is_written = guarded(false, || {
        fail_if_a_test_says_so();
        write();
        true
    });
    if !is_written {
        // SAFETY: promised by the caller.
        unsafe { fail(file) };
    }
}

/// Panics if a test says so by a file in the server's folder: nothing else is known to.
#[cfg(debug_assertions)]
fn fail_if_a_test_says_so() {
    assert!(!std::path::Path::new("ironbloom-fails-to-save").exists(), "a test says so");
}

#[cfg(not(debug_assertions))]
fn fail_if_a_test_says_so() {}

unsafe extern "C" fn mem_usage<T: Value>(value: *const c_void) -> usize {
    // SAFETY: a value of this type.
    guarded(0, || unsafe { Stored::<T>::get(value) }.size_in_bytes() as usize)
}

/// Header and arrays: equal filters have equal digests.
unsafe extern "C" fn digest<T: Value>(digest: Digest, value: *mut c_void) {
    guarded((), || {
        // SAFETY: a value of this type.
        let value = unsafe { Stored::<T>::get(value) };
        let add = |bytes: &[u8]| {
            // SAFETY: the digest that is being made; the server reads the bytes at once.
            unsafe {
                (api().digest_add_string_buffer)(digest, bytes.as_ptr().cast(), bytes.len());
            }
        };
        add(&value.header());
        value.chunks().for_each(|(_, piece)| add(&piece));
        // SAFETY: the digest that is being made.
        unsafe { (api().digest_end_sequence)(digest) };
    });
}

unsafe extern "C" fn free<T: Value>(value: *mut c_void) {
    // SAFETY: a value of this type, a box that the server gives back.
    guarded((), || drop(unsafe { Box::from_raw(value.cast::<Stored<T>>()) }));
    T::data_type().count.fetch_sub(1, Ordering::Relaxed);
}

unsafe extern "C" fn free_effort<T: Value>(_key: Str, value: *const c_void) -> usize {
    guarded(1, || {
        // SAFETY: a value of this type.
        let value = unsafe { Stored::<T>::get(value) };
        // Many small arrays take as long as a few large ones.
        value.arrays() + (value.size_in_bytes() / BYTES_PER_EFFORT) as usize
    })
}

unsafe extern "C" fn copy<T: Value>(_from: Str, _to: Str, value: *const c_void) -> *mut c_void {
    guarded(ptr::null_mut(), || {
        // SAFETY: a value of this type.
        let value = unsafe { Stored::<T>::get(value) };
        // Ask first, since cloning ends the process if there is too little memory.
        if limits::ask(value.size_in_bytes()).is_err() {
            return ptr::null_mut();
        }
        Stored::new(stats::timed(|| value.clone())).cast()
    })
}

/// Moves the filter and its arrays to where the server wants them. The server leaves large allocations in place.
unsafe extern "C" fn defrag<T: Value>(ctx: Defrag, _key: Str, value: *mut *mut c_void) -> c_int {
    guarded(0, || {
        let Some(Api { defrag_alloc: Some(defrag_alloc), .. }) = super::api::loaded() else {
            return 0;
        };
        // SAFETY: the address of a value, which is a box from the server's allocator. The server moves its bytes and
        // frees the old ones, or says null and does nothing.
        let filter = unsafe {
            let moved = defrag_alloc(ctx, *value);
            if !moved.is_null() {
                *value = moved;
            }
            &mut (*(*value).cast::<Stored<T>>()).value
        };
        for array in filter.arrays_mut() {
            let mut bytes = mem::ManuallyDrop::new(mem::take(array));
            if bytes.capacity() == 0 {
                continue;
            }
            // SAFETY: as above: bytes from the server's allocator, of alignment 1, so that their address is the
            // allocator's own.
            unsafe {
                let moved = defrag_alloc(ctx, bytes.as_mut_ptr().cast());
                let address = if moved.is_null() { bytes.as_mut_ptr() } else { moved.cast() };
                *array = Vec::from_raw_parts(address, bytes.len(), bytes.capacity());
            }
        }
        0
    })
}
