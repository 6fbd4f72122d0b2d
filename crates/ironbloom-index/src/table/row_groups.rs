//! The row groups in a footer: found once, when a table is indexed, and then parsed one by one as they are needed.
//!
//! ```text
//!  footer            │ version, schema, rows │ group 0 │ group 1 │ … │ writer, … │
//!  notes of the index                        where the list is, and how long each group
//!  parsed for group 1   │ version, schema, rows │ group 1 │ writer, … │
//! ```
//!
//! What is parsed is a footer that has one group, so the `parquet` crate reads it as any other. A file of thousands of row
//! groups is opened as quickly as one of a few.

use std::ops::Range;

use super::notes::{NotesReader, NotesWriter};
use super::thrift::{Compact, LIST, STRUCT};

/// The number of the field of a file that lists its row groups.
const ROW_GROUPS: i64 = 4;

/// Where the row groups are in a footer, which is a struct of Thrift.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupSpans {
    /// The list with its head.
    list: Range<usize>,
    groups: Vec<Range<usize>>,
}

impl GroupSpans {
    /// `None` if it is not a footer, or has no list of row groups.
    pub(super) fn find(footer: &[u8]) -> Option<Self> {
        let mut input = Compact::new(footer);
        let place = |input: &Compact<'_>| footer.len() - input.rest().len();
        let mut number = 0;
        while let Some(of) = input.field(&mut number)? {
            if (number, of) != (ROW_GROUPS, LIST) {
                input.skip(of, 0)?;
                continue;
            }
            let start = place(&input);
            let head = input.byte()?;
            let length = if head >> 4 == 15 { input.varint()? } else { u64::from(head >> 4) };
            if head & 0x0f != STRUCT {
                return None;
            }
            let mut groups = Vec::new();
            for _ in 0..length {
                let start = place(&input);
                input.skip(STRUCT, 1)?;
                groups.push(start..place(&input));
            }
            return Some(Self { list: start..place(&input), groups });
        }
        None
    }

    pub(super) fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there is a list of as many row groups in this footer, and where it should be.
    pub(super) fn fits(&self, footer: &[u8]) -> bool {
        let list = |input: &mut Compact<'_>| {
            let head = input.byte()?;
            let length = if head >> 4 == 15 { input.varint()? } else { u64::from(head >> 4) };
            (head & 0x0f == STRUCT).then_some((length, footer.len() - input.rest().len()))
        };
        let found = footer.get(self.list.start..).and_then(|rest| list(&mut Compact::new(rest)));
        let first = self.groups.first().map_or(self.list.end, |group| group.start);
        found == Some((self.groups.len() as u64, first)) && self.list.end <= footer.len()
    }

    /// The footer with this group alone, or with none. `None` if it is too short to be the footer that was noted.
    pub(super) fn footer_of(&self, footer: &[u8], group: Option<usize>) -> Option<Vec<u8>> {
        let (head, group) = match group {
            Some(group) => (1 << 4 | STRUCT, footer.get(self.groups[group].clone())?),
            None => (STRUCT, &[][..]),
        };
        let (before, after) = (footer.get(..self.list.start)?, footer.get(self.list.end..)?);
        Some([before, &[head], group, after].concat())
    }

    /// Writes where the list starts and where its first group, then the bytes of each group.
    pub(super) fn write(&self, writer: &mut NotesWriter) {
        writer.number(self.list.start as u64);
        let first = self.groups.first().map_or(self.list.end, |group| group.start);
        writer.number((first - self.list.start) as u64);
        writer.number(self.groups.len() as u64);
        self.groups.iter().for_each(|group| writer.number(group.len() as u64));
    }

    pub(super) fn read(reader: &mut NotesReader<'_>) -> Result<Self, &'static str> {
        const TOO_LONG: &str = "a row group is too long";
        let mut number = || usize::try_from(reader.number()?).map_err(|_| TOO_LONG);
        let start = number()?;
        let mut end = start.checked_add(number()?).ok_or(TOO_LONG)?;
        let mut groups = Vec::new();
        for _ in 0..reader.count(1)? {
            let bytes = usize::try_from(reader.number()?).map_err(|_| TOO_LONG)?;
            let next = end.checked_add(bytes).ok_or(TOO_LONG)?;
            groups.push(end..next);
            end = next;
        }
        Ok(Self { list: start..end, groups })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FileMetaData { version 1, schema [], rows 7, row groups [{ rows 3 }, { rows 4 }], writer "x" }
    const FOOTER: [u8; 16] =
        [0x15, 2, 0x19, 0x0c, 0x16, 14, 0x19, 0x2c, 0x36, 6, 0, 0x36, 8, 0, 0x28, 1];

    fn footer() -> Vec<u8> {
        [&FOOTER[..], b"x\0"].concat()
    }

    #[test]
    fn a_footer_of_one_group_is_the_footer_without_the_others() {
        let spans = GroupSpans::find(&footer()).unwrap();
        assert_eq!(spans.groups, [8..11, 11..14]);
        let second = spans.footer_of(&footer(), Some(1)).unwrap();
        let wanted = [&FOOTER[..7], &[0x1c, 0x36, 8, 0, 0x28, 1], b"x\0"].concat();
        assert_eq!(second, wanted);
        let none = spans.footer_of(&footer(), None).unwrap();
        assert_eq!(none, [&FOOTER[..7], &[0x0c, 0x28, 1], b"x\0"].concat());
        assert_eq!(GroupSpans::find(&none).unwrap().len(), 0);
        assert!(spans.fits(&footer()));
        assert!(!spans.fits(&second) && !spans.fits(&none) && !spans.fits(&footer()[..13]));
    }

    #[test]
    fn spans_are_read_as_they_were_written() {
        let spans = GroupSpans::find(&footer()).unwrap();
        let mut writer = NotesWriter::new(*b"TEST");
        spans.write(&mut writer);
        let notes = writer.finish();
        let mut reader = NotesReader::new(&notes, *b"TEST").unwrap();
        assert_eq!(GroupSpans::read(&mut reader), Ok(spans));
    }

    #[test]
    fn what_is_cut_off_has_no_groups() {
        for length in 0..14 {
            assert_eq!(GroupSpans::find(&footer()[..length]), None, "{length} bytes");
        }
        let spans = GroupSpans::find(&footer()).unwrap();
        assert_eq!(spans.footer_of(&footer()[..10], Some(1)), None);
    }
}
