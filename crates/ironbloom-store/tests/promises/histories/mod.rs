//! Promise: whatever happens in whatever order, each answer of a guard was true at some moment between question and answer.
//!
//! Random histories of a guard over a store that pauses, fails, loses answers, carries out writes late, is put back to
//! an older state and is written to by others, while futures are dropped, guards crash and are opened again beside older, damaged or
//! missing files. The store keeps what each key was at each moment, which is what answers are compared with; what may be
//! missed, and for how long, is what `docs/store.md` says.
//!
//! ```text
//! IRONBLOOM_HISTORIES=3600 cargo test -p ironbloom-store --test promises histories:: -- --nocapture     for an hour
//! IRONBLOOM_HISTORY=17 cargo test -p ironbloom-store --test promises histories:: -- --nocapture         one that failed
//! ```

mod handle;
mod ledger;
mod world;

use std::time::{Duration, Instant};

use ironbloom_store::GuardKind;

use self::ledger::Mode;
use self::world::{Counts, World};

/// Number of histories without a limit of time, and steps of each.
const HISTORIES: u64 = 3000;
const STEPS: u64 = 1500;

/// The history of a number.
fn history(seed: u64, counts: &mut Counts) {
    let mode = Mode::ALL[(seed % 5) as usize];
    let kind = GuardKind::ALL[(seed / 5 % 5) as usize];
    World::new(mode, kind, seed, counts).run(STEPS);
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
fn each_answer_was_true_between_question_and_answer() {
    // Followers wait in the runtime's time.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .unwrap_or_else(|error| panic!("{error}"));
    let _inside = runtime.enter();
    let mut counts = Counts::default();
    if let Some(seed) = number("IRONBLOOM_HISTORY") {
        return history(seed, &mut counts);
    }
    let end =
        number("IRONBLOOM_HISTORIES").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut seed = number("IRONBLOOM_SEED").unwrap_or(0);
    while end.map_or(counts.histories < HISTORIES, |end| Instant::now() < end) {
        history(seed, &mut counts);
        seed += 1;
    }
    println!("{counts:?}");
    assert!(counts.from_checkpoint > counts.histories / 10, "checkpoints were hardly tried");
    assert!(counts.reverts > counts.histories / 10 && counts.landed > counts.histories / 10);
    assert!(counts.remembered > 0 && counts.refused > 0);
}
