//! What COMMAND DOCS and COMMAND INFO say of a command: the structures of the server, filled from [`Docs`].
//!
//! Lists end with an element of zeros. The server copies everything, so they need to live only as long as the call.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use super::api::{CommandPtr, OK};

/// A command in words.
pub(crate) struct Docs {
    /// What it does.
    pub(crate) summary: &'static CStr,
    /// How long it takes.
    pub(crate) complexity: &'static CStr,
    /// The version of RedisBloom that had it first, or ours for what is our own.
    pub(crate) since: &'static CStr,
    /// Arguments with the name; negative: at least this many.
    pub(crate) arity: c_int,
    /// The arguments after the key.
    pub(crate) args: &'static [Arg],
    /// Hints for clients and proxies.
    pub(crate) tips: Option<&'static CStr>,
}

/// An argument.
pub(crate) struct Arg {
    /// Its name.
    pub(crate) name: &'static CStr,
    /// What it is.
    pub(crate) kind: ArgKind,
    /// The word before it, or that it is.
    pub(crate) token: Option<&'static CStr>,
    /// How often it comes.
    pub(crate) times: Times,
    /// What it consists of, or the words it may be. These have no parts.
    pub(crate) parts: &'static [Arg],
}

/// What an argument is; the server's numbers.
#[derive(Clone, Copy)]
pub(crate) enum ArgKind {
    /// Bytes.
    String = 0,
    /// A whole number.
    Integer = 1,
    /// A number.
    Double = 2,
    /// A further key.
    Key = 3,
    /// Just its word.
    Token = 6,
    /// One of several words.
    OneOf = 7,
    /// Several arguments together.
    Block = 8,
}

/// How often an argument comes; the server's numbers.
#[derive(Clone, Copy)]
pub(crate) enum Times {
    /// Once.
    Once = 0,
    /// Once or not at all.
    Optional = 1,
    /// Once or more.
    Many = 2,
}

/// What a command does with its key; the server's bits. Without `ACCESS` and `UPDATE`, which RedisBloom 8 leaves out,
/// permissions to read or to write a key would not be asked for.
const READ_ONLY: u64 = 1 << 0;
const READ_WRITE: u64 = 1 << 1;
const ACCESS: u64 = 1 << 4;
const UPDATE: u64 = 1 << 5;

const BEGIN_AT_INDEX: c_int = 2;
const FIND_RANGE: c_int = 2;
const FIND_NUMBER_OF_KEYS: c_int = 3;

#[repr(C)]
struct RawArg {
    name: *const c_char,
    kind: c_int,
    key_spec_index: c_int,
    token: *const c_char,
    summary: *const c_char,
    since: *const c_char,
    flags: c_int,
    deprecated_since: *const c_char,
    subargs: *mut RawArg,
    display_text: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Keyword {
    keyword: *const c_char,
    start: c_int,
}

#[repr(C)]
union BeginSearch {
    index: c_int,
    keyword: Keyword,
}

#[repr(C)]
struct RawKeySpec {
    notes: *const c_char,
    flags: u64,
    begin_search_type: c_int,
    begin_search: BeginSearch,
    find_keys_type: c_int,
    /// Of a range: last key, step, limit. Of a number of keys: where it stands, first key, step.
    find_keys: [c_int; 3],
}

#[repr(C)]
struct RawVersion {
    version: c_int,
    sizeof_history_entry: usize,
    sizeof_key_spec: usize,
    sizeof_arg: usize,
}

/// Two strings: what changed since when. Nothing did.
const HISTORY_ENTRY_BYTES: usize = 2 * size_of::<*const c_char>();

#[repr(C)]
pub(crate) struct RawInfo {
    version: *const RawVersion,
    summary: *const c_char,
    complexity: *const c_char,
    since: *const c_char,
    history: *mut u8,
    tips: *const c_char,
    arity: c_int,
    key_specs: *mut RawKeySpec,
    args: *mut RawArg,
}

// The layout of `redismodule.h` on machines with 64 bits.
const _: () = assert!(size_of::<RawKeySpec>() == 56 && size_of::<RawArg>() == 72);

/// Tells the server of a command. False if it does not like it.
///
/// # Safety
///
/// The command was just registered, and the function is the server's.
pub(super) unsafe fn describe(
    set_command_info: unsafe extern "C" fn(CommandPtr, *const RawInfo) -> c_int,
    command: CommandPtr,
    docs: &Docs,
    is_write: bool,
) -> bool {
    let version = RawVersion {
        version: 1,
        sizeof_history_entry: HISTORY_ENTRY_BYTES,
        sizeof_key_spec: size_of::<RawKeySpec>(),
        sizeof_arg: size_of::<RawArg>(),
    };
    let key_flags = if is_write { READ_WRITE | ACCESS | UPDATE } else { READ_ONLY | ACCESS };
    let mut specs = vec![key_spec(key_flags, 1, 0)];
    match docs.args.iter().position(is_key) {
        None => {}
        Some(0) => {
            let last = if matches!(docs.args[0].times, Times::Many) { -1 } else { 0 };
            specs.push(key_spec(READ_ONLY | ACCESS, 2, last));
        }
        // Their number stands before them.
        Some(_) => specs.push(RawKeySpec {
            find_keys_type: FIND_NUMBER_OF_KEYS,
            find_keys: [0, 1, 1],
            ..key_spec(READ_ONLY | ACCESS, 2, 0)
        }),
    }
    specs.push(RawKeySpec { begin_search_type: 0, find_keys_type: 0, ..key_spec(0, 0, 0) });
    let mut parts: Vec<Vec<RawArg>> =
        docs.args.iter().map(|arg| list(arg.parts.iter().map(raw_arg))).collect();
    let args = docs.args.iter().zip(&mut parts).map(|(arg, parts)| RawArg {
        subargs: if arg.parts.is_empty() { ptr::null_mut() } else { parts.as_mut_ptr() },
        ..raw_arg(arg)
    });
    let mut args = list(std::iter::once(named(c"key", ArgKind::Key, 0)).chain(args));
    let info = RawInfo {
        version: &raw const version,
        summary: docs.summary.as_ptr(),
        complexity: docs.complexity.as_ptr(),
        since: docs.since.as_ptr(),
        history: ptr::null_mut(),
        tips: docs.tips.map_or(ptr::null(), CStr::as_ptr),
        arity: docs.arity,
        key_specs: specs.as_mut_ptr(),
        args: args.as_mut_ptr(),
    };
    // SAFETY: all lists end with zeros and live until the server has copied them.
    unsafe { set_command_info(command, &raw const info) == OK }
}

fn key_spec(flags: u64, first: c_int, last: c_int) -> RawKeySpec {
    RawKeySpec {
        notes: ptr::null(),
        flags,
        begin_search_type: BEGIN_AT_INDEX,
        begin_search: BeginSearch { index: first },
        find_keys_type: FIND_RANGE,
        find_keys: [last, 1, 0],
    }
}

fn is_key(arg: &Arg) -> bool {
    matches!(arg.kind, ArgKind::Key)
}

/// A list as the server reads it, with an end.
fn list(args: impl Iterator<Item = RawArg>) -> Vec<RawArg> {
    args.chain([END]).collect()
}

/// An argument without its parts.
fn raw_arg(arg: &Arg) -> RawArg {
    RawArg {
        token: arg.token.map_or(ptr::null(), CStr::as_ptr),
        flags: arg.times as c_int,
        ..named(arg.name, arg.kind, c_int::from(is_key(arg)))
    }
}

/// `key_spec` says which specification a key belongs to; the server refuses it for anything else.
fn named(name: &CStr, kind: ArgKind, key_spec: c_int) -> RawArg {
    RawArg { name: name.as_ptr(), kind: kind as c_int, key_spec_index: key_spec, ..END }
}

/// The end of a list: zeros.
const END: RawArg = RawArg {
    name: ptr::null(),
    kind: 0,
    key_spec_index: 0,
    token: ptr::null(),
    summary: ptr::null(),
    since: ptr::null(),
    flags: 0,
    deprecated_since: ptr::null(),
    subargs: ptr::null_mut(),
    display_text: ptr::null(),
};
