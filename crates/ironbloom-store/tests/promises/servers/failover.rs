//! Another server takes the place of one that was killed in the middle of a load, without the last writes that the first had
//! acknowledged: a replica that Sentinels promote, and a standby of PostgreSQL.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ironbloom_store::{
    AsyncGuard, AsyncPostgres, AsyncRedis, Backend, Connections, Follower, Guard, GuardKind,
    Options, Postgres, Redis, Watch,
};
use ironbloom_testing::postgres::PostgresServer;
use ironbloom_testing::redis::RedisServer;
use ironbloom_testing::sentinel::Sentinel;
use ironbloom_testing::{Proxy, Random, Scratch, Signal, eventually, wait_until};
use tokio::runtime::Builder;

use super::awaited::in_the_end;
use crate::common::{assert_covers, key};

const KEYS: u64 = 300;
/// Writes of the load before the server is killed, and after another one has answered.
const WRITES: u64 = 2000;

/// Two servers, and an address that leads to the one that counts.
trait Pair {
    fn url(&self) -> String;

    /// The first is killed, and the other takes its place.
    fn fail_over(&mut self);
}

struct RedisPair {
    servers: [RedisServer; 2],
    sentinels: Vec<Sentinel>,
    proxy: Proxy,
}

impl RedisPair {
    fn start(folders: [&Path; 2]) -> Option<Self> {
        let events = ["--notify-keyspace-events", "KA", "--repl-diskless-sync-delay", "0"];
        let first = RedisServer::start(folders[0], &events)?;
        let primary = format!("127.0.0.1 {}", first.port);
        let second =
            RedisServer::start(folders[1], &[&events[..], &["--replicaof", &primary]].concat())?;
        eventually(|| Redis::connect(first.url(), ""));
        let sentinels: Vec<Sentinel> = (0..3).map(|_| first.sentinel(500)).collect();
        for sentinel in &sentinels {
            wait_until(|| {
                let replicas = sentinel.ask("SENTINEL REPLICAS mymaster");
                let others = sentinel.ask("SENTINEL SENTINELS mymaster");
                replicas.contains("master-link-status\r\n$2\r\nok\r\n")
                    && others.matches("$5\r\nrunid\r\n").count() == 2
            });
        }
        let proxy = Proxy::to(first.port);
        Some(Self { servers: [first, second], sentinels, proxy })
    }
}

impl Pair for RedisPair {
    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.proxy.port)
    }

    fn fail_over(&mut self) {
        let [first, second] = &mut self.servers;
        first.signal(Signal::KILL);
        let named = second.port.to_string();
        wait_until(|| {
            let master = self.sentinels[0].ask("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster");
            master.trim().ends_with(&named)
        });
        self.proxy.point_at(second.port);
    }
}

struct PostgresPair {
    servers: [PostgresServer; 2],
    proxy: Proxy,
}

impl PostgresPair {
    fn start(folders: [&Path; 2]) -> Option<Self> {
        let first = PostgresServer::start(folders[0])?;
        first.wait();
        let second = first.standby(folders[1]);
        second.wait();
        let proxy = Proxy::to(first.port);
        Some(Self { servers: [first, second], proxy })
    }
}

impl Pair for PostgresPair {
    fn url(&self) -> String {
        let port = self.proxy.port;
        format!("host=127.0.0.1 port={port} user=postgres dbname=postgres")
    }

    fn fail_over(&mut self) {
        let [first, second] = &mut self.servers;
        first.signal(Signal::KILL);
        assert_eq!(second.psql("select pg_promote()"), "t\n");
        self.proxy.point_at(second.port);
    }
}

/// Puts, removes and lookups of one thread. What the store holds after the guard has spoken to it is not absent.
fn load<B: Backend>(guard: &Guard<B>, seed: u64, written: &AtomicU64, ends: &AtomicBool) -> u64 {
    let mut random = Random(seed);
    let mut compared = 0;
    while !ends.load(Ordering::Relaxed) {
        let wrote = match random.below(3) {
            0 => guard.remove(key(random.below(KEYS))).is_ok(),
            _ => guard.put(key(random.below(KEYS)), b"").is_ok(),
        };
        written.fetch_add(u64::from(wrote), Ordering::Relaxed);
        let asked = key(random.below(KEYS));
        let stored = || guard.backend().contains(&asked).unwrap_or(false);
        if stored() && guard.put("pulse", b"").is_ok() {
            let found = guard.contains(&asked).unwrap_or(true);
            assert!(found || !stored(), "{} is stored", String::from_utf8_lossy(&asked));
            compared += 1;
        }
        if !wrote {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    compared
}

/// A guard that is the only writer, with threads; each has keys of its own in a store of one writer.
fn a_live_guard_misses_nothing<B: Backend>(
    mut pair: impl Pair,
    options: Options,
    connect: impl Fn(&str) -> B,
) {
    let url = pair.url();
    let guard = Guard::open(connect(&url), options.clone()).unwrap();
    let (written, ends) = (AtomicU64::new(0), AtomicBool::new(false));
    let more = || {
        let before = written.load(Ordering::Relaxed);
        wait_until(|| written.load(Ordering::Relaxed) > before + WRITES);
    };
    std::thread::scope(|scope| {
        let load = scope.spawn(|| load(&guard, 1, &written, &ends));
        more();
        pair.fail_over();
        more();
        ends.store(true, Ordering::Relaxed);
        let compared = load.join().unwrap();
        assert!(compared > WRITES / 4, "{compared} comparisons");
    });
    assert_covers(&guard, "at once");
    eventually(|| guard.rebuild());
    assert_covers(&guard, "built again");
    assert!(guard.stats().foreign > 0, "the exchange was noticed");
    eventually(|| guard.checkpoint());
    drop(guard);
    assert_covers(&Guard::open(connect(&url), options).unwrap(), "opened again");
}

/// A guard with a follower, while others write, too.
fn a_follower_hears_of_everything_in_the_end<B: Watch, W: Backend>(
    mut pair: impl Pair,
    connect: impl AsyncFn(&str) -> B,
    writer: impl Fn(&str) -> W,
) {
    let url = pair.url();
    let others = writer(&url);
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let options = Options::new(GuardKind::Blocked, 1000, 0.001).measured_share(0.0);
    let guard = runtime.block_on(async {
        let guard = AsyncGuard::open(connect(&url).await, options).await.unwrap();
        Arc::new(guard)
    });
    let follower = runtime.block_on(Follower::subscribe(guard.clone())).unwrap();
    let task = runtime.spawn(follower.run());
    let (written, ends) = (AtomicU64::new(0), AtomicBool::new(false));
    let more = || {
        let before = written.load(Ordering::Relaxed);
        wait_until(|| written.load(Ordering::Relaxed) > before + WRITES);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random(2);
            while !ends.load(Ordering::Relaxed) {
                let own = key(random.below(KEYS));
                let worked = match random.below(3) {
                    0 => others.put(&key(KEYS + random.below(KEYS)), b"").is_ok(),
                    1 => others.remove(&key(KEYS + random.below(KEYS))).is_ok(),
                    _ => runtime.block_on(guard.put(&own, b"")).is_ok(),
                };
                written.fetch_add(u64::from(worked), Ordering::Relaxed);
                if !worked {
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        });
        more();
        pair.fail_over();
        more();
        ends.store(true, Ordering::Relaxed);
    });
    let mut stored = Vec::new();
    others
        .scan(&mut |key| {
            stored.push(key.to_vec());
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    assert!(stored.len() > KEYS as usize / 2);
    runtime.block_on(async {
        for key in &stored {
            let what = String::from_utf8_lossy(key).into_owned();
            in_the_end(&what, async || guard.contains(key).await.unwrap_or(false)).await;
        }
        in_the_end("the filter is used again", async || {
            let skipped = guard.stats().skipped();
            let _ = guard.contains("absent").await;
            guard.stats().skipped() > skipped
        })
        .await;
        for key in &stored {
            assert!(guard.contains(key).await.unwrap(), "{}", String::from_utf8_lossy(key));
        }
    });
    task.abort();
}

fn alone(scratch: &Scratch) -> Options {
    Options::new(GuardKind::Cuckoo, 1000, 0.01)
        .only_writer()
        .measured_share(0.0)
        .checkpoint(scratch.file("g.ibg"))
}

/// Proves twice a second that it hears, and waits for a server no longer than that.
fn hurried() -> Connections {
    Connections::new().timeout(Duration::from_secs(2)).prove_every(Duration::from_millis(500))
}

#[test]
fn a_guard_misses_nothing_when_sentinels_promote_a_replica() {
    let [first, second] = ["failover-redis-1", "failover-redis-2"].map(Scratch::new);
    let Some(pair) = RedisPair::start([first.path(), second.path()]) else { return };
    a_live_guard_misses_nothing(pair, alone(&first), |url| {
        eventually(|| Redis::connect(url, "u:"))
    });
}

#[test]
fn a_guard_misses_nothing_when_a_standby_of_postgresql_is_promoted() {
    let [first, second] = ["failover-postgres-1", "failover-postgres-2"].map(Scratch::new);
    let Some(pair) = PostgresPair::start([first.path(), second.path()]) else { return };
    a_live_guard_misses_nothing(pair, alone(&first), |url| {
        eventually(|| Postgres::connect(url, "u"))
    });
}

#[test]
fn a_follower_hears_again_when_sentinels_promote_a_replica() {
    let [first, second] = ["follow-redis-1", "follow-redis-2"].map(Scratch::new);
    let Some(pair) = RedisPair::start([first.path(), second.path()]) else { return };
    a_follower_hears_of_everything_in_the_end(
        pair,
        async |url: &str| AsyncRedis::connect_with(url, "u:", &hurried()).await.unwrap(),
        |url| eventually(|| Redis::connect_with(url, "u:", &hurried())),
    );
}

#[test]
fn a_follower_hears_again_when_a_standby_of_postgresql_is_promoted() {
    let [first, second] = ["follow-postgres-1", "follow-postgres-2"].map(Scratch::new);
    let Some(pair) = PostgresPair::start([first.path(), second.path()]) else { return };
    a_follower_hears_of_everything_in_the_end(
        pair,
        async |url: &str| AsyncPostgres::connect_with(url, "u", &hurried()).await.unwrap(),
        |url| eventually(|| Postgres::connect_with(url, "u", &hurried())),
    );
}

/// The address leads elsewhere, while the first server goes on and keeps its connections: a follower of it would hear nothing
/// of what the other holds.
#[test]
fn a_follower_notices_that_its_address_leads_to_another_server() {
    let [first, second] = ["elsewhere-1", "elsewhere-2"].map(Scratch::new);
    let events = ["--notify-keyspace-events", "KA"];
    let Some(first) = RedisServer::start(first.path(), &events) else { return };
    let Some(second) = RedisServer::start(second.path(), &events) else { return };
    let proxy = Proxy::to(first.port);
    elsewhere(
        &proxy,
        second.port,
        async || {
            AsyncRedis::connect_with(format!("redis://127.0.0.1:{}/", proxy.port), "", &hurried())
                .await
        },
        || _ = eventually(|| Redis::connect(second.url(), "")).put(b"theirs", b"").unwrap(),
    );
    let [first, second] = ["elsewhere-3", "elsewhere-4"].map(Scratch::new);
    let Some(first) = PostgresServer::start(first.path()) else { return };
    let Some(second) = PostgresServer::start(second.path()) else { return };
    let proxy = Proxy::to(first.port);
    let url = format!("host=127.0.0.1 port={} user=postgres dbname=postgres", proxy.port);
    // Otherwise a proof would fail for want of a table.
    eventually(|| Postgres::connect(&second.url(), "t"));
    elsewhere(
        &proxy,
        second.port,
        async || AsyncPostgres::connect_with(&url, "t", &hurried()).await,
        || _ = eventually(|| Postgres::connect(&second.url(), "t")).put(b"theirs", b"").unwrap(),
    );
}

fn elsewhere<B: Watch>(
    proxy: &Proxy,
    other: u16,
    connect: impl AsyncFn() -> Result<B, B::Error>,
    write: impl FnOnce(),
) {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let store = eventually(|| runtime.block_on(connect()));
    let (guard, task) = runtime.block_on(async {
        let options = Options::new(GuardKind::Blocked, 1000, 0.001).measured_share(0.0);
        let guard = Arc::new(AsyncGuard::open(store, options).await.unwrap());
        let follower = Follower::subscribe(guard.clone()).await.unwrap();
        let task = tokio::spawn(follower.run());
        in_the_end("the filter is built", async || {
            let skipped = guard.stats().skipped();
            let _ = guard.contains("absent").await;
            guard.stats().skipped() > skipped
        })
        .await;
        (guard, task)
    });
    proxy.point_at(other);
    write();
    // The connections that the guard has lead to the first server, and are not used any more.
    let found = async || guard.contains("theirs").await.unwrap_or(false);
    runtime.block_on(in_the_end("it is found", found));
    task.abort();
}
