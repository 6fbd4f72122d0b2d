//! The bytes of a file, mapped: the only unsafe code of the table side.

#![expect(unsafe_code, reason = "memory maps")]

use std::fs::File;
use std::io;

use bytes::Bytes;
use memmap2::Mmap;

/// All bytes of a file, read when they are touched. Slices of them share the map and keep it alive.
///
/// The file must not be cut shorter while it is mapped, or touching what is gone kills the process. Tables in a data lake
/// are replaced by renaming, which is safe: the map keeps the old file.
pub(super) fn map(file: &File) -> io::Result<Bytes> {
    // An empty file cannot be mapped on every platform.
    if file.metadata()?.len() == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: the map is read-only and lives as long as the last `Bytes` that looks into it. Rust asks that nobody
    // changes the file meanwhile; we never do, and `Table::open` documents it as the caller's duty for everybody else.
    let map = unsafe { Mmap::map(file)? };
    Ok(Bytes::from_owner(map))
}
