//! A PostgreSQL table for tasks of a tokio runtime.

use std::time::Duration;

use futures_util::future::try_join_all;
use futures_util::stream::{self, StreamExt};
use tokio::task::JoinHandle;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, NoTls, Socket};

use super::PostgresError;
use super::address::Address;
use super::sql::{self, PAGE, Server, Sql, Statements};
use crate::backend::{AsyncBackend, Before, Failure, Visit};
use crate::backends::Connections;
use crate::backends::naming::Naming;
use crate::backends::pool::{Pool, Pooled, Taken};
use crate::generation::Generation;

type Result<T> = std::result::Result<T, PostgresError>;

/// A PostgreSQL table, asked asynchronously: for an [`AsyncGuard`](crate::AsyncGuard) inside a runtime of tokio.
///
/// Tables, connection strings and TLS are as for [`Postgres`](crate::Postgres). A future that is dropped closes the
/// connection that it was using; what it was writing may still be written.
#[derive(Debug)]
pub struct AsyncPostgres {
    pub(super) address: Address,
    timeout: Duration,
    pub(super) prove_every: Duration,
    pub(super) sql: Sql,
    pool: Pool<Session>,
    naming: Naming<Server>,
}

/// A connection, and the task that reads from it and writes to it. The task ends with it.
pub(super) struct Link {
    pub(super) client: Client,
    driver: JoinHandle<()>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A connection with its prepared statements.
struct Session {
    link: Link,
    statements: Statements,
}

impl Pooled for Session {
    type Error = tokio_postgres::Error;

    fn survives(error: &tokio_postgres::Error) -> bool {
        sql::survives(error)
    }
}

/// Connects, and hands every message that no request has asked for to `hear`, until that says stop.
async fn open<T: MakeTlsConnect<Socket> + Send>(
    address: &Address,
    tls: T,
    mut hear: impl FnMut(AsyncMessage) -> bool + Send + 'static,
) -> std::result::Result<Link, tokio_postgres::Error>
where
    T::Stream: Send + 'static,
    T::TlsConnect: Send,
    <T::TlsConnect as tokio_postgres::tls::TlsConnect<Socket>>::Future: Send,
{
    let (client, mut connection) = address.config.connect(tls).await?;
    let driver = tokio::spawn(async move {
        let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
        while let Some(Ok(message)) = messages.next().await {
            if !hear(message) {
                return;
            }
        }
    });
    Ok(Link { client, driver })
}

pub(super) async fn link(
    address: &Address,
    hear: impl FnMut(AsyncMessage) -> bool + Send + 'static,
) -> std::result::Result<Link, tokio_postgres::Error> {
    #[cfg(feature = "tls")]
    if let Some(tls) = &address.tls {
        return open(address, tls.clone(), hear).await;
    }
    open(address, NoTls, hear).await
}

/// Which server this is, and the generation of its table.
pub(super) async fn state(
    link: &Link,
    sql: &Sql,
) -> std::result::Result<(Server, Option<Generation>), tokio_postgres::Error> {
    let row = link.client.query_one(&sql.state(), &[&sql.table]).await?;
    Ok(Server::of(&row))
}

impl Session {
    async fn new(link: Link, sql: &Sql) -> std::result::Result<Self, tokio_postgres::Error> {
        let texts = sql.prepared();
        let prepared = try_join_all(texts.iter().map(|text| link.client.prepare(text))).await?;
        let prepared = prepared.try_into().expect("one for each text");
        Ok(Self { link, statements: Statements::new(prepared) })
    }
}

impl AsyncPostgres {
    /// Connects to a server (`host=localhost user=me`, or `postgresql://…`) and opens a table, or creates one. A
    /// second, small table holds the generation, `<table>_ironbloom`.
    pub async fn connect(url: &str, table: &str) -> Result<Self> {
        Self::connect_with(url, table, &Connections::default()).await
    }

    /// The same, with settings for the connections.
    pub async fn connect_with(url: &str, table: &str, connections: &Connections) -> Result<Self> {
        let sql = Sql::new(table)?;
        let address = Address::new(url, connections)?;
        let first = in_time(connections.timeout, &sql, async {
            let link = link(&address, |_| true).await?;
            link.client.batch_execute(&sql.create()).await?;
            Session::new(link, &sql).await
        });
        let pool = Pool::new(connections.max, first.await?);
        let Connections { timeout, prove_every, .. } = *connections;
        let naming = Naming::new();
        let store = Self { address, timeout, prove_every, sql, pool, naming };
        let taken = store.take().await?;
        let compared = store.compare(&taken.connection.link).await;
        store.end(taken, compared)?;
        Ok(store)
    }

    /// Connects, and compares what the server holds with what it should: it may be another one.
    async fn reconnect(&self) -> std::result::Result<Link, tokio_postgres::Error> {
        let link = link(&self.address, |_| true).await?;
        self.compare(&link).await?;
        Ok(link)
    }

    async fn compare(&self, link: &Link) -> std::result::Result<(), tokio_postgres::Error> {
        let (server, generation) = state(link, &self.sql).await?;
        if self.naming.is_exchanged(Some(server), generation, 0) {
            self.pool.renew();
        }
        Ok(())
    }

    /// A connection besides those of the pool.
    pub(super) async fn own_link(
        &self,
        hear: impl FnMut(AsyncMessage) -> bool + Send + 'static,
    ) -> Result<Link> {
        in_time(self.timeout, &self.sql, link(&self.address, hear)).await
    }

    async fn take(&self) -> Result<Taken<'_, Session>> {
        let permit = self.pool.permit().await;
        while let Some((session, quiet)) = permit.idle() {
            let lost = session.link.client.is_closed();
            if !lost && (!quiet || self.is_alive(&session).await) {
                return Ok(permit.fill(session));
            }
        }
        let session = async { Session::new(self.reconnect().await?, &self.sql).await };
        let session = in_time(self.timeout, &self.sql, session).await;
        Ok(permit.fill(session.map_err(PostgresError::before_sending)?))
    }

    async fn is_alive(&self, session: &Session) -> bool {
        let check = session.link.client.check_connection();
        in_time(self.timeout, &self.sql, check).await.is_ok()
    }

    /// Before a write: writing without a guard makes the server forget its generation.
    async fn break_seal(&self) -> Result<()> {
        if self.naming.is_sealed() {
            let taken = self.take().await?;
            let answer = taken.connection.link.client.execute(&self.sql.forget(), &[]).await;
            self.end(taken, answer)?;
            self.naming.broken();
        }
        Ok(())
    }

    async fn keep(&self, generation: Generation, sealed: bool) -> Result<()> {
        let bytes = &generation.to_bytes()[..];
        let known = self.naming.begin(generation, sealed);
        let known: Vec<[u8; 16]> = known.into_iter().map(Generation::to_bytes).collect();
        let known: Vec<&[u8]> = known.iter().map(|known| &known[..]).collect();
        let taken = self.take().await?;
        let client = &taken.connection.link.client;
        let keep = async {
            let table = &self.sql.table;
            if !known.is_empty() {
                if client.execute(&self.sql.keep_if(), &[table, &bytes, &known]).await? > 0 {
                    return Ok(());
                }
                self.naming.exchange();
            }
            client.execute(&self.sql.keep(), &[table, &bytes]).await.map(drop)
        };
        let kept = keep.await;
        self.end(taken, kept)?;
        self.naming.end(generation, sealed);
        Ok(())
    }

    fn end<T>(
        &self,
        taken: Taken<'_, Session>,
        answer: std::result::Result<T, tokio_postgres::Error>,
    ) -> Result<T> {
        taken.end(answer).map_err(|error| self.sql.error(error))
    }
}

/// The answer to this, unless it takes too long; and an error, not a panic, where there is no runtime.
pub(super) async fn in_time<T>(
    limit: Duration,
    sql: &Sql,
    answer: impl Future<Output = std::result::Result<T, tokio_postgres::Error>>,
) -> Result<T> {
    if tokio::runtime::Handle::try_current().is_err() {
        return Err(PostgresError::OutsideRuntime);
    }
    match tokio::time::timeout(limit, answer).await {
        Ok(answer) => answer.map_err(|error| sql.error(error)),
        Err(_) => Err(PostgresError::TimedOut("connecting")),
    }
}

impl AsyncBackend for AsyncPostgres {
    type Error = PostgresError;

    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let taken = self.take().await?;
        let Session { link, statements } = &taken.connection;
        let row = link.client.query_opt(&statements.get, &[&key]).await;
        Ok(self.end(taken, row)?.map(|row| row.get(0)))
    }

    async fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        let taken = self.take().await?;
        let Session { link, statements } = &taken.connection;
        let rows = link.client.query(&statements.get_many, &[&keys]).await;
        Ok(sql::values(keys, &self.end(taken, rows)?))
    }

    async fn contains(&self, key: &[u8]) -> Result<bool> {
        let taken = self.take().await?;
        let Session { link, statements } = &taken.connection;
        let row = link.client.query_one(&statements.contains, &[&key]).await;
        Ok(self.end(taken, row)?.get(0))
    }

    async fn put(&self, key: &[u8], value: &[u8]) -> Result<Before> {
        self.break_seal().await?;
        let held = self.naming.condition().map(Generation::to_bytes);
        let taken = self.take().await?;
        let Session { link, statements } = &taken.connection;
        let row = match held.as_ref().map(|held| &held[..]) {
            None => link.client.query_opt(&statements.put, &[&key, &value]).await,
            Some(held) => link.client.query_opt(&statements.put_if, &[&key, &value, &held]).await,
        };
        let row = self.end(taken, row)?.ok_or_else(|| self.sql.refused())?;
        Ok(Before::stored(!row.get::<_, bool>(0)))
    }

    /// In one statement: all or none.
    async fn put_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<Before>> {
        self.break_seal().await?;
        let (keys, values) = sql::last_values(pairs);
        let held = self.naming.condition().map(Generation::to_bytes);
        let taken = self.take().await?;
        let Session { link, statements } = &taken.connection;
        let rows = match held.as_ref().map(|held| &held[..]) {
            None => link.client.query(&statements.put_many, &[&keys, &values]).await,
            Some(held) => {
                link.client.query(&statements.put_many_if, &[&keys, &values, &held]).await
            }
        };
        self.sql.new_ones(pairs, &self.end(taken, rows)?)
    }

    async fn remove(&self, key: &[u8]) -> Result<Before> {
        self.break_seal().await?;
        let held = self.naming.condition().map(Generation::to_bytes);
        let taken = self.take().await?;
        let Session { link, statements } = &taken.connection;
        let Some(held) = held.as_ref().map(|held| &held[..]) else {
            let removed = link.client.execute(&statements.remove, &[&key]).await;
            return Ok(Before::stored(self.end(taken, removed)? > 0));
        };
        let row = link.client.query_one(&statements.remove_if, &[&key, &held]).await;
        let row = self.end(taken, row)?;
        self.sql.accepted(&row)?;
        Ok(Before::stored(row.get(1)))
    }

    /// In one statement: all or none.
    async fn remove_many(&self, keys: &[&[u8]]) -> Result<Vec<Before>> {
        self.break_seal().await?;
        let held = self.naming.condition().map(Generation::to_bytes);
        let taken = self.take().await?;
        let Session { link, statements } = &taken.connection;
        let Some(held) = held.as_ref().map(|held| &held[..]) else {
            let rows = link.client.query(&statements.remove_many, &[&keys]).await;
            let rows = self.end(taken, rows)?;
            return Ok(sql::were_removed(keys, rows.iter().map(|row| row.get(0))));
        };
        let row = link.client.query_one(&statements.remove_many_if, &[&keys, &held]).await;
        let row = self.end(taken, row)?;
        self.sql.accepted(&row)?;
        Ok(sql::were_removed(keys, row.get::<_, Vec<&[u8]>>(1)))
    }

    /// A consistent snapshot, over a connection of its own: those of the pool are for others meanwhile.
    async fn scan(&self, visit: Visit<'_>) -> Result<()> {
        let mut link = in_time(self.timeout, &self.sql, self.reconnect()).await?;
        let scan = async {
            let transaction = link.client.transaction().await?;
            let all = transaction.bind(&self.sql.scan(), &[]).await?;
            loop {
                let rows = transaction.query_portal(&all, PAGE).await?;
                let visited = rows.iter().try_for_each(|row| visit(row.get(0)));
                if rows.is_empty() || visited.is_break() {
                    return transaction.commit().await;
                }
            }
        };
        scan.await.map_err(|error| self.sql.error(error))
    }

    /// The number found by the last `analyze` or `vacuum`.
    async fn len_hint(&self) -> Result<Option<u64>> {
        let taken = self.take().await?;
        let client = &taken.connection.link.client;
        let answer = async {
            if !client.query_one(&self.sql.any(), &[]).await?.get::<_, bool>(0) {
                return Ok(Some(0));
            }
            let row = client.query_one(self.sql.count(), &[&self.sql.table]).await?;
            Ok(sql::length(row.get(0)))
        };
        let answer = answer.await;
        self.end(taken, answer)
    }

    async fn generation(&self) -> Result<Option<Generation>> {
        let taken = self.take().await?;
        let client = &taken.connection.link.client;
        let kept = client.query_opt(&self.sql.generation(), &[&self.sql.table]).await;
        let kept = self.end(taken, kept)?;
        let kept = kept.and_then(|row| Generation::from_bytes(row.get(0)));
        self.naming.found(kept);
        Ok(kept)
    }

    async fn set_generation(&self, generation: Generation) -> Result<()> {
        self.keep(generation, false).await
    }

    async fn seal(&self, generation: Generation) -> Result<()> {
        self.keep(generation, true).await
    }

    /// Writes lock the row of the generation, so a lock that excludes those is there when all have ended.
    async fn claim(&self, generation: Generation) -> Result<bool> {
        self.keep(generation, false).await?;
        self.naming.claim();
        let taken = self.take().await?;
        let client = &taken.connection.link.client;
        let waited = match client.batch_execute(&self.sql.wait_for_writes()).await {
            Ok(()) => Ok(true),
            Err(error) if sql::is_lock_timeout(&error) => {
                client.batch_execute("rollback").await.map(|()| false)
            }
            Err(error) => Err(error),
        };
        self.end(taken, waited)
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
