//! Promise: killed at any instant, a guard never answers "absent" for a stored key, and every acknowledged put is there.
//!
//! A child process opens the store that the one before it left, puts, removes, writes checkpoints and rebuilds, and says
//! what it does on its standard output. It is killed (SIGKILL) in the middle of it. Then the store is opened here, and must
//! answer all that was acknowledged.

#![cfg(all(unix, feature = "redb"))]

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::common::{EXACT, assert_covers, key};
use ironbloom_store::{Backend, Guard, GuardKind, Opened, Options, Rebuild, Redb};
use ironbloom_testing::{Random, Running, Scratch, Start as _};

/// Kills in all; `IRONBLOOM_KILLS` asks for others.
const KILLS: u64 = 3000;
/// Threads, each with stores of its own.
const THREADS: u64 = 4;
/// Children that follow each other on one store.
const LIVES: u64 = 25;
const KEYS: u64 = 400;

const DIRECTORY: &str = "IRONBLOOM_CRASH_DIRECTORY";
const SEED: &str = "IRONBLOOM_CRASH_SEED";
const KIND: &str = "IRONBLOOM_CRASH_KIND";

fn open(directory: &Path, kind: GuardKind, rebuild: Rebuild) -> Guard<Redb> {
    // Small enough to be over capacity now and then.
    let options = Options::new(kind, 150, 0.05)
        .checkpoint(directory.join("g.ibg"))
        .rebuild(rebuild)
        .max_dead(0.02);
    Guard::open(Redb::create(directory.join("s.redb")).unwrap(), options).unwrap()
}

/// Does nothing unless it is started by the test below.
#[test]
fn child() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let seed = std::env::var(SEED).unwrap().parse().unwrap();
    let kind: GuardKind = std::env::var(KIND).unwrap().parse().unwrap();
    act(|rebuild| open(Path::new(&directory), kind, rebuild), seed);
}

/// The life of a child: it says what it does, and what was acknowledged.
pub(crate) fn act<B: Backend>(open: impl Fn(Rebuild) -> Guard<B>, seed: u64) {
    let mut random = Random(seed);
    let mut guard = open(Rebuild::Background);
    let mut out = std::io::stdout();
    // One write call a line: what was said before the kill is in the pipe.
    let mut say = |line: String| out.write_all(format!("\n!{line}\n").as_bytes()).unwrap();
    say("open".to_owned());
    for _ in 0..1000 {
        let i = random.below(KEYS);
        match random.below(20) {
            0..7 => {
                guard.put(key(i), b"value").unwrap();
                say(format!("put {i}"));
            }
            7..9 => {
                let pairs: Vec<_> = (i..i + 10).map(|i| (key(i), b"value")).collect();
                guard.put_many(&pairs).unwrap();
                (i..i + 10).for_each(|i| say(format!("put {i}")));
            }
            9..14 => {
                say(format!("remove {i}"));
                guard.remove(key(i)).unwrap();
            }
            14..17 => {
                guard.checkpoint().unwrap();
                say("checkpoint".to_owned());
                std::thread::sleep(Duration::from_millis(random.below(3)));
            }
            17 => guard.rebuild().unwrap(),
            18 => {
                drop(guard);
                guard = open(Rebuild::Background);
            }
            _ => {
                guard.close().unwrap();
                guard = open(Rebuild::Manual);
                assert_covers(&guard, "in the child");
            }
        }
    }
}

/// A child of this test, which finds out from these variables what to do.
pub(crate) fn start(test: &str, variables: &[(&str, &str)]) -> Running {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .envs(variables.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .start()
}

/// One child's life. What it acknowledged goes into `stored`; what it may have removed goes out.
pub(crate) fn live_and_die(mut child: Running, stored: &mut HashSet<u64>, random: &mut Random) {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // Some die while they open, the others after some lines and some microseconds more.
    let wanted = if random.below(10) == 0 { 0 } else { random.below(60) };
    let mut learn = |line: &str| {
        let number = |text: &str| text.parse::<u64>().unwrap();
        if let Some(i) = line.strip_prefix("!put ") {
            stored.insert(number(i));
        } else if let Some(i) = line.strip_prefix("!remove ") {
            stored.remove(&number(i));
        }
    };
    let mut seen = 0;
    while seen < wanted {
        let line = lines.next().expect("the child has ended by itself").unwrap();
        seen += u64::from(line.starts_with('!'));
        learn(&line);
    }
    let delay = if wanted == 0 { 20_000 } else { 3000 };
    std::thread::sleep(Duration::from_micros(random.below(delay)));
    child.kill().unwrap();
    child.wait().unwrap();
    // What it said before it died. The last line may be cut off, as nothing but the kill ends it.
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    for line in &rest {
        assert!(!line.contains("panicked"), "the child has failed: {line}");
        learn(line);
    }
}

/// Follows some children on one store. How often a checkpoint was used, and how often not.
fn lives(kind: GuardKind, seed: u64, kills: u64) -> [u64; 2] {
    let scratch = Scratch::new(&format!("crash-{kind}-{seed}"));
    let directory = scratch.path();
    let mut random = Random(seed);
    let mut stored = HashSet::new();
    let mut opened = [0; 2];
    for life in 0..kills {
        let its_seed = (seed * 1000 + life).to_string();
        let variables =
            [(DIRECTORY, directory.to_str().unwrap()), (SEED, &its_seed), (KIND, kind.name())];
        live_and_die(start("crash::child", &variables), &mut stored, &mut random);
        let context = format!("{kind}, seed {seed}, life {life}");
        let guard = open(directory, kind, Rebuild::Background);
        opened[usize::from(*guard.opened() != Opened::FromCheckpoint)] += 1;
        for &i in &stored {
            assert!(guard.get(key(i)).unwrap().is_some(), "{context}: {i} was acknowledged");
        }
        assert_covers(&guard, &context);
        guard.settle().unwrap();
        assert_covers(&guard, &context);
        match random.below(3) {
            0 => guard.close().unwrap(),
            _ => drop(guard),
        }
    }
    let left = |name: &&String| name.ends_with(".tmp") && !name.contains("redb");
    let leftovers = scratch.names().iter().filter(left).count();
    assert!(leftovers <= 3, "what the dead have left is not swept: {:?}", scratch.names());
    opened
}

#[test]
fn killed_at_any_instant_no_stored_key_is_answered_absent() {
    let kills = std::env::var("IRONBLOOM_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let next = AtomicU64::new(0);
    let opened = std::thread::scope(|scope| {
        let thread = || {
            let mut opened = [0; 2];
            loop {
                let story = next.fetch_add(1, Ordering::Relaxed);
                if story * LIVES >= kills {
                    return opened;
                }
                let kind = EXACT[story as usize % EXACT.len()];
                let [used, built] = lives(kind, story, LIVES.min(kills - story * LIVES));
                opened = [opened[0] + used, opened[1] + built];
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(thread)).collect();
        let ended: Vec<[u64; 2]> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        ended.into_iter().fold([0; 2], |sum, one| [sum[0] + one[0], sum[1] + one[1]])
    });
    let [used, built] = opened;
    println!("{kills} kills: {used} opened from a checkpoint, {built} built again");
    assert_eq!(used + built, kills);
    // Otherwise one of the two ways was hardly tried.
    assert!(
        used >= kills / 50 && built >= kills / 50,
        "{used} from checkpoints, {built} built again"
    );
}
