//! A key that is open: missing, of another type, or a filter.

use std::ffi::c_int;
use std::marker::PhantomData;

use super::api::{KeyPtr, Str, Type, api};
use super::call::Call;
use super::value::{Stored, Value, new_id};

const READ: c_int = 1 << 0;
const WRITE: c_int = 1 << 1;

const TYPE_EMPTY: c_int = 0;

/// How a key is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// For reading.
    Read,
    /// For reading and writing.
    Write,
}

/// What a lookup found.
pub(crate) enum Found<T> {
    /// There is no such key.
    Missing,
    /// A value of another type.
    WrongType,
    /// What was looked for.
    Filter(T),
}

/// A filter of either layout.
pub(crate) enum ByLayout<A, B> {
    /// RedisBloom's.
    RedisBloom(A),
    /// Ironbloom's own.
    Native(B),
}

/// An open key; closed when dropped.
pub(crate) struct Key<'call> {
    /// Null if the key is missing and was opened for reading.
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

    /// The value, for reading.
    pub(crate) fn get<T: Value>(&self) -> Found<&T> {
        match self.find::<T>() {
            Found::Missing => Found::Missing,
            Found::WrongType => Found::WrongType,
            // SAFETY: as in `get_either`.
            Found::Filter(stored) => Found::Filter(unsafe { &(*stored).value }),
        }
    }

    /// The value, for writing.
    pub(crate) fn get_mut<T: Value>(&mut self) -> Found<&mut T> {
        assert!(self.access == Access::Write, "opened to look");
        self.get_settling()
    }

    /// The value, for reading, where an answer may first tidy it up: what the key means does not change, and so clients that
    /// watch the key are not told.
    pub(crate) fn get_settling<T: Value>(&mut self) -> Found<&mut T> {
        match self.find::<T>() {
            Found::Missing => Found::Missing,
            Found::WrongType => Found::WrongType,
            // SAFETY: as in `get_either_mut`.
            Found::Filter(stored) => Found::Filter(unsafe { &mut (*stored).value }),
        }
    }

    /// The value, of either type, for reading.
    pub(crate) fn get_either<A: Value, B: Value>(&self) -> Found<ByLayout<&A, &B>> {
        match self.find_either::<A, B>() {
            Found::Missing => Found::Missing,
            Found::WrongType => Found::WrongType,
            Found::Filter(ByLayout::RedisBloom(stored)) => {
                // SAFETY: a value of this type was made by `Stored::new`. The server runs one command at a time, and the key is
                // borrowed as long as the value.
                Found::Filter(ByLayout::RedisBloom(unsafe { &(*stored).value }))
            }
            Found::Filter(ByLayout::Native(stored)) => {
                // SAFETY: as above.
                Found::Filter(ByLayout::Native(unsafe { &(*stored).value }))
            }
        }
    }

    /// The value, of either type, for writing.
    pub(crate) fn get_either_mut<A: Value, B: Value>(&mut self) -> Found<ByLayout<&mut A, &mut B>> {
        assert!(self.access == Access::Write, "opened to look");
        match self.find_either::<A, B>() {
            Found::Missing => Found::Missing,
            Found::WrongType => Found::WrongType,
            Found::Filter(ByLayout::RedisBloom(stored)) => {
                // SAFETY: as in `get_either`; and the key is borrowed alone.
                Found::Filter(ByLayout::RedisBloom(unsafe { &mut (*stored).value }))
            }
            Found::Filter(ByLayout::Native(stored)) => {
                // SAFETY: as above.
                Found::Filter(ByLayout::Native(unsafe { &mut (*stored).value }))
            }
        }
    }

    /// The value, of either type, for writing; if the key is missing, what `make` creates. Looks the key up only once.
    pub(crate) fn get_either_or_make<'key, A: Value, B: Value, R>(
        &'key mut self,
        make: impl FnOnce(&'key mut Self) -> R,
        found: impl FnOnce(Found<ByLayout<&'key mut A, &'key mut B>>) -> R,
    ) -> R {
        assert!(self.access == Access::Write, "opened to look");
        match self.find_either::<A, B>() {
            Found::Missing => make(self),
            Found::WrongType => found(Found::WrongType),
            Found::Filter(ByLayout::RedisBloom(stored)) => {
                // SAFETY: as in `get_either`; the key is borrowed alone as long as the value, and `make` has not run.
                found(Found::Filter(ByLayout::RedisBloom(unsafe { &mut (*stored).value })))
            }
            Found::Filter(ByLayout::Native(stored)) => {
                // SAFETY: as above.
                found(Found::Filter(ByLayout::Native(unsafe { &mut (*stored).value })))
            }
        }
    }

    /// The id of the value that is there, if it is of either type.
    pub(crate) fn id<A: Value, B: Value>(&self) -> Option<u64> {
        match self.find_either::<A, B>() {
            // SAFETY: as in `get_either`.
            Found::Filter(ByLayout::RedisBloom(stored)) => Some(unsafe { (*stored).id }),
            // SAFETY: as above.
            Found::Filter(ByLayout::Native(stored)) => Some(unsafe { (*stored).id }),
            Found::Missing | Found::WrongType => None,
        }
    }

    /// Gives the value another id, because it is no longer what it was: work that goes on between commands must not take it
    /// for the same.
    pub(crate) fn renew_id<T: Value>(&mut self) {
        if let Found::Filter(stored) = self.find::<T>() {
            // SAFETY: as in `get_either_mut`.
            unsafe { (*stored).id = new_id() };
        }
    }

    fn find<T: Value>(&self) -> Found<*mut Stored<T>> {
        match self.find_either::<T, T>() {
            Found::Missing => Found::Missing,
            Found::WrongType => Found::WrongType,
            Found::Filter(ByLayout::RedisBloom(stored) | ByLayout::Native(stored)) => {
                Found::Filter(stored)
            }
        }
    }

    fn find_either<A: Value, B: Value>(&self) -> Found<ByLayout<*mut Stored<A>, *mut Stored<B>>> {
        if self.key.is_null() {
            return Found::Missing;
        }
        // The usual case first: two calls of the server. It says null for what is not a module's value.
        let found = self.module_type();
        let is_one = found == A::data_type().get();
        if !found.is_null() && (is_one || found == B::data_type().get()) {
            // SAFETY: an open key with a module's value.
            let value = unsafe { (api().module_type_get_value)(self.key) };
            return Found::Filter(if is_one {
                ByLayout::RedisBloom(value.cast())
            } else {
                ByLayout::Native(value.cast())
            });
        }
        // SAFETY: an open key.
        match unsafe { (api().key_type)(self.key) } {
            TYPE_EMPTY => Found::Missing,
            _ => Found::WrongType,
        }
    }

    /// The type of the module's value that is there; null if there is none.
    fn module_type(&self) -> Type {
        // SAFETY: an open key.
        unsafe { (api().module_type_get_type)(self.key) }
    }

    /// Deletes the key.
    pub(crate) fn delete(&mut self) {
        assert!(self.access == Access::Write, "opened to look");
        // SAFETY: a key that is open to be changed.
        unsafe { (api().delete_key)(self.key) };
    }

    /// Sets the value of the key, replacing any other.
    pub(crate) fn set<T: Value>(&mut self, value: T) -> &mut T {
        assert!(self.access == Access::Write, "opened to look");
        let stored = Stored::new(value);
        // SAFETY: a key that is open to be changed; the server owns the value from here on and frees it by our function.
        unsafe { (api().module_type_set_value)(self.key, T::data_type().get(), stored.cast()) };
        // SAFETY: nobody else reaches the value as long as the key is borrowed.
        unsafe { &mut (*stored).value }
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
