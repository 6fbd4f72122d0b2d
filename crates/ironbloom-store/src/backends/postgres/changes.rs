//! What others do to a PostgreSQL table, by `LISTEN` and `NOTIFY`.
//!
//! Triggers on the table notify a channel of every key that a committed transaction has inserted or deleted; an `UPDATE`
//! that changes the key does both. The channel has the number of the table in its name. A notification holds less than
//! 8000 bytes; for a longer key, and for `TRUNCATE`, it only says that something has happened.
//!
//! The triggers are created when somebody listens for the first time, which needs the rights of the table's owner. That
//! waits for transactions that have already written to the table, so that there is none that nobody hears of.

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_postgres::AsyncMessage;

use super::PostgresError;
use super::awaited::{AsyncPostgres, Link, in_time};
use super::sql::{Sql, quoted};
use crate::asynchronous::{Change, Changes, PATIENCE, Watch};

/// Hears what others do to a table. Made by [`Watch::watch`].
pub struct PostgresChanges {
    link: Link,
    heard: UnboundedReceiver<String>,
    sql: Sql,
}

impl std::fmt::Debug for PostgresChanges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PostgresChanges({:?})", self.sql.name)
    }
}

impl Sql {
    /// The channel of the table `$1`, and whether all triggers are there and notify it. Those of a restored table notify
    /// the channel of the table that it was.
    fn channel(&self) -> &'static str {
        "select 'ironbloom_' || to_regclass($1)::oid,
             3 = (select count(*) from pg_trigger where tgrelid = to_regclass($1) and tgenabled = 'A'
                  and tgargs = convert_to('ironbloom_' || tgrelid::oid, 'UTF8') || '\\x00'::bytea)"
    }

    /// In one transaction. Triggers fire always: also for rows that replication or a restore brings.
    fn create_triggers(&self, channel: &str) -> String {
        let name = |suffix: &str| quoted(&format!("{}_ironbloom_{suffix}", self.name));
        let [function, rows, keys, truncate] = ["notify", "rows", "keys", "truncate"].map(name);
        let table = &self.table;
        format!(
            "begin;
             lock table {table} in share row exclusive mode;
             create or replace function {function}() returns trigger language plpgsql as $$
             begin
                 if tg_op = 'TRUNCATE' then
                     perform pg_notify(tg_argv[0], '?');
                     return null;
                 end if;
                 if tg_op <> 'INSERT' then
                     perform pg_notify(tg_argv[0],
                         case when length(old.key) > {LONGEST} then '?' else '-' || encode(old.key, 'hex') end);
                 end if;
                 if tg_op <> 'DELETE' then
                     perform pg_notify(tg_argv[0],
                         case when length(new.key) > {LONGEST} then '?' else '+' || encode(new.key, 'hex') end);
                 end if;
                 return null;
             end $$;
             drop trigger if exists {rows} on {table};
             drop trigger if exists {keys} on {table};
             drop trigger if exists {truncate} on {table};
             create trigger {rows} after insert or delete on {table}
                 for each row execute function {function}('{channel}');
             create trigger {keys} after update on {table}
                 for each row when (old.key is distinct from new.key) execute function {function}('{channel}');
             create trigger {truncate} after truncate on {table}
                 for each statement execute function {function}('{channel}');
             alter table {table} enable always trigger {rows};
             alter table {table} enable always trigger {keys};
             alter table {table} enable always trigger {truncate};
             commit"
        )
    }
}

/// The longest key that is sent, in bytes; it becomes two letters each.
const LONGEST: usize = 3900;

fn change(payload: &str) -> Change {
    let bytes = |text: &str| -> Option<Vec<u8>> {
        if !text.len().is_multiple_of(2) {
            return None;
        }
        let digits = text.as_bytes().chunks(2);
        digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok()).collect()
    };
    let key = payload.get(1..).and_then(bytes);
    match (payload.chars().next(), key) {
        (Some('+'), Some(key)) => Change::Stored(key),
        (Some('-'), Some(key)) => Change::Removed(key),
        _ => Change::Unknown,
    }
}

impl Watch for AsyncPostgres {
    type Changes = PostgresChanges;

    async fn watch(&self) -> Result<PostgresChanges, PostgresError> {
        let (send, heard) = unbounded_channel();
        let link = self.own_link(move |message| match message {
            AsyncMessage::Notification(heard) => send.send(heard.payload().to_owned()).is_ok(),
            _ => true,
        });
        let link = link.await?;
        let sql = self.sql.clone();
        let listen = async {
            let row = link.client.query_one(sql.channel(), &[&sql.table]).await?;
            let (channel, notified): (String, bool) = (row.get(0), row.get(1));
            if !notified {
                link.client.batch_execute(&sql.create_triggers(&channel)).await?;
            }
            link.client.batch_execute(&format!("listen {channel}")).await
        };
        listen.await.map_err(|error| sql.error(error))?;
        Ok(PostgresChanges { link, heard, sql })
    }
}

impl Changes for PostgresChanges {
    type Error = PostgresError;

    async fn next(&mut self) -> Result<Change, PostgresError> {
        loop {
            match tokio::time::timeout(PATIENCE, self.heard.recv()).await {
                Ok(Some(payload)) => return Ok(change(&payload)),
                Ok(None) => return Err(PostgresError::Lost),
                // Silence may be a cable that is cut.
                Err(_) => in_time(PATIENCE, &self.sql, self.link.client.check_connection()).await?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_keys_that_came_or_went() {
        assert_eq!(change("+00ff"), Change::Stored(vec![0, 255]));
        assert_eq!(change("-"), Change::Removed(Vec::new()));
        for odd in ["?", "", "+0", "+zz", "x00", "é"] {
            assert_eq!(change(odd), Change::Unknown, "{odd}");
        }
    }
}
