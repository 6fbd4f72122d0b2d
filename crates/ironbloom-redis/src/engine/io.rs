//! Fields of an RDB file, and commands of an append-only file.

use std::ffi::{CStr, CString, c_longlong};

use super::allocator;
use super::api::{Io, Str, api};
use super::call::bytes_of;
use crate::error::{DecodeError, LoadError};
use crate::fields::{FieldReader, FieldWriter};
use crate::stats;

/// A file, or a RESTORE, that the server reads for us.
pub(super) struct Reader(pub(super) Io);

impl Reader {
    /// The field that was just read, unless there was none or one of another kind.
    fn checked<T>(&self, field: T) -> Result<T, DecodeError> {
        // SAFETY: the file that is being read.
        if unsafe { (api().is_io_error)(self.0) } == 0 {
            Ok(field)
        } else {
            Err(DecodeError::Length)
        }
    }

    /// Says in the server's log why a filter or a sketch was refused, and what can be done about it.
    pub(super) fn refuse(&self, noun: &str, error: &LoadError) {
        stats::REFUSED.add(1);
        self.log(&format!(
            "{noun} refused: {error}. Its bytes are damaged, or were written by a newer version of the module. A server \
             does not start with such a file: use that of a replica or an older one, or load it with the module that wrote \
             it and delete the key there"
        ));
    }

    /// The key whose value is read, as the log names it.
    fn key(&self) -> String {
        // SAFETY: the file that is being read; the server's string lives as long.
        let name = unsafe {
            match api().get_key_name_from_io.map(|get| get(self.0)).filter(|name| !name.is_null()) {
                Some(name) => bytes_of(name).escape_ascii().to_string(),
                None => return "this key".to_owned(),
            }
        };
        // SAFETY: the file that is being read.
        let database = api().get_db_id_from_io.map_or(-1, |get| unsafe { get(self.0) });
        if database < 0 {
            format!("key \"{name}\"")
        } else {
            format!("key \"{name}\" of database {database}")
        }
    }

    fn log(&self, text: &str) {
        let text = CString::new(format!("{}: {text}", self.key())).unwrap_or_default();
        // SAFETY: the file that is being read; the format takes one string.
        unsafe {
            (api().log_io_error)(self.0, c"warning".as_ptr(), c"%s".as_ptr(), text.as_ptr());
        }
    }
}

impl FieldReader for Reader {
    fn unsigned(&mut self) -> Result<u64, DecodeError> {
        // SAFETY: the file that is being read.
        let number = unsafe { (api().load_unsigned)(self.0) };
        self.checked(number)
    }

    fn double(&mut self) -> Result<f64, DecodeError> {
        // SAFETY: the file that is being read.
        let number = unsafe { (api().load_double)(self.0) };
        self.checked(number)
    }

    fn string(&mut self) -> Result<Vec<u8>, DecodeError> {
        let mut len = 0;
        // SAFETY: the file that is being read, and a place for the length.
        let buffer = unsafe { (api().load_string_buffer)(self.0, &raw mut len) };
        if buffer.is_null() {
            return Err(DecodeError::Length);
        }
        if len == 0 {
            // SAFETY: the server's buffer is ours to free. A vector without room would not do it.
            unsafe { (api().free)(buffer.cast()) };
            return self.checked(Vec::new());
        }
        allocator::take_over(len);
        // SAFETY: the server says that this many bytes are there, and ours. They come from its allocator, which
        // is that of our vectors, too: taken over as they are, a large filter is not twice in memory while it is loaded.
        self.checked(unsafe { Vec::from_raw_parts(buffer.cast(), len, len) })
    }

    fn note(&mut self, what: &str) {
        stats::REPAIRED.add(1);
        self.log(&format!("filter repaired: {what}"));
    }
}

/// A file, or a DUMP, that the server writes for us.
pub(super) struct Writer(pub(super) Io);

impl FieldWriter for Writer {
    fn unsigned(&mut self, number: u64) {
        // SAFETY: the file that is being written.
        unsafe { (api().save_unsigned)(self.0, number) };
    }

    fn double(&mut self, number: f64) {
        // SAFETY: the file that is being written.
        unsafe { (api().save_double)(self.0, number) };
    }

    fn string(&mut self, bytes: &[u8]) {
        // SAFETY: the file that is being written; the server copies the bytes.
        unsafe { (api().save_string_buffer)(self.0, bytes.as_ptr().cast(), bytes.len()) };
    }
}

/// Writes a command `name key iterator bytes` into an append-only file.
///
/// # Safety
///
/// File and key are those of a rewrite.
pub(super) unsafe fn emit_chunk(file: Io, key: Str, name: &CStr, iterator: i64, bytes: &[u8]) {
    // SAFETY: the format says what follows: a string, a number, and the address and the length of bytes.
    unsafe {
        (api().emit_aof)(
            file,
            name.as_ptr(),
            c"slb".as_ptr(),
            key,
            c_longlong::from(iterator),
            bytes.as_ptr(),
            bytes.len(),
        );
    }
}

/// Makes the save or the rewrite fail that a value is being written for. No function of a server says so, but both fail after a
/// command that does not exist.
///
/// # Safety
///
/// The file is one that the server writes right now.
pub(super) unsafe fn fail(file: Io) {
    // SAFETY: the server looks the command up before it reads any argument, of which there are none.
    unsafe { (api().emit_aof)(file, c"ironbloom-cannot-save-this-key".as_ptr(), c"".as_ptr()) };
}
