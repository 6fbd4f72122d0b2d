//! A store that is restored from a backup in the middle of a generation is never mistaken for what a checkpoint covers.

use std::path::Path;

use ironbloom_store::{Backend, Guard, GuardKind, Opened, Options, Postgres, Redis};

use crate::common::{assert_covers, key};
use ironbloom_testing::postgres::PostgresServer;
use ironbloom_testing::redis::RedisServer;
use ironbloom_testing::{Scratch, Signal, eventually};

fn options(scratch: &Scratch, kind: GuardKind) -> Options {
    let file = scratch.file(&format!("{kind}.ibg"));
    Options::new(kind, 1000, 0.01).checkpoint(file).only_writer()
}

/// Puts 200 keys, has a copy made, removes 100, and closes. Before that, a checkpoint: its generation is not that of the
/// copy either.
fn copy_in_the_middle<B: Backend>(store: B, options: Options, copy: impl FnOnce()) {
    let guard = Guard::open(store, options).unwrap();
    guard.settle().unwrap();
    guard.checkpoint().unwrap();
    (0..200).for_each(|i| assert!(guard.put(key(i), b"value").unwrap().was_absent()));
    copy();
    let half: Vec<Vec<u8>> = (0..100).map(key).collect();
    assert!(guard.remove_many(&half).unwrap().iter().all(|before| before.was_present()));
    guard.close().unwrap();
}

/// All 200 are there again, and are answered, whether or not the filter has been built.
fn all_are_back<B: Backend>(store: B, options: Options, context: &str) {
    let guard = Guard::open(store, options).unwrap();
    assert!(
        matches!(guard.opened(), Opened::WithoutCheckpoint(_)),
        "{context}: {:?}",
        guard.opened()
    );
    for settled in [false, true] {
        let missing = (0..200).filter(|&i| guard.get(key(i)).unwrap().is_none()).count();
        assert_eq!(missing, 0, "{context}, settled: {settled}");
        guard.settle().unwrap();
    }
    assert_covers(&guard, context);
}

#[test]
fn a_dump_of_postgresql_is_not_taken_for_what_the_checkpoint_covers() {
    let scratch = Scratch::new("restored-postgres");
    let Some(server) = PostgresServer::start(scratch.path()) else { return };
    let url = server.url();
    let connect = || eventually(|| Postgres::connect(&url, "users"));
    let dump = scratch.file("dump.sql");
    let dump = dump.to_str().unwrap();
    type Restore = fn(&PostgresServer, &str);
    // Both tables, dropped and made again; both, into the tables that are there; and only the rows, while the generation
    // of the checkpoint stays.
    let ways: [(&str, &[&str], Restore); 3] = [
        ("all", &["--clean", "--if-exists"], |server, dump| run(server, dump)),
        ("data", &["--data-only"], |server, dump| {
            server.psql("truncate users, users_ironbloom");
            run(server, dump);
        }),
        ("rows", &["--data-only", "-t", "users"], |server, dump| {
            server.psql("truncate users");
            run(server, dump);
        }),
    ];
    for kind in [GuardKind::Blocked, GuardKind::Cuckoo] {
        for (name, flags, restore) in ways {
            let context = format!("{kind}, {name}");
            drop(connect());
            server.psql("truncate users");
            let copy = || {
                let arguments = [flags, &["-f", dump, "postgres"]].concat();
                server.run("pg_dump", &arguments);
            };
            copy_in_the_middle(connect(), options(&scratch, kind), copy);
            assert_eq!(server.psql("select count(*) from users"), "100\n");
            // Without a restore, the checkpoint is believed.
            let guard = Guard::open(connect(), options(&scratch, kind)).unwrap();
            assert_eq!(*guard.opened(), Opened::FromCheckpoint, "{context}");
            drop(guard);
            restore(&server, dump);
            all_are_back(connect(), options(&scratch, kind), &context);
        }
    }
}

fn run(server: &PostgresServer, file: &str) {
    server.run("psql", &["-q", "-v", "ON_ERROR_STOP=1", "-f", file]);
}

#[test]
fn a_saved_file_of_redis_is_not_taken_for_what_the_checkpoint_covers() {
    for kind in [GuardKind::Blocked, GuardKind::Cuckoo] {
        let scratch = Scratch::new(&format!("restored-redis-{kind}"));
        let Some(mut server) = RedisServer::start(scratch.path(), &[]) else { return };
        let url = server.url();
        let connect = || eventually(|| Redis::connect(url.as_str(), "users:"));
        let copy = || {
            let mut connection =
                redis::Client::open(url.as_str()).unwrap().get_connection().unwrap();
            redis::cmd("SAVE").exec(&mut connection).unwrap();
            std::fs::copy(scratch.file("dump.rdb"), scratch.file("backup.rdb")).unwrap();
        };
        copy_in_the_middle(connect(), options(&scratch, kind), copy);
        // Without a restore, the checkpoint is believed.
        let guard = Guard::open(connect(), options(&scratch, kind)).unwrap();
        assert_eq!(*guard.opened(), Opened::FromCheckpoint, "{kind}");
        drop(guard);
        server.signal(Signal::KILL);
        server.stop();
        restore(scratch.path());
        server.resume();
        all_are_back(connect(), options(&scratch, kind), kind.name());
    }
}

fn restore(directory: &Path) {
    std::fs::copy(directory.join("backup.rdb"), directory.join("dump.rdb")).unwrap();
}
