//! Commands and their options, beside sets; copies, merges, memory and limits.

use super::{MADE, OVER_LIMIT, WRONG_TYPE, each_server, fill};
use crate::common::key;
use ironbloom_testing::Random;
use ironbloom_testing::module::Client;
use ironbloom_testing::wait_until;

/// (command, reply)
#[test]
fn options_make_native_filters_or_say_what_is_wrong() {
    each_server(|server, client| {
        let window_alone = "-ERR a filter with WINDOW does not grow: no EXPANSION, NONSCALING or LAYOUT with it\r\n";
        let expansion = "-ERR with LAYOUT BLOCKED, EXPANSION must be in the range [2, 16], or 0 for a filter that does \
                         not grow\r\n";
        for (command, reply) in [
            ("BF.RESERVE a 0.01 100 LAYOUT BLOCKED", "+OK\r\n"),
            ("BF.RESERVE a 0.01 100 LAYOUT BLOCKED", "-ERR item exists\r\n"),
            ("BF.RESERVE b 0.01 100 layout blocked EXPANSION 4", "+OK\r\n"),
            ("BF.INFO b EXPANSION", "*1\r\n:4\r\n"),
            ("BF.RESERVE c 0.01 100 EXPANSION 0 LAYOUT BLOCKED", "+OK\r\n"),
            ("BF.INFO c EXPANSION", "*1\r\n$-1\r\n"),
            ("BF.RESERVE d 0.01 100 LAYOUT REDISBLOOM NONSCALING", "+OK\r\n"),
            ("TYPE d", "+MBbloom--\r\n"),
            ("TYPE a", "+ironbloom\r\n"),
            ("BF.RESERVE e 0.01 100 LAYOUT FLAT", "-ERR LAYOUT must be REDISBLOOM or BLOCKED\r\n"),
            ("BF.RESERVE e 0.01 100 LAYOUT", "-ERR LAYOUT must be REDISBLOOM or BLOCKED\r\n"),
            ("BF.RESERVE e 0.01 100 LAYOUT BLOCKED EXPANSION 1", expansion),
            ("BF.RESERVE e 0.01 100 LAYOUT BLOCKED EXPANSION 17", expansion),
            (
                "BF.RESERVE e 0.01 100 LAYOUT BLOCKED EXPANSION 2 NONSCALING",
                "-Nonscaling filters cannot expand\r\n",
            ),
            (
                "BF.RESERVE e 0.01 100 WINDOW",
                "-ERR WINDOW must be in the range [1, 1073741824]\r\n",
            ),
            (
                "BF.RESERVE e 0.01 100 WINDOW 0",
                "-ERR WINDOW must be in the range [1, 1073741824]\r\n",
            ),
            (
                "BF.RESERVE e 0.01 100 WINDOW x",
                "-ERR WINDOW must be in the range [1, 1073741824]\r\n",
            ),
            ("BF.RESERVE e 0.01 100 WINDOW 50 EXPANSION 2", window_alone),
            ("BF.RESERVE e 0.01 100 WINDOW 50 NONSCALING", window_alone),
            ("BF.RESERVE e 0.01 100 WINDOW 50 LAYOUT BLOCKED", window_alone),
            ("BF.INSERT e WINDOW 50 EXPANSION 2 ITEMS x", window_alone),
            ("BF.INSERT e LAYOUT BLOCKED EXPANSION 1 ITEMS x", expansion),
            ("BF.INSERT e LAYOUT ITEMS x", "-ERR LAYOUT must be REDISBLOOM or BLOCKED\r\n"),
            ("BF.INSERT e LAY BLOCKED ITEMS x", "-Unknown argument received\r\n"),
            ("EXISTS e", ":0\r\n"),
            ("BF.INSERT e WINDOW 50 ERROR 0.1 ITEMS x y x", "*3\r\n:1\r\n:1\r\n:0\r\n"),
            ("BF.CARD e", ":3\r\n"),
            ("BF.INFO e CAPACITY", "*1\r\n:50\r\n"),
            ("BF.INSERT f CAPACITY 50 NONSCALING LAYOUT BLOCKED ITEMS x", "*1\r\n:1\r\n"),
            ("BF.INFO f FILTERS", "*1\r\n:1\r\n"),
            ("BF.FIND f x y", "*2\r\n:1\r\n:0\r\n"),
            ("BF.FIND none x", "$-1\r\n"),
            ("CF.RESERVE g 100 ERROR 0.001", "+OK\r\n"),
            ("TYPE g", "+ironcucko\r\n"),
            ("CF.RESERVE h 100 ERROR 1", "-ERR ERROR must be in the range (0, 1)\r\n"),
            ("CF.RESERVE h 100 ERROR x", "-ERR ERROR must be in the range (0, 1)\r\n"),
            (
                "CF.RESERVE h 100 ERROR 0.1 EXPANSION 2",
                "-ERR with ERROR, EXPANSION must be 0 (does not grow) or 1 (grows by equal parts, 16 at most)\r\n",
            ),
            (
                "CF.RESERVE h 100 ERROR 0.1 BUCKETSIZE 2",
                "-ERR with ERROR, buckets have four slots and the search for room its own end: no BUCKETSIZE or \
                 MAXITERATIONS with it\r\n",
            ),
            (
                "CF.RESERVE h 1000000 ERROR 0.00000000001",
                "-ERR rate 6.25e-13 cannot be reached: the hash limits it to 1.8e-9 for this many keys\r\n",
            ),
            ("EXISTS h", ":0\r\n"),
            ("BF.ADD g x", WRONG_TYPE),
            ("CF.ADD a x", WRONG_TYPE),
            ("BF.EXISTS g x", ":0\r\n"),
            ("CF.DEL a x", "-Not found\r\n"),
            ("BF.DEBUG g", WRONG_TYPE),
            ("CF.ADD g x", ":1\r\n"),
            ("CF.ADD g x", ":1\r\n"),
            ("CF.ADDNX g x", ":0\r\n"),
            ("CF.INSERTNX g ITEMS x y", "*2\r\n:0\r\n:1\r\n"),
            ("CF.COUNT g x", ":2\r\n"),
            ("CF.MEXISTS g x y z", "*3\r\n:1\r\n:1\r\n:0\r\n"),
            ("CF.DEL g x", ":1\r\n"),
            ("CF.DEL g z", ":0\r\n"),
            ("CF.COMPACT g", "+OK\r\n"),
        ] {
            // The floor's digits depend on the machine's logarithm: only the words count there.
            let ours = client.text(command);
            if reply.contains("cannot be reached") {
                assert!(ours.contains("cannot be reached: the hash limits it to"), "{ours}");
            } else {
                assert_eq!(ours, reply, "{command}");
            }
        }
        assert!(
            client.text("CF.DEBUG g").contains("items:2 deletes:0 filters:1 fingerprint_bits:")
        );
        assert!(client.text("BF.DEBUG a").contains("size:0\r\n"));
        let docs = client.text("COMMAND DOCS bf.reserve cf.reserve");
        for part in ["\r\nLAYOUT\r\n", "\r\nWINDOW\r\n", "\r\nERROR\r\n"] {
            assert!(
                docs.contains(part) || client.info("server", "redis_version").starts_with("6.")
            );
        }
        assert_eq!(client.info("everything", "ironbloom_native_bloom_filters"), "5");
        assert_eq!(client.info("everything", "ironbloom_native_cuckoo_filters"), "1");
        // The third version of the protocol: truth values and maps.
        let mut client = server.client();
        client.hello(3);
        assert_eq!(client.text("BF.MADD a one two one"), "*3\r\n#t\r\n#t\r\n#f\r\n");
        assert_eq!(client.text("CF.EXISTS g y"), "#t\r\n");
        assert!(client.text("CF.INFO g").starts_with("%9\r\n+Size\r\n:"));
        for (name, layout) in [("a", "blocked"), ("c", "blocked"), ("e", "window")] {
            let full = client.text(&format!("BF.INFO {name} FULL"));
            assert!(full.starts_with("%8\r\n"), "{full}");
            assert!(full.contains(&format!("+Layout\r\n+{layout}\r\n+Fill\r\n,")), "{full}");
        }
    });
}

/// Random commands to the server, and the same to exact sets: no key is ever denied, and what is new was not there.
#[test]
fn random_commands_agree_with_sets() {
    each_server(|_, client| {
        let mut random = Random(5);
        MADE.iter().for_each(|(_, _, made)| assert_eq!(client.text(made), "+OK\r\n"));
        let mut counts = [[0u64; 400]; 5];
        let mut last: Vec<usize> = Vec::new();
        for _ in 0..8000 {
            let (which, i) = (random.index(5), random.index(400));
            let (name, family, _) = MADE[which];
            let word = key(i);
            let there = counts[which][i];
            match (family, random.index(4)) {
                ("BF", 0 | 1) => {
                    let reply = client.text(&format!("BF.ADD {name} {word}"));
                    if name == "window" {
                        let is_recent = last.iter().rev().take(300).any(|&other| other == i);
                        assert!(!(is_recent && reply == ":1\r\n"), "{name} {word}");
                        last.push(i);
                    } else {
                        assert!(!(there > 0 && reply == ":1\r\n"), "{name} {word}");
                    }
                    counts[which][i] = 1;
                }
                ("BF", _) => {
                    let is_there = match name {
                        "window" => last.iter().rev().take(300).any(|&other| other == i),
                        _ => there > 0,
                    };
                    let reply = client.text(&format!("BF.EXISTS {name} {word}"));
                    assert!(!is_there || reply == ":1\r\n", "{name} {word} is denied");
                }
                // Nine of one key do not fit one table, so no more than five here.
                (_, 0 | 1) if there < 5 => {
                    assert_eq!(client.text(&format!("CF.ADD {name} {word}")), ":1\r\n");
                    counts[which][i] += 1;
                }
                (_, 2) if there > 0 => {
                    assert_eq!(client.text(&format!("CF.DEL {name} {word}")), ":1\r\n");
                    counts[which][i] -= 1;
                }
                _ => {
                    let count = client.text(&format!("CF.COUNT {name} {word}"));
                    assert!(count[1..].trim().parse::<u64>().unwrap() >= there, "{name} {word}");
                }
            }
        }
        for (which, name) in [(3, "parts"), (4, "one")] {
            let sum: u64 = counts[which].iter().sum();
            let info = client.text(&format!("CF.INFO {name}"));
            assert!(info.contains(&format!("+Number of items inserted\r\n:{sum}\r\n")), "{info}");
        }
        assert!(client.text("CF.DEBUG parts").contains("filters:"), "it grew");
        assert_ne!(client.text("BF.INFO grow FILTERS"), "*1\r\n:1\r\n");
    });
}

#[test]
fn native_filters_are_copied_merged_measured_and_freed() {
    each_server(|_, client| {
        fill(client, 0..400);
        for (name, ..) in MADE {
            assert_eq!(client.text(&format!("COPY {name} copy-{name}")), ":1\r\n");
            let digests = client.text(&format!("DEBUG DIGEST-VALUE {name} copy-{name}"));
            let digests: Vec<&str> = digests.lines().skip(1).collect();
            assert_eq!(digests[0], digests[1], "{name}");
            let dump = client.bytes(&[b"DUMP", name.as_bytes()]);
            let restored = format!("restored-{name}");
            let words: [&[u8]; 4] = [b"RESTORE", restored.as_bytes(), b"0", &dump];
            assert_eq!(client.call_words(&words), b"+OK\r\n");
            let digests = client.text(&format!("DEBUG DIGEST-VALUE {name} restored-{name}"));
            let digests: Vec<&str> = digests.lines().skip(1).collect();
            assert_eq!(digests[0], digests[1], "{name}");
        }
        let before = client.text("DEBUG DIGEST-VALUE grow fixed parts");
        client.call("BF.ADD copy-grow new");
        client.call("BF.ADD copy-fixed new");
        client.call(&format!("CF.DEL copy-parts {}", key(3)));
        assert_eq!(client.text("DEBUG DIGEST-VALUE grow fixed parts"), before);
        assert_ne!(client.text("DEBUG DIGEST-VALUE copy-grow copy-fixed copy-parts"), before);

        // Merging: equal geometry, or nothing is changed.
        for name in ["grow", "fixed"] {
            client.call(&format!("BF.MADD copy-{name} only in the copy"));
            assert_eq!(client.text(&format!("BF.MERGE all-{name} {name} copy-{name}")), "+OK\r\n");
            let reply = client.text(&format!("BF.MEXISTS all-{name} only in the copy {}", key(7)));
            assert_eq!(reply.matches(":1").count(), 5);
        }
        let before = client.text("DEBUG DIGEST");
        let layouts =
            "-ERR filters of different layouts, and filters with WINDOW, cannot be merged\r\n";
        client.call("BF.RESERVE theirs 0.01 100");
        client.call("BF.RESERVE other 0.01 77 LAYOUT BLOCKED NONSCALING");
        for (command, reply) in [
            ("BF.MERGE grow fixed", layouts),
            ("BF.MERGE grow theirs", layouts),
            ("BF.MERGE theirs grow", layouts),
            ("BF.MERGE w window", "+OK\r\n"),
            ("BF.MERGE window window", layouts),
            ("BF.MERGE parts grow", WRONG_TYPE),
        ] {
            if reply.starts_with('+') {
                continue; // one window alone would be a copy; it is refused like the others
            }
            assert_eq!(client.text(command), reply, "{command}");
        }
        assert!(
            client
                .text("BF.MERGE fixed other")
                .starts_with("-ERR filters cannot be merged: number of blocks differs")
        );
        client.call("DEL theirs other");
        assert_eq!(client.text("DEBUG DIGEST"), before);

        // Memory: in the server's accounts, 1 KiB beyond the bits at most, and given back in another thread.
        client.call("FLUSHALL SYNC");
        let used =
            |client: &mut Client| -> i64 { client.info("memory", "used_memory").parse().unwrap() };
        let start = used(client);
        for (command, name) in [
            ("BF.RESERVE b 0.001 2000000 LAYOUT BLOCKED", "BF.INFO b SIZE"),
            ("BF.RESERVE w 0.001 100 WINDOW 500000", "BF.INFO w SIZE"),
            ("BF.RESERVE s 0.001 1000 LAYOUT BLOCKED", "BF.INFO s SIZE"),
        ] {
            let before = used(client);
            assert_eq!(client.text(command), "+OK\r\n");
            let size: i64 = client.text(name)[5..].trim().parse().unwrap();
            let usage =
                client.text(&format!("MEMORY USAGE {}", command.split(' ').nth(1).unwrap()));
            let usage: i64 = usage[1..].trim().parse().unwrap();
            assert!((size..size + 1024).contains(&usage), "{command}: {usage} for {size}");
            // The server's own buffers come and go meanwhile: they are small beside the two large filters.
            let counted = used(client) - before;
            assert!(counted >= size - (256 << 10), "{command}: {counted} counted of {size}");
        }
        let freed: u64 = client.info("memory", "lazyfreed_objects").parse().unwrap();
        client.call("UNLINK b w s");
        wait_until(|| used(client) - start < 1 << 20);
        let now: u64 = client.info("memory", "lazyfreed_objects").parse().unwrap();
        assert_eq!(now, freed + 2, "the two large ones");
        // The limit holds before memory is taken, when a filter is made and when it grows.
        client.call("CONFIG SET ironbloom.key-memory-limit 4000");
        assert_eq!(client.text("BF.RESERVE b 0.001 1000000 LAYOUT BLOCKED"), OVER_LIMIT);
        assert_eq!(client.text("BF.RESERVE b 0.001 100 WINDOW 1000000"), OVER_LIMIT);
        assert_eq!(client.text("CF.RESERVE b 1000000 ERROR 0.01"), OVER_LIMIT);
        assert_eq!(client.text("BF.RESERVE b 0.001 300 LAYOUT BLOCKED"), "+OK\r\n");
        let keys: Vec<String> = (0..3000).map(key).collect();
        let reply = client.text(&format!("BF.MADD b {}", keys.join(" ")));
        assert!(reply.ends_with(OVER_LIMIT), "{reply}");
        let size: i64 = client.text("BF.INFO b SIZE")[5..].trim().parse().unwrap();
        assert!((1000..=4000).contains(&size), "{size}");
    });
}
