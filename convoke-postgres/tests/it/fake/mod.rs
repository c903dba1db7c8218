//! A server that speaks PostgreSQL's protocol, for tests without one: a few statements on three tables, transactions, row locks,
//! requests to cancel. It runs on a simulated host, and checks what its clients do.
//!
//! | file | contents |
//! | --- | --- |
//! | `connection.rs` | one connection: the messages of the protocol |
//! | `message.rs` | reading and writing messages |
//! | `statement.rs` | the statements that it knows |
//! | `tables.rs` | what is stored, transactions, locks |

mod connection;
mod message;
mod statement;
mod tables;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use convoke::io::AnyStream;
use convoke::net::{SocketOption, TcpListener};
use convoke::prelude::*;
use convoke::sync::Event;
use convoke::tls::TlsAcceptor;

pub(crate) use tables::Tables;

/// A server. A clone is the same one; what it has stored outlives a crash of its host.
#[derive(Clone, Default)]
pub(crate) struct Fake {
    state: Arc<Mutex<State>>,
    acceptor: Option<TlsAcceptor>,
}

#[derive(Default)]
struct State {
    tables: Tables,
    sessions: BTreeMap<i32, Session>,
    last_session: i32,
    cancels: usize,
    /// Mistakes of clients.
    violations: Vec<String>,
    statements: Vec<String>,
    prepared: usize,
}

/// A connection, as other connections see it.
struct Session {
    key: i32,
    is_busy: bool,
    cancelled: Arc<Event>,
}

impl Fake {
    /// Creates a server that encrypts its connections.
    #[cfg(feature = "tls")]
    pub(crate) fn with_tls(acceptor: TlsAcceptor) -> Self {
        Self { acceptor: Some(acceptor), ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Looks at, or changes, what is stored.
    pub(crate) fn tables<R>(&self, f: impl FnOnce(&mut Tables) -> R) -> R {
        f(&mut self.lock().tables)
    }

    /// Returns the number of requests to cancel.
    pub(crate) fn cancels(&self) -> usize {
        self.lock().cancels
    }

    /// Returns the number of connections that were accepted.
    pub(crate) fn connections(&self) -> i32 {
        self.lock().last_session
    }

    /// Returns the statements that were executed.
    pub(crate) fn statements(&self) -> Vec<String> {
        self.lock().statements.clone()
    }

    /// Returns the number of statements that were prepared.
    pub(crate) fn prepared(&self) -> usize {
        self.lock().prepared
    }

    /// Asserts that no client has done what it must not.
    #[track_caller]
    pub(crate) fn assert_no_violation(&self) {
        let state = self.lock();
        assert!(state.violations.is_empty(), "{:#?}", state.violations);
    }

    /// Runs the server at the usual port.
    pub(crate) async fn serve(self) -> io::Result<()> {
        // Those before a crash are gone.
        self.lock().sessions.clear();
        self.tables(Tables::roll_back_all);
        let listener = TcpListener::bind("0.0.0.0:5432").await?;
        scope(async |s| {
            loop {
                let (stream, _) = listener.accept().await?;
                // A client whose host crashes says nothing more: its transaction ends when that is found out.
                stream.set_option(SocketOption::KeepAlive(Some(Duration::from_secs(5))))?;
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

    fn violation(&self, what: impl Into<String>) {
        self.lock().violations.push(what.into());
    }
}
