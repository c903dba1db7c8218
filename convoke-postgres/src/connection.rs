//! A connection that is lent by a pool: its statements, and its way back.

use core::fmt;
use core::future::Future;
use std::sync::Arc;

use convoke_core::Never;
use convoke_task::{AsyncClose, Exit};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, SimpleQueryMessage, Statement, ToStatement};

use crate::error::Error;
use crate::session::Session;
use crate::shared::PoolState;
use crate::status::State;
use crate::surroundings::Surroundings;

/// Connection of a [`Pool`](crate::Pool), lent by [`Pool::get`](crate::Pool::get). `using` returns it.
///
/// A stop during one of its statements cancels that on the server, and awaits its end. What a statement did
/// before it was cancelled is undone by PostgreSQL.
///
/// On its way back, a connection whose server has not said that it is idle is rolled back; one that does not
/// answer in time is cut. Settings, temporary tables and advisory locks of the session stay. Dropped without a
/// close, it is not handed out again.
pub struct Connection {
    pool: Arc<PoolState>,
    /// `Some` until it is closed or dropped.
    session: Option<Session>,
}

const LENT: &str = "a connection has its session until it is closed";

/// Makes a method that sends a statement.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident($argument:ident) -> $output:ty;)+) => {$(
        $(#[$doc])*
        pub async fn $name<T>(&self, statement: &T, $argument: &[&(dyn ToSql + Sync)]) -> Result<$output, Error>
        where
            T: ?Sized + ToStatement,
        {
            self.call(self.session().client().$name(statement, $argument)).await
        }
    )+};
}

impl Connection {
    pub(crate) fn new(pool: Arc<PoolState>, session: Session) -> Self {
        Self { pool, session: Some(session) }
    }

    statements! {
        /// Executes a statement, and returns its rows. A `&str` is prepared first, which costs a round trip: see
        /// [`prepare_cached`](Connection::prepare_cached).
        ///
        /// - *Completes with* the rows, or an error.
        /// - *If dropped*, its answer is ignored; the connection is rolled back before somebody else has it. A stop cancels the
        ///   statement.
        /// - *Runs on* the task.
        query(parameters) -> Vec<Row>;
        /// Executes a statement that returns one row, and returns that. Fails if there are none or more. Apart from that
        /// it works as [`query`](Connection::query).
        query_one(parameters) -> Row;
        /// Executes a statement that returns at most one row. Apart from that it works as [`query`](Connection::query).
        query_opt(parameters) -> Option<Row>;
        /// Executes a statement, and returns the number of rows that it has changed. Apart from that it works as
        /// [`query`](Connection::query).
        execute(parameters) -> u64;
    }

    /// Executes several statements without parameters, separated by semicolons. Apart from that it works as
    /// [`query`](Connection::query).
    pub async fn batch_execute(&self, statements: &str) -> Result<(), Error> {
        self.call(self.session().client().batch_execute(statements)).await
    }

    /// Executes several statements without parameters, and returns their rows as text. Apart from that it works as
    /// [`query`](Connection::query).
    pub async fn simple_query(&self, statements: &str) -> Result<Vec<SimpleQueryMessage>, Error> {
        self.call(self.session().client().simple_query(statements)).await
    }

    /// Prepares a statement. It is closed when its last clone is dropped.
    pub async fn prepare(&self, statement: &str) -> Result<Statement, Error> {
        self.call(self.session().client().prepare(statement)).await
    }

    /// Prepares a statement, unless this connection remembers it from before: it does so for the
    /// [`STATEMENTS`](crate::STATEMENTS) that were used last. For statements whose text is one of a few.
    ///
    /// ```no_run
    /// use convoke_postgres::{Connection, Error};
    ///
    /// async fn balance(connection: &Connection, account: i32) -> Result<i64, Error> {
    ///     let statement = "SELECT balance FROM accounts WHERE id = $1";
    ///     let statement = connection.prepare_cached(statement).await?;
    ///     Ok(connection.query_one(&statement, &[&account]).await?.get(0))
    /// }
    /// ```
    pub async fn prepare_cached(&self, statement: &str) -> Result<Statement, Error> {
        if let Some(prepared) = self.session().prepared(statement) {
            return Ok(prepared);
        }
        let prepared = self.prepare(statement).await?;
        self.session().remember(statement, &prepared);
        Ok(prepared)
    }

    /// Returns the client of tokio-postgres, for what this type does not have: `COPY`, portals, streams of rows.
    ///
    /// Its futures know nothing of stops: a stop drops them, and the server goes on until the connection is closed or returned.
    /// A connection whose client was used is rolled back on its way back, which costs a round trip.
    pub fn client(&self) -> &Client {
        self.session().client_unwatched()
    }

    /// Awaits a future of this connection's [`client`](Connection::client); a stop cancels what the server does for it, and
    /// awaits its end.
    pub async fn call<T>(
        &self,
        statement: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Error> {
        self.session().call(&self.pool.surroundings, statement).await
    }

    pub(crate) fn session(&self) -> &Session {
        self.session.as_ref().expect(LENT)
    }

    pub(crate) fn surroundings(&self) -> &Arc<Surroundings> {
        &self.pool.surroundings
    }

    /// Returns the connection to the pool if it is clean, after a rollback if need be.
    pub(crate) async fn give_back(mut self) {
        let session = self.session();
        if session.client().is_closed() {
            return;
        }
        let is_clean = session.state() == Some(State::Idle) || session.reset(&self.pool.surroundings).await;
        if is_clean && let Some(session) = self.session.take() {
            self.pool.give_back(session);
        }
    }
}

impl AsyncClose for Connection {
    type Error = Never;

    async fn close(self, _: Exit) -> Result<(), Never> {
        self.give_back().await;
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Not closed: nobody knows what the server does for it.
        if let Some(session) = &self.session {
            session.cut();
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("session", &self.session).finish_non_exhaustive()
    }
}
