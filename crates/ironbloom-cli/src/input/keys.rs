//! Keys of one block of input: cut at line ends, or taken from CSV.

use std::io::{self, Write};
use std::sync::Arc;

/// Some keys, in order.
#[derive(Default)]
pub(crate) struct Keys {
    bytes: Vec<u8>,
    /// Where each key ends in `bytes`; it is followed by `gap` bytes of delimiter.
    ends: Vec<usize>,
    gap: usize,
    /// Keys that end with a carriage return, which belongs to the line end and not to the key.
    returns: u64,
    /// Of CSV: the line in which each key begins.
    lines: Vec<u64>,
    /// Of CSV, if they are wanted: the rows that the keys are from.
    rows: Option<Box<Self>>,
    /// Of CSV with rows: the header, in the first block of all.
    pub(super) header: Option<Vec<u8>>,
    /// The name of the input.
    pub(super) source: Arc<str>,
}

/// How a block is cut into keys.
#[derive(Clone, Copy)]
pub(super) struct LineEnd {
    /// The last byte of a line.
    pub(super) delimiter: u8,
    /// True if a carriage return before it belongs to it.
    pub(super) strip: bool,
}

impl Keys {
    /// No keys of this input, with their rows if those are wanted.
    pub(super) fn of_table(source: &Arc<str>, with_rows: bool) -> Self {
        let rows = with_rows.then(Box::default);
        Self { source: Arc::clone(source), rows, ..Self::default() }
    }

    /// Cuts a block at its delimiters. Bytes after the last one are a key, too: the last line needs no newline.
    pub(super) fn split(bytes: Vec<u8>, line_end: LineEnd) -> Self {
        let mut ends: Vec<usize> = memchr::memchr_iter(line_end.delimiter, &bytes).collect();
        let consumed = ends.last().map_or(0, |end| end + 1);
        if consumed < bytes.len() {
            ends.push(bytes.len());
        }
        let mut keys = Self { bytes, ends, gap: 1, ..Self::default() };
        // Most text has none at all, and to see that costs nothing beside the search for line ends.
        if line_end.strip && memchr::memchr(b'\r', &keys.bytes).is_some() {
            keys.returns = keys.raw().filter(|line| line.ends_with(b"\r")).count() as u64;
        }
        keys
    }

    /// Reads the keys of this input in the same form.
    pub(super) fn from(self, source: Arc<str>) -> Self {
        Self { source, ..self }
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Lines whose carriage return was taken for a part of the line end.
    pub(super) fn returns(&self) -> u64 {
        self.returns
    }

    /// The keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let strip = self.returns > 0;
        self.raw()
            .map(move |line| if strip { line.strip_suffix(b"\r").unwrap_or(line) } else { line })
    }

    /// The keys with what was stripped from them.
    fn raw(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let key = &self.bytes[start..end];
            start = end + self.gap;
            key
        })
    }

    /// The line in which the key at `place` begins, if this is CSV.
    pub(super) fn line(&self, place: usize) -> Option<u64> {
        self.lines.get(place).copied()
    }

    /// Writes the keys whose flag is `wanted`, each followed by the delimiter, or their rows if those are kept. Lines
    /// are written as they came. Neighbours are written in one go, delimiters included: most often that is the whole block.
    pub(crate) fn select(
        &self,
        flags: &[bool],
        wanted: bool,
        delimiter: u8,
        out: &mut impl Write,
    ) -> io::Result<()> {
        if let Some(header) = &self.header {
            out.write_all(header)?;
        }
        if let Some(rows) = &self.rows {
            return rows.select(flags, wanted, delimiter, out);
        }
        let start_of = |i: usize| if i == 0 { 0 } else { self.ends[i - 1] + self.gap };
        let mut i = 0;
        while i < self.len() {
            if flags[i] != wanted {
                i += 1;
                continue;
            }
            let first = i;
            // Keys of CSV have no delimiters between them, so each is its own neighbourhood.
            while i + 1 < self.len() && self.gap == 1 && flags[i + 1] == wanted {
                i += 1;
            }
            let end = self.ends[i] + self.gap;
            if self.gap == 1 && end <= self.bytes.len() {
                out.write_all(&self.bytes[start_of(first)..end])?;
            } else {
                out.write_all(&self.bytes[start_of(first)..self.ends[i]])?;
                out.write_all(&[delimiter])?;
            }
            i += 1;
        }
        Ok(())
    }

    /// A value of CSV.
    pub(super) fn push(&mut self, key: &[u8], line: u64) {
        self.push_bytes(key);
        self.lines.push(line);
    }

    /// Several values as one key: before each field its length, so that [`fields`] can take it apart.
    pub(super) fn push_fields<'a>(&mut self, fields: impl Iterator<Item = &'a [u8]>, line: u64) {
        for field in fields {
            self.bytes.extend_from_slice(&(field.len() as u64).to_le_bytes());
            self.bytes.extend_from_slice(field);
        }
        self.ends.push(self.bytes.len());
        self.lines.push(line);
    }

    /// The row of the key that was pushed last, as text.
    pub(super) fn push_row(&mut self, row: &[u8]) {
        if let Some(rows) = &mut self.rows {
            rows.push_bytes(row);
        }
    }

    fn push_bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
    }
}

/// The fields of a row that was read as one key.
pub(crate) fn fields(mut row: &[u8]) -> Vec<&[u8]> {
    let mut fields = Vec::new();
    while let Some((len, rest)) = row.split_first_chunk() {
        let (field, rest) = rest.split_at(u64::from_le_bytes(*len) as usize);
        fields.push(field);
        row = rest;
    }
    fields
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::input) const TEXT: LineEnd = LineEnd { delimiter: b'\n', strip: true };
    const EXACT: LineEnd = LineEnd { delimiter: b'\n', strip: false };

    fn split(text: &[u8], line_end: LineEnd) -> Vec<Vec<u8>> {
        Keys::split(text.to_vec(), line_end).iter().map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn lines_are_keys_and_the_last_needs_no_newline() {
        for line_end in [TEXT, EXACT] {
            assert_eq!(split(b"", line_end), Vec::<Vec<u8>>::new());
            assert_eq!(split(b"a\nbc\n", line_end), [b"a".to_vec(), b"bc".to_vec()]);
            assert_eq!(split(b"a\nbc", line_end), [b"a".to_vec(), b"bc".to_vec()]);
            assert_eq!(split(b"\n\nx", line_end), [b"".to_vec(), b"".to_vec(), b"x".to_vec()]);
        }
    }

    #[test]
    fn a_carriage_return_belongs_to_the_line_end_unless_bytes_are_exact() {
        for (text, stripped, exact) in [
            (&b"a\r\nb\r\n"[..], vec!["a", "b"], vec!["a\r", "b\r"]),
            (b"a\r\nb\n", vec!["a", "b"], vec!["a\r", "b"]),
            (b"\r\n", vec![""], vec!["\r"]),
            (b"a\rb\n", vec!["a\rb"], vec!["a\rb"]),
            (b"a\r\r\n", vec!["a\r"], vec!["a\r\r"]),
            (b"a\nlast\r", vec!["a", "last"], vec!["a", "last\r"]),
        ] {
            let bytes = |keys: Vec<&str>| -> Vec<Vec<u8>> {
                keys.into_iter().map(|key| key.as_bytes().to_vec()).collect()
            };
            assert_eq!(split(text, TEXT), bytes(stripped), "{text:?}");
            assert_eq!(split(text, EXACT), bytes(exact), "{text:?}");
        }
    }

    #[test]
    fn a_row_comes_apart_into_its_fields() {
        let rows: [&[&[u8]]; 4] = [&[b"large", b"red"], &[b"", b""], &[b"a,\n\0", b"b"], &[b"x"]];
        let mut keys = Keys::default();
        rows.iter().for_each(|row| keys.push_fields(row.iter().copied(), 1));
        assert!(keys.iter().map(fields).eq(rows.iter().map(|row| row.to_vec())));
    }

    #[test]
    fn selected_keys_keep_their_order_and_their_line_ends() {
        let lines = Keys::split(b"a\nbb\r\n\nd\nlast".to_vec(), TEXT);
        let mut columns = Keys::default();
        ["a", "bb\r", "", "d", "last"].iter().for_each(|key| columns.push(key.as_bytes(), 1));
        for pattern in 0..32u32 {
            let flags: Vec<bool> = (0..5).map(|i| pattern >> i & 1 == 1).collect();
            for wanted in [true, false] {
                let kept = lines.raw().zip(&flags).filter(|&(_, &flag)| flag == wanted);
                let naive: Vec<u8> = kept.flat_map(|(key, _)| [key, b"\n"].concat()).collect();
                for keys in [&lines, &columns] {
                    let mut out = Vec::new();
                    keys.select(&flags, wanted, b'\n', &mut out).unwrap();
                    assert_eq!(out, naive, "{pattern:05b} {wanted}");
                }
            }
        }
    }
}
