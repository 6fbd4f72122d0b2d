//! Text as people have it: carriage returns, byte-order marks, UTF-16, lines of any length, in every command that reads keys.

use std::io::{Read as _, Write as _};
use std::process::Stdio;

use crate::program::{Run, Scratch, lines, most_memory};
use ironbloom_testing::Start as _;

const MARK: &str = "\u{feff}";

/// The notes on standard error.
fn notes(run: &Run) -> Vec<&str> {
    run.stderr.lines().filter(|line| line.starts_with("note: ")).collect()
}

#[test]
fn a_key_built_from_a_windows_file_is_found_by_a_unix_line_and_the_other_way_round() {
    let scratch = Scratch::new();
    let run = scratch.run_with(["build", "-o", "dos.ibf"], "alice\r\nbob\r\n").succeeds();
    assert_eq!(
        notes(&run),
        [
            "note: ignored the carriage return at the end of 2 lines; --exact-bytes makes it part of the key"
        ]
    );
    assert_eq!(scratch.present("dos.ibf", "alice\nbob\n"), "alice\nbob\n");
    let run = scratch.run_with(["build", "-o", "unix.ibf"], "alice\nbob\n").succeeds();
    assert!(notes(&run).is_empty(), "{}", run.stderr);
    // Printed as it came.
    assert_eq!(scratch.present("unix.ibf", "alice\r\nbob\r\n"), "alice\r\nbob\r\n");
    assert!(scratch.read("dos.ibf") == scratch.read("unix.ibf"));
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_key_of_any_input() {
    let scratch = Scratch::new();
    scratch.write("a.txt", format!("{MARK}alice\r\n"));
    scratch.write("b.txt", format!("{MARK}bob\n{MARK}carol\n"));
    scratch.shell("gzip -k a.txt && zstd -q b.txt").succeeds();
    for inputs in [["a.txt", "b.txt"], ["a.txt.gz", "b.txt.zst"]] {
        let run = scratch.run(["build", "-o", "x.ibf", inputs[0], inputs[1]]).succeeds();
        let note = "note: ignored the carriage return at the end of 1 line and the byte-order mark of 2 inputs; \
                    --exact-bytes makes it part of the key";
        assert_eq!(notes(&run), [note]);
        // A mark inside of an input is a character like any other.
        let keys = format!("alice\nbob\n{MARK}carol\n");
        assert_eq!(scratch.present("x.ibf", &keys), keys);
        assert_eq!(scratch.info("x.ibf")["keys"], 3);
    }
}

#[test]
fn exact_bytes_and_nul_keep_every_byte() {
    let scratch = Scratch::new();
    let text = format!("{MARK}alice\r\n");
    let run = scratch.run_with(["build", "--exact-bytes", "-o", "exact.ibf"], &text).succeeds();
    assert!(notes(&run).is_empty(), "{}", run.stderr);
    scratch.run_with(["check", "exact.ibf"], "alice\n").ends_with(1);
    scratch.run_with(["check", "exact.ibf"], &text).ends_with(1);
    let run = scratch.run_with(["check", "--exact-bytes", "exact.ibf"], &text).succeeds();
    assert_eq!(run.text(), text);
    let run = scratch.run_with(["build", "-0", "-o", "nul.ibf"], format!("{MARK}a\r\0b\r\n\0"));
    assert!(notes(&run.succeeds()).is_empty());
    scratch.run_with(["check", "-0", "nul.ibf"], "a\0b\0b\r\0").ends_with(1);
    scratch.run_with(["check", "-0", "nul.ibf"], "b\r\n\0").succeeds();
}

#[test]
fn add_remove_and_dedup_take_the_same_keys_from_windows_text() {
    let scratch = Scratch::new();
    scratch.build("c.ibf", ["--kind", "cuckoo", "--capacity", "1k"], "first\n");
    let run = scratch.run_with(["add", "c.ibf"], format!("{MARK}alice\r\nbob\r\n")).succeeds();
    assert_eq!(notes(&run).len(), 1, "{}", run.stderr);
    assert_eq!(scratch.present("c.ibf", "alice\nbob\n"), "alice\nbob\n");
    let run = scratch.run_with(["remove", "c.ibf"], "alice\r\n").succeeds();
    assert_eq!(notes(&run).len(), 1, "{}", run.stderr);
    assert_eq!(scratch.present("c.ibf", "alice\nbob\n"), "bob\n");
    // The first form of each key, as it came; the mark belongs to no line.
    let run = scratch.run_with(["dedup"], format!("{MARK}a\r\na\nb\nb\r\nc\r\n")).succeeds();
    assert_eq!(run.text(), "a\r\nb\nc\r\n");
    assert_eq!(notes(&run).len(), 1, "{}", run.stderr);
    let run = scratch.run_with(["dedup", "--exact-bytes"], "a\r\na\n").succeeds();
    assert_eq!(run.text(), "a\r\na\n");
}

#[test]
fn the_end_of_the_input_ends_a_line_as_a_newline_does() {
    let scratch = Scratch::new();
    scratch.build("x.ibf", [], "last\r");
    assert_eq!(scratch.present("x.ibf", "last\n"), "last\n");
    // What is printed can be read again: a newline is added after the last line.
    let printed = scratch.run_with(["dedup"], "last\r").succeeds().text();
    assert_eq!(printed, "last\r\n");
    assert_eq!(scratch.present("x.ibf", &printed), printed);
}

#[test]
fn carriage_returns_are_stripped_alike_by_any_number_of_threads() {
    let scratch = Scratch::new();
    let unix = lines(0..300_000);
    scratch.write("unix.txt", &unix);
    scratch.write("dos.txt", unix.replace('\n', "\r\n"));
    let build = |threads: &str, input: &str| {
        let options = ["build", "-o", "x.ibf", "--capacity", "300k", "--threads", threads, input];
        scratch.run(options).succeeds();
        scratch.read("x.ibf")
    };
    let expected = build("1", "unix.txt");
    assert!(build("1", "dos.txt") == expected);
    assert!(build("4", "dos.txt") == expected);
}

#[test]
fn utf_16_is_refused_and_not_read_as_other_keys() {
    let scratch = Scratch::new();
    scratch.build("old.ibf", [], "alice\n");
    for (name, mark) in [("le.txt", [0xff, 0xfe]), ("be.txt", [0xfe, 0xff])] {
        scratch.write(name, [&mark[..], b"a\0\n\0"].concat());
        let message = format!("{name}: UTF-16 text");
        for args in
            [["check", "old.ibf", name], ["add", "old.ibf", name], ["dedup", "--count", name]]
        {
            let run = scratch.refuses(args, "", &message);
            assert!(run.hint().contains("iconv"), "{}", run.stderr);
        }
        scratch.refuses(["dedup", "--csv", "a", name], "", &message);
        scratch.run(["dedup", "--exact-bytes", name]).succeeds();
    }
}

#[test]
fn a_byte_order_mark_before_a_csv_header_is_no_part_of_the_name() {
    let scratch = Scratch::new();
    scratch.write("t.csv", format!("{MARK}name,age\r\nalice,3\r\n"));
    let run = scratch.run(["dedup", "--csv", "name", "t.csv"]).succeeds();
    assert_eq!((run.text(), notes(&run)), ("alice\n".to_owned(), vec![]));
}

#[test]
fn a_line_of_64_mib_takes_little_more_memory_than_its_length() {
    const LENGTH: usize = 64 << 20;
    const KIB: u64 = 64 << 10;
    let scratch = Scratch::new();
    scratch.build("x.ibf", ["--capacity", "10"], "a\n");
    for args in [&["dedup"][..], &["check", "--absent", "x.ibf"]] {
        let mut command = scratch.command(args);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).start();
        let mut input = child.stdin.take().unwrap();
        let mut line = vec![b'x'; LENGTH];
        line.push(b'\n');
        input.write_all(&line).unwrap();
        // When the line has been printed all has been done with it, and the program waits for the next one.
        let mut printed = vec![0; line.len()];
        child.stdout.take().unwrap().read_exact(&mut printed).unwrap();
        assert!(printed == line, "{args:?}");
        let most = most_memory(child.id()).unwrap();
        drop(input);
        assert!(child.wait().unwrap().success() || args[0] == "check");
        // The line, an eighth of it to grow into, and the program itself.
        assert!(most < KIB + KIB / 8 + KIB / 4, "{args:?}: {most} KiB for a line of {KIB}");
    }
}
