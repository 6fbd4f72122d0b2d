//! A PostgreSQL table for threads.
//!
//! Cannot be used inside an async runtime, since the `postgres` crate has its own: every call returns an error there.

use std::ops::ControlFlow;

use postgres::{Client, NoTls};

use super::PostgresError;
use super::address::Address;
use super::sql::{self, PAGE, Server, Sql, Statements};
use crate::backend::{Backend, Before, Failure};
use crate::backends::Connections;
use crate::backends::naming::Naming;
use crate::backends::pool::{Pool, Pooled};
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
    naming: Naming<Server>,
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
    fn new(mut client: Client, sql: &Sql) -> std::result::Result<Self, postgres::Error> {
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
            .and_then(|mut client| client.batch_execute(&sql.create()).map(|()| client))
            .and_then(|client| Session::new(client, &sql))
            .map_err(|error| sql.error(error))?;
        let pool = Pool::new(connections.max, first);
        let store = Self { address, sql, pool, naming: Naming::new() };
        store.with(|client, _| store.compare(client))?;
        Ok(store)
    }

    /// Connects, and compares what the server holds with what it should: it may be another one.
    fn reconnect(&self) -> std::result::Result<Client, postgres::Error> {
        let mut client = connect(&self.address)?;
        self.compare(&mut client)?;
        Ok(client)
    }

    fn compare(&self, client: &mut Client) -> std::result::Result<(), postgres::Error> {
        let state = client.query_one(&self.sql.state(), &[&self.sql.table])?;
        let (server, generation) = Server::of(&state);
        if self.naming.is_exchanged(Some(server), generation, 0) {
            self.pool.renew();
        }
        Ok(())
    }

    fn with<T>(
        &self,
        ask: impl FnOnce(&mut Client, &Statements) -> std::result::Result<T, postgres::Error>,
    ) -> Result<T> {
        ensure_may_block()?;
        let limit = *self.address.config.get_connect_timeout().expect("set by Address");
        let is_alive = |session: &mut Session| session.client.is_valid(limit).is_ok();
        let connect = || Session::new(self.reconnect()?, &self.sql);
        let taken = self.pool.take(is_alive, connect);
        let mut taken = taken.map_err(|error| self.sql.unreachable(error))?;
        let Session { client, statements } = &mut taken.connection;
        let answer = ask(client, statements);
        taken.end(answer).map_err(|error| self.sql.error(error))
    }

    /// Before a write: writing without a guard makes the server forget its generation.
    fn break_seal(&self) -> Result<()> {
        if self.naming.is_sealed() {
            self.with(|client, _| client.execute(&self.sql.forget(), &[]))?;
            self.naming.broken();
        }
        Ok(())
    }

    fn keep(&self, generation: Generation, sealed: bool) -> Result<()> {
        let bytes = &generation.to_bytes()[..];
        let known = self.naming.begin(generation, sealed);
        let known: Vec<[u8; 16]> = known.into_iter().map(Generation::to_bytes).collect();
        let known: Vec<&[u8]> = known.iter().map(|known| &known[..]).collect();
        self.with(|client, _| {
            let table = &self.sql.table;
            if !known.is_empty() {
                if client.execute(&self.sql.keep_if(), &[table, &bytes, &known])? > 0 {
                    return Ok(());
                }
                self.naming.exchange();
            }
            client.execute(&self.sql.keep(), &[table, &bytes]).map(drop)
        })?;
        self.naming.end(generation, sealed);
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

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Before> {
        self.break_seal()?;
        let row = match self.naming.condition() {
            None => self.with(|client, s| client.query_opt(&s.put, &[&key, &value]))?,
            Some(held) => {
                let held = &held.to_bytes()[..];
                self.with(|client, s| client.query_opt(&s.put_if, &[&key, &value, &held]))?
            }
        };
        let row = row.ok_or_else(|| self.sql.refused())?;
        Ok(Before::stored(!row.get::<_, bool>(0)))
    }

    /// In one statement: all or none.
    fn put_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<Before>> {
        self.break_seal()?;
        let (keys, values) = sql::last_values(pairs);
        let rows = match self.naming.condition() {
            None => self.with(|client, s| client.query(&s.put_many, &[&keys, &values]))?,
            Some(held) => {
                let held = &held.to_bytes()[..];
                self.with(|client, s| client.query(&s.put_many_if, &[&keys, &values, &held]))?
            }
        };
        self.sql.new_ones(pairs, &rows)
    }

    fn remove(&self, key: &[u8]) -> Result<Before> {
        self.break_seal()?;
        let Some(held) = self.naming.condition() else {
            let removed = self.with(|client, s| client.execute(&s.remove, &[&key]))?;
            return Ok(Before::stored(removed > 0));
        };
        let held = &held.to_bytes()[..];
        let row = self.with(|client, s| client.query_one(&s.remove_if, &[&key, &held]))?;
        self.sql.accepted(&row)?;
        Ok(Before::stored(row.get(1)))
    }

    /// In one statement: all or none.
    fn remove_many(&self, keys: &[&[u8]]) -> Result<Vec<Before>> {
        self.break_seal()?;
        let Some(held) = self.naming.condition() else {
            let rows = self.with(|client, s| client.query(&s.remove_many, &[&keys]))?;
            return Ok(sql::were_removed(keys, rows.iter().map(|row| row.get(0))));
        };
        let held = &held.to_bytes()[..];
        let row = self.with(|client, s| client.query_one(&s.remove_many_if, &[&keys, &held]))?;
        self.sql.accepted(&row)?;
        Ok(sql::were_removed(keys, row.get::<_, Vec<&[u8]>>(1)))
    }

    /// A consistent snapshot, over a connection of its own: those of the pool are for others meanwhile.
    fn scan(&self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<()> {
        ensure_may_block()?;
        let scan = || {
            let mut client = self.reconnect()?;
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
        let kept = self.with(|client, _| {
            let kept = client.query_opt(&self.sql.generation(), &[&self.sql.table])?;
            Ok(kept.and_then(|row| Generation::from_bytes(row.get(0))))
        })?;
        self.naming.found(kept);
        Ok(kept)
    }

    fn set_generation(&self, generation: Generation) -> Result<()> {
        self.keep(generation, false)
    }

    fn seal(&self, generation: Generation) -> Result<()> {
        self.keep(generation, true)
    }

    /// Writes lock the row of the generation, so a lock that excludes those is there when all have ended.
    fn claim(&self, generation: Generation) -> Result<bool> {
        self.keep(generation, false)?;
        self.naming.claim();
        self.with(|client, _| match client.batch_execute(&self.sql.wait_for_writes()) {
            Ok(()) => Ok(true),
            Err(error) if sql::is_lock_timeout(&error) => {
                client.batch_execute("rollback").map(|()| false)
            }
            Err(error) => Err(error),
        })
    }

    fn can_claim(&self) -> bool {
        true
    }

    fn was_exchanged(&self) -> bool {
        self.naming.was_exchanged()
    }

    fn failure(&self, error: &PostgresError) -> Failure {
        error.failure()
    }
}
