//! A key that is open: missing, of another type, or a filter.

use std::ffi::c_int;
use std::marker::PhantomData;

use super::api::{KeyPtr, Str, Type, api};
use super::call::Call;
use super::value::{Value, count_new};

const READ: c_int = 1 << 0;
const WRITE: c_int = 1 << 1;

const TYPE_EMPTY: c_int = 0;
const TYPE_MODULE: c_int = 6;

/// What a command does with a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Looks.
    Read,
    /// Changes it.
    Write,
}

/// What is at a key.
pub(crate) enum Found<T> {
    /// Nothing.
    Nothing,
    /// Something else.
    Other,
    /// What was looked for.
    Filter(T),
}

/// An open key; closed when it goes.
pub(crate) struct Key<'call> {
    /// Null if the key is missing and was opened to look.
    key: KeyPtr,
    access: Access,
    _call: PhantomData<&'call ()>,
}

impl<'call> Key<'call> {
    pub(super) fn open(call: &'call Call<'_>, name: Str, access: Access) -> Self {
        let mode = match access {
            Access::Read => READ,
            Access::Write => READ | WRITE,
        };
        // SAFETY: the context and an argument of this call, which outlives the key.
        let key = unsafe { (api().open_key)(call.ctx, name, mode) };
        Self { key, access, _call: PhantomData }
    }

    /// What is there, to look at.
    pub(crate) fn get<T: Value>(&self) -> Found<&T> {
        match self.find::<T>() {
            Found::Nothing => Found::Nothing,
            Found::Other => Found::Other,
            // SAFETY: a value of this type was made from a `Box<T>`. The server runs one command at a time, and the key
            // is borrowed as long as the value.
            Found::Filter(value) => Found::Filter(unsafe { &*value }),
        }
    }

    /// What is there, to change it.
    pub(crate) fn get_mut<T: Value>(&mut self) -> Found<&mut T> {
        assert!(self.access == Access::Write, "opened to look");
        match self.find::<T>() {
            Found::Nothing => Found::Nothing,
            Found::Other => Found::Other,
            // SAFETY: as in `get`; and the key is borrowed alone.
            Found::Filter(value) => Found::Filter(unsafe { &mut *value }),
        }
    }

    fn find<T: Value>(&self) -> Found<*mut T> {
        if self.key.is_null() {
            return Found::Nothing;
        }
        // SAFETY: an open key.
        match unsafe { (api().key_type)(self.key) } {
            TYPE_EMPTY => Found::Nothing,
            TYPE_MODULE if self.module_type() == T::data_type().get() => {
                // SAFETY: an open key with a value of our type.
                Found::Filter(unsafe { (api().module_type_get_value)(self.key) }.cast())
            }
            _ => Found::Other,
        }
    }

    /// The type of the module's value that is there.
    fn module_type(&self) -> Type {
        // SAFETY: an open key; called where it has a module's value.
        unsafe { (api().module_type_get_type)(self.key) }
    }

    /// Puts a filter there, in place of what was.
    pub(crate) fn set<T: Value>(&mut self, value: T) -> &mut T {
        assert!(self.access == Access::Write, "opened to look");
        count_new::<T>();
        let value = Box::into_raw(Box::new(value));
        // SAFETY: a key that is open to be changed; the server owns the value from here on and frees it by our function.
        unsafe { (api().module_type_set_value)(self.key, T::data_type().get(), value.cast()) };
        // SAFETY: nobody else reaches the value as long as the key is borrowed.
        unsafe { &mut *value }
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        if !self.key.is_null() {
            // SAFETY: opened by `open`, and closed once.
            unsafe { (api().close_key)(self.key) };
        }
    }
}
