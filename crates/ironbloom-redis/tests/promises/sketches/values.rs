//! Sketches are values like all others: whatever commands made of them is copied, saved, rewritten, replicated and moved.

use ironbloom_testing::module::{
    Client, Server, all_programs as programs, assert_equal, replica_of, save_or_rewrite,
};
use ironbloom_testing::{Random, wait_until};

/// Random commands of all families, some of which are refused.
fn play(client: &mut Client, random: &mut Random, steps: usize) {
    for _ in 0..steps {
        let key = |random: &mut Random, family: &str| format!("{family}{}", random.below(4));
        let items = |random: &mut Random| {
            let pair = |_| format!("item{} {}", random.below(200), random.below(1000));
            (0..8).map(pair).collect::<Vec<_>>().join(" ")
        };
        let values = |random: &mut Random| {
            let value = |_| format!("{}.5", random.below(100_000));
            (0..20).map(value).collect::<Vec<_>>().join(" ")
        };
        let command = match random.below(18) {
            0 => {
                let (width, depth) = (1 + random.below(3) * 50, 1 + random.below(9));
                format!("CMS.INITBYDIM {} {width} {depth}", key(random, "c"))
            }
            1 => format!("CMS.INITBYPROB {} 0.0{} 0.01", key(random, "c"), 1 + random.below(9)),
            2 | 3 => format!("CMS.INCRBY {} {}", key(random, "c"), items(random)),
            4 => format!("CMS.INCRBY {} x 4294967290 y 0", key(random, "c")),
            5 => format!(
                "CMS.MERGE {} 2 {} {} WEIGHTS {} 1",
                key(random, "c"),
                key(random, "c"),
                key(random, "c"),
                random.below(3),
            ),
            6 => {
                let (k, width) = (1 + random.below(9), 1 + random.below(50));
                format!("TOPK.RESERVE {} {k} {width} 3 0.9", key(random, "k"))
            }
            7 => format!("TOPK.RESERVE {} 5", key(random, "k")),
            8 | 9 => format!("TOPK.INCRBY {} {}", key(random, "k"), items(random)),
            10 => {
                let (key, item) = (key(random, "k"), random.below(100));
                client.call_words(&[b"TOPK.ADD", key.as_bytes(), b"", b"a\0b", b"a"]);
                format!("TOPK.ADD {key} item{item} item1 item2")
            }
            11 => {
                let compression = 1 + random.below(40);
                format!("TDIGEST.CREATE {} COMPRESSION {compression}", key(random, "t"))
            }
            12 | 13 => format!("TDIGEST.ADD {} {}", key(random, "t"), values(random)),
            14 => format!("TDIGEST.QUANTILE {} 0.1 0.5", key(random, "t")),
            15 => {
                let [one, two, three] = [(); 3].map(|()| key(random, "t"));
                format!("TDIGEST.MERGE {one} 2 {two} {three}")
            }
            16 => {
                let family = ["c", "k", "t"][random.index(3)];
                format!("DEL {}", key(random, family))
            }
            _ => {
                let family = ["c", "k", "t"][random.index(3)];
                format!("COPY {} {} REPLACE", key(random, family), key(random, family))
            }
        };
        client.call(&command);
    }
}

/// The keys that are there.
fn keys(client: &mut Client) -> Vec<String> {
    let reply = client.text("KEYS *");
    let mut keys: Vec<String> =
        reply.lines().filter(|line| !line.starts_with(['*', '$'])).map(str::to_owned).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn whatever_commands_make_survives_dumps_copies_reloads_and_replication() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let replica = replica_of(&server, &program, &[]);
        let mut client = server.client();
        let mut random = Random(1);
        for _ in 0..6 {
            play(&mut client, &mut random, 150);
            assert_equal(&server, &replica);
            let digest = client.text("DEBUG DIGEST");
            for key in keys(&mut client) {
                let value = client.text(&format!("DEBUG DIGEST-VALUE {key}"));
                assert_eq!(client.text(&format!("COPY {key} copy REPLACE")), ":1\r\n", "{key}");
                assert_eq!(client.text("DEBUG DIGEST-VALUE copy"), value, "{key}: copied");
                let dump = client.bytes(&[b"DUMP", key.as_bytes()]);
                let restore: [&[u8]; 5] = [b"RESTORE", b"copy", b"0", &dump, b"REPLACE"];
                assert_eq!(client.call_words(&restore), b"+OK\r\n", "{key}");
                assert_eq!(client.text("DEBUG DIGEST-VALUE copy"), value, "{key}: restored");
                client.call("DEL copy");
            }
            assert_eq!(client.text("DEBUG DIGEST"), digest);
        }
        // Last, since a file holds t-digests with their nodes merged: what is added later may find other nodes than on the replica.
        let digest = client.text("DEBUG DIGEST");
        assert_eq!(client.text("DEBUG RELOAD"), "+OK\r\n");
        assert_eq!(client.text("DEBUG DIGEST"), digest, "reloaded");
        let second = replica_of(&server, &program, &[]);
        assert_equal(&server, &second);
    }
}

/// By RESTORE in an append-only file of commands, and by an RDB file.
#[test]
fn files_bring_back_what_was_there() {
    for program in programs() {
        for options in [
            &["--dbfilename", "a.rdb"][..],
            &["--appendonly", "yes", "--appendfsync", "no", "--aof-use-rdb-preamble", "no"],
        ] {
            let mut server = Server::start(&program, options);
            let mut client = server.client();
            client.call("SELECT 3");
            play(&mut client, &mut Random(2), 300);
            client.call("CMS.INITBYDIM expires 10 2");
            client.call("EXPIRE expires 10000");
            save_or_rewrite(&mut client, options);
            let digest = client.text("DEBUG DIGEST");
            server.kill_and_restart();
            let mut client = server.client();
            client.call("SELECT 3");
            assert_eq!(client.text("DEBUG DIGEST"), digest, "{}", options[0]);
            assert_ne!(client.text("TTL expires"), ":-1\r\n");
            // And the commands that came after a rewrite.
            play(&mut client, &mut Random(3), 100);
            if options[0] == "--appendonly" {
                let digest = client.text("DEBUG DIGEST");
                server.kill_and_restart();
                assert_eq!(server.client().text("DEBUG DIGEST"), digest, "commands");
            }
        }
    }
}

#[test]
fn large_sketches_are_limited_counted_and_freed_in_another_thread() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        let used =
            |client: &mut Client| -> i64 { client.info("memory", "used_memory").parse().unwrap() };
        let before = used(&mut client);
        let over = "-ERR the sketch would exceed the memory limit of a key, see CONFIG GET \
                    *key-memory-limit\r\n";
        assert_eq!(client.text("CMS.INITBYDIM c 1000000 1000"), over);
        assert_eq!(client.text("TOPK.RESERVE c 10 1000000 1000 0.9"), over);
        assert_eq!(client.text("TOPK.RESERVE c 1000000000"), over);
        assert_eq!(client.text("TDIGEST.CREATE c COMPRESSION 100000000"), over);
        assert_eq!(client.text("EXISTS c"), ":0\r\n");
        assert_eq!(client.text("CMS.INITBYDIM c 1000000 5"), "+OK\r\n");
        assert_eq!(client.info("everything", "ironbloom_count_min_sketches"), "1");
        assert!(used(&mut client) - before > 20_000_000);
        assert_eq!(client.text("UNLINK c"), ":1\r\n");
        wait_until(|| used(&mut client) - before < 1 << 20);
        assert_eq!(client.info("memory", "lazyfreed_objects"), "1");
        assert_eq!(client.info("everything", "ironbloom_count_min_sketches"), "0");
    }
}

/// What is refused changes nothing and is sent to nobody.
#[test]
fn refused_commands_are_not_replicated() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let replica = replica_of(&server, &program, &[]);
        let mut client = server.client();
        client.call("CMS.INITBYDIM c 10 2");
        client.call("CMS.INCRBY c a 1");
        client.call("TDIGEST.CREATE t");
        let before = client.text("DEBUG DIGEST");
        for command in [
            "CMS.INCRBY c a 1 b x",
            "CMS.INCRBY c a 1 b -1",
            "CMS.MERGE c 2 c none",
            "TDIGEST.ADD t 1 2 inf",
            "TDIGEST.MERGE t 2 t none",
        ] {
            assert!(client.text(command).starts_with('-'), "{command}");
        }
        assert_eq!(client.text("DEBUG DIGEST"), before);
        assert_equal(&server, &replica);
    }
}

/// A question merges the nodes of a t-digest, which later numbers find. Replicas are told, and do not change by themselves; so does
/// the append-only file.
#[test]
fn questions_to_a_t_digest_leave_replicas_and_files_equal() {
    for program in programs() {
        let options =
            ["--appendonly", "yes", "--appendfsync", "no", "--aof-use-rdb-preamble", "no"];
        let mut server = Server::start(&program, &options);
        let replica = replica_of(&server, &program, &[]);
        let (mut client, mut other) = (server.client(), replica.client());
        client.call("TDIGEST.CREATE t COMPRESSION 10");
        let mut random = Random(4);
        for round in 0..60 {
            let values: Vec<String> =
                (0..23).map(|_| format!("{}", random.below(1_000_000))).collect();
            client.call(&format!("TDIGEST.ADD t {}", values.join(" ")));
            if round % 3 == 0 {
                client.call("TDIGEST.CDF t 1000 2000");
            }
            wait_until(|| other.text("TDIGEST.INFO t") == client.text("TDIGEST.INFO t"));
            let before = other.text("TDIGEST.INFO t");
            let reply = other.text("TDIGEST.RANK t 500000");
            assert!(reply.starts_with("*1\r\n:"), "{reply}");
            assert_eq!(other.text("TDIGEST.INFO t"), before, "a replica changes by itself");
        }
        assert_equal(&server, &replica);
        let (info, digest) = (client.text("TDIGEST.INFO t"), client.text("DEBUG DIGEST"));
        server.kill_and_restart();
        let mut client = server.client();
        assert_eq!(client.text("TDIGEST.INFO t"), info);
        assert_eq!(client.text("DEBUG DIGEST"), digest);
    }
}

/// Chance is part of the sketch: the same commands make the same bytes, on replicas, from files and in copies that go on.
#[test]
fn decays_of_a_top_k_are_the_same_everywhere() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        client.call("TOPK.RESERVE k 5 8 3 0.9");
        let replica = replica_of(&server, &program, &[]);
        let mut random = Random(6);
        let mut add = |client: &mut Client, keys: &[&str], count: usize| {
            for _ in 0..count {
                let items: Vec<String> =
                    (0..30).map(|_| format!("item{}", random.below(100))).collect();
                for key in keys {
                    client.call(&format!("TOPK.ADD {key} {}", items.join(" ")));
                }
            }
        };
        add(&mut client, &["k"], 40);
        assert_equal(&server, &replica);
        client.call("COPY k copied");
        let dump = client.bytes(&[b"DUMP", b"k"]);
        client.call_words(&[b"RESTORE", b"restored", b"0", &dump]);
        add(&mut client, &["k", "copied", "restored"], 40);
        let value = client.text("DEBUG DIGEST-VALUE k");
        for key in ["copied", "restored"] {
            assert_eq!(client.text(&format!("DEBUG DIGEST-VALUE {key}")), value, "{key}");
        }
        assert_equal(&server, &replica);
    }
}

/// RedisBloom answers fewer pairs than it announces, and the connection is out of step.
#[test]
fn a_bad_increment_of_a_top_k_is_answered_in_its_place() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        client.call("TOPK.RESERVE k 5 100 3 0.9");
        let reply = client.text("TOPK.INCRBY k a 5 b x c 7");
        assert_eq!(reply.matches("-TopK: increment must be").count(), 2, "{reply}");
        assert!(reply.starts_with("*3\r\n$-1\r\n-"), "{reply}");
        assert_eq!(client.text("TOPK.LIST k WITHCOUNT"), "*2\r\n$1\r\na\r\n:5\r\n");
    }
}

/// Weights that differ by more than a double can tell apart leave few nodes that merge.
#[test]
fn a_t_digest_with_a_dwarfing_weight_survives_dumps_and_reloads() {
    for program in programs() {
        for compression in 1..=3 {
            let mut server = Server::start(&program, &["--dbfilename", "a.rdb"]);
            let mut client = server.client();
            client.call(&format!("TDIGEST.CREATE t COMPRESSION {compression}"));
            client.call("TDIGEST.ADD t 0");
            for _ in 0..62 {
                assert_eq!(client.text("TDIGEST.MERGE t 1 t"), "+OK\r\n");
            }
            let numbers: Vec<String> = (1..=100).map(|number| number.to_string()).collect();
            assert_eq!(client.text(&format!("TDIGEST.ADD t {}", numbers.join(" "))), "+OK\r\n");
            client.call("TDIGEST.QUANTILE t 0.5");
            let dump = client.bytes(&[b"DUMP", b"t"]);
            let restore: [&[u8]; 4] = [b"RESTORE", b"copy", b"0", &dump];
            assert_eq!(client.call_words(&restore), b"+OK\r\n", "compression {compression}");
            let digest = client.text("DEBUG DIGEST");
            assert_eq!(client.text("SAVE"), "+OK\r\n");
            server.kill_and_restart();
            let mut client = server.client();
            assert_eq!(client.text("DEBUG DIGEST"), digest, "compression {compression}");
            assert_eq!(client.text("TDIGEST.MAX copy"), client.text("TDIGEST.MAX t"));
        }
    }
}

/// Sources that have been told to merge their nodes would differ from those of a replica, which has not.
#[test]
fn a_merge_of_t_digests_that_overflows_leaves_its_sources_alone() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        client.call("TDIGEST.CREATE large");
        client.call("TDIGEST.ADD large 0");
        for _ in 0..62 {
            client.call("TDIGEST.MERGE large 1 large");
        }
        client.call("TDIGEST.CREATE t");
        client.call("TDIGEST.ADD t 1 2 3 4 5 6 7 8 9");
        let before = client.text("TDIGEST.INFO t");
        for merge in ["new 3 t large large", "t 2 large large", "t 2 large large COMPRESSION 5"] {
            let reply = client.text(&format!("TDIGEST.MERGE {merge}"));
            assert_eq!(reply, "-ERR T-Digest: overflow detected\r\n", "{merge}");
            assert_eq!(client.text("TDIGEST.INFO t"), before, "{merge}");
        }
        assert_eq!(client.text("TDIGEST.MERGE new 2 t large"), "+OK\r\n");
    }
}

#[test]
fn a_top_k_counts_its_items_and_keeps_to_the_limit_of_a_key() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        client.configure("key-memory-limit", "1048576");
        assert_eq!(client.text("TOPK.RESERVE k 100"), "+OK\r\n");
        let usage = |client: &mut Client| -> u64 {
            let reply = client.text("MEMORY USAGE k");
            reply.trim_start_matches(':').trim_end().parse().unwrap()
        };
        let empty = usage(&mut client);
        let item = |i: u8| vec![b'a' + i; 100_000];
        let mut taken = 0;
        for i in 0..20 {
            let reply = client.call_words(&[b"TOPK.ADD", b"k", &item(i)]);
            if reply.starts_with(b"-") {
                assert!(reply.starts_with(b"-ERR the sketch would exceed the memory limit"));
                let incr: [&[u8]; 4] = [b"TOPK.INCRBY", b"k", &item(i), b"5"];
                assert_eq!(client.call_words(&incr), reply);
            } else {
                taken += 1;
            }
        }
        assert_eq!(taken, 10);
        let used = usage(&mut client) - empty;
        assert!((1_000_000..1_100_000).contains(&used), "{used}");
        // What it holds may come again.
        let reply = client.call_words(&[b"TOPK.ADD", b"k", &item(0), &item(0), b"short"]);
        assert!(reply.starts_with(b"*3\r\n"), "{}", reply.escape_ascii());
    }
}

/// An item takes time in proportion to the rows.
#[test]
fn sketches_of_absurd_depth_are_refused_and_loaded() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        let reply = "CMS: invalid depth: it must be at most 255\r\n";
        assert_eq!(client.text("CMS.INITBYDIM c 1 256"), format!("-{reply}"));
        assert_eq!(client.text("CMS.INITBYDIM c 1 255"), "+OK\r\n");
        assert_eq!(client.text("CMS.INITBYPROB p 0.1 1e-45"), "+OK\r\n");
        let reply = reply.replace("CMS", "TopK");
        assert_eq!(client.text("TOPK.RESERVE k 1 1 256 0.9"), format!("-{reply}"));
        assert_eq!(client.text("TOPK.RESERVE k 1 1 255 0.9"), "+OK\r\n");
        assert_eq!(client.text("EXISTS c p k"), ":3\r\n");
    }
}

/// A source that is named often is read once; with weights of both signs, partial sums decide as ever.
#[test]
fn sources_that_are_named_often_count_as_often() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        for key in ["a", "b", "sum"] {
            client.call(&format!("CMS.INITBYDIM {key} 10 2"));
        }
        client.call("CMS.INCRBY a x 3");
        client.call("CMS.INCRBY b x 1000000000");
        assert_eq!(client.text("CMS.MERGE sum 4 a b a a"), "+OK\r\n");
        assert_eq!(client.text("CMS.QUERY sum x"), "*1\r\n:1000000009\r\n");
        assert_eq!(client.text("CMS.MERGE sum 3 a b a WEIGHTS 2 0 5"), "+OK\r\n");
        assert_eq!(client.text("CMS.QUERY sum x"), "*1\r\n:21\r\n");
        for merge in
            ["sum 5 b b b b b", "sum 2 a a WEIGHTS 4611686018427387904 4611686018427387904"]
        {
            let reply = client.text(&format!("CMS.MERGE {merge}"));
            assert_eq!(reply, "-CMS: MERGE overflow\r\n", "{merge}");
        }
        assert_eq!(client.text("CMS.MERGE sum 2 b b WEIGHTS -1 2"), "+OK\r\n");
        assert_eq!(client.text("CMS.QUERY sum x"), "*1\r\n:1000000000\r\n");
    }
}
