//! The error of a pool, its connections and transactions.

use core::fmt;
use std::io;
use std::time::Duration;

use tokio_postgres::error::SqlState;

/// Error of a [`Pool`](crate::Pool), its connections and its transactions. Errors of tokio-postgres become it by `?`.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// No server could be reached, or none has answered within the connect time.
    Connect(io::Error),
    /// Something else of the program failed, and has become this error by `?`: a file with certificates, for example.
    Io(io::Error),
    /// A statement failed, a server has refused the connection, or the connection is lost.
    Postgres(tokio_postgres::Error),
    /// No connection was free within the acquire time.
    NoneFree {
        /// The bound of the pool.
        connections: usize,
        /// The time that was waited.
        waited: Duration,
    },
    /// A transaction was rolled back although its body has returned a value: a statement in it had failed or was cut
    /// short, and PostgreSQL commits no such transaction.
    RolledBack,
    /// The connection was lost while the server committed: the transaction may be committed or not. Only the
    /// program can find out, for example by a key that the transaction has inserted.
    CommitUnknown(tokio_postgres::Error),
    /// The pool has ended.
    Closed,
}

impl Error {
    /// Returns the code of the error that a server has sent.
    pub fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Postgres(error) | Self::CommitUnknown(error) => error.code(),
            _ => None,
        }
    }

    /// Returns true if the same transaction may succeed when it is run again: a serialisation failure, or a
    /// deadlock.
    pub fn is_worth_a_retry(&self) -> bool {
        matches!(self.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED))
    }

    /// Returns true if the statement was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.code() == Some(&SqlState::QUERY_CANCELED)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => write!(f, "cannot connect to PostgreSQL: {error}"),
            Self::Io(error) => error.fmt(f),
            Self::Postgres(error) => match error.as_db_error() {
                Some(told) => write!(f, "PostgreSQL: {told}"),
                None => write!(f, "PostgreSQL: {error}"),
            },
            Self::NoneFree { connections, waited } => {
                write!(f, "all {connections} connections of the pool were in use for {waited:?}")
            }
            Self::RolledBack => f.write_str(
                "the transaction was rolled back, because a statement in it had failed or was cut short",
            ),
            Self::CommitUnknown(error) => {
                write!(f, "the connection was lost while it committed, and the outcome is unknown: {error}")
            }
            Self::Closed => f.write_str("the pool has ended"),
        }
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Connect(error) => Some(error),
            // Its text is that of this error.
            Self::Io(error) => error.source(),
            Self::Postgres(error) | Self::CommitUnknown(error) => Some(error),
            Self::NoneFree { .. } | Self::RolledBack | Self::Closed => None,
        }
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Connect(error) | Error::Io(error) => error,
            error => Self::other(error),
        }
    }
}
