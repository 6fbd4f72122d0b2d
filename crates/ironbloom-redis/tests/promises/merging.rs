//! Promise: a large merge goes on between commands. Whatever happens meanwhile, no key that was acknowledged is lost, and
//! replicas and files have the same bytes.

use std::ops::Range;
use std::path::Path;

use crate::common::key;
use ironbloom_testing::module::{
    Client, Server, all_programs as programs, assert_equal, replica_of, save_or_rewrite,
};
use ironbloom_testing::wait_until;

const JOBS: &str = "ironbloom_bloom_filters_merging";
const NOT_FINISHED: &str = "-ERR the merge was not finished: ";

/// What filters are made by: of more than 4 MiB, so that they are merged in slices.
const LARGE: [&str; 2] = ["0.01 4000000", "0.01 4000000 LAYOUT BLOCKED"];

/// Keys of the filters a, b and d.
const A: Range<usize> = 0..3000;
const B: Range<usize> = 2000..5000;
const D: Range<usize> = 10_000..11_000;

fn add(client: &mut Client, name: &str, keys: Range<usize>) {
    let keys: Vec<String> = keys.map(key).collect();
    for group in keys.chunks(1000) {
        let reply = client.text(&format!("BF.MADD {name} {}", group.join(" ")));
        assert!(reply.starts_with('*') && !reply.contains("-ERR"), "{name}: {reply}");
    }
}

fn assert_there(client: &mut Client, name: &str, keys: Range<usize>) {
    let keys: Vec<String> = keys.map(key).collect();
    for group in keys.chunks(1000) {
        let reply = client.text(&format!("BF.MEXISTS {name} {}", group.join(" ")));
        assert_eq!(reply.matches(":1").count(), group.len(), "{name}: keys are lost");
    }
}

/// The filters a and b, and d with keys of its own.
fn make(client: &mut Client, made: &str) {
    client.call("FLUSHALL");
    for (name, keys) in [("a", A), ("b", B), ("d", D)] {
        assert_eq!(client.text(&format!("BF.RESERVE {name} {made}")), "+OK\r\n");
        add(client, name, keys);
    }
}

/// A merge of a and b into `destination` that is not over before [`finish`] says so: slices are as short as can be, and there
/// are many of them, since each source is given many times.
fn begin(server: &Server, destination: &str) -> Client {
    let mut client = server.client();
    client.configure("step-usec", "1");
    let before: u64 = client.info("everything", JOBS).parse().unwrap();
    let mut waiting = server.client();
    let sources = "a b ".repeat(60);
    let command = format!("BF.MERGE {destination} {}", sources.trim_end());
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    waiting.send(&words).unwrap();
    wait_until(|| client.info("everything", JOBS).parse() == Ok(before + 1));
    waiting
}

/// Lets the merges go on as fast as they can.
fn hurry(server: &Server) {
    server.client().configure("step-usec", "50000");
}

/// Lets a merge go on, and its reply.
fn finish(server: &Server, waiting: &mut Client) -> String {
    let mut client = server.client();
    assert_ne!(client.info("everything", JOBS), "0", "the merge is still going on");
    hurry(server);
    let reply = String::from_utf8(waiting.receive().expect("a reply")).unwrap();
    wait_until(|| client.info("everything", JOBS) == "0");
    reply
}

fn each_server(run: impl Fn(&Path)) {
    programs().iter().for_each(|program| run(program));
}

#[test]
fn other_clients_are_served_and_may_add_to_all_filters_meanwhile() {
    each_server(|program| {
        let server = Server::start(program, &[]);
        let replica = replica_of(&server, program, &[]);
        let mut client = server.client();
        for made in LARGE {
            for destination in ["d", "new"] {
                make(&mut client, made);
                let mut waiting = begin(&server, destination);
                // Its connection is served in order: the next reply comes after this one.
                waiting.send(&[b"PING"]).unwrap();
                let mut next = 20_000;
                for _ in 0..20 {
                    for name in ["a", "b", destination] {
                        add(&mut client, name, next..next + 100);
                        assert_there(&mut client, name, next..next + 100);
                        next += 100;
                    }
                    let own = if destination == "d" { D } else { 0..0 };
                    assert_there(&mut client, destination, own);
                }
                assert_eq!(finish(&server, &mut waiting), "+OK\r\n", "{made}");
                assert_eq!(waiting.receive().unwrap(), b"+PONG\r\n");
                assert_there(&mut client, destination, A);
                assert_there(&mut client, destination, B);
                for start in (20_000..next).step_by(300) {
                    assert_there(&mut client, destination, start + 200..start + 300);
                }
                assert_equal(&server, &replica);
                // The count is an estimate, and a good one: 5000 keys of the sources, 6000 that were added meanwhile, all of them
                // merged because each source is given many times, and those of the destination.
                let own = if destination == "d" { 1000 } else { 0 };
                let card = client.text(&format!("BF.CARD {destination}"));
                let card: usize = card[1..].trim().parse().unwrap();
                assert!((10_900 + own..=11_100 + own).contains(&card), "{made}: {card}");
            }
        }
        assert!(!replica.log().contains("== CRITICAL =="), "{}", replica.log());
    });
}

/// In transactions and scripts, where nobody can wait, a merge is made at once.
#[test]
fn a_merge_in_slices_makes_the_same_filter_as_one_at_once() {
    each_server(|program| {
        let server = Server::start(program, &[]);
        let mut client = server.client();
        for made in LARGE {
            make(&mut client, made);
            for copy in ["d1", "d2", "d3"] {
                assert_eq!(client.text(&format!("COPY d {copy}")), ":1\r\n");
            }
            for (new, old) in [("n1", "d1"), ("n2", "d2"), ("n3", "d3")] {
                for destination in [new, old] {
                    match &destination[1..] {
                        "1" => {
                            client.call("MULTI");
                            client.call(&format!("BF.MERGE {destination} a b"));
                            client.call("INFO everything");
                            let reply = client.text("EXEC");
                            assert!(reply.starts_with("*2\r\n+OK\r\n"), "{reply}");
                            assert!(reply.contains(&format!("{JOBS}:0\r\n")), "{reply}");
                        }
                        "2" => {
                            let script = b"return redis.call('BF.MERGE', KEYS[1], 'a', 'b')";
                            let words: [&[u8]; 4] = [b"EVAL", script, b"1", destination.as_bytes()];
                            assert_eq!(client.call_words(&words), b"+OK\r\n");
                        }
                        _ => {
                            let mut waiting = begin(&server, destination);
                            assert_eq!(finish(&server, &mut waiting), "+OK\r\n");
                        }
                    }
                }
            }
            for family in ["n", "d"] {
                let [one, two, three] =
                    [1, 2, 3].map(|i| client.text(&format!("DEBUG DIGEST-VALUE {family}{i}")));
                assert!(one == two && two == three, "{made}: {one} {two} {three}");
            }
            // With itself: nothing to add.
            let before = client.text("DEBUG DIGEST-VALUE d3");
            assert_eq!(client.text("BF.MERGE d3 d3"), "+OK\r\n");
            assert_eq!(client.text("DEBUG DIGEST-VALUE d3"), before);
        }
    });
}

/// (what happens, whether the merge can go on)
const CHANGES: [(&str, bool); 14] = [
    ("DEL a", false),
    ("UNLINK b", false),
    ("DEL d", false),
    ("RENAME a x", false),
    ("RENAME d x", false),
    ("RENAME a x;RENAME x a", true),
    ("SET a x", false),
    ("SET d x", false),
    ("PEXPIRE b 0", false),
    ("COPY b a REPLACE", false),
    ("DEL a;BF.RESERVE a MADE", false),
    ("FLUSHALL", false),
    ("SWAPDB 0 1", false),
    ("SWAPDB 0 1;SWAPDB 1 0", true),
];

#[test]
fn whatever_happens_to_the_keys_meanwhile_does_no_harm() {
    each_server(|program| {
        let server = Server::start(program, &[]);
        let replica = replica_of(&server, program, &[]);
        let mut client = server.client();
        // Layouts in turns.
        for (made, (change, goes_on)) in LARGE.iter().cycle().zip(CHANGES) {
            make(&mut client, made);
            let mut waiting = begin(&server, "d");
            client.call("MULTI");
            client.call("INFO everything");
            for command in change.split(';') {
                client.call(&command.replace("MADE", made));
            }
            let reply = client.text("EXEC");
            assert!(reply.contains(&format!("{JOBS}:1\r\n")), "{change}: in the middle");
            hurry(&server);
            let reply = String::from_utf8(waiting.receive().unwrap()).unwrap();
            assert_eq!(reply == "+OK\r\n", goes_on, "{made}, {change}: {reply}");
            assert!(goes_on || reply.starts_with(NOT_FINISHED), "{made}, {change}: {reply}");
            wait_until(|| client.info("everything", JOBS) == "0");
            match change {
                "DEL d" | "SET d x" | "FLUSHALL" | "SWAPDB 0 1" => {}
                "RENAME d x" => assert_there(&mut client, "x", D),
                _ => assert_there(&mut client, "d", D),
            }
            if goes_on {
                assert_there(&mut client, "d", A);
                assert_there(&mut client, "d", B);
            }
            assert_equal(&server, &replica);
        }
        // A chunk that overwrites part of a source, or of the destination.
        for name in ["a", "d"] {
            make(&mut client, LARGE[0]);
            let pairs = client.scandump("BF", name);
            let mut waiting = begin(&server, "d");
            assert_eq!(client.load("BF", name, &pairs[1..2]), "+OK\r\n");
            let reply = String::from_utf8(waiting.receive().unwrap()).unwrap();
            assert!(reply.starts_with(NOT_FINISHED), "{name}: {reply}");
            assert_equal(&server, &replica);
        }
        assert!(!replica.log().contains("== CRITICAL =="), "{}", replica.log());
    });
}

#[test]
fn a_replica_that_comes_in_the_middle_has_everything_in_the_end() {
    each_server(|program| {
        let server = Server::start(program, &["--repl-diskless-sync", "no"]);
        let mut client = server.client();
        for made in LARGE {
            for destination in ["d", "new"] {
                make(&mut client, made);
                let mut waiting = begin(&server, destination);
                let replica = replica_of(&server, program, &[]);
                add(&mut client, "a", 30_000..30_100);
                assert_eq!(finish(&server, &mut waiting), "+OK\r\n");
                assert_equal(&server, &replica);
                let mut on_replica = replica.client();
                assert_there(&mut on_replica, destination, A);
                assert_there(&mut on_replica, destination, B);
            }
        }
    });
}

#[test]
fn files_that_are_written_in_the_middle_have_everything_in_the_end() {
    each_server(|program| {
        let options = ["--appendonly", "yes", "--appendfsync", "always"];
        let mut server = Server::start(program, &options);
        for made in LARGE {
            let mut client = server.client();
            make(&mut client, made);
            // Rewritten in the middle, and complete in the end.
            let mut waiting = begin(&server, "new");
            save_or_rewrite(&mut client, &options);
            assert_eq!(finish(&server, &mut waiting), "+OK\r\n");
            let before = client.text("DEBUG DIGEST");
            server.kill_and_restart();
            let mut client = server.client();
            assert_eq!(client.text("DEBUG DIGEST"), before);
            assert_there(&mut client, "new", A);
            assert_there(&mut client, "new", B);
            // Killed in the middle: what was there before is there, and the merge can be called again.
            let waiting = begin(&server, "d");
            drop(waiting);
            server.kill_and_restart();
            let mut client = server.client();
            assert_eq!(client.info("everything", JOBS), "0");
            assert_there(&mut client, "d", D);
            assert_eq!(client.text("BF.MERGE d a b"), "+OK\r\n");
            assert_there(&mut client, "d", A);
            assert_there(&mut client, "d", B);
        }
    });
}

#[test]
fn a_merge_goes_on_without_its_client() {
    each_server(|program| {
        let server = Server::start(program, &[]);
        let mut client = server.client();
        for made in LARGE {
            make(&mut client, made);
            let mut waiting = begin(&server, "d");
            let killed = client.text("CLIENT KILL TYPE normal SKIPME yes");
            assert!(killed.starts_with(':') && killed != ":0\r\n", "{killed}");
            assert!(waiting.receive().is_none());
            assert_eq!(client.info("everything", JOBS), "1");
            hurry(&server);
            wait_until(|| client.info("everything", JOBS) == "0");
            assert_there(&mut client, "d", A);
            assert_there(&mut client, "d", B);
            assert_there(&mut client, "d", D);
        }
    });
}

#[test]
fn merges_may_go_on_at_once_also_in_both_directions() {
    each_server(|program| {
        let server = Server::start(program, &[]);
        let replica = replica_of(&server, program, &[]);
        let mut client = server.client();
        for made in LARGE {
            make(&mut client, made);
            let mut first = begin(&server, "d");
            let mut second = begin(&server, "d");
            let mut back = server.client();
            back.send(&[b"BF.MERGE", b"a", b"d", b"b"]).unwrap();
            wait_until(|| client.info("everything", JOBS) == "3");
            hurry(&server);
            for waiting in [&mut first, &mut second, &mut back] {
                assert_eq!(waiting.receive().unwrap(), b"+OK\r\n");
            }
            for name in ["a", "d"] {
                for keys in [A, B, D] {
                    assert_there(&mut client, name, keys);
                }
            }
            assert_equal(&server, &replica);
        }
    });
}

#[test]
fn a_server_that_becomes_a_replica_ends_its_merges() {
    each_server(|program| {
        let primary = Server::start(program, &[]);
        let server = Server::start(program, &[]);
        let mut client = server.client();
        make(&mut client, LARGE[0]);
        let mut waiting = begin(&server, "d");
        client.call(&format!("REPLICAOF 127.0.0.1 {}", primary.port));
        wait_until(|| client.info("everything", JOBS) == "0");
        // The server ends the connections of those who wait, or the merge answers: no reply says that it is done.
        let reply = waiting.receive().unwrap_or_default();
        assert!(!reply.starts_with(b"+"), "{}", String::from_utf8_lossy(&reply));
        wait_until(|| client.info("replication", "master_link_status") == "up");
        assert_equal(&primary, &server);
    });
}

/// A filter that is full grows in the middle: rates so low that a few keys fill megabytes.
#[test]
fn filters_may_grow_in_the_middle() {
    each_server(|program| {
        let server = Server::start(program, &[]);
        let replica = replica_of(&server, program, &[]);
        let mut client = server.client();
        client.call("FLUSHALL");
        for name in ["a", "b", "d"] {
            assert_eq!(client.text(&format!("BF.RESERVE {name} 1e-300 30000")), "+OK\r\n");
        }
        let filters = |client: &mut Client, name: &str| {
            client.text(&format!("BF.INFO {name} FILTERS")).replace("*1\r\n", "")
        };
        for (name, keys) in [("a", 0..29_990), ("b", 100_000..129_990), ("d", 200_000..229_990)] {
            add(&mut client, name, keys);
            assert_eq!(filters(&mut client, name), ":1\r\n");
        }
        let mut waiting = begin(&server, "d");
        for (name, keys) in [("a", 40_000..41_000), ("d", 240_000..241_000)] {
            add(&mut client, name, keys);
            assert_eq!(filters(&mut client, name), ":2\r\n", "{name} has grown");
        }
        assert_eq!(finish(&server, &mut waiting), "+OK\r\n");
        for keys in [0..29_990, 100_000..129_990, 200_000..229_990, 240_000..241_000] {
            assert_there(&mut client, "d", keys);
        }
        assert_equal(&server, &replica);
    });
}

#[test]
fn a_slice_that_is_none_is_refused_and_changes_nothing() {
    each_server(|program| {
        let server = Server::start(program, &[]);
        let mut client = server.client();
        make(&mut client, LARGE[0]);
        client.call("BF.RESERVE small 0.01 100");
        client.call("SET text x");
        let before = client.text("DEBUG DIGEST");
        for wrong in [
            "d a 0 0 0 x",
            "d a -1 0 0 1",
            "d a 1 0 0 1",
            "d d 0 0 0 1",
            "d small 0 0 0 1",
            "d missing 0 0 0 1",
            "d text 0 0 0 1",
            "text a 0 0 0 1",
            "d a 0 0 0",
        ] {
            let reply = client.text(&format!("BF.MERGESLICE {wrong}"));
            assert!(reply.starts_with('-'), "{wrong}: {reply}");
        }
        assert_eq!(client.text("DEBUG DIGEST"), before);
        // Numbers that no primary sends make no positions outside, and no count that a file would be refused for.
        for odd in
            ["d a 0 9223372036854775807 9223372036854775807 9223372036854775807", "d a 0 5 0 0"]
        {
            assert_eq!(client.text(&format!("BF.MERGESLICE {odd}")), "+OK\r\n");
        }
        assert_eq!(client.text("BF.MERGESLICE d a 0 0 0 9223372036854775807"), "+OK\r\n");
        assert_there(&mut client, "d", A);
        assert_eq!(client.text("DEBUG RELOAD"), "+OK\r\n");
        assert_there(&mut client, "d", D);
    });
}
