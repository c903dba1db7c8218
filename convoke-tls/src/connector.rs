//! The client's side: handshakes of opened connections.

use core::fmt;
use core::time::Duration;
use std::io;
use std::sync::Arc;

use convoke_task::limits::timeout;
use futures_io::{AsyncRead, AsyncWrite};
use rustls::ClientConfig;
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;

use crate::buffer::Buffer;
use crate::crypto::provider;
use crate::error::{TlsError, invalid};
use crate::handshake_time::{HANDSHAKE_TIME, too_slow};
use crate::identity::Identity;
use crate::roots::Roots;
use crate::session::Connection;
use crate::stream::TlsStream;

/// Does the handshake of connections to servers. Clones share the sessions that can be resumed.
///
/// ```no_run
/// use std::io;
/// use convoke::net::TcpStream;
/// use convoke_tls::{Roots, TlsConnector, TlsStream};
///
/// // With the feature `system-roots`, `Roots::system()` are those of the operating system.
/// async fn connect(roots: Roots) -> io::Result<TlsStream<TcpStream>> {
///     let connector = TlsConnector::new(roots)?; // Once: it remembers sessions.
///     let stream = TcpStream::connect("example.com:443").await?;
///     connector.connect("example.com", stream).await
/// }
/// ```
#[derive(Clone)]
pub struct TlsConnector {
    config: Arc<ClientConfig>,
    time: Duration,
}

/// Configures a [`TlsConnector`].
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct ConnectorBuilder {
    roots: Roots,
    identity: Option<Identity>,
    alpn: Vec<Vec<u8>>,
    time: Duration,
    remembers_sessions: bool,
}

impl TlsConnector {
    /// Creates a connector that trusts these authorities.
    ///
    /// # Errors
    /// Fails if there is no authority: no server could be trusted.
    pub fn new(roots: Roots) -> io::Result<Self> {
        Self::builder(roots).build()
    }

    /// Returns a builder to configure protocols, an own certificate and limits.
    pub fn builder(roots: Roots) -> ConnectorBuilder {
        ConnectorBuilder {
            roots,
            identity: None,
            alpn: Vec::new(),
            time: HANDSHAKE_TIME,
            remembers_sessions: true,
        }
    }

    /// Creates a connector from a configuration of the engine, with default limits.
    pub fn from_config(config: Arc<ClientConfig>) -> Self {
        Self { config, time: HANDSHAKE_TIME }
    }

    /// Returns a connector that offers other protocols by ALPN, the preferred one first. It shares the sessions that can be
    /// resumed.
    pub fn with_alpn<P: Into<Vec<u8>>>(&self, protocols: impl IntoIterator<Item = P>) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = protocols.into_iter().map(Into::into).collect();
        Self { config: Arc::new(config), time: self.time }
    }

    /// Does the handshake with a server, whose certificate must be for `name`: a DNS name or an IP address.
    ///
    /// - *Completes with* the stream; an error: of the name, of the connection, of the protocol ([`TlsError`]), or
    ///   [`TimedOut`](io::ErrorKind::TimedOut); or stopped.
    /// - *If dropped*, the connection is dropped.
    /// - *Runs on* the current task, by the clock of its executor.
    /// - *Panics* outside a task.
    pub async fn connect<S>(&self, name: &str, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = ServerName::try_from(name.to_owned())
            .map_err(|error| invalid(format_args!("{name:?} is no name of a server: {error}")))?;
        let connection = UnbufferedClientConnection::new(self.config.clone(), name);
        let connection = Connection::Client(Box::new(connection.map_err(TlsError::from)?));
        match timeout(self.time, TlsStream::handshake(stream, connection, Buffer::default(), None)).await {
            Ok(result) => result,
            Err(_) => Err(too_slow("server", self.time)),
        }
    }
}

impl ConnectorBuilder {
    /// Sets the protocols to offer by ALPN, the preferred one first: `["h2", "http/1.1"]`.
    pub fn alpn<P: Into<Vec<u8>>>(mut self, protocols: impl IntoIterator<Item = P>) -> Self {
        self.alpn = protocols.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the certificate for servers that ask for one (mutual TLS).
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Sets the limit of the time that a handshake takes: [`HANDSHAKE_TIME`] by default.
    pub fn handshake_time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Sets whether sessions are remembered, so that later handshakes with the same server are shorter. They are by default.
    pub fn remember_sessions(mut self, remember: bool) -> Self {
        self.remembers_sessions = remember;
        self
    }

    /// Creates the connector.
    ///
    /// # Errors
    /// Fails if there is no authority to trust, or if the key does not belong to the certificate.
    pub fn build(self) -> io::Result<TlsConnector> {
        if self.roots.store.is_empty() {
            return Err(invalid("a connector without authorities trusts no server: add some to its roots"));
        }
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(invalid)?
            .with_root_certificates(self.roots.store);
        let mut config = match self.identity {
            None => builder.with_no_client_auth(),
            Some(Identity { chain, key }) => builder.with_client_auth_cert(chain, key).map_err(invalid)?,
        };
        config.alpn_protocols = self.alpn;
        if !self.remembers_sessions {
            config.resumption = rustls::client::Resumption::disabled();
        }
        Ok(TlsConnector { config: Arc::new(config), time: self.time })
    }
}

impl fmt::Debug for TlsConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsConnector").field("time", &self.time).finish_non_exhaustive()
    }
}
