//! Promise: what servers offer to modules that declare that they can do it, this one can: a slot moves as a whole (Valkey 9),
//! and a replica answers from its old data while it loads the new, in the middle of anything.

use std::path::{Path, PathBuf};

use crate::common::key;
use ironbloom_testing::cluster::{SLOTS, cluster};
use ironbloom_testing::module::{
    Client, Server, all_programs as programs, assert_equal, replica_of,
};
use ironbloom_testing::wait_until;

const MERGING: &str = "ironbloom_bloom_filters_merging";
const COMPACTING: &str = "ironbloom_cuckoo_filters_compacting";

fn items(keys: std::ops::Range<usize>) -> String {
    keys.map(key).collect::<Vec<_>>().join(" ")
}

fn assert_found(client: &mut Client, family: &str, name: &str, keys: std::ops::Range<usize>) {
    let count = keys.len();
    let reply = client.text(&format!("{family}.MEXISTS {name} {}", items(keys)));
    assert_eq!(reply.matches(":1").count(), count, "{name}: keys are lost: {reply}");
}

/// Programs that move slots as a whole.
fn programs_with_migration() -> Vec<PathBuf> {
    let can = |program: &PathBuf| {
        let server = Server::start(program, &["--cluster-enabled", "yes"]);
        !server.client().text("CLUSTER GETSLOTMIGRATIONS").contains("unknown subcommand")
    };
    programs().into_iter().filter(can).collect()
}

/// Moves a slot, and waits until it has arrived.
fn migrate(from: &mut Client, to: &mut Client, slot: u32) {
    let id = to.text("CLUSTER MYID").lines().nth(1).unwrap().to_owned();
    let command = format!("CLUSTER MIGRATESLOTS SLOTSRANGE {slot} {slot} NODE {id}");
    assert_eq!(from.text(&command), "+OK\r\n", "{command}");
    wait_until(|| {
        let jobs = from.text("CLUSTER GETSLOTMIGRATIONS");
        assert!(!jobs.contains("failed"), "{jobs}");
        jobs.contains("success")
    });
    wait_until(|| to.text("BF.EXISTS fixed{0} nothing") == ":0\r\n");
}

/// Filters of every layout, all in the slot of `{0}`; large ones of more than 4 MiB, which are merged in slices.
const MADE: [(&str, &str, &str); 7] = [
    ("BF", "chain{0}", "BF.RESERVE chain{0} 0.01 100"),
    ("BF", "fixed{0}", "BF.RESERVE fixed{0} 0.01 5000 NONSCALING LAYOUT BLOCKED"),
    ("BF", "grow{0}", "BF.RESERVE grow{0} 0.01 100 LAYOUT BLOCKED"),
    ("BF", "a{0}", "BF.RESERVE a{0} 0.01 4000000"),
    ("BF", "b{0}", "BF.RESERVE b{0} 0.01 4000000"),
    ("CF", "cuckoo{0}", "CF.RESERVE cuckoo{0} 200"),
    ("CF", "parts{0}", "CF.RESERVE parts{0} 200 ERROR 0.001"),
];

fn add(client: &mut Client, family: &str, name: &str, keys: std::ops::Range<usize>) {
    let command = format!("{family}.INSERT {name} NOCREATE ITEMS {}", items(keys));
    let reply = client.text(&command);
    assert!(reply.starts_with('*') && !reply.contains("-ERR"), "{name}: {reply}");
}

/// A merge that goes on until somebody hurries it.
fn begin_merge(server: &Server) -> Client {
    let mut client = server.client();
    client.configure("step-usec", "1");
    let mut waiting = server.client();
    let sources = "a{0} b{0} ".repeat(60);
    let command = format!("BF.MERGE d{{0}} {}", sources.trim_end());
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    waiting.send(&words).unwrap();
    wait_until(|| client.info("everything", MERGING) == "1");
    waiting
}

#[test]
fn a_slot_moves_as_a_whole_also_in_the_middle_of_a_merge() {
    for program in programs_with_migration() {
        let servers = cluster(&program);
        let mut clients: Vec<Client> = servers.iter().map(Server::client).collect();
        let slot = clients[0].text("CLUSTER KEYSLOT x{0}")[1..].trim().parse().unwrap();
        let from = SLOTS.iter().position(|&(_, last)| slot <= last).unwrap();
        let to = (from + 1) % 3;
        // What another server has accepted is not refused for being too large.
        clients[to].configure("key-memory-limit", "64");
        let [source, target] = clients.get_disjoint_mut([from, to]).unwrap();
        for (family, name, made) in MADE {
            assert_eq!(source.text(made), "+OK\r\n", "{made}");
            let first = if name == "b{0}" { 2000 } else { 0 };
            add(source, family, name, first..first + 1000);
        }
        let digest = source.text("DEBUG DIGEST-VALUE chain{0} fixed{0} cuckoo{0} parts{0}");
        let mut waiting = begin_merge(&servers[from]);
        // While the slot is on its way, keys are added, and others get to the destination of the merge.
        let (mut writer, mut stop) = (servers[from].client(), 5000);
        let mover = {
            let (mut from, mut to) = (servers[from].client(), servers[to].client());
            std::thread::spawn(move || migrate(&mut from, &mut to, slot))
        };
        while !mover.is_finished() {
            let command = format!("BF.MADD grow{{0}} {}", items(stop..stop + 10));
            let reply = writer.text(&command);
            if reply.starts_with("-MOVED") {
                break;
            }
            // It waits while the slot changes hands, and is then told where it went.
            assert!(reply.starts_with("*10"), "{reply}");
            stop += 10;
        }
        mover.join().unwrap();
        let reply = String::from_utf8(waiting.receive().unwrap()).unwrap();
        assert!(reply.starts_with("-ERR the merge was not finished: "), "{reply}");
        wait_until(|| source.info("everything", MERGING) == "0");
        assert_eq!(source.text("DBSIZE"), ":0\r\n", "all of it has gone");

        assert_eq!(target.text("DEBUG DIGEST-VALUE chain{0} fixed{0} cuckoo{0} parts{0}"), digest);
        for (family, name, _) in MADE {
            let first = if name == "b{0}" { 2000 } else { 0 };
            assert_found(target, family, name, first..first + 1000);
        }
        assert_found(target, "BF", "grow{0}", 5000..stop);
        // The merge was not finished, and can be called again.
        target.configure("key-memory-limit", "100000000");
        target.configure("step-usec", "50000");
        assert_eq!(target.text("BF.MERGE d{0} a{0} b{0}"), "+OK\r\n");
        assert_found(target, "BF", "d{0}", 0..1000);
        assert_found(target, "BF", "d{0}", 2000..3000);
    }
}

/// A compaction in slices, which are sent like the effects of other commands, and only from a server that has accepted them.
#[test]
fn a_slot_moves_as_a_whole_also_in_the_middle_of_a_compaction() {
    for program in programs_with_migration() {
        let servers = cluster(&program);
        let mut clients: Vec<Client> = servers.iter().map(Server::client).collect();
        let slot = clients[0].text("CLUSTER KEYSLOT x{0}")[1..].trim().parse().unwrap();
        let from = SLOTS.iter().position(|&(_, last)| slot <= last).unwrap();
        let [source, target] = clients.get_disjoint_mut([from, (from + 1) % 3]).unwrap();
        assert_eq!(source.text("BF.RESERVE fixed{0} 0.01 100"), "+OK\r\n");
        assert_eq!(source.text("CF.RESERVE c{0} 1000000 EXPANSION 1"), "+OK\r\n");
        for i in 0..20 {
            add(source, "CF", "c{0}", 100_000 * i..100_000 * i + 60_000);
        }
        let line = source.text("CF.DEBUG c{0}");
        assert!(!line.contains("filters:1 "), "{line}");
        source.configure("step-usec", "1");
        for i in 0..20_000 {
            let command = format!("CF.DEL c{{0}} {}", key(i));
            let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
            source.send(&words).unwrap();
        }
        (0..20_000).for_each(|_| assert_eq!(source.receive().unwrap(), b":1\r\n"));
        assert_eq!(source.text("CF.COMPACT c{0}"), "+OK\r\n");
        assert_eq!(source.info("everything", COMPACTING), "1");
        migrate(source, target, slot);
        wait_until(|| source.info("everything", COMPACTING) == "0");
        assert_eq!(target.info("everything", COMPACTING), "0", "it does what it is sent");
        for i in 1..20 {
            for start in (0..60_000).step_by(5000) {
                let first = 100_000 * i + start;
                assert_found(target, "CF", "c{0}", first..first + 5000);
            }
        }
        assert!(target.text("CF.DEBUG c{0}").contains("items:1180000 "));
    }
}

/// Options of a replica that answers while it loads: also after a few bytes, since the tests have no more.
const LOADING: [&str; 4] =
    ["--repl-diskless-load", "swapdb", "--loading-process-events-interval-bytes", "1024"];

/// A replica that lost its link for too long, and loads everything again.
fn fall_behind(primary: &Server, replica: &Server, program: &Path) {
    let mut client = primary.client();
    // Slow enough to look at the replica meanwhile. The value is that of the server's own tests.
    assert_eq!(client.text("CONFIG SET rdb-key-save-delay 3000"), "+OK\r\n", "{program:?}");
    let mut other = replica.client();
    assert_eq!(other.text("REPLICAOF 127.0.0.1 1"), "+OK\r\n");
    wait_until(|| other.info("replication", "master_link_status") == "down");
    // More than the backlog has room for.
    let filler = "x".repeat(400_000);
    for i in 0..10 {
        client.call(&format!("SET filler:{i} {filler}"));
    }
    assert_eq!(other.text(&format!("REPLICAOF 127.0.0.1 {}", primary.port)), "+OK\r\n");
    wait_until(|| other.info("persistence", "async_loading") == "1");
}

#[test]
fn a_replica_answers_while_it_loads() {
    for program in programs() {
        let primary = Server::start(&program, &["--repl-backlog-size", "16384"]);
        let mut client = primary.client();
        for (family, name, made) in MADE {
            assert_eq!(client.text(made), "+OK\r\n", "{made}");
            add(&mut client, family, name, 0..1000);
        }
        for i in 0..2000 {
            client.call(&format!("BF.ADD small:{i} x"));
        }
        let replica = replica_of(&primary, &program, &LOADING);
        let mut other = replica.client();
        add(&mut client, "BF", "chain{0}", 1000..1100);
        assert_equal(&primary, &replica);
        fall_behind(&primary, &replica, &program);
        // A merge goes on at the primary meanwhile: its slices come after what is loaded.
        let mut waiting = begin_merge(&primary);
        while other.info("persistence", "async_loading") == "1" {
            for (family, name, _) in MADE {
                assert_found(&mut other, family, name, 0..1000);
            }
            assert!(other.text("BF.ADD chain{0} no").starts_with("-READONLY"));
        }
        client.configure("step-usec", "50000");
        assert_eq!(client.text("CONFIG SET rdb-key-save-delay 0"), "+OK\r\n");
        assert_eq!(waiting.receive().unwrap(), b"+OK\r\n");
        wait_until(|| other.info("replication", "master_link_status") == "up");
        assert_equal(&primary, &replica);
    }
}

#[test]
fn a_replica_whose_load_is_cut_off_keeps_what_it_had() {
    for program in programs() {
        let primary = Server::start(&program, &["--repl-backlog-size", "16384"]);
        let mut client = primary.client();
        for (family, name, made) in MADE {
            assert_eq!(client.text(made), "+OK\r\n", "{made}");
            add(&mut client, family, name, 0..1000);
        }
        for i in 0..2000 {
            client.call(&format!("BF.ADD small:{i} x"));
        }
        let replica = replica_of(&primary, &program, &LOADING);
        let mut other = replica.client();
        let filters = other.info("everything", "ironbloom_bloom_filters");
        fall_behind(&primary, &replica, &program);
        drop(primary);
        wait_until(|| other.info("persistence", "async_loading") == "0");
        // What had been loaded is freed in another thread.
        wait_until(|| other.info("everything", "ironbloom_bloom_filters") == filters);
        for (family, name, _) in MADE {
            assert_found(&mut other, family, name, 0..1000);
        }
    }
}
