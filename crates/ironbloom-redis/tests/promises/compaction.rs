//! Promise: compacting a large filter goes on between commands, loses nothing whatever happens meanwhile, and a replica has
//! the same bytes.

use crate::common::key;
use ironbloom_testing::Random;
use ironbloom_testing::module::{
    Client, Server, all_programs as programs, assert_equal, replica_of,
};
use ironbloom_testing::wait_until;

const JOBS: &str = "ironbloom_cuckoo_filters_compacting";

/// (made by, name): filters that are compacted in slices, because they have more than a mebibyte.
const LARGE: [(&str, &str); 2] = [
    ("CF.RESERVE theirs 524288 BUCKETSIZE 2 EXPANSION 2", "theirs"),
    ("CF.RESERVE native 400000 ERROR 0.001", "native"),
];

fn insert(client: &mut Client, name: &str, keys: std::ops::Range<usize>) {
    let all: Vec<usize> = keys.collect();
    for group in all.chunks(5000) {
        let keys: Vec<String> = group.iter().map(|&i| key(i)).collect();
        let reply = client.text(&format!("CF.INSERT {name} ITEMS {}", keys.join(" ")));
        assert_eq!(reply.matches(":1").count(), group.len(), "{name}");
    }
}

fn assert_there(client: &mut Client, name: &str, keys: std::ops::Range<usize>) {
    let all: Vec<usize> = keys.collect();
    for group in all.chunks(5000) {
        let keys: Vec<String> = group.iter().map(|&i| key(i)).collect();
        let reply = client.text(&format!("CF.MEXISTS {name} {}", keys.join(" ")));
        assert_eq!(reply.matches(":1").count(), group.len(), "{name}: keys are lost");
    }
}

fn sub_filters(client: &mut Client, name: &str) -> u64 {
    let info = client.text(&format!("CF.INFO {name}"));
    let (_, rest) = info.split_once("+Number of filters\r\n:").unwrap();
    rest.lines().next().unwrap().parse().unwrap()
}

/// Begins to compact a filter, twice, and sees that it is not done at once. In one transaction, so that no turn of the timer
/// comes in between.
fn begin(client: &mut Client, name: &str) {
    client.call("MULTI");
    client.call(&format!("CF.COMPACT {name}"));
    client.call(&format!("CF.COMPACT {name}"));
    client.call("INFO everything");
    let reply = client.text("EXEC");
    assert!(reply.starts_with("*3\r\n+OK\r\n+OK\r\n$"), "{name}: {reply}");
    assert!(reply.contains(&format!("{JOBS}:1\r\n")), "{name}: done at once, or twice");
}

fn wait_for_jobs(client: &mut Client) {
    wait_until(|| client.info("everything", JOBS) == "0");
}

#[test]
fn large_filters_are_compacted_between_commands() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let replica = replica_of(&server, &program, &[]);
        let mut client = server.client();
        for (made, name) in LARGE {
            assert_eq!(client.text(made), "+OK\r\n");
            insert(&mut client, name, 0..900_000);
            let before = sub_filters(&mut client, name);
            assert!(before > 1, "{name}");
            // Below a tenth, so that nothing is compacted by itself.
            for i in 0..60_000 {
                client.send(&[b"CF.DEL", name.as_bytes(), key(i).as_bytes()]).unwrap();
                if i % 1000 == 999 {
                    (0..1000).for_each(|_| assert_eq!(client.receive().unwrap(), b":1\r\n"));
                }
            }
            begin(&mut client, name);
            // Keys come and go meanwhile.
            let mut random = Random(8);
            let mut turns = 0;
            let mut next = 900_000;
            while client.info("everything", JOBS) != "0" {
                insert(&mut client, name, next..next + 20);
                next += 20;
                for _ in 0..20 {
                    let i = 60_000 + random.index(840_000);
                    let reply = client.text(&format!("CF.EXISTS {name} {}", key(i)));
                    assert_eq!(
                        reply, ":1\r\n",
                        "{name}: {i} is denied while the filter is compacted"
                    );
                }
                turns += 1;
                assert!(turns < 100_000, "{name}: it does not end");
            }
            assert_there(&mut client, name, 60_000..next);
            assert!(client.text(&format!("CF.INFO {name}")).contains("items deleted\r\n:0\r\n"));
            assert_equal(&server, &replica);
        }
        // Most of it removed: what follows is compacted by itself, and drops sub-filters.
        let before = sub_filters(&mut client, "native");
        for i in 60_000..880_000 {
            client.send(&[b"CF.DEL", b"native", key(i).as_bytes()]).unwrap();
            if i % 1000 == 999 {
                (0..1000).for_each(|_| assert_eq!(client.receive().unwrap(), b":1\r\n"));
            }
        }
        wait_for_jobs(&mut client);
        client.call("CF.COMPACT native");
        wait_for_jobs(&mut client);
        assert!(sub_filters(&mut client, "native") < before);
        assert_there(&mut client, "native", 880_000..900_000);
        assert_equal(&server, &replica);
        assert!(!replica.log().contains("== CRITICAL =="), "{}", replica.log());
    }
}

/// The key is deleted, replaced, renamed or flushed while its filter is compacted, or the server ends.
#[test]
fn whatever_happens_to_the_key_meanwhile_does_no_harm() {
    for program in programs() {
        let options = ["--appendonly", "yes", "--appendfsync", "always"];
        let mut server = Server::start(&program, &options);
        let mut client = server.client();
        for (made, name) in LARGE {
            assert_eq!(client.text(made), "+OK\r\n");
            insert(&mut client, name, 0..600_000);
            client.call(&format!("COPY {name} {name}-copy"));
        }
        for (_, name) in LARGE {
            for change in [
                "DEL k",
                "UNLINK k",
                "RENAME k other",
                "SET k x",
                "FLUSHDB",
                "BF.RESERVE k 0.1 10",
                "MOVE k 5",
            ] {
                client.call("SELECT 0");
                client.call("DEL k other");
                assert_eq!(client.text(&format!("COPY {name}-copy k DB 3")), ":1\r\n");
                client.call("SELECT 3");
                begin(&mut client, "k");
                client.call(if change.starts_with("BF") { "DEL k" } else { "PING" });
                client.call(change);
                wait_for_jobs(&mut client);
                if change == "RENAME k other" {
                    assert_there(&mut client, "other", 0..600_000);
                }
                client.call("FLUSHDB");
                client.call("SELECT 5");
                client.call("FLUSHDB");
            }
            client.call("SELECT 0");
        }
        // In the middle the server is killed: the file has the slices that were done.
        for (_, name) in LARGE {
            assert_eq!(client.text(&format!("CF.COMPACT {name}")), "+OK\r\n");
        }
        client.call("PING");
        server.kill_and_restart();
        let mut client = server.client();
        for (_, name) in LARGE {
            assert_there(&mut client, name, 0..600_000);
            assert_eq!(client.info("everything", JOBS), "0");
        }
        // Slices are for primaries and files: from a client they are a wrong number of arguments.
        let reply = client.text("CF.COMPACT native 1 0 100");
        assert_eq!(reply, "-ERR wrong number of arguments for 'cf.compact' command\r\n");
    }
}

/// Another filter takes the place of the one that is compacted, of the same shape or a smaller one with as many sub-filters: it
/// stays as it is, and the work ends.
#[test]
fn a_filter_that_takes_the_place_of_another_is_not_compacted_for_it() {
    for program in programs() {
        let server = Server::start(&program, &["--appendonly", "yes"]);
        let mut client = server.client();
        assert_eq!(client.text("CF.RESERVE large 524288 BUCKETSIZE 2 EXPANSION 1"), "+OK\r\n");
        insert(&mut client, "large", 0..1_200_000);
        // Room for the fingerprints of the newer sub-filters in the oldest.
        for i in 0..50_000 {
            client.send(&[b"CF.DEL", b"large", key(i).as_bytes()]).unwrap();
            if i % 1000 == 999 {
                (0..1000).for_each(|_| assert_eq!(client.receive().unwrap(), b":1\r\n"));
            }
        }
        client.call("CF.RESERVE small 64 BUCKETSIZE 2 EXPANSION 1");
        insert(&mut client, "small", 0..300);
        (0..10).for_each(|i| drop(client.text(&format!("CF.DEL small {}", key(i)))));
        let count = sub_filters(&mut client, "large");
        assert!(count > 1 && sub_filters(&mut client, "small") > 1);
        client.configure("step-usec", "1");
        for other in ["large", "small"] {
            assert_eq!(client.text("COPY large k REPLACE"), ":1\r\n");
            assert_eq!(client.text(&format!("COPY {other} other REPLACE")), ":1\r\n");
            let before = client.text("DEBUG DIGEST-VALUE k");
            assert_eq!(client.text("CF.COMPACT k"), "+OK\r\n");
            wait_until(|| client.text("DEBUG DIGEST-VALUE k") != before);
            let before = client.text("DEBUG DIGEST-VALUE other");
            client.call("RENAME other k");
            wait_for_jobs(&mut client);
            assert_eq!(client.text("DEBUG DIGEST-VALUE k"), before, "{other}");
        }
        // It is compacted if that is asked for.
        assert_eq!(client.text("COPY large k REPLACE"), ":1\r\n");
        assert_eq!(client.text("CF.COMPACT k"), "+OK\r\n");
        assert_eq!(client.text("COPY large k REPLACE"), ":1\r\n");
        let before = client.text("DEBUG DIGEST-VALUE k");
        client.configure("step-usec", "1000");
        assert_eq!(client.text("CF.COMPACT k"), "+OK\r\n");
        wait_for_jobs(&mut client);
        assert_ne!(client.text("DEBUG DIGEST-VALUE k"), before);
        assert_there(&mut client, "k", 50_000..1_200_000);
    }
}

/// Few bytes and many sub-filters: the work goes with the square of their number.
#[test]
fn many_small_sub_filters_are_compacted_between_commands() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let replica = replica_of(&server, &program, &[]);
        let mut client = server.client();
        // Keys, buckets, removed; sub-filters; slots of a bucket, moves, expansion.
        let mut header: Vec<u8> =
            [100u64, 1, 0, 8192].iter().flat_map(|n| n.to_le_bytes()).collect();
        header.extend([2u16, 20, 1].iter().flat_map(|number| number.to_le_bytes()));
        let load: [&[u8]; 4] = [b"CF.LOADCHUNK", b"many", b"1", &header];
        assert_eq!(client.call_words(&load), b"+OK\r\n");
        client.configure("cf-max-expansions", "65535");
        insert(&mut client, "many", 0..100);
        begin(&mut client, "many");
        wait_for_jobs(&mut client);
        assert_eq!(sub_filters(&mut client, "many"), 50);
        assert_there(&mut client, "many", 0..100);
        assert_equal(&server, &replica);
    }
}
