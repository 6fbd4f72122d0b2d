//! Whatever rewrites a file in place waits for others that do, and loses nothing that was acknowledged.

use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use ironbloom_testing::Start as _;

use crate::program::{Scratch, lines};

const WRITERS: u64 = 8;
const KEYS: u64 = 200;

/// Runs eight programs at once, each with its own keys, and kills some of them; returns which ended with success.
fn at_once(scratch: &Scratch, args: [&str; 3], kill: impl Fn(u64) -> bool) -> Vec<u64> {
    let children = (0..WRITERS).map(|writer| {
        let mut command = scratch.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.start();
        let mut stdin = child.stdin.take().unwrap();
        let keys = lines(writer * KEYS..(writer + 1) * KEYS);
        // A victim still waits for its last keys when it is killed.
        let _ = stdin.write_all(keys.as_bytes());
        (writer, child, kill(writer).then_some(stdin))
    });
    let mut children: Vec<_> = children.collect();
    // All victims first: one that holds the lock and waits for keys would keep the others waiting.
    for (_, child, _) in children.iter_mut().filter(|(_, _, victim)| victim.is_some()) {
        let _ = child.kill();
    }
    let mut done = Vec::new();
    for (writer, mut child, victim) in children {
        drop(victim);
        if child.wait().unwrap().success() {
            done.push(writer);
        }
    }
    done
}

fn kept(scratch: &Scratch, name: &str, writers: &[u64]) {
    for &writer in writers {
        let keys = lines(writer * KEYS..(writer + 1) * KEYS);
        assert_eq!(scratch.present(name, &keys), keys, "keys of writer {writer}");
    }
}

#[test]
fn eight_writers_add_to_one_filter_and_no_acknowledged_key_is_lost() {
    let scratch = Scratch::new();
    for kind in ["bloom", "cuckoo"] {
        scratch.build(
            "f.ibf",
            ["--kind", kind, "--capacity", "10000", "--rate", "1e-6"],
            "start\n",
        );
        let done = at_once(&scratch, ["add", "f.ibf", "-"], |_| false);
        assert_eq!(done.len() as u64, WRITERS);
        kept(&scratch, "f.ibf", &done);
        assert_eq!(scratch.files(), ["f.ibf"], "no lock is left");
    }
}

#[test]
fn writers_that_are_killed_harm_nobody() {
    let scratch = Scratch::new();
    scratch.build("f.ibf", ["--capacity", "10000", "--rate", "1e-6"], "start\n");
    let done = at_once(&scratch, ["add", "f.ibf", "-"], |writer| writer % 2 == 0);
    assert_eq!(done.len() as u64, WRITERS / 2);
    kept(&scratch, "f.ibf", &done);
    scratch.run_with(["add", "f.ibf"], "after\n").succeeds();
    assert_eq!(scratch.present("f.ibf", "start\nafter\n"), "start\nafter\n");
    assert_eq!(scratch.files(), ["f.ibf"], "nothing of the killed ones is left");
}

#[test]
fn runs_of_dedup_with_one_state_print_each_key_once() {
    let scratch = Scratch::new();
    let runs: Vec<_> = (0..WRITERS)
        .map(|_| {
            let mut command = scratch.command(["dedup", "--state", "seen.ibf"]);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut child = command.start();
            child.stdin.take().unwrap().write_all(lines(0..KEYS).as_bytes()).unwrap();
            child
        })
        .collect();
    let printed: Vec<Vec<u8>> =
        runs.into_iter().map(|child| child.wait_with_output().unwrap().stdout).collect();
    let all: String = printed.iter().map(|run| String::from_utf8_lossy(run)).collect();
    assert_eq!(all.lines().count() as u64, KEYS, "each key is new to one run");
}

#[test]
fn removals_and_merges_in_place_wait_too() {
    let scratch = Scratch::new();
    let all = lines(0..WRITERS * KEYS);
    scratch.build("f.ibf", ["--kind", "cuckoo", "--capacity", "10000", "--rate", "1e-6"], &all);
    let done = at_once(&scratch, ["remove", "f.ibf", "-"], |_| false);
    assert_eq!(done.len() as u64, WRITERS);
    assert_eq!(scratch.present("f.ibf", &all), "", "each run has removed its keys");
    assert_eq!(scratch.files(), ["f.ibf"]);
}

/// Adds and merges into the same file, half of them killed, at any moment of their work.
#[test]
fn adds_and_merges_at_once_lose_no_acknowledged_key_whoever_is_killed() {
    let scratch = Scratch::new();
    let plan = ["--capacity", "10000", "--rate", "1e-6"];
    let name = |writer: u64| format!("part{writer}.ibf");
    let keys = |writer: u64| lines(writer * KEYS..(writer + 1) * KEYS);
    for writer in 0..WRITERS {
        scratch.build(&name(writer), plan, &keys(writer));
        scratch.write(&format!("keys{writer}"), keys(writer));
    }
    for round in 0..6u64 {
        scratch.build("f.ibf", plan, "start\n");
        let start = |writer: u64| {
            let (part, file) = (name(writer), format!("keys{writer}"));
            let mut command = match writer % 2 {
                0 => scratch.command(["merge", "-o", "f.ibf", "f.ibf", &part]),
                _ => scratch.command(["add", "f.ibf", &file]),
            };
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
            command.start()
        };
        let mut children: Vec<_> = (0..WRITERS).map(start).collect();
        // A little later in each round: before the lock, with it, while writing, when all is done.
        std::thread::sleep(Duration::from_millis(3 * round));
        for child in children.iter_mut().skip(round as usize % 2).step_by(2) {
            let _ = child.kill();
        }
        let mut done = Vec::new();
        for (writer, child) in (0..).zip(children) {
            let output = child.wait_with_output().unwrap();
            match output.status.code() {
                Some(0) => done.push(writer),
                Some(code) => panic!("{code}: {}", String::from_utf8_lossy(&output.stderr)),
                None => {}
            }
        }
        assert!(done.len() as u64 >= WRITERS / 2, "{done:?}");
        kept(&scratch, "f.ibf", &done);
        scratch.run_with(["add", "f.ibf"], "after\n").succeeds();
        assert_eq!(scratch.present("f.ibf", "start\nafter\n"), "start\nafter\n");
        let files = scratch.files();
        assert_eq!(files.len() as u64, 2 * WRITERS + 1, "something is left: {files:?}");
    }
}
