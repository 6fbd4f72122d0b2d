//! Bytes of files and standard input: decompressed, without a byte-order mark, in blocks of whole lines.

use std::fs::File;
use std::io::{self, Cursor, IsTerminal as _, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result, anyhow};

use crate::failure::Advice;
use crate::output;

/// Bytes asked for in one read. Large enough that the cost of a block vanishes, small enough to stay in cache.
pub(super) const BLOCK_BYTES: usize = 256 * 1024;

/// For whoever gave a key where a file of keys is expected.
const NOT_A_KEY: &str = "inputs are files of keys, one per line; a single key goes to standard input: echo KEY | ironbloom …";

/// The name of an input in messages.
pub(super) fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

/// Counts the bytes that were read from a file, before any decompression.
struct Counted<R> {
    input: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.input.read(buffer)?;
        self.read.fetch_add(got as u64, Ordering::Relaxed);
        Ok(got)
    }
}

pub(super) fn open(path: &Path, read: &Arc<AtomicU64>) -> Result<Box<dyn Read>> {
    let raw: Box<dyn Read> = if path == Path::new("-") {
        if io::stdin().is_terminal() {
            output::note("reading keys from the terminal, one per line; Ctrl-D ends");
        }
        Box::new(io::stdin())
    } else {
        let file = File::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Advice::error(error.to_string(), NOT_A_KEY),
            _ => error.into(),
        })?;
        if file.metadata()?.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
        }
        Box::new(file)
    };
    decompress(Counted { input: raw, read: Arc::clone(read) })
}

/// Looks at the first bytes, and puts the decoder in front that they call for.
fn decompress(mut raw: impl Read + 'static) -> Result<Box<dyn Read>> {
    const GZIP: &[u8] = &[0x1f, 0x8b];
    const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
    let first = peek(&mut raw, &[GZIP, ZSTD])?;
    let found = first.clone();
    let input = Cursor::new(first).chain(raw);
    if found.starts_with(GZIP) {
        Ok(Box::new(flate2::read::MultiGzDecoder::new(input)))
    } else if found.starts_with(ZSTD) {
        Ok(Box::new(zstd::Decoder::new(input).context("zstd")?))
    } else {
        Ok(Box::new(input))
    }
}

/// Takes a byte-order mark off the beginning of text, and says whether there was one. UTF-16 is refused: its lines end
/// with other bytes, and none of its keys would be found again.
pub(super) fn skip_mark(mut input: Box<dyn Read>, is_table: bool) -> Result<(Box<dyn Read>, bool)> {
    const UTF8: &[u8] = &[0xef, 0xbb, 0xbf];
    const UTF16: [&[u8]; 2] = [&[0xff, 0xfe], &[0xfe, 0xff]];
    let mut first = peek(&mut input, &[UTF8, UTF16[0], UTF16[1]])?;
    if UTF16.iter().any(|mark| first.starts_with(mark)) {
        let otherwise =
            if is_table { "" } else { "; or give --exact-bytes if these bytes are keys" };
        return Err(Advice::error(
            "UTF-16 text, where UTF-8 is expected",
            format!("convert it: iconv -f UTF-16 -t UTF-8{otherwise}"),
        ));
    }
    let marked = first.starts_with(UTF8);
    if marked {
        first.drain(..UTF8.len());
    }
    Ok((Box::new(Cursor::new(first).chain(input)), marked))
}

/// The first bytes, as many as it takes to tell whether the input begins with one of `marks` and not one read more: a
/// person typing at a terminal should not have to type four.
fn peek(input: &mut impl Read, marks: &[&[u8]]) -> Result<Vec<u8>> {
    let most = marks.iter().map(|mark| mark.len()).max().unwrap_or(0);
    let mut first = vec![0; most];
    let mut got = 0;
    let undecided =
        |first: &[u8]| marks.iter().any(|mark| mark.len() > first.len() && mark.starts_with(first));
    while undecided(&first[..got]) {
        match input.read(&mut first[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    first.truncate(got);
    Ok(first)
}

/// Sends blocks that end at a delimiter. What a single read returned is sent at once, so that a slow pipe flows.
/// `Ok(false)` if nobody listens any more.
pub(super) fn read_lines(
    mut input: Box<dyn Read>,
    delimiter: u8,
    send: &mut impl FnMut(Vec<u8>) -> bool,
) -> Result<bool> {
    let mut block: Vec<u8> = Vec::new();
    let mut filled = 0; // bytes of the block that were read; the rest is room
    loop {
        if block.len() - filled < BLOCK_BYTES {
            // A line longer than a block grows it by an eighth at a time: large blocks are moved by the system without
            // being copied, and a line takes little more memory than its length.
            let room = BLOCK_BYTES.max(filled / 8);
            block
                .try_reserve_exact(filled + room - block.len())
                .map_err(|_| anyhow!("a key of more than {filled} bytes does not fit memory"))?;
            block.resize(filled + room, 0);
        }
        let got = match input.read(&mut block[filled..]) {
            Ok(got) => got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        if got == 0 {
            block.truncate(filled);
            return Ok(block.is_empty() || send(block));
        }
        let fresh = filled..filled + got;
        filled = fresh.end;
        if let Some(end) = memchr::memrchr(delimiter, &block[fresh.clone()]) {
            let rest = block[fresh.start + end + 1..fresh.end].to_vec();
            block.truncate(fresh.start + end + 1);
            filled = rest.len();
            if !send(std::mem::replace(&mut block, rest)) {
                return Ok(false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::Keys;
    use super::super::keys::tests::TEXT;
    use super::*;

    /// Gives a few bytes at a time, as a slow pipe does.
    struct Trickle(Cursor<Vec<u8>>, usize);

    impl Read for Trickle {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = self.1.min(buffer.len());
            self.0.read(&mut buffer[..most])
        }
    }

    fn blocks(input: impl Read + 'static) -> Vec<Vec<u8>> {
        let mut blocks = Vec::new();
        let all = read_lines(Box::new(input), b'\n', &mut |block| {
            blocks.push(block);
            true
        });
        assert!(all.unwrap());
        blocks
    }

    fn keys(input: impl Read + 'static) -> Vec<Vec<u8>> {
        let keys = |block| Keys::split(block, TEXT).iter().map(<[u8]>::to_vec).collect::<Vec<_>>();
        blocks(input).into_iter().flat_map(keys).collect()
    }

    #[test]
    fn blocks_join_to_the_lines_of_the_input_whatever_its_size() {
        let line = "x".repeat(1000);
        let text = format!("{line}\n").repeat(2000) + &"y".repeat(3 * BLOCK_BYTES) + "\nlast";
        let expected: Vec<Vec<u8>> = text.lines().map(|line| line.as_bytes().to_vec()).collect();
        assert_eq!(keys(Cursor::new(text.into_bytes())), expected);
    }

    #[test]
    fn lines_ending_in_carriage_return_and_newline_are_cut_alike_wherever_a_read_ends() {
        let text = "a\r\nbc\r\n\r\nd\re\r\nlast\r";
        let expected: Vec<Vec<u8>> =
            ["a", "bc", "", "d\re", "last"].iter().map(|key| key.as_bytes().to_vec()).collect();
        for most in 1..text.len() {
            assert_eq!(keys(Trickle(Cursor::new(text.into()), most)), expected, "{most}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_skipped_only_when_it_is_whole_and_first() {
        const MARK: &str = "\u{feff}";
        for (text, rest, marked) in [
            (format!("{MARK}a\n"), "a\n".as_bytes().to_vec(), true),
            (MARK.to_owned(), vec![], true),
            (format!("{MARK}{MARK}"), MARK.as_bytes().to_vec(), true),
            (format!("a{MARK}"), format!("a{MARK}").into_bytes(), false),
            ("ﻼ\n".to_owned(), "ﻼ\n".as_bytes().to_vec(), false), // shares its first two bytes
            (String::new(), vec![], false),
        ] {
            for most in 1..5 {
                let input = Box::new(Trickle(Cursor::new(text.clone().into_bytes()), most));
                let (mut input, found) = skip_mark(input, false).unwrap();
                let mut left = Vec::new();
                input.read_to_end(&mut left).unwrap();
                assert_eq!((left, found), (rest.clone(), marked), "{text:?}, {most} at a time");
            }
        }
    }

    #[test]
    fn a_long_line_takes_little_more_memory_than_its_length() {
        const LINE: usize = 20 << 20;
        let blocks = blocks(io::repeat(b'x').take(LINE as u64));
        assert_eq!(blocks.iter().map(Vec::len).collect::<Vec<_>>(), [LINE]);
        let room = blocks[0].capacity() - LINE;
        assert!(room <= LINE / 8 + 2 * BLOCK_BYTES, "{room} bytes of room");
    }
}
