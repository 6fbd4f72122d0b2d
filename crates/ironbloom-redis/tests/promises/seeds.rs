//! Promise: a native filter can have a hash that others cannot compute, the same on replicas and in files; and files say that
//! their keys are text.

use ironbloom::{AnyFilter, BlockedBloom, HashFn, HashKey, Persist};
use ironbloom_testing::module::{
    Client, Server, all_programs as programs, assert_equal, replica_of,
};

const KEY: &str = "00112233445566778899aabbccddeeff";

/// (key, family, how it is made)
const MADE: [(&str, &str, &str); 5] = [
    ("grow", "BF", "BF.RESERVE grow 0.01 100 LAYOUT BLOCKED"),
    ("fixed", "BF", "BF.RESERVE fixed 0.01 5000 NONSCALING LAYOUT BLOCKED"),
    ("window", "BF", "BF.RESERVE window 0.01 300 WINDOW 300"),
    ("parts", "CF", "CF.RESERVE parts 200 ERROR 0.001"),
    ("one", "CF", "CF.RESERVE one 5000 ERROR 0.0001 EXPANSION 0"),
];

fn add(client: &mut Client) {
    for (name, family, _) in MADE {
        for i in 0..250 {
            let reply = client.text(&format!("{family}.ADD {name} item:{i}"));
            assert!(reply == ":1\r\n" || (family == "BF" && reply == ":0\r\n"), "{name}: {reply}");
        }
    }
}

/// The bytes of the `.ibf` file in a dump; of several parts, of the first.
fn image(client: &mut Client, family: &str, name: &str) -> Vec<u8> {
    client.scandump(family, name).into_iter().skip(1).flat_map(|(_, bytes)| bytes).collect()
}

#[test]
fn filters_have_the_seed_that_was_asked_for_on_all_servers() {
    for program in programs() {
        let mut server =
            Server::start(&program, &["--appendonly", "yes", "--appendfsync", "always"]);
        let replica = replica_of(&server, &program, &[]);
        let mut client = server.client();
        for seed in ["RANDOM", KEY] {
            for (name, _, made) in MADE {
                client.call(&format!("DEL {name}"));
                assert_eq!(client.text(&format!("{made} SEED {seed}")), "+OK\r\n", "{made}");
            }
            add(&mut client);
            client.call("DEL inserted");
            let command = format!("BF.INSERT inserted LAYOUT BLOCKED SEED {seed} ITEMS x y z");
            assert!(client.text(&command).starts_with("*3"), "{command}");
            assert_equal(&server, &replica);
            for (name, family, _) in MADE {
                let reply = replica.client().text(&format!("{family}.EXISTS {name} item:249"));
                assert_eq!(reply, ":1\r\n", "{name}");
            }
        }
        let digest = client.text("DEBUG DIGEST");
        server.kill_and_restart();
        let mut client = server.client();
        assert_eq!(client.text("DEBUG DIGEST"), digest);
        // The key is in the file, and a file with it is the same filter elsewhere.
        let bytes = image(&mut client, "BF", "fixed");
        let filter = BlockedBloom::from_bytes(&bytes).unwrap();
        let key = HashKey::parse(KEY.as_bytes()).unwrap();
        assert_eq!(filter.hash_fn(), HashFn::SipHash13 { key, in_files: true });
        assert!((0..250).all(|i| filter.contains(format!("item:{i}"))));
        // One that others know makes others' filters; without, they cannot be merged.
        client.call("BF.RESERVE same 0.01 5000 NONSCALING LAYOUT BLOCKED SEED 00112233445566778899AABBCCDDEEFF");
        assert_eq!(client.text("BF.MERGE same fixed"), "+OK\r\n");
        client.call("BF.RESERVE other 0.01 5000 NONSCALING LAYOUT BLOCKED SEED RANDOM");
        let reply = client.text("BF.MERGE other fixed");
        assert!(reply.starts_with("-ERR") && !reply.contains(&KEY[..8]), "{reply}");
    }
}

#[test]
fn two_random_seeds_differ_and_what_is_no_seed_is_refused() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        for name in ["a", "b"] {
            let command = format!("BF.INSERT {name} LAYOUT BLOCKED SEED random ITEMS x y z");
            assert!(client.text(&command).starts_with("*3"), "{command}");
        }
        assert_ne!(client.text("DEBUG DIGEST-VALUE a"), client.text("DEBUG DIGEST-VALUE b"));
        for command in [
            "BF.RESERVE k 0.01 10 SEED RANDOM",
            "BF.RESERVE k 0.01 10 LAYOUT BLOCKED SEED",
            "BF.RESERVE k 0.01 10 LAYOUT BLOCKED SEED 7",
            "BF.RESERVE k 0.01 10 LAYOUT BLOCKED SEED 0123456789abcdef",
            "BF.RESERVE k 0.01 10 LAYOUT BLOCKED SEED zz112233445566778899aabbccddeeff",
            "BF.INSERT k SEED RANDOM ITEMS x",
            "CF.RESERVE k 100 SEED RANDOM",
            "CF.RESERVE k 100 ERROR 0.01 SEED x",
        ] {
            let reply = client.text(command);
            assert!(reply.starts_with("-ERR SEED "), "{command}: {reply}");
            assert_eq!(client.text("EXISTS k"), ":0\r\n", "{command}");
        }
    }
}

/// Every reader of the file agrees what its keys are, or is refused.
#[test]
fn dumps_say_that_their_keys_are_text_and_other_keys_are_refused() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        for (_, _, made) in MADE {
            assert_eq!(client.text(made), "+OK\r\n");
        }
        add(&mut client);
        for (name, family, _) in MADE.iter().filter(|made| made.0 != "parts") {
            let filter = AnyFilter::from_bytes(&image(&mut client, family, name)).unwrap();
            assert_eq!(filter.key_types(), ironbloom::KeyType::Bytes.into(), "{name}");
        }
        // A filter of integers would answer wrongly for every item of a command.
        let mut numbers = BlockedBloom::with_rate(100, 0.01).unwrap();
        (0..50u64).for_each(|number| {
            numbers.insert(number);
        });
        let bytes = numbers.to_bytes();
        let sum = xxhash_rust::xxh3::xxh3_64(&bytes).to_le_bytes();
        let header = [&b"IBLOOM01"[..], &(bytes.len() as u64).to_le_bytes(), &sum].concat();
        let pairs = [(1, header), (1 + bytes.len() as i64, bytes)];
        let reply = client.load("BF", "numbers", &pairs);
        assert!(reply.contains("the filter holds integers, not"), "{reply}");
        assert_eq!(client.text("EXISTS numbers"), ":0\r\n");
    }
}
