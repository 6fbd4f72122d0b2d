//! `build` and `check`: what goes in is found again, whatever the kind and however the keys are written down.

use std::io::Write as _;

use crate::program::{KINDS, Scratch, lines};

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn zstandard(text: &str) -> Vec<u8> {
    zstd::encode_all(text.as_bytes(), 1).unwrap()
}

// ------------------------------------------------------------------------------------------------- kinds

#[test]
fn every_kind_is_built_described_verified_and_checked() {
    let scratch = Scratch::new();
    for kind in KINDS {
        let file = format!("{kind}.ibf");
        let options = ["--kind", kind, "--capacity", "2000", "--rate", "0.1%"];
        scratch.build(&file, options, &lines(0..2000));

        let info = scratch.info(&file);
        let (family, field, value) = match kind {
            "segmented" => ("bloom", "form", "segmented".into()),
            "cuckoo-packed" => ("cuckoo", "layout", "packed".into()),
            "fuse4" => ("fuse", "cells_a_key", 4.into()),
            _ => (kind, "file", serde_json::Value::from(file.as_str())),
        };
        assert_eq!(info["kind"], family);
        assert_eq!(info[field], value, "{kind}");
        assert_eq!(info["capacity"], 2000, "{kind}");
        assert_eq!(info["over_capacity"], false, "{kind}");
        let keys = info["keys"].as_u64().unwrap();
        assert!((1980..=2000).contains(&keys), "{kind}: {keys} keys");
        assert!(info["estimated_rate"].as_f64().unwrap() <= 0.0015, "{kind}: {info}");

        assert_eq!(scratch.run(["verify", &file]).succeeds().stderr, "");
        let found = scratch.run_with(["check", &file], lines(0..2000)).succeeds();
        assert_eq!(found.text(), lines(0..2000), "{kind}");
        // At 0.1 % of 1,000 absent keys more than 12 are taken for present once in 10^10 filters.
        let wrong = scratch.present(&file, &lines(5000..6000)).lines().count();
        assert!(wrong <= 12, "{kind}: {wrong} of 1000 absent keys");
    }
}

#[test]
fn every_kind_but_windowed_is_built_without_a_capacity() {
    let scratch = Scratch::new();
    for kind in KINDS.into_iter().filter(|&kind| kind != "windowed") {
        scratch.build("any.ibf", ["--kind", kind], &lines(0..3000));
        assert_eq!(scratch.present("any.ibf", &lines(0..3000)), lines(0..3000), "{kind}");
    }
    let refused = scratch.refuses(
        ["build", "--kind", "windowed", "-o", "w.ibf"],
        "a\n",
        "--kind windowed needs a window",
    );
    assert!(refused.hint().contains("--capacity"));
}

#[test]
fn without_a_capacity_the_filter_is_sized_to_the_distinct_keys() {
    let scratch = Scratch::new();
    for kind in ["bloom", "segmented", "blocked", "split-block", "counting", "d-left", "cuckoo"] {
        let repeated = lines(0..500).repeat(20);
        scratch.build("repeated.ibf", ["--kind", kind], &repeated);
        scratch.build("once.ibf", ["--kind", kind], &lines(0..500));
        assert_eq!(scratch.info("repeated.ibf")["capacity"], 500, "{kind}");
        assert_eq!(scratch.read("repeated.ibf"), scratch.read("once.ibf"), "{kind}");
    }
}

#[test]
fn one_line_a_hundred_times_is_one_key_of_a_cuckoo_filter() {
    let scratch = Scratch::new();
    let copies = "same\n".repeat(100);
    for kind in ["cuckoo", "cuckoo-packed", "d-left", "counting"] {
        scratch.build("sized.ibf", ["--kind", kind], &copies);
        scratch.build("planned.ibf", ["--kind", kind, "--capacity", "10"], &copies);
        assert_eq!(scratch.info("sized.ibf")["keys"], 1, "{kind}");
        assert_eq!(scratch.info("planned.ibf")["keys"], 1, "{kind} with a capacity");
    }
}

#[test]
fn a_bitmap_holds_integers_exactly() {
    let scratch = Scratch::new();
    scratch.build("even.ibf", ["--kind", "bitmap", "--capacity", "1k"], "0\n2\n998\n");
    assert_eq!(scratch.present("even.ibf", &lines(0..2000)), "0\n2\n998\n");
    assert_eq!(scratch.info("even.ibf")["estimated_rate"], 0.0);

    scratch.build("sized.ibf", ["--kind", "bitmap"], "7\n41\n");
    assert_eq!(scratch.info("sized.ibf")["capacity"], 42);

    let outside = ["build", "--kind", "bitmap", "--capacity", "1k", "-o", "new.ibf"];
    assert!(scratch.refuses(outside, "1000\n", "").stderr.contains("1000"));
    scratch.refuses(
        ["check", "even.ibf"],
        "seven\n",
        "standard input: line 1: not an integer: \"seven\"",
    );
    scratch.refuses(["add", "even.ibf"], "-1\n", "standard input: line 1: not an integer: \"-1\"");
}

#[test]
fn schemes_of_the_literature_can_be_asked_for_by_name() {
    let scratch = Scratch::new();
    let mut files = std::collections::HashSet::new();
    for scheme in ["remix", "independent", "enhanced", "double", "leveldb"] {
        scratch.build("s.ibf", ["--scheme", scheme], &lines(0..1000));
        assert_eq!(scratch.info("s.ibf")["scheme"], scheme);
        assert_eq!(scratch.present("s.ibf", &lines(0..1000)), lines(0..1000));
        let new = files.insert(bits(&scratch.read("s.ibf")).to_vec());
        assert!(new, "{scheme} sets the same bits as another");
    }
    let run = scratch.refuses(
        ["build", "-o", "c.ibf", "--scheme", "guess"],
        "a\n",
        "invalid value 'guess'",
    );
    assert!(run.stderr.contains("use one of remix, "), "{}", run.stderr);
    let args = ["build", "-o", "c.ibf", "--kind", "cuckoo", "--scheme", "double"];
    scratch.refuses(args, "a\n", "--scheme is for --kind bloom and segmented");
}

#[test]
fn the_number_of_threads_does_not_change_the_filter() {
    let scratch = Scratch::new();
    scratch.write("keys.txt", lines(0..200_000));
    for kind in ["bloom", "segmented", "blocked"] {
        for threads in ["1", "4"] {
            let args = ["build", "--kind", kind, "--threads", threads, "-o", threads, "keys.txt"];
            scratch.run(args).succeeds();
        }
        assert!(scratch.read("1") == scratch.read("4"), "--kind {kind}");
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_filter_of_known_size() {
    let scratch = Scratch::new();
    scratch.write("keys.txt", lines(0..200_000));
    for kind in ["bloom", "segmented", "blocked"] {
        for threads in ["1", "4"] {
            let args = ["build", "--kind", kind, "--capacity=250k", "--threads", threads];
            let args = args.into_iter().chain(["-o", threads, "keys.txt"]);
            assert!(scratch.command(args).output().unwrap().status.success());
        }
        assert!(scratch.read("1") == scratch.read("4"), "--kind {kind}");
    }
}

/// The payload and its checksums: a file without its header, which names the scheme, and the seal of it.
fn bits(file: &[u8]) -> &[u8] {
    &file[256..file.len() - 8]
}

#[test]
fn the_seed_changes_the_filter_and_nothing_else() {
    let scratch = Scratch::new();
    scratch.build("7.ibf", ["--seed", "7"], &lines(0..1000));
    scratch.build("8.ibf", ["--seed", "8"], &lines(0..1000));
    scratch.build("again.ibf", ["--seed", "7"], &lines(0..1000));
    assert_ne!(scratch.read("7.ibf"), scratch.read("8.ibf"));
    assert_eq!(scratch.read("7.ibf"), scratch.read("again.ibf"));
    assert_eq!(scratch.info("8.ibf")["hash"], "xxh3-64 seed 8");
    assert_eq!(scratch.present("8.ibf", &lines(0..1000)), lines(0..1000));
}

#[test]
fn build_says_what_it_made_and_in_json_if_asked() {
    let scratch = Scratch::new();
    let run = scratch.run_with(["build", "-o", "x.ibf"], lines(0..1000)).succeeds();
    assert!(run.stderr.starts_with("x.ibf: bloom, 1,000 keys, "), "{}", run.stderr);
    assert_eq!(run.text(), "");

    let run = scratch.run_with(["build", "--json", "-o", "x.ibf"], lines(0..1000)).succeeds();
    let mut made = run.json();
    assert_eq!(made.as_object_mut().unwrap().remove("keys_read"), Some(1000.into()));
    assert_eq!(made, scratch.info("x.ibf"));
    assert_eq!(run.stderr, "");
}

#[test]
fn more_keys_than_planned_are_taken_with_a_warning() {
    let scratch = Scratch::new();
    let args = ["build", "--capacity", "100", "-o", "small.ibf"];
    let run = scratch.run_with(args, lines(0..1000)).succeeds();
    assert!(run.stderr.starts_with("warning: small.ibf: "), "{}", run.stderr);
    assert_eq!(scratch.info("small.ibf")["over_capacity"], true);
    assert_eq!(scratch.present("small.ibf", &lines(0..1000)), lines(0..1000));
}

/// The hashes go in sorted, of which more look new than in random order; and the program knows how many there are.
#[test]
fn a_filter_sized_to_its_own_keys_is_not_over_capacity_and_knows_their_number() {
    let scratch = Scratch::new();
    for kind in ["bloom", "segmented", "blocked", "split-block"] {
        for rate in ["1%", "10%", "50%"] {
            let args = ["build", "--kind", kind, "--rate", rate, "-o", "x.ibf"];
            let run = scratch.run_with(args, lines(0..50_000)).succeeds();
            assert!(run.stderr.starts_with("x.ibf: "), "{kind} at {rate}: {}", run.stderr);
            let info = scratch.info("x.ibf");
            assert_eq!((&info["over_capacity"], &info["keys"]), (&false.into(), &50_000.into()));
        }
    }
}

#[test]
fn a_warning_tells_how_many_keys_there_are_and_not_how_many_looked_new() {
    let scratch = Scratch::new();
    let run = scratch.run_with(["build", "--capacity", "10", "-o", "x.ibf"], lines(0..1000));
    let warning = run.succeeds().stderr;
    assert!(warning.starts_with("warning: x.ibf: at least "), "{warning}");
    let args = ["build", "--capacity", "10k", "--rate", "10%", "-o", "x.ibf"];
    let warning = scratch.run_with(args, lines(0..15_000)).succeeds().stderr;
    let told = warning.strip_prefix("warning: x.ibf: about ").expect("a warning");
    let number: f64 = told.split(' ').next().unwrap().replace(',', "").parse().unwrap();
    assert!((14_500.0..15_500.0).contains(&number), "{warning}");
}

// -------------------------------------------------------------------------------------------------- keys

#[test]
fn keys_that_were_inserted_are_printed_in_the_order_of_the_question() {
    let scratch = Scratch::new();
    scratch.build("pets.ibf", ["--rate", "1e-6"], "cat\ndog\nfish\n");
    let run = scratch.run_with(["check", "pets.ibf"], "fish\ncow\ncat\n").succeeds();
    assert_eq!(run.text(), "fish\ncat\n");
}

#[test]
fn the_last_line_needs_no_newline() {
    let scratch = Scratch::new();
    scratch.build("x.ibf", ["--rate", "1e-6"], "first\nlast");
    assert_eq!(scratch.info("x.ibf")["keys"], 2);
    assert_eq!(scratch.present("x.ibf", "last"), "last\n");
}

#[test]
fn an_empty_line_is_a_key() {
    let scratch = Scratch::new();
    scratch.build("without.ibf", ["--rate", "1e-6"], "a\nb\n");
    scratch.build("with.ibf", ["--rate", "1e-6"], "a\n\nb\n");
    assert_eq!(scratch.present("without.ibf", "\n"), "");
    assert_eq!(scratch.present("with.ibf", "\n"), "\n");
}

#[test]
fn empty_input_makes_an_empty_filter_and_asks_nothing() {
    let scratch = Scratch::new();
    for kind in KINDS {
        scratch.build("empty.ibf", ["--kind", kind, "--capacity", "10"], "");
        assert_eq!(scratch.info("empty.ibf")["keys"], 0, "{kind}");
        scratch.run(["verify", "empty.ibf"]).succeeds();
        let run = scratch.run_with(["check", "empty.ibf"], "1\n2\n");
        assert!(run.ends_with(1).stdout.is_empty(), "{kind}");
    }
    scratch.build("full.ibf", [], "a\n");
    assert_eq!(scratch.run_with(["check", "full.ibf"], "").ends_with(1).text(), "");
}

#[test]
fn keys_are_bytes_and_need_not_be_text() {
    let scratch = Scratch::new();
    let keys = b"\x80 \xc3\x28\n\xff\xfe\nnul \0 inside\r\n";
    scratch.run_with(["build", "-o", "raw.ibf", "--rate", "1e-6"], keys).succeeds();
    assert_eq!(scratch.run_with(["check", "raw.ibf"], keys).succeeds().stdout, keys);
    scratch.run_with(["check", "raw.ibf"], b"\xff\xff\n").ends_with(1);
}

#[test]
fn a_line_of_100_megabytes_is_one_key() {
    let scratch = Scratch::new();
    let mut text = vec![b'x'; 100 << 20];
    text.extend_from_slice(b"\nshort\n");
    scratch.run_with(["build", "-o", "long.ibf", "--rate", "1e-6"], &text).succeeds();
    assert_eq!(scratch.info("long.ibf")["keys"], 2);
    let run = scratch.run_with(["check", "--count", "--json", "long.ibf"], &text).succeeds();
    assert_eq!(run.json()["present"], 2);
    text.remove(0);
    let run = scratch.run_with(["check", "--count", "--json", "long.ibf"], &text).succeeds();
    assert_eq!(run.json()["present"], 1);
}

#[test]
fn with_0_keys_end_with_nul_and_may_hold_newlines() {
    let scratch = Scratch::new();
    let keys = "two\nlines\0one\0";
    scratch.run_with(["build", "-0", "-o", "x.ibf", "--rate", "1e-6"], keys).succeeds();
    let run = scratch.run_with(["check", "--null", "x.ibf"], "one\0none\0two\nlines").succeeds();
    assert_eq!(run.text(), "one\0two\nlines\0");
    scratch.run_with(["check", "x.ibf"], "two\nlines\n").ends_with(1);
}

// ------------------------------------------------------------------------------------------------ inputs

#[test]
fn several_inputs_are_read_in_order_and_a_dash_is_standard_input() {
    let scratch = Scratch::new();
    scratch.write("a.txt", "a1\na2"); // no newline at the end, and yet no key "a2b1"
    scratch.write("b.txt", "b1\n");
    scratch
        .run_with(["build", "-o", "x.ibf", "--rate", "1e-6", "a.txt", "-", "b.txt"], "in\n")
        .succeeds();
    let run = scratch.run_with(["check", "x.ibf", "b.txt", "-", "a.txt"], "in\nout\n").succeeds();
    assert_eq!(run.text(), "b1\nin\na1\na2\n");
}

#[test]
fn gzip_and_zstd_are_recognised_by_content_whatever_the_name() {
    let scratch = Scratch::new();
    scratch.write("a.txt", gzip("a\n"));
    scratch.write("b", zstandard("b\n"));
    scratch.write("c.gz", "c\n");
    scratch
        .run_with(
            ["build", "-o", "x.ibf", "--rate", "1e-6", "a.txt", "b", "c.gz", "-"],
            gzip("d\n"),
        )
        .succeeds();
    assert_eq!(scratch.info("x.ibf")["keys"], 4);
    assert_eq!(scratch.present("x.ibf", "a\nb\nc\nd\ne\n"), "a\nb\nc\nd\n");
    let run = scratch.run_with(["check", "x.ibf"], zstandard("d\ne\n")).succeeds();
    assert_eq!(run.text(), "d\n");
}

#[test]
fn compressed_files_may_be_joined_end_to_end() {
    let scratch = Scratch::new();
    let (first, second) = (lines(0..50_000), lines(50_000..100_000));
    scratch.write("two.gz", [gzip(&first), gzip(&second)].concat());
    scratch.write("two.zst", [zstandard(&first), zstandard(&second)].concat());
    scratch.write("plain.txt", lines(0..100_000));
    for name in ["two.gz", "two.zst", "plain.txt"] {
        scratch.run(["build", "-o", &format!("{name}.ibf"), name]).succeeds();
    }
    assert!(scratch.read("two.gz.ibf") == scratch.read("plain.txt.ibf"));
    assert!(scratch.read("two.zst.ibf") == scratch.read("plain.txt.ibf"));
}

#[test]
fn text_that_begins_like_a_compressed_file_is_still_text() {
    let scratch = Scratch::new();
    for text in ["(\n", "(\u{b5}/x\n", "\u{1f}\n", "("] {
        scratch.run_with(["build", "-o", "x.ibf", "--rate", "1e-6"], text).succeeds();
        let run = scratch.run_with(["check", "x.ibf"], text).succeeds();
        assert_eq!(run.text().trim_end(), text.trim_end());
    }
}

#[test]
fn with_csv_a_column_is_the_key() {
    let scratch = Scratch::new();
    let csv = "id,e-mail,name\n1,ann@x.org,Ann\n2,\"b,o\"\"b@x.org\",\"Bob\nthe second\"\n";
    scratch
        .run_with(["build", "-o", "mail.ibf", "--rate", "1e-6", "--csv", "e-mail"], csv)
        .succeeds();
    assert_eq!(scratch.info("mail.ibf")["keys"], 2);
    assert_eq!(
        scratch.present("mail.ibf", "ann@x.org\nb,o\"b@x.org\nAnn\n1\ne-mail\n"),
        "ann@x.org\nb,o\"b@x.org\n"
    );

    let question = "e-mail\r\nzoe@x.org\r\nann@x.org\r\n";
    let run = scratch.run_with(["check", "mail.ibf", "--csv", "e-mail"], question).succeeds();
    assert_eq!(run.text(), "ann@x.org\n");
    let run = scratch.run_with(["check", "mail.ibf", "--csv", "e-mail"], gzip(question)).succeeds();
    assert_eq!(run.text(), "ann@x.org\n");
}

#[test]
fn csv_of_many_records_keeps_its_order() {
    let scratch = Scratch::new();
    let csv: String = (0..30_000).map(|i| format!("x,{i}\n")).collect();
    scratch.run_with(["build", "-o", "x.ibf", "--csv", "n"], format!("x,n\n{csv}")).succeeds();
    for threads in ["1", "3"] {
        let args = ["check", "x.ibf", "--csv", "n", "--threads", threads];
        let run = scratch.run_with(args, format!("x,n\n{csv}")).succeeds();
        assert!(run.text() == lines(0..30_000), "--threads {threads}");
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_column() {
    let scratch = Scratch::new();
    scratch.run_with(["build", "-o", "x.ibf", "--csv", "id"], "\u{feff}id,b\n7,8\n").succeeds();
    assert_eq!(scratch.present("x.ibf", "7\n"), "7\n");
}

// ------------------------------------------------------------------------------------------------- check

#[test]
fn absent_prints_the_certain_misses_instead() {
    let scratch = Scratch::new();
    scratch.build("x.ibf", ["--rate", "1e-6"], "cat\ndog\n");
    let run = scratch.run_with(["check", "--absent", "x.ibf"], "cow\ncat\nhen\n").succeeds();
    assert_eq!(run.text(), "cow\nhen\n");
    let run = scratch.run_with(["check", "--absent", "x.ibf"], "cow\nhen\n").ends_with(1);
    assert_eq!(run.text(), "cow\nhen\n");
    let run = scratch.run_with(["check", "--absent", "x.ibf"], "dog\n").succeeds();
    assert_eq!(run.text(), "");
}

#[test]
fn count_prints_only_the_numbers() {
    let scratch = Scratch::new();
    scratch.build("x.ibf", ["--rate", "1e-6"], "cat\ndog\n");
    let run = scratch.run_with(["check", "--count", "x.ibf"], "cat\ncow\ncat\n").succeeds();
    assert_eq!(run.text(), "present  2\nabsent   1\n");
    let run = scratch.run_with(["check", "--count", "--json", "x.ibf"], "cow\n").ends_with(1);
    assert_eq!(run.json(), serde_json::json!({"present": 0, "absent": 1}));
    // There is no JSON of keys, which need not be text: these are the numbers again.
    let run = scratch.run_with(["check", "--json", "x.ibf"], "cat\n").succeeds();
    assert_eq!(run.json(), serde_json::json!({"present": 1, "absent": 0}));
}

#[test]
fn the_status_of_check_is_that_of_grep() {
    let scratch = Scratch::new();
    scratch.build("x.ibf", ["--rate", "1e-6"], "cat\n");
    scratch.run_with(["check", "x.ibf"], "cow\ncat\n").ends_with(0);
    scratch.run_with(["check", "x.ibf"], "cow\n").ends_with(1);
    scratch.run_with(["check", "missing.ibf"], "cat\n").ends_with(2);
    scratch.run_with(["check", "x.ibf", "missing.txt"], "").ends_with(2);
}

#[test]
fn check_prints_in_order_on_any_number_of_threads() {
    let scratch = Scratch::new();
    scratch.write("keys.txt", lines(0..300_000));
    scratch.run(["build", "-o", "x.ibf", "keys.txt"]).succeeds();
    let run = scratch.run(["check", "--threads", "4", "x.ibf", "keys.txt"]).succeeds();
    assert!(run.text() == lines(0..300_000));
}

#[test]
fn a_filter_may_come_from_a_pipe() {
    let scratch = Scratch::new();
    scratch.build("x.ibf", ["--rate", "1e-6"], "cat\n");
    scratch.write("keys.txt", "cow\ncat\n");
    let run = scratch.shell("cat x.ibf | ironbloom check /dev/stdin keys.txt").succeeds();
    assert_eq!(run.text(), "cat\n");
    scratch.shell("cat x.ibf | ironbloom info /dev/stdin").succeeds();
    scratch.shell("cat x.ibf | ironbloom verify /dev/stdin").succeeds();
    scratch.shell("head -c 300 x.ibf | ironbloom verify /dev/stdin").ends_with(2);
}

/// As parallel compressors write it: a frame that decoders skip, then several others.
#[test]
fn zstd_may_begin_with_a_frame_that_is_skipped() {
    let scratch = Scratch::new();
    let keys = lines(0..300);
    for kind in 0x50..=0x5f_u8 {
        let mut file = vec![kind, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4];
        file.extend(zstandard(&lines(0..100)));
        file.extend(zstandard(&lines(100..300)));
        let done = scratch.run_with(["build", "-o", "f.ibf", "--rate", "1e-6"], file);
        done.succeeds();
        assert_eq!(scratch.present("f.ibf", &keys), keys);
        assert_eq!(scratch.info("f.ibf")["keys"], 300);
    }
    // The letter alone is a key.
    scratch.build("f.ibf", [], "P*\nP\n");
    assert_eq!(scratch.present("f.ibf", "P*\nP\n"), "P*\nP\n");
}
