//! What is said to the server, by the blocking and the awaited form alike.

use std::collections::{HashMap, HashSet};

use tokio_postgres::error::{DbError, Severity, SqlState};
use tokio_postgres::{Row, Statement};

use super::PostgresError;
use super::error::LONGEST_NAME;
use crate::backend::Before;
use crate::generation::Generation;

/// Number of rows that a scan fetches at a time.
pub(super) const PAGE: i32 = 10_000;

/// The names of a table, and the statements about it.
#[derive(Clone, Debug)]
pub(super) struct Sql {
    /// As it was given, for messages.
    pub(super) name: String,
    /// Without its schema; for the names of a follower's triggers.
    #[cfg(feature = "async-postgres")]
    base: String,
    /// Quoted, and followed by a dot; empty if none was given.
    #[cfg(feature = "async-postgres")]
    schema: String,
    /// Quoted.
    pub(super) table: String,
    /// The table of the generation, quoted.
    notes: String,
}

/// A name as SQL quotes it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The parts of a name: `table`, `schema.table`, and either with parts in double quotes, in which a dot is a letter.
fn parts_of(name: &str) -> Vec<String> {
    let (mut parts, mut quoted) = (vec![String::new()], false);
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        let part = parts.last_mut().expect("there is one");
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => part.extend(letters.next()),
            '"' if quoted || part.is_empty() => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            _ => part.push(letter),
        }
    }
    parts
}

/// A number that changes when the table is truncated, restored or created again, so that a generation belongs to one table
/// and its history, and not to whatever has its name.
const INCARNATION: &str = "int8send(coalesce(pg_relation_filenode(to_regclass($1)), 0)::bigint)";

/// How long a claim waits for writes of others that have begun.
const CLAIM_WITHIN: &str = "set local lock_timeout = '1s'";

impl Sql {
    pub(super) fn new(table: &str) -> Result<Self, PostgresError> {
        let mut parts = parts_of(table);
        let base = parts.pop().unwrap_or_default();
        if base.len() > LONGEST_NAME {
            return Err(PostgresError::LongName(table.to_owned()));
        }
        if parts.len() > 1 || base.is_empty() || parts.iter().any(String::is_empty) {
            return Err(PostgresError::BadName(table.to_owned()));
        }
        let schema: String = parts.iter().map(|schema| quoted(schema) + ".").collect();
        let table_name = format!("{schema}{}", quoted(&base));
        let notes = format!("{schema}{}", quoted(&format!("{base}_ironbloom")));
        Ok(Self {
            name: table.to_owned(),
            #[cfg(feature = "async-postgres")]
            base,
            #[cfg(feature = "async-postgres")]
            schema,
            table: table_name,
            notes,
        })
    }

    /// A name that is derived from that of the table; triggers have no schema.
    #[cfg(feature = "async-postgres")]
    pub(super) fn derived(&self, suffix: &str) -> String {
        quoted(&format!("{}_ironbloom_{suffix}", self.base))
    }

    /// The same in the schema of the table.
    #[cfg(feature = "async-postgres")]
    pub(super) fn derived_in_schema(&self, suffix: &str) -> String {
        format!("{}{}", self.schema, self.derived(suffix))
    }

    /// The row of the generation `$n`, if the table holds it now. It is locked until the write that names it is
    /// committed, in a way that does not hinder others; only a claim waits for it.
    fn named(&self, n: usize) -> String {
        let here = INCARNATION.replace("$1", &format!("'{}'", self.table.replace('\'', "''")));
        format!(
            "with named as materialized (select name from {} where name = 'generation' \
             and substr(value, 1, 16) = ${n} and substr(value, 17) = {here} for key share)",
            self.notes
        )
    }

    pub(super) fn create(&self) -> String {
        let Self { table, notes, .. } = self;
        format!(
            "create table if not exists {table} (key bytea primary key, value bytea not null);
             create table if not exists {notes} (name text primary key, value bytea not null)"
        )
    }

    /// The statements that are prepared, in the order of [`Statements::new`].
    pub(super) fn prepared(&self) -> [String; 11] {
        let table = &self.table;
        let [named_third, named_second] = [3, 2].map(|n| self.named(n));
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
            format!(
                "{named_third} insert into {table} (key, value) select $1::bytea, $2::bytea from named \
                 {conflict} returning xmax = 0"
            ),
            format!(
                "{named_third} insert into {table} (key, value) select pairs.* \
                 from named, unnest($1::bytea[], $2::bytea[]) as pairs {conflict} returning key, xmax = 0"
            ),
            format!(
                "{named_second}, gone as (delete from {table} using named where key = $1 returning key) \
                 select exists (select from named), exists (select from gone)"
            ),
            format!(
                "{named_second}, gone as (delete from {table} using named where key = any($1) returning key) \
                 select exists (select from named), array(select key from gone)"
            ),
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

    /// The same, only in place of one of the generations `$3`; otherwise no row is changed.
    pub(super) fn keep_if(&self) -> String {
        format!(
            "update {} set value = $2::bytea || {INCARNATION} where name = 'generation' \
             and substr(value, 1, 16) = any($3::bytea[]) and substr(value, 17) = {INCARNATION}",
            self.notes
        )
    }

    /// After a new generation was stored: waits for writes that have begun under an earlier one. What begins later is
    /// refused.
    pub(super) fn wait_for_writes(&self) -> String {
        format!(
            "begin; {CLAIM_WITHIN}; select from {} where name = 'generation' for update; commit",
            self.notes
        )
    }

    /// What a new connection compares: the server, its history, when it was started, and the generation of the table `$1`.
    pub(super) fn state(&self) -> String {
        format!(
            "select case when pg_is_in_recovery() then 0 else \
                 ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint end, \
             (select oid::bigint from pg_database where datname = current_database()), \
             (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint, \
             ({})",
            self.generation()
        )
    }

    pub(super) fn forget(&self) -> String {
        format!("delete from {} where name = 'generation'", self.notes)
    }

    pub(super) fn unreachable(&self, error: tokio_postgres::Error) -> PostgresError {
        PostgresError::Unreachable { table: self.name.clone(), error }
    }

    /// The table does not hold the generation that a write has named.
    pub(super) fn refused(&self) -> PostgresError {
        PostgresError::OtherState(self.name.clone())
    }

    /// From the row of a conditional remove.
    pub(super) fn accepted(&self, row: &Row) -> Result<(), PostgresError> {
        if row.get(0) { Ok(()) } else { Err(self.refused()) }
    }

    /// From the rows of a put of many, of which there are none if it was refused.
    pub(super) fn new_ones(
        &self,
        pairs: &[(&[u8], &[u8])],
        rows: &[Row],
    ) -> Result<Vec<Before>, PostgresError> {
        match rows.is_empty() && !pairs.is_empty() {
            true => Err(self.refused()),
            false => Ok(were_new(pairs, rows)),
        }
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
    /// The same four, for a generation that the table must hold.
    pub(super) put_if: Statement,
    pub(super) put_many_if: Statement,
    pub(super) remove_if: Statement,
    pub(super) remove_many_if: Statement,
}

impl Statements {
    pub(super) fn new(prepared: [Statement; 11]) -> Self {
        let [get, get_many, contains, put, put_many, remove, remove_many, rest @ ..] = prepared;
        let [put_if, put_many_if, remove_if, remove_many_if] = rest;
        Self {
            get,
            get_many,
            contains,
            put,
            put_many,
            remove,
            remove_many,
            put_if,
            put_many_if,
            remove_if,
            remove_many_if,
        }
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
fn were_new(pairs: &[(&[u8], &[u8])], rows: &[Row]) -> Vec<Before> {
    let mut new: HashMap<&[u8], bool> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    pairs.iter().map(|(key, _)| Before::stored(!new.insert(key, false).unwrap_or(false))).collect()
}

/// Which of these were removed, from rows of keys; a repeated key was there only once.
pub(super) fn were_removed<'a>(
    keys: &[&[u8]],
    removed: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<Before> {
    let mut removed: HashSet<&[u8]> = removed.into_iter().collect();
    keys.iter().map(|key| Before::stored(removed.remove(key))).collect()
}

/// What a new connection has found, to be compared with what others have. Another one is another server, or the same with
/// another history (a standby that was promoted, a recovery to a point in time), or one that was started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Server {
    timeline: i64,
    database: i64,
    /// Files of a backup take the place of others only while the server is down, perhaps those of the same generation.
    started: i64,
}

impl Server {
    /// From a row of [`Sql::state`], with the generation of the table.
    pub(super) fn of(row: &Row) -> (Self, Option<Generation>) {
        let generation: Option<&[u8]> = row.get(3);
        let server = Self { timeline: row.get(0), database: row.get(1), started: row.get(2) };
        (server, generation.and_then(Generation::from_bytes))
    }
}

/// Whether a claim gave up waiting.
pub(super) fn is_lock_timeout(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
}

/// What is known from the planner's number of rows, which is -1 if there is none.
pub(super) fn length(count: i64) -> Option<u64> {
    u64::try_from(count).ok().filter(|&count| count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_separates_the_schema_from_the_table_unless_it_is_quoted() {
        for (name, table) in [
            ("users", "\"users\""),
            ("app.users", "\"app\".\"users\""),
            ("\"app.users\"", "\"app.users\""),
            ("App.\"a\"\"b\"", "\"App\".\"a\"\"b\""),
        ] {
            assert_eq!(Sql::new(name).unwrap().table, table, "{name}");
        }
        for bad in ["", ".", "a.", ".b", "a.b.c"] {
            assert!(matches!(Sql::new(bad), Err(PostgresError::BadName(_))), "{bad:?}");
        }
    }
}
