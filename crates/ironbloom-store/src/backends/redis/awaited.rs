//! Keys of a server for tasks of a tokio runtime.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, IntoConnectionInfo, Pipeline,
    RedisError, RedisResult,
};

use super::commands::{self, ANSWER, Keys, Server};
use super::error::RedisStoreError;
use crate::backend::{AsyncBackend, Before, Failure, Visit};
use crate::backends::Connections;
use crate::backends::naming::Naming;
use crate::backends::pool::{Pool, Pooled, Taken};
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
    pub(super) prove_every: Duration,
    pub(super) keys: Keys,
    pool: Pool<MultiplexedConnection>,
    naming: Naming<Server>,
}

impl Pooled for MultiplexedConnection {
    type Error = RedisError;

    fn survives(error: &RedisError) -> bool {
        commands::survives(error)
    }
}

pub(super) async fn connect(
    client: &Client,
    timeout: Duration,
) -> RedisResult<MultiplexedConnection> {
    ensure_runtime()?;
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(timeout))
        .set_response_timeout(Some(ANSWER));
    client.get_multiplexed_async_connection_with_config(&config).await
}

/// Which server this is, if it tells.
pub(super) async fn server(connection: &mut MultiplexedConnection) -> RedisResult<Option<Server>> {
    let [server, replication] = Server::SECTIONS.map(commands::info);
    let server = server.query_async(connection).await;
    Server::of([server, replication.query_async(connection).await])
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
    ) -> Result<Self, RedisStoreError> {
        Self::connect_with(server, prefix, &Connections::default()).await
    }

    /// The same, with settings for the connections.
    pub async fn connect_with(
        server: impl IntoConnectionInfo,
        prefix: impl AsRef<[u8]>,
        connections: &Connections,
    ) -> Result<Self, RedisStoreError> {
        let (client, timeout) = (commands::client(server, connections)?, connections.timeout);
        let first = connect(&client, timeout).await.map_err(RedisStoreError::Unreachable)?;
        let pool = Pool::new(connections.max, first);
        let keys = Keys::new(prefix.as_ref());
        let prove_every = connections.prove_every;
        let naming = Naming::new();
        let store = Self { client, timeout, prove_every, keys, pool, naming };
        let mut taken = store.take().await?;
        let compared = store.compare(&mut taken.connection).await;
        taken.end(compared)?;
        Ok(store)
    }

    async fn take(&self) -> Result<Taken<'_, MultiplexedConnection>, RedisStoreError> {
        ensure_runtime().map_err(RedisStoreError::Unreachable)?;
        let permit = self.pool.permit().await;
        while let Some((mut connection, quiet)) = permit.idle() {
            let check = redis::cmd("PING");
            if !quiet || check.query_async::<()>(&mut connection).await.is_ok() {
                return Ok(permit.fill(connection));
            }
            self.naming.lost();
        }
        let connection = self.reconnect().await.map_err(RedisStoreError::Unreachable)?;
        Ok(permit.fill(connection))
    }

    /// Connects, and compares what the server holds with what it should: it may be another one.
    async fn reconnect(&self) -> RedisResult<MultiplexedConnection> {
        let mut connection = connect(&self.client, self.timeout).await?;
        self.compare(&mut connection).await?;
        Ok(connection)
    }

    async fn compare(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        let server = server(connection).await?;
        let note = self.keys.generation().query_async(connection).await;
        let (generation, counted) = commands::note_of(note)?;
        if self.naming.is_exchanged(server, generation, counted) {
            self.pool.renew();
        }
        Ok(())
    }

    pub(super) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RedisStoreError> {
        let mut taken = self.take().await?;
        let answer = command.query_async(&mut taken.connection).await;
        self.end(taken, answer)
    }

    async fn ask_all<T: FromRedisValue>(&self, commands: &Pipeline) -> Result<T, RedisStoreError> {
        let mut taken = self.take().await?;
        let answer = commands.query_async(&mut taken.connection).await;
        self.end(taken, answer)
    }

    fn end<T>(
        &self,
        taken: Taken<'_, MultiplexedConnection>,
        answer: RedisResult<T>,
    ) -> Result<T, RedisStoreError> {
        if answer.as_ref().is_err_and(|error| !commands::survives(error)) {
            self.naming.lost();
        }
        Ok(taken.end(answer)?)
    }

    /// Before a write: writing without a guard makes the server forget its generation.
    async fn break_seal(&self) -> Result<(), RedisStoreError> {
        if self.naming.is_sealed() {
            self.ask::<()>(&self.keys.forget()).await?;
            self.naming.broken();
        }
        Ok(())
    }

    async fn note(&self) -> Result<(Option<Generation>, u64), RedisStoreError> {
        let mut taken = self.take().await?;
        let answer = self.keys.generation().query_async(&mut taken.connection).await;
        self.end(taken, commands::note_of(answer))
    }

    async fn keep(&self, generation: Generation, sealed: bool) -> Result<(), RedisStoreError> {
        let known = self.naming.begin(generation, sealed);
        let mut counted = self.ask(&self.keys.keep(generation, &known)).await?;
        if counted == 0 {
            self.naming.exchange();
            counted = self.ask(&self.keys.keep(generation, &[])).await?;
        }
        self.naming.end(generation, sealed);
        self.naming.count(counted);
        Ok(())
    }

    fn counted(&self, answer: Vec<u64>) -> Vec<Before> {
        let (befores, counted) = commands::befores(answer);
        self.naming.count(counted);
        befores
    }
}

impl AsyncBackend for AsyncRedis {
    type Error = RedisStoreError;

    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, RedisStoreError> {
        self.ask(&self.keys.one("GET", key)).await
    }

    async fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, RedisStoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.ask(&self.keys.get_many(keys)).await
    }

    async fn contains(&self, key: &[u8]) -> Result<bool, RedisStoreError> {
        self.ask(&self.keys.one("EXISTS", key)).await
    }

    async fn put(&self, key: &[u8], value: &[u8]) -> Result<Before, RedisStoreError> {
        Ok(self.put_many(&[(key, value)]).await?[0])
    }

    /// In one transaction: nobody else sees a part of it.
    async fn put_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<Before>, RedisStoreError> {
        if pairs.is_empty() {
            return Ok(Vec::new());
        }
        self.break_seal().await?;
        if let Some(generation) = self.naming.condition() {
            let put = self.keys.put_many_if(pairs, generation);
            return Ok(self.counted(self.ask(&put).await?));
        }
        let stored: Vec<bool> = self.ask_all(&self.keys.put_many(pairs)).await?;
        Ok(stored.into_iter().map(Before::stored).collect())
    }

    async fn remove(&self, key: &[u8]) -> Result<Before, RedisStoreError> {
        Ok(self.remove_many(&[key]).await?[0])
    }

    /// In one transaction: nobody else sees a part of it.
    async fn remove_many(&self, keys: &[&[u8]]) -> Result<Vec<Before>, RedisStoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.break_seal().await?;
        if let Some(generation) = self.naming.condition() {
            let remove = self.keys.remove_many_if(keys, generation);
            return Ok(self.counted(self.ask(&remove).await?));
        }
        let stored: Vec<bool> = self.ask_all(&self.keys.remove_many(keys)).await?;
        Ok(stored.into_iter().map(Before::stored).collect())
    }

    /// The server guarantees to visit keys that are there all the time. Only this server can go on from a cursor of its own,
    /// so the scan has a connection besides those of the pool, and ends with it.
    async fn scan(&self, visit: Visit<'_>) -> Result<(), RedisStoreError> {
        let mut connection = self.reconnect().await.map_err(RedisStoreError::Unreachable)?;
        let mut cursor = Some(0);
        while let Some(at) = cursor {
            let page = self.keys.scan(at).query_async(&mut connection).await?;
            cursor = self.keys.visit(page, &mut *visit);
        }
        Ok(())
    }

    /// Known only if all keys of the server are ours.
    async fn len_hint(&self) -> Result<Option<u64>, RedisStoreError> {
        Ok(self.keys.length(self.ask_all(&self.keys.count()).await?))
    }

    async fn generation(&self) -> Result<Option<Generation>, RedisStoreError> {
        let (generation, counted) = self.note().await?;
        self.naming.found(generation);
        self.naming.count(counted);
        Ok(generation)
    }

    async fn set_generation(&self, generation: Generation) -> Result<(), RedisStoreError> {
        self.keep(generation, false).await
    }

    async fn seal(&self, generation: Generation) -> Result<(), RedisStoreError> {
        self.keep(generation, true).await
    }

    /// Commands are carried out one after the other, and those for another generation are refused.
    async fn claim(&self, generation: Generation) -> Result<bool, RedisStoreError> {
        self.keep(generation, false).await?;
        self.naming.claim();
        Ok(true)
    }

    fn can_claim(&self) -> bool {
        true
    }

    fn was_exchanged(&self) -> bool {
        self.naming.was_exchanged()
    }

    fn failure(&self, error: &RedisStoreError) -> Failure {
        error.failure()
    }
}
