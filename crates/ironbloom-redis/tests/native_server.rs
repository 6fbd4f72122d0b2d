//! Promise: native filters are values like RedisBloom's: all commands, files, replicas, limits; and what is sent in pieces is
//! a filter only when all of it has come.

mod common;

use common::envelope::{self, Field};
use common::server::{
    Client, Server, assert_equal, programs, replica_of, save_or_rewrite, wait_until,
};
use common::{Random, key};
use ironbloom::{BlockedBloom, Bloom, BloomParams, Cuckoo, HashFn, Persist};
use xxhash_rust::xxh3::xxh3_64;

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
const OVER_LIMIT: &str = "-ERR the filter would exceed the memory limit of a key, see CONFIG GET \
                          *key-memory-limit\r\n";

fn each_server(test: impl Fn(&Server, &mut Client)) {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        test(&server, &mut client);
    }
}

/// (how it is made, family) of one native filter of each layout, under these names.
const MADE: [(&str, &str, &str); 5] = [
    ("grow", "BF", "BF.RESERVE grow 0.01 100 LAYOUT BLOCKED"),
    ("fixed", "BF", "BF.RESERVE fixed 0.01 5000 NONSCALING LAYOUT BLOCKED"),
    ("window", "BF", "BF.RESERVE window 0.01 300 WINDOW 300"),
    ("parts", "CF", "CF.RESERVE parts 200 ERROR 0.001"),
    ("one", "CF", "CF.RESERVE one 5000 ERROR 0.0001 EXPANSION 0"),
];

/// Makes all of them, with these keys in them.
fn fill(client: &mut Client, keys: std::ops::Range<usize>) {
    for (name, family, made) in MADE {
        if client.text(&format!("EXISTS {name}")) == ":0\r\n" {
            assert_eq!(client.text(made), "+OK\r\n", "{made}");
        }
        for i in keys.clone() {
            let reply = client.text(&format!("{family}.ADD {name} {}", key(i)));
            assert!(reply == ":1\r\n" || (family == "BF" && reply == ":0\r\n"), "{name}: {reply}");
        }
    }
}

/// All keys are there; of the window, the last 300.
fn check(client: &mut Client, keys: std::ops::Range<usize>) {
    for (name, family, _) in MADE {
        let first = if name == "window" { keys.end.saturating_sub(300) } else { keys.start };
        for i in first.max(keys.start)..keys.end {
            let reply = client.text(&format!("{family}.EXISTS {name} {}", key(i)));
            assert_eq!(reply, ":1\r\n", "{name}: key {i} of {keys:?} is lost");
        }
    }
}

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
                "-ERR rate 6.25e-13 cannot be reached: the hash limits it to 1.8e-9 for so many keys\r\n",
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
            let (which, i) = (random.below(5), random.below(400));
            let (name, family, _) = MADE[which];
            let word = key(i);
            let there = counts[which][i];
            match (family, random.below(4)) {
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

/// The header of a native image, as docs/redis.md says.
fn header_of(image: &[u8]) -> Vec<u8> {
    let mut header = b"IBLOOM01".to_vec();
    header.extend((image.len() as u64).to_le_bytes());
    header.extend(xxh3_64(image).to_le_bytes());
    header
}

/// Header and pieces of so many bytes, with their iterators.
fn pairs_of(image: &[u8], step: usize) -> Vec<(i64, Vec<u8>)> {
    let mut pairs = vec![(1, header_of(image))];
    let mut end = 1;
    for piece in image.chunks(step) {
        end += piece.len() as i64;
        pairs.push((end, piece.to_vec()));
    }
    pairs
}

/// A file as `ironbloom build` makes it from lines; planned for a few fewer, so that it is full.
fn built(count: usize) -> BlockedBloom {
    let mut filter = BlockedBloom::with_rate((count - count / 50) as u64, 0.001).unwrap();
    (0..count).for_each(|i| {
        filter.insert(key(i));
    });
    filter
}

#[test]
fn images_go_in_and_out_in_pieces() {
    each_server(|_, client| {
        let filter = built(20_000);
        let image = filter.to_bytes();
        assert_eq!(client.load("BF", "f", &pairs_of(&image, 10_000)), "+OK\r\n");
        let mut random = Random(1);
        for _ in 0..3000 {
            let word = key(random.below(40_000));
            let reply = client.text(&format!("BF.EXISTS f {word}"));
            assert_eq!(
                reply == ":1\r\n",
                filter.contains(&word),
                "the same answers, also the wrong ones"
            );
        }
        // Out again: the same bytes, 1 MiB at most a piece, as announced.
        let pairs = client.scandump("BF", "f");
        assert_eq!(pairs[0], (1, header_of(&image)));
        let bytes: Vec<u8> = pairs[1..].iter().flat_map(|(_, piece)| piece.clone()).collect();
        assert!(bytes == image);
        assert_eq!(
            client.text(&format!("BF.SCANDUMP f {}", image.len() + 1)),
            "*2\r\n:0\r\n$0\r\n\r\n"
        );
        assert_eq!(client.text("BF.SCANDUMP f -5"), "*2\r\n:0\r\n$0\r\n\r\n");
        assert_eq!(client.text("BF.SCANDUMP f x"), "-Second argument must be numeric\r\n");
        // A larger one, in more than one piece.
        client.call("BF.RESERVE large 0.0001 7000000 LAYOUT BLOCKED");
        client.call("BF.MADD large a b c");
        let pairs = client.scandump("BF", "large");
        assert!(pairs.len() > 3 && pairs[1..].iter().all(|(_, piece)| piece.len() <= 1 << 20));
        assert_eq!(client.load("BF", "large2", &pairs), "+OK\r\n");
        let digests = client.text("DEBUG DIGEST-VALUE large large2");
        let digests: Vec<&str> = digests.lines().skip(1).collect();
        assert_eq!(digests[0], digests[1]);
        client.call("DEL large large2");
        // A full filter refuses, and says so.
        assert_eq!(client.text("BF.ADD f one-more"), "-ERR non scaling filter is full\r\n");
        assert_eq!(client.text(&format!("BF.ADD f {}", key(1))), ":0\r\n");
        // Cuckoo filters, with their two numbers; and a plain file without.
        fill(client, 0..700);
        let pairs = client.scandump("CF", "parts");
        assert_eq!(pairs[0].1.len(), 40);
        assert_eq!(client.load("CF", "parts2", &pairs), "+OK\r\n");
        let digests = client.text("DEBUG DIGEST-VALUE parts parts2");
        let digests: Vec<&str> = digests.lines().skip(1).collect();
        assert_eq!(digests[0], digests[1]);
        let mut cuckoo = Cuckoo::with_rate(1000, 0.001).unwrap();
        (0..1000).for_each(|i| cuckoo.insert(key(i)).unwrap());
        assert_eq!(client.load("CF", "file", &pairs_of(&cuckoo.to_bytes(), 900)), "+OK\r\n");
        assert_eq!(client.text(&format!("CF.DEL file {}", key(5))), ":1\r\n");
        assert_eq!(client.text("CF.ADD file x"), ":1\r\n");
        assert_eq!(client.text("CF.ADD file y"), "-Filter is full\r\n");
    });
}

#[test]
fn what_is_not_whole_is_no_filter_yet() {
    each_server(|server, client| {
        let image = built(15_000).to_bytes();
        let pairs = pairs_of(&image, 4000);
        assert_eq!(client.load("BF", "f", &pairs[..2]), "+OK\r\n");
        let loading =
            format!("-ERR the filter is still being loaded: 4000 of {} bytes\r\n", image.len());
        for command in [
            "BF.ADD f x",
            "BF.MADD f x",
            "BF.INSERT f ITEMS x",
            "BF.EXISTS f x",
            "BF.MEXISTS f x",
            "BF.FIND f x",
            "BF.CARD f",
            "BF.INFO f",
            "BF.INFO f FULL",
            "BF.DEBUG f",
            "BF.SCANDUMP f 0",
            "BF.MERGE g f",
            "BF.MERGE f f",
            "BF.RESERVE f 0.1 10",
        ] {
            assert_eq!(client.text(command), loading, "{command}");
        }
        assert_eq!(client.text("CF.ADD f x"), WRONG_TYPE);
        assert_eq!(client.text("EXISTS g"), ":0\r\n");
        // Out of order, twice, too long, empty: refused, and the load goes on.
        let order = "-ERR the chunk is not the next one: its iterator should be 8001\r\n";
        assert_eq!(client.load("BF", "f", &pairs[1..2]), order);
        assert_eq!(client.load("BF", "f", &pairs[3..4]), order);
        assert_eq!(client.text("BF.LOADCHUNK f 4001 "), "-ERR received bad data\r\n");
        assert_eq!(client.text("BF.LOADCHUNK f x y"), "-ERR Second argument must be numeric\r\n");
        let long = vec![(image.len() as i64 + 2, [&image[4000..], b"x"].concat())];
        assert_eq!(
            client.load("BF", "f", &long),
            "-ERR the chunk reaches beyond the end of the filter\r\n"
        );
        // What has come can be copied, saved and rewritten like any value.
        assert_eq!(client.text("COPY f copy"), ":1\r\n");
        let dump = client.bytes(&[b"DUMP", b"f"]);
        assert_eq!(client.call_words(&[b"RESTORE", b"back", b"0", &dump]), b"+OK\r\n");
        for name in ["f", "copy", "back"] {
            assert_eq!(client.load("BF", name, &pairs[2..]), "+OK\r\n");
            assert_eq!(client.text(&format!("BF.EXISTS {name} {}", key(4999))), ":1\r\n");
        }
        assert_eq!(
            client.load("BF", "f", &pairs[pairs.len() - 1..]),
            "-ERR the filter is loaded already\r\n"
        );
        assert_eq!(client.load("BF", "f", &pairs[..1]), "-ERR item exists\r\n");
        // A header begins anew as long as it is not whole.
        client.load("BF", "again", &pairs[..3]);
        assert_eq!(client.load("BF", "again", &pairs), "+OK\r\n");
        assert_eq!(client.text("BF.CARD again"), client.text("BF.CARD f"));
        // Another type's key stays what it is.
        client.call("SET text x");
        client.call("BF.ADD theirs x");
        assert_eq!(client.load("BF", "text", &pairs), WRONG_TYPE);
        assert_eq!(client.load("BF", "theirs", &pairs), "-ERR item exists\r\n");
        assert_eq!(client.load("BF", "none", &pairs[1..]), "-ERR not found\r\n");
        // The limit is asked by the header, before anything is taken.
        client.call("CONFIG SET ironbloom.key-memory-limit 20000");
        assert_eq!(client.load("BF", "over", &pairs), OVER_LIMIT);
        let mut absurd = pairs[0].clone();
        absurd.1[8..16].copy_from_slice(&(1u64 << 60).to_le_bytes());
        assert_eq!(client.load("BF", "over", &[absurd]), OVER_LIMIT);
        assert_eq!(client.text("EXISTS over"), ":0\r\n");
        let _ = server;
    });
}

/// A load that fails at its end leaves nothing, here and on a replica.
#[test]
fn damaged_and_foreign_images_leave_nothing_behind() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let replica = replica_of(&server, &program, &[]);
        let client = &mut server.client();
        let image = built(3000).to_bytes();
        let mut random = Random(3);
        let mut damaged = Vec::new();
        for _ in 0..40 {
            let mut bytes = image.clone();
            bytes[random.below(image.len())] ^= 1 << random.below(8);
            damaged.push(bytes);
        }
        let params = BloomParams::for_rate(100, 0.01).unwrap();
        let external = Bloom::new(params, HashFn::External { id: 4 }).unwrap().to_bytes();
        let cuckoo = Cuckoo::with_rate(100, 0.01).unwrap().to_bytes();
        damaged.extend([external.clone(), cuckoo.clone(), b"no image at all".to_vec()]);
        damaged.push(image[..1000].to_vec());
        damaged.push([&image[..], &image[..]].concat());
        for (i, bytes) in damaged.iter().enumerate() {
            // The sum of the header is that of the damaged bytes, so the image itself must be looked at.
            let reply = client.load("BF", "f", &pairs_of(bytes, 700));
            assert!(reply.starts_with("-ERR the filter was not loaded: "), "{i}: {reply}");
            assert_eq!(client.text("EXISTS f"), ":0\r\n");
        }
        let reply = client.load("BF", "f", &pairs_of(&external, 1 << 20));
        assert!(reply.contains("hashes of another program (external hash 4)"), "{reply}");
        let reply = client.load("BF", "f", &pairs_of(&cuckoo, 1 << 20));
        assert!(reply.contains("CF.LOADCHUNK takes it"), "{reply}");
        // Damage on the way: the sum of the header sees it.
        let mut pairs = pairs_of(&image, 700);
        pairs[2].1[5] ^= 1;
        let reply = client.load("BF", "f", &pairs);
        assert!(reply.contains("the bytes are not those that the header announced"), "{reply}");
        assert_equal(&server, &replica);
        assert_eq!(replica.client().text("DBSIZE"), ":0\r\n");
        assert_eq!(client.load("BF", "f", &pairs_of(&image, 700)), "+OK\r\n");
        assert_equal(&server, &replica);
        assert_eq!(replica.client().text("DBSIZE"), ":1\r\n");
        assert!(!replica.log().contains("== CRITICAL =="), "{}", replica.log());
    }
}

/// Dumps with a byte changed and the checksum made right: refused, or a filter that can be used.
#[test]
fn forged_dumps_of_native_filters_do_no_harm() {
    each_server(|_, client| {
        fill(client, 0..300);
        client.load("BF", "half", &pairs_of(&built(300).to_bytes(), 300)[..2]);
        let mut refused = 0;
        for name in ["grow", "fixed", "window", "parts", "one", "half"] {
            let dump = client.bytes(&[b"DUMP", name.as_bytes()]);
            let (kind, version, fields) = envelope::open(&dump);
            assert!(["ironbloom", "ironcucko"].contains(&kind.as_str()) && version == 1);
            assert!(matches!(fields.0[0], Field::Unsigned(0 | 1)));
            let mut random = Random(9);
            for round in 0..400 {
                let mut forged = dump.clone();
                let near = if round % 2 == 0 { 60 } else { dump.len() - 10 };
                forged[random.below(near)] ^= 1 << random.below(8);
                if round % 5 == 0 {
                    forged.drain(dump.len() / 2..dump.len() - 10 - random.below(40));
                }
                let forged = envelope::sealed(forged);
                let reply = client.call_words(&[b"RESTORE", b"f", b"0", &forged, b"REPLACE"]);
                if reply.starts_with(b"-") {
                    refused += 1;
                    continue;
                }
                for command in [
                    "BF.ADD f a",
                    "BF.EXISTS f b",
                    "BF.INFO f FULL",
                    "BF.DEBUG f",
                    "BF.SCANDUMP f 0",
                    "CF.ADD f a",
                    "CF.DEL f a",
                    "CF.COUNT f b",
                    "CF.COMPACT f",
                    "CF.SCANDUMP f 1",
                    "BF.LOADCHUNK f 400 x",
                    "COPY f g REPLACE",
                ] {
                    client.call(command);
                }
            }
        }
        assert!(refused > 2000, "only {refused} were refused");
        assert_eq!(client.text("PING"), "+PONG\r\n");
    });
}

#[test]
fn native_filters_survive_saving_rewriting_and_restarts() {
    for program in programs() {
        for options in [
            &["--dbfilename", "a.rdb"][..],
            &["--appendonly", "yes", "--appendfsync", "no"],
            &["--appendonly", "yes", "--appendfsync", "no", "--aof-use-rdb-preamble", "no"],
        ] {
            let mut server = Server::start(&program, options);
            let mut client = server.client();
            fill(&mut client, 0..900);
            let pairs = pairs_of(&built(2000).to_bytes(), 999);
            assert_eq!(client.load("BF", "half", &pairs[..3]), "+OK\r\n");
            save_or_rewrite(&mut client, options);
            let digest = client.text("DEBUG DIGEST");
            server.kill_and_restart();
            let mut client = server.client();
            assert_eq!(client.text("DEBUG DIGEST"), digest, "{options:?}");
            check(&mut client, 0..900);
            assert!(
                client
                    .text("BF.CARD half")
                    .starts_with("-ERR the filter is still being loaded: 1998 of")
            );
            assert_eq!(client.load("BF", "half", &pairs[3..]), "+OK\r\n", "the load goes on");
            assert_eq!(client.text(&format!("BF.EXISTS half {}", key(1999))), ":1\r\n");
            // Filters go on growing as they would have.
            fill(&mut client, 900..1200);
            check(&mut client, 0..1200);
        }
    }
}

/// Ends the server in the midst of commands: what was acknowledged must be there.
#[test]
fn nothing_acknowledged_is_lost_of_native_filters() {
    for program in programs() {
        let options = ["--appendonly", "yes", "--appendfsync", "always"];
        let mut server = Server::start(&program, &options);
        let mut acknowledged = 0;
        for round in 0..3 {
            let mut client = server.client();
            let end = acknowledged + 200 + 41 * round;
            let ahead = 20;
            MADE.iter().for_each(|(_, _, made)| {
                client.text(made);
            });
            for i in acknowledged..end + ahead {
                let (name, family, _) = MADE[i % 5];
                let (command, word) = (format!("{family}.ADD"), key(i));
                client.send(&[command.as_bytes(), name.as_bytes(), word.as_bytes()]).unwrap();
                if i >= acknowledged + ahead && i < end {
                    client.receive().unwrap();
                }
            }
            server.kill_and_restart();
            let mut client = server.client();
            for i in 0..end - ahead {
                let (name, family, _) = MADE[i % 5];
                let reply = client.text(&format!("{family}.EXISTS {name} {}", key(i)));
                assert_eq!(reply, ":1\r\n", "{}: key {i} of {end} in {name}", program.display());
            }
            acknowledged = end - ahead;
        }
    }
}

/// A replica with other settings has the same bytes, whether it was there from the start or came later.
#[test]
fn replicas_of_native_filters_are_equal() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let replica = replica_of(&server, &program, &[]);
        let mut other = replica.client();
        for (name, value) in
            [("bf-expansion-factor", "7"), ("cf-expansion-factor", "4"), ("key-memory-limit", "64")]
        {
            other.configure(name, value);
        }
        let mut client = server.client();
        fill(&mut client, 0..500);
        for command in [
            "BF.MADD window a b a c a",
            "BF.INSERT made WINDOW 20 ITEMS a b a c a",
            "BF.INSERT made2 CAPACITY 5 NONSCALING LAYOUT BLOCKED ITEMS a b c d e f g h i j k l m n",
            "BF.MADD made2 a b new1 new2",
            "BF.MADD grow x y x z",
            "CF.INSERT parts ITEMS a a a b",
            "CF.DEL parts a",
            "CF.INSERTNX one ITEMS a b a",
            "CF.COMPACT parts",
            "BF.MERGE union grow",
        ] {
            client.call(command);
        }
        for i in 0..300 {
            client.call(&format!("CF.DEL parts {}", key(i)));
        }
        assert_eq!(
            client.load("BF", "half", &pairs_of(&built(2000).to_bytes(), 999)[..3]),
            "+OK\r\n"
        );
        assert_equal(&server, &replica);
        let late = replica_of(&server, &program, &[]);
        assert_equal(&server, &late);
        assert!(!replica.log().contains("== CRITICAL =="), "{}", replica.log());
        // Repeats: no change for all but windows, which remember anew.
        let dirty = client.info("persistence", "rdb_changes_since_last_save");
        client.call(&format!("BF.ADD grow {}", key(1)));
        client.call(&format!("BF.MADD fixed {} {}", key(1), key(2)));
        assert_eq!(client.info("persistence", "rdb_changes_since_last_save"), dirty);
        client.call("BF.ADD window a");
        assert_ne!(client.info("persistence", "rdb_changes_since_last_save"), dirty);
        assert_equal(&server, &replica);
    }
}

/// The primary dies without warning; what it acknowledged and one replica had (WAIT) answers there.
#[test]
fn a_replica_takes_over_with_all_that_was_waited_for() {
    for program in programs() {
        let mut server = Server::start(&program, &[]);
        let replica = replica_of(&server, &program, &[]);
        let mut client = server.client();
        fill(&mut client, 0..10);
        let mut waited = 10;
        for round in 0..5 {
            for i in waited..waited + 60 {
                let (name, family, _) = MADE[(i + round) % 5];
                client.call(&format!("{family}.ADD {name} {}", key(i)));
                client.call(&format!("BF.ADD theirs {}", key(i)));
                client.call(&format!("CF.ADD theirs2 {}", key(i)));
            }
            assert_eq!(client.text("WAIT 1 30000"), ":1\r\n");
            waited += 60;
        }
        // More that nobody waited for is under way.
        for i in waited..waited + 200 {
            client.send(&[b"BF.ADD", b"theirs", key(i).as_bytes()]).unwrap();
        }
        server.kill();
        let mut client = replica.client();
        assert_eq!(client.text("REPLICAOF NO ONE"), "+OK\r\n");
        let mut i = 10;
        for round in 0..5 {
            for _ in 0..60 {
                let (name, family, _) = MADE[(i + round) % 5];
                for (family, name) in [(family, name), ("BF", "theirs"), ("CF", "theirs2")] {
                    let reply = client.text(&format!("{family}.EXISTS {name} {}", key(i)));
                    assert_eq!(reply, ":1\r\n", "{}: key {i} in {name}", program.display());
                }
                i += 1;
            }
        }
        // It is a primary now: writes, growth and compaction go on.
        fill(&mut client, 1000..1300);
        check(&mut client, 1000..1300);
    }
}
