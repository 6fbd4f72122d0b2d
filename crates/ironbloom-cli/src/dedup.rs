//! `ironbloom dedup`: first occurrences, in order, in a few bytes per distinct key (seed 002's crawler).

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use ironbloom::any::{AnyFilter, KeyHash};
use ironbloom::{
    HashFn, ParamError, Persist as _, Scalable, ScalableParams, StageKind, Windowed, WindowedParams,
};

use crate::failure::Advice;
use crate::input::{self, InputArgs};
use crate::report::{self, Cell};
use crate::{Outcome, file, number, output};

/// Print each key the first time it is seen, in input order
///
/// Memory grows with the distinct keys, ten to thirty bytes each whatever their length. The price is a small rate at
/// which a new key is taken for a known one and dropped: one in a million unless --rate says otherwise.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom dedup urls.txt > distinct.txt
  crawl | ironbloom dedup --state seen.ibf | fetch    go on tomorrow where this run ended
  ironbloom dedup --window 1M events.log              only repeats within the last million lines
  cut -f1 access.log | ironbloom dedup --count        distinct users of the day

The state is saved when the input has ended. Interrupted before that, or with its output closed (| head), the
next run prints those keys again.")]
pub(crate) struct DedupArgs {
    /// Files of keys, one per line; `-` or none reads standard input. gzip and zstd are recognised by content
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,

    /// Keys end with a NUL byte instead of a newline (find -print0)
    #[arg(short = '0', long = "null")]
    null: bool,

    /// Remember the keys seen in this file, across runs
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,

    /// Forget keys that were not seen among the last N
    #[arg(long, value_name = "N", value_parser = number::parse_count, allow_negative_numbers = true)]
    window: Option<u64>,

    /// Print only the number of distinct keys
    #[arg(long)]
    count: bool,

    /// With --count: print JSON
    #[arg(long, requires = "count")]
    json: bool,

    /// Rate at which a new key may be taken for a known one [default: 1e-6]
    #[arg(long, value_name = "P", value_parser = number::parse_rate, allow_negative_numbers = true)]
    rate: Option<f64>,
}

const DEFAULT_RATE: f64 = 1e-6;

/// Keys the first stage holds, and how much larger each next one is: a few megabytes for small inputs, few stages to
/// look into for large ones.
const FIRST_STAGE: u64 = 1_000_000;
const GROWTH: u64 = 4;

/// What remembers the keys.
enum Memory {
    All(Scalable),
    Window(Windowed),
}

impl Memory {
    fn new(args: &DedupArgs) -> Result<Self, ParamError> {
        let rate = args.rate.unwrap_or(DEFAULT_RATE);
        Ok(match args.window {
            Some(window) => Self::Window(Windowed::new(
                WindowedParams::for_keys(window, rate)?,
                HashFn::default(),
            )?),
            None => {
                let params = ScalableParams::new(FIRST_STAGE, rate)?;
                let params = params.with_growth(GROWTH)?.with_stages_of(StageKind::Blocked);
                Self::All(Scalable::new(params, HashFn::default())?)
            }
        })
    }

    /// The memory of an earlier run, or a new one if there was none.
    fn open(args: &DedupArgs) -> Result<Self> {
        let Some(path) = &args.state else { return Ok(Self::new(args)?) };
        let memory = match AnyFilter::load(path) {
            Err(error) if file::is_missing(&error) => return Ok(Self::new(args)?),
            Err(error) => return Err(error.into()),
            Ok(AnyFilter::Scalable(filter)) => Self::All(filter),
            Ok(AnyFilter::Windowed(filter)) => Self::Window(filter),
            Ok(other) => {
                return Err(Advice::error(
                    format!(
                        "{}: holds a {} filter, not a dedup state",
                        path.display(),
                        other.kind()
                    ),
                    "name a new file, and dedup will create it",
                ));
            }
        };
        KeyHash::Hash(memory.hash_fn()).of(b"").map_err(|error| file::named(path, error))?;
        memory.refuse_other_options(args).map_err(|error| file::named(path, error))?;
        Ok(memory)
    }

    /// A state was made with its own options; others given now would silently not be followed.
    fn refuse_other_options(&self, args: &DedupArgs) -> Result<()> {
        match (self, args.window, args.rate) {
            (Self::All(_), Some(asked), _) => {
                bail!("remembers all keys, but --window {asked} was asked for")
            }
            (Self::Window(filter), Some(asked), _) if asked != filter.params().capacity() => {
                let made = filter.params().capacity();
                bail!("was made with --window {made}, but --window {asked} was asked for")
            }
            (Self::All(filter), _, Some(asked)) if asked != filter.params().rate() => {
                let made = filter.params().rate();
                bail!("was made with --rate {made}, but --rate {asked} was asked for")
            }
            (Self::Window(filter), _, Some(asked)) => {
                let params = filter.params();
                if WindowedParams::for_keys(params.capacity(), asked)? != params {
                    bail!(
                        "was made with another rate ({:e}), but --rate {asked} was asked for",
                        params.rate()
                    )
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn hash_fn(&self) -> HashFn {
        match self {
            Self::All(filter) => filter.hash_fn(),
            Self::Window(filter) => filter.hash_fn(),
        }
    }

    fn insert_each(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<(), ParamError> {
        match self {
            Self::All(filter) => filter.insert_each(hashes, new),
            Self::Window(filter) => {
                filter.insert_each(hashes, new);
                Ok(())
            }
        }
    }

    fn into_filter(self) -> AnyFilter {
        match self {
            Self::All(filter) => AnyFilter::Scalable(filter),
            Self::Window(filter) => AnyFilter::Windowed(filter),
        }
    }
}

pub(crate) fn run(args: &DedupArgs) -> Result<Outcome> {
    let input = InputArgs { inputs: args.inputs.clone(), null: args.null, csv: None, rows: None };
    if let Some(path) = &args.state {
        file::refuse_unwritable(path)?;
    }
    let mut memory = Memory::open(args)?;
    output::widen_pipe();
    let key_hash = KeyHash::Hash(memory.hash_fn());
    let (mut seen, mut distinct) = (0u64, 0u64);
    let (mut new, mut lines) = (Vec::new(), Vec::new());
    input::for_each_block(
        &input,
        1,
        move |keys| file::hashes(keys, key_hash),
        |keys, hashes| {
            new.resize(hashes.len(), false);
            memory.insert_each(&hashes, &mut new)?;
            seen += hashes.len() as u64;
            distinct += new.iter().filter(|&&new| new).count() as u64;
            if args.count {
                return Ok(());
            }
            lines.clear();
            keys.select(&new, true, input.delimiter(), &mut lines);
            output::write(&lines)
        },
    )?;
    if args.count {
        let record = vec![("keys", Cell::count(seen)), ("distinct", Cell::count(distinct))];
        let plain = format!("{distinct}\n");
        output::print(&if args.json { report::show_record(&record, true) } else { plain })?;
    }
    if let Some(path) = &args.state {
        file::save(&memory.into_filter(), path)?;
    }
    Ok(Outcome::Found)
}
