//! The threads between input and caller: one reads, others map blocks, and results come out in input order.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use anyhow::{Result, anyhow};

use super::args::InputArgs;
use super::keys::{Keys, LineEnd};
use super::read::read_all;
use crate::number::plural;
use crate::output;
use crate::progress::Progress;

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

/// Message from the reader to the workers.
pub(super) enum Block {
    Lines(Vec<u8>, Arc<str>),
    Split(Keys),
}

/// Counters shared by the threads.
#[derive(Clone, Default)]
pub(super) struct Counters {
    /// Bytes read, before any decompression.
    pub(super) read: Arc<AtomicU64>,
    /// Inputs that began with a byte-order mark.
    pub(super) marks: Arc<AtomicU64>,
    /// Lines that ended with a carriage return.
    returns: Arc<AtomicU64>,
}

impl Counters {
    /// Says what was removed from the keys.
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
                "note: ignored {}; --exact-bytes makes it part of the key",
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

pub(super) type Numbered<T> = (u64, Result<T>);

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
