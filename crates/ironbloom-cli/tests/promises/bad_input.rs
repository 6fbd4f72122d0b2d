//! Commands that cannot be carried out are refused with a message that says what and why, status 2, and no file changed.

use std::io::{ErrorKind, Write as _};
use std::process::Stdio;

use crate::program::{KINDS, Scratch, lines};
use ironbloom_testing::Start as _;

// ------------------------------------------------------------------------------------------- filter files

/// Files that are not, or no longer, filters, with what is to be said of each. A missing one too.
fn bad_files(scratch: &Scratch) -> Vec<(&'static str, &'static str)> {
    scratch.build("good.ibf", ["--kind", "counting", "--capacity", "100k"], &lines(0..1000));
    let good = scratch.read("good.ibf");
    let flipped = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    };
    scratch.write("empty.ibf", "");
    scratch.write("text.ibf", "these are words\n".repeat(100));
    scratch.write("magic.ibf", &good[..8]);
    scratch.write("header.ibf", flipped(40));
    scratch.write("payload.ibf", flipped(300));
    scratch.write("table.ibf", flipped(good.len() - 12));
    scratch.write("cut.ibf", &good[..good.len() - 1]);
    scratch.write("long.ibf", [&good[..], b"\n"].concat());
    std::fs::create_dir_all(scratch.path("directory")).unwrap();
    vec![
        ("empty.ibf", "not an Ironbloom filter"),
        ("text.ibf", "not an Ironbloom filter"),
        ("magic.ibf", "cut short: 8 bytes of 256"),
        ("header.ibf", "checksum mismatch: header damaged in bytes 0..256"),
        ("payload.ibf", "checksum mismatch: payload damaged in bytes 256..65792"),
        ("table.ibf", "checksum mismatch: "),
        ("cut.ibf", "cut short: "),
        ("long.ibf", "1 bytes too many: "),
        ("missing.ibf", "No such file or directory"),
        ("directory", ""),
    ]
}

#[test]
fn no_command_takes_a_bad_file_for_a_filter() {
    let scratch = Scratch::new();
    for (name, reason) in bad_files(&scratch) {
        let message = format!("{name}: {reason}");
        for command in ["check", "add", "remove", "info"] {
            scratch.refuses([command, name], "1\n", &message);
        }
        scratch.refuses(["merge", "-o", "new.ibf", name], "", &message);
        scratch.refuses(["merge", "-o", "new.ibf", "good.ibf", name], "", &message);
        scratch.refuses(["merge", "-o", "good.ibf", name, "good.ibf"], "", &message);
        let verdict = scratch.run(["verify", name]).ends_with(2);
        assert!(verdict.text().contains(reason), "{name}: {}", verdict.text());
        if !["missing.ibf", "directory"].contains(&name) {
            scratch.refuses(["dedup", "--state", name], "1\n", &message);
        }
    }
}

#[test]
fn keys_are_not_looked_up_where_only_another_program_knows_the_hash() {
    use ironbloom::{Bloom, BloomParams, HashFn, Persist as _};
    let scratch = Scratch::new();
    let params = BloomParams::for_rate(100, 0.01).unwrap();
    let mut filter = Bloom::new(params, HashFn::External { id: 7 }).unwrap();
    filter.insert_hash(42);
    filter.save(scratch.path("foreign.ibf")).unwrap();
    scratch.run(["info", "foreign.ibf"]).succeeds();
    scratch.run(["verify", "foreign.ibf"]).succeeds();
    let message = "foreign.ibf: the filter was built from hashes of another program";
    scratch.refuses(["check", "foreign.ibf"], "a\n", message);
    let run = scratch.refuses(["add", "foreign.ibf"], "a\n", "");
    assert!(run.stderr.contains("hashes of another program"), "{}", run.stderr);
}

// ----------------------------------------------------------------------------------------- rate, capacity

#[test]
fn a_rate_outside_0_and_1_is_refused_for_every_kind() {
    let scratch = Scratch::new();
    for kind in KINDS.into_iter().filter(|&kind| kind != "bitmap") {
        for (rate, got) in [("0", "0"), ("1", "1"), ("1.5", "1.5"), ("-1", "-1"), ("200%", "2")] {
            let args = ["build", "--kind", kind, "--capacity", "10", "--rate", rate, "-o", "x.ibf"];
            let message = format!("rate must lie strictly between 0 and 1, got {got}\n");
            let run = scratch.refuses(args, "a\n", &message);
            assert_eq!(run.hint(), "write a rate as 1%, 0.01, 1e-6 or 1/1000\n");
        }
    }
    for rate in ["nan", "inf", "", "1/0", "one"] {
        let args = ["build", "--rate", rate, "-o", "x.ibf"];
        let run = scratch.refuses(args, "a\n", "");
        assert!(run.stderr.contains("rate") && run.stderr.contains("1e-6"), "{}", run.stderr);
    }
}

#[test]
fn a_rate_that_the_hash_cannot_reach_is_refused() {
    let scratch = Scratch::new();
    for kind in KINDS.into_iter().filter(|&kind| kind != "bitmap") {
        let args = ["build", "--kind", kind, "--capacity", "10", "--rate", "1e-30", "-o", "x.ibf"];
        let run = scratch.refuses(args, "a\n", "rate 1e-30 cannot be reached");
        assert!(run.hint().starts_with("ask for a higher rate"), "{kind}");
    }
}

#[test]
fn an_absurd_capacity_is_refused() {
    let scratch = Scratch::new();
    for kind in KINDS {
        for capacity in ["0", "1e18"] {
            let args = ["build", "--kind", kind, "--capacity", capacity, "-o", "x.ibf"];
            scratch.refuses(args, "1\n", "");
        }
    }
    for capacity in ["-1", "1.5", "many", "", "1e99"] {
        scratch.refuses(["build", "--capacity", capacity, "-o", "x.ibf"], "1\n", "invalid value");
    }
}

#[test]
fn a_filter_that_does_not_fit_memory_is_refused_with_a_hint() {
    let scratch = Scratch::new();
    for kind in KINDS {
        let capacity = if kind == "bitmap" { "900T" } else { "20T" };
        let args = ["build", "--kind", kind, "--capacity", capacity, "-o", "x.ibf"];
        let run = scratch.refuses(args, "1\n", "");
        assert!(
            run.stderr.contains("memory") || run.stderr.contains("must be"),
            "{kind}: {}",
            run.stderr
        );
    }
    let run = scratch.refuses(
        ["build", "--capacity", "1T", "-o", "x.ibf"],
        "1\n",
        "the filter takes 1.09 TiB",
    );
    assert!(run.hint().starts_with("ask for a smaller --capacity"));
    scratch.refuses(["build", "--kind", "bitmap", "-o", "x.ibf"], "18446744073709551615\n", "");
}

#[test]
fn what_cannot_be_built_is_refused_before_the_input_has_ended() {
    let scratch = Scratch::new();
    for options in [
        ["--rate", "1.5", "-o", "x.ibf"],
        ["--rate", "1%", "-o", "no/x.ibf"],
        ["--kind=cuckoo", "--capacity=20T", "-o", "x.ibf"],
        ["--kind=fuse", "--rate=1e-30", "-o", "x.ibf"],
    ] {
        let mut command = scratch.command(["build"].into_iter().chain(options));
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).start();
        // More than a pipe holds: only a program that reads would take it all.
        let taken = child.stdin.take().unwrap().write_all(&[b'\n'; 1 << 20]);
        assert_eq!(taken.unwrap_err().kind(), ErrorKind::BrokenPipe, "{options:?}");
        assert_eq!(child.wait().unwrap().code(), Some(2), "{options:?}");
    }
}

#[test]
fn unknown_words_are_refused() {
    let scratch = Scratch::new();
    for option in ["--kind=quotient", "--threads=0", "--seed=-1", "--scheme=guess", "--colour"] {
        scratch.refuses(["build", "-o", "x.ibf", option], "a\n", "");
    }
    scratch.refuses(["build", "-0", "--csv", "a", "-o", "x.ibf"], "a\n", "");
    scratch.refuses(["frobnicate"], "", "");
    scratch.refuses(["build"], "a\n", "");
    scratch.refuses(["merge", "-o", "x.ibf"], "", "");
    scratch.refuses(["verify"], "", "");
}

// ------------------------------------------------------------------------------------------------- inputs

#[test]
fn an_input_that_cannot_be_read_is_named() {
    let scratch = Scratch::new();
    scratch.build("x.ibf", [], "a\n");
    std::fs::create_dir(scratch.path("logs")).unwrap();
    for (input, reason) in [("missing.txt", "No such file"), ("logs", "is a directory")] {
        let message = format!("{input}: {reason}");
        scratch.refuses(["build", "-o", "new.ibf", input], "", &message);
        scratch.refuses(["check", "x.ibf", input], "", &message);
        scratch.refuses(["add", "x.ibf", input], "", &message);
        scratch.refuses(["dedup", input], "", &message);
    }
}

#[test]
fn a_compressed_input_cut_short_is_no_smaller_input() {
    let scratch = Scratch::new();
    let text = lines(0..100_000);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
    for (name, whole) in [("a.gz", gzip), ("a.zst", zstd)] {
        for cut in [5, whole.len() / 2, whole.len() - 1] {
            scratch.write(name, &whole[..cut]);
            scratch.refuses(["build", "-o", "x.ibf", name], "", &format!("{name}: "));
        }
        let mut damaged = whole.clone();
        damaged[whole.len() / 2] ^= 0x55;
        damaged[whole.len() / 2 + 1] ^= 0x55;
        scratch.write(name, damaged);
        let run = scratch.run(["build", "-o", "x.ibf", name]);
        // gzip always has a checksum; zstd only if its writer asked for one.
        assert!(run.status == 2 || name == "a.zst", "damage in {name} was not noticed");
        let _ = std::fs::remove_file(scratch.path("x.ibf"));
    }
}

#[test]
fn a_column_that_is_not_there_is_refused_with_those_that_are() {
    let scratch = Scratch::new();
    scratch.write("users.csv", "id,name\n1,ann\n");
    let args = ["build", "-o", "x.ibf", "--csv", "email", "users.csv"];
    let run = scratch.refuses(args, "", "users.csv: no column \"email\"");
    assert_eq!(run.hint(), "the columns are: id, name\n");
    let message = "standard input: no column \"id\": the table is empty";
    let run = scratch.refuses(["build", "-o", "x.ibf", "--csv", "id"], "", message);
    assert!(run.hint().starts_with("a table begins with a header line"));
}

#[test]
fn a_record_without_the_column_is_refused_with_its_line() {
    let scratch = Scratch::new();
    scratch.build("x.ibf", ["--capacity", "10"], "a\n");
    let csv = "id,name\n1,ann\n2\n3,cid\n";
    let message = "standard input: line 3: 1 field, where the first row has 2";
    scratch.refuses(["add", "--csv", "name", "x.ibf"], csv, message);
}

// ------------------------------------------------------------------------------------------------ outputs

#[test]
fn an_output_without_a_directory_is_refused() {
    let scratch = Scratch::new();
    scratch.refuses(["build", "-o", "no/x.ibf"], "a\n", "no/x.ibf: there is no directory no");
    std::fs::create_dir(scratch.path("yes")).unwrap();
    scratch.refuses(["build", "-o", "yes"], "a\n", "yes: is a directory");
    scratch.build("x.ibf", [], "a\n");
    scratch.refuses(["merge", "-o", "no/x.ibf", "x.ibf"], "", "no/x.ibf: ");
}

#[test]
fn an_output_that_is_also_an_input_is_refused() {
    let scratch = Scratch::new();
    scratch.write("keys.txt", "a\n");
    std::os::unix::fs::symlink("keys.txt", scratch.path("link")).unwrap();
    for output in ["keys.txt", "./keys.txt", "link"] {
        let message = format!("{output}: is both an input and the output");
        scratch.refuses(["build", "-o", output, "keys.txt"], "", &message);
    }
    assert_eq!(scratch.read("keys.txt"), b"a\n");
}

#[test]
fn a_full_disk_leaves_the_old_file_and_no_temporary_one() {
    let scratch = Scratch::new();
    scratch.write("keys.txt", lines(0..100_000));
    scratch.build("old.ibf", [], "old\n");
    scratch.run_with(["build", "--capacity", "100k", "-o", "large.ibf"], "old\n").succeeds();
    scratch.run_with(["dedup", "--state", "state.ibf"], "old\n").succeeds();
    let before = scratch.contents();
    // No file may grow beyond a few kilobytes, and the signal that would end the program is ignored.
    for command in [
        "build -o old.ibf keys.txt",
        "build -o new.ibf keys.txt",
        "add large.ibf keys.txt",
        "merge -o new.ibf large.ibf",
        "dedup --count --state state.ibf keys.txt",
    ] {
        let run = scratch.shell(&format!("ulimit -f 8; trap '' XFSZ; exec ironbloom {command}"));
        assert_eq!(run.status, 2, "{command}: {}", run.stderr);
        assert!(
            run.stderr.contains("error: ") && run.stderr.contains("File too large"),
            "{}",
            run.stderr
        );
        assert!(before == scratch.contents(), "{command} changed a file or left one");
    }
}

#[test]
fn standard_output_that_takes_nothing_is_an_error() {
    let scratch = Scratch::new();
    scratch.build("x.ibf", [], "a\n");
    for command in
        ["dedup", "check x.ibf", "check --count x.ibf", "info x.ibf", "verify x.ibf", "man"]
    {
        let run = scratch.shell(&format!("echo a | ironbloom {command} > /dev/full")).ends_with(2);
        assert!(run.stderr.starts_with("error: standard output: No space left"), "{}", run.stderr);
    }
}

#[test]
fn standard_error_that_takes_nothing_is_no_error() {
    let scratch = Scratch::new();
    scratch.shell("echo a | ironbloom build -o x.ibf 2> /dev/full").succeeds();
    scratch.shell("seq 100 | ironbloom build --capacity 5 -o y.ibf 2> /dev/full").succeeds();
    scratch.shell("ironbloom info missing.ibf 2> /dev/full").ends_with(2);
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_program_quietly() {
    let scratch = Scratch::new();
    scratch.write("big.txt", lines(0..500_000));
    scratch.run(["build", "-o", "x.ibf", "big.txt"]).succeeds();
    for command in ["dedup big.txt", "check x.ibf big.txt", "check --threads 4 x.ibf big.txt"] {
        let run =
            scratch.shell(&format!("{{ ironbloom {command}; echo status $? >&2; }} | head -1"));
        assert_eq!((run.text().as_str(), run.stderr.as_str()), ("0\n", "status 0\n"), "{command}");
    }
}
