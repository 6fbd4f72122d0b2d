//! `ironbloom build`: a filter from keys.

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use clap::Args;
use ironbloom::any::{AnyFilter, KeyHash};
use ironbloom::format::foreign::Format;
use ironbloom::hash::KeyForm;
use ironbloom::multi::{Attributes, Joint, MultiFilter as _};
use ironbloom::{Bloom, BloomParams, CuckooParams, Foreign, HashFn, KeyType, Kind, Rule, Scheme};

use crate::failure::Advice;
use crate::info::Given;
use crate::input::{self, InputArgs};
use crate::kinds::KindArg;
use crate::secret::{self, SecretArgs, Seed};
use crate::shell::{self, Named};
use crate::{Outcome, convert, dash, file, foreign, info, number, output, report, rows};

/// Build a filter from keys
///
/// Without --capacity, the 8-byte hashes of all keys are kept in memory until the input ends, and the filter is sized for
/// the distinct keys. With it, keys go straight into a filter of that size.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom build -o words.ibf /usr/share/dict/words
  ironbloom build -o urls.ibf --kind blocked --capacity 100M --rate 0.1% urls-*.txt.gz
  ironbloom build -o emails.ibf --csv email users.csv
  ironbloom build -o - urls.txt | ssh host 'cat > urls.ibf'
  seq 1000000 | ironbloom build -o ids.ibf --kind bitmap --capacity 1000001
  ironbloom build -o t.ibf --kind joint --csv size,color things.csv    rows of two columns
  ironbloom build -o ids.guava --format guava --keys long --capacity 1M ids.txt   # for Java")]
pub(crate) struct BuildArgs {
    /// Where to write the filter; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Kind of filter
    #[arg(long, value_enum, default_value = "bloom")]
    kind: KindArg,

    /// Keys to plan for, e.g. 10M (bitmap: the bound; windowed: the window)
    #[arg(long, value_name = "N", value_parser = number::parse_count, allow_negative_numbers = true)]
    capacity: Option<u64>,

    /// False-positive rate, e.g. 1%, 0.001, 1e-6 (bitmap: always 0)
    #[arg(long, value_name = "P", default_value = "1%", value_parser = number::parse_rate, allow_negative_numbers = true)]
    rate: f64,

    /// Seed of the hash function, or `random` for a secret key that the filter contains; only filters with the same seed can be
    /// merged
    #[arg(long, value_name = "S", default_value = "0", value_parser = secret::parse_seed)]
    seed: Seed,

    #[command(flatten)]
    secret: SecretArgs,

    /// Probe sequence of a Bloom filter; those other than remix are for comparison and exceed the rate
    #[arg(long, value_name = "SCHEME", default_value = "remix", value_parser = schemes(), hide_possible_values = true)]
    scheme: Scheme,

    /// Make a filter for another program: spark, guava, datasketches, bits-and-blooms or dcso. Needs --capacity, and --keys
    /// where that program has keys of several forms
    #[arg(long, value_name = "FORMAT", value_parser = foreign::formats(), hide_possible_values = true, conflicts_with_all = ["kind", "seed", "scheme", "partial", "secret_file"])]
    format: Option<Format>,

    /// Version of a format that has several: of Spark's, 1 is read by all releases, 2 from 4.1 on and needed above some 100
    /// million keys [default: 1]
    #[arg(long, value_name = "V", requires = "format", value_parser = clap::value_parser!(u8).range(1..=2))]
    format_version: Option<u8>,

    /// What keys are: text, or long (integers); of a filter for another program also chars, int, double or hex [default: text]
    #[arg(long, value_name = "FORM", value_parser = foreign::forms(), hide_possible_values = true)]
    keys: Option<KeyForm>,

    /// Joint: also answer queries on some of the columns. Keeps a count for each distinct value
    #[arg(long)]
    partial: bool,

    /// Threads that read, hash and insert [default: all cores]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Print a report of the filter as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: InputArgs,
}

/// For an option that takes the name of a probe scheme.
fn schemes() -> Named<Scheme> {
    shell::named(parse_scheme, || Scheme::ALL.map(Scheme::name).to_vec())
}

fn parse_scheme(text: &str) -> Result<Scheme, String> {
    let names = Scheme::ALL.map(Scheme::name).join(", ");
    let scheme = Scheme::ALL.into_iter().find(|scheme| scheme.name() == text);
    scheme.ok_or_else(|| format!("not a probe scheme; use one of {names}"))
}

impl BuildArgs {
    fn threads(&self) -> usize {
        self.threads.map_or_else(
            || std::thread::available_parallelism().map_or(1, usize::from),
            usize::from,
        )
    }

    /// How lines are hashed, and what they are.
    fn key_hash(&self, hash_fn: HashFn) -> Result<KeyHash> {
        let keys = file::key_type(self.keys)?;
        Ok(match keys {
            _ if self.kind.is(Kind::Bitmap) => KeyHash::Integer,
            Some(KeyType::Integer) => KeyHash::Digits(hash_fn),
            _ => KeyHash::Hash(hash_fn),
        })
    }

    fn hash_fn(&self) -> Result<HashFn> {
        let key = self.secret.key()?;
        if key.is_some() && self.seed != Seed::Number(0) {
            return Err(anyhow!("--seed and --secret-file both choose the hash: give one of them"));
        }
        if self.kind.is(Kind::Bitmap) && (key.is_some() || self.seed == Seed::Random) {
            return Err(anyhow!("a bitmap does not hash its keys: it has no seed and no secret"));
        }
        if self.kind.is(Kind::SplitBlock) && (key.is_some() || self.seed == Seed::Random) {
            return Err(anyhow!(
                "the hash of a split-block filter is prescribed, and knows no secret: use --kind blocked"
            ));
        }
        Ok(self.seed.hash_fn(key, |seed| self.kind.hash_fn(seed)))
    }

    fn bloom_params(&self, capacity: u64) -> Result<BloomParams> {
        let params = match self.kind.name {
            "segmented" => BloomParams::segmented_for_rate(capacity, self.rate)?,
            _ => BloomParams::for_rate(capacity, self.rate)?,
        };
        Ok(params.with_scheme(self.scheme)?)
    }

    /// Says no to what cannot be made, before the input is read. Without a capacity only the rate is known.
    fn refuse_impossible(&self) -> Result<()> {
        let capacity = self.capacity.unwrap_or(1);
        if capacity == 0 {
            return Err(anyhow!("capacity must be at least 1, got 0"));
        }
        refuse_beyond_memory(self.kind.shape(capacity, self.rate)?.bits)?;
        if self.kind.is(Kind::Bloom) {
            self.bloom_params(capacity)?;
        }
        Ok(())
    }

    /// An empty filter of this shape.
    fn create(&self, capacity: u64, hash_fn: HashFn) -> Result<AnyFilter> {
        refuse_beyond_memory(self.kind.shape(capacity, self.rate)?.bits)?;
        if self.kind.is(Kind::Bloom) {
            let params = self.bloom_params(capacity)?;
            return Ok(AnyFilter::Bloom(Bloom::new(params, hash_fn)?));
        }
        Ok(self.kind.create_with(capacity, self.rate, hash_fn)?)
    }
}

/// Default capacity of the first stage of a growing filter.
const SCALABLE_START: u64 = 100_000;

pub(crate) fn run(args: &BuildArgs) -> Result<Outcome> {
    if args.scheme != Scheme::Remix && !args.kind.is(Kind::Bloom) {
        return Err(anyhow!("--scheme is for --kind bloom and segmented"));
    }
    if let Some(format) = args.format {
        return for_program(args, format);
    }
    if args.partial && !args.kind.is(Kind::Joint) {
        return Err(anyhow!("--partial is for --kind joint"));
    }
    file::refuse_same(&args.output, &args.input.inputs)?;
    file::refuse_unwritable(&args.output)?;
    dash::refuse_report(&args.output, args.json)?;
    args.refuse_impossible()?;
    let hash_fn = args.hash_fn()?;
    let (filter, given) = match (args.capacity, args.kind.kind) {
        (_, Kind::Joint) => from_rows(args, hash_fn)?,
        (Some(capacity), _) if !args.kind.abilities.counts_copies => {
            stream(args, args.create(capacity, hash_fn)?, hash_fn)?
        }
        (None, Kind::Scalable) => stream(args, args.create(SCALABLE_START, hash_fn)?, hash_fn)?,
        (None, Kind::Windowed) => {
            return Err(Advice::error(
                "--kind windowed needs a window",
                "give its number of keys: --capacity 1M",
            ));
        }
        (capacity, _) => from_distinct(args, capacity, hash_fn)?,
    };
    file::save(&filter, &args.output)?;
    file::warn_if_over_capacity(&args.output, &filter);
    if args.json {
        let record = info::record_with_read(&args.output, &filter, given.read);
        output::print(&report::show_record(&record, true))?;
    } else {
        output::note(&info::built(&args.output, &filter, given));
    }
    Ok(Outcome::Found)
}

/// A filter in the format of another program, as that program would make it.
fn for_program(args: &BuildArgs, format: Format) -> Result<Outcome> {
    file::refuse_same(&args.output, &args.input.inputs)?;
    file::refuse_unwritable(&args.output)?;
    dash::refuse_report(&args.output, args.json)?;
    let Some(rule) = format.rule() else {
        return Err(match format {
            Format::Parquet => Advice::error(
                "filters for Parquet are made without --format",
                "build it with --kind split-block, then `ironbloom convert --to parquet`",
            ),
            Format::RedisBloom => Advice::error(
                "filters of redisbloom are made by servers",
                "fill one with BF.MADD or CF.ADD, then `ironbloom redis dump`",
            ),
            _ => anyhow!("filters of {format} are only read, not made"),
        });
    };
    let rule = match (format, args.format_version) {
        (Format::Spark, None | Some(1)) => Rule::Spark1,
        (Format::Spark, Some(_)) | (_, None) => rule,
        (_, Some(_)) => {
            return Err(anyhow!("{format} has one version: --format-version is for spark"));
        }
    };
    let Some(capacity) = args.capacity else {
        return Err(Advice::error(
            "--format needs the number of keys to plan for",
            "give it: --capacity 1M",
        ));
    };
    let form = match (args.keys, rule.only_form()) {
        (Some(form), _) | (None, Some(form)) => form,
        (None, None) => {
            let forms: Vec<&str> = rule.forms().map(KeyForm::name).collect();
            return Err(Advice::error(
                format!("{format} does not record what keys are"),
                format!("say it: --keys with one of {}", forms.join(", ")),
            ));
        }
    };
    let empty = Foreign::for_rate(rule, capacity, args.rate, None)?;
    let filter = empty.with_form(form)?;
    refuse_beyond_memory(filter.bits())?;
    if format == Format::Dcso {
        output::note(
            "note: DCSO's generator of positions is weak: expect more false positives than asked for",
        );
    }
    let mut filter = AnyFilter::Foreign(filter);
    let read = foreign::insert_all(&args.input, &mut filter)?;
    convert::save_as(format, &filter, &args.output)?;
    file::warn_if_over_capacity(&args.output, &filter);
    if args.json {
        let record = info::record_with_read(&args.output, &filter, read);
        output::print(&report::show_record(&record, true))?;
    } else {
        output::note(&info::built(&args.output, &filter, Given { read, distinct: None }));
    }
    Ok(Outcome::Found)
}

/// Keys go into a filter of known size as they come, hashed by the workers and inserted in batches, in input order: the
/// filter is the same whatever the number of threads. One thread inserts faster than another reads lines.
fn stream(args: &BuildArgs, mut filter: AnyFilter, hash_fn: HashFn) -> Result<(AnyFilter, Given)> {
    let key_hash = args.key_hash(hash_fn)?;
    filter.note_keys(file::line_types(key_hash));
    let mut read = 0;
    input::for_each_block(
        &args.input,
        args.threads(),
        move |keys| file::hashes(keys, key_hash),
        |_, hashes| {
            read += hashes.len() as u64;
            file::insert(&mut filter, &hashes)
        },
    )?;
    Ok((filter, Given { read, distinct: None }))
}

/// The filter is made when all keys are known: sized to them, or from a set. With it goes their number.
fn from_distinct(
    args: &BuildArgs,
    capacity: Option<u64>,
    hash_fn: HashFn,
) -> Result<(AnyFilter, Given)> {
    let key_hash = args.key_hash(hash_fn)?;
    let (all, read) = distinct_hashes(&args.input, args.threads(), key_hash)?;
    let distinct = all.len() as u64;
    let given = Given { read, distinct: Some(distinct) };
    if let Some(capacity) = capacity
        && !args.kind.abilities.insert
        && distinct > capacity
    {
        return Err(Advice::error(
            format!(
                "{} in the input, more than --capacity {capacity}",
                number::plural(distinct, "distinct key")
            ),
            "a filter that is built from all its keys is sized to them: leave --capacity out",
        ));
    }
    let capacity = match (capacity, args.kind.kind) {
        (Some(capacity), _) => capacity,
        (None, Kind::Bitmap) => all.last().map_or(1, |&largest| largest.saturating_add(1)),
        (None, _) => distinct.max(1),
    };
    if args.kind.is(Kind::Bloom) {
        let mut filter = args.create(capacity, hash_fn)?;
        filter.note_keys(file::line_types(key_hash));
        filter.insert_distinct_hashes(&all)?;
        return Ok((filter, given));
    }
    refuse_beyond_memory(args.kind.shape(capacity, args.rate)?.bits).map_err(|error| {
        match args.kind.kind {
            Kind::Bitmap => Advice::error(
                format!("{error}: its largest key is {}", capacity - 1),
                "a bitmap has a bit for every integer below its bound; other kinds take keys of any size",
            ),
            _ => error,
        }
    })?;
    let mut filter = args.kind.build_with(&all, capacity, args.rate, hash_fn)?;
    filter.set_key_types(file::line_types(key_hash));
    Ok((filter, given))
}

/// The hashes of all keys, sorted, each once; and how many keys there were.
pub(crate) fn distinct_hashes(
    input: &InputArgs,
    threads: usize,
    key_hash: KeyHash,
) -> Result<(Vec<u64>, u64)> {
    let mut all: Vec<u64> = Vec::new();
    input::for_each_block(
        input,
        threads,
        move |keys| file::hashes(keys, key_hash),
        |_, hashes| {
            all.try_reserve(hashes.len()).map_err(|_| {
                Advice::error("not enough memory for the hashes of all keys", "give --capacity")
            })?;
            all.extend_from_slice(&hashes);
            Ok(())
        },
    )?;
    let read = all.len() as u64;
    all.sort_unstable();
    all.dedup();
    Ok((all, read))
}

/// As [`from_distinct`], of rows.
fn from_rows(args: &BuildArgs, hash_fn: HashFn) -> Result<(AnyFilter, Given)> {
    let columns = rows::columns_of_build(&args.input)?;
    let keys = file::key_type(args.keys)?;
    let attributes = Attributes::new(columns.iter(), hash_fn)?;
    let mut all: Vec<u64> = Vec::new();
    let values = rows::values(&attributes, keys)?;
    rows::for_each_block(&args.input, columns, values.clone(), args.threads(), |_, hashes| {
        all.try_reserve(hashes.len()).map_err(|_| anyhow!("not enough memory for all rows"))?;
        all.extend_from_slice(&hashes);
        Ok(())
    })?;
    let distinct = rows::distinct(&all, attributes.len());
    let capacity = args.capacity.unwrap_or(distinct.len() as u64).max(1);
    let params = CuckooParams::for_rate(capacity, args.rate)?;
    refuse_beyond_memory(params.bits())?;
    let read = (all.len() / attributes.len()) as u64;
    let make = if args.partial { Joint::new_partial } else { Joint::new };
    let mut filter = make(params, attributes)?;
    filter.note_keys(&rows::types(&values));
    for row in &distinct {
        rows::insert(&args.output, &mut filter, row)?;
    }
    let given = Given { read, distinct: Some(distinct.len() as u64) };
    Ok((AnyFilter::Joint(filter), given))
}

/// Linux gives memory it does not have and kills later: better to say no now.
pub(crate) fn refuse_beyond_memory(bits: u64) -> Result<()> {
    let wanted = bits / 8;
    match available_memory() {
        Some(available) if wanted > available => Err(Advice::error(
            format!(
                "the filter takes {}, and this machine has {} of memory free",
                number::bytes(wanted),
                number::bytes(available)
            ),
            "ask for a smaller --capacity or a higher --rate; `ironbloom plan` shows what fits a given --memory",
        )),
        _ => Ok(()),
    }
}

fn available_memory() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find(|line| line.starts_with("MemAvailable:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}
