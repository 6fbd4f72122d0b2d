//! A command that is being executed: its arguments, its replies, and what replicas are told.

use std::ffi::{CStr, CString, c_int, c_long};
use std::marker::PhantomData;
use std::{ptr, slice};

use super::api::{Ctx, Str, api};
use super::key::{Access, Key};
use crate::stats;

/// Bits of the context's flags.
const SCRIPT: c_int = 1 << 0;
const TRANSACTION: c_int = 1 << 1;
const REPLICA: c_int = 1 << 3;
const REPLICATED: c_int = 1 << 12;
const LOADING: c_int = 1 << 13;
const DENY_BLOCKING: c_int = 1 << 21;
const RESP3: c_int = 1 << 22;

/// The class of keyspace events that modules have.
const NOTIFY_MODULE: c_int = 1 << 13;

/// A command in execution.
pub(crate) struct Call<'call> {
    pub(super) ctx: Ctx,
    args: &'call [Str],
    _server: PhantomData<&'call ()>,
}

impl<'call> Call<'call> {
    /// The command that the server hands to a handler.
    ///
    /// # Safety
    ///
    /// The arguments are those of a handler, and the call ends before it does.
    pub(super) unsafe fn new(ctx: Ctx, args: *mut Str, count: c_int) -> Self {
        let count = usize::try_from(count).expect("the server counts arguments");
        let args = if count == 0 {
            &[]
        } else {
            // SAFETY: the server hands over this many arguments, which live as long as the handler runs.
            unsafe { slice::from_raw_parts(args, count) }
        };
        Self { ctx, args, _server: PhantomData }
    }

    /// Number of arguments, the command's name among them.
    pub(crate) fn count(&self) -> usize {
        self.args.len()
    }

    /// Argument `i`; the command's name is 0.
    pub(crate) fn arg(&self, i: usize) -> &'call [u8] {
        // SAFETY: an argument of this call.
        unsafe { bytes_of(self.args[i]) }
    }

    /// Argument `i` as the server reads whole numbers.
    pub(crate) fn integer(&self, i: usize) -> Option<i64> {
        // SAFETY: an argument of this call.
        unsafe { integer_of(self.args[i]) }
    }

    /// Argument `i` as the server reads numbers.
    pub(crate) fn double(&self, i: usize) -> Option<f64> {
        // SAFETY: an argument of this call.
        unsafe { double_of(self.args[i]) }
    }

    fn has_flag(&self, flag: c_int) -> bool {
        // SAFETY: the context of this call.
        unsafe { (api().get_context_flags)(self.ctx) & flag != 0 }
    }

    /// Whether the client uses RESP3.
    pub(crate) fn is_resp3(&self) -> bool {
        self.has_flag(RESP3)
    }

    /// Whether the command comes from a primary, from a file, or with a slot that moves here: it was accepted once, and limits
    /// that were set since must not reject it.
    pub(crate) fn must_obey(&self) -> bool {
        // SAFETY: the context of this call.
        self.has_flag(REPLICATED | LOADING)
            || api().must_obey_client.is_some_and(|must_obey| unsafe { must_obey(self.ctx) != 0 })
    }

    /// Whether the client may wait for its reply while others are served.
    pub(super) fn may_wait(&self) -> bool {
        !self.has_flag(SCRIPT | TRANSACTION | DENY_BLOCKING) && !self.must_obey()
    }

    /// Whether this server is a replica of another.
    pub(crate) fn is_replica(&self) -> bool {
        self.has_flag(REPLICA)
    }

    /// Whether nothing may be sent to replicas now, because one of them is about to take over.
    pub(crate) fn must_avoid_replica_traffic(&self) -> bool {
        // SAFETY: a function without arguments.
        api().avoid_replica_traffic.is_some_and(|must_avoid| unsafe { must_avoid() != 0 })
    }

    /// The number of the database.
    pub(crate) fn database(&self) -> c_int {
        // SAFETY: the context of this call.
        unsafe { (api().get_selected_db)(self.ctx) }
    }

    /// Opens the key that argument `i` names.
    pub(crate) fn open(&self, i: usize, access: Access) -> Key<'_> {
        Key::open(self, self.args[i], access)
    }

    /// Replies with the server's own text for a wrong number of arguments.
    pub(crate) fn reply_wrong_arity(&self) {
        stats::ERRORS.add(1);
        // SAFETY: the context of this call.
        unsafe { (api().wrong_arity)(self.ctx) };
    }

    /// Replies with an error; the text includes the error code.
    pub(crate) fn reply_error(&self, text: &CStr) {
        stats::ERRORS.add(1);
        // SAFETY: the context of this call; the server copies the text.
        unsafe { (api().reply_with_error)(self.ctx, text.as_ptr()) };
    }

    /// Replies with a simple string.
    pub(crate) fn reply_simple(&self, text: &CStr) {
        // SAFETY: the context of this call; the server copies the text.
        unsafe { (api().reply_with_simple_string)(self.ctx, text.as_ptr()) };
    }

    /// Replies with a simple string that is not a constant.
    pub(crate) fn reply_word(&self, text: &str) {
        self.reply_simple(&CString::new(text).unwrap_or_default());
    }

    /// Replies with a number.
    pub(crate) fn reply_integer(&self, number: i64) {
        // SAFETY: the context of this call.
        unsafe { (api().reply_with_long_long)(self.ctx, number) };
    }

    /// Replies with a floating-point number. As a string it has the same digits on all servers, the shortest that are
    /// unambiguous; in RESP3 it is a double, in the server's own format.
    pub(crate) fn reply_double(&self, number: f64) {
        if !self.is_resp3() {
            return self.reply_bytes(number.to_string().as_bytes());
        }
        self.reply_servers_double(number);
    }

    /// Replies with a floating-point number in the server's own format, as RedisBloom does: its digits differ between servers.
    pub(crate) fn reply_servers_double(&self, number: f64) {
        // SAFETY: the context of this call.
        unsafe { (api().reply_with_double)(self.ctx, number) };
    }

    /// Replies with a boolean, which is 1 or 0 in RESP2.
    pub(crate) fn reply_bool(&self, is_true: bool) {
        match api().reply_with_bool {
            // SAFETY: the context of this call.
            Some(reply_with_bool) => unsafe {
                reply_with_bool(self.ctx, c_int::from(is_true));
            },
            None => self.reply_integer(i64::from(is_true)),
        }
    }

    /// Replies with null.
    pub(crate) fn reply_null(&self) {
        // SAFETY: the context of this call.
        unsafe { (api().reply_with_null)(self.ctx) };
    }

    /// Replies with bytes.
    pub(crate) fn reply_bytes(&self, bytes: &[u8]) {
        // SAFETY: the context of this call; the server copies the bytes.
        unsafe {
            (api().reply_with_string_buffer)(self.ctx, bytes.as_ptr().cast(), bytes.len());
        }
    }

    /// Begins an array of `len` replies.
    pub(crate) fn reply_array(&self, len: usize) {
        // SAFETY: the context of this call.
        unsafe { (api().reply_with_array)(self.ctx, len as c_long) };
    }

    /// Begins a map of `len` pairs, which is a flat array in RESP2.
    pub(crate) fn reply_map(&self, len: usize) {
        match api().reply_with_map {
            // SAFETY: the context of this call.
            Some(reply_with_map) => unsafe {
                reply_with_map(self.ctx, len as c_long);
            },
            None => self.reply_array(2 * len),
        }
    }

    /// Sends the command as received to replicas and to the append-only file.
    pub(crate) fn replicate_verbatim(&self) {
        // SAFETY: the context of this call.
        unsafe { (api().replicate_verbatim)(self.ctx) };
    }

    /// Sends a command to replicas and to the append-only file: its name, the key of this one, and words.
    pub(crate) fn replicate_words<W: AsRef<[u8]>>(&self, name: &CStr, words: &[W]) {
        let words: Vec<OwnString> =
            words.iter().map(|word| OwnString::new(word.as_ref())).collect();
        let words: Vec<Str> = words.iter().map(|word| word.string).collect();
        self.replicate_strings(name, &words);
    }

    /// Sends a command to replicas and to the append-only file: its name, the key of this one, and `count` of its
    /// arguments from `first` on.
    pub(crate) fn replicate_args(&self, name: &CStr, first: usize, count: usize) {
        self.replicate_strings(name, &self.args[first..first + count]);
    }

    /// Sends a command to replicas and to the append-only file: its name, the key of this one, and the arguments that stand
    /// at these places.
    pub(crate) fn replicate_chosen(&self, name: &CStr, places: &[usize]) {
        let strings: Vec<Str> = places.iter().map(|&i| self.args[i]).collect();
        self.replicate_strings(name, &strings);
    }

    /// The same with a word before the arguments.
    pub(crate) fn replicate_chosen_after(&self, name: &CStr, word: &str, places: &[usize]) {
        let word = OwnString::new(word.as_bytes());
        let chosen = places.iter().map(|&i| self.args[i]);
        let strings: Vec<Str> = std::iter::once(word.string).chain(chosen).collect();
        self.replicate_strings(name, &strings);
    }

    fn replicate_strings(&self, name: &CStr, strings: &[Str]) {
        // SAFETY: the format says what follows: a string, and the address and the length of an array of strings.
        unsafe {
            (api().replicate)(
                self.ctx,
                name.as_ptr(),
                c"sv".as_ptr(),
                self.args[1],
                strings.as_ptr(),
                strings.len(),
            );
        }
    }

    /// Sends a keyspace event for the key of this command.
    pub(crate) fn notify(&self, event: &CStr) {
        // SAFETY: the context and an argument of this call.
        unsafe {
            (api().notify_keyspace_event)(self.ctx, NOTIFY_MODULE, event.as_ptr(), self.args[1]);
        }
    }
}

/// A string of the server that we created, and free.
pub(super) struct OwnString {
    pub(super) string: Str,
}

impl OwnString {
    pub(super) fn new(bytes: &[u8]) -> Self {
        // SAFETY: without a context, the string is ours until it is freed; the server copies the bytes.
        let string =
            unsafe { (api().create_string)(ptr::null_mut(), bytes.as_ptr().cast(), bytes.len()) };
        Self { string }
    }
}

impl Drop for OwnString {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and given back once.
        unsafe { (api().free_string)(ptr::null_mut(), self.string) };
    }
}

/// The bytes of a string.
///
/// # Safety
///
/// The string is the server's, and lives as long as the bytes are used.
pub(super) unsafe fn bytes_of<'a>(string: Str) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: a string of the server, and a place for its length.
    let bytes = unsafe { (api().string_ptr_len)(string, &raw mut len) };
    // SAFETY: the server says that this many bytes are there. It never says null for a string that is one.
    unsafe { slice::from_raw_parts(bytes.cast(), len) }
}

/// A string as the server reads whole numbers.
///
/// # Safety
///
/// The string is the server's.
pub(super) unsafe fn integer_of(string: Str) -> Option<i64> {
    let mut number = 0;
    // SAFETY: a string of the server, and a place for the number.
    let status = unsafe { (api().string_to_long_long)(string, &raw mut number) };
    (status == super::api::OK).then_some(number)
}

/// A string as the server reads numbers.
///
/// # Safety
///
/// The string is the server's.
pub(super) unsafe fn double_of(string: Str) -> Option<f64> {
    let mut number = 0.0;
    // SAFETY: a string of the server, and a place for the number.
    let status = unsafe { (api().string_to_double)(string, &raw mut number) };
    (status == super::api::OK).then_some(number)
}
