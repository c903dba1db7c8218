//! The server's side: handshakes of accepted connections, bounded in time and number.

use core::fmt;
use core::time::Duration;
use std::io;
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::Mutex;
use convoke_sync::Semaphore;
use convoke_task::limits::timeout;
use futures_io::{AsyncRead, AsyncWrite};
use rustls::ServerConfig;
use rustls::server::{UnbufferedServerConnection, WebPkiClientVerifier};

use crate::crypto::provider;
use crate::error::{TlsError, invalid};
use crate::handshake_time::{HANDSHAKE_TIME, too_slow};
use crate::identity::Identity;
use crate::roots::Roots;
use crate::session::Connection;
use crate::sni::remember_name;
use crate::stream::TlsStream;

/// The default limit of the handshakes that an acceptor does at a time. Others wait for their turn.
pub const HANDSHAKES: usize = 256;

/// Does the handshake of accepted connections. Clones share limits and certificates.
///
/// ```no_run
/// use std::io;
/// use std::net::SocketAddr;
/// use convoke::io::write_all;
/// use convoke::net::{TcpStream, serve};
/// use convoke::prelude::*;
/// use convoke_tls::{Identity, TlsAcceptor};
///
/// #[convoke::main]
/// async fn main() -> io::Result<()> {
///     let identity = Identity::from_pem_files("server.crt", "server.key")?;
///     let acceptor = TlsAcceptor::new(identity)?;
///     serve("127.0.0.1:7443", move |client: TcpStream, _: SocketAddr| {
///         let acceptor = acceptor.clone();
///         async move {
///             let client = acceptor.accept(client).await?;
///             using(client, async |mut client| {
///                 write_all(&mut *client, b"hello\n").await
///             })
///             .await
///         }
///     })
///     .await
/// }
/// ```
#[derive(Clone)]
pub struct TlsAcceptor {
    shared: Arc<SharedAcceptor>,
}

struct SharedAcceptor {
    config: Mutex<Arc<ServerConfig>>,
    /// The settings that a reload keeps.
    settings: Settings,
    handshakes: Semaphore,
    time: Duration,
}

struct Settings {
    alpn: Vec<Vec<u8>>,
    clients: Option<Roots>,
}

/// Configures a [`TlsAcceptor`].
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct AcceptorBuilder {
    identity: Identity,
    alpn: Vec<Vec<u8>>,
    clients: Option<Roots>,
    time: Duration,
    handshakes: usize,
}

impl TlsAcceptor {
    /// Creates an acceptor with default limits, which asks clients for no certificate.
    ///
    /// # Errors
    /// Fails if the key does not belong to the certificate, or is of no supported kind.
    pub fn new(identity: Identity) -> io::Result<Self> {
        Self::builder(identity).build()
    }

    /// Returns a builder to configure protocols, client certificates and limits.
    pub fn builder(identity: Identity) -> AcceptorBuilder {
        AcceptorBuilder {
            identity,
            alpn: Vec::new(),
            clients: None,
            time: HANDSHAKE_TIME,
            handshakes: HANDSHAKES,
        }
    }

    /// Creates an acceptor from a configuration of the engine, with default limits. Early data must not be allowed in it.
    pub fn from_config(config: Arc<ServerConfig>) -> Self {
        let settings = Settings { alpn: config.alpn_protocols.clone(), clients: None };
        Self::with_config(config, settings, HANDSHAKE_TIME, HANDSHAKES)
    }

    fn with_config(config: Arc<ServerConfig>, settings: Settings, time: Duration, handshakes: usize) -> Self {
        let handshakes = Semaphore::new(handshakes);
        Self { shared: Arc::new(SharedAcceptor { config: Mutex::new(config), settings, handshakes, time }) }
    }

    /// Does the handshake of a client that has connected. Call it in the task of that client: others are not to wait for it.
    ///
    /// - *Completes with* the stream; an error: of the connection, of the protocol ([`TlsError`]), or
    ///   [`TimedOut`](io::ErrorKind::TimedOut); or stopped.
    /// - *If dropped*, the connection is dropped.
    /// - *Runs on* the current task, by the clock of its executor.
    /// - *Panics* outside a task.
    pub async fn accept<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let SharedAcceptor { handshakes, time, .. } = &*self.shared;
        let _permit = handshakes.acquire().await;
        let (config, name) = remember_name(&self.config());
        let connection = UnbufferedServerConnection::new(config).map_err(TlsError::from)?;
        let connection = Connection::Server(Box::new(connection));
        match timeout(*time, TlsStream::handshake(stream, connection)).await {
            Ok(result) => {
                let mut stream = result?;
                stream.set_server_name(name.take());
                Ok(stream)
            }
            Err(_) => Err(too_slow("client", *time)),
        }
    }

    /// Replaces the certificate, for handshakes that begin from now on. Open connections go on with the one that they have.
    ///
    /// # Errors
    /// Fails if the key does not belong to the certificate. The certificate is then not replaced.
    pub fn reload(&self, identity: Identity) -> io::Result<()> {
        let mut config = configure(identity, &self.shared.settings)?;
        // Clients resume their sessions as before.
        config.session_storage = self.config().session_storage.clone();
        self.set_config(Arc::new(config));
        Ok(())
    }

    /// Replaces the configuration, for handshakes that begin from now on.
    pub fn set_config(&self, config: Arc<ServerConfig>) {
        let before = core::mem::replace(
            &mut *self.shared.config.lock().unwrap_or_else(PoisonError::into_inner),
            config,
        );
        drop(before);
    }

    fn config(&self) -> Arc<ServerConfig> {
        self.shared.config.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl AcceptorBuilder {
    /// Sets the protocols to agree on by ALPN, the preferred one first: `["h2", "http/1.1"]`. A client that offers none of them
    /// is refused; one that offers nothing is accepted.
    pub fn alpn<P: Into<Vec<u8>>>(mut self, protocols: impl IntoIterator<Item = P>) -> Self {
        self.alpn = protocols.into_iter().map(Into::into).collect();
        self
    }

    /// Requires a certificate of each client, from one of these authorities (mutual TLS).
    pub fn require_clients_of(mut self, roots: Roots) -> Self {
        self.clients = Some(roots);
        self
    }

    /// Sets the limit of the time that a handshake takes: [`HANDSHAKE_TIME`] by default.
    pub fn handshake_time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Sets the limit of the handshakes at a time: [`HANDSHAKES`] by default.
    pub fn handshakes(mut self, handshakes: usize) -> Self {
        self.handshakes = handshakes;
        self
    }

    /// Creates the acceptor.
    ///
    /// # Errors
    /// Fails if the key does not belong to the certificate, if there is no authority for clients, or if the limit of handshakes is
    /// zero.
    pub fn build(self) -> io::Result<TlsAcceptor> {
        if self.handshakes == 0 {
            return Err(invalid("an acceptor that may do no handshake accepts no client: allow at least 1"));
        }
        let settings = Settings { alpn: self.alpn, clients: self.clients };
        let config = Arc::new(configure(self.identity, &settings)?);
        Ok(TlsAcceptor::with_config(config, settings, self.time, self.handshakes))
    }
}

fn configure(identity: Identity, settings: &Settings) -> io::Result<ServerConfig> {
    let provider = provider();
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(invalid)?;
    let builder = match &settings.clients {
        None => builder.with_no_client_auth(),
        Some(roots) => {
            let roots = Arc::new(roots.store.clone());
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
            builder.with_client_cert_verifier(verifier.build().map_err(invalid)?)
        }
    };
    let Identity { chain, key } = identity;
    let mut config = builder.with_single_cert(chain, key).map_err(invalid)?;
    config.alpn_protocols.clone_from(&settings.alpn);
    Ok(config)
}

impl fmt::Debug for TlsAcceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsAcceptor")
            .field("time", &self.shared.time)
            .field("free_handshakes", &self.shared.handshakes.available())
            .finish_non_exhaustive()
    }
}
