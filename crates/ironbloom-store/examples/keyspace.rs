//! Sessions in Redis that other services write to as well, and that expire. A guard in front of them hears of their keys
//! by keyspace events, and rebuilds its filter after the connection was lost.
//!
//! Starts a Redis server of its own, and says so if there is none.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use ironbloom_store::{AsyncGuard, AsyncRedis, Follower, GuardKind, Options};
use ironbloom_testing::eventually;
use ironbloom_testing::redis::RedisServer;
use redis::aio::MultiplexedConnection;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    // The events that are needed: K, for channels named after keys; g and $, for commands about keys and strings; and x
    // and e, for keys that expire or are evicted.
    let settings = ["--notify-keyspace-events", "Kg$xe"];
    if let Some(server) = RedisServer::start(directory.path(), &settings) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let store = eventually(|| runtime.block_on(AsyncRedis::connect(server.url(), "session:")));
        runtime.block_on(show(&server, store))?;
    }
    Ok(())
}

async fn show(server: &RedisServer, store: AsyncRedis) -> Result<(), Box<dyn Error>> {
    let guard =
        Arc::new(AsyncGuard::open(store, Options::new(GuardKind::Blocked, 100_000, 0.001)).await?);

    // First subscribe, then scan: from here on no key is missed. The task does both.
    let follower = Follower::subscribe(guard.clone()).await?;
    let task = tokio::spawn(follower.run());

    // Another service.
    let client = redis::Client::open(server.url())?;
    let mut other = client.get_multiplexed_async_connection().await?;
    guard.put("1", b"ours").await?;
    say(&mut other, "SET session:2 theirs").await?;
    found(&guard, "2").await?;
    say(&mut other, "RENAME session:2 session:3").await?;
    found(&guard, "3").await?;
    assert!(!guard.contains("2").await?);
    say(&mut other, "DEL session:1").await?;
    assert!(!guard.contains("1").await?);
    say(&mut other, "SET session:4 theirs PX 50").await?;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!guard.contains("4").await?, "it has expired");

    // There is no event for this one, and none is needed: what is gone is at worst asked for in vain.
    say(&mut other, "FLUSHDB").await?;
    assert!(!guard.contains("3").await?);

    // When the connection is lost, all questions go to the server until there is a new one and a new filter.
    say(&mut other, "CLIENT KILL TYPE pubsub").await?;
    say(&mut other, "SET session:5 theirs").await?;
    found(&guard, "5").await?;
    println!("{} sessions were removed by others, as far as we know", guard.stats().dead);
    task.abort();
    Ok(())
}

async fn say(connection: &mut MultiplexedConnection, words: &str) -> redis::RedisResult<()> {
    let mut words = words.split(' ');
    let mut command = redis::cmd(words.next().unwrap_or_default());
    for word in words {
        command.arg(word);
    }
    command.query_async::<redis::Value>(connection).await.map(drop)
}

/// The message about a key takes a moment.
async fn found(guard: &AsyncGuard<AsyncRedis>, key: &str) -> Result<(), Box<dyn Error>> {
    for _ in 0..1000 {
        if guard.contains(key).await? {
            println!("session {key} is there");
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err(format!("session {key} was never found").into())
}
