//! A pool of database connections that never hands out a poisoned one: a transaction that is stopped at any `await`, also in
//! its `BEGIN`, is rolled back before its connection returns to the pool.
//!
//! With futures that are cancelled by dropping them, this is the bug: the `BEGIN` has been sent, the future that waited for
//! the answer is gone, and the connection returns to the pool in the middle of an open transaction.
//!
//! ```text
//! cargo run --release --example connection_pool
//! ```

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use convoke::env::Changes;
use convoke::prelude::*;
use convoke::scope::BodyOutput;
use convoke::sender::prelude::*;
use convoke::task::stoppable;

fn main() {
    println!("stopped after   outcome    rolled back   connections in the pool");
    for stop_after in 0..=12 {
        let pool = Pool::new(1);
        let source = StopSource::new();
        let used = pool.clone();
        let asked = source.clone();
        let program = async move {
            scope(async |s| {
                s.child().local().spawn(async move {
                    for _ in 0..stop_after {
                        checkpoint().await;
                    }
                    asked.request_stop(StopReason::Named("the client went away"));
                });
                transfer(&used).await
            })
            .await
        };
        let outcome = sync_wait_with(Changes::new().stop_token(source.token()), task(program));
        let ended = if outcome.is_stopped() { "stopped" } else { "committed" };
        println!(
            "{stop_after:>9} steps   {ended:<10} {:>11}   {}",
            pool.statistics().rolled_back,
            pool.describe()
        );
        assert!(pool.is_clean(), "a connection came back in the middle of a transaction");
    }
}

/// Moves money, in a transaction.
pub async fn transfer(pool: &Pool) {
    pool.transaction(async |mut connection| {
        connection.execute("UPDATE accounts SET balance = balance - 10 WHERE id = 1").await;
        connection.execute("UPDATE accounts SET balance = balance + 10 WHERE id = 2").await;
    })
    .await;
}

/// Pool of a fixed number of connections.
#[derive(Clone, Debug)]
pub struct Pool(Arc<Mutex<Inside>>);

#[derive(Debug)]
struct Inside {
    connections: usize,
    free: Vec<Connection>,
    waiting: VecDeque<Waker>,
    statistics: Statistics,
}

/// Number of transactions, by how they ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    /// Transactions whose body returned.
    pub committed: usize,
    /// Transactions whose body failed, was stopped or panicked.
    pub rolled_back: usize,
}

/// A connection, as the server sees it.
#[derive(Debug, Default)]
pub struct Connection {
    in_transaction: bool,
    statements: usize,
}

impl Connection {
    /// Sends a statement and waits for the answer. The server acts on it in between.
    pub async fn execute(&mut self, statement: &str) {
        checkpoint().await;
        match statement {
            "BEGIN" => self.in_transaction = true,
            "COMMIT" | "ROLLBACK" => self.in_transaction = false,
            _ => self.statements += 1,
        }
        checkpoint().await;
    }
}

impl Pool {
    /// Creates a pool of `connections` connections.
    pub fn new(connections: usize) -> Self {
        let free = (0..connections).map(|_| Connection::default()).collect();
        Self(Arc::new(Mutex::new(Inside {
            connections,
            free,
            waiting: VecDeque::new(),
            statistics: Statistics::default(),
        })))
    }

    /// Runs `body` in a transaction: committed if it returns a value, rolled back if it fails, stops or panics.
    pub async fn transaction<T, F>(&self, body: impl FnOnce(CheckedOut) -> F) -> T
    where
        F: Future<Output = T>,
        T: BodyOutput,
    {
        let connection = self.check_out().await;
        using(Transaction { pool: self.clone(), connection }, async |mut transaction| {
            // From here on the transaction owns the connection, also if the `BEGIN` itself is stopped.
            transaction.connection.execute("BEGIN").await;
            body(CheckedOut(transaction)).await
        })
        .await
    }

    /// Waits for a free connection. If it is stopped, the other waiters keep their places in the queue.
    async fn check_out(&self) -> Connection {
        stoppable(poll_fn(|cx| {
            let mut inside = self.0.lock().unwrap();
            match inside.free.pop() {
                Some(connection) => Poll::Ready(connection),
                None => {
                    inside.waiting.push_back(cx.waker().clone());
                    Poll::Pending
                }
            }
        }))
        .await
    }

    fn check_in(&self, connection: Connection) {
        let mut inside = self.0.lock().unwrap();
        inside.free.push(connection);
        // Wakes all waiters: if it woke one only, and that one was stopped meanwhile, the wake would be lost.
        for waker in inside.waiting.drain(..) {
            waker.wake();
        }
    }

    /// Returns true if all connections are back, and none is in the middle of a transaction.
    pub fn is_clean(&self) -> bool {
        let inside = self.0.lock().unwrap();
        inside.free.len() == inside.connections
            && inside.free.iter().all(|connection| !connection.in_transaction)
    }

    /// Returns how many transactions were committed and rolled back.
    pub fn statistics(&self) -> Statistics {
        self.0.lock().unwrap().statistics
    }

    fn describe(&self) -> String {
        let inside = self.0.lock().unwrap();
        let each = |connection: &Connection| if connection.in_transaction { "POISONED" } else { "clean" };
        inside.free.iter().map(each).collect::<Vec<_>>().join(", ")
    }
}

/// The connection of a transaction, lent to its body.
#[derive(Debug)]
pub struct CheckedOut(convoke::cleanup::Lent<Transaction>);

impl CheckedOut {
    /// Executes a statement: see [`Connection::execute`].
    pub async fn execute(&mut self, statement: &str) {
        self.0.connection.execute(statement).await;
    }
}

#[derive(Debug)]
struct Transaction {
    pool: Pool,
    connection: Connection,
}

impl AsyncClose for Transaction {
    type Error = Never;

    async fn close(mut self, exit: Exit) -> Result<(), Never> {
        let commits = exit.is_clean();
        self.connection.execute(if commits { "COMMIT" } else { "ROLLBACK" }).await;
        let mut inside = self.pool.0.lock().unwrap();
        if commits {
            inside.statistics.committed += 1;
        } else {
            inside.statistics.rolled_back += 1;
        }
        drop(inside);
        self.pool.check_in(self.connection);
        Ok(())
    }
}
