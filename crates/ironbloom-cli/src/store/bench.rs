//! `ironbloom store bench`: the same lookups with and without a guard, in one run.
//!
//! Rounds alternate between the bare store and the guarded one, on the same keys, each from a cold start: redb's file is
//! opened again with a small cache, and its pages are dropped from the system's cache.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::{Args, ValueEnum};
use ironbloom_store::{
    Backend, Guard, GuardKind, Opened, Options, Postgres, Redb, Redis, Stats, checkpoint_beside,
};
use tempfile::TempDir;

use super::lookups::{Keys, Times};
use super::show;
use crate::redis::without_password;
use crate::report::{self, Cell, Record};
use crate::{Outcome, number, output};

/// Pairs that are stored together.
const PAIRS: usize = 50_000;

/// Measure lookups with and without a guard, in one run
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom store bench --keys 10M --miss 90%
  ironbloom store bench --keys 1M --kind cuckoo --rate 0.1% --json
  ironbloom store bench --backend postgres --url 'host=127.0.0.1 user=me' --keys 1M
  ironbloom store bench --backend redis --url redis://127.0.0.1/ --keys 1M --batch 100

On a server, the table ironbloom_bench or keys that begin with ironbloom_bench: are created, and kept for the next run.")]
pub(crate) struct BenchArgs {
    /// The store
    #[arg(long, value_enum, default_value_t = Store::Redb)]
    backend: Store,

    /// Address of the server
    #[arg(long, value_name = "URL", required_if_eq_any([("backend", "postgres"), ("backend", "redis")]))]
    url: Option<String>,

    /// Keep the store and its checkpoint in this directory for another run; otherwise both are removed at the end
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,

    /// Number of keys to store
    #[arg(long, value_parser = number::parse_count, default_value = "1M")]
    keys: u64,

    /// Size of a value
    #[arg(long, value_parser = number::parse_bytes, default_value = "100")]
    value: u64,

    /// Share of the lookups whose key is not stored
    #[arg(long, value_parser = number::parse_rate, default_value = "90%")]
    miss: f64,

    /// Lookups per round
    #[arg(long, value_parser = number::parse_count, default_value = "50k")]
    lookups: u64,

    /// Number of rounds, each with and without the guard
    #[arg(long, value_name = "N", default_value_t = 4)]
    rounds: u64,

    /// Lookups per call, for both the bare and the guarded store
    #[arg(long, value_name = "N", default_value_t = 1)]
    batch: usize,

    /// Kind of filter: blocked, cuckoo, d-left, scalable
    #[arg(long, default_value = "blocked")]
    kind: GuardKind,

    /// False-positive rate of the filter
    #[arg(long, value_parser = number::parse_rate, default_value = "0.5%")]
    rate: f64,

    /// Size of redb's page cache
    #[arg(long, value_parser = number::parse_bytes, default_value = "16MiB")]
    cache: u64,

    /// Do not drop the pages of the file from the system's cache before each round
    #[arg(long)]
    warm: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Store {
    Redb,
    Postgres,
    Redis,
}

/// A directory that is removed after the run, unless the user named it.
enum BenchFolder {
    Named(PathBuf),
    Temporary(TempDir),
}

impl BenchFolder {
    fn new(asked: Option<&Path>) -> Result<Self> {
        let Some(named) = asked else {
            return Ok(Self::Temporary(TempDir::with_prefix("ironbloom-store-")?));
        };
        std::fs::create_dir_all(named).with_context(|| named.display().to_string())?;
        Ok(Self::Named(named.to_owned()))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Named(path) => path,
            Self::Temporary(folder) => folder.path(),
        }
    }
}

pub(crate) fn run(args: &BenchArgs) -> Result<Outcome> {
    ensure!(
        args.keys > 0 && args.lookups > 0 && args.rounds > 0 && args.batch > 0,
        "nothing to do"
    );
    ensure!((0.0..=1.0).contains(&args.miss), "--miss is a share: 0% to 100%");
    ensure!(args.kind != GuardKind::Windowed, "a window forgets: its answers cannot be compared");
    let folder = BenchFolder::new(args.dir.as_deref())?;
    let url = args.url.clone().unwrap_or_default();
    let measured = match args.backend {
        Store::Redb => {
            let file = folder.path().join(format!("bench-{}-{}.redb", args.keys, args.value));
            let open = || Redb::with_cache(&file, args.cache as usize);
            let cool = || if args.warm { Ok(()) } else { drop_pages(&file) };
            measure(args, &file, open, cool)?
        }
        Store::Postgres => {
            let file = folder.path().join("bench-postgres");
            measure(args, &file, || Postgres::connect(&url, "ironbloom_bench"), || Ok(()))
                .context("PostgreSQL")?
        }
        Store::Redis => {
            let file = folder.path().join("bench-redis");
            measure(args, &file, || Redis::connect(url.as_str(), "ironbloom_bench:"), || Ok(()))
                .with_context(|| without_password(&url))?
        }
    };
    output::print(&measured.show(args.json))?;
    Ok(Outcome::Found)
}

/// Forgets the pages of a file that the system has in memory.
#[cfg(target_os = "linux")]
fn drop_pages(file: &Path) -> Result<()> {
    let file = std::fs::File::open(file)?;
    file.sync_all()?;
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn drop_pages(_: &Path) -> Result<()> {
    output::note(
        "the system's cache cannot be emptied here: the numbers are those of a warm store",
    );
    Ok(())
}

/// Result of the measurement.
struct Measured {
    bare: Times,
    guarded: Times,
    /// Of keys that are all stored, asked in turn.
    bare_hits: Times,
    guarded_hits: Times,
    built: Option<(u64, Duration)>,
    opened: Duration,
    ready: Duration,
    stats: Stats,
}

fn measure<B: Backend>(
    args: &BenchArgs,
    file: &Path,
    open: impl Fn() -> Result<B, B::Error>,
    cool: impl Fn() -> Result<()>,
) -> Result<Measured> {
    let keys = Keys { stored: args.keys };
    fill(&open()?, &keys, args.value as usize)?;
    let options = Options::new(args.kind, args.keys, args.rate)
        .checkpoint(checkpoint_beside(file))
        .only_writer();
    let built = build(open()?, &options)?;

    let mut bare = Times::default();
    let mut guarded = Times::default();
    let (mut opened, mut ready) = (Duration::MAX, Duration::MAX);
    let mut stats = None;
    for round in 0..args.rounds {
        let asked = keys.round(round, args.lookups, args.miss);
        let mut found = [0; 2];
        // Who is first would find the machine in another state.
        for turn in [round % 2, 1 - round % 2] {
            let store = open()?;
            cool()?;
            if turn == 0 {
                found[0] = bare.ask(&asked, args.batch, |group| bare_found(&store, group))?;
                continue;
            }
            let start = Instant::now();
            let guard = Guard::open(store, options.clone())?;
            opened = opened.min(start.elapsed());
            guard.settle()?;
            ready = ready.min(start.elapsed());
            ensure!(*guard.opened() == Opened::FromCheckpoint, "the checkpoint was not used");
            found[1] = guarded.ask(&asked, args.batch, |group| found_by(&guard, group))?;
            stats = Some(guard.stats());
            guard.close()?; // the statistics of all rounds add up
        }
        ensure!(found[0] == found[1], "{} keys found bare, {} guarded", found[0], found[1]);
    }

    let mut bare_hits = Times::default();
    let mut guarded_hits = Times::default();
    let store = open()?;
    cool()?;
    let guard = Guard::open(store, options)?;
    guard.settle()?;
    // In turn, one by one: both see the same store in the same state.
    for (i, key) in keys.round(args.rounds, args.lookups, 0.0).iter().enumerate() {
        let start = Instant::now();
        let (value, times) = if i % 2 == 0 {
            (guard.backend().get(key)?, &mut bare_hits)
        } else {
            (guard.get(key)?, &mut guarded_hits)
        };
        times.add(start.elapsed());
        ensure!(value.is_some(), "a stored key was not found");
    }
    let stats = stats.context("there was no round")?;
    Ok(Measured { bare, guarded, bare_hits, guarded_hits, built, opened, ready, stats })
}

fn bare_found<B: Backend>(store: &B, group: &[Vec<u8>]) -> Result<u64, B::Error> {
    if let [key] = group {
        return Ok(u64::from(store.get(key)?.is_some()));
    }
    let keys: Vec<&[u8]> = group.iter().map(|key| &key[..]).collect();
    Ok(store.get_many(&keys)?.iter().flatten().count() as u64)
}

fn found_by<B: Backend>(
    guard: &Guard<B>,
    group: &[Vec<u8>],
) -> Result<u64, ironbloom_store::Error<B::Error>> {
    if let [key] = group {
        return Ok(u64::from(guard.get(key)?.is_some()));
    }
    Ok(guard.get_many(group)?.iter().flatten().count() as u64)
}

/// Stores the keys, unless an earlier run has: the first and the last are looked for.
fn fill<B: Backend>(store: &B, keys: &Keys, value_bytes: usize) -> Result<()> {
    let sorted = keys.sorted();
    let text = |mixed: &u64| format!("{mixed:016x}").into_bytes();
    let (first, last) = (text(&sorted[0]), text(&sorted[sorted.len() - 1]));
    let known = store.len_hint()?.is_none_or(|stored| stored == keys.stored);
    if known && store.contains(&first)? && store.contains(&last)? {
        return Ok(());
    }
    output::note(&format!("storing {}", number::plural(keys.stored, "key")));
    let value = vec![b'v'; value_bytes];
    for group in sorted.chunks(PAIRS) {
        let texts: Vec<Vec<u8>> = group.iter().map(text).collect();
        let pairs: Vec<(&[u8], &[u8])> = texts.iter().map(|key| (&key[..], &value[..])).collect();
        store.put_many(&pairs)?;
    }
    Ok(())
}

/// Builds the filter from a scan, if there is no checkpoint yet: how many keys, and how long it took.
fn build<B: Backend>(store: B, options: &Options) -> Result<Option<(u64, Duration)>> {
    let guard = Guard::open(store, options.clone())?;
    guard.settle()?;
    if *guard.opened() == Opened::FromCheckpoint {
        return Ok(None);
    }
    let start = Instant::now();
    guard.rebuild()?;
    let time = start.elapsed();
    let keys = guard.stats().keys;
    guard.close()?;
    Ok(Some((keys, time)))
}

impl Measured {
    fn rows(&self) -> Vec<Record> {
        let row = |name: &str, times: &Times, bare: &Times| -> Record {
            let [p50, p90, p99] = times.percentiles([0.5, 0.9, 0.99]);
            vec![
                ("store", Cell::text(name)),
                ("lookups/s", Cell::count(times.per_second() as u64)),
                ("times bare", Cell::float(times.per_second() / bare.per_second(), 2)),
                ("p50 seconds", show::time(p50)),
                ("p90 seconds", show::time(p90)),
                ("p99 seconds", show::time(p99)),
            ]
        };
        vec![
            row("bare", &self.bare, &self.bare),
            row("guarded", &self.guarded, &self.bare),
            row("bare, hits", &self.bare_hits, &self.bare_hits),
            row("guarded, hits", &self.guarded_hits, &self.bare_hits),
        ]
    }

    fn record(&self) -> Record {
        let [bare] = self.bare_hits.percentiles([0.5]);
        let [guarded] = self.guarded_hits.percentiles([0.5]);
        let overhead = guarded.as_secs_f64() / bare.as_secs_f64() - 1.0;
        let built = match self.built {
            None => Cell::none("from an earlier run"),
            Some((keys, time)) => Cell::count((keys as f64 / time.as_secs_f64()) as u64),
        };
        vec![
            ("median overhead on hits", Cell::of(overhead, format!("{:.1} %", overhead * 100.0))),
            ("keys/s built from a scan", built),
            ("open seconds", show::time(self.opened)),
            ("open and verified seconds", show::time(self.ready)),
        ]
    }

    fn show(&self, json: bool) -> String {
        if json {
            let mut value = report::json_record(&self.record());
            value["rounds"] = report::json_records(&self.rows());
            value["stats"] =
                serde_json::from_str(&show::stats(&self.stats, true)).unwrap_or_default();
            return format!("{value:#}\n");
        }
        format!(
            "{}\n{}\n{}",
            report::text_table(&self.rows()),
            report::text_record(&self.record()),
            show::stats(&self.stats, false)
        )
    }
}
