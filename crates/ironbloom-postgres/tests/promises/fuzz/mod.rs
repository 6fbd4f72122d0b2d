//! The differential fuzzer: random tables, histories and questions; every answer is that of a scan of the whole table.
//!
//! `IRONBLOOM_FUZZ=SEED,SECONDS` goes on for that long; without it, a short run with a fixed seed. `make fuzz-postgres` does that
//! and ends servers by force, too (`crashes.rs`). A round depends on SEED plus its number only: `IRONBLOOM_FUZZ=THAT,0` repeats it.

mod beside;
mod history;
mod kinds;
mod schema;

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ironbloom_testing::Random;

use self::kinds::{KINDS, Kind, SETUP, SETUP_ICU};
use self::schema::Schema;
use crate::common::Server;

/// Errors that a session may meet when it is interrupted, or when others write at the same time.
const EXPECTED: [&str; 12] = [
    "canceling statement due to statement timeout",
    "could not serialize access",
    "current transaction is aborted",
    "there is no transaction in progress",
    // Definitions that the server refuses.
    "cannot alter type of a column",
    "cannot be cast automatically",
    "because it is part of the partition key",
    "is not a partition of",
    "because it has pending trigger events",
    // What definitions of types lead to.
    "was changed after the index was built",
    "unsafe use of new value",
    "violates check constraint",
];

/// Seed and seconds.
pub(crate) fn bounds() -> (u64, Duration) {
    let given = std::env::var("IRONBLOOM_FUZZ").unwrap_or_else(|_| "2026,0".into());
    let parts: Option<(u64, u64)> = given
        .split_once(',')
        .and_then(|(seed, seconds)| Some((seed.parse().ok()?, seconds.parse().ok()?)));
    let (seed, seconds) = parts.expect("IRONBLOOM_FUZZ=SEED,SECONDS");
    (seed, Duration::from_secs(seconds))
}

/// What a session has printed.
#[derive(Default)]
struct Printed {
    wrong: Vec<String>,
    scans: usize,
}

/// Reads what a session has printed; errors that are not expected are wrong, too.
fn read(done: &std::process::Output, expected: &[&str]) -> Printed {
    let (out, errors) =
        (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    let mut printed = Printed::default();
    for line in out.lines() {
        if line.starts_with("wrong: ") {
            printed.wrong.push(line.to_owned());
        } else if let Some(scans) = line.strip_prefix("scans ") {
            printed.scans += scans.parse::<usize>().unwrap_or(0);
        }
    }
    let lines: Vec<&str> = errors.lines().collect();
    let is_error = |line: &str| line.contains("ERROR:") || line.contains("FATAL:");
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| is_error(line)) {
        if !expected.iter().any(|known| line.contains(known)) {
            // With what the server says about where it happened.
            let context = lines[at + 1..].iter().take_while(|line| !is_error(line)).take(6);
            let context: Vec<&str> = context.copied().collect();
            printed.wrong.push(format!("{line} {}", context.join(" ")));
        }
    }
    printed
}

/// A server with what the fuzzer needs, and the types that an index on it can have.
fn prepare(name: &str) -> (Server, Vec<&'static Kind>) {
    let server = Server::start(name);
    server.sql(SETUP);
    // Beside the data: older servers have no places of this kind.
    let place = server.folder.join("place");
    std::fs::create_dir(&place).unwrap();
    server.own();
    server.sql(&format!(
        "create tablespace place location '{}'; create schema elsewhere;",
        place.display()
    ));
    server.sql(&history::functions());
    let icu = match server.try_sql(SETUP_ICU) {
        Ok(_) => true,
        Err(error) if error.contains("ICU is not supported") => {
            eprintln!("SKIPPED: this server has no collations of ICU");
            false
        }
        Err(error) => panic!("{error}"),
    };
    let version: u32 = server.sql("show server_version_num;").parse().unwrap();
    let known = KINDS.iter().filter(|kind| version >= kind.since && (icu || !kind.icu));
    let kinds: Vec<&Kind> = known.filter(|kind| is_indexed(&server, kind)).collect();
    (server, kinds)
}

/// Whether an index can have the type. Only those of folding collations may be refused, with a hint.
fn is_indexed(server: &Server, kind: &Kind) -> bool {
    let probe = "begin; SETUP create table TAB (c KIND); create index on TAB using ironbloom (c); rollback;";
    let probe = probe.replace("SETUP", kind.setup).replace("KIND", kind.name);
    let made = server.try_sql(&probe.replace("TAB", "probe"));
    let Err(error) = made else { return true };
    assert!(kind.icu && error.contains("HINT:"), "{}: {error}", kind.name);
    eprintln!("no index on {}: {error}", kind.name);
    false
}

/// Of all rounds.
#[derive(Default)]
struct Totals {
    rounds: u64,
    questions: usize,
    scans: usize,
    wrong: usize,
    /// Some of what is wrong, of each round.
    examples: Vec<String>,
}

impl fmt::Display for Totals {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, questions, scans, wrong, examples } = self;
        write!(
            to,
            "{rounds} rounds, {questions} questions, {scans} scans of indexes, {wrong} wrong"
        )?;
        if let Some(example) = examples.last() {
            write!(to, ": {example}")?;
        }
        Ok(())
    }
}

/// One table's life.
fn round(server: &Server, kinds: &[&Kind], seed: u64, number: u64) -> Totals {
    const EXAMPLES: usize = 3;
    let mut random = Random(seed);
    let schema = Schema::new(format!("t{number}"), kinds, &mut random);
    let script = history::life(&schema, &mut random);
    let printed = read(&server.session(&script.sql).wait_with_output().unwrap(), &EXPECTED);
    let examples = printed.wrong.iter().take(EXAMPLES);
    Totals {
        rounds: 1,
        questions: script.questions,
        scans: printed.scans,
        wrong: printed.wrong.len(),
        examples: examples.map(|line| format!("IRONBLOOM_FUZZ={seed},0: {line}")).collect(),
    }
}

#[test]
fn every_answer_is_that_of_a_scan_of_the_table() {
    const WORKERS: usize = 2;
    const LEAST_ROUNDS: u64 = 12;
    let (seed, time) = bounds();
    let (server, kinds) = prepare("fuzz");
    let begun = Instant::now();
    let next = AtomicU64::new(0);
    let totals = Mutex::new(Totals::default());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= LEAST_ROUNDS && begun.elapsed() >= time {
                break;
            }
            let one = round(&server, &kinds, seed.wrapping_add(number), number);
            let mut totals = totals.lock().unwrap();
            totals.rounds += one.rounds;
            totals.questions += one.questions;
            totals.scans += one.scans;
            totals.wrong += one.wrong;
            totals.examples.extend(one.examples);
            // After each round: whoever stops it keeps what it has found.
            println!("{totals}");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(work);
        }
    });
    let Totals { questions, scans, wrong, examples, .. } = totals.into_inner().unwrap();
    assert!(wrong == 0, "{wrong} of {questions} wrong:\n{examples:#?}");
    // Otherwise this would compare scans of tables with each other.
    assert!(scans > questions / 2, "{scans} scans of indexes for {questions} questions");
}
