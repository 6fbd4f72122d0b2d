//! Promise: filters are values like others: copied, measured, renamed, freed, watched; settings and limits hold; forged
//! dumps do no harm.

use crate::common::envelope;
use crate::common::*;
use ironbloom_redis::limits::MemoryLimit;
use ironbloom_redis::redisbloom::chain::{Chain, Scaling};
use ironbloom_redis::redisbloom::cuckoo::{CuckooFilter, CuckooShape};
use ironbloom_redis::redisbloom::murmur::{BloomHash, cuckoo_hash};
use ironbloom_testing::module::{Client, Server, all_programs as programs};
use ironbloom_testing::{Random, wait_until};

fn each_server(mut test: impl FnMut(&Server, &mut Client)) {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        test(&server, &mut client);
    }
}

#[test]
fn copies_are_equal_and_independent() {
    each_server(|_, client| {
        client.call("BF.MADD b x y z");
        client.call("CF.INSERT c ITEMS x y x");
        for (key, copy) in [("b", "b2"), ("c", "c2")] {
            assert_eq!(client.text(&format!("COPY {key} {copy}")), ":1\r\n");
            let digest = client.text(&format!("DEBUG DIGEST-VALUE {key}"));
            assert_eq!(client.text(&format!("DEBUG DIGEST-VALUE {copy}")), digest);
        }
        let before = client.text("DEBUG DIGEST-VALUE b c");
        client.call("BF.ADD b2 new");
        client.call("CF.DEL c2 x");
        assert_eq!(client.text("DEBUG DIGEST-VALUE b c"), before);
        assert_ne!(client.text("DEBUG DIGEST-VALUE b2 c2"), before);
        assert_eq!(client.text("BF.EXISTS b2 x"), ":1\r\n");
        assert_eq!(client.text("BF.EXISTS b new"), ":0\r\n");
        assert_eq!(client.text("CF.COUNT c2 x"), ":1\r\n");
        assert_eq!(client.text("CF.COUNT c x"), ":2\r\n");
    });
}

/// What filters take is counted by the server, and given back; large ones in another thread.
#[test]
fn memory_is_the_servers_and_comes_back() {
    each_server(|_, client| {
        let used =
            |client: &mut Client| -> i64 { client.info("memory", "used_memory").parse().unwrap() };
        client.call("BF.RESERVE small 0.01 100");
        let before = used(client);
        assert_eq!(client.text("BF.RESERVE large 0.001 20000000"), "+OK\r\n");
        assert_eq!(client.text("CF.RESERVE large2 16000000"), "+OK\r\n");
        let bytes = 20_000_000 * 15 / 8 + 16_777_216;
        assert!(used(client) - before > bytes, "{} bytes", used(client) - before);
        let freed = || "lazyfreed_objects";
        let background: u64 = client.info("memory", freed()).parse().unwrap();
        assert_eq!(client.text("UNLINK large large2 small"), ":3\r\n");
        let mut waited = 0;
        while used(client) - before > 1 << 20 {
            std::thread::sleep(std::time::Duration::from_millis(50));
            waited += 1;
            assert!(waited < 600, "{} bytes stay", used(client) - before);
        }
        let now: u64 = client.info("memory", freed()).parse().unwrap();
        assert_eq!(now, background + 2, "the two large ones, not the small one");
        assert_eq!(client.info("everything", "ironbloom_bloom_filters"), "0");
        assert_eq!(client.info("everything", "ironbloom_cuckoo_filters"), "0");
    });
}

#[test]
fn one_key_cannot_take_all_memory() {
    each_server(|_, client| {
        let over = "-ERR the filter would exceed the memory limit of a key, see CONFIG GET \
                    *key-memory-limit\r\n";
        assert_eq!(client.text("BF.RESERVE b 0.000000000001 1073741824"), over);
        assert_eq!(client.text("CF.RESERVE c 1073741824"), over);
        assert_eq!(client.text("EXISTS b c"), ":0\r\n");
        assert_eq!(client.text("CONFIG SET ironbloom.key-memory-limit 1mb"), "+OK\r\n");
        assert_eq!(client.text("BF.RESERVE b 0.01 1000000"), over);
        // A header of 73 bytes that asks for a petabyte.
        let mut header = scandump(&golden("bf_reserved")).remove(0).1;
        header[20..28].copy_from_slice(&(1u64 << 50).to_le_bytes());
        header[28..36].copy_from_slice(&(1u64 << 53).to_le_bytes());
        let reply = client.call_words(&[b"BF.LOADCHUNK", b"b", b"1", &header]);
        assert_eq!(String::from_utf8_lossy(&reply), over);
        let mut header = scandump(&golden("cf_default")).remove(0).1;
        header[8..16].copy_from_slice(&(1u64 << 28).to_le_bytes());
        let reply = client.call_words(&[b"CF.LOADCHUNK", b"c", b"1", &header]);
        assert_eq!(String::from_utf8_lossy(&reply), over);
        // Growth ends at the limit, too, and says so key by key.
        client.call("CONFIG SET ironbloom.key-memory-limit 500");
        let keys: Vec<String> = (0..400).map(key).collect();
        let reply = client.text(&format!("BF.MADD g {}", keys.join(" ")));
        assert!(reply.ends_with(over), "{reply}");
        assert_eq!(client.text("BF.CARD g"), ":300\r\n");
    });
}

#[test]
fn settings_are_redisblooms() {
    each_server(|_, client| {
        for (name, default, other, wrong) in [
            ("bf-error-rate", "0.01", "0.05", "1"),
            ("bf-initial-size", "100", "1000", "0"),
            ("bf-expansion-factor", "2", "0", "32769"),
            ("cf-bucket-size", "2", "4", "256"),
            ("cf-initial-size", "1024", "4096", "1073741825"),
            ("cf-max-iterations", "20", "50", "65536"),
            ("cf-expansion-factor", "1", "2", "32769"),
            ("cf-max-expansions", "32", "2", "65537"),
        ] {
            let name = if client.text(&format!("CONFIG GET {name}")).contains(default) {
                name.to_owned()
            } else {
                format!("ironbloom.{name}")
            };
            let shown = client.text(&format!("CONFIG GET {name}"));
            assert!(shown.ends_with(&format!("\r\n{default}\r\n")), "{name}: {shown}");
            let reply = client.text(&format!("CONFIG SET {name} {wrong}"));
            assert!(reply.starts_with('-'), "{name} {wrong}: {reply}");
            assert_eq!(client.text(&format!("CONFIG SET {name} {other}")), "+OK\r\n");
            let shown = client.text(&format!("CONFIG GET {name}"));
            assert!(shown.ends_with(&format!("\r\n{other}\r\n")), "{name}: {shown}");
        }
        client.call("BF.ADD b x");
        let lines = client.text("BF.DEBUG b");
        assert!(lines.contains("capacity:1000 size:1 ratio:0.05\r\n"), "{lines}");
        client.call("CF.ADD c x");
        let line = client.text("CF.DEBUG c");
        let expected =
            "bktsize:4 buckets:1024 items:1 deletes:0 filters:1 max_iterations:50 expansion:2";
        assert!(line.contains(expected), "{line}");
        client.call("CF.RESERVE d 8 BUCKETSIZE 1 EXPANSION 1 MAXITERATIONS 1");
        let replies: Vec<String> = (0..40).map(|i| client.text(&format!("CF.ADD d {i}"))).collect();
        assert_eq!(replies[0], ":1\r\n");
        assert_eq!(replies[39], "-Maximum expansions reached\r\n");
    });
}

#[test]
fn arguments_of_the_module_are_settings() {
    for program in programs() {
        let arguments = ["ERROR_RATE", "0.2", "initial_size", "50", "cf-initial-size", "64"];
        let server = Server::start_with_arguments(&program, &arguments);
        let mut client = server.client();
        client.call("BF.ADD b x");
        let lines = client.text("BF.DEBUG b");
        assert!(lines.contains("capacity:50 size:1 ratio:0.1\r\n"), "{lines}");
        client.call("CF.ADD c x");
        assert!(client.text("CF.DEBUG c").contains("buckets:32 "), "{}", client.text("CF.DEBUG c"));
    }
}

/// Clients and tools that look for RedisBloom look for its name and version.
#[test]
fn the_module_answers_to_redisblooms_name_if_told_to() {
    for program in programs() {
        for (arguments, name, version) in
            [(&[][..], "ironbloom", ":100"), (&["NAME", "bf"], "bf", ":80000")]
        {
            let server = Server::start_with_arguments(&program, arguments);
            let mut client = server.client();
            let list = client.text("MODULE LIST");
            let words: Vec<&str> = list.lines().collect();
            let is_named = |pair: &[&str]| pair == ["name", &format!("${}", name.len()), name];
            assert!(words.windows(3).any(is_named), "{list}");
            assert!(words.contains(&version), "{list}");
            client.call("BF.ADD b x");
            assert_eq!(client.info("everything", &format!("{name}_bloom_filters")), "1");
            client.call(&format!("CONFIG SET {name}.key-memory-limit 64"));
            let reply = client.text("BF.RESERVE large 0.01 1000");
            assert!(reply.contains("CONFIG GET *key-memory-limit"), "{reply}");
            let shown = client.text("CONFIG GET *key-memory-limit");
            assert!(
                shown.ends_with(&format!("{name}.key-memory-limit\r\n$2\r\n64\r\n")),
                "{shown}"
            );
        }
    }
}

/// Commands in words: as RedisBloom's where they are facts.
#[test]
fn command_docs_tell_since_when_and_what() {
    each_server(|_, client| {
        for (command, parts) in [
            ("bf.add", &["since\r\n$5\r\n1.0.0\r\n", "O(k), where k is"][..]),
            ("bf.card", &["since\r\n$5\r\n2.4.4\r\n", "O(1)"]),
            ("bf.find", &["since\r\n$5\r\n0.1.0\r\n"]),
            ("bf.info", &["single_value", "oneof", "CAPACITY", "EXPANSION", "FULL"]),
            ("cf.add", &["since\r\n$5\r\n1.0.0\r\n", "O(s + i), where s is"]),
        ] {
            let docs = client.text(&format!("COMMAND DOCS {command}"));
            for part in parts {
                assert!(docs.contains(part), "{command}: {part:?} is not in {docs}");
            }
        }
    });
}

/// The same digits whatever the server; and what a filter takes does not change when it is loaded again.
#[test]
fn numbers_are_the_same_on_all_servers_and_after_a_reload() {
    let mut told: Option<String> = None;
    each_server(|_, client| {
        for (name, made) in [
            ("b", "BF.RESERVE b 0.01 1000"),
            ("blocked", "BF.RESERVE blocked 0.01 300 LAYOUT BLOCKED"),
            ("window", "BF.RESERVE window 0.01 300 WINDOW 300"),
        ] {
            client.call(made);
            let items: Vec<String> = (0..900).map(key).collect();
            client.call(&format!("BF.MADD {name} {}", items.join(" ")));
        }
        client.call("CF.RESERVE c 100 ERROR 0.01");
        client.call("CF.ADD c x");
        client.call("CF.RESERVE theirs 1000");
        client.call("CF.ADD theirs x");
        let full =
            ["b", "blocked", "window"].map(|name| client.text(&format!("BF.INFO {name} FULL")));
        let usage = |client: &mut Client| {
            ["b", "blocked", "window", "c", "theirs"].map(|name| -> i64 {
                client.text(&format!("MEMORY USAGE {name}"))[1..].trim().parse().unwrap()
            })
        };
        let before = usage(client);
        assert_eq!(client.text("DEBUG RELOAD"), "+OK\r\n");
        // The server adds what its allocator gave for the key; libc's gives 16 bytes more or less.
        for (before, after) in before.into_iter().zip(usage(client)) {
            assert!((before - after).abs() <= 16, "{before} bytes, then {after}");
        }
        let full = full.concat();
        assert!(full.contains("Fill"), "{full}");
        assert_eq!(told.get_or_insert_with(|| full.clone()), &full);
    });
}

/// The fields of INFO that dashboards read: each is counted once, and by the same name on all servers.
#[test]
fn info_counts_what_happened() {
    each_server(|_, client| {
        let read = |client: &mut Client, field: &str| -> u64 {
            client.info("ironbloom_filters", &format!("ironbloom_{field}")).parse().unwrap()
        };
        let empty = read(client, "memory_bytes");
        for (name, made, add, exists) in [
            ("b", "BF.RESERVE b 0.01 100", "BF.MADD b", "BF"),
            ("n", "BF.RESERVE n 0.01 100 LAYOUT BLOCKED", "BF.MADD n", "BF"),
            ("c", "CF.RESERVE c 64 MAXITERATIONS 5", "CF.INSERT c ITEMS", "CF"),
            ("e", "CF.RESERVE e 64 ERROR 0.01", "CF.INSERT e ITEMS", "CF"),
        ] {
            let fields = ["items_added_total", "queries_total", "positives_total", "growths_total"];
            let before = fields.map(|field| read(client, field));
            assert_eq!(client.text(made), "+OK\r\n");
            let items = (0..250).map(key).collect::<Vec<_>>().join(" ");
            let replies = client.text(&format!("{add} {items}"));
            let single = client.text(&format!("{exists}.ADD {name} one"));
            let added = (replies + &single).matches(":1\r").count() as u64;
            client.call(&format!("{exists}.EXISTS {name} one"));
            client.call(&format!("{exists}.MEXISTS {name} one"));
            client.call(&format!("{exists}.MEXISTS {name} {}", key(3)));
            let several = client.text(&format!("{exists}.MEXISTS {name} one {} x y", key(3)));
            let positives = 3 + several.matches(":1").count() as u64;
            let after = fields.map(|field| read(client, field));
            assert_eq!(after[0] - before[0], added, "{name}: {single}");
            assert_eq!((after[1] - before[1], after[2] - before[2]), (7, positives), "{name}");
            assert!((1..=8).contains(&(after[3] - before[3])), "{name} grew");
        }
        client.call("CF.DEL c one");
        client.call("CF.DEL c never-there-at-all");
        assert_eq!(read(client, "items_deleted_total"), 1);
        let errors = read(client, "errors_total");
        client.call("BF.INFO missing");
        client.call("BF.RESERVE b 0.01 100");
        assert_eq!(read(client, "errors_total"), errors + 2);

        // Merges that keep to the plan are not counted, and one that does not is.
        for made in ["", " LAYOUT BLOCKED", " NONSCALING LAYOUT BLOCKED"] {
            for (name, first) in [("m1", 0), ("m2", 1000), ("m3", 2000)] {
                client.call(&format!("DEL {name} m4"));
                assert_eq!(client.text(&format!("BF.RESERVE {name} 0.01 1000{made}")), "+OK\r\n");
                let items = (first..first + 450).map(key).collect::<Vec<_>>().join(" ");
                client.call(&format!("BF.MADD {name} {items}"));
            }
            let before = read(client, "merges_over_capacity_total");
            assert_eq!(client.text("BF.MERGE m4 m1 m2"), "+OK\r\n");
            assert_eq!(read(client, "merges_over_capacity_total"), before, "{made}");
            assert_eq!(client.text("BF.MERGE m4 m3"), "+OK\r\n");
            assert_eq!(read(client, "merges_over_capacity_total"), before + 1, "{made}");
        }
        client.call("BF.RESERVE large 0.001 1000000");
        let with_large = read(client, "memory_bytes");
        let size: u64 = client.text("BF.INFO large SIZE")[5..].trim().parse().unwrap();
        assert!((size..size + 20_000).contains(&(with_large - empty)), "{with_large} {size}");
        // A file's strings are the server's memory first, then ours.
        assert_eq!(client.text("DEBUG RELOAD"), "+OK\r\n");
        // Some servers free what was there in another thread.
        wait_until(|| with_large.abs_diff(read(client, "memory_bytes")) < 4096);
        assert!(read(client, "longest_step_usec") > 0, "loading takes longer than a microsecond");
        client.call("FLUSHALL SYNC");
        assert!(read(client, "memory_bytes").abs_diff(empty) < 4096);
        assert_eq!(read(client, "bloom_filters"), 0);

        // As redis_exporter asks: by a script.
        let script = "local r = {} for k, v in string.gmatch(redis.call('INFO', 'ironbloom_filters'), \
                      '([%w_]+):(%d+)') do r[#r + 1] = k r[#r + 1] = v end return r";
        let reply = client.call_words(&[b"EVAL", script.as_bytes(), b"0"]);
        let reply = String::from_utf8_lossy(&reply).into_owned();
        assert!(reply.starts_with("*40\r\n"), "{reply}");
        assert!(reply.contains("ironbloom_queries_total"), "{reply}");
    });
}

/// Every way in which the destination can also be a source, or be missing; and a source that does not fit changes nothing,
/// wherever it stands.
#[test]
fn merges_change_all_or_nothing() {
    each_server(|_, client| {
        let items = |first: usize| (first..first + 60).map(key).collect::<Vec<_>>().join(" ");
        for layout in ["REDISBLOOM", "BLOCKED"] {
            client.call("FLUSHALL");
            for (name, rate) in [("a", "0.01"), ("b", "0.01"), ("c", "0.01"), ("odd", "0.02")] {
                let made = format!("BF.RESERVE {name} {rate} 1000 LAYOUT {layout}");
                assert_eq!(client.text(&made), "+OK\r\n");
            }
            client.call(&format!("BF.MADD a {}", items(0)));
            client.call(&format!("BF.MADD b {}", items(1000)));
            client.call(&format!("BF.MADD c {}", items(2000)));
            let digest = |client: &mut Client| client.text("DEBUG DIGEST");
            let before = digest(client);
            for refused in ["a b odd", "a odd b", "new b odd", "new b missing", "a a missing"] {
                let reply = client.text(&format!("BF.MERGE {refused}"));
                assert!(reply.starts_with('-'), "{refused}: {reply}");
                assert_eq!(digest(client), before, "{refused}");
            }
            assert_eq!(client.text("BF.MERGE new new b"), "-ERR not found\r\n");
            assert_eq!(client.text("BF.MERGE a a a"), "+OK\r\n");
            assert_eq!(digest(client), before, "a filter and itself");
            assert_eq!(client.text("BF.MERGE a b a c"), "+OK\r\n");
            assert_eq!(client.text("BF.MERGE new a"), "+OK\r\n");
            for first in [0, 1000, 2000] {
                for name in ["a", "new"] {
                    let reply = client.text(&format!("BF.MEXISTS {name} {}", items(first)));
                    assert_eq!(reply.matches(":1").count(), 60, "{name} {layout}");
                }
            }
            assert_eq!(client.text("BF.CARD new"), client.text("BF.CARD a"));
            let found = client.text(&format!("BF.MEXISTS b {}", items(2000)));
            assert!(found.matches(":1").count() < 10, "a source is as it was");
        }
    });
}

#[test]
fn merged_filters_answer_for_both() {
    each_server(|_, client| {
        for command in
            ["BF.RESERVE a 0.01 1000", "BF.RESERVE b 0.01 1000", "BF.RESERVE c 0.02 1000"]
        {
            assert_eq!(client.text(command), "+OK\r\n");
        }
        let keys = |range: std::ops::Range<usize>| range.map(key).collect::<Vec<_>>().join(" ");
        client.call(&format!("BF.MADD a {}", keys(0..300)));
        client.call(&format!("BF.MADD b {}", keys(200..500)));
        assert_eq!(client.text("BF.MERGE all a b"), "+OK\r\n");
        let reply = client.text(&format!("BF.MEXISTS all {}", keys(0..500)));
        assert_eq!(reply.matches(":1").count(), 500);
        let count = client.text("BF.CARD all");
        let count: f64 = count[1..].trim().parse().unwrap();
        // 500 keys; the estimate from the bits scatters by less than 1 % at this size, so 5 % are beyond 5 sigma.
        assert!((count - 500.0).abs() < 25.0, "{count}");
        let before = client.text("DEBUG DIGEST");
        assert_eq!(
            client.text("BF.MERGE a c"),
            "-ERR filters of different size, error rate or number of sub-filters cannot be merged\r\n"
        );
        assert_eq!(client.text("BF.MERGE a b none"), "-ERR not found\r\n");
        assert_eq!(client.text("DEBUG DIGEST"), before, "what is refused changes nothing");
        assert_eq!(client.text("BF.MERGE a a b"), "+OK\r\n");
        assert_eq!(client.text("DEBUG DIGEST-VALUE a"), client.text("DEBUG DIGEST-VALUE all"));
    });
}

#[test]
fn full_information_tells_layout_fill_and_rate() {
    each_server(|_, client| {
        client.call("BF.RESERVE b 0.01 1000");
        let keys: Vec<String> = (0..1000).map(key).collect();
        client.call(&format!("BF.MADD b {}", keys.join(" ")));
        client.hello(3);
        let reply = client.text("BF.INFO b FULL");
        assert!(reply.starts_with("%8\r\n+Capacity\r\n:1000\r\n"), "{reply}");
        assert!(reply.contains("+Layout\r\n+redisbloom\r\n"), "{reply}");
        let number = |name: &str| -> f64 {
            let (_, rest) = reply.split_once(name).unwrap();
            rest.trim_start_matches("\r\n,").lines().next().unwrap().parse().unwrap()
        };
        let (fill, rate) = (number("Fill"), number("Estimated error rate"));
        assert!((0.4..0.6).contains(&fill), "{fill}");
        assert!((rate - fill.powi(8)).abs() < 1e-9, "{rate}");
    });
}

#[test]
fn keyspace_events_tell_what_happened() {
    each_server(|server, client| {
        client.call("CONFIG SET notify-keyspace-events KEA");
        let mut listener = server.client();
        listener.call("PSUBSCRIBE __keyspace@0__:*");
        for command in ["BF.ADD b x", "BF.ADD b x", "CF.ADD c x", "CF.DEL c x", "CF.DEL c x"] {
            client.call(command);
        }
        let mut events = String::new();
        for _ in 0..5 {
            let message = listener.receive().unwrap();
            let message = String::from_utf8(message).unwrap();
            let words: Vec<&str> = message.lines().collect();
            events.push_str(words[words.len() - 1]);
            events.push(' ');
        }
        assert_eq!(events, "bf.reserve bf.add cf.reserve cf.add cf.del ");
    });
}

/// Dumps with a byte changed and the checksum made right: refused, or a filter that can be used.
#[test]
fn forged_dumps_do_no_harm() {
    each_server(|_, client| {
        let mut refused = 0;
        for case in ["bf_default", "bf_nonscaling", "cf_default", "cf_bucket4"] {
            let dump = unbase64(digits(&golden(case)["dump"]));
            assert_eq!(envelope::sealed(dump.clone()), dump, "the checksum is Redis' own");
            let mut random = Random(42);
            for round in 0..600 {
                let forged = envelope::forged(&dump, round, &mut random);
                let reply = client.call_words(&[b"RESTORE", b"f", b"0", &forged, b"REPLACE"]);
                if reply.starts_with(b"-") {
                    refused += 1;
                    continue;
                }
                for command in [
                    "BF.ADD f a",
                    "BF.EXISTS f b",
                    "BF.DEBUG f",
                    "BF.SCANDUMP f 1",
                    "CF.ADD f a",
                    "CF.DEL f a",
                    "CF.COUNT f b",
                    "CF.COMPACT f",
                    "CF.SCANDUMP f 1",
                    "COPY f g REPLACE",
                ] {
                    client.call(command);
                }
            }
        }
        assert!(refused > 500, "only {refused} were refused");
        assert_eq!(client.text("PING"), "+PONG\r\n");
    });
}

/// Random commands, to the server and to the library: the same replies, and the same bytes at the end.
#[test]
fn random_commands_agree_with_the_library() {
    each_server(|_, client| {
        let mut random = Random(20261116);
        let limit = MemoryLimit::NONE;
        let mut chain = Chain::new(50, 0.03, Scaling::Growing(3), limit).unwrap();
        let shape = CuckooShape::new(60, 3, 10, 2).unwrap();
        let mut filter = CuckooFilter::new(shape, limit).unwrap();
        client.call("BF.RESERVE b 0.03 50 EXPANSION 3");
        client.call("CF.RESERVE c 60 BUCKETSIZE 3 MAXITERATIONS 10 EXPANSION 2");
        for _ in 0..6000 {
            let key = key(random.index(900));
            let (bloom, cuckoo) = (BloomHash::of(key.as_bytes()), cuckoo_hash(key.as_bytes()));
            let (command, expected) = match random.index(8) {
                0 => ("BF.ADD b", u64::from(chain.insert(bloom, limit).unwrap())),
                1 => ("BF.EXISTS b", u64::from(chain.contains(bloom))),
                2 | 3 => {
                    filter.insert(cuckoo, limit).unwrap();
                    ("CF.ADD c", 1)
                }
                4 => ("CF.ADDNX c", u64::from(filter.insert_new(cuckoo, limit).unwrap())),
                5 => ("CF.COUNT c", filter.count(cuckoo)),
                6 => ("CF.EXISTS c", u64::from(filter.contains(cuckoo))),
                _ => ("CF.DEL c", u64::from(filter.remove(cuckoo))),
            };
            let reply = client.text(&format!("{command} {key}"));
            assert_eq!(reply, format!(":{expected}\r\n"), "{command} {key}");
        }
        use ironbloom_redis::redisbloom::dump;
        assert_eq!(client.scandump("BF", "b")[0].1, dump::chain_header(&chain));
        assert_eq!(client.scandump("CF", "c")[0].1, dump::cuckoo_header(&filter));
        let pieces: Vec<u8> =
            client.scandump("CF", "c").into_iter().skip(1).flat_map(|p| p.1).collect();
        let mut ours: Vec<u8> = Vec::new();
        let mut iterator = 1;
        while let Some((next, piece)) = dump::cuckoo_chunk(&filter, iterator) {
            ours.extend(piece);
            iterator = next;
        }
        assert!(pieces == ours, "the slots differ");
    });
}

/// Few servers can move memory about (those built with their own allocator); elsewhere there is nothing to try.
#[test]
fn defragmentation_moves_filters_and_changes_none() {
    const FILTERS: usize = 1200;
    const KEEP_ONE_OF: usize = 4;
    let items = |i: usize| (0..50).map(|j| format!(" {i}:{j}")).collect::<String>();
    each_server(|_, client| {
        if client.text("CONFIG SET activedefrag yes") != "+OK\r\n" {
            return;
        }
        for setting in ["ignore-bytes 1mb", "threshold-lower 1", "cycle-min 50", "cycle-max 75"] {
            assert_eq!(client.text(&format!("CONFIG SET active-defrag-{setting}")), "+OK\r\n");
        }
        let layouts = [
            ("BF", "0.01 1000"),
            ("BF", "0.01 20 EXPANSION 2"),
            ("BF", "0.01 1000 LAYOUT BLOCKED"),
            ("BF", "0.01 1 WINDOW 10000"),
            ("CF", "1000"),
            ("CF", "1000 ERROR 0.001"),
        ];
        let family = |i: usize| layouts[i % layouts.len()].0;
        for i in 0..FILTERS {
            let (family, how) = layouts[i % layouts.len()];
            assert_eq!(client.text(&format!("{family}.RESERVE k{i} {how}")), "+OK\r\n");
            client.call(&format!("{family}.INSERT k{i} ITEMS{}", items(i)));
        }
        // In runs of as many as there are layouts, so that some of each stay.
        let kept = |i: &usize| (i / layouts.len()).is_multiple_of(KEEP_ONE_OF);
        let digest = |client: &mut Client, i| client.text(&format!("DEBUG DIGEST-VALUE k{i}"));
        let before: Vec<String> = (0..FILTERS).map(|i| digest(client, i)).collect();
        for i in (0..FILTERS).filter(|i| !kept(i)) {
            client.call(&format!("DEL k{i}"));
        }
        let many = FILTERS / KEEP_ONE_OF;
        wait_until(|| client.info("stats", "active_defrag_hits").parse::<usize>().unwrap() > many);
        for i in (0..FILTERS).filter(kept) {
            assert_eq!(digest(client, i), before[i], "k{i}");
            let found = client.text(&format!("{}.MEXISTS k{i}{}", family(i), items(i)));
            assert!(!found.contains(":0"), "k{i}: {found}");
            client.call(&format!("{}.INSERT k{i} ITEMS{}", family(i), items(i + FILTERS)));
            let found = client.text(&format!("{}.MEXISTS k{i}{}", family(i), items(i + FILTERS)));
            assert!(!found.contains(":0"), "k{i}: {found}");
        }
    });
}
