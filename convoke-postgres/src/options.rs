//! The limits of a pool, each with its name and default.

use core::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Config;

use crate::tls::Encryption;

/// Connections of a pool, at most.
pub const CONNECTIONS: usize = 10;
/// Time that a connection may take to be established.
pub const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Time to wait for a connection that is free.
pub const ACQUIRE_TIME: Duration = Duration::from_secs(30);
/// Time that a server may take to cancel a statement, or to roll back. Then the connection is cut.
pub const CANCEL_TIME: Duration = Duration::from_secs(5);
/// Time that a connection may be unused. Then it is closed, and not handed out again.
pub const IDLE_TIME: Duration = Duration::from_secs(600);
/// Time that a server may be silent before it is probed: one that has crashed is found out also while a statement waits.
pub const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Options of a [`Pool`](crate::Pool), and the way to open it: [`run`](PoolOptions::run).
///
/// | option | default | what exceeds it |
/// | --- | --- | --- |
/// | [`connections`](PoolOptions::connections) | 10 | waits until a connection is free |
/// | [`acquire_time`](PoolOptions::acquire_time) | 30 s | fails with [`Error::NoneFree`](crate::Error::NoneFree) |
/// | [`connect_time`](PoolOptions::connect_time) | 10 s | fails with [`Error::Connect`](crate::Error::Connect) |
/// | [`cancel_time`](PoolOptions::cancel_time) | 5 s | the connection is cut |
/// | [`idle_time`](PoolOptions::idle_time) | 10 min | the connection is closed |
/// | [`keep_alive`](PoolOptions::keep_alive) | 30 s | the server is probed, and the connection breaks if it is gone |
#[derive(Clone)]
pub struct PoolOptions {
    pub(crate) config: Config,
    pub(crate) encryption: Encryption,
    pub(crate) connections: usize,
    pub(crate) connect_time: Duration,
    pub(crate) acquire_time: Duration,
    pub(crate) cancel_time: Duration,
    pub(crate) idle_time: Duration,
    pub(crate) keep_alive: Duration,
    pub(crate) after_connect: Option<Arc<str>>,
}

impl PoolOptions {
    /// Creates the options of a pool for the servers that `config` names. Its hosts are tried in their order; its
    /// `connect_timeout`, `target_session_attrs`, `load_balance_hosts` and its options of sockets are not used.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            encryption: Encryption::none(),
            connections: CONNECTIONS,
            connect_time: CONNECT_TIME,
            acquire_time: ACQUIRE_TIME,
            cancel_time: CANCEL_TIME,
            idle_time: IDLE_TIME,
            keep_alive: KEEP_ALIVE,
            after_connect: None,
        }
    }

    /// Sets the number of connections, at least one: those in use, those that are free and those that are being
    /// established.
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// Sets the time that a connection may take to be established.
    pub fn connect_time(mut self, time: Duration) -> Self {
        self.connect_time = time;
        self
    }

    /// Sets the time to wait for a connection that is free.
    pub fn acquire_time(mut self, time: Duration) -> Self {
        self.acquire_time = time;
        self
    }

    /// Sets the time that a server may take to cancel a statement, or to roll back. Then the connection is cut.
    pub fn cancel_time(mut self, time: Duration) -> Self {
        self.cancel_time = time;
        self
    }

    /// Sets the time that a connection may be unused before it is closed.
    pub fn idle_time(mut self, time: Duration) -> Self {
        self.idle_time = time;
        self
    }

    /// Sets the time that a server may be silent before it is probed (TCP keep-alive).
    pub fn keep_alive(mut self, time: Duration) -> Self {
        self.keep_alive = time;
        self
    }

    /// Executes statements on each new connection, before it is lent for the first time: for settings of the session. They are a part
    /// of the connect time. If they fail, so does the call that has asked for the connection.
    ///
    /// ```
    /// use convoke_postgres::PoolOptions;
    ///
    /// # fn main() -> Result<(), convoke_postgres::Error> {
    /// let config = "host=db.example.com user=app".parse()?;
    /// let options = PoolOptions::new(config)
    ///     .after_connect("SET search_path TO shop; SET statement_timeout TO '5s'");
    /// # drop(options);
    /// # Ok(())
    /// # }
    /// ```
    pub fn after_connect(mut self, statements: impl Into<Arc<str>>) -> Self {
        self.after_connect = Some(statements.into());
        self
    }

    /// Encrypts the connections, as the `sslmode` of the configuration says: `prefer`, the default, does so if the server
    /// can; `require` refuses one that cannot. Hosted databases have an authority of their own, or one that the operating system
    /// trusts: those are `Roots::system()`, with the feature `tls-system-roots`.
    ///
    /// Hosted databases have a certificate of an authority of their own, which is given as a file, or of one that the operating system
    /// trusts: `Roots::system()`, with the feature `tls-system-roots`.
    ///
    /// ```no_run
    /// use convoke_postgres::convoke_tls::{Roots, TlsConnector};
    /// use convoke_postgres::{Error, PoolOptions};
    ///
    /// # async fn program(authority: &[u8]) -> Result<(), Error> {
    /// let config = "host=db.example.com user=app sslmode=require".parse()?;
    /// let mut roots = Roots::new();
    /// roots.add_pem(authority)?;
    /// let options = PoolOptions::new(config).tls(TlsConnector::new(roots)?);
    /// options.run(async |pool| pool.get().await.map(drop)).await
    /// # }
    /// ```
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    pub fn tls(mut self, connector: convoke_tls::TlsConnector) -> Self {
        self.encryption = Encryption::by(connector);
        self
    }
}

impl fmt::Debug for PoolOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolOptions")
            .field("config", &self.config)
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}
