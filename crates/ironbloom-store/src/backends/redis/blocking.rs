//! Keys of a server for threads.

use std::ops::ControlFlow;
use std::time::Duration;

use redis::{Client, Connection, ConnectionLike, IntoConnectionInfo, RedisError, RedisResult};

use super::commands::{self, ANSWER, Keys, Server};
use super::error::RedisStoreError;
use crate::backend::{Backend, Before, Failure};
use crate::backends::Connections;
use crate::backends::naming::Naming;
use crate::backends::pool::{Pool, Pooled};
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
    naming: Naming<Server>,
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
    pub fn connect(
        server: impl IntoConnectionInfo,
        prefix: impl AsRef<[u8]>,
    ) -> Result<Self, RedisStoreError> {
        Self::connect_with(server, prefix, &Connections::default())
    }

    /// The same, with settings for the connections.
    pub fn connect_with(
        server: impl IntoConnectionInfo,
        prefix: impl AsRef<[u8]>,
        connections: &Connections,
    ) -> Result<Self, RedisStoreError> {
        let (client, timeout) = (commands::client(server, connections)?, connections.timeout);
        let first = connect(&client, timeout).map_err(RedisStoreError::Unreachable)?;
        let pool = Pool::new(connections.max, first);
        let keys = Keys::new(prefix.as_ref());
        let store = Self { client, timeout, keys, pool, naming: Naming::new() };
        store.with(|connection| store.compare(connection))?;
        Ok(store)
    }

    fn with<T>(
        &self,
        ask: impl FnOnce(&mut Connection) -> RedisResult<T>,
    ) -> Result<T, RedisStoreError> {
        let is_alive = |connection: &mut Connection| {
            let alive = connection.check_connection();
            if !alive {
                self.naming.lost();
            }
            alive
        };
        let taken = self.pool.take(is_alive, || self.reconnect());
        let mut taken = taken.map_err(RedisStoreError::Unreachable)?;
        let answer = ask(&mut taken.connection);
        if answer.as_ref().is_err_and(|error| !commands::survives(error)) {
            self.naming.lost();
        }
        Ok(taken.end(answer)?)
    }

    /// Connects, and compares what the server holds with what it should: it may be another one.
    fn reconnect(&self) -> RedisResult<Connection> {
        let mut connection = connect(&self.client, self.timeout)?;
        self.compare(&mut connection)?;
        Ok(connection)
    }

    fn compare(&self, connection: &mut Connection) -> RedisResult<()> {
        let told = Server::SECTIONS.map(|section| commands::info(section).query(connection));
        let note = self.keys.generation().query(connection);
        let (generation, counted) = commands::note_of(note)?;
        if self.naming.is_exchanged(Server::of(told)?, generation, counted) {
            self.pool.renew();
        }
        Ok(())
    }

    /// Before a write: writing without a guard makes the server forget its generation.
    fn break_seal(&self) -> Result<(), RedisStoreError> {
        if self.naming.is_sealed() {
            self.with(|c| self.keys.forget().query::<()>(c))?;
            self.naming.broken();
        }
        Ok(())
    }

    fn note(&self) -> Result<(Option<Generation>, u64), RedisStoreError> {
        self.with(|c| commands::note_of(self.keys.generation().query(c)))
    }

    fn keep(&self, generation: Generation, sealed: bool) -> Result<(), RedisStoreError> {
        let known = self.naming.begin(generation, sealed);
        let mut counted = self.with(|c| self.keys.keep(generation, &known).query(c))?;
        if counted == 0 {
            self.naming.exchange();
            counted = self.with(|c| self.keys.keep(generation, &[]).query(c))?;
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

impl Backend for Redis {
    type Error = RedisStoreError;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, RedisStoreError> {
        self.with(|c| self.keys.one("GET", key).query(c))
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, RedisStoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.with(|c| self.keys.get_many(keys).query(c))
    }

    fn contains(&self, key: &[u8]) -> Result<bool, RedisStoreError> {
        self.with(|c| self.keys.one("EXISTS", key).query(c))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Before, RedisStoreError> {
        Ok(self.put_many(&[(key, value)])?[0])
    }

    /// In one transaction: nobody else sees a part of it.
    fn put_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<Before>, RedisStoreError> {
        if pairs.is_empty() {
            return Ok(Vec::new());
        }
        self.break_seal()?;
        if let Some(generation) = self.naming.condition() {
            let put = self.keys.put_many_if(pairs, generation);
            return Ok(self.counted(self.with(|c| put.query(c))?));
        }
        let stored: Vec<bool> = self.with(|c| self.keys.put_many(pairs).query(c))?;
        Ok(stored.into_iter().map(Before::stored).collect())
    }

    fn remove(&self, key: &[u8]) -> Result<Before, RedisStoreError> {
        Ok(self.remove_many(&[key])?[0])
    }

    /// In one transaction: nobody else sees a part of it.
    fn remove_many(&self, keys: &[&[u8]]) -> Result<Vec<Before>, RedisStoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.break_seal()?;
        if let Some(generation) = self.naming.condition() {
            let remove = self.keys.remove_many_if(keys, generation);
            return Ok(self.counted(self.with(|c| remove.query(c))?));
        }
        let stored: Vec<bool> = self.with(|c| self.keys.remove_many(keys).query(c))?;
        Ok(stored.into_iter().map(Before::stored).collect())
    }

    /// The server guarantees to visit keys that are there all the time. Only this server can go on from a cursor of its own,
    /// so the scan has a connection besides those of the pool, and ends with it.
    fn scan(&self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), RedisStoreError> {
        let mut connection = self.reconnect().map_err(RedisStoreError::Unreachable)?;
        let mut cursor = Some(0);
        while let Some(at) = cursor {
            cursor = self.keys.visit(self.keys.scan(at).query(&mut connection)?, &mut *visit);
        }
        Ok(())
    }

    /// Known only if all keys of the server are ours.
    fn len_hint(&self) -> Result<Option<u64>, RedisStoreError> {
        Ok(self.keys.length(self.with(|c| self.keys.count().query(c))?))
    }

    fn generation(&self) -> Result<Option<Generation>, RedisStoreError> {
        let (generation, counted) = self.note()?;
        self.naming.found(generation);
        self.naming.count(counted);
        Ok(generation)
    }

    fn set_generation(&self, generation: Generation) -> Result<(), RedisStoreError> {
        self.keep(generation, false)
    }

    fn seal(&self, generation: Generation) -> Result<(), RedisStoreError> {
        self.keep(generation, true)
    }

    /// Commands are carried out one after the other, and those for another generation are refused.
    fn claim(&self, generation: Generation) -> Result<bool, RedisStoreError> {
        self.keep(generation, false)?;
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
