//! Test kit: a server that speaks PostgreSQL's protocol and answers with closures of the test. No PostgreSQL is needed, and in
//! `convoke::sim` the database is a host like others: it can be cut off, crash and restart.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use convoke::sim::Sim;
//! use convoke_postgres::testing::{FakeError, FakeServer};
//! use convoke_postgres::tokio_postgres::error::SqlState;
//! use convoke_postgres::tokio_postgres::types::Type;
//! use convoke_postgres::{Error, PoolOptions};
//!
//! const ADD: &str = "INSERT INTO orders VALUES ($1, $2)";
//! const FIND: &str = "SELECT what FROM orders WHERE id = $1";
//!
//! /// What is stored: orders by their numbers.
//! type Orders = BTreeMap<i64, String>;
//!
//! fn database() -> FakeServer<Orders> {
//!     FakeServer::new(Orders::new())
//!         .statement(ADD, &[Type::INT8, Type::TEXT], &[], |call| {
//!             let (id, what) = (call.parameter::<i64>(0), call.parameter::<String>(1));
//!             if call.tables().contains_key(&id) {
//!                 return Err(FakeError::new(SqlState::UNIQUE_VIOLATION, "there is one"));
//!             }
//!             // Done by the commit.
//!             call.change(move |orders| _ = orders.insert(id, what.clone()));
//!             Ok(())
//!         })
//!         .statement(FIND, &[Type::INT8], &[("what", Type::TEXT)], |call| {
//!             if let Some(what) = call.tables().get(&call.parameter(0)).cloned() {
//!                 call.row(&[&what]);
//!             }
//!             Ok(())
//!         })
//! }
//!
//! // The program that is tested. It does not know what it talks to.
//! async fn program() -> Result<(), Error> {
//!     let config = "host=database user=shop".parse()?;
//!     PoolOptions::new(config)
//!         .run(async |pool| {
//!             pool.transaction(async |tx| tx.execute(ADD, &[&1_i64, &"tea"]).await).await?;
//!             let row = pool.transaction(async |tx| tx.query_one(FIND, &[&1_i64]).await).await?;
//!             assert_eq!(row.get::<_, String>("what"), "tea");
//!             Ok(())
//!         })
//!         .await
//! }
//!
//! let database = database();
//! let mut sim = Sim::new(1);
//! sim.host("database").daemon().run_with(database.clone(), FakeServer::serve);
//! sim.host("shop").run(async || program().await.map_err(std::io::Error::from));
//! sim.run();
//! database.assert_no_violation();
//! assert_eq!(database.tables(|orders| orders[&1].clone()), "tea");
//! assert_eq!((database.connections(), database.open_transactions()), (1, 0));
//! ```
//!
//! # What it knows
//!
//! - `BEGIN`, `COMMIT` and `ROLLBACK`, also with isolation levels, which change nothing: a transaction sees what is committed, and its own
//!   changes. After an error it accepts nothing but its end.
//! - `SELECT 1`, `SELECT pg_sleep(n)`; `SET` and `RESET`, which do nothing.
//! - The [statements](FakeServer::statement) of the test, by their exact text. White space does not count. Others are syntax errors.
//! - Requests to cancel, TLS (feature `tls`), prepared statements, several statements in one message, `NULL`.
//!
//! It does not know passwords, portals that are suspended, `COPY` and notifications.
//!
//! # Map
//!
//! | module | contents |
//! | --- | --- |
//! | `connection`, `message` | the protocol |
//! | `statement` | the statements, and what an execution of one may do |
//! | `state` | what is stored; transactions and locks |
//! | `encryption` | TLS, or none |
//! | `steady_names` | the same names of prepared statements in every run |

mod connection;
mod encryption;
mod message;
mod state;
mod statement;
mod steady_names;

use core::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_net::net::{SocketOption, TcpListener};
use convoke_net::stream::AnyStream;
use convoke_task::scope;
use tokio_postgres::types::Type;

use encryption::Acceptor;
use state::State;
use statement::Statements;
pub use statement::{Execution, FakeError};

/// The address of [`FakeServer::serve`]: every interface, and PostgreSQL's port.
const ADDRESS: &str = "0.0.0.0:5432";

/// Time that each statement takes.
const WORK_TIME: Duration = Duration::from_millis(1);

/// Time after which a client that says nothing is probed. The transaction of one whose host has crashed ends then.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Server that speaks PostgreSQL's protocol, for tests: see the [module](self). `T` is what is stored.
///
/// A clone is the same server. What it stores outlives a crash of its host, and so is as on a disk.
pub struct FakeServer<T> {
    state: Arc<Mutex<State<T>>>,
    statements: Arc<Statements<T>>,
    work_time: Duration,
    acceptor: Option<Acceptor>,
}

impl<T: Clone + Send + Sync + 'static> FakeServer<T> {
    /// Creates a server that stores `tables`.
    pub fn new(tables: T) -> Self {
        steady_names::steady_names();
        Self {
            state: Arc::new(Mutex::new(State::new(tables))),
            statements: Arc::default(),
            work_time: WORK_TIME,
            acceptor: None,
        }
    }

    /// Adds a statement: its text, the types of its parameters, its columns with their types, and what it does.
    ///
    /// `execute` reads [parameters](Execution::parameter) and [tables](Execution::tables), and makes
    /// [changes](Execution::change) and [rows](Execution::row). It must not wait. If it fails, its changes are not made,
    /// and the transaction can only be rolled back.
    pub fn statement<F>(
        mut self,
        text: &str,
        parameters: &[Type],
        columns: &[(&str, Type)],
        execute: F,
    ) -> Self
    where
        F: Fn(&mut Execution<'_, T>) -> Result<(), FakeError> + Send + Sync + 'static,
    {
        Arc::make_mut(&mut self.statements).add(text, parameters, columns, Box::new(execute));
        self
    }

    /// Sets the time that each statement takes. Default: a millisecond.
    pub fn work_time(mut self, time: Duration) -> Self {
        self.work_time = time;
        self
    }

    /// Encrypts the connections of clients that ask for it.
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    pub fn tls(mut self, acceptor: convoke_tls::TlsAcceptor) -> Self {
        self.acceptor = Some(acceptor);
        self
    }

    /// Serves at port 5432 of all addresses: the program of a simulated host.
    ///
    /// - *Completes with* an error of the listener. Else it serves until it is stopped.
    /// - *If dropped*, all connections are, and their transactions are rolled back.
    /// - *Runs on* the task. Each connection is a child of it.
    /// - *Panics* outside a task; and with the panic of a statement.
    pub async fn serve(self) -> io::Result<()> {
        self.serve_on(TcpListener::bind(ADDRESS).await?).await
    }

    /// Serves the connections of a listener: for tests over the network of the machine, at any port. Apart from that it works as
    /// [`serve`](FakeServer::serve).
    ///
    /// ```
    /// use convoke::net::TcpListener;
    /// use convoke::prelude::*;
    /// use convoke_postgres::testing::FakeServer;
    /// use convoke_postgres::tokio_postgres::Config;
    /// use convoke_postgres::{Error, PoolOptions};
    ///
    /// #[convoke::main]
    /// async fn main() -> Result<(), Error> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let mut config = Config::new();
    ///     config.host("127.0.0.1").port(listener.local_addr()?.port()).user("test");
    ///     let serves = async { Err(FakeServer::new(()).serve_on(listener).await.unwrap_err().into()) };
    ///     let asks = PoolOptions::new(config).run(async |pool| {
    ///         let row = pool.transaction(async |tx| tx.query_one("SELECT 1", &[]).await).await?;
    ///         assert_eq!(row.get::<_, i32>(0), 1);
    ///         Ok(())
    ///     });
    ///     race((serves, asks)).await
    /// }
    /// ```
    pub async fn serve_on(self, listener: TcpListener) -> io::Result<()> {
        self.lock().restart();
        scope(async |s| {
            loop {
                let (stream, _) = listener.accept().await?;
                stream.set_option(SocketOption::KeepAlive(Some(KEEP_ALIVE)))?;
                let server = self.clone();
                s.spawn(async move {
                    // A client that goes is no failure of the server.
                    let _ = server.connection(AnyStream::new(stream)).await;
                    Ok(())
                });
            }
        })
        .await
    }

    /// Calls `f` with what is committed, which it may change.
    pub fn tables<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.lock().tables)
    }

    /// Returns the number of transactions that are open.
    pub fn open_transactions(&self) -> usize {
        self.lock().open_transactions()
    }

    /// Returns the number of connections that were accepted.
    pub fn connections(&self) -> usize {
        self.lock().accepted
    }

    /// Returns the number of requests to cancel.
    pub fn cancels(&self) -> usize {
        self.lock().cancels
    }

    /// Returns the statements that were executed, in their order.
    pub fn statements(&self) -> Vec<String> {
        self.lock().statements.clone()
    }

    /// Returns the number of statements that were prepared.
    pub fn prepared(&self) -> usize {
        self.lock().prepared
    }

    /// Returns mistakes of clients: a `BEGIN` inside a transaction, messages that are not understood, and those that
    /// statements [report](Execution::violation).
    pub fn violations(&self) -> Vec<String> {
        self.lock().violations.clone()
    }

    /// Asserts that no client has made a [mistake](FakeServer::violations).
    ///
    /// # Panics
    /// If one has.
    #[track_caller]
    pub fn assert_no_violation(&self) {
        let violations = self.violations();
        assert!(violations.is_empty(), "{violations:#?}");
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl<T> Clone for FakeServer<T> {
    fn clone(&self) -> Self {
        Self {
            state: self.state.clone(),
            statements: self.statements.clone(),
            work_time: self.work_time,
            acceptor: self.acceptor.clone(),
        }
    }
}

impl<T> fmt::Debug for FakeServer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeServer").field("statements", &self.statements).finish_non_exhaustive()
    }
}
