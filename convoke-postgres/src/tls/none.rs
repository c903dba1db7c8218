//! No encryption: the twin of `rustls.rs` if the feature `tls` is off.

use crate::socket::Server;

/// The stream above TLS, of which there is none.
pub(crate) type Encrypted = tokio_postgres::tls::NoTlsStream;

/// Encryption of one connection: none.
pub(crate) type Handshake = tokio_postgres::NoTls;

/// Encryption of connections: none.
#[derive(Clone)]
pub(crate) struct Encryption;

impl Encryption {
    pub(crate) fn none() -> Self {
        Self
    }

    pub(crate) fn can_encrypt(&self) -> bool {
        false
    }

    pub(crate) fn handshake(&self, _: &Server) -> Handshake {
        tokio_postgres::NoTls
    }
}
