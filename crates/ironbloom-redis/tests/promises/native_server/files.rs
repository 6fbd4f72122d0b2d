//! Saving, rewriting, restarts and replicas.

use ironbloom::Persist;

use super::pieces::{built, pairs_of};
use super::{MADE, check, fill};
use crate::common::key;
use ironbloom_testing::module::{
    Server, all_programs as programs, assert_equal, replica_of, save_or_rewrite,
};

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
        // Repeats: no change for all but windows, which remember them again.
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
