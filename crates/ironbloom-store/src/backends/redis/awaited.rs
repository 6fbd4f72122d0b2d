//! Keys of a server for tasks of a tokio runtime.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, IntoConnectionInfo, Pipeline,
    RedisError, RedisResult,
};

use super::commands::{self, ANSWER, Keys};
use crate::asynchronous::{AsyncBackend, Visit};
use crate::backends::Connections;
use crate::backends::pool::{Pool, Pooled, Taken};
use crate::backends::seal::Seal;
use crate::generation::Generation;

/// The keys of a server that start with a prefix, asked asynchronously: for an [`AsyncGuard`](crate::AsyncGuard) inside
/// a runtime of tokio.
///
/// Keys, addresses and TLS are as for [`Redis`](crate::Redis). A future that is dropped closes the connection that it
/// was using; what it was writing may still be written.
#[derive(Debug)]
pub struct AsyncRedis {
    pub(super) client: Client,
    pub(super) timeout: Duration,
    pub(super) keys: Keys,
    pool: Pool<MultiplexedConnection>,
    seal: Seal,
}

impl Pooled for MultiplexedConnection {
    type Error = RedisError;

    fn survives(error: &RedisError) -> bool {
        commands::survives(error)
    }
}

async fn connect(client: &Client, timeout: Duration) -> RedisResult<MultiplexedConnection> {
    ensure_runtime()?;
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(timeout))
        .set_response_timeout(Some(ANSWER));
    client.get_multiplexed_async_connection_with_config(&config).await
}

/// An error, not a panic, where there is no runtime.
fn ensure_runtime() -> RedisResult<()> {
    match tokio::runtime::Handle::try_current() {
        Ok(_) => Ok(()),
        Err(_) => {
            let words = "Redis was awaited outside a runtime of tokio";
            Err((ErrorKind::InvalidClientConfig, words).into())
        }
    }
}

impl AsyncRedis {
    /// Connects to a server (`redis://127.0.0.1/`). Keys are stored with this prefix, and the generation under
    /// `<prefix>ironbloom:generation`, which is not a key of the store.
    pub async fn connect(
        server: impl IntoConnectionInfo,
        prefix: impl AsRef<[u8]>,
    ) -> RedisResult<Self> {
        Self::connect_with(server, prefix, &Connections::default()).await
    }

    /// The same, with settings for the connections.
    pub async fn connect_with(
        server: impl IntoConnectionInfo,
        prefix: impl AsRef<[u8]>,
        connections: &Connections,
    ) -> RedisResult<Self> {
        let (client, timeout) = (commands::client(server, connections)?, connections.timeout);
        let pool = Pool::new(connections.max, connect(&client, timeout).await?);
        let keys = Keys::new(prefix.as_ref());
        Ok(Self { client, timeout, keys, pool, seal: Seal::new() })
    }

    async fn take(&self) -> RedisResult<Taken<'_, MultiplexedConnection>> {
        ensure_runtime()?;
        let permit = self.pool.permit().await;
        while let Some((mut connection, quiet)) = permit.idle() {
            let check = redis::cmd("PING");
            if !quiet || check.query_async::<()>(&mut connection).await.is_ok() {
                return Ok(permit.fill(connection));
            }
        }
        Ok(permit.fill(connect(&self.client, self.timeout).await?))
    }

    pub(super) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        let mut taken = self.take().await?;
        let answer = command.query_async(&mut taken.connection).await;
        taken.end(answer)
    }

    async fn ask_all<T: FromRedisValue>(&self, commands: &Pipeline) -> RedisResult<T> {
        let mut taken = self.take().await?;
        let answer = commands.query_async(&mut taken.connection).await;
        taken.end(answer)
    }

    /// Before a write: writing without a guard makes the server forget its generation.
    async fn break_seal(&self) -> RedisResult<()> {
        if self.seal.is_whole() {
            self.ask::<()>(&self.keys.forget()).await?;
            self.seal.set(false);
        }
        Ok(())
    }
}

impl AsyncBackend for AsyncRedis {
    type Error = RedisError;

    async fn get(&self, key: &[u8]) -> RedisResult<Option<Vec<u8>>> {
        self.ask(&self.keys.one("GET", key)).await
    }

    async fn get_many(&self, keys: &[&[u8]]) -> RedisResult<Vec<Option<Vec<u8>>>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.ask(&self.keys.get_many(keys)).await
    }

    async fn contains(&self, key: &[u8]) -> RedisResult<bool> {
        self.ask(&self.keys.one("EXISTS", key)).await
    }

    async fn put(&self, key: &[u8], value: &[u8]) -> RedisResult<bool> {
        self.put_many(&[(key, value)]).await.map(|new| new == [true])
    }

    /// In one transaction: nobody else sees a part of it.
    async fn put_many(&self, pairs: &[(&[u8], &[u8])]) -> RedisResult<Vec<bool>> {
        if pairs.is_empty() {
            return Ok(Vec::new());
        }
        self.break_seal().await?;
        let stored: Vec<bool> = self.ask_all(&self.keys.put_many(pairs)).await?;
        Ok(stored.into_iter().map(|stored| !stored).collect())
    }

    async fn remove(&self, key: &[u8]) -> RedisResult<bool> {
        self.break_seal().await?;
        self.ask(&self.keys.one("DEL", key)).await
    }

    /// In one transaction: nobody else sees a part of it.
    async fn remove_many(&self, keys: &[&[u8]]) -> RedisResult<Vec<bool>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.break_seal().await?;
        self.ask_all(&self.keys.remove_many(keys)).await
    }

    /// The server guarantees to visit keys that are there all the time.
    async fn scan(&self, visit: Visit<'_>) -> RedisResult<()> {
        let mut cursor = Some(0);
        while let Some(at) = cursor {
            cursor = self.keys.visit(self.ask(&self.keys.scan(at)).await?, &mut *visit);
        }
        Ok(())
    }

    /// Known only if all keys of the server are ours.
    async fn len_hint(&self) -> RedisResult<Option<u64>> {
        Ok(self.keys.length(self.ask_all(&self.keys.count()).await?))
    }

    async fn generation(&self) -> RedisResult<Option<Generation>> {
        let kept: Option<Vec<u8>> = self.ask(&self.keys.generation()).await?;
        Ok(kept.and_then(|kept| Generation::from_bytes(&kept)))
    }

    async fn set_generation(&self, generation: Generation) -> RedisResult<()> {
        self.ask::<()>(&self.keys.keep(generation)).await?;
        self.seal.set(false);
        Ok(())
    }

    async fn seal(&self, generation: Generation) -> RedisResult<()> {
        self.seal.set(true);
        self.ask(&self.keys.keep(generation)).await
    }
}
