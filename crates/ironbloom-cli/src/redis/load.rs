//! `ironbloom redis load`: a filter from a file, or from keys, to a server.

use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::Path;

use anyhow::{Result, anyhow};
use clap::Args;
use ironbloom::any::{AnyFilter, KeyHash};
use ironbloom::format::dump::{self, DumpReader, Family};
use ironbloom::format::redis_chunks::{ChunkHeader, ChunkSum, FIRST};
use ironbloom::{DecodeError, FileError, HashFn};

use super::local::LocalArgs;
use super::names::LoadId;
use super::upload::{Existing, Upload, UploadTarget};
use super::{TargetArgs, failover};
use crate::failure::Advice;
use crate::input::InputArgs;
use crate::report::{self, Cell, Record};
use crate::{Outcome, dash, file, number, output};

/// Load a filter into a server
///
/// The filter is a file of `ironbloom build` (--kind blocked, bloom, segmented, scalable, windowed or cuckoo) or of
/// `ironbloom redis dump`; or, with --lines, it is built here from keys, which is far faster than sending them. It becomes
/// visible once it is complete: an interrupted load leaves the key unchanged. With --shards, the filter is spread over
/// several keys, and so over the servers of a cluster; this requires --lines, because a built filter does not know which key
/// set which bit.
#[derive(Args)]
#[command(
    mut_arg("inputs", |arg| arg.value_name("FILE").help(
        "The filter; with --lines files of keys (`-` or none: standard input; gzip and zstd are recognised)")),
    mut_arg("null", |arg| arg.requires("lines").help("With --lines: keys end with a NUL byte")),
    mut_arg("exact_bytes", |arg| arg.requires("lines")),
    mut_arg("csv", |arg| arg.requires("lines").help("With --lines: keys are this column of CSV, by name or number")),
    mut_arg("tsv", |arg| arg.requires("lines")),
    mut_arg("delimiter", |arg| arg.requires("lines")),
    mut_arg("no_header", |arg| arg.requires("lines")),
    after_help = "\
Examples:
  ironbloom redis load seen.ibf --key seen --url redis://127.0.0.1:6379
  ironbloom redis load seen.ibf --key seen --replace --url redis://:password@db.example:6379/2
  ironbloom redis load --lines urls.txt.gz --rate 0.1% --key seen --url redis://127.0.0.1:6379
  ironbloom redis load --lines urls.txt --shards 12 --key seen --url redis://10.0.0.1:6379"
)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Replace a filter that already has this key
    #[arg(long)]
    replace: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    local: LocalArgs,

    #[command(flatten)]
    input: InputArgs,
}

pub(crate) fn run(args: &LoadArgs) -> Result<Outcome> {
    if args.local.lines {
        return load_lines(args);
    }
    let path = args.file()?;
    match open_dump(path)? {
        Some(dump) => load_dump(args, path, dump),
        None => load_filters(args, &[open_filter(args, path)?]),
    }
}

fn load_lines(args: &LoadArgs) -> Result<Outcome> {
    // What would be refused at the end is refused now. The server may not wait as long as it takes to read all keys.
    let target = args.target(args.target.shards)?;
    drop(Upload::new(&mut args.target.connect()?, &target)?);
    load_filters(args, &args.local.build(&args.input, args.target.shards.unwrap_or(1))?)
}

impl LoadArgs {
    fn existing(&self) -> Existing {
        if self.replace { Existing::Replace } else { Existing::Keep }
    }

    /// The one file that is a filter.
    fn file(&self) -> Result<&Path> {
        match self.input.inputs.as_slice() {
            [path] => Ok(path),
            [] => Err(Advice::error(
                "which filter?",
                "give a file of `ironbloom build` or `ironbloom redis dump`; or --lines and keys",
            )),
            _ => Err(Advice::error(
                "several files",
                "one filter has one file; add --lines if these are files of keys",
            )),
        }
    }

    fn target(&self, shards: Option<u32>) -> Result<UploadTarget> {
        let (id, name) = (LoadId::new(), self.target.name()?);
        Ok(UploadTarget { id, name, shards, existing: self.existing() })
    }

    /// Sends what `send` sends, perhaps more than once. Returns the number of bytes.
    fn load(
        &self,
        shards: Option<u32>,
        send: impl FnMut(&mut Upload<'_>) -> Result<()>,
    ) -> Result<u64> {
        let server = &self.target.server;
        failover::load(&server.address()?, server.failover_wait(), &self.target(shards)?, send)
    }
}

/// A dump, if the file is one.
fn open_dump(path: &Path) -> Result<Option<DumpReader<BufReader<File>>>> {
    if dash::is(path) {
        return Ok(None); // as a pipe below
    }
    let named = |error: anyhow::Error| file::named(path, error);
    let mut input = File::open(path).map_err(|error| named(error.into()))?;
    if !input.metadata().is_ok_and(|found| found.is_file()) {
        return Ok(None); // a pipe, whose first bytes are read only once: a filter
    }
    let mut first = [0; dump::MAGIC.len()];
    if input.read_exact(&mut first).is_err() || first != dump::MAGIC {
        return Ok(None);
    }
    let input = File::open(path).map_err(|error| named(error.into()))?;
    DumpReader::new(BufReader::new(input)).map(Some).map_err(|error| named(error.into()))
}

fn open_filter(args: &LoadArgs, path: &Path) -> Result<AnyFilter> {
    let filter = file::load(path).map_err(|error| match error.downcast_ref::<FileError>() {
        Some(FileError::Decode { error: DecodeError::NotAFilter, .. }) => Advice::error(
            error.to_string(),
            "if it holds keys, one per line, add --lines: a filter of them is built and loaded",
        ),
        _ => error,
    })?;
    if args.target.shards.is_some() {
        return Err(Advice::error(
            format!("{}: a filter that is built cannot be split into shards", path.display()),
            "give the keys: ironbloom redis load --lines KEYS.txt --shards …",
        ));
    }
    if let KeyHash::Hash(HashFn::External { id }) = filter.key_hash() {
        return Err(Advice::error(
            format!(
                "{}: built from hashes of another program (external hash {id}), which no server can compute",
                path.display()
            ),
            "build it from keys",
        ));
    }
    if family_of(&filter).is_none() {
        return Err(Advice::error(
            format!("{}: a server cannot hold a {} filter", path.display(), filter.kind()),
            "build it with --kind blocked, bloom, scalable, windowed or cuckoo",
        ));
    }
    Ok(filter)
}

/// The commands for a filter, if the module can hold it.
fn family_of(filter: &AnyFilter) -> Option<Family> {
    match filter {
        AnyFilter::Bloom(_)
        | AnyFilter::Blocked(_)
        | AnyFilter::Scalable(_)
        | AnyFilter::Windowed(_) => Some(Family::Bloom),
        AnyFilter::Cuckoo(_) => Some(Family::Cuckoo),
        _ => None,
    }
}

fn load_filters(args: &LoadArgs, filters: &[AnyFilter]) -> Result<Outcome> {
    let sent = args.load(args.target.shards, |upload| {
        filters.iter().try_for_each(|filter| {
            let family = family_of(filter)
                .ok_or_else(|| anyhow!("a server cannot hold a {} filter", filter.kind()))?;
            upload.filter(filter, family)
        })
    })?;
    let keys: u64 = filters.iter().map(AnyFilter::len).sum();
    if filters.iter().any(AnyFilter::is_over_capacity) {
        output::note(
            "warning: more keys than the filter was planned for; give a larger --capacity",
        );
    }
    let kind = filters.first().map_or_else(String::new, |filter| filter.kind().to_string());
    if args.json {
        let filter = vec![("kind", Cell::text(kind)), ("keys", Cell::count(keys))];
        return report(args, args.target.shards, filter, sent);
    }
    let kept = format!("{kind}, {}, {}", number::plural(keys, "key"), number::bytes(sent));
    say(args, args.target.shards, &kept);
    Ok(Outcome::Found)
}

/// Reports what was loaded, for programs.
fn report(args: &LoadArgs, shards: Option<u32>, filter: Record, sent: u64) -> Result<Outcome> {
    let mut record = vec![("key", Cell::text(args.target.key.clone()))];
    record.extend(filter);
    record.push(("size", Cell::bytes(sent)));
    record.push(("shards", shards.map_or(Cell::none(""), |n| Cell::count(n.into()))));
    output::print(&report::show_record(&record, true))?;
    Ok(Outcome::Found)
}

fn load_dump(args: &LoadArgs, path: &Path, dump: DumpReader<BufReader<File>>) -> Result<Outcome> {
    let shards = dump.shards();
    if let Some(wanted) = args.target.shards
        && shards != Some(wanted)
    {
        let there = shards.map_or("of one filter".to_owned(), |n| {
            format!("of {}", number::plural(n.into(), "shard"))
        });
        return Err(Advice::error(
            format!(
                "{}: a dump {there}, not of {}",
                path.display(),
                number::plural(wanted.into(), "shard")
            ),
            "leave --shards out: the dump knows",
        ));
    }
    if shards.is_some() {
        args.target.name()?.refuse_braces()?;
    }
    let mut opened = Some(dump);
    let sent = args.load(shards, |upload| {
        // From its beginning, for the second time if it must be.
        match opened.take().map_or_else(|| open_dump(path), |dump| Ok(Some(dump)))? {
            Some(dump) if dump.shards() == shards => send_dump(upload, path, dump),
            _ => Err(anyhow!("{}: was changed while it was loaded", path.display())),
        }
    })?;
    if args.json {
        return report(args, shards, Record::new(), sent);
    }
    say(args, shards, &number::bytes(sent));
    Ok(Outcome::Found)
}

fn send_dump(
    upload: &mut Upload<'_>,
    path: &Path,
    mut dump: DumpReader<BufReader<File>>,
) -> Result<()> {
    let named = |error: anyhow::Error| file::named(path, error);
    for _ in 0..dump.filters() {
        upload.start_filter();
        let (mut header, mut sum) = (ChunkHeader::RedisBloom, ChunkSum::default());
        while let Some(chunk) = dump.next_chunk().map_err(|error| named(error.into()))? {
            match chunk.iterator {
                FIRST => header = ChunkHeader::parse(&chunk.bytes),
                _ => sum.take(&chunk.bytes),
            }
            upload.chunk(chunk.family, chunk.iterator, &chunk.bytes).map_err(named)?;
        }
        if let ChunkHeader::File(announced) | ChunkHeader::Files(announced) = header
            && announced != sum.announcement()
        {
            return Err(named(anyhow!("a filter of the dump is not the one that was announced")));
        }
    }
    dump.finish().map_err(|error| named(error.into()))
}

fn say(args: &LoadArgs, shards: Option<u32>, what: &str) {
    let shards =
        shards.map_or(String::new(), |shards| number::plural(shards.into(), "shard") + ", ");
    output::note(&format!("{}: {shards}{what}", args.target.key));
}
