//! A PostgreSQL table for threads.
//!
//! Cannot be used inside an async runtime, since the `postgres` crate has its own: every call returns an error there.

use std::ops::ControlFlow;

use postgres::{Client, NoTls};

use super::PostgresError;
use super::address::Address;
use super::sql::{self, PAGE, Sql, Statements};
use crate::backend::Backend;
use crate::backends::Connections;
use crate::backends::pool::{Pool, Pooled};
use crate::backends::seal::Seal;
use crate::generation::Generation;

type Result<T> = std::result::Result<T, PostgresError>;

/// A PostgreSQL table, with one connection for each thread using it at the same time, up to a
/// [maximum](Connections::max).
///
/// TLS (feature `tls`) is used if the connection string says `sslmode=require`, `verify-ca` or `verify-full`, or if
/// `Connections::tls` was called. All of these verify the server's certificate and its host name, which libpq does for
/// `verify-full` only. `sslrootcert`, `sslcert` and `sslkey` name files in PEM format; without `sslrootcert`, the
/// authorities that the system trusts are trusted. With `sslmode=disable` or `prefer`, or without a mode, nothing is
/// encrypted.
#[derive(Debug)]
pub struct Postgres {
    address: Address,
    sql: Sql,
    pool: Pool<Session>,
    seal: Seal,
}

/// A connection with its prepared statements.
struct Session {
    client: Client,
    statements: Statements,
}

impl Pooled for Session {
    type Error = postgres::Error;

    fn survives(error: &postgres::Error) -> bool {
        sql::survives(error)
    }
}

fn connect(address: &Address) -> std::result::Result<Client, postgres::Error> {
    let config = postgres::Config::from(address.config.clone());
    #[cfg(feature = "tls")]
    if let Some(tls) = &address.tls {
        return config.connect(tls.clone());
    }
    config.connect(NoTls)
}

impl Session {
    fn new(address: &Address, sql: &Sql) -> std::result::Result<Self, postgres::Error> {
        let mut client = connect(address)?;
        let mut prepared = Vec::new();
        for text in sql.prepared() {
            prepared.push(client.prepare(&text)?);
        }
        let prepared = prepared.try_into().expect("one for each text");
        Ok(Self { client, statements: Statements::new(prepared) })
    }
}

/// The `postgres` crate panics if it is called inside a runtime.
fn ensure_may_block() -> Result<()> {
    match tokio::runtime::Handle::try_current() {
        Ok(_) => Err(PostgresError::InsideRuntime),
        Err(_) => Ok(()),
    }
}

impl Postgres {
    /// Connects to a server (`host=localhost user=me`, or `postgresql://…`) and opens a table, or creates one. A
    /// second, small table holds the generation, `<table>_ironbloom`.
    pub fn connect(url: &str, table: &str) -> Result<Self> {
        Self::connect_with(url, table, &Connections::default())
    }

    /// The same, with settings for the connections.
    pub fn connect_with(url: &str, table: &str, connections: &Connections) -> Result<Self> {
        ensure_may_block()?;
        let sql = Sql::new(table)?;
        let address = Address::new(url, connections)?;
        let first = connect(&address)
            .and_then(|mut client| client.batch_execute(&sql.create()))
            .and_then(|()| Session::new(&address, &sql))
            .map_err(|error| sql.error(error))?;
        Ok(Self { address, sql, pool: Pool::new(connections.max, first), seal: Seal::new() })
    }

    fn with<T>(
        &self,
        ask: impl FnOnce(&mut Client, &Statements) -> std::result::Result<T, postgres::Error>,
    ) -> Result<T> {
        ensure_may_block()?;
        let limit = *self.address.config.get_connect_timeout().expect("set by Address");
        let is_alive = |session: &mut Session| session.client.is_valid(limit).is_ok();
        let connect = || Session::new(&self.address, &self.sql);
        self.pool
            .take(is_alive, connect)
            .and_then(|mut taken| {
                let Session { client, statements } = &mut taken.connection;
                let answer = ask(client, statements);
                taken.end(answer)
            })
            .map_err(|error| self.sql.error(error))
    }

    /// Before a write: writing without a guard makes the server forget its generation.
    fn break_seal(&self) -> Result<()> {
        if self.seal.is_whole() {
            self.with(|client, _| client.execute(&self.sql.forget(), &[]))?;
            self.seal.set(false);
        }
        Ok(())
    }

    fn keep(&self, generation: Generation) -> Result<()> {
        let bytes = &generation.to_bytes()[..];
        self.with(|client, _| client.execute(&self.sql.keep(), &[&self.sql.table, &bytes]))?;
        Ok(())
    }
}

impl Backend for Postgres {
    type Error = PostgresError;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.with(|client, s| Ok(client.query_opt(&s.get, &[&key])?.map(|row| row.get(0))))
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        let rows = self.with(|client, s| client.query(&s.get_many, &[&keys]))?;
        Ok(sql::values(keys, &rows))
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        self.with(|client, s| Ok(client.query_one(&s.contains, &[&key])?.get(0)))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.break_seal()?;
        self.with(|client, s| Ok(client.query_one(&s.put, &[&key, &value])?.get(0)))
    }

    /// In one statement: all or none.
    fn put_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<bool>> {
        self.break_seal()?;
        let (keys, values) = sql::last_values(pairs);
        let rows = self.with(|client, s| client.query(&s.put_many, &[&keys, &values]))?;
        Ok(sql::were_new(pairs, &rows))
    }

    fn remove(&self, key: &[u8]) -> Result<bool> {
        self.break_seal()?;
        self.with(|client, s| Ok(client.execute(&s.remove, &[&key])? > 0))
    }

    /// In one statement: all or none.
    fn remove_many(&self, keys: &[&[u8]]) -> Result<Vec<bool>> {
        self.break_seal()?;
        let rows = self.with(|client, s| client.query(&s.remove_many, &[&keys]))?;
        Ok(sql::were_removed(keys, &rows))
    }

    /// A consistent snapshot, over a connection of its own: those of the pool are for others meanwhile.
    fn scan(&self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<()> {
        ensure_may_block()?;
        let scan = || {
            let mut client = connect(&self.address)?;
            let mut transaction = client.transaction()?;
            let all = transaction.bind(&self.sql.scan(), &[])?;
            loop {
                let rows = transaction.query_portal(&all, PAGE)?;
                let visited = rows.iter().try_for_each(|row| visit(row.get(0)));
                if rows.is_empty() || visited.is_break() {
                    return transaction.commit();
                }
            }
        };
        ({ scan })().map_err(|error| self.sql.error(error))
    }

    /// The number found by the last `analyze` or `vacuum`.
    fn len_hint(&self) -> Result<Option<u64>> {
        self.with(|client, _| {
            if !client.query_one(&self.sql.any(), &[])?.get::<_, bool>(0) {
                return Ok(Some(0));
            }
            Ok(sql::length(client.query_one(self.sql.count(), &[&self.sql.table])?.get(0)))
        })
    }

    fn generation(&self) -> Result<Option<Generation>> {
        self.with(|client, _| {
            let kept = client.query_opt(&self.sql.generation(), &[&self.sql.table])?;
            Ok(kept.and_then(|row| Generation::from_bytes(row.get(0))))
        })
    }

    fn set_generation(&self, generation: Generation) -> Result<()> {
        self.keep(generation)?;
        self.seal.set(false);
        Ok(())
    }

    fn seal(&self, generation: Generation) -> Result<()> {
        self.seal.set(true);
        self.keep(generation)
    }
}
