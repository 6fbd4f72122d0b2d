//! Tables that can be read for certain, or an error with the line.
//!
//! A reader of CSV that forgives takes a stray quote for the start of a field that ends with the file, and a thousand rows become
//! four. So the bytes are looked at on their way to it:
//!
//! ```text
//!  "x"y      text after the closing quote                 "x        a quote that is never closed
//!  a CR b    a carriage return that ends no line          x"y       is a field with a quote in it, as for everybody
//! ```

use std::collections::VecDeque;
use std::io::{self, Read};

/// Passes on what it reads, until the table is malformed.
pub(super) struct Strict<R> {
    input: R,
    delimiter: u8,
    /// True if fields may be quoted.
    quoted: bool,
    state: State,
    /// Of the byte that comes next, from 1.
    line: u64,
    /// Bytes so far, up to the length of a byte-order mark.
    start: usize,
    /// True while only line ends have come since the last row: blank lines are not rows.
    is_between_rows: bool,
    /// The lines of the rows that were passed on, and not yet asked for.
    lines_of_rows: VecDeque<u64>,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    FieldStart,
    Field,
    /// In quotes, since this line.
    Quotes(u64),
    /// After a quote in quotes: the end of the field, or the first of two.
    AfterQuote(u64),
    /// After a carriage return, which must be followed by a line feed.
    Return,
}

const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

impl<R: Read> Strict<R> {
    pub(super) fn new(input: R, delimiter: u8, quoted: bool) -> Self {
        Self {
            input,
            delimiter,
            quoted,
            state: State::FieldStart,
            line: 1,
            start: 0,
            is_between_rows: true,
            lines_of_rows: VecDeque::new(),
        }
    }

    /// The line on which the next row begins, for a caller who asks once for each row. The reader of CSV does not know it:
    /// for it, a row begins before the blank lines and the line feed that precede it.
    pub(super) fn next_line(&mut self) -> u64 {
        self.lines_of_rows.pop_front().unwrap_or(self.line)
    }

    fn step(&mut self, byte: u8) -> io::Result<()> {
        if self.start < BYTE_ORDER_MARK.len() {
            let is_mark = BYTE_ORDER_MARK[self.start] == byte;
            self.start = if is_mark { self.start + 1 } else { BYTE_ORDER_MARK.len() };
            if is_mark {
                return Ok(());
            }
        }
        if self.is_between_rows && byte != b'\n' && byte != b'\r' {
            self.is_between_rows = false;
            self.lines_of_rows.push_back(self.line);
        }
        self.state = match (self.state, byte) {
            (State::Quotes(since), b'"') => State::AfterQuote(since),
            (State::Quotes(since), _) => State::Quotes(since),
            (State::AfterQuote(since), b'"') => State::Quotes(since),
            (State::Return, byte) if byte != b'\n' => {
                return Err(self.malformed(self.line, "a carriage return without a line feed"));
            }
            (_, b'\n') => {
                self.is_between_rows = true;
                State::FieldStart
            }
            (_, b'\r') => State::Return,
            (_, byte) if byte == self.delimiter => State::FieldStart,
            (State::AfterQuote(_), _) => {
                return Err(self.malformed(self.line, "text after a closing quote"));
            }
            (State::FieldStart, b'"') if self.quoted => State::Quotes(self.line),
            _ => State::Field,
        };
        self.line += u64::from(byte == b'\n');
        Ok(())
    }

    fn end(&self) -> io::Result<()> {
        match self.state {
            State::Quotes(since) => Err(self.malformed(since, "a quote that is never closed")),
            _ => Ok(()),
        }
    }

    fn malformed(&self, line: u64, what: &str) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, format!("line {line}: {what}"))
    }
}

impl<R: Read> Read for Strict<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.input.read(buffer)?;
        if got == 0 && !buffer.is_empty() {
            self.end()?;
        }
        buffer[..got].iter().try_for_each(|&byte| self.step(byte))?;
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, quoted: bool) -> Result<String, String> {
        let mut read = String::new();
        let mut strict = Strict::new(text.as_bytes(), b',', quoted);
        strict.read_to_string(&mut read).map_err(|error| error.to_string())?;
        Ok(read)
    }

    #[test]
    fn what_can_be_read_for_certain_passes_as_it_is() {
        for text in [
            "",
            "a,b\n1,2\n",
            "a,b\r\n\"x\",\"y \"\"z\"\"\"\r\n",
            "\u{feff}\"a\",b\n1,2",
            "a\n\"two\nlines\r\n\"\n",
            "a,b\nx\"y,5\" tall\n",
            "a,b\n\"\",\"\"\n",
        ] {
            assert_eq!(read(text, true).as_deref(), Ok(text));
        }
        assert_eq!(read("a\n\"x\n\"y\"z\n", false).as_deref(), Ok("a\n\"x\n\"y\"z\n"));
    }

    #[test]
    fn what_cannot_is_an_error_with_its_line() {
        for (text, error) in [
            ("a,b\n1,2\n\"3,4\n5,6\n", "line 3: a quote that is never closed"),
            ("a,b\n\"x\"y,2\n", "line 2: text after a closing quote"),
            ("a\n\"x\" \n", "line 2: text after a closing quote"),
            ("a\r1\r2\r", "line 1: a carriage return without a line feed"),
            ("a\n\"x\"\r\"y\"", "line 2: a carriage return without a line feed"),
        ] {
            assert_eq!(read(text, true), Err(error.to_owned()), "{text:?}");
        }
    }
}
