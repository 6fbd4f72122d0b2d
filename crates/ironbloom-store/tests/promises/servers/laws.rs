//! The laws at the edge between a guard and a server: it goes back under a live guard, carries out writes late, and stops
//! telling what others do.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use ironbloom_store::{
    AsyncBackend, AsyncGuard, AsyncPostgres, AsyncRedis, Backend, Connections, Follower, Guard,
    GuardKind, HashFn, Options, Postgres, Redis, Watch,
};
use ironbloom_testing::postgres::PostgresServer;
use ironbloom_testing::redis::RedisServer;
use ironbloom_testing::{Scratch, Signal, eventually};
use tokio::runtime::{Builder, Runtime};

use super::awaited::in_the_end;
use crate::common::{assert_covers, key};

const KINDS: [GuardKind; 2] = [GuardKind::Blocked, GuardKind::Cuckoo];
const MOMENTS: [When; 2] = [When::Between, When::Within];

fn options(scratch: &Scratch, kind: GuardKind) -> Options {
    Options::new(kind, 1000, 0.01).only_writer().checkpoint(scratch.file(&format!("{kind}.ibg")))
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// When the backup is made: between two generations, or within one.
#[derive(Clone, Copy, Debug)]
enum When {
    Between,
    Within,
}

/// Writes, has a backup made at a checkpoint or not, writes more, has it restored, writes, and opens again.
fn goes_back<B: Backend>(
    open: impl Fn() -> Guard<B>,
    (context, when): (&str, When),
    backup: impl FnOnce(),
    restore: impl FnOnce(),
) {
    let guard = open();
    guard.settle().unwrap();
    (0..100).for_each(|i| {
        let _ = guard.put(key(i), b"").unwrap();
    });
    match when {
        When::Between => guard.checkpoint().unwrap(),
        When::Within => {
            let _ = guard.put("alice", b"").unwrap();
        }
    }
    backup();
    // The server was away.
    eventually(|| guard.put("bob", b""));
    (0..50).for_each(|i| {
        let _ = guard.remove(key(i)).unwrap();
    });
    guard.rebuild().unwrap();
    restore();
    eventually(|| match when {
        When::Between => guard.put("carol", b"").map(drop),
        When::Within => guard.checkpoint(),
    });
    assert_covers(&guard, &format!("{context}, at once"));
    eventually(|| guard.put("carol", b""));
    assert_covers(&guard, &format!("{context}, while it is open"));
    drop(guard);
    let guard = open();
    assert_covers(&guard, &format!("{context}, opened again"));
    assert!(guard.get("carol").unwrap().is_some(), "{context}");
    assert!(guard.get(key(1)).unwrap().is_some(), "{context}");
}

#[test]
fn a_redis_server_that_goes_back_under_a_live_guard_hides_no_key() {
    for (kind, when) in KINDS.into_iter().flat_map(|kind| MOMENTS.map(|when| (kind, when))) {
        let scratch = Scratch::new(&format!("back-redis-{kind}"));
        let Some(mut server) = RedisServer::start(scratch.path(), &[]) else { return };
        let url = server.url();
        let open = || {
            let store = eventually(|| Redis::connect(url.as_str(), "users:"));
            Guard::open(store, options(&scratch, kind)).unwrap()
        };
        let [dump, copy] = ["dump.rdb", "backup.rdb"].map(|name| scratch.file(name));
        let backup = || {
            let mut connection =
                redis::Client::open(url.as_str()).unwrap().get_connection().unwrap();
            redis::cmd("SAVE").exec(&mut connection).unwrap();
            fs::copy(&dump, &copy).unwrap();
        };
        let restore = || {
            server.signal(Signal::KILL);
            server.stop();
            fs::copy(&copy, &dump).unwrap();
            server.resume();
        };
        goes_back(open, (&format!("{kind}, {when:?}"), when), backup, restore);
    }
}

/// Copies a folder, or puts the copy in its place.
fn copy_folder(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    let done = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(done.success());
}

#[test]
fn a_postgresql_server_that_goes_back_under_a_live_guard_hides_no_key() {
    for (kind, when) in KINDS.into_iter().flat_map(|kind| MOMENTS.map(|when| (kind, when))) {
        let scratch = Scratch::new(&format!("back-postgres-{kind}"));
        let Some(server) = PostgresServer::start(scratch.path()) else { return };
        let server = std::cell::RefCell::new(server);
        let url = server.borrow().url();
        let open = || {
            let store = eventually(|| Postgres::connect(&url, "users"));
            Guard::open(store, options(&scratch, kind)).unwrap()
        };
        let volume = fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().path());
        let volume = volume.into_iter().find(|path| path.join("PG_VERSION").exists()).unwrap();
        let copy = scratch.file("volume-copy");
        let away = |change: &dyn Fn()| {
            server.borrow_mut().stop();
            change();
            server.borrow_mut().resume();
            server.borrow().wait();
        };
        let backup = || away(&|| copy_folder(&volume, &copy));
        let restore = || away(&|| copy_folder(&copy, &volume));
        goes_back(open, (&format!("{kind}, {when:?}"), when), backup, restore);
    }
}

#[test]
fn no_key_of_a_user_is_taken_for_a_note_on_redis() {
    let scratch = Scratch::new("notes-redis");
    let Some(server) = RedisServer::start(scratch.path(), &[]) else { return };
    for prefix in ["", "app:"] {
        let connect = || eventually(|| Redis::connect(server.url(), prefix));
        let file = scratch.file(&format!("g{}.ibg", prefix.len()));
        let options =
            || Options::new(GuardKind::Blocked, 100, 0.01).only_writer().checkpoint(&file);
        let names = ["ironbloom:generation", "ironbloom:probe", "ironbloom:generation#"];
        let guard = Guard::open(connect(), options()).unwrap();
        guard.settle().unwrap();
        for name in names {
            assert!(guard.put(name, b"mine").unwrap().was_absent(), "{prefix}{name}");
        }
        guard.rebuild().unwrap();
        guard.close().unwrap();
        // The value of a generation, stored by a user, under its name, is none.
        let guard = Guard::open(connect(), options()).unwrap();
        let generation = guard.backend().generation().unwrap().unwrap();
        guard.put(names[0], generation.to_bytes()).unwrap();
        drop(guard);
        let guard = Guard::open(connect(), options()).unwrap();
        assert!(matches!(guard.opened(), ironbloom_store::Opened::WithoutCheckpoint(_)));
        guard.settle().unwrap();
        assert_covers(&guard, prefix);
        for name in names {
            assert!(guard.get(name).unwrap().is_some(), "{prefix}{name}");
        }
        assert_ne!(guard.backend().generation().unwrap(), Some(generation));
    }
}

#[test]
fn a_table_with_a_schema_is_that_of_the_schema() {
    let scratch = Scratch::new("schema");
    let Some(server) = PostgresServer::start(scratch.path()) else { return };
    let url = server.url();
    server.wait();
    server.psql("create schema app");
    let store = eventually(|| Postgres::connect(&url, "app.users"));
    store.put(b"alice", b"").unwrap();
    assert_eq!(server.psql("select count(*) from app.users"), "1\n");
    assert_eq!(server.psql("select count(*) from app.users_ironbloom"), "0\n");
    assert_eq!(server.psql("select to_regclass('public.\"app.users\"') is null"), "t\n");
}

/// A put waits for a lock, its future is dropped, and the write lands after another guard was opened.
#[test]
fn a_put_that_waits_for_a_lock_of_postgresql_is_answered_however_the_next_guard_is_opened() {
    let scratch = Scratch::new("late-postgres");
    let Some(server) = PostgresServer::start(scratch.path()) else { return };
    let (url, runtime) = (server.url(), runtime());
    server.wait();
    for (number, between) in
        ["closed", "no checkpoint", "dropped", "damaged", "deleted", "other seed"]
            .iter()
            .enumerate()
    {
        for lock in ["lock table {} in exclusive mode", "insert into {} values ('late', '')"] {
            // Nobody can connect while the table is locked, so no guard is closed then.
            if lock.starts_with("lock") && !matches!(*between, "no checkpoint" | "dropped") {
                continue;
            }
            let table = format!("users{number}_{}", lock.len());
            let file = scratch.file(&format!("{table}.ibg"));
            let options = || {
                let options = Options::new(GuardKind::Cuckoo, 1000, 0.01)
                    .only_writer()
                    .retry_after(Duration::from_millis(50));
                if *between == "no checkpoint" { options } else { options.checkpoint(&file) }
            };
            runtime.block_on(async {
                let store = AsyncPostgres::connect(&url, &table).await.unwrap();
                let guard = AsyncGuard::open(store, options()).await.unwrap();
                guard.settle().await.unwrap();
                guard.put("early", b"").await.unwrap();
                let (client, connection) =
                    tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
                let driver = tokio::spawn(connection);
                let lock = lock.replace("{}", &table);
                client.batch_execute(&format!("begin; {lock}")).await.unwrap();
                let put = guard.put("late", b"");
                assert!(tokio::time::timeout(Duration::from_millis(300), put).await.is_err());
                assert_eq!(guard.stats().doubtful, 1);
                match *between {
                    "no checkpoint" | "dropped" => drop(guard),
                    _ => guard.close().await.unwrap(),
                }
                if *between == "damaged" {
                    let mut bytes = fs::read(&file).unwrap();
                    let middle = bytes.len() / 2;
                    bytes[middle] ^= 1;
                    fs::write(&file, bytes).unwrap();
                } else if *between == "deleted" {
                    fs::remove_file(&file).unwrap();
                }
                let options = match *between {
                    "other seed" => options().hash_fn(HashFn::Xxh3 { seed: 77 }),
                    _ => options(),
                };
                // The table may be locked, and then nothing can be asked of it yet.
                let (url, table) = (url.clone(), table.clone());
                let opening = tokio::spawn(async move {
                    let store = AsyncPostgres::connect(&url, &table).await.unwrap();
                    let guard = AsyncGuard::open(store, options).await.unwrap();
                    let _ = guard.settle().await;
                    guard
                });
                tokio::time::sleep(Duration::from_millis(300)).await;
                client.batch_execute("rollback").await.unwrap();
                let guard = opening.await.unwrap();
                tokio::time::sleep(Duration::from_millis(300)).await;
                let stored = guard.backend().contains(b"late").await.unwrap();
                assert_eq!(guard.contains("late").await.unwrap(), stored, "{between}, {lock}");
                assert!(guard.contains("early").await.unwrap());
                in_the_end("the filter is there", async || {
                    let skipped = guard.stats().skipped();
                    let _ = guard.contains("absent").await;
                    guard.stats().skipped() > skipped
                })
                .await;
                assert_eq!(guard.contains("late").await.unwrap(), stored, "{between}, {lock}");
                driver.abort();
            });
        }
    }
}

/// A follower that proves ten times a second that it hears.
fn hearing() -> Connections {
    Connections::new().prove_every(Duration::from_millis(100))
}

/// Nothing that others write is absent for ever, whatever made the follower deaf.
async fn is_found_in_the_end<B: Watch>(
    store: B,
    context: &str,
    deafen: impl FnOnce(),
    write: impl FnOnce(),
) {
    // A lookup that only measures would find it by chance.
    let options = Options::new(GuardKind::Blocked, 1000, 0.001).measured_share(0.0);
    let guard = AsyncGuard::open(store, options).await.unwrap();
    let guard = Arc::new(guard);
    let follower = Follower::subscribe(guard.clone()).await.unwrap();
    let task = tokio::spawn(follower.run());
    in_the_end("the filter is built", async || {
        let before = guard.stats().skipped();
        let _ = guard.contains("absent").await;
        guard.stats().skipped() > before
    })
    .await;
    deafen();
    write();
    in_the_end(context, async || guard.contains("theirs").await.unwrap_or(false)).await;
    task.abort();
}

#[test]
fn a_table_that_stops_telling_what_others_write_is_noticed() {
    let scratch = Scratch::new("deaf-postgres");
    let Some(server) = PostgresServer::start(scratch.path()) else { return };
    let (url, runtime) = (server.url(), runtime());
    server.wait();
    let ways = [
        (
            "create table other (like t including all); alter table t rename to gone; alter table other rename to t",
            "t",
        ),
        ("drop table t; create table t (key bytea primary key, value bytea not null)", "t"),
        ("alter table t disable trigger all", "t"),
        ("drop trigger t_ironbloom_rows on t", "t"),
        ("drop function t_ironbloom_notify cascade", "t"),
        (
            "create or replace function t_ironbloom_notify() returns trigger language plpgsql as 'begin return null; end'",
            "t",
        ),
        ("create table child () inherits (t)", "child"),
    ];
    for (deafen, target) in ways {
        server.psql("drop table if exists t, t_ironbloom, gone cascade");
        runtime.block_on(async {
            let store = AsyncPostgres::connect_with(&url, "t", &hearing()).await.unwrap();
            let write =
                || drop(server.psql(&format!("insert into {target} values ('theirs', '')")));
            is_found_in_the_end(store, deafen, || drop(server.psql(deafen)), write).await;
        });
    }
}

#[test]
fn a_redis_server_that_stops_telling_what_others_write_is_noticed() {
    let scratch = Scratch::new("deaf-redis");
    let events = ["--notify-keyspace-events", "KA"];
    let Some(server) = RedisServer::start(scratch.path(), &events) else { return };
    let other = Scratch::new("deaf-redis-other");
    let Some(primary) = RedisServer::start(other.path(), &[]) else { return };
    let (url, runtime) = (server.url(), runtime());
    eventually(|| Redis::connect(url.as_str(), ""));
    eventually(|| Redis::connect(primary.url(), ""));
    let run = |url: String, command: &[&str]| {
        let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
        redis::cmd(command[0]).arg(&command[1..]).exec(&mut connection).unwrap();
    };
    runtime.block_on(async {
        let store = AsyncRedis::connect_with(url.as_str(), "", &hearing()).await.unwrap();
        let deafen = || run(url.clone(), &["CONFIG", "SET", "notify-keyspace-events", ""]);
        let write = || run(url.clone(), &["SET", "theirs", ""]);
        is_found_in_the_end(store, "no events", deafen, write).await;
        run(url.clone(), &["CONFIG", "SET", "notify-keyspace-events", "KA"]);
        run(url.clone(), &["DEL", "theirs"]);

        let store = AsyncRedis::connect_with(url.as_str(), "", &hearing()).await.unwrap();
        let primary = primary.url();
        let port = primary.trim_end_matches('/').rsplit(':').next().unwrap().to_owned();
        let write = || run(primary.clone(), &["SET", "theirs", ""]);
        let deafen = || run(url.clone(), &["REPLICAOF", "127.0.0.1", &port]);
        is_found_in_the_end(store, "a replica", deafen, write).await;
    });
}
