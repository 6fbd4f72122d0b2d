//! Manners at the edges: standard output as a file, closed and full outputs, signals, counts,
//! places in messages, reports for programs.

use std::fs::File;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::program::{self, Run, Scratch, lines};
use ironbloom_testing::{Signal, Start as _};
use serde_json::json;

// ------------------------------------------------------------------------------------------ - as a file

#[test]
fn a_dash_is_standard_output_and_input_for_filters() {
    let scratch = Scratch::new();
    scratch.write("keys.txt", "cat\ndog\n");
    scratch.write("more.txt", "cow\n");
    let options = "--rate 1e-6 --capacity 10";
    scratch.shell(&format!("ironbloom build {options} -o - keys.txt > a.ibf")).succeeds();
    scratch.shell(&format!("ironbloom build {options} -o b.ibf keys.txt")).succeeds();
    assert!(scratch.read("a.ibf") == scratch.read("b.ibf"));
    scratch.shell("ironbloom add - more.txt < a.ibf > c.ibf").succeeds();
    scratch.shell("ironbloom add a.ibf -o d.ibf < more.txt").succeeds();
    assert!(scratch.read("c.ibf") == scratch.read("d.ibf"));
    assert_eq!(scratch.present("a.ibf", "cat\ncow\n"), "cat\n", "add -o leaves its input alone");
    assert_eq!(scratch.present("c.ibf", "cat\ncow\ndog\nelk\n"), "cat\ncow\ndog\n");
    let run = scratch.shell("ironbloom merge -o - a.ibf - < d.ibf | ironbloom check - more.txt");
    assert_eq!(run.succeeds().text(), "cow\n");
    let run = scratch.shell("ironbloom info --json - < a.ibf").succeeds();
    assert_eq!(run.json()["file"], "standard input");
    let run = scratch.shell("ironbloom verify - < a.ibf").succeeds();
    assert_eq!(run.text(), "file            state\nstandard input  whole\n");
    scratch.shell("head -c 300 a.ibf | ironbloom verify -").ends_with(2);
    let names = ["a.ibf", "b.ibf", "c.ibf", "d.ibf", "keys.txt", "more.txt"];
    assert_eq!(scratch.files(), names, "and no file has the name -");
}

#[test]
fn standard_input_and_output_are_used_once() {
    let scratch = Scratch::new();
    scratch.build("x.ibf", [], "a\n");
    scratch.write("keys.txt", "a\n");
    let both = "standard input cannot be both the filter and the keys";
    scratch.refuses(["check", "-"], "", both);
    scratch.refuses(["add", "-", "-o", "y.ibf"], "", both);
    scratch.refuses(["merge", "-o", "y.ibf", "-", "-"], "", "standard input is only one filter");
    for args in
        [["build", "-o", "-", "--json", "keys.txt"], ["merge", "-o", "-", "--json", "x.ibf"]]
    {
        scratch.refuses(args, "", "--json and -o - both write to standard output");
    }
    scratch.refuses(["dedup", "--state", "-"], "", "--state must be a file");
    scratch.refuses(["remove", "-", "keys.txt"], "", "the filter to remove from must be a file");
    scratch.refuses(
        ["plan", "--capacity", "10", "--rate", "1%", "--plot", "-"],
        "",
        "--plot must be a file",
    );
    assert_eq!(scratch.files(), ["keys.txt", "x.ibf"], "and no file has the name -");
}

#[test]
fn a_filter_is_not_written_to_a_terminal() {
    let scratch = Scratch::new();
    scratch.write("keys.txt", "a\n");
    // `script` gives the program a terminal.
    let run = scratch.shell("script -qec 'ironbloom build -o - keys.txt' /dev/null < /dev/null");
    assert!(run.text().contains("standard output is a terminal"), "{}{}", run.text(), run.stderr);
}

#[test]
fn a_filter_into_a_closed_pipe_is_an_error() {
    let scratch = Scratch::new();
    scratch.write("keys.txt", lines(0..100_000));
    let run = scratch.shell(
        "{ ironbloom build -o - keys.txt; echo $? > status; } | head -c 1 > /dev/null; cat status",
    );
    assert_eq!(run.text(), "2\n", "{}", run.stderr);
}

// ------------------------------------------------------------------------------------------ outputs that fail

#[test]
fn what_cannot_be_printed_is_an_error_also_for_help() {
    let scratch = Scratch::new();
    scratch.build("x.ibf", [], "a\n");
    let requests = [
        &["--help"][..],
        &["--version"],
        &["help", "check"],
        &["check", "-h"],
        &["man"],
        &["completions", "bash"],
        &["plan", "--capacity", "10", "--rate", "1%"],
        &["info", "x.ibf"],
        &["verify", "x.ibf"],
    ];
    for args in requests {
        let full = File::create("/dev/full").unwrap();
        let output = scratch.command(args).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let run = Run::from(output);
        assert_eq!(run.status, 2, "{args:?}: {}", run.stderr);
        assert!(run.stderr.starts_with("error: standard output: "), "{args:?}: {}", run.stderr);
    }
    // A reader that has seen enough is none.
    scratch.shell("ironbloom --help | head -n 1; ironbloom man | head -n 1").succeeds();
}

// ------------------------------------------------------------------------------------------ signals

#[test]
fn a_signal_ends_the_program_with_its_own_status_and_leaves_no_file() {
    let scratch = Scratch::new();
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let mut command = scratch.command(["build", "-o", "new.ibf"]);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).start();
        let mut input = child.stdin.take().unwrap();
        // More than a pipe holds: when all is written the program has begun to read.
        input.write_all(lines(0..200_000).as_bytes()).unwrap();
        child.signal(signal);
        assert_eq!(child.wait().unwrap().code(), Some(status), "{signal:?}");
        assert!(scratch.files().is_empty(), "{signal:?}");
    }
}

#[test]
fn what_ignores_hangups_goes_on() {
    let scratch = Scratch::new();
    let mut command = Command::new("nohup");
    command
        .args([program::PROGRAM, "dedup"])
        .current_dir(scratch.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::null()).start();
    let mut input = child.stdin.take().unwrap();
    input.write_all(lines(0..200_000).as_bytes()).unwrap();
    let reader = std::thread::spawn({
        let mut output = child.stdout.take().unwrap();
        move || std::io::copy(&mut output, &mut std::io::sink()).unwrap()
    });
    child.signal(Signal::HUP);
    input.write_all(b"after\n").unwrap();
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(reader.join().unwrap() as usize, lines(0..200_000).len() + "after\n".len());
}

// ------------------------------------------------------------------------------------------ counts

#[test]
fn an_overfull_filter_does_not_pretend_to_know_its_keys() {
    let scratch = Scratch::new();
    let args = ["build", "--capacity", "10", "-o", "x.ibf"];
    let run = scratch.run_with(args, lines(0..1000)).succeeds();
    assert!(run.stderr.starts_with("warning: x.ibf: at least "), "{}", run.stderr);
    assert!(
        run.stderr.contains(
            "\nx.ibf: bloom, 1,000 keys read, far too many to estimate the distinct ones, "
        ),
        "{}",
        run.stderr
    );
    let text = scratch.run(["info", "x.ibf"]).succeeds().text();
    assert!(text.contains("\nkeys              at least "), "{text}");
    let run = scratch.run_with(["add", "x.ibf"], lines(1000..1010)).succeeds();
    assert!(run.stderr.contains("\nx.ibf: bloom, 10 keys read, now at least "), "{}", run.stderr);
}

#[test]
fn keys_that_came_twice_are_read_twice_and_counted_once() {
    let scratch = Scratch::new();
    let twice = lines(0..1000).repeat(2);
    let run = scratch.run_with(["build", "-o", "x.ibf"], &twice).succeeds();
    assert!(run.stderr.starts_with("x.ibf: bloom, 1,000 keys, "), "{}", run.stderr);
    let args = ["build", "--capacity", "1k", "-o", "y.ibf"];
    let run = scratch.run_with(args, &twice).succeeds();
    let told = run.stderr.strip_prefix("y.ibf: bloom, 2,000 keys read, about ").unwrap();
    let distinct: u64 = told.split_once(" distinct").unwrap().0.replace(',', "").parse().unwrap();
    assert!((950..=1050).contains(&distinct), "{}", run.stderr); // 7 bits a key: within 5 %
    let json = scratch.run_with(["build", "--json", "-o", "y.ibf"], &twice).succeeds().json();
    assert_eq!(json["keys_read"], 2000);
}

#[test]
fn one_key_is_not_one_keys() {
    let scratch = Scratch::new();
    let run = scratch.run_with(["build", "-o", "x.ibf"], "a\n").succeeds();
    assert!(run.stderr.starts_with("x.ibf: bloom, 1 key, "), "{}", run.stderr);
    scratch.build("f.ibf", ["--kind", "fuse"], "a\n");
    let args = ["build", "--kind", "fuse", "--capacity", "1", "-o", "f.ibf"];
    let run = scratch.refuses(args, "a\nb\n", "2 distinct keys in the input");
    assert!(!run.stderr.contains("1 keys"), "{}", run.stderr);
    scratch.write("bad.ibf", "no filter");
    let run = scratch.run(["verify", "bad.ibf"]).ends_with(2);
    assert!(run.stderr.contains("1 of 1 file damaged"), "{}", run.stderr);
}

// ------------------------------------------------------------------------------------------ places

#[test]
fn a_key_that_is_no_integer_is_named_with_its_input_and_line() {
    let scratch = Scratch::new();
    scratch.build("b.ibf", ["--kind", "bitmap", "--capacity", "1M"], "1\n");
    // In the third of several blocks, on several threads.
    let far = lines(0..200_000) + "x\n" + &lines(0..10);
    scratch.write("good.txt", "1\n2\n");
    scratch.write("far.txt", &far);
    let message = "far.txt: line 200001: not an integer: \"x\"";
    for args in [["check", "b.ibf", "good.txt", "far.txt"], ["add", "b.ibf", "good.txt", "far.txt"]]
    {
        let run = scratch.run(args).ends_with(2);
        assert!(run.stderr.starts_with(&format!("error: {message}")), "{}", run.stderr);
    }
    let args =
        ["build", "--kind", "bitmap", "--threads", "4", "-o", "n.ibf", "good.txt", "far.txt"];
    scratch.refuses(args, "", message);
    scratch.refuses(["check", "-0", "b.ibf"], "1\0y\0", "standard input: key 2: not an integer");
    let table = "id,text\n1,\"two\nlines\"\nz,\n";
    scratch.refuses(
        ["add", "--csv", "id", "b.ibf"],
        table,
        "standard input: line 4: not an integer: \"z\"",
    );
}

#[test]
fn an_integer_outside_a_bitmap_is_named_with_its_input_and_line() {
    let scratch = Scratch::new();
    scratch.write("keys.txt", "1\n2\n30\n");
    let message = "keys.txt: line 3: 30 is outside the bitmap";
    let args = ["build", "--kind", "bitmap", "--capacity", "10", "-o", "b.ibf", "keys.txt"];
    let run = scratch.refuses(args, "", message);
    assert!(run.hint().contains("--capacity"), "{}", run.stderr);
    scratch.build("b.ibf", ["--kind", "bitmap", "--capacity", "10"], "1\n");
    scratch.refuses(["add", "b.ibf", "keys.txt"], "", message);
}

#[test]
fn a_bitmap_that_cannot_be_made_names_the_key_that_is_too_large() {
    let keys = "7\n99999999999999999\n";
    let args = ["build", "--kind", "bitmap", "-o", "b.ibf"];
    let run = Scratch::new().refuses(args, keys, "the filter takes 11.10 PiB");
    assert!(run.stderr.contains("its largest key is 99999999999999999\n"), "{}", run.stderr);
}

#[test]
fn a_file_of_keys_in_the_place_of_the_filter_gets_a_hint() {
    let scratch = Scratch::new();
    scratch.write("keys.txt", "a\n");
    let run =
        scratch.refuses(["check", "keys.txt", "x.ibf"], "", "keys.txt: not an Ironbloom filter");
    assert!(run.hint().contains("are named before the files of keys"), "{}", run.stderr);
}

#[test]
fn a_key_in_the_place_of_a_file_of_keys_gets_a_hint() {
    let scratch = Scratch::new();
    scratch.build("x.ibf", [], "alice\n");
    let run = scratch.refuses(["check", "x.ibf", "alice"], "", "alice: No such file");
    assert!(run.hint().contains("echo KEY | "), "{}", run.stderr);
}

#[test]
fn a_long_key_does_not_fill_the_screen_with_its_error() {
    let scratch = Scratch::new();
    scratch.build("b.ibf", ["--kind", "bitmap", "--capacity", "10"], "1\n");
    let run = scratch.run_with(["check", "b.ibf"], "x".repeat(100_000)).ends_with(2);
    assert!(run.stderr.len() < 300, "{} bytes", run.stderr.len());
}

#[test]
fn a_window_of_nothing_is_refused_by_its_name() {
    Scratch::new().refuses(["dedup", "--window", "0"], "", "--window must be at least 1");
}

// ------------------------------------------------------------------------------------------ reports

#[test]
fn info_shows_several_filters() {
    let scratch = Scratch::new();
    scratch.build("a.ibf", [], "a\n");
    scratch.build("b.ibf", ["--kind", "fuse"], "b\n");
    let text = scratch.run(["info", "a.ibf", "b.ibf"]).succeeds().text();
    let parts: Vec<&str> = text.split("\n\n").collect();
    assert_eq!(parts.len(), 2, "{text}");
    assert!(parts[0].starts_with("file  ") && parts[1].starts_with("file  "), "{text}");
    let json = scratch.run(["info", "--json", "a.ibf", "b.ibf"]).succeeds().json();
    assert_eq!(json, json!([scratch.info("a.ibf"), scratch.info("b.ibf")]));
    // One that is missing does not hide the others.
    let run = scratch.run(["info", "a.ibf", "missing.ibf", "b.ibf"]).ends_with(2);
    assert!(run.text() == text && run.stderr.contains("missing.ibf"), "{}", run.stderr);
}

#[test]
fn commands_of_an_index_report_it_alike_in_json() {
    let scratch = Scratch::new();
    scratch.write("a.csv", "id,city\n1,Oslo\n");
    scratch.write("b.csv", "id,city\n2,Bergen\n");
    let run = scratch.run(["index", "build", "--json", "a.csv", "-o", "t.ibx"]).succeeds();
    assert_eq!(run.json(), scratch.run(["index", "info", "--json", "t.ibx"]).succeeds().json());
    let run = scratch.run(["index", "append", "--json", "t.ibx", "b.csv"]).succeeds();
    assert_eq!(
        (&run.json()["rows"], run.json()["tables"].as_array().unwrap().len()),
        (&json!(2), 2)
    );
    scratch.run(["index", "compact", "--json", "t.ibx"]).succeeds().json();
    let run = scratch.run(["index", "drop", "--json", "t.ibx", "a.csv"]).succeeds();
    assert_eq!(run.json()["rows"], 1);
    let run = scratch.run(["index", "verify", "--json", "t.ibx"]).succeeds();
    assert_eq!(run.json(), json!({"file": "t.ibx", "state": "whole", "tables": "not read"}));
    let run = scratch.run(["index", "verify", "t.ibx"]).succeeds();
    assert_eq!(
        run.text(),
        "t.ibx: whole, 1 row of 1 table; the tables were not read (--tables does)\n"
    );
    scratch.refuses(["index", "build", "a.csv", "-o", "-"], "", "an index must be a file");
    // What cannot even be opened has a state as well, and its error on standard error.
    scratch.write("cut.ibx", &scratch.read("t.ibx")[..300]);
    for name in ["cut.ibx", "missing.ibx", "a.csv"] {
        let run = scratch.run(["index", "verify", "--json", name]).ends_with(2);
        let state = run.json()["state"].as_str().unwrap().to_owned();
        assert_eq!((run.json()["file"].as_str(), state.is_empty()), (Some(name), false));
        assert!(run.stderr.starts_with(&format!("error: {state}")), "{}", run.stderr);
    }
}

#[test]
fn every_command_that_makes_a_filter_reports_it_alike_in_json() {
    let scratch = Scratch::new();
    let options = ["--capacity", "100", "--json", "-o"];
    let build = |name: &str, keys: &str| {
        let args = ["build"].into_iter().chain(options).chain([name]).collect::<Vec<_>>();
        let [a, b, c, d, e, f] = args[..] else { panic!() };
        scratch.run_with([a, b, c, d, e, f], keys).succeeds().json()
    };
    let names = |value: &serde_json::Value| -> Vec<String> {
        value.as_object().unwrap().keys().filter(|name| *name != "keys_read").cloned().collect()
    };
    let built = build("a.ibf", "a\nb\n");
    build("b.ibf", "c\n");
    let added = scratch.run_with(["add", "--json", "a.ibf"], "d\n").succeeds().json();
    let merged =
        scratch.run(["merge", "--json", "-o", "m.ibf", "a.ibf", "b.ibf"]).succeeds().json();
    assert_eq!([&built["keys_read"], &built["keys"]], [&json!(2), &json!(2)]);
    assert_eq!([&added["keys_read"], &added["keys"]], [&json!(1), &json!(3)]);
    assert_eq!(merged["keys"], 4);
    let info = scratch.info("m.ibf");
    for report in [&built, &added, &merged] {
        assert_eq!(names(report), names(&info));
    }
}
