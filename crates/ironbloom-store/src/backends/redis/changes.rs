//! What others do to the keys of a server, by keyspace notifications.
//!
//! The server publishes the name of every event on a channel that has the key in its name, if its setting
//! `notify-keyspace-events` says so: it must contain `K`, `g` and `$` (`KA` has it all; with `x` and `e` it also tells
//! which keys have expired or were evicted). Whether it does is tried out, first and at intervals: a key that nobody uses
//! is set and deleted, and both must be heard. That also fails on a replica. The probe is set over a new connection, which
//! must lead to the server that is subscribed to: another one may have its address by now, while the old one goes on.
//!
//! An event that is not known to remove a key is taken for one that stores it: at worst, a false positive. `FLUSHDB` and
//! `FLUSHALL` have no event: what they remove stays in the filter until it is rebuilt. `SWAPDB` has none either, and
//! brings keys: call [`AsyncGuard::distrust`](crate::AsyncGuard::distrust) after it.

use std::time::Duration;

use futures_util::StreamExt;
use redis::aio::{PubSubSink, PubSubStream};
use redis::{Client, ErrorKind, Msg, RedisError, RedisResult};
use tokio::time::{timeout, timeout_at};

use super::awaited::{AsyncRedis, connect, server};
use super::commands::{Keys, Server, escaped};
use super::error::RedisStoreError;
use crate::follow::{Change, Changes, Proof, Step, Watch};

/// Hears what others do to the keys of a server. Made by [`Watch::watch`].
pub struct RedisChanges {
    _sink: PubSubSink,
    stream: PubSubStream,
    client: Client,
    timeout: Duration,
    /// The server that is subscribed to, if it tells.
    server: Option<Server>,
    proof: Proof,
    /// Events of the probe that are still to be heard.
    missing: Vec<&'static [u8]>,
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

    /// Sets and deletes the probe, where the guard would ask now.
    async fn prove(&mut self) -> RedisResult<()> {
        let mut commands = connect(&self.client, self.timeout).await?;
        let server = server(&mut commands).await?;
        if self.server.is_some() && server != self.server {
            return Err(lost());
        }
        self.server = server;
        self.missing = vec![b"set", b"del"];
        let mut pipe = redis::pipe();
        pipe.cmd("SET").arg(&self.keys.probe).arg("").arg("PX").arg(60_000).ignore();
        pipe.cmd("DEL").arg(&self.keys.probe).ignore();
        pipe.query_async(&mut commands).await
    }

    /// The key of the store that a message is about, or `None` for one about the probe.
    fn heard(&mut self, message: &Msg) -> RedisResult<Option<Change>> {
        let full = self.full_key(message)?;
        if full == self.keys.probe {
            self.missing.retain(|&event| event != message.get_payload_bytes());
            if self.missing.is_empty() {
                self.proof.heard();
            }
        }
        Ok(self.keys.key(&full).map(|key| change(message.get_payload_bytes(), key)))
    }

    async fn hear(&mut self) -> RedisResult<Change> {
        loop {
            match self.proof.step() {
                Step::Deaf => return Err(silent()),
                Step::Prove => self.prove().await?,
                Step::Listen(until) => {
                    let Ok(message) = timeout_at(until, self.stream.next()).await else { continue };
                    if let Some(change) = self.heard(&message.ok_or_else(lost)?)? {
                        return Ok(change);
                    }
                }
            }
        }
    }

    /// Waits until both events of the first probe were heard; others are before the subscription.
    async fn hear_probe(&mut self) -> RedisResult<()> {
        self.prove().await?;
        while !self.missing.is_empty() {
            let message = self.stream.next().await.ok_or_else(lost)?;
            self.heard(&message)?;
        }
        Ok(())
    }
}

fn silent() -> RedisError {
    let words = "the server sends no keyspace events: its setting notify-keyspace-events must have K, g and $";
    RedisError::from((ErrorKind::InvalidClientConfig, words))
}

impl Watch for AsyncRedis {
    type Changes = RedisChanges;

    async fn watch(&self) -> Result<RedisChanges, RedisStoreError> {
        let in_time = |what: &'static str| move |_| RedisError::from((ErrorKind::Io, what));
        let subscribe = timeout(self.timeout, self.client.get_async_pubsub());
        let (mut sink, stream) =
            subscribe.await.map_err(in_time("the server did not answer in time"))??.split();
        let database = self.client.get_connection_info().redis_settings().db();
        let channel = format!("__keyspace@{database}__:").into_bytes();
        sink.psubscribe([&channel[..], &escaped(&self.keys.prefix), b"*"].concat()).await?;
        let mut changes = RedisChanges {
            _sink: sink,
            stream,
            client: self.client.clone(),
            timeout: self.timeout,
            server: None,
            proof: Proof::new(self.prove_every),
            missing: Vec::new(),
            channel,
            keys: self.keys.clone(),
        };
        let heard = timeout(self.timeout, changes.hear_probe()).await;
        heard.map_err(|_| silent())??;
        Ok(changes)
    }
}

impl Changes for RedisChanges {
    type Error = RedisStoreError;

    async fn next(&mut self) -> Result<Change, RedisStoreError> {
        Ok(self.hear().await?)
    }
}
