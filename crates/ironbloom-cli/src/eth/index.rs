//! `ironbloom eth index` and `ironbloom eth find`: the blocks of a chain that may hold a log.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use ironbloom::ethereum::{Index, IndexWriter, OutOfOrder};
use ironbloom::format::native::replace_file;

use super::{QueryArgs, headers};
use crate::failure::Advice;
use crate::input::{self, BadKey, InputArgs};
use crate::{Outcome, dash, file, number, output};

/// Index the logs blooms of many block headers
///
/// Headers are JSON, one per line, as `eth_getBlockByNumber` returns them: only `number` and `logsBloom` are used. Numbers must
/// ascend; gaps are fine. The blooms are stored by bit, so that `ironbloom eth find` reads only the bits that it needs.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom eth index headers.jsonl -o chain.ibe
  zstdcat headers/*.zst | ironbloom eth index -o chain.ibe")]
pub(super) struct IndexArgs {
    /// Files of headers; `-` or none reads standard input. gzip and zstd are recognised by content
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,

    /// Where to write the index
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Threads that parse headers [default: all cores]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

pub(super) fn build(args: &IndexArgs) -> Result<Outcome> {
    dash::require_file(&args.output, "an index is written to a file")?;
    file::refuse_same(&args.output, &args.inputs)?;
    file::refuse_unwritable(&args.output)?;
    let mut failure = None;
    let mut blocks = 0;
    let written = file::replacing(&args.output, || {
        let written = replace_file(&args.output, |file| match write(args, file) {
            Ok(written) => {
                blocks = written;
                Ok(())
            }
            Err(error) => {
                failure = Some(error);
                Err(io::Error::other("not written"))
            }
        });
        written.with_context(|| args.output.display().to_string())
    });
    failure.map_or(written, Err)?;
    let bytes = std::fs::metadata(&args.output).map_or(0, |file| file.len());
    output::note(&format!(
        "{}: {}, {}",
        args.output.display(),
        number::plural(blocks, "block"),
        number::bytes(bytes)
    ));
    Ok(Outcome::Found)
}

fn write(args: &IndexArgs, file: &File) -> Result<u64> {
    let threads = args
        .threads
        .map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let input = InputArgs { inputs: args.inputs.clone(), ..InputArgs::default() };
    let mut writer = IndexWriter::new(BufWriter::with_capacity(1 << 20, file))?;
    input::for_each_block(
        &input,
        threads,
        |lines| {
            let parsed = lines.iter().enumerate().map(|(place, line)| {
                headers::parse(line).map_err(|error| BadKey::error(place, error))
            });
            parsed.collect::<Result<Vec<_>>>()
        },
        |_, headers| {
            for (place, (number, bloom)) in headers.iter().enumerate() {
                writer.push(*number, bloom).map_err(|error| {
                    let order =
                        error.get_ref().and_then(|error| error.downcast_ref::<OutOfOrder>());
                    match order {
                        Some(&order) => BadKey::error(place, order),
                        None => error.into(),
                    }
                })?;
            }
            Ok(())
        },
    )?;
    let blocks = writer.blocks();
    writer.finish()?;
    Ok(blocks)
}

/// Print the blocks that may hold a log
///
/// As `eth_getLogs`: any of the addresses, and at each position any of the topics. A bloom does not know positions, nor which
/// address goes with which topic, and full blocks have full blooms: candidates are to be checked in the logs themselves. The
/// exit status is 0 if there are candidates, and 1 if there are none.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom eth find chain.ibe --address 0xdac17f958d2ee523a2206206994597c13d831ec7
  ironbloom eth find chain.ibe --address 0xA…,0xB… --topic 0xddf2… --topic any --topic 0x0000… \\
      --from 18000000 --to 18999999")]
pub(super) struct FindArgs {
    /// The index
    #[arg(value_name = "FILE")]
    index: PathBuf,

    #[command(flatten)]
    query: QueryArgs,

    /// First block, in decimal or, after 0x, in hexadecimal digits
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = block_number)]
    from: u64,

    /// Last block; without it, that of the index
    #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true, value_parser = block_number)]
    to: u64,

    /// Print only the number of candidates
    #[arg(long, short = 'c')]
    count: bool,
}

/// A number as people write it, or as JSON-RPC does.
fn block_number(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| "not the number of a block: write 18000000 or 0x112a880".to_owned())
}

pub(super) fn find(args: &FindArgs) -> Result<Outcome> {
    let query = args.query.query()?;
    if args.from > args.to {
        return Err(Advice::error(
            format!("--from {} is after --to {}", args.from, args.to),
            "both blocks are part of the range",
        ));
    }
    let name = || args.index.display().to_string();
    let index = Index::open(File::open(&args.index).with_context(name)?).with_context(name)?;
    if index.range().is_none_or(|(first, last)| args.from > last || args.to < first) {
        output::note("note: the index has no blocks in this range");
    }
    let found = index.find(&query, args.from..=args.to).with_context(name)?;
    if args.count {
        output::print(&format!("{}\n", found.len()))?;
    } else {
        let lines: String = found.iter().map(|number| format!("{number}\n")).collect();
        output::print(&lines)?;
    }
    Ok(if found.is_empty() { Outcome::NotFound } else { Outcome::Found })
}
