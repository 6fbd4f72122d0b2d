//! Filters in shards, over the servers of a cluster.

use std::io::Write as _;
use std::process::Stdio;

use super::{keys, redis, redis_with, refused, url};
use crate::program::{Scratch, lines};
use ironbloom_testing::Start as _;
use ironbloom_testing::cluster::cluster;
use ironbloom_testing::module::{Client, Server, programs};

#[test]
fn a_filter_in_shards_spreads_over_a_cluster_and_answers_as_one() {
    for program in programs() {
        let (masters, scratch) = (cluster(&program), Scratch::new());
        scratch.write("keys.txt", lines(0..30_000));
        let load =
            ["load", "--lines", "keys.txt", "--shards", "12", "--rate", "0.1%", "--key", "seen"];
        redis(&scratch, &masters[0], &load).succeeds();
        for master in &masters {
            let found = keys(&mut master.client());
            assert!(found.iter().any(|key| key.starts_with("{seen:")), "{found:?}");
            assert!(!found.iter().any(|key| key.contains("loading")), "{found:?}");
        }
        // Any server of the cluster may be asked, and the number of shards need not be known.
        scratch.write("asked.txt", lines(0..60_000));
        for master in &masters {
            let run = redis(&scratch, master, &["check", "asked.txt", "--key", "seen"]).succeeds();
            let text = run.text();
            assert!(text.starts_with(&lines(0..30_000)));
            // 30 wrong ones expected, six sigma: 63.
            let wrong = text.lines().count() - 30_000;
            assert!((1..63).contains(&wrong), "{wrong}");
            let again =
                redis(&scratch, master, &["check", "asked.txt", "--key", "seen", "--shards", "12"]);
            assert_eq!(again.text(), text);
        }
        let run =
            redis(&scratch, &masters[1], &["check", "asked.txt", "--key", "seen", "--shards", "8"]);
        refused(&run, "seen: is in 12 shards, not in 8", "leave --shards out");

        // To a server alone, and back under another name.
        let alone = Server::start(&program, &[]);
        redis(&scratch, &masters[2], &["dump", "--key", "seen", "-o", "seen.ibd"]).succeeds();
        let run = redis(&scratch, &alone, &["load", "seen.ibd", "--key", "copy", "--shards", "3"]);
        refused(&run, "seen.ibd: a dump of 12 shards, not of 3 shards", "leave --shards out");
        redis(&scratch, &alone, &["load", "seen.ibd", "--key", "copy"]).succeeds();
        let there = redis(&scratch, &masters[0], &["check", "asked.txt", "--key", "seen"]).text();
        assert!(redis(&scratch, &alone, &["check", "asked.txt", "--key", "copy"]).text() == there);
        assert_eq!(keys(&mut alone.client()).len(), 13);
    }
}

#[test]
fn a_slot_that_moves_is_followed() {
    for program in programs().into_iter().take(1) {
        let (masters, scratch) = (cluster(&program), Scratch::new());
        scratch.write("keys.txt", lines(0..5000));
        let load = ["load", "--lines", "keys.txt", "--shards", "3", "--key", "seen"];
        redis(&scratch, &masters[0], &load).succeeds();
        // The program starts, asks for the slots, and waits for keys; then a slot moves.
        let mut command =
            scratch.command(["redis", "check", "--key", "seen", "--url", &url(&masters[0])]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.start();
        let mut pipe = child.stdin.take().unwrap();
        let mut first = String::new();
        let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
        writeln!(pipe, "0").unwrap();
        std::io::BufRead::read_line(&mut out, &mut first).unwrap();
        assert_eq!(first, "0\n");
        let from =
            masters.iter().position(|m| keys(&mut m.client()).contains(&"{seen:1/3}".to_owned()));
        let (from, to) = (from.unwrap(), (from.unwrap() + 1) % 3);
        let mut clients: Vec<Client> = masters.iter().map(Server::client).collect();
        let slot = clients[0].text("CLUSTER KEYSLOT {seen:1/3}")[1..].trim().to_owned();
        let id =
            |client: &mut Client| client.text("CLUSTER MYID").lines().nth(1).unwrap().to_owned();
        let (from_id, to_id) = (id(&mut clients[from]), id(&mut clients[to]));
        let mut ok =
            |who: usize, command: String| assert_eq!(clients[who].text(&command), "+OK\r\n");
        ok(to, format!("CLUSTER SETSLOT {slot} IMPORTING {from_id}"));
        ok(from, format!("CLUSTER SETSLOT {slot} MIGRATING {to_id}"));
        ok(from, format!("MIGRATE 127.0.0.1 {} {{seen:1/3}} 0 5000", masters[to].port));
        ok(to, format!("CLUSTER SETSLOT {slot} NODE {to_id}"));
        ok(from, format!("CLUSTER SETSLOT {slot} NODE {to_id}"));
        pipe.write_all(lines(1..5000).as_bytes()).unwrap();
        drop(pipe);
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut out, &mut rest).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert!(rest == lines(1..5000), "{} lines", rest.lines().count());
    }
}

#[test]
fn shards_are_replaced_by_more_or_fewer_or_by_one_filter() {
    for program in programs().into_iter().take(1) {
        let (server, scratch) = (Server::start(&program, &[]), Scratch::new());
        let mut client = server.client();
        scratch.write("keys.txt", lines(0..3000));
        scratch.build("one.ibf", ["--kind", "blocked"], &lines(0..3000));
        let all = |scratch: &Scratch| {
            let run = redis_with(scratch, &url(&server), &["check", "--key", "k"], &lines(0..3000));
            assert!(run.text() == lines(0..3000));
        };
        for (shards, kind) in [("4", "blocked"), ("4", "cuckoo"), ("2", "bloom"), ("5", "blocked")]
        {
            let load =
                ["load", "--lines", "keys.txt", "--key", "k", "--shards", shards, "--kind", kind];
            if shards != "4" {
                refused(
                    &redis(&scratch, &server, &load),
                    "k: this key exists already",
                    "--replace",
                );
            }
            let replace: Vec<&str> = load.into_iter().chain(["--replace"]).collect();
            redis(&scratch, &server, &replace).succeeds();
            let expected = shards.parse::<usize>().unwrap() + 1;
            assert_eq!(keys(&mut client).len(), expected, "{:?}", keys(&mut client));
            all(&scratch);
        }
        redis(&scratch, &server, &["load", "one.ibf", "--key", "k", "--replace"]).succeeds();
        assert_eq!(keys(&mut client), ["k"]);
        all(&scratch);
        let run =
            redis_with(&scratch, &url(&server), &["check", "--key", "k", "--shards", "2"], "1\n");
        refused(&run, "k: is one filter, not shards", "leave --shards out");
    }
}

#[test]
fn a_shard_that_is_missing_is_an_error_and_not_an_answer() {
    for program in programs().into_iter().take(1) {
        let (server, scratch) = (Server::start(&program, &[]), Scratch::new());
        scratch.write("keys.txt", lines(0..1000));
        let load = ["load", "--lines", "keys.txt", "--key", "k", "--shards", "3"];
        redis(&scratch, &server, &load).succeeds();
        server.client().text("DEL {k:1/3}");
        let run = redis(&scratch, &server, &["check", "keys.txt", "--key", "k"]);
        refused(&run, "{k:1/3}: is missing, a shard of k", "--replace");
        assert_eq!(run.text(), "");
        let run = redis(&scratch, &server, &["dump", "--key", "k", "-o", "file"]);
        refused(&run, "{k:1/3}: is missing, a shard of k", "--replace");
        assert!(!scratch.exists("file"));
    }
}
