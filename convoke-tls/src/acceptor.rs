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
use rustls::server::{NoServerSessionStorage, UnbufferedServerConnection, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use crate::crypto::provider;
use crate::error::{TlsError, invalid};
use crate::handshake::first_record;
use crate::handshake_time::{HANDSHAKE_TIME, too_slow};
use crate::identity::Identity;
use crate::roots::Roots;
use crate::session::Connection;
use crate::sessions::Sessions;
use crate::sni::remember_name;
use crate::stream::TlsStream;

/// The default limit of the handshakes that an acceptor works on in a turn: see
/// [`handshakes`](AcceptorBuilder::handshakes).
pub const HANDSHAKES: usize = 256;

/// The default number of sessions that an acceptor remembers.
pub const SESSIONS: usize = 16_384;

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
    handshakes: Semaphore,
    time: Duration,
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
    sessions: usize,
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
            sessions: SESSIONS,
        }
    }

    /// Creates an acceptor from a configuration of the engine, with default limits: for certificates by name, other
    /// providers of cryptography, tickets. Early data must not be allowed in it.
    pub fn from_config(config: Arc<ServerConfig>) -> Self {
        Self::with_config(config, HANDSHAKE_TIME, HANDSHAKES)
    }

    fn with_config(config: Arc<ServerConfig>, time: Duration, handshakes: usize) -> Self {
        let handshakes = Semaphore::new(handshakes);
        Self { shared: Arc::new(SharedAcceptor { config: Mutex::new(config), handshakes, time }) }
    }

    /// Does the handshake of a client that has connected. Call it in the task of that client: others are not to wait for it.
    ///
    /// A client that sends nothing, or stops in the middle, keeps nobody from a handshake. It has the
    /// [handshake time](AcceptorBuilder::handshake_time) from this call on. Bound the number of connections, as servers of
    /// Convoke do.
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
        let time = self.shared.time;
        match timeout(time, self.shake(stream)).await {
            Ok(result) => result,
            Err(_) => Err(too_slow("client", time)),
        }
    }

    async fn shake<S>(&self, mut stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let received = first_record(&mut stream).await?;
        let (config, name) = remember_name(&self.config());
        let connection = UnbufferedServerConnection::new(config).map_err(TlsError::from)?;
        let connection = Connection::Server(Box::new(connection));
        let mut stream =
            TlsStream::handshake(stream, connection, received, Some(&self.shared.handshakes)).await?;
        stream.set_server_name(name.take());
        Ok(stream)
    }

    /// Replaces the certificate, for handshakes that begin from now on. Open connections go on with the one that they have.
    /// All else of the configuration stays: required certificates of clients, protocols, sessions that can be resumed.
    ///
    /// A configuration with several certificates, by the name that a client asks for, has only this one then.
    ///
    /// # Errors
    /// Fails if the key does not belong to the certificate. The certificate is then not replaced.
    pub fn reload(&self, identity: Identity) -> io::Result<()> {
        let Identity { chain, key } = identity;
        let provider = self.config().crypto_provider().clone();
        let certified = CertifiedKey::from_der(chain, key, &provider).map_err(invalid)?;
        let resolver = Arc::new(SingleCertAndKey::from(certified));
        self.replace_config(|present| {
            let mut config = ServerConfig::clone(present);
            config.cert_resolver = resolver;
            Arc::new(config)
        });
        Ok(())
    }

    /// Replaces the configuration, for handshakes that begin from now on. Limits stay as they are.
    pub fn set_config(&self, config: Arc<ServerConfig>) {
        self.replace_config(|_| config);
    }

    fn replace_config(&self, next: impl FnOnce(&ServerConfig) -> Arc<ServerConfig>) {
        let mut config = self.shared.config.lock().unwrap_or_else(PoisonError::into_inner);
        let next = next(&config);
        let before = core::mem::replace(&mut *config, next);
        // Destructors of the program run without the lock.
        drop(config);
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

    /// Sets the time that a handshake may take, from the call of [`accept`](TlsAcceptor::accept) on: [`HANDSHAKE_TIME`] by
    /// default. A client that sends nothing is given up after it, too.
    pub fn handshake_time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Sets the limit of the handshakes that are worked on in a turn: [`HANDSHAKES`] by default. If more clients come at once,
    /// other tasks of the program run between two turns. A handshake that waits for its client takes no part in a turn:
    /// silent clients keep nobody waiting.
    pub fn handshakes(mut self, handshakes: usize) -> Self {
        self.handshakes = handshakes;
        self
    }

    /// Sets the number of sessions that are remembered, so that later handshakes of a client are shorter: [`SESSIONS`] by
    /// default, two for a handshake. Each takes some hundred bytes, and the size of the client's certificates; the oldest
    /// ones are forgotten. Zero turns it off.
    pub fn sessions(mut self, sessions: usize) -> Self {
        self.sessions = sessions;
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
        let (time, handshakes) = (self.time, self.handshakes);
        Ok(TlsAcceptor::with_config(Arc::new(self.configure()?), time, handshakes))
    }

    fn configure(self) -> io::Result<ServerConfig> {
        let provider = provider();
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(invalid)?;
        let builder = match self.clients {
            None => builder.with_no_client_auth(),
            Some(roots) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots.store), provider);
                builder.with_client_cert_verifier(verifier.build().map_err(invalid)?)
            }
        };
        let Identity { chain, key } = self.identity;
        let mut config = builder.with_single_cert(chain, key).map_err(invalid)?;
        config.alpn_protocols = self.alpn;
        if self.sessions == 0 {
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        } else {
            config.session_storage = Arc::new(Sessions::new(self.sessions));
        }
        Ok(config)
    }
}

impl fmt::Debug for TlsAcceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsAcceptor")
            .field("time", &self.shared.time)
            .field("free_handshakes", &self.shared.handshakes.available())
            .finish_non_exhaustive()
    }
}
