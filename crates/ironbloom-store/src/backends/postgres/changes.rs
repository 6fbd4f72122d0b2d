//! What others do to a PostgreSQL table, by `LISTEN` and `NOTIFY`.
//!
//! Triggers on the table notify a channel of every key that a committed transaction has inserted or deleted; an `UPDATE`
//! that changes the key does both. The channel has the number of the table in its name. A notification holds less than
//! 8000 bytes; for a longer key, and for `TRUNCATE`, it only says that something has happened.
//!
//! The triggers are created when somebody listens for the first time, which needs the rights of the table's owner. That
//! waits for transactions that have already written to the table, so that there is none that nobody hears of.
//!
//! Whether changes would be heard is proved at intervals: the table of this name is still the one whose channel is
//! listened to, its triggers are there, enabled, and call the function as it was written; no other table inherits from it,
//! whose rows would be among its own and have no triggers; a new connection leads to the same server; and a notification
//! of our own arrives.

use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_postgres::AsyncMessage;

use super::PostgresError;
use super::address::Address;
use super::awaited::{AsyncPostgres, Link, in_time, link, state};
use super::sql::Sql;
use crate::follow::{Change, Changes, Proof, Step, Watch};
use crate::generation::Generation;

/// Hears what others do to a table. Made by [`Watch::watch`].
pub struct PostgresChanges {
    link: Link,
    address: Address,
    heard: UnboundedReceiver<String>,
    sql: Sql,
    channel: String,
    proof: Proof,
    /// The notification that was caused last.
    caused: String,
}

impl std::fmt::Debug for PostgresChanges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PostgresChanges({:?})", self.sql.name)
    }
}

impl Sql {
    /// The channel of the table `$1`; whether all triggers are there and notify it by the function with the source `$2`,
    /// and whether other tables inherit from it. Triggers of a restored table notify the channel of the table that it
    /// was.
    fn channel(&self) -> &'static str {
        "select 'ironbloom_' || to_regclass($1)::oid,
             3 = (select count(*) from pg_trigger join pg_proc on pg_proc.oid = tgfoid
                  where tgrelid = to_regclass($1) and tgenabled = 'A' and prosrc = $2
                  and tgargs = convert_to('ironbloom_' || tgrelid::oid, 'UTF8') || '\\x00'::bytea),
             exists (select from pg_inherits where inhparent = to_regclass($1))"
    }

    /// In one transaction. Triggers fire always: also for rows that replication or a restore brings.
    fn create_triggers(&self, channel: &str) -> String {
        let [rows, keys, truncate] = ["rows", "keys", "truncate"].map(|name| self.derived(name));
        let function = self.derived_in_schema("notify");
        let table = &self.table;
        format!(
            "begin;
             lock table {table} in share row exclusive mode;
             create or replace function {function}() returns trigger language plpgsql as $${NOTIFY}$$;
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

/// The function of the triggers. The longest key that is sent has 3900 bytes, which become two letters each.
const NOTIFY: &str = "
             begin
                 if tg_op = 'TRUNCATE' then
                     perform pg_notify(tg_argv[0], '?');
                     return null;
                 end if;
                 if tg_op <> 'INSERT' then
                     perform pg_notify(tg_argv[0],
                         case when length(old.key) > 3900 then '?' else '-' || encode(old.key, 'hex') end);
                 end if;
                 if tg_op <> 'DELETE' then
                     perform pg_notify(tg_argv[0],
                         case when length(new.key) > 3900 then '?' else '+' || encode(new.key, 'hex') end);
                 end if;
                 return null;
             end";
/// How a notification begins that a follower has caused itself. Those of triggers begin otherwise.
const CAUSED: char = '!';

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

impl PostgresChanges {
    /// Whether what is listened to is still what the table notifies; then causes a notification.
    async fn prove(&mut self) -> Result<(), PostgresError> {
        self.caused = format!("{CAUSED}{}", Generation::fresh());
        let asked = async {
            let row =
                self.link.client.query_one(self.sql.channel(), &[&self.sql.table, &NOTIFY]).await?;
            let channel: Option<&str> = row.get(0);
            let guards = link(&self.address, |_| true).await?; // where the guard would ask now
            let (there, here) =
                (state(&guards, &self.sql).await?.0, state(&self.link, &self.sql).await?.0);
            let notified = row.get(1) && !row.get::<_, bool>(2);
            let heard = channel == Some(&self.channel) && notified && there == here;
            if heard {
                let notify = "select pg_notify($1, $2)";
                self.link.client.execute(notify, &[&self.channel, &self.caused]).await?;
            }
            Ok(heard)
        };
        match in_time(PROOF, &self.sql, asked).await? {
            true => Ok(()),
            false => Err(PostgresError::Unheard(self.sql.name.clone())),
        }
    }
}

/// How long the server may take to answer.
const PROOF: Duration = Duration::from_secs(10);

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
            // After a table was dropped, another one may have its name, or none.
            link.client.batch_execute(&sql.create()).await?;
            let row = link.client.query_one(sql.channel(), &[&sql.table, &NOTIFY]).await?;
            let (channel, notified): (String, bool) = (row.get(0), row.get(1));
            if !notified {
                link.client.batch_execute(&sql.create_triggers(&channel)).await?;
            }
            link.client.batch_execute(&format!("listen {channel}")).await?;
            Ok(channel)
        };
        let channel = listen.await.map_err(|error| sql.error(error))?;
        let (proof, caused) = (Proof::new(self.prove_every), String::new());
        let mut changes = PostgresChanges {
            link,
            address: self.address.clone(),
            heard,
            sql,
            channel,
            proof,
            caused,
        };
        changes.prove().await?;
        Ok(changes)
    }

    /// An update that leaves the key as it is fires no trigger.
    fn reports_overwriting(&self) -> bool {
        false
    }
}

impl Changes for PostgresChanges {
    type Error = PostgresError;

    async fn next(&mut self) -> Result<Change, PostgresError> {
        loop {
            match self.proof.step() {
                Step::Deaf => return Err(PostgresError::Unheard(self.sql.name.clone())),
                Step::Prove => self.prove().await?,
                Step::Listen(until) => {
                    let heard = tokio::time::timeout_at(until, self.heard.recv()).await;
                    match heard {
                        Ok(Some(caused)) if caused.starts_with(CAUSED) => {
                            if caused == self.caused {
                                self.proof.heard();
                            }
                        }
                        Ok(Some(payload)) => return Ok(change(&payload)),
                        Ok(None) => return Err(PostgresError::Lost),
                        Err(_) => {}
                    }
                }
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
