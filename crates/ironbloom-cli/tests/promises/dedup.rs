//! `dedup`: first occurrences, in order, and what is remembered between runs.

use std::collections::HashSet;

use crate::program::{Scratch, lines, random};
use serde_json::json;

#[test]
fn first_occurrences_are_printed_in_input_order() {
    let scratch = Scratch::new();
    let run = scratch.run_with(["dedup"], "b\na\nb\nc\na\n\n\nb").succeeds();
    assert_eq!(run.text(), "b\na\nc\n\n");
    assert_eq!(run.stderr, "");
}

#[test]
fn it_agrees_with_a_hash_set_on_200_000_lines() {
    let scratch = Scratch::new();
    let mut random = random(5);
    let text: String = (0..200_000).map(|_| format!("key {}\n", random() % 100_000)).collect();
    let mut seen = HashSet::new();
    let expected: String =
        text.lines().filter(|&line| seen.insert(line)).map(|line| format!("{line}\n")).collect();
    scratch.write("log.txt", &text);
    // At one in a million, and a first stage that is a tenth full, no line is lost.
    assert!(scratch.run(["dedup", "log.txt"]).succeeds().text() == expected);
    assert!(scratch.run_with(["dedup"], &text).succeeds().text() == expected);
    let count = scratch.run(["dedup", "--count", "log.txt"]).succeeds();
    assert_eq!(count.text(), format!("{}\n", seen.len()));
}

#[test]
fn inputs_are_one_stream() {
    let scratch = Scratch::new();
    scratch.write("mon.txt", "a\nb");
    scratch.write("tue.txt", "b\nc\n");
    let run = scratch.run_with(["dedup", "mon.txt", "-", "tue.txt"], "a\nz\n").succeeds();
    assert_eq!(run.text(), "a\nb\nz\nc\n");
}

#[test]
fn count_is_the_number_of_distinct_keys() {
    let scratch = Scratch::new();
    assert_eq!(scratch.run_with(["dedup", "--count"], "a\nb\na\n").succeeds().text(), "2\n");
    assert_eq!(scratch.run_with(["dedup", "--count"], "").succeeds().text(), "0\n");
    let run = scratch.run_with(["dedup", "--count", "--json"], "a\nb\na\n").succeeds();
    assert_eq!(run.json(), json!({"keys_read": 3, "distinct_keys": 2}));
    let run = scratch.run_with(["dedup", "--json"], "a\n").succeeds();
    assert_eq!(run.json(), json!({"keys_read": 1, "distinct_keys": 1}));
}

#[test]
fn with_0_keys_end_with_nul() {
    let scratch = Scratch::new();
    let run = scratch.run_with(["dedup", "-0"], "a\nb\0c\0a\nb\0c").succeeds();
    assert_eq!(run.text(), "a\nb\0c\0");
}

#[test]
fn keys_flow_while_the_input_is_still_open() {
    let scratch = Scratch::new();
    // The reader ends the pipe when it has seen the key; a program that waited for more would wait for ever.
    let run = scratch.shell(
        "mkfifo keys; ironbloom dedup keys > out & exec 3> keys; echo first >&3
         until grep -q first out; do sleep 0.01; done; exec 3>&-; wait; cat out",
    );
    assert_eq!(run.succeeds().text(), "first\n");
}

#[test]
fn a_higher_rate_drops_some_new_keys_and_never_repeats_one() {
    let scratch = Scratch::new();
    let keys = lines(0..500_000);
    let run = scratch.run_with(["dedup", "--rate", "0.5"], [&keys[..], &keys].concat()).succeeds();
    let text = run.text();
    let printed: HashSet<&str> = text.lines().collect();
    assert_eq!(printed.len(), text.lines().count());
    assert!((450_000..500_000).contains(&printed.len()), "{}", printed.len());
}

// ------------------------------------------------------------------------------------------------- state

#[test]
fn a_state_continues_where_the_last_run_ended() {
    let scratch = Scratch::new();
    let first = scratch.run_with(["dedup", "--state", "seen.ibf"], "a\nb\na\n").succeeds();
    assert_eq!(first.text(), "a\nb\n");
    let second = scratch.run_with(["dedup", "--state", "seen.ibf"], "c\nb\nc\n").succeeds();
    assert_eq!(second.text(), "c\n");
    let third = scratch.run_with(["dedup", "--state", "seen.ibf", "--count"], "a\nb\nc\nd\n");
    assert_eq!(third.succeeds().text(), "1\n");
    assert_eq!(scratch.files(), ["seen.ibf"]);
    assert_eq!(scratch.info("seen.ibf")["keys"], 4);
    assert_eq!(scratch.present("seen.ibf", "a\nx\nd\n"), "a\nd\n");
}

#[test]
fn a_state_is_as_large_as_its_keys_need() {
    let scratch = Scratch::new();
    let size = |keys: String| {
        let _ = std::fs::remove_file(scratch.path("seen.ibf"));
        scratch.run_with(["dedup", "-c", "--state", "seen.ibf"], &keys).succeeds();
        assert_eq!(scratch.run_with(["dedup", "--state", "seen.ibf"], &keys).succeeds().text(), "");
        scratch.read("seen.ibf").len()
    };
    assert!(size(lines(0..3)) < 16 << 10);
    for keys in [5_000, 100_000] {
        // Four times the room that the keys need at most, of some ten bytes each.
        let size = size(lines(0..keys)) as u64;
        assert!(size < keys * 4 * 12, "{size} bytes for {keys} keys");
    }
    // A state that was small grows with what comes later.
    scratch.run_with(["dedup", "-c", "--state", "grown.ibf"], lines(0..3)).succeeds();
    let more = scratch.run_with(["dedup", "--state", "grown.ibf"], lines(0..300_000)).succeeds();
    assert!(more.text().lines().count() >= 300_000 - 3 - 5);
    let again = scratch.run_with(["dedup", "--state", "grown.ibf"], lines(0..300_000)).succeeds();
    assert_eq!(again.text(), "");
}

#[test]
fn a_windowed_state_keeps_its_window() {
    let scratch = Scratch::new();
    let args = ["dedup", "--state", "seen.ibf", "--window", "1000"];
    scratch.run_with(args, "a\nb\n").succeeds();
    assert_eq!(scratch.run_with(args, "b\nc\n").succeeds().text(), "c\n");
    // The options of the state need not be repeated.
    let run = scratch.run_with(["dedup", "--state", "seen.ibf"], "c\nd\n").succeeds();
    assert_eq!(run.text(), "d\n");
    assert_eq!(scratch.info("seen.ibf")["kind"], "windowed");
}

#[test]
fn a_state_made_with_other_options_is_refused() {
    let scratch = Scratch::new();
    scratch.run_with(["dedup", "--state", "all.ibf", "--rate", "1e-4"], "a\n").succeeds();
    scratch.run_with(["dedup", "--state", "win.ibf", "--window", "500"], "a\n").succeeds();
    for (args, message) in [
        (["--state", "all.ibf", "--rate", "1e-3"], "all.ibf: was made with --rate 0.0001"),
        (["--state", "all.ibf", "--window", "500"], "all.ibf: remembers all keys"),
        (["--state", "win.ibf", "--window", "501"], "win.ibf: was made with --window 500"),
        (["--state", "win.ibf", "--rate", "1%"], "win.ibf: was made with another rate"),
    ] {
        let [a, b, c, d] = args;
        scratch.refuses(["dedup", a, b, c, d], "b\n", message);
    }
    scratch.run_with(["dedup", "--state", "all.ibf", "--rate", "0.01%"], "b\n").succeeds();
    scratch
        .run_with(["dedup", "--state", "win.ibf", "--window", "500", "--rate", "1e-6"], "b\n")
        .succeeds();
}

#[test]
fn a_state_that_is_no_state_is_refused() {
    let scratch = Scratch::new();
    scratch.build("words.ibf", [], "a\n");
    let run = scratch.refuses(
        ["dedup", "--state", "words.ibf"],
        "a\n",
        "words.ibf: holds a bloom filter, not a dedup state",
    );
    assert!(run.hint().contains("name a new file"));
    scratch.write("notes.txt", "not a filter");
    scratch.refuses(["dedup", "--state", "notes.txt"], "a\n", "notes.txt: not an Ironbloom filter");
    scratch.run_with(["dedup", "--state", "cut.ibf"], "a\n").succeeds();
    let whole = scratch.read("cut.ibf");
    scratch.write("cut.ibf", &whole[..whole.len() / 2]);
    scratch.refuses(["dedup", "--state", "cut.ibf"], "a\n", "cut.ibf: cut short");
}

#[test]
fn a_state_without_a_directory_is_refused_before_anything_is_printed() {
    let scratch = Scratch::new();
    scratch.refuses(
        ["dedup", "--state", "no/seen.ibf"],
        "a\n",
        "no/seen.ibf: there is no directory no",
    );
}

#[test]
fn a_failed_run_leaves_the_state_as_it_was() {
    let scratch = Scratch::new();
    scratch.run_with(["dedup", "--state", "seen.ibf"], "a\n").succeeds();
    scratch.refuses(["dedup", "--state", "seen.ibf", "missing.txt"], "", "missing.txt: ");
    let before = scratch.read("seen.ibf");
    let run = scratch.shell("echo b | ironbloom dedup --state seen.ibf > /dev/full").ends_with(2);
    assert!(run.stderr.starts_with("error: standard output: "), "{}", run.stderr);
    assert!(scratch.read("seen.ibf") == before);
}

// ------------------------------------------------------------------------------------------------ window

#[test]
fn a_window_forgets_what_is_long_ago() {
    let scratch = Scratch::new();
    let input = format!("a\n{}a\n", lines(0..10_000));
    let all = scratch.run_with(["dedup"], &input).succeeds();
    assert_eq!(all.text().lines().filter(|&line| line == "a").count(), 1);
    let window = scratch.run_with(["dedup", "--window", "1k"], &input).succeeds();
    assert_eq!(window.text().lines().filter(|&line| line == "a").count(), 2);
}

#[test]
fn a_window_remembers_the_last_keys() {
    let scratch = Scratch::new();
    let input: String = (0..5000).map(|i| format!("{i}\n{}\n", i / 2)).collect();
    // Every repeat comes within 999 distinct keys of its first occurrence while i < 1000.
    let run = scratch.run_with(["dedup", "--window", "1000"], input).succeeds();
    let text = run.text();
    let early: Vec<&str> = text.lines().filter(|line| line.parse::<u64>().unwrap() < 500).collect();
    assert_eq!(early.len(), early.iter().collect::<HashSet<_>>().len());
    assert_eq!(early.len(), 500);
}

#[test]
fn impossible_windows_and_rates_are_refused() {
    let scratch = Scratch::new();
    for args in [["--window", "0"], ["--window", "-5"], ["--window", "1e18"]] {
        scratch.refuses(["dedup", args[0], args[1]], "a\n", "");
    }
    for rate in ["0", "1", "1.5", "-1", "nan", "1e-30"] {
        scratch.refuses(["dedup", "--rate", rate], "a\n", "");
        scratch.refuses(["dedup", "--rate", rate, "--window", "10"], "a\n", "");
    }
}

/// Lines made to collide under the seed that everybody knows are lines like others to a run with its own key.
#[test]
fn no_line_is_dropped_because_it_was_chosen() {
    let scratch = Scratch::new();
    // XXH3 xors 8 of every 16 bytes with constants, and multiplies: where these bytes are the constants, the others count for
    // nothing. All of these lines have one hash of 64 bits.
    let chosen = |i: u64| {
        let [one, two] = [0xbe4b_a423_396c_feb8_u64, 0xdb97_9083_e96d_d4de].map(u64::to_le_bytes);
        [&one[..], format!("{i:08}").as_bytes(), &two, format!("{:08}", i * 7).as_bytes(), b"\n"]
            .concat()
    };
    let input: Vec<u8> = (0..10_000).flat_map(chosen).collect();
    scratch.build("known.ibf", ["--kind", "scalable", "--capacity", "20000"], "x\n");
    let known = scratch.run_with(["dedup", "--state", "known.ibf"], &input).succeeds();
    assert!(known.stdout == chosen(0), "{} lines", known.stdout.len() / chosen(0).len());
    assert!(scratch.run_with(["dedup"], &input).succeeds().stdout == input);
    let window = scratch.run_with(["dedup", "--window", "20000"], &input).succeeds();
    assert!(window.stdout == input);

    // The key is another in each state, and stays in it.
    let hash = |name: &str| scratch.info(name)["hash"].to_string();
    scratch.run_with(["dedup", "--state", "a.ibf"], &input).succeeds();
    scratch.run_with(["dedup", "--state", "b.ibf"], &input).succeeds();
    let (a, b) = (hash("a.ibf"), hash("b.ibf"));
    assert!(a.contains("siphash-1-3") && a != b, "{a} {b}");
    assert_eq!(scratch.run_with(["dedup", "--state", "a.ibf"], &input).succeeds().text(), "");
    assert_eq!(hash("a.ibf"), a);
}
