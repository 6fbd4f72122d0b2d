//! Promise: the servers of others do what a guard relies on. Each is started here, on a free port of loopback in a
//! directory of its own, and stopped again. Without the server's program the test says so and does nothing, unless
//! `IRONBLOOM_REQUIRE_SERVER` is set.

mod awaited;
mod failover;
mod followed;
mod identity;
mod killed;
mod laws;
mod restored;
mod tls;

use std::time::Duration;

use crate::common::{exercise, key};
use ironbloom_store::{Backend, Connections, Postgres, PostgresError, Redis};
use ironbloom_testing::Scratch;
use ironbloom_testing::eventually;
use ironbloom_testing::postgres::PostgresServer;
use ironbloom_testing::redis::RedisServer;

#[test]
fn a_redis_server_does_what_a_guard_relies_on() {
    let scratch = Scratch::new("redis");
    let Some(mut server) = RedisServer::start(scratch.path(), &[]) else { return };
    let url = server.url();
    let connect = |prefix: &str| eventually(|| Redis::connect(url.as_str(), prefix));
    // The prefix has letters that mean something in patterns, and a neighbour that a pattern would match.
    connect("u*er:").put(b"not ours", b"").unwrap();
    connect("uxer:").put(b"not ours", b"").unwrap();
    exercise(&scratch, || connect("u?er:"));
    assert_eq!(connect("u*er:").len_hint().unwrap(), None);
    let all = connect("");
    assert!(all.len_hint().unwrap().unwrap() > 490);
    let stop_and_go = |go: bool| if go { server.resume() } else { server.stop() };
    survive_restarts(&all, || connect("").contains(b""), stop_and_go);
}

#[test]
fn a_table_of_postgresql_does_what_a_guard_relies_on() {
    let scratch = Scratch::new("postgres");
    let Some(mut server) = PostgresServer::start(scratch.path()) else { return };
    let url = server.url();
    let connect = |table: &str| eventually(|| Postgres::connect(&url, table));
    exercise(&scratch, || connect("odd \"name\""));
    let other = connect("other");
    assert_eq!(other.len_hint().unwrap(), Some(0));
    let pairs: Vec<(Vec<u8>, &[u8])> = (0..25_000).map(|i| (key(i), &b""[..])).collect();
    let pairs: Vec<(&[u8], &[u8])> = pairs.iter().map(|(key, value)| (&key[..], *value)).collect();
    assert!(other.put_many(&pairs).unwrap().iter().all(|before| before.was_absent()));
    let mut visited = 0;
    let mut count = |_: &[u8]| {
        visited += 1;
        std::ops::ControlFlow::Continue(())
    };
    other.scan(&mut count).unwrap();
    assert_eq!(visited, 25_000, "more than a page");

    // What went wrong is said, and where it may not be called it is an error.
    let wrong = Postgres::connect(&format!("{url} options='-c nonsense=1'"), "other").unwrap_err();
    assert!(wrong.to_string().contains("nonsense"), "{wrong}");
    server.psql("drop table other");
    let wrong = other.get(b"a").unwrap_err().to_string();
    for word in ["table \"other\"", "does not exist", "42P01"] {
        assert!(wrong.contains(word), "{wrong}");
    }
    let long = Postgres::connect(&url, &"x".repeat(60)).unwrap_err();
    assert!(matches!(long, PostgresError::LongName(_)), "{long}");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let inside = Postgres::connect(&url, "other").unwrap_err();
        assert!(matches!(inside, PostgresError::InsideRuntime), "{inside}");
        assert!(other.get(b"a").unwrap_err().to_string().contains("runtime"));
    });
    let stop_and_go = |go: bool| if go { server.resume() } else { server.stop() };
    survive_restarts(&connect("third"), || connect("third"), stop_and_go);
}

#[test]
fn threads_wait_for_one_of_few_connections() {
    let scratch = Scratch::new("few");
    let Some(server) = RedisServer::start(scratch.path(), &[]) else { return };
    let few = Connections::new().max(2);
    let store = eventually(|| Redis::connect_with(server.url().as_str(), "few:", &few));
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let store = &store;
            scope.spawn(move || {
                (0..50).for_each(|i| {
                    assert!(store.put(&key(50 * thread + i), b"").unwrap().was_absent())
                })
            });
        }
    });
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    let clients: String = redis::cmd("CLIENT").arg("LIST").query(&mut connection).unwrap();
    assert_eq!(clients.lines().count(), 3, "two, and the one that asks: {clients}");
}

/// While the server is away, that is an error; when it is back, all is well. Connections that have ended while they were
/// idle are noticed before they are used.
fn survive_restarts<T>(
    store: &impl Backend,
    connect: impl Fn() -> T,
    mut let_run: impl FnMut(bool),
) {
    store.put(b"before", b"1").unwrap();
    let_run(false);
    store.get(b"before").unwrap_err();
    store.put(b"during", b"1").unwrap_err();
    let_run(true);
    eventually(|| store.get(b"before")).unwrap();
    let_run(false);
    let_run(true);
    connect();
    std::thread::sleep(Duration::from_secs(1));
    assert!(store.put(b"after", b"1").unwrap().was_absent(), "an idle connection is checked");
    assert_eq!(store.get(b"before").unwrap().as_deref(), Some(&b"1"[..]));
}
