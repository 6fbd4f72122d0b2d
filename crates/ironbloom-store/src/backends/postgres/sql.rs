//! What is said to the server, by the blocking and the awaited form alike.

use std::collections::{HashMap, HashSet};

use tokio_postgres::error::{DbError, Severity};
use tokio_postgres::{Row, Statement};

use super::PostgresError;
use super::error::LONGEST_NAME;

/// Number of rows that a scan fetches at a time.
pub(super) const PAGE: i32 = 10_000;

/// The names of a table, and the statements about it.
#[derive(Clone, Debug)]
pub(super) struct Sql {
    pub(super) name: String,
    /// Quoted.
    pub(super) table: String,
    /// The table of the generation, quoted.
    notes: String,
}

/// A name as SQL quotes it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A number that changes when the table is truncated, restored or created again, so that a generation belongs to one table
/// and its history, and not to whatever has its name.
const INCARNATION: &str = "int8send(coalesce(pg_relation_filenode(to_regclass($1)), 0)::bigint)";

impl Sql {
    pub(super) fn new(table: &str) -> Result<Self, PostgresError> {
        if table.len() > LONGEST_NAME {
            return Err(PostgresError::LongName(table.to_owned()));
        }
        let notes = quoted(&format!("{table}_ironbloom"));
        Ok(Self { name: table.to_owned(), table: quoted(table), notes })
    }

    pub(super) fn create(&self) -> String {
        let Self { table, notes, .. } = self;
        format!(
            "create table if not exists {table} (key bytea primary key, value bytea not null);
             create table if not exists {notes} (name text primary key, value bytea not null)"
        )
    }

    /// The statements that are prepared, in the order of [`Statements::new`].
    pub(super) fn prepared(&self) -> [String; 7] {
        let table = &self.table;
        let conflict = "on conflict (key) do update set value = excluded.value";
        [
            format!("select value from {table} where key = $1"),
            format!("select key, value from {table} where key = any($1)"),
            format!("select exists (select from {table} where key = $1)"),
            // A row that existed before has a transaction that ended the previous version.
            format!(
                "insert into {table} (key, value) values ($1, $2) {conflict} returning xmax = 0"
            ),
            format!(
                "insert into {table} (key, value) select * from unnest($1::bytea[], $2::bytea[]) \
                 {conflict} returning key, xmax = 0"
            ),
            format!("delete from {table} where key = $1"),
            format!("delete from {table} where key = any($1) returning key"),
        ]
    }

    pub(super) fn scan(&self) -> String {
        format!("select key from {}", self.table)
    }

    /// Whether there is a row.
    pub(super) fn any(&self) -> String {
        format!("select exists (select from {})", self.table)
    }

    /// The number of rows that the last `analyze` or `vacuum` found; of the table `$1`.
    pub(super) fn count(&self) -> &'static str {
        "select reltuples::bigint from pg_class where oid = to_regclass($1)"
    }

    /// The generation of the table `$1`.
    pub(super) fn generation(&self) -> String {
        format!(
            "select substr(value, 1, 16) from {} \
             where name = 'generation' and substr(value, 17) = {INCARNATION}",
            self.notes
        )
    }

    /// Gives the table `$1` the generation `$2`. Commits reach the log in order, so this is there if a later write is.
    pub(super) fn keep(&self) -> String {
        format!(
            "insert into {} values ('generation', $2::bytea || {INCARNATION}) \
             on conflict (name) do update set value = excluded.value",
            self.notes
        )
    }

    pub(super) fn forget(&self) -> String {
        format!("delete from {} where name = 'generation'", self.notes)
    }

    pub(super) fn error(&self, error: tokio_postgres::Error) -> PostgresError {
        PostgresError::Server { table: self.name.clone(), error }
    }
}

/// Prepared in one session.
pub(super) struct Statements {
    pub(super) get: Statement,
    pub(super) get_many: Statement,
    pub(super) contains: Statement,
    pub(super) put: Statement,
    pub(super) put_many: Statement,
    pub(super) remove: Statement,
    pub(super) remove_many: Statement,
}

impl Statements {
    pub(super) fn new(prepared: [Statement; 7]) -> Self {
        let [get, get_many, contains, put, put_many, remove, remove_many] = prepared;
        Self { get, get_many, contains, put, put_many, remove, remove_many }
    }
}

/// False if the session is over: the server has ended it, or the connection is lost.
pub(super) fn survives(error: &tokio_postgres::Error) -> bool {
    let over =
        |told: &DbError| matches!(told.parsed_severity(), Some(Severity::Fatal | Severity::Panic));
    error.as_db_error().is_some_and(|told| !over(told))
}

/// The values of these keys, from rows of keys and values in any order.
pub(super) fn values(keys: &[&[u8]], rows: &[Row]) -> Vec<Option<Vec<u8>>> {
    let found: HashMap<&[u8], &[u8]> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    keys.iter().map(|key| found.get(key).map(|value| value.to_vec())).collect()
}

/// A statement may not write a row twice: the last value of a key is the one that counts.
pub(super) fn last_values<'a>(pairs: &[(&'a [u8], &'a [u8])]) -> (Vec<&'a [u8]>, Vec<&'a [u8]>) {
    let last: HashMap<&[u8], &[u8]> = pairs.iter().copied().collect();
    last.into_iter().unzip()
}

/// Which of these were new, from rows of keys; a repeated key is new only once.
pub(super) fn were_new(pairs: &[(&[u8], &[u8])], rows: &[Row]) -> Vec<bool> {
    let mut new: HashMap<&[u8], bool> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    pairs.iter().map(|(key, _)| new.insert(key, false).unwrap_or(false)).collect()
}

/// Which of these were removed, from rows of keys; a repeated key was there only once.
pub(super) fn were_removed(keys: &[&[u8]], rows: &[Row]) -> Vec<bool> {
    let mut removed: HashSet<&[u8]> = rows.iter().map(|row| row.get(0)).collect();
    keys.iter().map(|key| removed.remove(key)).collect()
}

/// What is known from the planner's number of rows, which is -1 if there is none.
pub(super) fn length(count: i64) -> Option<u64> {
    u64::try_from(count).ok().filter(|&count| count > 0)
}
