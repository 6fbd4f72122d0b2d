//! Whatever rewrites a file in place waits for others that do, and loses nothing that was acknowledged.

use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use ironbloom_testing::{Running, Start as _};

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

/// Starts to add a key to a filter, and returns when that has its lock: standard input is still open.
fn begin_to_add(scratch: &Scratch, name: &str) -> (Running, std::process::ChildStdin) {
    let mut command = scratch.command(["add", name, "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.start();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"added\n").unwrap();
    ironbloom_testing::wait_until(|| scratch.exists(&format!(".{name}.lock")));
    (child, stdin)
}

/// Whatever replaces a file that another program has read and will write comes after it: what it has said is written stays.
#[test]
fn builds_merges_and_conversions_wait_for_who_changes_their_file() {
    let scratch = Scratch::new();
    let plan = ["--capacity", "1000", "--rate", "1e-6"];
    scratch.build("a.ibf", plan, "new\n");
    scratch.build("b.ibf", plan, "newer\n");
    scratch.write("keys", "new\n");
    let replace: [&[&str]; 4] = [
        &["build", "-o", "f.ibf", "--capacity", "1000", "keys"],
        &["merge", "-o", "f.ibf", "a.ibf", "b.ibf"],
        &["convert", "a.ibf", "-o", "f.ibf"],
        &["add", "a.ibf", "keys", "-o", "f.ibf"],
    ];
    for args in replace {
        scratch.build("f.ibf", plan, "old\n");
        let (mut adding, stdin) = begin_to_add(&scratch, "f.ibf");
        let mut command = scratch.command(args);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let replacing = command.start();
        // Long enough to say that it waits.
        std::thread::sleep(Duration::from_millis(1500));
        assert_eq!(scratch.present("f.ibf", "new\n"), "", "{args:?} did not wait");
        drop(stdin);
        assert!(adding.wait().unwrap().success());
        let replaced = replacing.wait_with_output().unwrap();
        assert!(replaced.status.success(), "{args:?}");
        assert_eq!(scratch.present("f.ibf", "new\nadded\n"), "new\n", "{args:?} came last");
        assert!(!scratch.exists(".f.ibf.lock"));
    }
}

/// The name of one file begins that of another, and both are written all the time.
#[test]
fn writers_of_files_with_similar_names_do_not_meet() {
    let scratch = Scratch::new();
    for name in ["seen", "seen.1", "seen.1.1"] {
        scratch.build(name, ["--capacity", "100000"], "start\n");
    }
    let line = |name: &str, count: usize| {
        let add = format!("echo $i | ironbloom add {name} 2>>said || echo {name} >>failed");
        format!("for i in $(seq {count}); do {add}; done")
    };
    let build = "echo $i | ironbloom build -o seen --capacity 1M 2>>said || echo build >>failed";
    let builds = format!("for i in $(seq 10); do {build}; done");
    let loops = [line("seen", 20), line("seen.1", 20), line("seen.1.1", 20), builds];
    scratch.shell(&format!("({}) & wait", loops.join(") & ("))).succeeds();
    assert!(!scratch.exists("failed"), "{}", String::from_utf8_lossy(&scratch.read("said")));
    for name in ["seen.1", "seen.1.1"] {
        let keys = lines(1..21);
        assert_eq!(scratch.present(name, &keys), keys);
    }
}

/// Others may write in the folder.
#[cfg(unix)]
#[test]
fn a_link_or_a_pipe_in_the_place_of_a_lock_is_refused_and_not_followed() {
    let scratch = Scratch::new();
    scratch.build("f.ibf", ["--capacity", "1000"], "start\n");
    let before = scratch.read("f.ibf");
    for make in ["mkfifo .f.ibf.lock", "ln -s elsewhere .f.ibf.lock", "mkdir .f.ibf.lock"] {
        scratch.shell(make).succeeds();
        for args in [["add", "f.ibf"], ["build", "-of.ibf"]] {
            let run = scratch.run_with(args, "key\n").ends_with(2);
            assert!(run.stderr.contains(".f.ibf.lock: is not a file"), "{make}: {}", run.stderr);
        }
        scratch.shell("rm -r .f.ibf.lock").succeeds();
    }
    assert!(!scratch.exists("elsewhere") && scratch.read("f.ibf") == before);
}
