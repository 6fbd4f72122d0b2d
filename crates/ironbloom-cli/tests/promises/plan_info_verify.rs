//! The commands that only look: `plan`, `info`, `verify`, `demo`, help, completions and manual pages.

use crate::program::{KINDS, Scratch, lines};
use serde_json::Value;

const COMMANDS: [&str; 12] = [
    "plan",
    "build",
    "check",
    "add",
    "remove",
    "merge",
    "info",
    "verify",
    "dedup",
    "demo",
    "completions",
    "man",
];

// -------------------------------------------------------------------------------------------------- plan

fn plan<const N: usize>(options: [&str; N]) -> Vec<Value> {
    let scratch = Scratch::new();
    let args = ["plan", "--json"].into_iter().chain(options);
    let output = scratch.command(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut rows = document["kinds"].as_array().unwrap().clone();
    // Apart, since it does not count keys: as one of the kinds for what is asked of all.
    let bitmap = &document["bitmap"];
    if let (Some(keys), Some(size)) = (bitmap["integers"].as_u64(), bitmap["size"].as_u64()) {
        assert!(size * 8 - keys < 8, "{bitmap}");
        let row = serde_json::json!({"kind": "bitmap", "keys": keys, "size": size, "rate": 0.0});
        rows.push(row);
    }
    rows
}

fn row<'a>(rows: &'a [Value], kind: &str) -> &'a Value {
    rows.iter().find(|row| row["kind"] == kind).unwrap_or_else(|| panic!("no row for {kind}"))
}

#[test]
fn capacity_and_rate_give_the_size_of_every_kind() {
    let rows = plan(["--capacity", "10M", "--rate", "1%"]);
    let kinds: Vec<&str> = rows.iter().map(|row| row["kind"].as_str().unwrap()).collect();
    let keyed = KINDS.split_last().unwrap().1;
    assert_eq!(kinds, [keyed, &["joint", "bitmap"]].concat());
    for row in rows.iter().filter(|row| row["kind"] != "bitmap") {
        let fields: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
        let all = "kind keys rate bits_per_key size probes cache_lines_per_lookup remove grow merge forget";
        assert_eq!(fields, all.split(' ').collect::<Vec<_>>());
        assert_eq!(row["keys"], 10_000_000);
        assert!(row["rate"].as_f64().unwrap() <= 0.01 * 1.001, "{row}");
        let bits = row["size"].as_f64().unwrap() * 8.0 / 1e7;
        assert!((row["bits_per_key"].as_f64().unwrap() - bits).abs() < 0.01, "{row}");
    }
    // For 1 %: 9.585 bits and 7 probes; a bit a key.
    let bloom = row(&rows, "bloom");
    assert!((bloom["bits_per_key"].as_f64().unwrap() - 9.59).abs() < 0.05);
    assert_eq!(
        (&bloom["probes"], &bloom["remove"], &bloom["merge"]),
        (&7.into(), &false.into(), &true.into())
    );
    assert_eq!(row(&rows, "blocked")["cache_lines_per_lookup"], 1);
    assert_eq!(row(&rows, "cuckoo")["remove"], true);
    assert_eq!(row(&rows, "scalable")["grow"], true);
    assert_eq!(row(&rows, "windowed")["forget"], true);
    assert_eq!(row(&rows, "fuse")["merge"], false);
    assert_eq!(row(&rows, "bitmap")["size"], 1_250_000);
}

#[test]
fn capacity_and_memory_give_the_best_rate_that_fits() {
    let memory = 16 << 20;
    let rows = plan(["--capacity", "10M", "--memory", "16MiB"]);
    for row in rows.iter().filter(|row| !row["size"].is_null()) {
        assert!(row["size"].as_u64().unwrap() <= memory, "{row}");
        assert_eq!(row["keys"], 10_000_000);
    }
    // 13.4 bits a key: (1 - e^(-9/13.42))^9 = 0.16 %.
    let rate = row(&rows, "bloom")["rate"].as_f64().unwrap();
    assert!((0.0014..0.0018).contains(&rate), "{rate}");
    // 4-bit counters leave 3.4 counters a key: a worse rate in the same memory.
    assert!(row(&rows, "counting")["rate"].as_f64().unwrap() > 0.1);
}

#[test]
fn memory_and_rate_give_the_most_keys_that_fit() {
    let rows = plan(["--memory", "64MiB", "--rate", "0.1%"]);
    for row in &rows {
        assert!(row["size"].as_u64().unwrap() <= 64 << 20, "{row}");
    }
    // 2^29 bits at 14.378 bits a key.
    let keys = row(&rows, "bloom")["keys"].as_f64().unwrap();
    assert!((keys / 37.3e6 - 1.0).abs() < 0.01, "{keys}");
    assert_eq!(row(&rows, "bitmap")["keys"], 1u64 << 29);
}

#[test]
fn what_plan_promises_is_what_build_makes() {
    let scratch = Scratch::new();
    let rows = plan(["--capacity", "3000", "--rate", "0.5%"]);
    for kind in KINDS {
        scratch.build(
            "x.ibf",
            ["--kind", kind, "--capacity", "3000", "--rate", "0.5%"],
            &lines(0..3000),
        );
        let planned = row(&rows, kind)["size"].as_u64().unwrap();
        let made = scratch.info("x.ibf")["size"].as_u64().unwrap();
        // Arrays are rounded up to whole cache lines, slices and halves each for itself.
        assert!(
            made >= planned && made - planned <= 64 * 20,
            "{kind}: {planned} planned, {made} made"
        );
    }
}

#[test]
fn a_kind_that_cannot_is_shown_without_numbers() {
    let rows = plan(["--capacity", "1M", "--rate", "1e-12"]);
    assert!(rows.iter().any(|row| row["rate"].is_null()), "some kind does not reach 1e-12");
    assert!(row(&rows, "bloom")["rate"].as_f64().unwrap() <= 1.001e-12);
    let scratch = Scratch::new();
    scratch.refuses(["plan", "--memory", "0", "--rate", "1%"], "", "no kind of filter fits");
}

#[test]
fn the_table_is_for_people() {
    let scratch = Scratch::new();
    let run = scratch.run(["plan", "--capacity", "10M", "--rate", "1%"]).succeeds();
    let text = run.text();
    let (table, advice) = text.split_once("\n\n").unwrap();
    assert_eq!(table.lines().count(), 1 + KINDS.len(), "a heading, rows beside keys, no bitmap");
    assert!(advice.starts_with("Take blocked: "), "{advice}");
    assert!(
        advice.ends_with("\nIf keys are integers below 10,000,000, bitmap is exact in 1.19 MiB.\n"),
        "{advice}"
    );
    assert!(text.starts_with("kind  "));
    assert!(
        text.contains("10,000,000") && text.contains("1.00 %") && text.contains("MiB"),
        "{text}"
    );
}

#[test]
fn plan_recommends_a_kind_for_what_was_asked_and_says_why() {
    let scratch = Scratch::new();
    for (asked, kind, why) in [
        (["--capacity", "10M", "--rate", "1%"], "blocked", "12.04 MiB instead of 11.44 MiB"),
        (
            ["--capacity", "10M", "--rate", "1e-6"],
            "bloom",
            "where blocked, the fastest kind, has 6",
        ),
        (["--capacity", "10M", "--rate", "1e-12"], "bloom", "blocked, does not reach this"),
        (["--capacity", "10M", "--memory", "12MiB"], "blocked", "a rate of 1.02 % instead of"),
        (["--capacity", "10M", "--memory", "64MiB"], "bloom", "a rate of "),
        (["--memory", "64MiB", "--rate", "0.1%"], "blocked", " keys instead of "),
    ] {
        let args = ["plan", "--json"].into_iter().chain(asked);
        let output = scratch.command(args).output().unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let recommendation = &document["recommendation"];
        assert_eq!(recommendation["kind"], kind, "{asked:?}: {recommendation}");
        let reason = recommendation["reason"].as_str().unwrap();
        assert!(reason.starts_with(&format!("Take {kind}: ")), "{reason}");
        assert!(reason.contains(why), "{asked:?}: {reason}");
        let text = scratch.run(["plan", asked[0], asked[1], asked[2], asked[3]]).succeeds().text();
        assert!(text.contains(reason), "{text}");
    }
}

#[test]
fn plan_names_for_other_needs_only_kinds_that_serve_them() {
    let scratch = Scratch::new();
    let plan = |asked: [&str; 4]| {
        scratch.run(["plan", asked[0], asked[1], asked[2], asked[3]]).succeeds().text()
    };
    // Where cuckoo filters do not reach the rate, others that remove are left.
    let rare = plan(["--capacity", "10M", "--rate", "1e-9"]);
    assert!(rare.contains("d-left (58.81 MiB) if keys will be removed"), "{rare}");
    // A fuse filter that is larger, or holds fewer keys, has nothing to offer.
    for asked in [
        ["--capacity", "10", "--rate", "1%"],
        ["--capacity", "10M", "--rate", "99%"],
        ["--memory", "64", "--rate", "1%"],
    ] {
        let text = plan(asked);
        let advice = text.split("\nTake ").nth(1).unwrap();
        assert!(!advice.contains("fuse") && advice.contains("cuckoo ("), "{asked:?}: {advice}");
    }
    assert!(plan(["--capacity", "10M", "--rate", "1%"]).contains("take fuse (9.41 MiB) if all"));
}

#[test]
fn plan_wants_exactly_two_of_three() {
    let scratch = Scratch::new();
    let all = ["--capacity", "10M", "--rate", "1%", "--memory", "1GB"];
    for options in [&all[..0], &all[..2], &all[2..4], &all[4..], &all[..]] {
        let args = ["plan"].into_iter().chain(options.iter().copied());
        let output = scratch.command(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(message.starts_with("error: ") && message.contains("--capacity"), "{message}");
    }
}

#[test]
fn absurd_plans_are_refused() {
    let scratch = Scratch::new();
    for rate in ["0", "1", "1.5", "-1", "nan", "1e-30", "inf", "lots", "150%"] {
        scratch.refuses(["plan", "--capacity", "10", "--rate", rate], "", "");
        scratch.refuses(["plan", "--memory", "1MB", "--rate", rate], "", "");
    }
    for capacity in ["0", "1e18", "1e99", "-1", "1.5", "many", "5%"] {
        scratch.refuses(["plan", "--capacity", capacity, "--rate", "1%"], "", "");
        scratch.refuses(["plan", "--capacity", capacity, "--memory", "1GB"], "", "");
    }
    for memory in ["-1", "1e30", "big", "0.5"] {
        scratch.refuses(["plan", "--memory", memory, "--rate", "1%"], "", "");
    }
}

#[test]
fn plot_draws_every_kind_as_svg() {
    let scratch = Scratch::new();
    for (name, given) in [
        ("a.svg", ["--capacity", "10M", "--rate", "1%"]),
        ("b.svg", ["--memory", "1GB", "--rate", "1%"]),
    ] {
        let [a, b, c, d] = given;
        scratch.run(["plan", a, b, c, d, "--plot", name]).succeeds();
        let svg = String::from_utf8(scratch.read(name)).unwrap();
        well_formed(&svg);
        assert!(svg.starts_with("<svg ") && svg.contains("xmlns=\"http://www.w3.org/2000/svg\""));
        // The segmented form lies on the flat one, and a bitmap's size does not follow from a rate.
        let drawn = KINDS.into_iter().filter(|kind| !["bitmap", "segmented"].contains(kind));
        for kind in drawn {
            assert!(svg.contains(&format!(">{kind}</text>")), "{kind} has no name in the picture");
        }
        assert_eq!(
            svg.matches("<polyline ").count(),
            KINDS.len() - 1,
            "a curve a kind but bitmap, and the bound"
        );
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }
    let run = scratch.run(["plan", "--capacity", "10", "--rate", "1%", "--plot", "no/a.svg"]);
    assert!(run.ends_with(2).stderr.starts_with("error: no/a.svg: "));
}

/// Every element is closed, in order, and no text holds a bare `<` or `&`.
#[track_caller]
fn well_formed(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    for part in svg.split('<').skip(1) {
        let (tag, text) = part.split_once('>').expect("a tag ends");
        assert!(!text.contains('&') && !text.contains('>'), "{text}");
        assert!(tag.matches('"').count().is_multiple_of(2), "{tag}");
        let name = tag.split([' ', '/']).find(|name| !name.is_empty()).unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?} never closed");
}

// ------------------------------------------------------------------------------------------ info, verify

#[test]
fn info_is_one_line_a_field() {
    let scratch = Scratch::new();
    scratch.build("x.ibf", [], &lines(0..1000));
    let text = scratch.run(["info", "x.ibf"]).succeeds().text();
    for line in ["file              x.ibf", "kind              bloom", "capacity          1,000"] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
}

#[test]
fn verify_says_that_files_are_whole() {
    let scratch = Scratch::new();
    scratch.build("a.ibf", [], "1\n");
    scratch.build("b.ibf", ["--kind", "fuse"], "1\n");
    let run = scratch.run(["verify", "a.ibf", "b.ibf"]).succeeds();
    assert_eq!(run.text(), "file   state\na.ibf  whole\nb.ibf  whole\n");
    let run = scratch.run(["verify", "--json", "a.ibf"]).succeeds();
    assert_eq!(run.json(), serde_json::json!([{"file": "a.ibf", "state": "whole"}]));
}

#[test]
fn verify_names_every_damaged_part_of_every_file() {
    let scratch = Scratch::new();
    scratch.build("whole.ibf", [], "1\n");
    scratch.build("x.ibf", ["--capacity", "200k"], &lines(0..1000));
    let mut bytes = scratch.read("x.ibf");
    assert!(bytes.len() > 3 * 65536, "three chunks and a rest");
    bytes[256 + 65536 + 5] ^= 1;
    bytes[256 + 2 * 65536] ^= 0x80;
    scratch.write("x.ibf", &bytes);
    scratch.write("header.ibf", [&bytes[..30], &[!bytes[30]], &bytes[31..]].concat());
    scratch.write("short.ibf", &bytes[..1000]);
    let args = ["verify", "missing.ibf", "x.ibf", "whole.ibf", "header.ibf", "short.ibf"];
    let run = scratch.run(args).ends_with(2);
    assert_eq!(run.stderr, "error: 4 of 5 files damaged or unreadable\n");
    let text = run.text();
    let state = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    let damage = state("x.ibf");
    assert!(damage.contains("payload damaged in bytes 65792..131328"), "{damage}");
    assert!(damage.contains("payload damaged in bytes 131328..196864"), "{damage}");
    assert!(state("whole.ibf").ends_with(" whole"));
    assert!(state("header.ibf").contains("header damaged in bytes 0..256"));
    assert!(state("short.ibf").contains("cut short: 1000 bytes of "));
    assert!(state("missing.ibf").contains("No such file"));
}

// ------------------------------------------------------------------------------------------------- words

/// Five sigma or more for 200,000 questions, from 0.18 % on.
#[test]
fn demo_tells_rows_from_mixtures_of_rows() {
    let scratch = Scratch::new();
    let findings = scratch.run(["demo", "attributes", "--json"]).succeeds().json();
    let records = findings[0]["results"].as_array().unwrap();
    assert_eq!(records.len(), 4 * 6, "six structures for two to five attributes");
    for record in records {
        let (theory, found) = (&record["theory"], &record["false_positives"]);
        let (theory, found) = (theory.as_f64().unwrap(), found.as_f64().unwrap());
        assert!((found / theory - 1.0).abs() < 0.27, "{record}");
        let plain = record["structure"] == "PBF";
        assert_eq!(found == 1.0, plain, "{record}");
        let joint = record["structure"] == "joint";
        assert_eq!(record["bits_per_row"].as_f64().unwrap() < 14.0, joint, "{record}");
    }
}

#[test]
fn demo_measures_the_rate_that_theory_gives() {
    let scratch = Scratch::new();
    let findings = scratch.run(["demo", "strings", "--json"]).succeeds().json();
    let results = findings[0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 3);
    for result in results {
        // 50,000 probes: one standard deviation is 0.044 %.
        let measured = result["measured_percent"].as_f64().unwrap();
        assert!((measured - 1.0).abs() < 6.0 * 0.044, "{result}");
    }
    let text = scratch.run(["demo", "double-hashing"]).succeeds().text();
    assert!(text.lines().count() > 10, "{text}");
    scratch.refuses(["demo", "magic"], "", "");
}

#[test]
fn help_has_an_example_for_every_command() {
    let scratch = Scratch::new();
    for command in COMMANDS {
        let help = scratch.run([command, "--help"]).succeeds().text();
        let examples = help.split_once("Example").expect(command).1;
        assert!(examples.contains("ironbloom"), "{command}");
        let short = scratch.run([command, "-h"]).succeeds().text();
        assert!(short.starts_with(help.lines().next().unwrap()), "{command}");
        assert_eq!(scratch.run(["help", command]).succeeds().text(), help, "{command}");
    }
    let help = scratch.run(["--help"]).succeeds().text();
    assert!(COMMANDS.iter().all(|command| help.contains(&format!("\n  {command} "))));
    assert!(scratch.run(["--version"]).succeeds().text().starts_with("ironbloom "));
}

#[test]
fn without_a_command_there_is_help() {
    let run = Scratch::new().run([]).ends_with(2);
    assert!(run.stderr.contains("Usage: ironbloom <COMMAND>"), "{}", run.stderr);
}

#[test]
fn completions_exist_for_the_shells() {
    let scratch = Scratch::new();
    for shell in ["bash", "zsh", "fish"] {
        let text = scratch.run(["completions", shell]).succeeds().text();
        assert!(COMMANDS.iter().all(|command| text.contains(command)), "{shell}");
        // The words that options take: formats, what keys are, probe schemes.
        for word in ["guava", "spark", "chars", "enhanced"] {
            assert!(text.contains(word), "{shell} completes no {word}");
        }
    }
    scratch.refuses(["completions", "dos"], "", "");
}

#[test]
fn there_is_a_manual_page_for_the_program_and_for_every_command() {
    let scratch = Scratch::new();
    let page = scratch.run(["man"]).succeeds().text();
    assert!(page.contains(".TH ironbloom") && page.contains(".SH SYNOPSIS"), "{page}");
    for command in COMMANDS {
        let page = scratch.run(["man", command]).succeeds().text();
        assert!(page.contains(&format!(".TH ironbloom-{command}")), "{page}");
    }
    scratch.refuses(["man", "fly"], "", "no command \"fly\"");
}
