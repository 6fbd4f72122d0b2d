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
//!
//! Text is what people have: a carriage return before a newline belongs to the line end, and a byte-order mark to no
//! key. Both are taken off, with a note, unless `--exact-bytes` or `-0` is given.

mod keys;
mod source;
mod table;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use anyhow::{Result, anyhow};
use clap::Args;

pub(crate) use keys::{Keys, fields};
pub(crate) use table::TableArgs;

use crate::number::plural;
use crate::output;
use crate::progress::Progress;
use keys::LineEnd;
use table::{Columns, Tables};

/// Where keys come from, and how they are told apart.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct InputArgs {
    /// Files of keys, one per line; `-` or none reads standard input. gzip and zstd are recognised by content
    #[arg(value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,

    /// Keys end with a NUL byte instead of a newline (find -print0), and every other byte is kept
    #[arg(short = '0', long = "null")]
    pub(crate) null: bool,

    /// Keep every byte of a line. Otherwise a carriage return at its end, and a byte-order mark at the beginning of an
    /// input, are no part of a key
    #[arg(long)]
    pub(crate) exact_bytes: bool,

    #[command(flatten)]
    pub(crate) table: TableArgs,

    /// Keys are rows: these columns of CSV, one field behind the other (see [`fields`])
    #[arg(skip)]
    pub(crate) row_columns: Option<Vec<String>>,

    /// Keep the rows of CSV that keys are from
    #[arg(skip)]
    pub(crate) whole_rows: bool,
}

impl InputArgs {
    /// The byte that ends a key, in input and output.
    pub(crate) fn delimiter(&self) -> u8 {
        if self.null { 0 } else { b'\n' }
    }

    /// Whether line ends and byte-order marks are those of text.
    fn is_text(&self) -> bool {
        !self.null && !self.exact_bytes
    }

    fn sources(&self) -> Vec<PathBuf> {
        if self.inputs.is_empty() { vec![PathBuf::from("-")] } else { self.inputs.clone() }
    }

    /// Whether standard input is read.
    pub(crate) fn reads_stdin(&self) -> bool {
        self.sources().iter().any(|path| path.as_os_str() == "-")
    }

    /// Bytes in all files together, or `None` if some input has no known length.
    fn total_bytes(&self) -> Option<u64> {
        self.sources()
            .iter()
            .map(|path| std::fs::metadata(path).ok().filter(|m| m.is_file()).map(|m| m.len()))
            .sum()
    }
}

/// A key that cannot be taken, by its place in its block. Whoever knows where the block is from says more.
#[derive(Debug)]
pub(crate) struct BadKey {
    place: usize,
    error: anyhow::Error,
}

impl BadKey {
    pub(crate) fn error(place: usize, error: impl Into<anyhow::Error>) -> anyhow::Error {
        Self { place, error: error.into() }.into()
    }
}

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.error)
    }
}

impl std::error::Error for BadKey {}

/// What the reader hands to the workers.
enum Block {
    Lines(Vec<u8>, Arc<str>),
    Split(Keys),
}

/// What the threads count together.
#[derive(Clone, Default)]
struct Counters {
    /// Bytes read, before any decompression.
    read: Arc<AtomicU64>,
    /// Inputs that began with a byte-order mark.
    marks: Arc<AtomicU64>,
    /// Lines that ended with a carriage return.
    returns: Arc<AtomicU64>,
}

impl Counters {
    /// Says what was taken off the keys.
    fn note_stripped(&self) {
        let (returns, marks) = (&self.returns, &self.marks);
        let (returns, marks) = (returns.load(Ordering::Relaxed), marks.load(Ordering::Relaxed));
        let mut parts = Vec::new();
        if returns > 0 {
            parts.push(format!("the carriage return at the end of {}", plural(returns, "line")));
        }
        if marks > 0 {
            parts.push(format!("the byte-order mark of {}", plural(marks, "input")));
        }
        if !parts.is_empty() {
            output::note(&format!(
                "note: left out {}; --exact-bytes makes it part of the key",
                parts.join(" and ")
            ));
        }
    }
}

/// Where the caller is in the input, to name the line of a key.
#[derive(Default)]
struct Position {
    source: Arc<str>,
    /// Keys of this input in the blocks before.
    before: u64,
}

impl Position {
    /// The next block is this one.
    fn enter(&mut self, keys: &Keys) {
        if !Arc::ptr_eq(&self.source, &keys.source) {
            *self = Self { source: Arc::clone(&keys.source), before: 0 };
        }
    }

    /// Puts input and line before an error that concerns a key of the block.
    fn locate(&self, error: anyhow::Error, keys: &Keys, args: &InputArgs) -> anyhow::Error {
        match error.downcast::<BadKey>() {
            Ok(BadKey { place, error }) => {
                let line = keys.line(place).unwrap_or(self.before + place as u64 + 1);
                let what = if args.null { "key" } else { "line" };
                error.context(format!("{}: {what} {line}", self.source))
            }
            Err(error) => error,
        }
    }
}

/// Runs `map` over all keys on `threads` threads and gives the results to `consume` in input order.
///
/// When `consume` fails the error is returned at once; threads that still wait for input die with the program.
pub(crate) fn for_each_block<R: Send + 'static>(
    args: &InputArgs,
    threads: usize,
    map: impl Fn(&Keys) -> Result<R> + Send + Sync + 'static,
    mut consume: impl FnMut(&Keys, R) -> Result<()>,
) -> Result<()> {
    if args.row_columns.is_none() && args.table.columns().is_none() {
        args.table.refuse_without_table()?;
    }
    let counters = Counters::default();
    let mut progress = Progress::new(args.total_bytes());
    let (results, reader) = spawn(args.clone(), threads, counters.clone(), map);
    let mut waiting = BTreeMap::new();
    let mut position = Position::default();
    let (mut next, mut keys_seen) = (0u64, 0u64);
    for (number, result) in results {
        waiting.insert(number, result);
        while let Some(result) = waiting.remove(&next) {
            let (keys, mapped) = result?;
            position.enter(&keys);
            mapped
                .and_then(|mapped| consume(&keys, mapped))
                .map_err(|error| position.locate(error, &keys, args))?;
            position.before += keys.len() as u64;
            keys_seen += keys.len() as u64;
            progress.update(counters.read.load(Ordering::Relaxed), keys_seen);
            next += 1;
        }
    }
    progress.finish();
    counters.note_stripped();
    // A thread that panicked takes its block with it, and keys would be missing from a filter without a word.
    match reader.join() {
        Ok(sent) if sent == next => Ok(()),
        _ => Err(anyhow!("a thread of this program failed, so not all keys were seen")),
    }
}

type Numbered<T> = (u64, Result<T>);

/// Keys of a block and what became of them.
type Mapped<R> = Numbered<(Keys, Result<R>)>;

fn spawn<R: Send + 'static>(
    args: InputArgs,
    threads: usize,
    counters: Counters,
    map: impl Fn(&Keys) -> Result<R> + Send + Sync + 'static,
) -> (Receiver<Mapped<R>>, JoinHandle<u64>) {
    let line_end = LineEnd { delimiter: args.delimiter(), strip: args.is_text() };
    let (block_sender, blocks) = sync_channel::<Numbered<Block>>(2 * threads);
    let (result_sender, results) = sync_channel(2 * threads);
    let (blocks, map) = (Arc::new(Mutex::new(blocks)), Arc::new(map));
    let returns = Arc::clone(&counters.returns);
    let reader = std::thread::spawn(move || read_all(&args, &counters, block_sender));
    for _ in 0..threads {
        let (blocks, map, results) = (Arc::clone(&blocks), Arc::clone(&map), result_sender.clone());
        let returns = Arc::clone(&returns);
        std::thread::spawn(move || {
            let next = || blocks.lock().ok()?.recv().ok();
            while let Some((number, block)) = next() {
                let result = block.map(|block| {
                    let keys = match block {
                        Block::Lines(bytes, source) => Keys::split(bytes, line_end).from(source),
                        Block::Split(keys) => keys,
                    };
                    returns.fetch_add(keys.returns(), Ordering::Relaxed);
                    let mapped = map(&keys);
                    (keys, mapped)
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
fn read_all(args: &InputArgs, counters: &Counters, sender: SyncSender<Numbered<Block>>) -> u64 {
    let mut number = 0;
    let mut send = |block: Result<Block>| {
        number += 1;
        sender.send((number - 1, block)).is_ok()
    };
    let columns = match (&args.row_columns, args.table.columns()) {
        (Some(columns), _) => Some(Columns::Row(columns)),
        (None, column) => column.map(Columns::Key),
    };
    let (table, with_rows) = (&args.table, args.whole_rows);
    let mut tables =
        columns.map(|columns| Tables { args: table, columns, with_rows, header: None });
    for path in args.sources() {
        let name: Arc<str> = source::name(&path).into();
        let result = source::open(&path, &counters.read).and_then(|input| match &mut tables {
            Some(tables) => {
                // A mark before a header is none of the keys, so there is nothing to note.
                let (input, _) = source::skip_mark(input, true)?;
                tables.read(input, &name, &mut |keys| send(Ok(Block::Split(keys))))
            }
            None => {
                let (input, marked) =
                    if args.is_text() { source::skip_mark(input, false)? } else { (input, false) };
                counters.marks.fetch_add(u64::from(marked), Ordering::Relaxed);
                source::read_lines(input, args.delimiter(), &mut |block| {
                    send(Ok(Block::Lines(block, Arc::clone(&name))))
                })
            }
        });
        match result {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                send(Err(error.context(name)));
                break;
            }
        }
    }
    number
}
