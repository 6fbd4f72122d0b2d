//! Killed at any moment, a file is the old one or the new one; interrupted, the program cleans up after itself.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::program::{Scratch, lines, random};
use ironbloom_testing::{Running, Signal, Start as _};

/// Feeds `keys` to a run of the program.
fn start(scratch: &Scratch, args: &[&str], keys: &str) -> Running {
    let mut command = scratch.command(args);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.start();
    child.stdin.take().unwrap().write_all(keys.as_bytes()).unwrap();
    child
}

fn interrupt(child: &Running) {
    child.signal(Signal::INT);
}

/// The signals that end the program in order, with its status.
const ENDINGS: [(Signal, i32); 3] = [(Signal::HUP, 129), (Signal::INT, 130), (Signal::TERM, 143)];

/// Kills runs that each put a key into `file`, at moments spread over a run. After each the file must be whole
/// and hold the key of every run that was completed.
fn kill_repeatedly(scratch: &Scratch, file: &str, args: &[&str], rounds: u64) {
    let started = Instant::now();
    assert!(start(scratch, args, "warm up\n").wait().unwrap().success());
    let whole_run = started.elapsed();
    let mut random = random(1);
    let mut completed = String::from("warm up\n");
    let mut killed = 0;
    for round in 0..rounds {
        let key = format!("key of round {round}\n");
        let mut child = start(scratch, args, &key);
        if round % 5 != 0 {
            std::thread::sleep(whole_run.mul_f64((random() % 1000) as f64 / 900.0));
            let _ = child.kill(); // it may have ended already
        }
        if child.wait().unwrap().success() {
            completed += &key;
        } else {
            killed += 1;
        }
        scratch.run(["verify", file]).succeeds();
        assert_eq!(scratch.present(file, &completed), completed, "round {round}");
    }
    assert!(killed > 0, "not one of {rounds} runs was killed in time");
    assert!(completed.lines().count() as u64 > rounds / 5);
}

#[test]
fn killed_during_add_the_file_is_whole_and_has_the_keys_of_the_last_completed_one() {
    let scratch = Scratch::new();
    scratch.build("big.ibf", ["--capacity", "2M", "--rate", "0.1%"], &lines(0..1000));
    assert!(scratch.read("big.ibf").len() > 3_000_000);
    kill_repeatedly(&scratch, "big.ibf", &["add", "big.ibf"], 60);
    assert_eq!(scratch.present("big.ibf", &lines(0..1000)), lines(0..1000));
}

#[test]
fn killed_during_dedup_the_state_is_whole() {
    let scratch = Scratch::new();
    kill_repeatedly(&scratch, "seen.ibf", &["dedup", "--state", "seen.ibf"], 30);
}

#[test]
fn ended_by_a_signal_while_reading_the_status_says_so_and_no_file_is_left() {
    let scratch = Scratch::new();
    scratch.build("old.ibf", ["--capacity", "1M"], "a\n");
    let before = scratch.contents();
    let commands =
        [&["build", "-o", "new.ibf"][..], &["add", "old.ibf"], &["build", "-o", "old.ibf"]];
    for (args, (signal, status)) in
        commands.into_iter().flat_map(|args| ENDINGS.map(|end| (args, end)))
    {
        let mut command = scratch.command(args);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).start();
        let mut input = child.stdin.take().unwrap();
        // More than a pipe holds: when all is written the program has begun to read.
        input.write_all(lines(0..200_000).as_bytes()).unwrap();
        child.signal(signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
        drop(input);
        assert!(before == scratch.contents(), "{args:?}");
    }
}

/// As under `nohup`, and in the background of a script.
#[test]
fn a_signal_that_is_ignored_from_the_start_stays_ignored() {
    let scratch = Scratch::new();
    for (name, (signal, _)) in ["HUP", "INT", "TERM"].into_iter().zip(ENDINGS) {
        let program = env!("CARGO_BIN_EXE_ironbloom");
        let mut command = std::process::Command::new("env");
        command.arg(format!("--ignore-signal={name}")).args([program, "dedup"]);
        let mut child =
            command.current_dir(&scratch).stdin(Stdio::piped()).stdout(Stdio::piped()).start();
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        for key in ["first\n", "second\n"] {
            input.write_all(key.as_bytes()).unwrap();
            output.read_line(&mut line).unwrap();
            child.signal(signal);
        }
        drop(input);
        assert_eq!(child.wait().unwrap().code(), Some(0), "{name}");
        assert_eq!(line, "first\nsecond\n", "{name}");
    }
}

#[test]
fn interrupted_dedup_has_printed_what_it_had_and_saved_nothing() {
    let scratch = Scratch::new();
    let mut command = scratch.command(["dedup", "--state", "seen.ibf"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).start();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"first\n").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(line, "first\n");
    assert!(scratch.files().is_empty());
}

#[test]
fn a_filter_written_to_a_pipe_that_nobody_reads_can_be_interrupted() {
    let scratch = Scratch::new();
    scratch.shell("mkfifo pipe").succeeds();
    let mut child = start(&scratch, &["build", "-o", "pipe"], &lines(0..200_000));
    std::thread::sleep(Duration::from_millis(100));
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(scratch.files(), ["pipe"]);
}

#[test]
fn interrupted_at_any_moment_no_temporary_file_is_left() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.path("store")).unwrap();
    scratch.build("store/big.ibf", ["--capacity", "2M", "--rate", "0.1%"], "a\n");
    std::os::unix::fs::symlink("store/big.ibf", scratch.path("link.ibf")).unwrap();
    let mut random = random(2);
    for round in 0..90 {
        let mut child = start(&scratch, &["add", "link.ibf"], "key\n");
        std::thread::sleep(Duration::from_micros(2000 + random() % 16_000));
        let (signal, ended) = ENDINGS[round % ENDINGS.len()];
        child.signal(signal);
        let status = child.wait().unwrap();
        // 0: it was done before; no code: the signal came before the program began to run.
        let expected = status.code().is_none_or(|code| code == 0 || code == ended);
        assert!(expected, "round {round}: {status}");
        let left: Vec<_> = std::fs::read_dir(scratch.path("store")).unwrap().collect();
        assert_eq!(left.len(), 1, "round {round}: {left:?}");
        scratch.run(["verify", "link.ibf"]).succeeds();
    }
}

/// A filter is read whole before the first answer: what others do to its file afterwards changes nothing.
#[test]
fn check_answers_right_while_its_filter_is_overwritten_and_truncated() {
    let scratch = Scratch::new();
    scratch.build("big.ibf", ["--kind", "blocked", "--rate", "0.0001%"], &lines(0..200_000));
    let whole = scratch.read("big.ibf").len();
    for destroyed in [vec![], vec![0; whole]] {
        scratch.build("big.ibf", ["--kind", "blocked", "--rate", "0.0001%"], &lines(0..200_000));
        let mut command = scratch.command(["check", "big.ibf"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).start();
        let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let reader = std::thread::spawn(move || {
            BufReader::new(output).lines().map(Result::unwrap).collect::<Vec<String>>()
        });
        // More than a pipe holds: when all is written the program has begun to read, so it has its filter.
        input.write_all(lines(0..100_000).as_bytes()).unwrap();
        std::fs::write(scratch.path("big.ibf"), destroyed).unwrap();
        input.write_all(lines(100_000..200_000).as_bytes()).unwrap();
        drop(input);
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{status}");
        let answers: String =
            reader.join().unwrap().iter().map(|line| format!("{line}\n")).collect();
        assert!(answers == lines(0..200_000), "{} of 200,000 keys", answers.lines().count());
    }
}
