//! The keys of a Redis or Valkey server that start with a prefix.
//!
//! Others can write to the server at any time, so what `postgres.rs` says applies here as well; keyspace notifications
//! are one way to learn what others set. Keys that expire or are evicted do no harm: they are false positives.

use std::ops::ControlFlow;

use redis::{Client, Connection, IntoConnectionInfo, RedisError, RedisResult};

use super::pool::Pool;
use super::seal::Seal;
use crate::backend::Backend;
use crate::generation::Generation;

/// Number of keys that a scan requests at a time.
const PAGE: usize = 1000;

/// The keys of a server that start with a prefix, with one connection for each thread using it at the same time.
pub struct Redis {
    client: Client,
    prefix: Vec<u8>,
    /// The key of the generation: it is among the keys, so a scan skips it.
    note: Vec<u8>,
    pool: Pool<Connection>,
    seal: Seal,
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redis({:?})", String::from_utf8_lossy(&self.prefix))
    }
}

/// A pattern that matches exactly these bytes.
fn escaped(bytes: &[u8]) -> Vec<u8> {
    let escape = |&byte: &u8| {
        let special = matches!(byte, b'*' | b'?' | b'[' | b']' | b'\\' | b'^' | b'-');
        special.then_some(b'\\').into_iter().chain([byte])
    };
    bytes.iter().flat_map(escape).collect()
}

impl Redis {
    /// Connects to a server (`redis://127.0.0.1/`). Keys are stored with this prefix, and the generation under
    /// `<prefix>ironbloom:generation`, which is not a key of the store.
    pub fn connect(server: impl IntoConnectionInfo, prefix: impl AsRef<[u8]>) -> RedisResult<Self> {
        let client = Client::open(server)?;
        let prefix = prefix.as_ref().to_vec();
        let note = [&prefix[..], b"ironbloom:generation"].concat();
        let first = client.get_connection()?;
        Ok(Self { client, prefix, note, pool: Pool::new(first), seal: Seal::new() })
    }

    fn full(&self, key: &[u8]) -> Vec<u8> {
        [&self.prefix[..], key].concat()
    }

    fn with<T>(&self, ask: impl FnOnce(&mut Connection) -> RedisResult<T>) -> RedisResult<T> {
        self.pool.with(|| self.client.get_connection(), ask)
    }

    /// Before a write: writing without a guard makes the server forget its generation.
    fn break_seal(&self) -> RedisResult<()> {
        if self.seal.is_whole() {
            self.with(|c| redis::cmd("DEL").arg(&self.note).query::<()>(c))?;
            self.seal.set(false);
        }
        Ok(())
    }

    fn keep(&self, generation: Generation) -> RedisResult<()> {
        let bytes = &generation.to_bytes()[..];
        self.with(|c| redis::cmd("SET").arg(&self.note).arg(bytes).query(c))
    }
}

impl Backend for Redis {
    type Error = RedisError;

    fn get(&self, key: &[u8]) -> RedisResult<Option<Vec<u8>>> {
        self.with(|c| redis::cmd("GET").arg(self.full(key)).query(c))
    }

    fn get_many(&self, keys: &[&[u8]]) -> RedisResult<Vec<Option<Vec<u8>>>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<Vec<u8>> = keys.iter().map(|key| self.full(key)).collect();
        self.with(|c| redis::cmd("MGET").arg(keys).query(c))
    }

    fn contains(&self, key: &[u8]) -> RedisResult<bool> {
        self.with(|c| redis::cmd("EXISTS").arg(self.full(key)).query(c))
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
        let mut pipe = redis::pipe();
        pipe.atomic();
        for (key, value) in pairs {
            let key = self.full(key);
            pipe.cmd("EXISTS").arg(&key);
            pipe.cmd("SET").arg(key).arg(*value).ignore();
        }
        let stored: Vec<bool> = self.with(|c| pipe.query(c))?;
        Ok(stored.into_iter().map(|stored| !stored).collect())
    }

    fn remove(&self, key: &[u8]) -> RedisResult<bool> {
        self.break_seal()?;
        self.with(|c| redis::cmd("DEL").arg(self.full(key)).query(c))
    }

    /// In one transaction: nobody else sees a part of it.
    fn remove_many(&self, keys: &[&[u8]]) -> RedisResult<Vec<bool>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.break_seal()?;
        let mut pipe = redis::pipe();
        pipe.atomic();
        for key in keys {
            pipe.cmd("DEL").arg(self.full(key));
        }
        self.with(|c| pipe.query(c))
    }

    /// The server guarantees to visit keys that are there all the time.
    fn scan(&self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> RedisResult<()> {
        let pattern = [&escaped(&self.prefix)[..], b"*"].concat();
        let mut cursor = 0u64;
        loop {
            let (next, keys): (u64, Vec<Vec<u8>>) = self.with(|c| {
                let mut scan = redis::cmd("SCAN");
                scan.arg(cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(PAGE).query(c)
            })?;
            let mut ours = keys.iter().filter(|&key| *key != self.note);
            if ours.try_for_each(|key| visit(&key[self.prefix.len()..])).is_break() || next == 0 {
                return Ok(());
            }
            cursor = next;
        }
    }

    /// Known only if all keys of the server are ours.
    fn len_hint(&self) -> RedisResult<Option<u64>> {
        let (all, noted): (u64, u64) =
            self.with(|c| redis::pipe().cmd("DBSIZE").cmd("EXISTS").arg(&self.note).query(c))?;
        let others = all.saturating_sub(noted);
        Ok(Some(others).filter(|&others| others == 0 || self.prefix.is_empty()))
    }

    fn generation(&self) -> RedisResult<Option<Generation>> {
        let kept: Option<Vec<u8>> = self.with(|c| redis::cmd("GET").arg(&self.note).query(c))?;
        Ok(kept.and_then(|kept| Generation::from_bytes(&kept)))
    }

    /// The server's files and replicas apply writes in order, so this is there if a later write is.
    fn set_generation(&self, generation: Generation) -> RedisResult<()> {
        self.keep(generation)?;
        self.seal.set(false);
        Ok(())
    }

    fn seal(&self, generation: Generation) -> RedisResult<()> {
        self.seal.set(true);
        self.keep(generation)
    }
}
