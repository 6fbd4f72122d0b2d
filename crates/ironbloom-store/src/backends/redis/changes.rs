//! What others do to the keys of a server, by keyspace notifications.
//!
//! The server publishes the name of every event on a channel that has the key in its name, if its setting
//! `notify-keyspace-events` says so: it must contain `K`, `g` and `$` (`KA` has it all; with `x` and `e` it also tells
//! which keys have expired or were evicted). Whether it does is tried out: a key that nobody uses is set and deleted, and
//! both must be heard.
//!
//! An event that is not known to remove a key is taken for one that stores it: at worst, a false positive. `FLUSHDB` and
//! `FLUSHALL` have no event: what they remove stays in the filter until it is rebuilt. `SWAPDB` has none either, and
//! brings keys: call [`AsyncGuard::distrust`](crate::AsyncGuard::distrust) after it.

use futures_util::StreamExt;
use redis::aio::{PubSubSink, PubSubStream};
use redis::{ErrorKind, Msg, RedisError, RedisResult};
use tokio::time::timeout;

use super::awaited::AsyncRedis;
use super::commands::{Keys, escaped};
use crate::asynchronous::{Change, Changes, PATIENCE, Watch};

/// Hears what others do to the keys of a server. Made by [`Watch::watch`].
pub struct RedisChanges {
    sink: PubSubSink,
    stream: PubSubStream,
    /// The channel of a key is this and the full key.
    channel: Vec<u8>,
    keys: Keys,
}

impl std::fmt::Debug for RedisChanges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RedisChanges({:?})", self.keys)
    }
}

fn lost() -> RedisError {
    std::io::Error::new(
        std::io::ErrorKind::BrokenPipe,
        "the connection that heard of changes is lost",
    )
    .into()
}

/// What an event says about its key.
fn change(event: &[u8], key: &[u8]) -> Change {
    match event {
        b"del" | b"expired" | b"evicted" | b"rename_from" | b"move_from" => {
            Change::Removed(key.to_vec())
        }
        _ => Change::Stored(key.to_vec()),
    }
}

impl RedisChanges {
    /// The key that a message is about, with its prefix.
    fn full_key(&self, message: &Msg) -> RedisResult<Vec<u8>> {
        let mut channel: Vec<u8> = message.get_channel()?;
        Ok(channel.split_off(self.channel.len().min(channel.len())))
    }

    /// Waits until both events of the probe were heard.
    async fn hear_probe(&mut self) -> RedisResult<()> {
        let mut missing = vec![&b"set"[..], b"del"];
        while !missing.is_empty() {
            let message = self.stream.next().await.ok_or_else(lost)?;
            if self.full_key(&message)? == self.keys.probe {
                missing.retain(|&event| event != message.get_payload_bytes());
            }
        }
        Ok(())
    }
}

impl Watch for AsyncRedis {
    type Changes = RedisChanges;

    async fn watch(&self) -> RedisResult<RedisChanges> {
        let in_time = |what: &'static str| move |_| RedisError::from((ErrorKind::Io, what));
        let subscribe = timeout(self.timeout, self.client.get_async_pubsub());
        let (mut sink, stream) =
            subscribe.await.map_err(in_time("the server did not answer in time"))??.split();
        let database = self.client.get_connection_info().redis_settings().db();
        let channel = format!("__keyspace@{database}__:").into_bytes();
        sink.psubscribe([&channel[..], &escaped(&self.keys.prefix), b"*"].concat()).await?;
        let mut changes = RedisChanges { sink, stream, channel, keys: self.keys.clone() };
        self.ask::<()>(redis::cmd("SET").arg(&self.keys.probe).arg("").arg("PX").arg(60_000))
            .await?;
        self.ask::<()>(redis::cmd("DEL").arg(&self.keys.probe)).await?;
        let silent = "the server sends no keyspace events: its setting notify-keyspace-events must have K, g and $";
        let heard = timeout(self.timeout, changes.hear_probe()).await;
        heard.map_err(|_| RedisError::from((ErrorKind::InvalidClientConfig, silent)))??;
        Ok(changes)
    }
}

impl Changes for RedisChanges {
    type Error = RedisError;

    async fn next(&mut self) -> RedisResult<Change> {
        loop {
            match timeout(PATIENCE, self.stream.next()).await {
                Ok(Some(message)) => {
                    if let Some(key) = self.keys.key(&self.full_key(&message)?) {
                        return Ok(change(message.get_payload_bytes(), key));
                    }
                }
                Ok(None) => return Err(lost()),
                // Silence may be a cable that is cut.
                Err(_) => {
                    let alive = timeout(PATIENCE, self.sink.ping::<redis::Value>()).await;
                    alive.map_err(|_| lost())??;
                }
            }
        }
    }
}
