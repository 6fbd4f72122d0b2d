//! `ironbloom store`: the measurement runs, finds the same with and without the guard, and its statistics can be read.

use crate::program::Scratch;

#[test]
fn a_measurement_counts_what_it_skips_and_leaves_statistics() {
    let scratch = Scratch::new();
    let args = "store bench --keys 20k --lookups 4k --rounds 2 --rate 1% --dir here --json";
    for kind in ["blocked", "cuckoo", "d-left", "scalable"] {
        let report = scratch.shell(&format!("ironbloom {args} --kind {kind}")).succeeds().json();
        let rounds = report["rounds"].as_array().unwrap();
        assert_eq!(rounds.len(), 4);
        assert!(rounds.iter().all(|row| row["lookups_per_s"].as_f64().unwrap() > 0.0));
        let stats = &report["stats"];
        assert_eq!(stats["kind"], kind);
        assert_eq!(stats["lookups"], 8000);
        assert_eq!(stats["unguarded"], 0);
        // 90 % of 8000 are absent, and 1 % of these reach the store in vain: six standard deviations are 161 + 51.
        let skipped = stats["reads_avoided"].as_u64().unwrap();
        assert!((6916..7340).contains(&skipped), "{kind}: {skipped}");
        assert!(stats["rate_measured"].as_f64().unwrap() < 0.0171, "{kind}: {stats}");
        assert!(stats["choices"].as_array().unwrap().len() > 10);

        let shown = scratch.run(["store", "stats", "--json", "here/bench-20000-100.redb"]);
        assert_eq!(shown.succeeds().json()["reads_avoided"], stats["reads_avoided"]);
        // The next kind finds another filter than it asks for, and counts from there.
        std::fs::remove_file(scratch.path("here/bench-20000-100.ibg")).unwrap();
    }
    let run = scratch.run(["store", "bench", "--keys", "2k", "--lookups", "500"]);
    let text = run.succeeds().text();
    for word in ["guarded", "p99", "bits/key", "reads avoided", "overhead on hits", "delta"] {
        assert!(text.contains(word), "{word} is not in\n{text}");
    }
}

#[test]
fn what_cannot_be_measured_or_shown_is_an_error_with_its_name() {
    let scratch = Scratch::new();
    for (args, word) in [
        ("store stats nothing.redb", "nothing.ibg"),
        ("store bench --kind windowed", "window"),
        ("store bench --kind chocolate", "chocolate"),
        ("store bench --miss 150%", "--miss"),
        ("store bench --keys 0", "nothing to do"),
        ("store bench --backend postgres", "--url"),
        (
            "store bench --backend redis --url redis://:secret@127.0.0.1:1/",
            "error: redis://127.0.0.1:1/: Connection refused (os error 111)",
        ),
    ] {
        let run = scratch.shell(&format!("ironbloom {args}")).ends_with(2);
        assert!(run.stderr.contains(word), "{args}: {}", run.stderr);
    }
    scratch.write("bad.ibg", b"not one");
    let run = scratch.run(["store", "stats", "bad.ibg"]).ends_with(2);
    assert!(run.stderr.contains("damaged"), "{}", run.stderr);
}
