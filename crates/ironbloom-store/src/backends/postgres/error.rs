//! How a PostgreSQL table fails.

use std::fmt;

use crate::backend::Failure;

/// An error from a PostgreSQL table.
#[derive(Debug)]
#[non_exhaustive]
pub enum PostgresError {
    /// The server, or the connection to it. The message has the words of the server and its SQLSTATE.
    Server {
        /// The table that was asked for.
        table: String,
        /// What the server said, or how the connection failed.
        error: tokio_postgres::Error,
    },
    /// There is no connection to the server: nothing was sent.
    Unreachable {
        /// The table that was asked for.
        table: String,
        /// How connecting failed.
        error: tokio_postgres::Error,
    },
    /// The table does not hold the generation that this handle gave it: it was restored, replaced, or is another one.
    OtherState(String),
    /// The connection string is wrong.
    Address(tokio_postgres::Error),
    /// The connection string wants TLS, and this crate was compiled without its feature `tls`.
    WithoutTls,
    /// Certificates or keys cannot be used.
    #[cfg(feature = "tls")]
    Tls(crate::TlsError),
    /// The name of the table is too long for the names that are derived from it.
    LongName(String),
    /// The name of the table is none: `table` or `schema.table`.
    BadName(String),
    /// The server did not answer in time.
    TimedOut(&'static str),
    /// The connection that listened for changes is lost.
    Lost,
    /// Changes of the table would not be heard: its triggers are gone, disabled or changed, another table has its name, or
    /// one inherits from it.
    Unheard(String),
    /// It was called inside an async runtime, where nothing may block: use [`AsyncPostgres`](crate::AsyncPostgres), or a
    /// separate thread, for example with `tokio::task::spawn_blocking`.
    #[cfg_attr(
        not(feature = "async-postgres"),
        allow(rustdoc::broken_intra_doc_links, reason = "the feature is off")
    )]
    InsideRuntime,
    /// It was awaited outside a runtime of tokio, which its connections need.
    OutsideRuntime,
}

impl fmt::Display for PostgresError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server { table, error } | Self::Unreachable { table, error } => {
                write!(f, "table {table:?}: ")?;
                explain(error, f)
            }
            Self::OtherState(table) => {
                write!(f, "table {table:?} was restored or replaced")
            }
            Self::BadName(name) => write!(f, "not the name of a table: {name:?}"),
            Self::Address(error) => explain(error, f),
            Self::WithoutTls => {
                write!(
                    f,
                    "TLS was requested, but ironbloom-store was compiled without its feature `tls`"
                )
            }
            #[cfg(feature = "tls")]
            Self::Tls(error) => error.fmt(f),
            Self::LongName(name) => {
                write!(f, "the name {name:?} has more than {LONGEST_NAME} bytes")
            }
            Self::TimedOut(what) => write!(f, "PostgreSQL did not answer in time: {what}"),
            Self::Lost => {
                write!(f, "the connection to PostgreSQL that listened for changes is lost")
            }
            Self::Unheard(table) => write!(
                f,
                "changes of table {table:?} are not heard: its triggers are gone or changed, another table has its name, \
                 or one inherits from it"
            ),
            Self::InsideRuntime => {
                write!(
                    f,
                    "PostgreSQL was called inside an asynchronous runtime; use a thread for it"
                )
            }
            Self::OutsideRuntime => {
                write!(f, "PostgreSQL was awaited outside a runtime of tokio")
            }
        }
    }
}

impl PostgresError {
    /// The same error, if it came while connecting.
    #[cfg(feature = "async-postgres")]
    pub(super) fn before_sending(self) -> Self {
        match self {
            Self::Server { table, error } => Self::Unreachable { table, error },
            other => other,
        }
    }

    /// A statement that the server has answered with an error was rolled back. If the server has ended the session, or
    /// the connection is lost, it may have been carried out.
    pub(super) fn failure(&self) -> Failure {
        match self {
            Self::OtherState(_) => Failure::OtherState,
            Self::Server { error, .. } if !super::sql::survives(error) => Failure::Unknown,
            Self::Server { .. }
            | Self::Unreachable { .. }
            | Self::TimedOut(_)
            | Self::InsideRuntime
            | Self::OutsideRuntime => Failure::NotDone,
            _ => Failure::Unknown,
        }
    }
}

/// Names have 63 bytes, and the longest that is derived adds `_ironbloom_truncate`.
pub(super) const LONGEST_NAME: usize = 44;

/// The crate itself only says "db error".
fn explain(error: &tokio_postgres::Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some(told) = error.as_db_error() else {
        write!(f, "{error}")?;
        let mut cause = std::error::Error::source(error);
        while let Some(next) = cause {
            write!(f, ": {next}")?;
            cause = next.source();
        }
        return Ok(());
    };
    write!(f, "{}: {} ({})", told.severity(), told.message(), told.code().code())?;
    for more in [told.detail(), told.hint()].into_iter().flatten() {
        write!(f, ": {more}")?;
    }
    Ok(())
}

/// All causes are already in the message.
impl std::error::Error for PostgresError {}
