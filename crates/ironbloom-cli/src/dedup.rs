//! `ironbloom dedup`: first occurrences, in order, in a few bytes per distinct key, as a crawler remembers URLs.

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use clap::Args;
use ironbloom::any::KeyHash;

use crate::check::RowsArgs;
use crate::input::{self, InputArgs};
use crate::output::Lines;
use crate::report::{self, Cell};
use crate::secret::SecretArgs;
use crate::turn::Turn;
use crate::{Outcome, dash, dedup_state, file, number, output};

/// Print each key the first time it is seen, in input order
///
/// Memory grows with the number of distinct keys, by ten to thirty bytes each, whatever their length. In return, a new key
/// is taken for a known one and dropped at a small rate: one in a million unless --rate says otherwise. Lines are printed
/// unchanged; a carriage return at the end of a line is not part of the key, unless --exact-bytes is given.
///
/// Which keys would be dropped cannot be foreseen: each run hashes under a random key of its own, which the state keeps, or
/// under that of --secret-file. A run waits for another one with the same state.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom dedup urls.txt > distinct.txt
  crawl | ironbloom dedup --state seen.ibf | fetch    continue tomorrow where this run ended
  ironbloom dedup --window 1M events.log              only repeats within the last million lines
  cut -f1 access.log | ironbloom dedup --count        distinct users of the day
  ironbloom dedup --csv email --rows users.csv        the first row with each address

The state is saved at the end of the input. If the run is interrupted before that, or its output is closed (| head), \
the next run prints those keys again.")]
pub(crate) struct DedupArgs {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    whole: RowsArgs,

    /// Remember the keys seen in this file, across runs
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,

    /// Forget keys that are not among the last N
    #[arg(long, value_name = "N", value_parser = number::parse_count, allow_negative_numbers = true)]
    window: Option<u64>,

    /// Print only the number of distinct keys
    #[arg(long, short = 'c')]
    count: bool,

    /// Print only the numbers of keys and of distinct keys, as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    secret: SecretArgs,

    /// Rate at which a new key may be taken for a known one [default: 1e-6]
    #[arg(long, value_name = "P", value_parser = number::parse_rate, allow_negative_numbers = true)]
    rate: Option<f64>,
}

pub(crate) fn run(args: &DedupArgs) -> Result<Outcome> {
    let input = args.whole.apply(&args.input)?;
    if args.window == Some(0) {
        return Err(anyhow!("--window must be at least 1, got 0"));
    }
    if let Some(path) = &args.state {
        dash::require_file(path, "--state must be a file: it is read and then replaced")?;
        file::refuse_unwritable(path)?;
        file::refuse_same(path, &input.inputs)?;
    }
    // Held to the end: another run with this state would print again what this one prints, and one of the two would be lost.
    let _turn = args.state.as_deref().map(Turn::take).transpose()?;
    let mut memory =
        dedup_state::open(args.state.as_deref(), args.window, args.rate, &args.secret)?;
    output::widen_pipe();
    let key_hash = KeyHash::Hash(memory.hash_fn());
    memory.note_keys(file::line_types(key_hash));
    let (mut seen, mut distinct) = (0u64, 0u64);
    let (mut new, mut lines) = (Vec::new(), Lines::default());
    let only_numbers = args.count || args.json;
    input::for_each_block(
        &input,
        1,
        move |keys| file::hashes(keys, key_hash),
        |keys, hashes| {
            new.resize(hashes.len(), false);
            memory.insert_each(&hashes, &mut new)?;
            seen += hashes.len() as u64;
            distinct += new.iter().filter(|&&new| new).count() as u64;
            if only_numbers {
                return Ok(());
            }
            lines.print(|lines| keys.select(&new, true, input.delimiter(), lines))
        },
    )?;
    if only_numbers {
        let record =
            vec![("keys read", Cell::count(seen)), ("distinct keys", Cell::count(distinct))];
        let plain = format!("{distinct}\n");
        output::print(&if args.json { report::show_record(&record, true) } else { plain })?;
    }
    if let Some(path) = &args.state {
        file::save(&memory.into_filter()?, path)?;
    }
    Ok(Outcome::Found)
}
