//! Connecting to a server: the socket, TLS, tokio-postgres' handshake; and, over a connection of its own, the request to
//! cancel what another connection does.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Poll, ready};
use std::io;
use std::sync::Arc;

use convoke_tokio::CompatExt;
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres::{CancelToken, Client, Config};

use crate::error::Error;
use crate::options::PoolOptions;
use crate::socket::Server;
use crate::status::{Status, Watched};
use crate::tls::{self, Encrypted, Plain};

/// The half of a connection that does its I/O.
pub(crate) type Wire = tokio_postgres::Connection<Plain, Encrypted>;

/// A connection that was just established.
pub(crate) struct Connected {
    pub(crate) client: Client,
    pub(crate) wire: Wire,
    pub(crate) status: Arc<Status>,
    pub(crate) server: Server,
}

impl Connected {
    /// Executes statements on the connection, which nobody drives yet.
    async fn execute(&mut self, statements: &str) -> Result<(), Error> {
        let Self { client, wire, .. } = self;
        let mut executes = pin!(client.batch_execute(statements));
        let executed = poll_fn(|cx| {
            loop {
                if let Poll::Ready(executed) = executes.as_mut().poll(cx) {
                    return Poll::Ready(executed);
                }
                match ready!(wire.poll_message(cx)) {
                    // A notice, or the new value of a parameter.
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Poll::Ready(Err(error)),
                    // The statements fail with "connection closed".
                    None => return executes.as_mut().poll(cx),
                }
            }
        });
        executed.await.map_err(Error::from)
    }
}

/// Connects to the first server that can be reached.
pub(crate) async fn connect(options: &PoolOptions) -> Result<Connected, Error> {
    let nowhere = || io::Error::new(io::ErrorKind::InvalidInput, "the configuration names no host");
    let mut failed = None;
    for server in Server::all_of(&options.config) {
        match connect_to(options, server).await {
            Ok(mut connected) => {
                if let Some(statements) = &options.after_connect {
                    connected.execute(statements).await?;
                }
                return Ok(connected);
            }
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.unwrap_or_else(|| Error::Connect(nowhere())))
}

async fn connect_to(options: &PoolOptions, server: Server) -> Result<Connected, Error> {
    let status = Arc::new(Status::default());
    let (stream, config) = open(options, &server, &status).await.map_err(Error::Connect)?;
    let (client, wire) = config.connect_raw(stream, options.encryption.handshake(&server)).await?;
    Ok(Connected { client, wire, status, server })
}

/// Opens the stream to a server, and says how tokio-postgres is to use it.
async fn open(options: &PoolOptions, server: &Server, status: &Arc<Status>) -> io::Result<(Plain, Config)> {
    let mut config = options.config.clone();
    let mode = tls::mode(&config, options.encryption.can_encrypt(), server)?;
    config.ssl_mode(mode);
    let socket = server.connect(options.keep_alive).await?.compat();
    let status = status.clone();
    let stream = match (mode, config.get_ssl_negotiation()) {
        (SslMode::Disable, _) => Watched::new(socket, false, status),
        (_, SslNegotiation::Direct) => Watched::off(socket, status),
        _ => Watched::new(socket, true, status),
    };
    Ok((stream, config))
}

/// Asks a server to cancel what the connection of `token` does. Completes when the server has acted on it: a later statement is
/// not hit.
pub(crate) async fn cancel(options: &PoolOptions, server: &Server, token: &CancelToken) -> Result<(), Error> {
    let (stream, _) = open(options, server, &Arc::default()).await.map_err(Error::Connect)?;
    token.cancel_query_raw(stream.awaiting_end(), options.encryption.handshake(server)).await?;
    Ok(())
}
