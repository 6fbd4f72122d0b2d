//! `ironbloom redis info`: what is on a server.

use super::{madd, redis, refused, url};
use crate::program::{Scratch, lines};
use ironbloom_testing::cluster::cluster;
use ironbloom_testing::module::{Server, programs};

/// The records of `redis info`, by key.
fn info(scratch: &Scratch, server: &Server, args: &[&str]) -> Vec<serde_json::Value> {
    let args: Vec<&str> = ["info", "--json"].iter().chain(args).copied().collect();
    redis(scratch, server, &args).succeeds().json().as_array().unwrap().clone()
}

#[test]
fn info_lists_the_filters_of_a_server_with_advice() {
    for program in programs() {
        let (server, scratch) = (Server::start(&program, &[]), Scratch::new());
        let mut client = server.client();
        assert_eq!(info(&scratch, &server, &[]), [] as [serde_json::Value; 0]);
        for command in [
            "SET other value",
            "BF.RESERVE growing 0.01 1000",
            "BF.RESERVE blocked 0.01 1000 LAYOUT BLOCKED NONSCALING",
            "BF.RESERVE window 0.01 1000 WINDOW 500",
            "CF.RESERVE cuckoo 1000",
            "CF.RESERVE native 1000 ERROR 0.001",
            "BF.RESERVE roomy 0.01 1000000",
        ] {
            assert_eq!(client.text(command), "+OK\r\n", "{command}");
        }
        madd(&mut client, "BF.MADD growing", 0..5000);
        madd(&mut client, "BF.MADD blocked", 0..950);
        madd(&mut client, "BF.MADD window", 0..5000);
        madd(&mut client, "CF.INSERT cuckoo ITEMS", 0..100);
        madd(&mut client, "CF.INSERT native ITEMS", 0..2500);
        let records = info(&scratch, &server, &[]);
        let column = |name: &str| -> Vec<String> {
            let cells = records.iter().map(|record| &record[name]);
            cells.map(|cell| cell.as_str().map_or(cell.to_string(), str::to_owned)).collect()
        };
        let keys = ["blocked", "cuckoo", "growing", "native", "roomy", "window"];
        assert_eq!(column("key"), keys);
        let layouts =
            ["blocked", "redisbloom cuckoo", "redisbloom", "cuckoo", "redisbloom", "window"];
        assert_eq!(column("layout"), layouts);
        assert_eq!(column("stages"), ["1", "1", "3", "3", "1", "1"]);
        for (record, advice) in records.iter().zip([
            Some("% full, will soon refuse keys: rebuild for 2 k"),
            None,
            Some("3 stages, rate now "),
            Some("3 stages, rate now "),
            None,
            None,
        ]) {
            match advice {
                Some(words) => {
                    assert!(record["advice"].as_str().unwrap().contains(words), "{record}")
                }
                None => assert!(record["advice"].is_null(), "{record}"),
            }
            let number = |name: &str| record[name].as_f64().unwrap();
            assert!((0.0..0.6).contains(&number("fill")) || record["key"] == "native", "{record}");
            assert!((0.0..0.05).contains(&number("rate_now")), "{record}");
            assert!(number("memory") > 500.0 && number("capacity") >= 500.0, "{record}");
        }
        assert!(
            records[2]["advice"].as_str().unwrap().ends_with("rebuild for 10 k"),
            "{}",
            records[2]
        );
        let table = redis(&scratch, &server, &["info"]).succeeds().text().to_owned();
        assert!(table.lines().count() == 7 && table.contains("rate now"), "{table}");

        assert_eq!(info(&scratch, &server, &["--match", "*o*"]).len(), 5);
        let run = redis(&scratch, &server, &["info", "--most", "2"]).succeeds();
        assert_eq!(run.text().lines().count(), 3);
        assert!(run.stderr.contains("more than 2 filters"), "{}", run.stderr);

        // A filter of which only the header has come.
        let header: Vec<u8> = [&b"IBLOOM01"[..], &1000u64.to_le_bytes(), &[7; 8]].concat();
        let reply = client.call_words(&[b"BF.LOADCHUNK", b"half", b"1", &header]);
        assert!(reply.starts_with(b"+OK"));
        let half = &info(&scratch, &server, &["--match", "half"])[0];
        let advice = "is being loaded, 0 of 1000 bytes: finish the load, or delete the key";
        assert_eq!(half["advice"], advice, "{half}");
    }
}

/// Twelve shards on a cluster of three, and what `info` says of them, asked at each server.
#[test]
fn info_lists_a_filter_in_shards_once_with_all_that_its_shards_have() {
    for program in programs().into_iter().take(1) {
        let (masters, scratch) = (cluster(&program), Scratch::new());
        scratch.write("keys.txt", lines(0..1000));
        let load = ["load", "--lines", "keys.txt", "--shards", "12", "--key", "seen"];
        redis(&scratch, &masters[0], &load).succeeds();
        redis(&scratch, &masters[0], &["load", "--lines", "keys.txt", "--key", "other"]).succeeds();
        for master in &masters {
            let shards = info(&scratch, master, &["--each-shard", "--match", "seen"]);
            assert_eq!(shards.len(), 12);
            let total =
                |name: &str| shards.iter().map(|shard| shard[name].as_u64().unwrap()).sum::<u64>();
            let all = info(&scratch, master, &[]);
            assert_eq!(
                (&all[0]["key"], &all[0]["shards"]),
                (&"other".into(), &serde_json::Value::Null)
            );
            let seen = &all[1];
            assert_eq!((&seen["key"], &seen["shards"]), (&"seen".into(), &12.into()));
            for name in ["keys", "capacity", "memory"] {
                assert_eq!(seen[name].as_u64(), Some(total(name)), "{name}");
            }
            assert!((900..=1000).contains(&seen["keys"].as_u64().unwrap()), "{seen}");
            assert_eq!(all.len(), 2);
            // By its own name, and the number of filters, not of keys, counts.
            assert_eq!(info(&scratch, master, &["--match", "se?n"]), all[1..]);
            let run = redis(&scratch, master, &["info", "--most", "2"]).succeeds();
            assert_eq!((run.text().lines().count(), run.stderr.as_str()), (3, ""));
        }
        // What an operator has to know of.
        let advice = || info(&scratch, &masters[0], &["--match", "seen"])[0]["advice"].to_string();
        let delete = |key: &str| {
            assert!(
                masters
                    .iter()
                    .any(|master| master.client().text(&format!("DEL {key}")) == ":1\r\n")
            )
        };
        delete("{seen:3/12}");
        assert_eq!(advice(), "\"shard 3 is missing: load it again with --replace\"");
        delete("{seen:7/12}");
        assert_eq!(advice(), "\"shards 3, 7 are missing: load it again with --replace\"");
        delete("seen");
        assert!(advice().contains("seen does not refer to these shards"), "{}", advice());
    }
}

#[test]
fn servers_of_a_cluster_that_do_not_say_their_hosts_are_found_or_named() {
    for program in programs() {
        let (masters, scratch) = (cluster(&program), Scratch::new());
        let configure = |kind: &str| {
            for master in &masters {
                let command = format!("CONFIG SET cluster-preferred-endpoint-type {kind}");
                assert_eq!(master.client().text(&command), "+OK\r\n");
            }
        };
        // Behind one address, each with a port of its own.
        configure("unknown-endpoint");
        scratch.write("keys.txt", lines(0..1000));
        let load = ["load", "--lines", "keys.txt", "--shards", "12", "--key", "seen"];
        redis(&scratch, &masters[0], &load).succeeds();
        assert_eq!(info(&scratch, &masters[1], &["--each-shard"]).len(), 12);
        // By names, which none has.
        configure("hostname");
        for args in [&["info"][..], &["check", "keys.txt", "--key", "seen"]] {
            let run = redis(&scratch, &masters[0], args);
            let message = "the servers of this cluster do not say how they are called";
            refused(&run, &format!("{}: {message}", url(&masters[0])), "cluster-announce-hostname");
        }
    }
}
