//! The data set that RedisBloom wrote: made again by its commands, loaded from its dumps, and dumped.

use super::{golden_keys, is_same, parse, texts};
use crate::common::envelope::{self, Field};
use crate::common::unbase64;
use ironbloom_testing::module::{Client, Server, all_programs as programs};
use serde_json::Value;

/// A version of RDB files that every server reads.
const OLD_VERSION: [u8; 2] = [9, 0];

fn ask(client: &mut Client, command: &str) -> Value {
    parse(&client.call(command)).0
}

/// Name and fields of a DUMP; the addresses in RedisBloom's heap of top-k are masked.
fn fields(dump: &[u8]) -> (String, Vec<Field>) {
    let (name, _, mut fields) = envelope::open(dump);
    if name == "TopK-TYPE"
        && let Field::String(heap) = &mut fields.0[5]
    {
        heap.chunks_mut(24).for_each(|record| record[8..16].fill(0));
    }
    (name, fields.0)
}

/// The same dump for servers that know older versions only.
fn for_all_servers(mut dump: Vec<u8>) -> Vec<u8> {
    let end = dump.len();
    dump[end - 10..end - 8].copy_from_slice(&OLD_VERSION);
    envelope::sealed(dump)
}

fn check_queries(client: &mut Client, name: &str, key: &Value, skipped: usize) {
    for query in &key["queries"].as_array().unwrap()[skipped..] {
        let (command, expected) = (query[0].as_str().unwrap(), &query[1]);
        let ours = ask(client, command);
        assert!(is_same(&ours, expected), "{name}: {command}\n ours: {ours}\ntheirs: {expected}");
    }
}

#[test]
fn the_commands_make_redisblooms_data() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        let keys = golden_keys();
        for (name, key) in &keys {
            for (command, expected) in
                texts(&key["commands"]).zip(key["replies"].as_array().unwrap())
            {
                let ours = ask(&mut client, command);
                let is_random = key["reproducible"] == false;
                assert!(is_random || is_same(&ours, expected), "{name}: {command}: {ours}");
            }
        }
        for (name, key) in keys.iter().filter(|(_, key)| key["reproducible"] == true) {
            check_queries(&mut client, name, key, 0);
            let ours = client.bytes(&[b"DUMP", name.as_bytes()]);
            let theirs = unbase64(key["dump"].as_str().unwrap());
            assert_eq!(fields(&ours), fields(&theirs), "{name}: DUMP");
        }
    }
}

#[test]
fn redisblooms_dumps_are_restored_and_dumped_the_same() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        for (name, key) in &golden_keys() {
            let theirs = unbase64(key["dump"].as_str().unwrap());
            let restore: [&[u8]; 4] =
                [b"RESTORE", name.as_bytes(), b"0", &for_all_servers(theirs.clone())];
            assert_eq!(client.call_words(&restore), b"+OK\r\n", "{name}");
            let ours = client.bytes(&[b"DUMP", name.as_bytes()]);
            assert_eq!(fields(&ours), fields(&theirs), "{name}: DUMP");
            // What INFO of a t-digest says first was before the dump, which compresses it.
            check_queries(&mut client, name, key, usize::from(key["type"] == "tdigest"));
        }
    }
}

/// What Redis 8 counts for each of the golden keys beside its sketch.
const ENTRY_BYTES: i64 = 40;

/// What a key takes beside its sketch depends on the server, not on the sketch.
#[test]
fn memory_is_counted_as_redisbloom_counts_it() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        let mut beside = Vec::new();
        for (name, key) in &golden_keys() {
            let dump = for_all_servers(unbase64(key["dump"].as_str().unwrap()));
            let restore: [&[u8]; 5] = [b"RESTORE", b"key", b"0", &dump, b"REPLACE"];
            assert_eq!(client.call_words(&restore), b"+OK\r\n", "{name}");
            let ours = ask(&mut client, "MEMORY USAGE key").as_i64().unwrap();
            // RedisBloom does not count the items of a top-k.
            let items = match key["type"].as_str() {
                Some("topk") => ask(&mut client, "TOPK.LIST key"),
                _ => Value::Array(Vec::new()),
            };
            let item_bytes = texts(&items).map(str::len).sum::<usize>() as i64;
            let theirs = key["memory_usage"].as_i64().unwrap() - ENTRY_BYTES;
            beside.push(ours - item_bytes - theirs);
        }
        // The allocator of the C library adds up to 16 bytes more or less.
        let (least, most) = (beside.iter().min(), beside.iter().max());
        assert!(most.unwrap() - least.unwrap() <= 32, "{beside:?}");
    }
}

/// (file, the version of RDB files that it has)
const FILES: [(&str, u32); 2] = [("sketches-7.rdb", 10), ("sketches-8.rdb", 12)];

/// As a server that switches loads it: the whole data set, from both versions of RedisBloom.
#[test]
fn redisblooms_files_are_loaded_and_answer_the_same() {
    for program in programs() {
        for (file, version) in FILES {
            let bytes = std::fs::read(crate::common::golden_path(file)).unwrap();
            let server = Server::start(&program, &[]);
            // A server refuses files of a newer version than its own. Valkey, whose versions begin at 80, refuses those of Redis
            // since the two parted, at 12.
            let known = client_version(&mut server.client());
            drop(server);
            if known < version || (known >= 80 && (12..80).contains(&version)) {
                continue;
            }
            let options = ["--dbfilename", "a.rdb"];
            let server = Server::start_with_files(&program, &options, &[("a.rdb", bytes)]);
            let mut client = server.client();
            for (name, key) in &golden_keys() {
                // What 2.8 chose by chance differs, and so do the last bits of equal numbers in its t-digests.
                let is_other = file == "sketches-7.rdb"
                    && (key["reproducible"] == false || key["pinned"].is_object());
                if is_other {
                    assert_eq!(client.text(&format!("EXISTS {name}")), ":1\r\n");
                    continue;
                }
                check_queries(&mut client, name, key, usize::from(key["type"] == "tdigest"));
            }
            // The number that 2.8 saved only as the minimum.
            assert_eq!(ask(&mut client, "TDIGEST.QUANTILE td_one 0.5")[0], "42.5");
        }
    }
}

/// The version of RDB files that a server writes: it stands in its dumps.
fn client_version(client: &mut Client) -> u32 {
    client.call("SET x y");
    let dump = client.bytes(&[b"DUMP", b"x"]);
    let at = dump.len() - 10;
    u32::from(u16::from_le_bytes([dump[at], dump[at + 1]]))
}
