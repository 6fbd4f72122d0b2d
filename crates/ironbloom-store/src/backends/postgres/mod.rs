//! A PostgreSQL table, `key bytea primary key, value bytea`.
//!
//! Others can write to the table at any time. Therefore:
//!
//! - A checkpoint is trusted only if the user promises that all writes go through guards
//!   ([`Options::only_writer`](crate::Options::only_writer)). Otherwise the filter is built from a scan when the store
//!   is opened.
//! - What others insert while the guard is open is answered "absent" until it is [noted](crate::Guard::note). A
//!   `Follower` does that, with `LISTEN` on a channel that triggers notify.
//! - What others delete does no harm.

mod address;
#[cfg(feature = "async-postgres")]
mod awaited;
mod blocking;
#[cfg(feature = "async-postgres")]
mod changes;
mod error;
mod sql;

#[cfg(feature = "async-postgres")]
pub use self::awaited::AsyncPostgres;
pub use self::blocking::Postgres;
#[cfg(feature = "async-postgres")]
pub use self::changes::PostgresChanges;
pub use self::error::PostgresError;
