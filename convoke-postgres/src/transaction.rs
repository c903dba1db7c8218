//! A transaction: a resource that commits or rolls back when it is closed.

use core::fmt;
use core::ops::Deref;

use convoke_task::{AsyncClose, Exit};

use crate::connection::Connection;
use crate::error::Error;
use crate::status::State;

/// Transaction on a connection of a [`Pool`](crate::Pool): see [`Pool::transaction`](crate::Pool::transaction) and
/// [`Pool::begin`](crate::Pool::begin). It has the methods of [`Connection`].
///
/// Its close commits if the body returned a value, and rolls back if it failed, was stopped or panicked. Then its
/// connection is free again. Dropped without a close, its connection is cut, and the server rolls back.
pub struct Transaction {
    connection: Connection,
}

/// Options of a transaction: see [`Pool::begin_with`](crate::Pool::begin_with).
///
/// ```no_run
/// use convoke::prelude::*;
/// use convoke_postgres::{Begin, Error, Isolation, Pool};
///
/// async fn report(pool: &Pool) -> Result<i64, Error> {
///     let how = Begin::new().isolation(Isolation::RepeatableRead).read_only();
///     using(pool.begin_with(how).await?, async |tx| {
///         Ok(tx.query_one("SELECT sum(balance)::bigint FROM accounts", &[]).await?.get(0))
///     })
///     .await
/// }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Begin {
    isolation: Option<Isolation>,
    read_only: bool,
}

/// Isolation level of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Each statement sees what was committed before it. PostgreSQL's default.
    ReadCommitted,
    /// All statements see what was committed before the first.
    RepeatableRead,
    /// As if transactions ran one after the other. Some fail for that, and are
    /// [worth a retry](Error::is_worth_a_retry).
    Serializable,
}

impl Begin {
    /// Creates the default: as the server is configured.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the isolation level.
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = Some(isolation);
        self
    }

    /// Refuses statements that write.
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    fn statement(self) -> String {
        let isolation = match self.isolation {
            None => "",
            Some(Isolation::ReadCommitted) => " ISOLATION LEVEL READ COMMITTED",
            Some(Isolation::RepeatableRead) => " ISOLATION LEVEL REPEATABLE READ",
            Some(Isolation::Serializable) => " ISOLATION LEVEL SERIALIZABLE",
        };
        format!("BEGIN{isolation}{}", if self.read_only { " READ ONLY" } else { "" })
    }
}

impl Transaction {
    pub(crate) async fn begin(connection: Connection, how: Begin) -> Result<Self, Error> {
        let transaction = Self { connection };
        // Shielded with its clean-up: a `BEGIN` that is stopped is cancelled or answered, and then rolled back.
        convoke_task::using(Beginning(Some(transaction)), async |mut beginning| {
            let Some(transaction) = &beginning.0 else { return Err(Error::Closed) };
            transaction.batch_execute(&how.statement()).await?;
            beginning.0.take().ok_or(Error::Closed)
        })
        .await
    }

    async fn commit(&self) -> Result<(), Error> {
        let (session, pool) = (self.connection.session(), self.connection.surroundings());
        match session.settle(pool).await? {
            State::InTransaction => {}
            State::Failed => return Err(Error::RolledBack),
            // The body has ended it itself.
            State::Idle => return Ok(()),
        }
        match session.call(pool, session.client().batch_execute("COMMIT")).await {
            Err(Error::Postgres(error)) if error.is_closed() || error.as_db_error().is_none() => {
                Err(Error::CommitUnknown(error))
            }
            ended => ended,
        }
    }
}

/// A transaction whose `BEGIN` is under way. If it does not succeed, its connection is returned.
struct Beginning(Option<Transaction>);

impl AsyncClose for Beginning {
    type Error = convoke_core::Never;

    async fn close(self, _: Exit) -> Result<(), Self::Error> {
        if let Some(transaction) = self.0 {
            transaction.connection.give_back().await;
        }
        Ok(())
    }
}

impl AsyncClose for Transaction {
    type Error = Error;

    async fn close(self, exit: Exit) -> Result<(), Error> {
        let ended = if exit.is_clean() { self.commit().await } else { Ok(()) };
        // Rolls back what is still open.
        self.connection.give_back().await;
        ended
    }
}

impl Deref for Transaction {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Transaction").field(&self.connection).finish()
    }
}
