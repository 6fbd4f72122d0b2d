//! Keys of a server for threads.

use std::ops::ControlFlow;
use std::time::Duration;

use redis::{Client, Connection, ConnectionLike, IntoConnectionInfo, RedisError, RedisResult};

use super::commands::{self, ANSWER, Keys};
use crate::backend::Backend;
use crate::backends::Connections;
use crate::backends::pool::{Pool, Pooled};
use crate::backends::seal::Seal;
use crate::generation::Generation;

/// The keys of a server that start with a prefix, with one connection for each thread using it at the same time, up to a
/// [maximum](Connections::max).
///
/// TLS (feature `tls`) is used if the address begins with `rediss://`. The server's certificate and its host name are
/// always verified, against the authorities that the system trusts or those of `Connections::tls`.
#[derive(Debug)]
pub struct Redis {
    client: Client,
    timeout: Duration,
    keys: Keys,
    pool: Pool<Connection>,
    seal: Seal,
}

impl Pooled for Connection {
    type Error = RedisError;

    fn survives(error: &RedisError) -> bool {
        commands::survives(error)
    }
}

fn connect(client: &Client, timeout: Duration) -> RedisResult<Connection> {
    let connection = client.get_connection_with_timeout(timeout)?;
    connection.set_read_timeout(Some(ANSWER))?;
    connection.set_write_timeout(Some(ANSWER))?;
    Ok(connection)
}

impl Redis {
    /// Connects to a server (`redis://127.0.0.1/`). Keys are stored with this prefix, and the generation under
    /// `<prefix>ironbloom:generation`, which is not a key of the store.
    pub fn connect(server: impl IntoConnectionInfo, prefix: impl AsRef<[u8]>) -> RedisResult<Self> {
        Self::connect_with(server, prefix, &Connections::default())
    }

    /// The same, with settings for the connections.
    pub fn connect_with(
        server: impl IntoConnectionInfo,
        prefix: impl AsRef<[u8]>,
        connections: &Connections,
    ) -> RedisResult<Self> {
        let (client, timeout) = (commands::client(server, connections)?, connections.timeout);
        let pool = Pool::new(connections.max, connect(&client, timeout)?);
        let keys = Keys::new(prefix.as_ref());
        Ok(Self { client, timeout, keys, pool, seal: Seal::new() })
    }

    fn with<T>(&self, ask: impl FnOnce(&mut Connection) -> RedisResult<T>) -> RedisResult<T> {
        let connect = || connect(&self.client, self.timeout);
        let mut taken = self.pool.take(|connection| connection.check_connection(), connect)?;
        let answer = ask(&mut taken.connection);
        taken.end(answer)
    }

    /// Before a write: writing without a guard makes the server forget its generation.
    fn break_seal(&self) -> RedisResult<()> {
        if self.seal.is_whole() {
            self.with(|c| self.keys.forget().query::<()>(c))?;
            self.seal.set(false);
        }
        Ok(())
    }
}

impl Backend for Redis {
    type Error = RedisError;

    fn get(&self, key: &[u8]) -> RedisResult<Option<Vec<u8>>> {
        self.with(|c| self.keys.one("GET", key).query(c))
    }

    fn get_many(&self, keys: &[&[u8]]) -> RedisResult<Vec<Option<Vec<u8>>>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.with(|c| self.keys.get_many(keys).query(c))
    }

    fn contains(&self, key: &[u8]) -> RedisResult<bool> {
        self.with(|c| self.keys.one("EXISTS", key).query(c))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> RedisResult<bool> {
        self.put_many(&[(key, value)]).map(|new| new == [true])
    }

    /// In one transaction: nobody else sees a part of it.
    fn put_many(&self, pairs: &[(&[u8], &[u8])]) -> RedisResult<Vec<bool>> {
        if pairs.is_empty() {
            return Ok(Vec::new());
        }
        self.break_seal()?;
        let stored: Vec<bool> = self.with(|c| self.keys.put_many(pairs).query(c))?;
        Ok(stored.into_iter().map(|stored| !stored).collect())
    }

    fn remove(&self, key: &[u8]) -> RedisResult<bool> {
        self.break_seal()?;
        self.with(|c| self.keys.one("DEL", key).query(c))
    }

    /// In one transaction: nobody else sees a part of it.
    fn remove_many(&self, keys: &[&[u8]]) -> RedisResult<Vec<bool>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.break_seal()?;
        self.with(|c| self.keys.remove_many(keys).query(c))
    }

    /// The server guarantees to visit keys that are there all the time.
    fn scan(&self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> RedisResult<()> {
        let mut cursor = Some(0);
        while let Some(at) = cursor {
            cursor = self.keys.visit(self.with(|c| self.keys.scan(at).query(c))?, &mut *visit);
        }
        Ok(())
    }

    /// Known only if all keys of the server are ours.
    fn len_hint(&self) -> RedisResult<Option<u64>> {
        Ok(self.keys.length(self.with(|c| self.keys.count().query(c))?))
    }

    fn generation(&self) -> RedisResult<Option<Generation>> {
        let kept: Option<Vec<u8>> = self.with(|c| self.keys.generation().query(c))?;
        Ok(kept.and_then(|kept| Generation::from_bytes(&kept)))
    }

    fn set_generation(&self, generation: Generation) -> RedisResult<()> {
        self.with(|c| self.keys.keep(generation).query::<()>(c))?;
        self.seal.set(false);
        Ok(())
    }

    fn seal(&self, generation: Generation) -> RedisResult<()> {
        self.seal.set(true);
        self.with(|c| self.keys.keep(generation).query(c))
    }
}
