//! Filters of other programs: recognised, asked, converted; Parquet's in their files; Ethereum's in an index.

use std::path::PathBuf;

use crate::program::Scratch;

/// A file that another program has written.
fn golden(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../ironbloom/tests/foreign");
    std::fs::read(folder.join(name)).unwrap()
}

fn text(i: u32) -> String {
    format!("{i}{}", ["", "é", "ab", "漢字", "x€"][i as usize % 5])
}

fn texts(range: std::ops::Range<u32>) -> String {
    range.map(|i| text(i) + "\n").collect()
}

fn numbers(range: std::ops::Range<i64>) -> String {
    range.map(|i| format!("{}\n", i.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64))).collect()
}

#[test]
fn info_recognises_every_format_by_its_content() {
    let here = Scratch::new();
    for (name, by) in [
        ("spark-v1-text.bin", "Spark, version 1"),
        ("spark-v2-long.bin", "Spark, version 2"),
        ("guava-64-long.bin", "Guava, MURMUR128_MITZ_64"),
        ("guava-32-text.bin", "Guava, MURMUR128_MITZ_32"),
        ("datasketches-text.bin", "DataSketches"),
        ("bits-and-blooms.bin", "bits-and-blooms"),
        ("dcso.bin", "DCSO"),
        ("dcso-cli.gz", "DCSO"),
        ("rocksdb.bin", "RocksDB, FastLocalBloom"),
        ("ethereum.bin", "Ethereum, logs"),
    ] {
        here.write(name, golden(name));
        let info = here.info(name);
        assert_eq!((&info["kind"], &info["written_by"]), (&"foreign".into(), &by.into()), "{name}");
        let keys = info["estimated_keys"].as_u64().unwrap();
        assert!(by.starts_with("Ethereum") || (900..1100).contains(&keys), "{name}: {keys}");
    }
    here.write("leveldb.bin", golden("leveldb.bin"));
    here.run(["info", "leveldb.bin"]).ends_with(2);
    let named = here.run(["info", "--format", "leveldb", "--json", "leveldb.bin"]).succeeds();
    assert_eq!(named.json()["written_by"], "LevelDB");
    here.write("t.parquet", golden("duckdb.parquet"));
    let refused = here.run(["info", "t.parquet"]).ends_with(2);
    assert!(refused.stderr.contains("ironbloom parquet blooms"), "{}", refused.stderr);
}

#[test]
fn check_asks_a_foreign_filter_as_it_is() {
    let here = Scratch::new();
    here.write("f", golden("guava-64-text.bin"));
    let all = here.run_with(["check", "f", "--keys", "text", "--count", "--json"], texts(0..1000));
    assert_eq!(all.succeeds().json()["present"], 1000);
    let mostly = ["check", "f", "--keys", "text", "--count", "--json", "--threads", "2"];
    let found = here.run_with(mostly, texts(0..100_000)).succeeds().json();
    assert_eq!(found["present"], 3610, "as Guava has counted them");
    let gzip = golden("dcso-cli.gz");
    here.write("g.gz", gzip);
    assert_eq!(here.run_with(["check", "g.gz"], texts(0..1000)).succeeds().text(), texts(0..1000));
}

/// A wrong guess would answer "absent" to all.
#[test]
fn what_keys_are_must_be_said_and_is_then_remembered() {
    let here = Scratch::new();
    here.write("f", golden("guava-64-long.bin"));
    let refused = here.run_with(["check", "f"], "7\n").ends_with(2);
    assert!(refused.stderr.contains("--keys"), "{}", refused.stderr);
    let refused = here.run_with(["check", "f", "--keys", "long"], "alice\n").ends_with(2);
    assert!(refused.stderr.contains("line 1"), "{}", refused.stderr);
    here.run_with(["check", "f", "--keys", "double"], "7\n").ends_with(2);
    here.write("known", numbers(0..1000));
    let guess = ["convert", "f", "--keys", "text", "--known", "known", "-o", "f.ibf"];
    let refused = here.run(guess).ends_with(2);
    assert!(refused.stderr.contains("known keys are absent"), "{}", refused.stderr);
    assert!(!here.exists("f.ibf"));
    here.run(["convert", "f", "--keys", "long", "--known", "known", "-o", "f.ibf"]).succeeds();
    assert_eq!(here.present("f.ibf", &numbers(0..1000)), numbers(0..1000));
    here.run(["verify", "f.ibf"]).succeeds();
    // What the file says is not overruled.
    let refused = here.run_with(["check", "f.ibf", "--keys", "text"], "7\n").ends_with(2);
    assert!(refused.stderr.contains("its keys are not text"), "{}", refused.stderr);
    assert!(refused.hint().contains("long"), "{}", refused.stderr);
}

/// --keys must agree with the filter.
#[test]
fn keys_of_our_own_filters_have_their_types_and_no_other_form() {
    let here = Scratch::new();
    here.run_with(["build", "-o", "own.ibf"], "7\n").succeeds();
    let refused = here.run_with(["check", "own.ibf", "--keys", "long"], "7\n").ends_with(2);
    assert!(refused.stderr.contains("holds text or bytes, not integers"), "{}", refused.stderr);
    let refused = here.run_with(["check", "own.ibf", "--keys", "double"], "7\n").ends_with(2);
    assert!(refused.stderr.contains("--keys double is for"), "{}", refused.stderr);
}

#[test]
fn a_file_that_is_not_recognised_can_be_named() {
    let here = Scratch::new();
    here.write("f", golden("leveldb.bin"));
    let commands = [
        here.run(["info", "f"]),
        here.run(["check", "f"]),
        here.run(["convert", "f", "-o", "f.ibf"]),
    ];
    for run in commands {
        let refused = run.ends_with(2);
        assert!(refused.stderr.contains("not an Ironbloom filter"), "{}", refused.stderr);
        let hint = refused.hint();
        assert!(hint.contains("--format") && hint.contains("leveldb"), "{}", refused.stderr);
    }
    here.run(["convert", "--format", "leveldb", "f", "-o", "f.ibf"]).succeeds();
    // Where only our own files will do, the way there is named.
    here.write("g", golden("guava-64-long.bin"));
    let commands = [
        here.run(["add", "g"]),
        here.run(["merge", "g", "g", "-o", "h.ibf"]),
        here.run(["remove", "g"]),
    ];
    for run in commands {
        let refused = run.ends_with(2);
        let hint = refused.hint();
        assert!(hint.contains("guava") && hint.contains("convert"), "{}", refused.stderr);
    }
}

#[test]
fn a_filter_goes_to_ibf_and_back_to_the_same_bytes() {
    let here = Scratch::new();
    for (name, to) in [
        ("spark-v1-text.bin", "spark"),
        ("spark-v2-seeded-binary.bin", "spark"),
        ("guava-64-int.bin", "guava"),
        ("datasketches-double.bin", "datasketches"),
        ("bits-and-blooms.bin", "bits-and-blooms"),
        ("dcso.bin", "dcso"),
        ("ethereum.bin", "ethereum"),
    ] {
        here.write(name, golden(name));
        here.run(["convert", name, "-o", "f.ibf"]).succeeds();
        here.run(["convert", "f.ibf", "--to", to, "-o", "again"]).succeeds();
        assert!(here.read("again") == golden(name), "{name}");
        let other = if to == "guava" { "spark" } else { "guava" };
        let refused = here.run(["convert", "f.ibf", "--to", other, "-o", "no"]).ends_with(2);
        assert!(refused.stderr.contains("bits cannot be hashed again"), "{}", refused.stderr);
        assert!(!here.exists("no"), "{name}");
    }
    here.write("old", golden("guava-32-text.bin"));
    let refused = here.run(["convert", "old", "--to", "guava", "-o", "no"]).ends_with(2);
    assert!(refused.stderr.contains("only read"), "{}", refused.stderr);
    here.build("own.ibf", [], "a\nb\n");
    let refused = here.run(["convert", "own.ibf", "--to", "guava", "-o", "no"]).ends_with(2);
    assert!(refused.stderr.contains("xxh3"), "{}", refused.stderr);
}

#[test]
fn build_makes_the_bytes_that_the_other_program_makes() {
    let here = Scratch::new();
    let plan = ["--capacity", "1000", "--rate", "3%"];
    for (format, keys, name) in [
        ("guava", "text", "guava-64-text.bin"),
        ("spark", "text", "spark-v1-text.bin"), // which every release of Spark reads
        ("datasketches", "text", "datasketches-text.bin"),
        ("bits-and-blooms", "text", "bits-and-blooms.bin"),
    ] {
        let options = ["--format", format, "--keys", keys, plan[0], plan[1], plan[2], plan[3]];
        here.build("made", options, &texts(0..1000));
        assert!(here.read("made") == golden(name), "{format}");
    }
    let options = ["--format", "spark", "--format-version", "2", "--keys", "text"];
    let options: [&str; 10] = std::array::from_fn(|i| *options.iter().chain(&plan).nth(i).unwrap());
    here.build("made", options, &texts(0..1000));
    assert!(here.read("made") == golden("spark-v2-text.bin"));
    // gzip has several ways to say the same.
    let options = ["--format", "dcso", plan[0], plan[1], plan[2], plan[3]];
    here.build("made.gz", options, &texts(0..1000));
    here.write("golden.gz", golden("dcso-cli.gz"));
    here.shell("zcat made.gz > a && zcat golden.gz > b && cmp a b").succeeds();
    here.run_with(["build", "--format", "guava", "-o", "no", "--capacity", "9"], "1\n")
        .ends_with(2);
    here.run_with(["build", "--format", "guava", "--keys", "int", "-o", "no"], "1\n").ends_with(2);
    here.run_with(["build", "--format", "rocksdb", "--capacity", "9", "-o", "no"], "1\n")
        .ends_with(2);
    assert!(!here.exists("no"));
}

#[test]
fn keys_can_be_added_to_a_foreign_filter_and_filters_merged() {
    let here = Scratch::new();
    here.write("f", golden("spark-v2-text.bin"));
    here.run(["convert", "f", "--keys", "text", "-o", "f.ibf"]).succeeds();
    here.run_with(["add", "f.ibf", "-o", "more.ibf"], texts(2000..2100)).succeeds();
    assert_eq!(here.present("more.ibf", &texts(2000..2100)), texts(2000..2100));
    here.run(["merge", "f.ibf", "more.ibf", "-o", "both.ibf"]).succeeds();
    assert_eq!(here.present("both.ibf", &texts(0..1000)), texts(0..1000));
}

#[test]
fn a_truncated_foreign_file_is_an_error() {
    let here = Scratch::new();
    let bytes = golden("guava-64-text.bin");
    here.write("short", &bytes[..bytes.len() - 1]);
    here.run(["info", "short"]).ends_with(2);
    let named = here.run(["check", "--format", "guava", "--keys", "text", "short"]).ends_with(2);
    assert!(named.stderr.contains("byte 925"), "{}", named.stderr);
}

#[test]
fn filters_of_a_parquet_file_are_listed_and_asked() {
    let here = Scratch::new();
    here.write("t.parquet", golden("duckdb.parquet"));
    let listed = here.run(["parquet", "blooms", "--json", "t.parquet"]).succeeds().json();
    let listed = listed.as_array().unwrap().clone();
    let columns: Vec<_> = listed.iter().filter(|row| row["row_group"] == 0).collect();
    assert!(columns.len() >= 10 && columns.iter().any(|row| row["column"] == "i8"));
    let check =
        |clause: &str| here.run(["parquet", "check", "t.parquet", "--where", clause, "--json"]);
    assert_eq!(check("i8=-25").succeeds().json().as_array().unwrap().len(), 2);
    assert_eq!(check("i8=100").status, 1);
    assert_eq!(check("day=2026-01-05").succeeds().json().as_array().unwrap().len(), 2);
    assert_eq!(check("d5=0.07").status, 0);
    assert_eq!(check("d5=3.07").status, 1);
    for wrong in ["i8=x", "i8", "nothing=1", "d5=1.234"] {
        assert_eq!(check(wrong).status, 2, "{wrong}");
    }
    here.build("f.ibf", ["--kind", "split-block", "--capacity", "100"], "a\nb\n");
    here.run(["convert", "f.ibf", "--to", "parquet", "-o", "bits"]).succeeds();
    assert_eq!(here.present("bits", "a\nb\nc\n"), "a\nb\n");
}

#[test]
fn times_in_a_parquet_file_are_asked_for_as_text() {
    let here = Scratch::new();
    here.write("t.parquet", golden("times.parquet"));
    let check = |clause: &str| here.run(["parquet", "check", "t.parquet", "--where", clause]);
    for unit in ["ms", "us", "ns"] {
        for (time, status) in [
            ("2026-11-18T09:30:00", 0),
            ("2026-11-18 10:30", 0),
            ("2026-11-18T09:31:00", 1),
            ("2026-11-18T09:30:00.001", 1),
            ("2026-11-18T25:30", 2),
        ] {
            check(&format!("{unit}={time}")).ends_with(status);
            check(&format!("{unit}_utc={time}")).ends_with(status);
        }
        check(&format!("{unit}_utc=2026-11-18T10:30:00+01:00")).succeeds();
        let refused = check(&format!("{unit}=2026-11-18T09:30:00Z")).ends_with(2);
        assert!(refused.stderr.contains("without a zone"), "{}", refused.stderr);
    }
    check("ms=2026-11-18T09:30:00.0005").ends_with(2);
    check("us=2026-11-18T09:30:00.0005").ends_with(1);
}

/// A chain in which block n has the address n mod 10 and, if n is a multiple of 7, a topic.
fn headers(blocks: u64) -> (String, String, String) {
    let address = |n: u64| format!("0x{:040x}", n % 10 + 1);
    let topic = format!("0x{:064x}", 77);
    let here = Scratch::new();
    let lines = (0..blocks).map(|n| {
        let mut keys = address(n) + "\n";
        if n.is_multiple_of(7) {
            keys += &format!("{topic}\n");
        }
        let options = ["--format", "ethereum", "--capacity", "100"];
        here.build("bloom", options, &keys);
        let bloom = String::from_utf8(here.read("bloom")).unwrap();
        format!("{{\"number\":\"{n:#x}\",\"logsBloom\":\"{}\"}}\n", bloom.trim())
    });
    (lines.collect(), address(3), topic)
}

#[test]
fn blocks_that_may_hold_a_log_are_found() {
    let here = Scratch::new();
    let (lines, address, topic) = headers(70);
    here.write("headers.jsonl", &lines);
    here.run(["eth", "index", "headers.jsonl", "-o", "chain.ibe"]).succeeds();
    let find = here.run(["eth", "find", "chain.ibe", "--address", &address]).succeeds();
    assert_eq!(find.text(), "3\n13\n23\n33\n43\n53\n63\n");
    let both = ["eth", "find", "chain.ibe", "--address", &address, "--topic", &topic];
    assert_eq!(here.run(both).succeeds().text(), "63\n");
    let any = [
        "eth",
        "find",
        "chain.ibe",
        "--topic",
        "any",
        "--topic",
        &topic,
        "--from",
        "1",
        "--to",
        "20",
    ];
    assert_eq!(here.run(any).succeeds().text(), "7\n14\n");
    let hex = ["eth", "find", "chain.ibe", "--address", &address, "--from", "0x3e", "--to", "0x3f"];
    assert_eq!(here.run(hex).succeeds().text(), "63\n");
    let none = ["eth", "find", "chain.ibe", "--address", &address, "--from", "64"];
    assert_eq!(here.run(none).status, 1);
    here.run(["eth", "find", "chain.ibe"]).ends_with(2);
    here.run(["eth", "find", "chain.ibe", "--address", "0x12"]).ends_with(2);
    here.run(["eth", "find", "headers.jsonl", "--address", &address]).ends_with(2);
    let header: serde_json::Value = serde_json::from_str(lines.lines().nth(7).unwrap()).unwrap();
    let bloom = header["logsBloom"].as_str().unwrap();
    here.run(["eth", "check", bloom, "--topic", &topic]).succeeds();
    assert_eq!(here.run(["eth", "check", bloom, "--address", &address]).status, 1);
    here.run(["eth", "check", &bloom[..258], "--address", &address]).ends_with(2);
    let swapped: String = lines.lines().rev().map(|line| format!("{line}\n")).collect();
    here.write("swapped.jsonl", swapped);
    let refused = here.run(["eth", "index", "swapped.jsonl", "-o", "no.ibe"]).ends_with(2);
    assert!(refused.stderr.contains("line 2"), "{}", refused.stderr);
    assert!(!here.exists("no.ibe"));
}

/// A dump of one filter of RedisBloom's is a filter; what it holds is shown by the library's tests.
#[test]
fn a_dump_of_redisbloom_is_asked_and_converted() {
    use ironbloom::format::foreign::Format;
    use ironbloom::redisbloom::chain::{Chain, Scaling};
    use ironbloom::redisbloom::limits::MemoryLimit;
    use ironbloom::{AnyFilter, RedisBloom};
    let here = Scratch::new();
    let chain = Chain::new(100, 0.01, Scaling::Growing(2), MemoryLimit::NONE).unwrap();
    let mut filter = AnyFilter::RedisBloom(RedisBloom::Bloom(chain));
    let keys: Vec<String> = (0..300).map(text).collect();
    filter.insert_keys(&keys).unwrap();
    here.write("seen.ibd", Format::RedisBloom.write(&filter).unwrap());
    let info = here.info("seen.ibd");
    assert_eq!(info["written_by"], "RedisBloom, BF");
    assert_eq!(here.present("seen.ibd", &texts(0..300)), texts(0..300));
    here.run(["convert", "seen.ibd", "-o", "seen.ibf"]).succeeds();
    here.run_with(["add", "seen.ibf"], "alice\n").succeeds();
    here.run(["convert", "seen.ibf", "--to", "redisbloom", "-o", "more.ibd"]).succeeds();
    assert_eq!(here.present("more.ibd", "alice\nbob\n"), "alice\n");
    here.run(["convert", "seen.ibf", "--to", "guava", "-o", "no"]).ends_with(2);
}
