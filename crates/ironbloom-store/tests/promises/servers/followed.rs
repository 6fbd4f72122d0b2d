//! Guards that are kept right while others write: with `LISTEN` on PostgreSQL, and with keyspace events on Redis.

use std::sync::Arc;
use std::time::Duration;

use ironbloom_store::{
    AsyncBackend, AsyncGuard, AsyncPostgres, AsyncRedis, Connections, Follower, GuardKind, Options,
    Watch,
};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use super::awaited::in_the_end;
use ironbloom_testing::Scratch;
use ironbloom_testing::eventually;
use ironbloom_testing::postgres::PostgresServer;
use ironbloom_testing::redis::RedisServer;

/// Of two threads: a test waits for `psql`, which may wait for the scan of a follower, which has to go on meanwhile.
fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn options() -> Options {
    Options::new(GuardKind::Cuckoo, 1000, 0.001)
}

/// A guard whose filter is built.
struct Followed<B: AsyncBackend> {
    guard: Arc<AsyncGuard<B>>,
    task: JoinHandle<std::convert::Infallible>,
}

impl<B: Watch + 'static> Followed<B> {
    /// Somebody writes between the scan of the guard and its subscription.
    async fn new(store: B, write: impl FnOnce()) -> Self {
        let guard = Arc::new(AsyncGuard::open(store, options()).await.unwrap());
        guard.rebuild().await.unwrap();
        write();
        let follower = Follower::subscribe(guard.clone()).await.unwrap();
        let followed = Self { guard, task: tokio::spawn(follower.run()) };
        followed.is_built().await;
        followed
    }

    async fn is_built(&self) {
        // Then almost no absent key is asked for.
        in_the_end("the filter is built", async || {
            let before = self.guard.stats().skipped();
            for i in 0..100 {
                let _ = self.guard.contains(format!("absent-{i}")).await;
            }
            self.guard.stats().skipped() > before + 90
        })
        .await;
    }

    async fn finds(&self, key: impl AsRef<[u8]>) {
        let key = key.as_ref();
        let what = String::from_utf8_lossy(&key[..key.len().min(20)]).into_owned();
        // A server that was away may cost an error for each connection to it.
        in_the_end(&what, async || self.guard.contains(key).await.unwrap_or(false)).await;
    }

    async fn lacks(&self, key: &str) {
        assert!(!self.guard.contains(key).await.unwrap(), "{key} is gone");
    }
}

#[test]
fn a_guard_hears_what_others_do_to_a_table() {
    let scratch = Scratch::new("listen");
    let Some(mut server) = PostgresServer::start(scratch.path()) else { return };
    let (url, runtime) = (server.url(), runtime());
    let store = eventually(|| runtime.block_on(AsyncPostgres::connect(&url, "users")));
    runtime.block_on(async {
        let early = || drop(server.psql("insert into users values ('early', '')"));
        let followed = Followed::new(store, early).await;
        followed.finds("early").await;
        server.psql("insert into users values ('one', ''), ('two', '')");
        followed.finds("one").await;
        followed.finds("two").await;
        let dead = followed.guard.stats().dead;
        server.psql("delete from users where key = 'one'");
        followed.lacks("one").await;
        in_the_end("it is dead", async || followed.guard.stats().dead > dead).await;
        server.psql("update users set key = 'new' where key = 'two'");
        followed.finds("new").await;
        followed.lacks("two").await;
        server.psql(
            "insert into users values ('new', '2') on conflict (key) do update set value = '2'",
        );
        server.psql("copy users from program 'printf \"copied\\t\\\\n\"'");
        followed.finds("copied").await;
        server.psql("begin; insert into users values ('undone', ''); rollback");
        server.psql("insert into users values (convert_to(repeat('x', 5000), 'utf8'), '')");
        followed.finds("x".repeat(5000)).await;
        server.psql(
            "set session_replication_role = replica; insert into users values ('replicated', '')",
        );
        followed.finds("replicated").await;
        server.psql("truncate users");
        followed.lacks("new").await;
        in_the_end("the filter is empty", async || followed.guard.stats().keys == 0).await;
        server.psql("insert into users values ('again', '')");
        followed.finds("again").await;
        assert!(followed.guard.put("own", b"").await.unwrap().was_absent());
        assert!(followed.guard.contains("own").await.unwrap());

        // What is written while nobody listens is found, too: the filter is not asked until it has been built again.
        followed.is_built().await;
        server.stop();
        in_the_end("the loss is noticed", async || followed.guard.stats().capacity == 0).await;
        server.resume();
        server.wait();
        server.psql("insert into users values ('unheard', '')");
        followed.finds("unheard").await;
        followed.is_built().await;
        server.psql("insert into users values ('heard', '')");
        followed.finds("heard").await;

        // When nobody follows any more, all questions go to the store.
        followed.task.abort();
        in_the_end("nobody follows", async || followed.guard.stats().capacity == 0).await;
        server.psql("insert into users values ('last', '')");
        assert!(followed.guard.contains("last").await.unwrap());
    });

    // A restored table has the triggers of the one that it was.
    let dump = scratch.file("dump.sql");
    let dump = dump.to_str().unwrap();
    server.run("pg_dump", &["--clean", "--if-exists", "-f", dump, "postgres"]);
    server.run("psql", &["-q", "-v", "ON_ERROR_STOP=1", "-f", dump]);
    runtime.block_on(async {
        let store = AsyncPostgres::connect(&url, "users").await.unwrap();
        let followed = Followed::new(store, || ()).await;
        server.psql("insert into users values ('restored', '')");
        followed.finds("restored").await;
    });
}

#[test]
fn a_guard_hears_what_others_do_to_keys_of_redis() {
    let scratch = Scratch::new("keyspace");
    let Some(mut server) = RedisServer::start(scratch.path(), &[]) else { return };
    let (url, runtime) = (server.url(), runtime());
    let hurried = Connections::new().timeout(Duration::from_secs(1));
    let connect = || runtime.block_on(AsyncRedis::connect_with(url.as_str(), "u[1]:", &hurried));
    let store = eventually(connect);
    let client = redis::Client::open(url.as_str()).unwrap();
    let say = |words: &str| {
        let mut connection = client.get_connection()?;
        let mut words = words.split(' ');
        let mut command = redis::cmd(words.next().unwrap());
        words.for_each(|word| _ = command.arg(word));
        command.query::<redis::Value>(&mut connection)
    };
    runtime.block_on(async {
        // A server that tells too little is found out.
        let guard = Arc::new(AsyncGuard::open(store, options()).await.unwrap());
        for flags in ["Ex", "K$", "Eg$"] {
            say(&format!("CONFIG SET notify-keyspace-events {flags}")).unwrap();
            let refused =
                Follower::subscribe(guard.clone()).await.err().expect("it tells too little");
            assert!(refused.to_string().contains("notify-keyspace-events"), "{flags}: {refused}");
        }
        say("CONFIG SET notify-keyspace-events Kg$xe").unwrap();
        let store = AsyncRedis::connect(url.as_str(), "u[1]:").await.unwrap();
        let followed = Followed::new(store, || drop(say("SET u[1]:early 1").unwrap())).await;
        followed.finds("early").await;
        say("SET u[1]:one 1").unwrap();
        say("MSET u[1]:two 1 u1:other 1").unwrap();
        say("INCR u[1]:count").unwrap();
        for key in ["one", "two", "count"] {
            followed.finds(key).await;
        }
        let dead = followed.guard.stats().dead;
        say("DEL u[1]:one").unwrap();
        say("RENAME u[1]:two u[1]:new").unwrap();
        say("SET u[1]:brief 1 PX 100").unwrap();
        followed.finds("new").await;
        followed.lacks("one").await;
        followed.lacks("two").await;
        in_the_end("three are dead", async || followed.guard.stats().dead >= dead + 3).await;
        followed.lacks("brief").await;
        say("COPY u[1]:new u[1]:copy").unwrap();
        followed.finds("copy").await;
        let dead = followed.guard.stats().dead;
        say("CONFIG SET maxmemory-policy allkeys-random").unwrap();
        say("CONFIG SET maxmemory 1").unwrap();
        let _ = say("SET u[1]:too-much 1");
        in_the_end("keys are evicted", async || followed.guard.stats().dead > dead).await;
        say("CONFIG SET maxmemory 0").unwrap();
        say("FLUSHDB").unwrap();
        followed.lacks("copy").await;
        say("SET u[1]:copy 1").unwrap();
        followed.finds("copy").await;
        assert!(followed.guard.put("own", b"").await.unwrap().was_absent());
        assert!(followed.guard.contains("own").await.unwrap());

        // What is written while nobody listens is found, too: the filter is not asked until it has been built again.
        followed.guard.rebuild().await.unwrap();
        followed.is_built().await;
        say("CLIENT KILL TYPE pubsub").unwrap();
        say("SET u[1]:unheard 1").unwrap();
        followed.finds("unheard").await;
        followed.is_built().await;
        server.stop();
        in_the_end("the loss is noticed", async || followed.guard.stats().capacity == 0).await;
        server.resume();
        eventually(|| say("CONFIG SET notify-keyspace-events KA"));
        say("SET u[1]:back 1").unwrap();
        followed.finds("back").await;
        followed.is_built().await;
        say("SET u[1]:heard 1").unwrap();
        followed.finds("heard").await;

        // When nobody follows any more, all questions go to the store.
        followed.task.abort();
        in_the_end("nobody follows", async || followed.guard.stats().capacity == 0).await;
        say("SET u[1]:last 1").unwrap();
        assert!(followed.guard.contains("last").await.unwrap());
    });
}
