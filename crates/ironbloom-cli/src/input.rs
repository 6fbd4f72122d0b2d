//! Keys from files and standard input.
//!
//! ```text
//! reader thread            worker threads             caller
//! bytes ─► blocks of    ─► split into keys, hash, ─► results in input order
//!          whole lines     (test or insert)
//! ```
//!
//! Blocks end at a line end, so workers need nothing from each other. Results are put back in order, because
//! `dedup` and `check` print in the order of the input. gzip and zstd are recognised by their first bytes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Cursor, IsTerminal as _, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use anyhow::{Context as _, Result, anyhow};
use clap::Args;

use crate::failure::Advice;
use crate::output;
use crate::progress::Progress;

/// Where keys come from, and how they are told apart.
#[derive(Args, Clone, Debug)]
pub(crate) struct InputArgs {
    /// Files of keys, one per line; `-` or none reads standard input. gzip and zstd are recognised by content
    #[arg(value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,

    /// Keys end with a NUL byte instead of a newline (find -print0)
    #[arg(short = '0', long = "null")]
    pub(crate) null: bool,

    /// Keys are this column of CSV input with a header line (joint: rows are these columns, e.g. size,color)
    #[arg(long, value_name = "COLUMN", conflicts_with = "null")]
    pub(crate) csv: Option<String>,

    /// Keys are rows: these columns of CSV, one field behind the other (see [`fields`])
    #[arg(skip)]
    pub(crate) rows: Option<Vec<String>>,
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

impl InputArgs {
    /// The byte that ends a key, in input and output.
    pub(crate) fn delimiter(&self) -> u8 {
        if self.null { 0 } else { b'\n' }
    }

    fn sources(&self) -> Vec<PathBuf> {
        if self.inputs.is_empty() { vec![PathBuf::from("-")] } else { self.inputs.clone() }
    }

    /// Bytes in all files together, or `None` if some input has no known length.
    fn total_bytes(&self) -> Option<u64> {
        self.sources()
            .iter()
            .map(|path| std::fs::metadata(path).ok().filter(|m| m.is_file()).map(|m| m.len()))
            .sum()
    }
}

/// Some keys, in order.
#[derive(Default)]
pub(crate) struct Keys {
    bytes: Vec<u8>,
    /// Where each key ends in `bytes`; it is followed by `gap` bytes of delimiter.
    ends: Vec<usize>,
    gap: usize,
}

impl Keys {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let key = &self.bytes[start..end];
            start = end + self.gap;
            key
        })
    }

    /// Appends the keys whose flag is `wanted`, each with the delimiter behind it. Neighbours are copied in one go,
    /// delimiters included: most often that is the whole block.
    pub(crate) fn select(&self, flags: &[bool], wanted: bool, delimiter: u8, out: &mut Vec<u8>) {
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
            out.extend_from_slice(&self.bytes[start_of(first)..self.ends[i]]);
            out.push(delimiter);
            i += 1;
        }
    }

    fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    /// A row as one key: before each field its length, so that [`fields`] can take it apart.
    fn push_row<'a>(&mut self, fields: impl Iterator<Item = &'a [u8]>) {
        for field in fields {
            self.bytes.extend_from_slice(&(field.len() as u64).to_le_bytes());
            self.bytes.extend_from_slice(field);
        }
        self.ends.push(self.bytes.len());
    }

    /// Cuts a block at its delimiters. Bytes behind the last one are a key too: a last line needs no newline.
    fn split(bytes: Vec<u8>, delimiter: u8) -> Self {
        let mut ends: Vec<usize> = memchr::memchr_iter(delimiter, &bytes).collect();
        let consumed = ends.last().map_or(0, |end| end + 1);
        if consumed < bytes.len() {
            ends.push(bytes.len());
        }
        Self { bytes, ends, gap: 1 }
    }
}

/// What the reader hands to the workers.
enum Block {
    Lines(Vec<u8>),
    Split(Keys),
}

/// Bytes asked for in one read. Large enough that the cost of a block vanishes, small enough to stay in cache.
const BLOCK_BYTES: usize = 256 * 1024;
/// Keys of CSV in a block.
const BLOCK_RECORDS: usize = 8192;

/// Runs `map` over all keys on `threads` threads and gives the results to `consume` in input order.
///
/// When `consume` fails the error is returned at once; threads that still wait for input die with the program.
pub(crate) fn for_each_block<R: Send + 'static>(
    args: &InputArgs,
    threads: usize,
    map: impl Fn(&Keys) -> Result<R> + Send + Sync + 'static,
    mut consume: impl FnMut(Keys, R) -> Result<()>,
) -> Result<()> {
    let read = Arc::new(AtomicU64::new(0));
    let mut progress = Progress::new(args.total_bytes());
    let (results, reader) = spawn(args.clone(), threads, Arc::clone(&read), map);
    let mut waiting = BTreeMap::new();
    let (mut next, mut keys_seen) = (0u64, 0u64);
    for (number, result) in results {
        waiting.insert(number, result);
        while let Some(result) = waiting.remove(&next) {
            let (keys, mapped) = result?;
            keys_seen += keys.len() as u64;
            consume(keys, mapped)?;
            progress.update(read.load(Ordering::Relaxed), keys_seen);
            next += 1;
        }
    }
    progress.finish();
    // A thread that panicked takes its block with it, and keys would be missing from a filter without a word.
    match reader.join() {
        Ok(sent) if sent == next => Ok(()),
        _ => Err(anyhow!("a thread of this program failed, so not all keys were seen")),
    }
}

type Numbered<T> = (u64, Result<T>);

fn spawn<R: Send + 'static>(
    args: InputArgs,
    threads: usize,
    read: Arc<AtomicU64>,
    map: impl Fn(&Keys) -> Result<R> + Send + Sync + 'static,
) -> (Receiver<Numbered<(Keys, R)>>, JoinHandle<u64>) {
    let delimiter = args.delimiter();
    let (block_sender, blocks) = sync_channel::<Numbered<Block>>(2 * threads);
    let (result_sender, results) = sync_channel(2 * threads);
    let (blocks, map) = (Arc::new(Mutex::new(blocks)), Arc::new(map));
    let reader = std::thread::spawn(move || read_all(&args, &read, block_sender));
    for _ in 0..threads {
        let (blocks, map, results) = (Arc::clone(&blocks), Arc::clone(&map), result_sender.clone());
        std::thread::spawn(move || {
            let next = || blocks.lock().ok()?.recv().ok();
            while let Some((number, block)) = next() {
                let result = block.and_then(|block| {
                    let keys = match block {
                        Block::Lines(bytes) => Keys::split(bytes, delimiter),
                        Block::Split(keys) => keys,
                    };
                    let mapped = map(&keys)?;
                    Ok((keys, mapped))
                });
                if results.send((number, result)).is_err() {
                    return; // the caller has failed or is done
                }
            }
        });
    }
    (results, reader)
}

/// Sends the blocks of all inputs, numbered, and returns their number; an error is the last thing sent.
fn read_all(args: &InputArgs, read: &Arc<AtomicU64>, sender: SyncSender<Numbered<Block>>) -> u64 {
    let mut number = 0;
    let mut send = |block: Result<Block>| {
        number += 1;
        sender.send((number - 1, block)).is_ok()
    };
    for path in args.sources() {
        let result = open(&path, read).and_then(|input| match (&args.rows, &args.csv) {
            (Some(columns), _) => read_csv(input, &Columns::Row(columns), &mut send),
            (None, Some(column)) => read_csv(input, &Columns::Key(column), &mut send),
            (None, None) => read_lines(input, args.delimiter(), &mut send),
        });
        match result {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                send(Err(error.context(name(&path))));
                break;
            }
        }
    }
    number
}

/// The name of an input in messages.
fn name(path: &Path) -> String {
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

fn open(path: &Path, read: &Arc<AtomicU64>) -> Result<Box<dyn Read>> {
    let raw: Box<dyn Read> = if path == Path::new("-") {
        if io::stdin().is_terminal() {
            output::note("reading keys from the terminal, one per line; Ctrl-D ends");
        }
        Box::new(io::stdin())
    } else {
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
        }
        Box::new(file)
    };
    decompress(Counted { input: raw, read: Arc::clone(read) })
}

/// Looks at the first bytes, and puts the decoder in front that they call for.
fn decompress(mut raw: impl Read + 'static) -> Result<Box<dyn Read>> {
    const GZIP: [u8; 2] = [0x1f, 0x8b];
    const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    let mut first = [0; 4];
    let mut got = 0;
    while got < first.len() && (got == 0 || could_be_compressed(&first[..got])) {
        match raw.read(&mut first[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    let input = Cursor::new(first[..got].to_vec()).chain(raw);
    if first[..got].starts_with(&GZIP) {
        Ok(Box::new(flate2::read::MultiGzDecoder::new(input)))
    } else if first[..got] == ZSTD {
        Ok(Box::new(zstd::Decoder::new(input).context("zstd")?))
    } else {
        Ok(Box::new(input))
    }
}

/// Whether more bytes are worth waiting for: a person typing at a terminal should not have to type four.
fn could_be_compressed(first: &[u8]) -> bool {
    matches!(first[0], 0x1f | 0x28)
}

/// Sends blocks that end at a delimiter. What a single read returned is sent at once, so that a slow pipe flows.
/// `Ok(false)` if nobody listens any more.
fn read_lines(
    mut input: Box<dyn Read>,
    delimiter: u8,
    send: &mut impl FnMut(Result<Block>) -> bool,
) -> Result<bool> {
    let mut block: Vec<u8> = Vec::new();
    let mut filled = 0; // bytes of the block that were read; the rest is room
    loop {
        if block.len() - filled < BLOCK_BYTES {
            // A long line doubles the block, and a pipe gives little at a time: only new room is cleared.
            let room = BLOCK_BYTES.max(filled);
            block
                .try_reserve(filled + room - block.len())
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
            return Ok(block.is_empty() || send(Ok(Block::Lines(block))));
        }
        let fresh = filled..filled + got;
        filled = fresh.end;
        if let Some(end) = memchr::memrchr(delimiter, &block[fresh.clone()]) {
            let rest = block[fresh.start + end + 1..fresh.end].to_vec();
            block.truncate(fresh.start + end + 1);
            filled = rest.len();
            if !send(Ok(Block::Lines(std::mem::replace(&mut block, rest)))) {
                return Ok(false);
            }
        }
    }
}

/// What is read from CSV.
enum Columns<'a> {
    /// One column, whose values are keys.
    Key(&'a String),
    /// Several, whose values together are rows.
    Row(&'a [String]),
}

/// Sends the values of some columns.
fn read_csv(
    input: Box<dyn Read>,
    columns: &Columns<'_>,
    send: &mut impl FnMut(Result<Block>) -> bool,
) -> Result<bool> {
    let names = match columns {
        Columns::Key(column) => std::slice::from_ref(*column),
        Columns::Row(columns) => columns,
    };
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(input);
    let header = reader.byte_headers()?.clone();
    let index = |column: &String| {
        header.iter().position(|name| name == column.as_bytes()).ok_or_else(|| {
            let names: Vec<_> = header.iter().map(String::from_utf8_lossy).collect();
            Advice::error(
                format!("no column {column:?}"),
                format!("the columns are: {}", names.join(", ")),
            )
        })
    };
    let indices = names.iter().map(index).collect::<Result<Vec<usize>>>()?;
    let mut record = csv::ByteRecord::new();
    let mut keys = Keys::default();
    while reader.read_byte_record(&mut record)? {
        if let Some(missing) = indices.iter().position(|&index| index >= record.len()) {
            let line = record.position().map_or(0, csv::Position::line);
            return Err(anyhow!(
                "line {line}: {} fields, column {:?} is number {}",
                record.len(),
                names[missing],
                indices[missing] + 1
            ));
        }
        match columns {
            Columns::Key(_) => keys.push(&record[indices[0]]),
            Columns::Row(_) => keys.push_row(indices.iter().map(|&index| &record[index])),
        }
        if keys.len() == BLOCK_RECORDS && !send(Ok(Block::Split(std::mem::take(&mut keys)))) {
            return Ok(false);
        }
    }
    Ok(keys.len() == 0 || send(Ok(Block::Split(keys))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &[u8]) -> Vec<Vec<u8>> {
        Keys::split(text.to_vec(), b'\n').iter().map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn lines_are_keys_and_the_last_needs_no_newline() {
        assert_eq!(split(b""), Vec::<Vec<u8>>::new());
        assert_eq!(split(b"a\nbc\n"), [b"a".to_vec(), b"bc".to_vec()]);
        assert_eq!(split(b"a\nbc"), [b"a".to_vec(), b"bc".to_vec()]);
        assert_eq!(split(b"\n\nx"), [b"".to_vec(), b"".to_vec(), b"x".to_vec()]);
    }

    #[test]
    fn a_row_comes_apart_into_its_fields() {
        let rows: [&[&[u8]]; 4] = [&[b"large", b"red"], &[b"", b""], &[b"a,\n\0", b"b"], &[b"x"]];
        let mut keys = Keys::default();
        rows.iter().for_each(|row| keys.push_row(row.iter().copied()));
        assert!(keys.iter().map(fields).eq(rows.iter().map(|row| row.to_vec())));
    }

    #[test]
    fn selected_keys_keep_their_order_and_get_their_delimiter() {
        let lines = Keys::split(b"a\nbb\n\nd\nlast".to_vec(), b'\n');
        let mut columns = Keys::default();
        ["a", "bb", "", "d", "last"].iter().for_each(|key| columns.push(key.as_bytes()));
        for pattern in 0..32u32 {
            let flags: Vec<bool> = (0..5).map(|i| pattern >> i & 1 == 1).collect();
            for wanted in [true, false] {
                let kept = lines.iter().zip(&flags).filter(|&(_, &flag)| flag == wanted);
                let naive: Vec<u8> = kept.flat_map(|(key, _)| [key, b"\n"].concat()).collect();
                for keys in [&lines, &columns] {
                    let mut out = Vec::new();
                    keys.select(&flags, wanted, b'\n', &mut out);
                    assert_eq!(out, naive, "{pattern:05b} {wanted}");
                }
            }
        }
    }

    #[test]
    fn blocks_join_to_the_lines_of_the_input_whatever_its_size() {
        let line = "x".repeat(1000);
        let text = format!("{line}\n").repeat(2000) + &"y".repeat(3 * BLOCK_BYTES) + "\nlast";
        let mut keys = Vec::new();
        let input: Box<dyn Read> = Box::new(Cursor::new(text.clone().into_bytes()));
        let all = read_lines(input, b'\n', &mut |block| {
            let Ok(Block::Lines(bytes)) = block else { panic!("lines expected") };
            keys.extend(Keys::split(bytes, b'\n').iter().map(<[u8]>::to_vec));
            true
        });
        assert!(all.unwrap());
        let expected: Vec<Vec<u8>> = text.lines().map(|line| line.as_bytes().to_vec()).collect();
        assert_eq!(keys, expected);
    }
}
