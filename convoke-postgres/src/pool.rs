//! The pool, as programs see it: it lends connections, and runs transactions.

use core::fmt;
use core::future::Future;
use std::sync::Arc;

use convoke_core::BodyOutput;
use convoke_task::cleanup::Exit;
use convoke_task::{Scope, ensure, scope};

use crate::connection::Connection;
use crate::error::Error;
use crate::options::PoolOptions;
use crate::shared::PoolState;
use crate::transaction::{Begin, Transaction};

/// Pool of connections to PostgreSQL: [`PoolOptions::run`] opens one. A clone is the same pool.
///
/// Use [`transaction`](Pool::transaction) for what belongs together, and `using(pool.get().await?, …)` for single
/// statements.
#[derive(Clone)]
pub struct Pool {
    shared: Arc<PoolState>,
}

/// Number of connections of a [`Pool`]: see [`Pool::status`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStatus {
    /// Connections that exist or are being established.
    pub connections: usize,
    /// Connections that nobody uses.
    pub free: usize,
}

impl PoolOptions {
    /// Runs `body` with the pool. Connections are children of a scope around it, and are established when they are
    /// first needed.
    ///
    /// When the body has ended, free connections say goodbye to the server. One that is still in use has the
    /// [cancel time](PoolOptions::cancel_time) to come back; then it is cut.
    ///
    /// - *Completes with* what the body returns, when all connections have ended. Stopped, if the body is.
    /// - *If dropped*, the body is dropped; connections end with the task.
    /// - *Runs on* the task. Connections are tasks on its executor, also if connections are used elsewhere: that
    ///   executor must have an I/O context.
    /// - *Panics* with the panic of the body; and outside a task.
    ///
    /// ```no_run
    /// use convoke_postgres::{Error, PoolOptions};
    ///
    /// #[convoke::main]
    /// async fn main() -> Result<(), Error> {
    ///     let config = "host=127.0.0.1 user=app dbname=shop".parse()?;
    ///     PoolOptions::new(config)
    ///         .connections(4)
    ///         .run(async |pool| {
    ///             let orders: i64 = pool
    ///                 .transaction(async |tx| Ok::<_, Error>(
    ///                     tx.query_one("SELECT count(*) FROM orders", &[]).await?.get(0),
    ///                 ))
    ///                 .await?;
    ///             println!("{orders} orders");
    ///             Ok(())
    ///         })
    ///         .await
    /// }
    /// ```
    pub async fn run<B, F>(self, body: B) -> F::Output
    where
        B: FnOnce(Pool) -> F,
        F: Future<Output: BodyOutput>,
    {
        let mut output = None;
        let returned = &mut output;
        scope(async move |s: Scope<()>| {
            let pool = Pool { shared: Arc::new(PoolState::new(self, s)) };
            let closed = pool.clone();
            let ended = ensure(async move |_: Exit| closed.shared.close().await, body(pool)).await;
            *returned = Some(ended);
        })
        .await;
        match output {
            Some(output) => output,
            None => unreachable!("a scope that returns has run its body to the end"),
        }
    }
}

impl Pool {
    /// Lends a connection: a free one, or a new one. `using` returns it.
    ///
    /// - *Completes with* the connection; with [`Error::NoneFree`] if the pool is busy for the acquire time; with
    ///   the error of a connection that could not be established.
    /// - *If dropped*, nothing is lost: a connection that is being established becomes free.
    /// - *Runs on* the task. The connection is established by a task of the pool.
    ///
    /// ```no_run
    /// use convoke::prelude::*;
    /// use convoke_postgres::{Error, Pool};
    ///
    /// async fn orders(pool: &Pool) -> Result<i64, Error> {
    ///     using(pool.get().await?, async |connection| {
    ///         Ok(connection.query_one("SELECT count(*) FROM orders", &[]).await?.get(0))
    ///     })
    ///     .await
    /// }
    /// ```
    pub async fn get(&self) -> Result<Connection, Error> {
        Ok(Connection::new(self.shared.clone(), self.shared.lease().await?))
    }

    /// Begins a transaction on a connection of the pool. `using` commits it, or rolls it back.
    ///
    /// Use [`transaction`](Pool::transaction) if one closure is the whole transaction.
    ///
    /// - *Completes with* the transaction; or with an error as [`get`](Pool::get), or of the `BEGIN`.
    /// - *If dropped*, the connection is closed; the server rolls back.
    /// - *Runs on* the task.
    ///
    /// ```no_run
    /// use convoke::prelude::*;
    /// use convoke_postgres::{Error, Pool};
    ///
    /// async fn ship(pool: &Pool, order: i64) -> Result<(), Error> {
    ///     using(pool.begin().await?, async |tx| {
    ///         tx.execute("UPDATE orders SET shipped = now() WHERE id = $1", &[&order]).await?;
    ///         Ok(())
    ///     })
    ///     .await
    /// }
    /// ```
    pub async fn begin(&self) -> Result<Transaction, Error> {
        self.begin_with(Begin::new()).await
    }

    /// Begins a transaction as `how` says: its isolation level, whether it reads only. Apart from that it works as
    /// [`begin`](Pool::begin).
    pub async fn begin_with(&self, how: Begin) -> Result<Transaction, Error> {
        Transaction::begin(self.get().await?, how).await
    }

    /// Runs `body` in a transaction: committed if it returns `Ok`, rolled back if it fails, is stopped or panics. Either is
    /// awaited.
    ///
    /// A stop cancels the statement that the server works on. The connection returns to the pool when its server has
    /// said that no transaction is open; else it is cut.
    ///
    /// - *Completes with* what the body returns; with [`Error::RolledBack`] if it returned `Ok` although a statement had failed;
    ///   with the error of the commit; with an error as [`get`](Pool::get). Stopped, if the body is.
    /// - *If dropped*, the connection is closed; the server rolls back.
    /// - *Runs on* the task.
    /// - *Panics* with the panic of the body; and outside a task.
    ///
    /// ```no_run
    /// use convoke_postgres::{Error, Pool};
    ///
    /// async fn transfer(pool: &Pool, from: i32, to: i32, sum: i64) -> Result<(), Error> {
    ///     pool.transaction(async |tx| {
    ///         let change = "UPDATE accounts SET balance = balance + $2 WHERE id = $1";
    ///         tx.execute(change, &[&from, &-sum]).await?;
    ///         tx.execute(change, &[&to, &sum]).await?;
    ///         Ok(())
    ///     })
    ///     .await
    /// }
    /// ```
    pub async fn transaction<B, F, T, E>(&self, body: B) -> Result<T, E>
    where
        B: FnOnce(convoke_task::Lent<Transaction>) -> F,
        F: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        let transaction = self.begin().await?;
        convoke_task::using(transaction, body).await
    }

    /// Returns the number of connections.
    pub fn status(&self) -> PoolStatus {
        let (connections, free) = self.shared.counts();
        PoolStatus { connections, free }
    }

    pub(crate) fn shared(&self) -> &Arc<PoolState> {
        &self.shared
    }
}

impl PoolStatus {
    /// Returns the number of connections that are lent or being established.
    pub fn in_use(&self) -> usize {
        self.connections.saturating_sub(self.free)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("status", &self.status()).finish_non_exhaustive()
    }
}
