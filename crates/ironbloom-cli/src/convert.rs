//! `ironbloom convert`: between our files and those of other programs.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use ironbloom::any::AnyFilter;
use ironbloom::format::foreign::Format;
use ironbloom::format::native::replace_file;

use crate::failure::Advice;
use crate::foreign::{self, ForeignArgs};
use crate::input::InputArgs;
use crate::secret::SecretArgs;
use crate::shell::{self, Named};
use crate::{Outcome, dash, file, info, output};

/// Convert a filter to or from the format of another program
///
/// A filter of another program keeps its own hash and probes inside an .ibf file, so that no answer changes: false
/// positives stay as well. The other way, a filter can be written only in the format of the program whose hash it uses:
/// bits cannot be hashed again. Formats are recognised by content; LevelDB's must be named.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom convert users.guava --keys long -o users.ibf
  ironbloom convert users.guava --keys long --known some-ids.txt -o users.ibf    and check the form
  ironbloom convert users.ibf --to guava -o users.guava
  ironbloom convert hashes.bloom.gz -o hashes.ibf          DCSO, compressed
  ironbloom convert seen.ibd -o seen.ibf                   what `ironbloom redis dump` wrote

Formats: spark, guava, datasketches, parquet, bits-and-blooms, dcso, ethereum, redisbloom, rocksdb, leveldb. \
What each is, and what converts to what: docs/formats.md.")]
pub(crate) struct ConvertArgs {
    /// The filter; `-` reads it from standard input
    #[arg(value_name = "FILE")]
    filter: PathBuf,

    /// Where to write the result; `-` is standard output. A name that ends with .gz is compressed, unless it is an .ibf file
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Format of the result: ibf, or that of another program
    #[arg(long, value_name = "FORMAT", default_value = "ibf", value_parser = targets(), hide_possible_values = true)]
    to: Target,

    #[command(flatten)]
    foreign: ForeignArgs,

    /// Keys that were inserted, one per line. If one of them is absent, nothing is written: --keys is probably wrong
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
}

/// A format of a result: ours, or another's.
#[derive(Clone, Copy)]
struct Target(Option<Format>);

/// For an option that takes the name of a format, or of ours.
fn targets() -> Named<Target> {
    shell::named(parse_target, || {
        ["ibf"].into_iter().chain(Format::all().map(Format::name)).collect()
    })
}

fn parse_target(text: &str) -> Result<Target, String> {
    match text {
        "ibf" => Ok(Target(None)),
        other => foreign::parse_format(other)
            .map(|format| Target(Some(format)))
            .map_err(|_| format!("not a format; use one of ibf, {}", foreign::format_names())),
    }
}

pub(crate) fn run(args: &ConvertArgs) -> Result<Outcome> {
    file::refuse_unwritable(&args.output)?;
    let filter = foreign::load(&args.filter, args.foreign, &SecretArgs::default())?;
    if let Some(known) = &args.known {
        refuse_absent(args, &filter, known)?;
    }
    match args.to.0 {
        None => file::save(&filter, &args.output)?,
        Some(format) => save_as(format, &filter, &args.output)?,
    }
    if !dash::is(&args.output) {
        output::note(&info::changed(&args.output, &filter, None));
    }
    Ok(Outcome::Found)
}

/// Writes a filter in the format of another program.
pub(crate) fn save_as(format: Format, filter: &AnyFilter, path: &Path) -> Result<()> {
    let bytes = format.write(filter).map_err(|refused| {
        let message = refused.to_string();
        match Format::of(filter) {
            Some(other) => Advice::error(message, format!("it can be written as {other}")),
            None => anyhow!(message),
        }
    })?;
    let bytes = packed(path, bytes)?;
    if dash::is(path) {
        return output::write_file(|out| out.write_all(&bytes));
    }
    file::replacing(path, || {
        let written = replace_file(path, |mut file| file.write_all(&bytes));
        written.with_context(|| path.display().to_string())
    })
}

fn packed(path: &Path, bytes: Vec<u8>) -> Result<Vec<u8>> {
    if path.extension().is_none_or(|extension| extension != "gz") {
        return Ok(bytes);
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&bytes)?;
    Ok(packed.finish()?)
}

/// Every key that was inserted must be found. A wrong form finds hardly any.
fn refuse_absent(args: &ConvertArgs, filter: &AnyFilter, known: &Path) -> Result<()> {
    if !foreign::is_foreign(filter) {
        return Err(anyhow!("--known is for filters of other programs"));
    }
    foreign::require_form(&args.filter, filter)?;
    let input = InputArgs { inputs: vec![known.to_owned()], ..InputArgs::default() };
    let (mut absent, mut all) = (0u64, 0u64);
    let mut first = None;
    foreign::for_each_answer(&input, 1, filter.clone(), |keys, found| {
        for (key, found) in keys.iter().zip(found) {
            all += 1;
            if !found {
                absent += 1;
                first.get_or_insert_with(|| String::from_utf8_lossy(key).into_owned());
            }
        }
        Ok(())
    })?;
    match first {
        None => Ok(()),
        Some(first) => Err(Advice::error(
            format!("{absent} of {all} known keys are absent, the first is {first:?}"),
            "keys are probably of another form: try another --keys",
        )),
    }
}
