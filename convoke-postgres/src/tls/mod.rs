//! Encryption of connections: by `convoke-tls`, or not at all.

#[cfg(not(feature = "tls"))]
mod none;
#[cfg(feature = "tls")]
mod rustls;

#[cfg(not(feature = "tls"))]
pub(crate) use none::{Encrypted, Encryption};
#[cfg(feature = "tls")]
pub(crate) use rustls::{Encrypted, Encryption};

use std::io;

use convoke_tokio::Compat;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

use crate::socket::{Server, Socket};
use crate::status::Watched;

/// The stream of a connection, below TLS.
pub(crate) type Plain = Watched<Compat<Socket>>;

/// Returns the mode of encryption for `server`: none if there is no way to encrypt, and through Unix sockets.
///
/// # Errors
/// If the configuration demands encryption, and there is none.
pub(crate) fn mode(config: &Config, can_encrypt: bool, server: &Server) -> io::Result<SslMode> {
    if !matches!(server, Server::Tcp { .. }) {
        return Ok(SslMode::Disable);
    }
    match config.get_ssl_mode() {
        mode if can_encrypt => Ok(mode),
        SslMode::Require => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "`sslmode=require` needs `PoolOptions::tls`, of the feature `tls`",
        )),
        _ => Ok(SslMode::Disable),
    }
}
