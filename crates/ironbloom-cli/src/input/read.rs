//! Reads all inputs, one after the other, in blocks.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;

use anyhow::Result;

use super::args::InputArgs;
use super::pipeline::{Block, Counters, Numbered};
use super::table::{Columns, Tables};
use super::{file, lines};

/// Sends the blocks of all inputs, numbered, and returns their number; an error is the last thing sent.
pub(super) fn read_all(
    args: &InputArgs,
    counters: &Counters,
    sender: SyncSender<Numbered<Block>>,
) -> u64 {
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
    for path in args.paths() {
        let name: Arc<str> = file::name(&path).into();
        let result = file::open(&path, &counters.read).and_then(|input| match &mut tables {
            Some(tables) => {
                // A mark before a header is none of the keys, so there is nothing to note.
                let (input, _) = lines::skip_mark(input, true)?;
                tables.read(input, &name, &mut |keys| send(Ok(Block::Split(keys))))
            }
            None => {
                let (input, marked) =
                    if args.is_text() { lines::skip_mark(input, false)? } else { (input, false) };
                counters.marks.fetch_add(u64::from(marked), Ordering::Relaxed);
                lines::read_lines(input, args.delimiter(), &mut |block| {
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
