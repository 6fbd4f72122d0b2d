//! Before a server is moved: what cannot move is named.

use super::redis;
use crate::program::Scratch;
use ironbloom_testing::module::{Server, programs};

#[test]
fn keys_that_cannot_move_are_named_before_anything_is_moved() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let (scratch, mut client) = (Scratch::new(), server.client());
        for command in
            ["BF.ADD seen x", "CF.ADD drawer x", "CF.RESERVE unused 100", "BF.ADD word:seen x"]
        {
            assert!(!client.text(command).starts_with('-'), "{command}");
        }
        let run = redis(&scratch, &server, &["dump", "--dry-run", "--json", "--key", "*seen"]);
        let all = run.succeeds().json();
        assert_eq!(all.as_array().unwrap().len(), 2, "{all}");

        for command in [
            "CMS.INITBYDIM word:counts 10 2",
            "TOPK.RESERVE word:top 5",
            "TDIGEST.CREATE word:times",
        ] {
            assert_eq!(client.text(command), "+OK\r\n", "{command}");
        }
        let run = redis(&scratch, &server, &["dump", "--dry-run", "--json"]);
        assert_eq!(run.status, 1, "{}", run.stderr);
        let all = run.json();
        let found: Vec<(&str, &str, &str)> = all
            .as_array()
            .unwrap()
            .iter()
            .map(|one| ["key", "layout", "moves"].map(|name| one[name].as_str().unwrap()))
            .map(|[key, layout, moves]| (key, layout, moves))
            .collect();
        let expected = [
            ("drawer", "redisbloom cuckoo", "yes"),
            ("seen", "redisbloom", "yes"),
            ("unused", "redisbloom cuckoo", "no"),
            ("word:seen", "redisbloom", "yes"),
            ("word:counts", "count-min sketch", "no"),
            ("word:times", "t-digest", "no"),
            ("word:top", "top-k", "no"),
        ];
        assert_eq!(found, expected);
        assert!(all[4]["reason"].as_str().unwrap().contains("DUMP and RESTORE"), "{all}");
        let table = redis(&scratch, &server, &["dump", "--dry-run"]);
        assert!(table.stderr.contains("cannot move: 4"), "{}", table.stderr);

        let records = redis(&scratch, &server, &["info", "--json"]).succeeds().json();
        let names: Vec<&str> =
            records.as_array().unwrap().iter().map(|one| one["key"].as_str().unwrap()).collect();
        assert!(names.ends_with(&["word:counts", "word:times", "word:top"]), "{names:?}");
        assert_eq!(records[6]["layout"], "top-k", "{records}");
    }
}
