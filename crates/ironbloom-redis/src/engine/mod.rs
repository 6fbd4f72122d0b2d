//! The edge to the server: the only unsafe code of the crate.
//!
//! ```text
//! api         the server's functions, found by name when the module is loaded
//! allocator   memory from the server, so that it is counted in used_memory
//! call        a command that is being executed: its arguments, its replies, what is replicated
//! key         a key that is open: missing, of another type, or a filter
//! value       a filter as a value of the server: saved, loaded, copied, freed …
//! io          fields of an RDB file
//! timer       work that goes on between commands             blocked    a client that waits for it
//! config      settings that CONFIG SET changes
//! register    commands, their flags and their handlers     describe   what COMMAND DOCS says of them
//! ```
//!
//! It is written by hand because the crate `redis-module` needs libclang to build, and doubles the time of a command
//! without arguments: 0.20 against 0.093 µs, and 5.0 against 2.2 µs with a hundred (Redis 7.0.15, no-op commands).
//! Everything outside this folder sees slices, numbers and references.

#![expect(unsafe_code, reason = "the server is written in C")]

pub(crate) mod allocator;
pub(crate) mod api;
pub(crate) mod blocked;
pub(crate) mod call;
pub(crate) mod config;
pub(crate) mod describe;
pub(crate) mod io;
pub(crate) mod key;
pub(crate) mod register;
pub(crate) mod timer;
pub(crate) mod value;
