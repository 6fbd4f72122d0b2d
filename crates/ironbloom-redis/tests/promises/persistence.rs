//! Promise: files, dumps and replicas hold what was acknowledged, and RedisBloom's own files and dumps are read.

use crate::common::envelope;
use crate::common::*;
use ironbloom_testing::module::{
    Client, Server, all_programs as programs, assert_equal, replica_of, save_or_rewrite,
};
use ironbloom_testing::wait_until;

/// Fills a golden filter through commands, and checks every reply.
fn fill(client: &mut Client, case: &str) {
    let golden = golden(case);
    let setup = match case {
        "bf_default" | "cf_default" => None,
        "bf_binary" => Some("BF.RESERVE bf_binary 0.01 500".to_owned()),
        _ => Some(golden["setup"][0].as_str().unwrap().to_owned()),
    };
    if let Some(command) = setup {
        assert_eq!(client.text(&command), "+OK\r\n", "{command}");
    }
    let inserted = digits(&golden["inserted"]).as_bytes();
    if case.starts_with("bf") {
        for (key, &digit) in chain_keys(case).iter().zip(inserted) {
            let reply = client.call_words(&[b"BF.ADD", case.as_bytes(), key]);
            assert_eq!(reply, [b':', digit, b'\r', b'\n'], "{case}");
        }
        return;
    }
    for (i, &digit) in inserted.iter().enumerate() {
        let (command, key) = match case {
            "cf_nx_dups" if i < 1500 => ("CF.ADDNX", key(i % 1000)),
            "cf_nx_dups" => ("CF.ADD", key((i - 1500) % 30)),
            _ => ("CF.ADD", key(i)),
        };
        let reply = client.text(&format!("{command} {case} {key}"));
        assert_eq!(reply, format!(":{}\r\n", char::from(digit)), "{case}");
    }
    if case == "cf_bucket4" {
        for i in (0..900).step_by(3) {
            assert_eq!(client.text(&format!("CF.DEL {case} {}", key(i))), ":1\r\n");
        }
    }
}

/// Checks a golden filter against all that RedisBloom said of it.
fn check(client: &mut Client, case: &str) {
    let golden = golden(case);
    let family = &case[..2].to_uppercase();
    assert!(client.scandump(family, case) == scandump(&golden), "{case}: SCANDUMP");
    let theirs = unbase64(digits(&golden["dump"]));
    let ours = client.bytes(&[b"DUMP", case.as_bytes()]);
    assert!(envelope::open(&ours) == envelope::open(&theirs), "{case}: DUMP");
    if ours[ours.len() - 10..ours.len() - 8] == theirs[theirs.len() - 10..theirs.len() - 8] {
        assert!(ours == theirs, "{case}: DUMP of the same version of the server, byte for byte");
    }
    let Some(exists) = golden["exists"].as_str() else { return };
    let count = exists.len() - 4000;
    let mut answers = String::new();
    for group in (0..count).chain(20_000..24_000).collect::<Vec<_>>().chunks(500) {
        let keys: Vec<String> = group.iter().map(|&i| key(i)).collect();
        let reply = client.text(&format!("{family}.MEXISTS {case} {}", keys.join(" ")));
        answers.extend(reply.lines().skip(1).map(|line| line.trim_start_matches(':')));
    }
    assert!(answers == exists, "{case}: {family}.MEXISTS");
    let debug = client.text(&format!("{family}.DEBUG {case}"));
    let lines = match &golden["debug"] {
        serde_json::Value::Array(lines) => lines.clone(),
        line => vec![line.clone()],
    };
    for line in lines {
        assert!(debug.contains(line.as_str().unwrap()), "{case}: {debug}");
    }
    if client.info("server", "redis_version").starts_with("7.0.") {
        let usage = client.text(&format!("MEMORY USAGE {case}"));
        assert_eq!(usage, format!(":{}\r\n", golden["memory_usage"]), "{case}");
    }
}

fn cases() -> impl Iterator<Item = &'static str> {
    CHAINS.into_iter().chain(CUCKOOS)
}

#[test]
fn golden_filters_are_made_by_commands() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        for case in cases() {
            fill(&mut client, case);
            check(&mut client, case);
        }
    }
}

#[test]
fn dumps_of_redisbloom_are_restored() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        for case in cases() {
            let dump = unbase64(digits(&golden(case)["dump"]));
            let reply = client.call_words(&[b"RESTORE", case.as_bytes(), b"0", &dump]);
            assert_eq!(reply, b"+OK\r\n", "{case}");
            check(&mut client, case);
            // The other way: pieces.
            client.call(&format!("DEL {case}"));
            let family = &case[..2].to_uppercase();
            for (iterator, piece) in scandump(&golden(case)) {
                let (command, iterator) = (format!("{family}.LOADCHUNK"), iterator.to_string());
                let words: [&[u8]; 4] =
                    [command.as_bytes(), case.as_bytes(), iterator.as_bytes(), &piece];
                assert_eq!(client.call_words(&words), b"+OK\r\n", "{case}");
            }
            check(&mut client, case);
        }
    }
}

#[test]
fn files_of_redisbloom_are_read() {
    for program in programs() {
        for name in ["redisbloom-2.8.rdb", "redisbloom-8.rdb"] {
            let version = Server::start(&program, &[]).client().info("server", "redis_version");
            let is_old = version.starts_with("6.") || version.starts_with("7.");
            if name == "redisbloom-8.rdb" && is_old {
                continue; // Written by Redis 8; older servers and Valkey do not read its version.
            }
            let file = std::fs::read(golden_path(name)).unwrap();
            let options = ["--dbfilename", "golden.rdb"];
            let server = Server::start_with_files(&program, &options, &[("golden.rdb", file)]);
            let mut client = server.client();
            cases().for_each(|case| check(&mut client, case));
        }
    }
}

#[test]
fn filters_survive_saving_rewriting_and_restarts() {
    for program in programs() {
        for options in [
            &["--dbfilename", "a.rdb"][..],
            &["--appendonly", "yes", "--appendfsync", "no"],
            &["--appendonly", "yes", "--appendfsync", "no", "--aof-use-rdb-preamble", "no"],
        ] {
            let mut server = Server::start(&program, options);
            let mut client = server.client();
            cases().for_each(|case| fill(&mut client, case));
            save_or_rewrite(&mut client, options);
            let digest = client.text("DEBUG DIGEST");
            server.kill_and_restart();
            let mut client = server.client();
            cases().for_each(|case| check(&mut client, case));
            assert_eq!(client.text("DEBUG DIGEST"), digest, "{options:?}");
        }
    }
}

/// Ends the server in the midst of commands: what was acknowledged must be there.
#[test]
fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    for program in programs() {
        let options = ["--appendonly", "yes", "--appendfsync", "always"];
        let mut server = Server::start(&program, &options);
        let mut acknowledged = 0;
        for round in 0..4 {
            let mut client = server.client();
            // Commands are under way when the end comes: some acknowledged, some not.
            let end = acknowledged + 150 + 37 * round;
            let ahead = 20;
            for i in acknowledged..end + ahead {
                let command = if i % 2 == 0 { "BF.ADD b" } else { "CF.ADD c" };
                let words = format!("{command} {}", key(i));
                let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
                client.send(&words).unwrap();
                if i >= acknowledged + ahead && i < end {
                    client.receive().unwrap();
                }
            }
            server.kill_and_restart();
            let mut client = server.client();
            for i in 0..end - ahead {
                let command = if i % 2 == 0 { "BF.EXISTS b" } else { "CF.EXISTS c" };
                let reply = client.text(&format!("{command} {}", key(i)));
                assert_eq!(reply, ":1\r\n", "{}: key {i} of {end} is lost", program.display());
            }
            acknowledged = end - ahead;
        }
    }
}

#[test]
fn replicas_have_the_same_filters_whatever_their_settings() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        fill(&mut client, "cf_nx_dups");
        let replica = replica_of(&server, &program, &[]);
        let mut other = replica.client();
        for (name, value) in [
            ("bf-initial-size", "7"),
            ("bf-error-rate", "0.2"),
            ("bf-expansion-factor", "0"),
            ("cf-initial-size", "64"),
            ("cf-bucket-size", "4"),
            ("cf-max-expansions", "1"),
            ("key-memory-limit", "64"),
        ] {
            other.configure(name, value);
        }
        fill(&mut client, "bf_default");
        fill(&mut client, "cf_default");
        fill(&mut client, "cf_bucket4");
        for command in [
            "BF.MADD made a b a c",
            "BF.INSERT made2 CAPACITY 5 NONSCALING ITEMS a b c d e f g h",
            "BF.RESERVE full 0.01 2 NONSCALING",
            "BF.MADD full 1 2 3 4",
            "BF.ADD full 9",
            "CF.RESERVE cfull 4 EXPANSION 0",
            "CF.INSERT cfull ITEMS 1 2 3 4 5 6 7 8",
            "CF.INSERTNX cfull ITEMS 1 2 11",
            "CF.INSERTNX made3 ITEMS a b a c",
            "CF.COMPACT cf_bucket4",
            "BF.RESERVE one 0.01 100",
            "BF.RESERVE two 0.01 100",
            "BF.MADD one a b c",
            "BF.MADD two c d e",
            "BF.MERGE three one two",
        ] {
            client.call(command);
        }
        assert_equal(&server, &replica);
        assert!(!replica.log().contains("== CRITICAL =="), "{}", replica.log());
        // The replica is the primary now, and goes on.
        other.call("REPLICAOF NO ONE");
        assert_eq!(other.text("BF.EXISTS three d"), ":1\r\n");
    }
}

#[test]
fn commands_that_change_nothing_are_not_replicated() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let replica = replica_of(&server, &program, &[]);
        let mut client = server.client();
        client.call("BF.MADD b x y");
        client.call("CF.ADD c x");
        client.call("BF.RESERVE full 0.01 1 NONSCALING");
        client.call("BF.ADD full x");
        assert_equal(&server, &replica);
        let before = client.info("stats", "total_error_replies");
        let dirty = client.info("persistence", "rdb_changes_since_last_save");
        for command in [
            "BF.ADD b x",
            "BF.MADD b x y",
            "BF.INSERT b ITEMS x",
            "CF.ADDNX c x",
            "CF.INSERTNX c ITEMS x x",
            "CF.DEL c absent",
            "BF.ADD full other",
            "BF.EXISTS b x",
        ] {
            client.call(command);
        }
        assert_eq!(client.info("persistence", "rdb_changes_since_last_save"), dirty);
        assert_ne!(client.info("stats", "total_error_replies"), before, "the full filter said no");
        client.call("BF.ADD b new");
        assert_ne!(client.info("persistence", "rdb_changes_since_last_save"), dirty);
        assert_equal(&server, &replica);
    }
}

/// The older file stays, and a server starts with it. Only a module with assertions fails on demand.
#[cfg(debug_assertions)]
#[test]
fn a_value_that_cannot_be_written_makes_the_save_fail() {
    for program in programs() {
        for made in ["BF.RESERVE k 0.01 100", "CF.RESERVE k 100 ERROR 0.01", "TDIGEST.CREATE k"] {
            let options = ["--dbfilename", "a.rdb"];
            let mut server = Server::start(&program, &options);
            let mut client = server.client();
            assert_eq!(client.text(made), "+OK\r\n");
            assert_eq!(client.text("SAVE"), "+OK\r\n");
            let path = server.folder().join("a.rdb");
            let before = std::fs::read(&path).unwrap();
            let fault = server.folder().join("ironbloom-fails-to-save");
            std::fs::write(&fault, "").unwrap();
            client.call("SET other value");
            assert!(client.text("SAVE").starts_with('-'), "{made}");
            assert_eq!(std::fs::read(&path).unwrap(), before, "{made}");
            client.call("BGSAVE");
            wait_until(|| client.info("persistence", "rdb_last_bgsave_status") == "err");
            assert_eq!(std::fs::read(&path).unwrap(), before, "{made}");
            client.call("CONFIG SET aof-use-rdb-preamble no");
            client.call("BGREWRITEAOF");
            wait_until(|| client.info("persistence", "aof_last_bgrewrite_status") == "err");
            std::fs::remove_file(&fault).unwrap();
            server.kill_and_restart();
            assert_eq!(server.client().text("EXISTS k other"), ":1\r\n", "{made}");
            let mut client = server.client();
            client.call("SET other value");
            assert_eq!(client.text("SAVE"), "+OK\r\n");
        }
    }
}
