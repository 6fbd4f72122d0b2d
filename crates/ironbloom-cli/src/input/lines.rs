//! Text in blocks of whole lines, without its byte-order mark.

use std::io::{self, Cursor, Read};

use anyhow::{Result, anyhow};

use super::decompress::peek;
use crate::failure::Advice;

/// Bytes asked for in one read. Large enough that the cost of a block vanishes, small enough to stay in cache.
const BLOCK_BYTES: usize = 256 * 1024;

/// Removes a byte-order mark from the beginning of text, and says whether there was one. UTF-16 is refused: its lines end
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

/// Sends blocks that end at a delimiter. What a single read returned is sent at once, so that a slow pipe flows.
/// `Ok(false)` if the receiver is gone.
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
