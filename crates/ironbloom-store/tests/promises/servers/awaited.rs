//! The asynchronous stores: what all stores do, and what a guard promises over them when futures are dropped, the pool is
//! empty or the server is away.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use ironbloom_store::{
    AsyncBackend, AsyncGuard, AsyncPostgres, AsyncRedis, Backend, Before, Connections, Generation,
    GuardKind, Options, PostgresError,
};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

use crate::common::{exercise, key};
use ironbloom_testing::postgres::PostgresServer;
use ironbloom_testing::redis::RedisServer;
use ironbloom_testing::{Scratch, Signal, eventually};

pub(crate) fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Tries until it works, half a minute at most.
pub(crate) async fn in_the_end(what: &str, mut works: impl AsyncFnMut() -> bool) {
    for _ in 0..600 {
        if works().await {
            return;
        }
        sleep(Duration::from_millis(50)).await;
    }
    panic!("never: {what}");
}

/// A blocking store that asks an asynchronous one, so that both kinds are tried in the same way.
struct Blocking<B>(B, Arc<Runtime>);

impl<B: AsyncBackend + 'static> Backend for Blocking<B> {
    type Error = B::Error;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, B::Error> {
        self.1.block_on(self.0.get(key))
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, B::Error> {
        self.1.block_on(self.0.get_many(keys))
    }

    fn contains(&self, key: &[u8]) -> Result<bool, B::Error> {
        self.1.block_on(self.0.contains(key))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Before, B::Error> {
        self.1.block_on(self.0.put(key, value))
    }

    fn put_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<Before>, B::Error> {
        self.1.block_on(self.0.put_many(pairs))
    }

    fn remove(&self, key: &[u8]) -> Result<Before, B::Error> {
        self.1.block_on(self.0.remove(key))
    }

    fn remove_many(&self, keys: &[&[u8]]) -> Result<Vec<Before>, B::Error> {
        self.1.block_on(self.0.remove_many(keys))
    }

    fn scan(&self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), B::Error> {
        let mut keys = Vec::new();
        let mut collect = |key: &[u8]| {
            keys.push(key.to_vec());
            ControlFlow::Continue(())
        };
        self.1.block_on(self.0.scan(&mut collect))?;
        let _ = keys.iter().try_for_each(|key| visit(key));
        Ok(())
    }

    fn len_hint(&self) -> Result<Option<u64>, B::Error> {
        self.1.block_on(self.0.len_hint())
    }

    fn generation(&self) -> Result<Option<Generation>, B::Error> {
        self.1.block_on(self.0.generation())
    }

    fn set_generation(&self, generation: Generation) -> Result<(), B::Error> {
        self.1.block_on(self.0.set_generation(generation))
    }

    fn seal(&self, generation: Generation) -> Result<(), B::Error> {
        self.1.block_on(self.0.seal(generation))
    }
}

/// What has been acknowledged is found, by many tasks over two connections, while the filter is being built.
async fn acknowledged_puts_are_found<B: AsyncBackend + 'static>(guard: &AsyncGuard<B>) {
    let tasks = (0..20).map(|task| async move {
        for i in 20 * task..20 * task + 20 {
            assert!(guard.put(key(i), b"value").await.unwrap().was_absent());
            assert!(guard.contains(key(i)).await.unwrap(), "key {i} was acknowledged");
        }
    });
    let all = futures_lite::future::zip(guard.rebuild(), futures_util::future::join_all(tasks));
    let (built, _) = timeout(Duration::from_secs(60), all).await.expect("nobody waits for ever");
    built.unwrap();
    let keys: Vec<Vec<u8>> = (0..400).map(key).collect();
    assert!(guard.get_many(&keys).await.unwrap().iter().all(Option::is_some));
    let before = guard.stats().skipped();
    let absent: Vec<Vec<u8>> = (1000..1200).map(key).collect();
    assert!(guard.get_many(&absent).await.unwrap().iter().all(Option::is_none));
    assert!(guard.stats().skipped() > before + 150, "the filter works");
}

/// Errors while the server is away, and no wrong answer once it is back.
async fn survives_a_restart<B: AsyncBackend>(guard: &AsyncGuard<B>, mut let_run: impl FnMut(bool)) {
    assert!(guard.put("before", b"").await.unwrap().was_absent());
    let_run(false);
    assert!(guard.get(key(1)).await.is_err());
    assert!(guard.put("during", b"").await.is_err());
    assert_eq!(guard.stats().doubtful, 0, "without a connection, nothing was sent");
    let_run(true);
    in_the_end("the server answers", async || guard.get(key(1)).await.is_ok()).await;
    assert!(guard.put("after", b"").await.unwrap().was_absent());
    guard.rebuild().await.unwrap();
    for name in ["key-1", "key-399", "before", "after"] {
        assert!(guard.contains(name).await.unwrap(), "{name}");
    }
    assert!(!guard.contains("during").await.unwrap());
    // An idle connection that has ended is noticed before it is used.
    let_run(false);
    let_run(true);
    sleep(Duration::from_secs(1)).await;
    in_the_end("the server answers", async || guard.backend().get(b"").await.is_ok()).await;
    assert!(guard.put("later", b"").await.unwrap().was_absent());
}

fn options() -> Options {
    Options::new(GuardKind::Cuckoo, 1000, 0.01)
}

#[test]
fn a_table_of_postgresql_is_guarded_asynchronously() {
    let scratch = Scratch::new("async-postgres");
    let Some(mut server) = PostgresServer::start(scratch.path()) else { return };
    let (url, runtime) = (server.url(), Arc::new(runtime()));
    let connect = |table: &str, max: usize| {
        let few = Connections::new().max(max);
        eventually(|| runtime.block_on(AsyncPostgres::connect_with(&url, table, &few)))
    };
    exercise(&scratch, || Blocking(connect("odd \"name\"", 1), runtime.clone()));
    let store = connect("users", 2);
    runtime.block_on(async {
        let guard = AsyncGuard::open(store, options()).await.unwrap();
        acknowledged_puts_are_found(&guard).await;
        let count = "select count(*) from pg_stat_activity where client_port > 0 and pid <> pg_backend_pid()";
        // What other stores have closed may take a moment to go.
        in_the_end("two connections", async || server.psql(count).trim() == "2").await;

        // A put that waits for another transaction holds a connection, and when it is given up, others get its place. It
        // lands after the filter was built without it.
        let other = postgres_client(&url).await;
        other.batch_execute("begin; insert into users values ('late-1', ''), ('late-2', '')").await.unwrap();
        let wait = Duration::from_millis(300);
        let first = timeout(wait, guard.put("late-1", b"value"));
        let second = timeout(wait, guard.put("late-2", b"value"));
        let third = timeout(wait / 3, guard.get(key(1)));
        let waited = tokio::join!(first, second, third);
        assert!(waited.0.is_err() && waited.1.is_err(), "they wait for the other");
        assert!(waited.2.is_err(), "there are two connections, and both are in use");
        assert!(timeout(30 * wait, guard.get(key(1))).await.unwrap().unwrap().is_some());
        assert_eq!(guard.stats().doubtful, 2);
        guard.rebuild().await.unwrap();
        assert!(guard.get("late-1").await.unwrap().is_none(), "not yet");
        other.batch_execute("rollback").await.unwrap();
        let landed = "select count(*) from users where key in ('late-1', 'late-2')";
        in_the_end("both land", async || server.psql(landed).trim() == "2").await;
        assert!(guard.contains("late-1").await.unwrap() && guard.contains("late-2").await.unwrap());
        drop(other);

        let guard = AsyncGuard::open(AsyncPostgres::connect(&url, "users").await.unwrap(), options());
        let guard = guard.await.unwrap();
        guard.rebuild().await.unwrap();
        survives_a_restart(&guard, |go| if go { server.resume() } else { server.stop() }).await;

        let wrong = AsyncPostgres::connect(&format!("{url} options='-c nonsense=1'"), "a").await;
        let wrong = wrong.unwrap_err().to_string();
        assert!(wrong.contains("nonsense") && wrong.contains("42704"), "{wrong}");
    });
    let outside =
        futures_lite::future::block_on(AsyncPostgres::connect(&url, "users")).unwrap_err();
    assert!(matches!(outside, PostgresError::OutsideRuntime), "{outside}");
}

pub(crate) async fn postgres_client(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[test]
fn a_redis_server_is_guarded_asynchronously() {
    let scratch = Scratch::new("async-redis");
    let Some(mut server) = RedisServer::start(scratch.path(), &[]) else { return };
    let (url, runtime) = (server.url(), Arc::new(runtime()));
    let connect = |prefix: &str, max: usize| {
        let few = Connections::new().max(max);
        eventually(|| runtime.block_on(AsyncRedis::connect_with(url.as_str(), prefix, &few)))
    };
    exercise(&scratch, || Blocking(connect("u?er:", 1), runtime.clone()));
    let store = connect("users:", 2);
    runtime.block_on(async {
        let guard = AsyncGuard::open(store, options()).await.unwrap();
        acknowledged_puts_are_found(&guard).await;

        // A server that does not answer for a while, and then does what it was told by somebody who has given up.
        server.signal(Signal::STOP);
        let given_up = timeout(Duration::from_millis(200), guard.put("late", b"value")).await;
        assert!(given_up.is_err(), "it does not answer");
        server.signal(Signal::CONT);
        assert_eq!(guard.stats().doubtful, 1);
        let own = AsyncRedis::connect(url.as_str(), "users:").await.unwrap();
        in_the_end("it lands", async || own.contains(b"late").await.unwrap()).await;
        assert!(guard.contains("late").await.unwrap());
        guard.rebuild().await.unwrap();
        assert!(guard.contains("late").await.unwrap());

        let guard = AsyncGuard::open(own, options()).await.unwrap();
        guard.rebuild().await.unwrap();
        survives_a_restart(&guard, |go| if go { server.resume() } else { server.stop() }).await;
    });
    let outside =
        futures_lite::future::block_on(AsyncRedis::connect(url.as_str(), "")).unwrap_err();
    assert!(outside.to_string().contains("runtime"), "{outside}");
}
