//! A PostgreSQL table, `key bytea primary key, value bytea`.
//!
//! Others can write to the table at any time. Therefore:
//!
//! - A checkpoint is trusted only if the user promises that all writes go through guards
//!   ([`Options::only_writer`](crate::Options::only_writer)). Otherwise the filter is built from a scan when the store
//!   is opened.
//! - What others insert while the guard is open is answered "absent" until it is [noted](crate::Guard::note). `LISTEN`
//!   on a channel that a trigger notifies is one way to learn about it.
//! - What others delete does no harm.
//!
//! Cannot be used inside an async runtime, since the `postgres` crate has its own: every call returns an error there.

use std::collections::HashMap;
use std::ops::ControlFlow;

use postgres::{Client, Config, NoTls, Statement};

use super::pool::Pool;
use super::seal::Seal;
use crate::backend::Backend;
use crate::generation::Generation;

type Result<T> = std::result::Result<T, PostgresError>;

/// An error from a PostgreSQL table.
#[derive(Debug)]
#[non_exhaustive]
pub enum PostgresError {
    /// The server, or the connection to it.
    Server(postgres::Error),
    /// It was called inside an async runtime, where nothing may block: use a separate thread, for example with
    /// `tokio::task::spawn_blocking`.
    InsideRuntime,
}

impl From<postgres::Error> for PostgresError {
    fn from(error: postgres::Error) -> Self {
        Self::Server(error)
    }
}

impl std::fmt::Display for PostgresError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Server(error) => match error.as_db_error() {
                // The crate itself only says "db error".
                Some(told) => {
                    write!(f, "{}: {} ({})", told.severity(), told.message(), told.code().code())?;
                    told.detail().map_or(Ok(()), |detail| write!(f, ": {detail}"))
                }
                None => {
                    write!(f, "{error}")?;
                    let cause = std::error::Error::source(error);
                    cause.map_or(Ok(()), |cause| write!(f, ": {cause}"))
                }
            },
            Self::InsideRuntime => {
                write!(
                    f,
                    "PostgreSQL was called inside an asynchronous runtime; use a thread for it"
                )
            }
        }
    }
}

/// All causes are already in the message.
impl std::error::Error for PostgresError {}

/// Number of rows that a scan fetches at a time.
const PAGE: i32 = 10_000;

/// A PostgreSQL table, with one connection for each thread using it at the same time.
#[derive(Debug)]
pub struct Postgres {
    config: Config,
    sql: Sql,
    pool: Pool<Session>,
    seal: Seal,
}

#[derive(Debug)]
struct Sql {
    table: String,
    notes: String,
}

/// A connection with its prepared statements.
struct Session {
    client: Client,
    get: Statement,
    get_many: Statement,
    contains: Statement,
    put: Statement,
    put_many: Statement,
    remove: Statement,
    remove_many: Statement,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Session")
    }
}

impl Session {
    fn new(config: &Config, Sql { table, .. }: &Sql) -> std::result::Result<Self, postgres::Error> {
        let mut client = config.connect(NoTls)?;
        let conflict = "on conflict (key) do update set value = excluded.value";
        let mut prepare = |sql: String| client.prepare(&sql);
        Ok(Self {
            get: prepare(format!("select value from {table} where key = $1"))?,
            get_many: prepare(format!("select key, value from {table} where key = any($1)"))?,
            contains: prepare(format!("select exists (select from {table} where key = $1)"))?,
            // A row that existed before has a transaction that ended the previous version.
            put: prepare(format!(
                "insert into {table} (key, value) values ($1, $2) {conflict} returning xmax = 0"
            ))?,
            put_many: prepare(format!(
                "insert into {table} (key, value) select * from unnest($1::bytea[], $2::bytea[]) \
                 {conflict} returning key, xmax = 0"
            ))?,
            remove: prepare(format!("delete from {table} where key = $1"))?,
            remove_many: prepare(format!("delete from {table} where key = any($1) returning key"))?,
            client,
        })
    }
}

/// The `postgres` crate panics if it is called inside a runtime.
fn ensure_may_block() -> Result<()> {
    match tokio::runtime::Handle::try_current() {
        Ok(_) => Err(PostgresError::InsideRuntime),
        Err(_) => Ok(()),
    }
}

/// A name as SQL quotes it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Postgres {
    /// Connects to a server (`host=localhost user=me`, or `postgresql://…`) and opens a table, or creates one. A
    /// second, small table holds the generation, `<table>_ironbloom`.
    pub fn connect(url: &str, table: &str) -> Result<Self> {
        ensure_may_block()?;
        let config: Config = url.parse()?;
        let sql = Sql { table: quoted(table), notes: quoted(&format!("{table}_ironbloom")) };
        let Sql { table, notes } = &sql;
        config.connect(NoTls)?.batch_execute(&format!(
            "create table if not exists {table} (key bytea primary key, value bytea not null);
             create table if not exists {notes} (name text primary key, value bytea not null)"
        ))?;
        let first = Session::new(&config, &sql)?;
        Ok(Self { config, sql, pool: Pool::new(first), seal: Seal::new() })
    }

    fn with<T>(
        &self,
        ask: impl FnOnce(&mut Session) -> std::result::Result<T, postgres::Error>,
    ) -> Result<T> {
        ensure_may_block()?;
        Ok(self.pool.with(|| Session::new(&self.config, &self.sql), ask)?)
    }

    /// Before a write: writing without a guard makes the server forget its generation.
    fn break_seal(&self) -> Result<()> {
        if self.seal.is_whole() {
            let sql = format!("delete from {} where name = 'generation'", self.sql.notes);
            self.with(|s| s.client.execute(&sql, &[]))?;
            self.seal.set(false);
        }
        Ok(())
    }

    /// Commits reach the log in order, so this is there if a later write is.
    fn keep(&self, generation: Generation) -> Result<()> {
        self.with(|s| {
            let sql = format!(
                "insert into {} values ('generation', $1) \
                 on conflict (name) do update set value = excluded.value",
                self.sql.notes
            );
            s.client.execute(&sql, &[&&generation.to_bytes()[..]]).map(drop)
        })
    }
}

impl Backend for Postgres {
    type Error = PostgresError;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.with(|s| Ok(s.client.query_opt(&s.get, &[&key])?.map(|row| row.get(0))))
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        let rows = self.with(|s| s.client.query(&s.get_many, &[&keys]))?;
        let found: HashMap<&[u8], &[u8]> =
            rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        Ok(keys.iter().map(|key| found.get(key).map(|value| value.to_vec())).collect())
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        self.with(|s| Ok(s.client.query_one(&s.contains, &[&key])?.get(0)))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.break_seal()?;
        self.with(|s| Ok(s.client.query_one(&s.put, &[&key, &value])?.get(0)))
    }

    /// In one statement: all or none.
    fn put_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<bool>> {
        self.break_seal()?;
        // A statement may not write a row twice: the last value of a key is the one that counts.
        let last: HashMap<&[u8], &[u8]> = pairs.iter().copied().collect();
        let (keys, values): (Vec<&[u8]>, Vec<&[u8]>) = last.into_iter().unzip();
        let rows = self.with(|s| s.client.query(&s.put_many, &[&keys, &values]))?;
        let mut new: HashMap<&[u8], bool> =
            rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        // A repeated key is new only once.
        Ok(pairs.iter().map(|(key, _)| new.insert(key, false).unwrap_or(false)).collect())
    }

    fn remove(&self, key: &[u8]) -> Result<bool> {
        self.break_seal()?;
        self.with(|s| Ok(s.client.execute(&s.remove, &[&key])? > 0))
    }

    /// In one statement: all or none.
    fn remove_many(&self, keys: &[&[u8]]) -> Result<Vec<bool>> {
        self.break_seal()?;
        let rows = self.with(|s| s.client.query(&s.remove_many, &[&keys]))?;
        let mut removed: std::collections::HashSet<&[u8]> =
            rows.iter().map(|row| row.get(0)).collect();
        // A repeated key was there only once.
        Ok(keys.iter().map(|key| removed.remove(key)).collect())
    }

    /// A consistent snapshot.
    fn scan(&self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<()> {
        self.with(|s| {
            let mut transaction = s.client.transaction()?;
            let all = transaction.bind(&format!("select key from {}", self.sql.table), &[])?;
            loop {
                let rows = transaction.query_portal(&all, PAGE)?;
                let visited = rows.iter().try_for_each(|row| visit(row.get(0)));
                if rows.is_empty() || visited.is_break() {
                    return transaction.commit();
                }
            }
        })
    }

    /// The number found by the last `analyze` or `vacuum`.
    fn len_hint(&self) -> Result<Option<u64>> {
        self.with(|s| {
            let table = &self.sql.table;
            let any = format!("select exists (select from {table})");
            if !s.client.query_one(&any, &[])?.get::<_, bool>(0) {
                return Ok(Some(0));
            }
            let count = "select reltuples::bigint from pg_class where oid = to_regclass($1)";
            let count: i64 = s.client.query_one(count, &[table])?.get(0);
            Ok(u64::try_from(count).ok().filter(|&count| count > 0))
        })
    }

    fn generation(&self) -> Result<Option<Generation>> {
        self.with(|s| {
            let sql = format!("select value from {} where name = 'generation'", self.sql.notes);
            let kept = s.client.query_opt(&sql, &[])?;
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
