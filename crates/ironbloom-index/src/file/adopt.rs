//! The temporary file of a build becomes the index, instead of being copied into it.
//!
//! ```text
//!  temporary file, without a name    64 bytes · column 0 · column 1 · …
//!  the same file, .t.ibx.PID-0.tmp   header   · column 0 · column 1 · … · bounds · blobs · directory · header
//! ```
//!
//! That is possible if its sections are all that the index has there, in the order in which an index has them: so the bytes of
//! an index do not depend on how it was saved. Whatever does not fit, on a file system where a file cannot get a name
//! later or on another system than Linux, is copied.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::{HEADER_BYTES, LINE_BYTES};
use crate::file_bytes::FileBytes;
use crate::index::Index;
use crate::section::Section;
use crate::segment::SegmentColumn;

/// A file that begins as the index does.
pub(super) struct Begun<'a> {
    pub(super) file: &'a FileBytes,
    /// Columns that it has, of all segments, in the order of an index file.
    pub(super) sections: usize,
    /// Where they end.
    pub(super) end: u64,
}

impl<'a> Begun<'a> {
    /// The temporary file of this index, if it can become the index.
    pub(super) fn of(index: &'a Index) -> Option<Self> {
        let columns = (0..index.columns().len())
            .flat_map(|column| index.segments.iter().map(move |segment| &segment.columns[column]));
        let mut sections = columns.map(unloaded);
        let file = sections.clone().next()??.file();
        let is_there = |section: &Option<&Section>| {
            section.is_some_and(|section| section.file().is_same(file))
        };
        let (mut end, mut count) = (HEADER_BYTES as u64, 0);
        for section in sections.by_ref().take_while(is_there).flatten() {
            if section.range().start != end.next_multiple_of(LINE_BYTES as u64) {
                return None;
            }
            end = section.stored_range().end;
            count += 1;
        }
        // What comes after would be overwritten.
        (!sections.any(|section| is_there(&section))).then_some(Self { file, sections: count, end })
    }

    /// Gives the file this name, in the place of the one that has it, and its permissions. `None` if that is impossible, and
    /// nothing has changed; or if it has been done before, since nobody may write to that file then.
    pub(super) fn take_name(&self, path: &Path, instead_of: &File) -> Option<&'a File> {
        let file = self.file.take_unnamed()?;
        file.set_permissions(instead_of.metadata().ok()?.permissions()).ok()?;
        // Of the form that a later writer removes if this one is killed.
        let name = path.file_name()?.to_str()?;
        let linked = path
            .with_file_name(name.rsplit_once('-').map(|(start, end)| format!("{start}-0{end}"))?);
        link(file, &linked).ok()?;
        let renamed = fs::rename(&linked, path);
        if renamed.is_err() {
            let _ = fs::remove_file(&linked);
        }
        renamed.ok().map(|()| file)
    }
}

/// The section of a column that is only in a file.
fn unloaded(column: &SegmentColumn) -> Option<&Section> {
    match column {
        SegmentColumn::Stored(stored) if stored.loaded().is_none() => Some(&stored.section),
        _ => None,
    }
}

#[cfg(target_os = "linux")]
fn link(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    use std::os::fd::AsRawFd as _;
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, open, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn link(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use ironbloom_testing::Scratch;

    use super::*;
    use crate::{IndexBuilder, Params, Resources, columns_of};

    /// An index of two columns, which did not stay in memory.
    fn spilled(folder: &Path, rows: i64) -> Index {
        let column = |factor: i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values((0..rows).map(|row| row * factor % 10_007)))
        };
        let batch = RecordBatch::try_from_iter([("a", column(1)), ("b", column(7))]).unwrap();
        let columns = columns_of(&batch.schema()).unwrap();
        let builder = IndexBuilder::new(columns, Params::default()).unwrap();
        let small = Resources::default().with_memory(1 << 20).with_threads(1);
        let mut builder = builder.with_resources(small, folder);
        builder.start("t").unwrap();
        builder.push(&batch).unwrap();
        builder.finish().unwrap()
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_temporary_file_becomes_the_index_once_and_a_copy_has_the_same_bytes() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        let scratch = Scratch::on_disk("adopt");
        let mut index = spilled(scratch.path(), 60_000);
        assert!(Begun::of(&index).is_some_and(|begun| begun.sections == 2));
        let (first, second, plain) =
            (scratch.file("first.ibx"), scratch.file("second.ibx"), scratch.file("plain"));
        index.save(&*first).unwrap();
        let adopted = fs::metadata(&first).unwrap();
        let inode_of_build = match unloaded(&index.segments[0].columns[0]) {
            Some(section) => section.file().inode(),
            None => panic!("the column is in the file"),
        };
        assert_eq!(adopted.ino(), inode_of_build, "it was not copied");
        // The same index again: the first file must not change any more.
        index.save(&*second).unwrap();
        assert_ne!(fs::metadata(&second).unwrap().ino(), adopted.ino());
        assert_eq!(fs::read(&first).unwrap(), fs::read(&second).unwrap());
        for path in [&first, &second] {
            assert!(Index::open(&**path).unwrap().verify().is_empty());
        }
        // Readable by those who can read any other new file, not only by the owner, as temporary files are.
        fs::write(&plain, "").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&first), mode(&plain));
        // The permissions of a file that is replaced are kept.
        fs::set_permissions(&first, fs::Permissions::from_mode(0o640)).unwrap();
        spilled(scratch.path(), 60_000).save(&*first).unwrap();
        assert_eq!(mode(&first), 0o640);
        assert_eq!(scratch.names(), ["first.ibx", "plain", "second.ibx"]);
    }

    #[test]
    fn a_temporary_file_with_something_else_in_it_is_copied() {
        let scratch = Scratch::on_disk("adopt-not");
        // Several segments that were merged, so that the file also holds what they were made of; and too many to be merged.
        for rows in [140_000, 300_000] {
            let mut index = spilled(scratch.path(), rows);
            assert!(Begun::of(&index).is_none(), "{rows} rows");
            index.save(scratch.file("t.ibx")).unwrap();
            assert!(Index::open(scratch.file("t.ibx")).unwrap().verify().is_empty());
        }
    }
}
