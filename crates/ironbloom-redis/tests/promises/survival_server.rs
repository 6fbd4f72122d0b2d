//! Promise: whatever commands can make of a key survives DUMP and RESTORE, COPY, SCANDUMP and LOADCHUNK, a reload, a
//! rewritten append-only file, a restart and a full sync; and a counter that does not fit never keeps a server down.
//!
//! The same law without a server, with many more steps: `survival.rs`.

use crate::common::envelope;
use crate::common::*;
use ironbloom_testing::Random;
use ironbloom_testing::module::{
    Client, Server, all_programs as programs, assert_equal, replica_of, save_or_rewrite,
};

/// The estimated number of keys after a merge may exceed what a stage was planned for: of two in five of such pairs.
#[test]
fn merged_growing_blocked_filters_survive_a_restart() {
    const PAIRS: usize = 16;
    for program in programs() {
        let mut server = Server::start(&program, &["--dbfilename", "a.rdb"]);
        let mut client = server.client();
        let items = |first: usize| (first..first + 300).map(key).collect::<Vec<_>>().join(" ");
        for pair in 0..PAIRS {
            for (name, first) in [("a", 1000 * pair), ("b", 1000 * pair + 500)] {
                client.call(&format!("BF.RESERVE {name}{pair} 0.01 100 LAYOUT BLOCKED"));
                client.call(&format!("BF.MADD {name}{pair} {}", items(first)));
            }
            assert_eq!(client.text(&format!("BF.MERGE all{pair} a{pair} b{pair}")), "+OK\r\n");
            assert_eq!(client.text(&format!("BF.MERGE a{pair} a{pair}")), "+OK\r\n");
        }
        assert_eq!(client.text("SAVE"), "+OK\r\n");
        server.kill_and_restart();
        let mut client = server.client();
        for pair in 0..PAIRS {
            for (name, first) in [("a", 0), ("all", 0), ("all", 500)] {
                let items = items(1000 * pair + first);
                let found = client.text(&format!("BF.MEXISTS {name}{pair} {items}"));
                assert_eq!(found.matches(":1").count(), 300, "{name}{pair}");
            }
        }
    }
}

/// A merge in a transaction, in a script and alone: the same bytes on a replica and from the append-only file.
#[test]
fn merges_are_the_same_on_replicas_and_in_files() {
    for program in programs() {
        let options =
            ["--appendonly", "yes", "--appendfsync", "no", "--aof-use-rdb-preamble", "no"];
        let mut server = Server::start(&program, &options);
        let mut client = server.client();
        let replica = replica_of(&server, &program, &[]);
        for layout in ["REDISBLOOM", "BLOCKED"] {
            for (i, name) in ["a", "b", "c"].iter().enumerate() {
                client.call(&format!("BF.RESERVE {layout}{name} 0.01 100 LAYOUT {layout}"));
                let items = (150 * i..150 * i + 150).map(key).collect::<Vec<_>>().join(" ");
                client.call(&format!("BF.MADD {layout}{name} {items}"));
            }
            assert_eq!(
                client.text(&format!("BF.MERGE {layout}new {layout}a {layout}b")),
                "+OK\r\n"
            );
            client.call("MULTI");
            client.call(&format!("BF.MERGE {layout}a {layout}b"));
            client.call(&format!("BF.ADD {layout}b later"));
            client.call(&format!("BF.MERGE {layout}a {layout}c {layout}b"));
            let reply = client.text("EXEC");
            assert!(reply.contains("+OK\r\n:1\r\n+OK\r\n"), "{reply}");
            let script = "return redis.call('BF.MERGE', KEYS[1], KEYS[1], KEYS[2])";
            let (to, from) = (format!("{layout}c"), format!("{layout}a"));
            let words = ["EVAL", script, "2", &to, &from].map(str::as_bytes);
            assert_eq!(client.call_words(&words), b"+OK\r\n");
            for i in 0..450 {
                let reply = client.text(&format!("BF.EXISTS {layout}c {}", key(i)));
                assert_eq!(reply, ":1\r\n", "{layout} key {i}");
            }
        }
        assert_equal(&server, &replica);
        drop(replica);
        let digest = client.text("DEBUG DIGEST");
        server.kill_and_restart();
        assert_eq!(server.client().text("DEBUG DIGEST"), digest, "restarted");
    }
}

/// The header of a cuckoo filter of RedisBloom's layout that announces 300 keys in three sub-filters of 64 buckets.
fn announcing_300_keys() -> Vec<u8> {
    let mut header: Vec<u8> =
        [300u64, 64, 0, 3].iter().flat_map(|word| word.to_le_bytes()).collect();
    header.extend([2u16, 20, 1].iter().flat_map(|word| word.to_le_bytes()));
    header
}

/// Compaction drops the sub-filters that nothing came for; then more keys are announced than there are slots.
#[test]
fn an_unfinished_load_survives_whatever_comes_after_it() {
    for program in programs() {
        let mut server = Server::start(&program, &["--dbfilename", "a.rdb"]);
        let mut client = server.client();
        for command in ["CF.COMPACT", "CF.INSERT", "CF.DEL"] {
            let words: [&[u8]; 4] =
                [b"CF.LOADCHUNK", command.as_bytes(), b"1", &announcing_300_keys()];
            assert_eq!(client.call_words(&words), b"+OK\r\n");
            let words: [&[u8]; 4] = [b"CF.LOADCHUNK", command.as_bytes(), b"11", &[7; 10]];
            assert_eq!(client.call_words(&words), b"+OK\r\n");
        }
        client.call("CF.COMPACT CF.COMPACT");
        for i in 0..200 {
            client.call(&format!("CF.INSERT CF.INSERT ITEMS {}", key(i)));
        }
        for i in 0..100 {
            client.call(&format!("CF.INSERT CF.DEL ITEMS {}", key(i)));
        }
        for i in 0..90 {
            client.call(&format!("CF.DEL CF.DEL {}", key(i)));
        }
        let digest = client.text("DEBUG DIGEST");
        assert_eq!(client.text("SAVE"), "+OK\r\n");
        server.kill_and_restart();
        let mut client = server.client();
        assert_eq!(client.text("DEBUG DIGEST"), digest);
        for i in 90..100 {
            assert_eq!(client.text(&format!("CF.EXISTS CF.DEL {}", key(i))), ":1\r\n");
        }
    }
}

/// A filter under test: its key, its family, and the command that makes it.
const MADE: [(&str, &str, &str); 9] = [
    ("chain", "BF", "BF.RESERVE chain 0.01 50"),
    ("fixed", "BF", "BF.RESERVE fixed 0.01 200 NONSCALING"),
    ("steep", "BF", "BF.RESERVE steep 0.001 20 EXPANSION 1"),
    ("grow", "BF", "BF.RESERVE grow 0.01 50 LAYOUT BLOCKED"),
    ("blocked", "BF", "BF.RESERVE blocked 0.01 300 NONSCALING LAYOUT BLOCKED"),
    ("window", "BF", "BF.RESERVE window 0.01 100 WINDOW 100"),
    ("cuckoo", "CF", "CF.RESERVE cuckoo 64 BUCKETSIZE 2 MAXITERATIONS 5"),
    ("parts", "CF", "CF.RESERVE parts 100 ERROR 0.01"),
    ("one", "CF", "CF.RESERVE one 300 ERROR 0.001 EXPANSION 0"),
];

/// A random command on this key. What it replies does not matter: refused ones must leave the key as good, too.
fn step(client: &mut Client, random: &mut Random, (name, family, made): (&str, &str, &str)) {
    let first = random.index(400);
    let items = |count: usize| (first..first + count).map(key).collect::<Vec<_>>().join(" ");
    match (random.index(12), family) {
        (0..=3, "BF") => {
            client.call(&format!("BF.MADD {name} {}", items(60)));
        }
        (0..=3, _) => {
            client.call(&format!("CF.INSERT {name} ITEMS {}", items(60)));
        }
        (4, "BF") => {
            client.call(&format!("BF.MERGE {name} {name}"));
        }
        (5, "BF") => {
            client.call("DEL other");
            client.call(&made.replacen(name, "other", 1));
            client.call(&format!("BF.MADD other {}", items(120)));
            client.call(&format!("BF.MERGE {name} other"));
            client.call(&format!("BF.MERGE other {name}"));
            client.call("DEL other");
        }
        (4, _) => {
            client.call(&format!("CF.COMPACT {name}"));
        }
        (5..=7, "CF") => {
            for i in first..first + 40 {
                client.call(&format!("CF.DEL {name} {}", key(i)));
            }
        }
        (8 | 9, _) => load_half(client, random, name, family),
        (10, _) => {
            // The limit of memory is reached in the middle of a command.
            client.call("CONFIG SET ironbloom.key-memory-limit 300");
            let command = if family == "BF" { "BF.MADD" } else { "CF.INSERT" };
            let word = if family == "BF" { "" } else { "ITEMS " };
            client.call(&format!("{command} {name} {word}{}", items(200)));
            client.call("CONFIG SET ironbloom.key-memory-limit 512mb");
        }
        _ => {
            let iterator = random.index(300).to_string();
            let bytes: Vec<u8> = (0..random.index(50)).map(|_| random.next() as u8).collect();
            let command = format!("{family}.LOADCHUNK");
            let words: [&[u8]; 4] =
                [command.as_bytes(), name.as_bytes(), iterator.as_bytes(), &bytes];
            client.call_words(&words);
        }
    }
}

/// The key is made again from its dump, but for some of the chunks, and sometimes from a header that was tampered with.
fn load_half(client: &mut Client, random: &mut Random, name: &str, family: &str) {
    let Some(mut pairs) = dump(client, name, family) else { return };
    let (iterator, last) = pairs.pop().unwrap();
    let end = random.index(last.len() + 1);
    pairs.push((iterator - (last.len() - end) as i64, last[..end].to_vec()));
    if random.index(3) == 0 {
        let at = random.index(pairs[0].1.len());
        pairs[0].1[at] = random.next() as u8;
    }
    client.call(&format!("RENAME {name} kept"));
    client.load(family, name, &pairs);
    // A header that was refused: as before.
    if client.text(&format!("EXISTS {name}")) == ":0\r\n" {
        client.call(&format!("RENAME kept {name}"));
    }
    client.call("DEL kept");
}

/// All chunks, unless the filter is being loaded or has nothing to dump.
fn dump(client: &mut Client, name: &str, family: &str) -> Option<Vec<(i64, Vec<u8>)>> {
    let first = client.call(&format!("{family}.SCANDUMP {name} 0"));
    first.starts_with(b"*2\r\n:1\r\n").then(|| client.scandump(family, name))
}

/// What a key answers: to items that are in it and to others, and about itself.
fn answers(client: &mut Client, name: &str, family: &str) -> String {
    let items = (0..120).map(|i| key(i * 5)).collect::<Vec<_>>().join(" ");
    let found = client.text(&format!("{family}.MEXISTS {name} {items}"));
    let about = client.text(&format!("{family}.INFO {name}"));
    let digest = client.text(&format!("DEBUG DIGEST-VALUE {name}"));
    format!("{found}{about}{digest}")
}

/// The key goes every way that needs no other server, and the copy must answer the same.
fn check(client: &mut Client, (name, family, _): (&str, &str, &str), what: &str) {
    let expected = answers(client, name, family);
    let same = |client: &mut Client, way: &str| {
        assert_eq!(answers(client, "way", family), expected, "{name} {way}: {what}");
        client.call("DEL way");
    };
    let bytes = client.bytes(&[b"DUMP", name.as_bytes()]);
    let reply = client.call_words(&[b"RESTORE", b"way", b"0", &bytes]);
    assert_eq!(String::from_utf8_lossy(&reply), "+OK\r\n", "{name} DUMP: {what}");
    same(client, "DUMP");
    assert_eq!(client.text(&format!("COPY {name} way")), ":1\r\n", "{name} COPY: {what}");
    same(client, "COPY");
    if let Some(pairs) = dump(client, name, family) {
        assert_eq!(client.load(family, "way", &pairs), "+OK\r\n", "{name} SCANDUMP: {what}");
        same(client, "SCANDUMP");
    }
}

/// Random commands; after each the key goes every way, from time to time all keys through files and to a replica.
#[test]
fn what_commands_make_survives_every_way_out_and_back() {
    const ROUNDS: usize = 60;
    for program in programs() {
        let options =
            ["--appendonly", "yes", "--appendfsync", "no", "--aof-use-rdb-preamble", "no"];
        let mut server = Server::start(&program, &options);
        let mut client = server.client();
        let mut random = Random(20261117);
        for (_, _, made) in MADE {
            assert_eq!(client.text(made), "+OK\r\n", "{made}");
        }
        for round in 0..ROUNDS {
            for filter in MADE {
                step(&mut client, &mut random, filter);
                check(&mut client, filter, &format!("{} round {round}", program.display()));
            }
            let digest = client.text("DEBUG DIGEST");
            if round % 6 == 0 {
                assert_eq!(client.text("DEBUG RELOAD"), "+OK\r\n", "round {round}");
                assert_eq!(client.text("DEBUG DIGEST"), digest, "reloaded, round {round}");
            }
            if round % 20 == 19 {
                save_or_rewrite(&mut client, &options);
                assert_eq!(client.text("DEBUG LOADAOF"), "+OK\r\n", "round {round}");
                assert_eq!(client.text("DEBUG DIGEST"), digest, "rewritten, round {round}");
            }
        }
        let digest = client.text("DEBUG DIGEST");
        let replica = replica_of(&server, &program, &[]);
        for filter in MADE {
            step(&mut client, &mut random, filter);
        }
        assert_equal(&server, &replica);
        drop(replica);
        let now = client.text("DEBUG DIGEST");
        assert_ne!(now, digest, "the last steps did something");
        server.kill_and_restart();
        assert_eq!(server.client().text("DEBUG DIGEST"), now, "restarted");
    }
}

/// A DUMP with another number in the place of one that stands in it once, big or small.
fn with_number(dump: &[u8], from: u64, to: u64) -> Vec<u8> {
    // 01xxxxxx xxxxxxxx is a number below 16384, after the mark of a number.
    let encoded = |number: u64| [2, 0x40 | (number >> 8) as u8, number as u8];
    let (old, new) = (encoded(from), encoded(to));
    let places: Vec<usize> = (0..dump.len() - 3).filter(|&at| dump[at..at + 3] == old).collect();
    let mut forged = dump.to_vec();
    for at in places {
        forged[at..at + 3].copy_from_slice(&new);
    }
    assert_ne!(forged, dump, "{from} is not in it");
    envelope::sealed(forged)
}

/// A counter that does not fit is repaired, and the log says so; what is structurally impossible is refused, and the log
/// says what can be done.
#[test]
fn counters_are_repaired_and_damage_is_refused_with_the_name_of_the_key() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        client.call("BF.RESERVE b 0.01 1000");
        client.call(&format!("BF.MADD b {}", (0..600).map(key).collect::<Vec<_>>().join(" ")));
        let dump = client.bytes(&[b"DUMP", b"b"]);
        let len = client.text("BF.CARD b");
        let len: u64 = len[1..].trim().parse().unwrap();
        // The whole and its only sub-filter: more keys than planned for.
        let forged = with_number(&dump, len, 5000);
        let reply = client.call_words(&[b"RESTORE", b"many", b"0", &forged]);
        assert_eq!(String::from_utf8_lossy(&reply), "+OK\r\n");
        assert_eq!(client.text("BF.CARD many"), ":1000\r\n", "taken as full");
        assert_eq!(client.text(&format!("BF.EXISTS many {}", key(3))), ":1\r\n");
        let log = server.log();
        assert!(log.contains("key \"many\""), "{log}");
        assert!(
            log.contains("filter repaired: a sub-filter for 1000 keys says it has 5000"),
            "{log}"
        );

        let lines = client.text("BF.DEBUG b");
        let (_, bits) = lines.split_once(" bits:").unwrap();
        let bits: u64 = bits.split(' ').next().unwrap().parse().unwrap();
        let damaged = with_number(&dump, bits, bits + 1);
        let reply = client.call_words(&[b"RESTORE", b"damaged", b"0", &damaged]);
        assert!(reply.starts_with(b"-"), "{}", String::from_utf8_lossy(&reply));
        let log = server.log();
        assert!(log.contains("key \"damaged\""), "{log}");
        assert!(log.contains("filter refused: no filter has this number of bits"), "{log}");
        assert!(log.contains("use that of a replica or an older one"), "{log}");
    }
}
