//! Connections with TLS, and without, if the feature `tls` is on.

use std::io;

use convoke_tls::TlsAcceptor;
use futures_io::{AsyncRead, AsyncWrite};

use super::protocol::{Agreed, Protocol};
use crate::secured::Secured;

/// The TLS of a server, if it has one.
#[derive(Debug, Default)]
pub(super) struct Tls {
    pub(super) acceptor: Option<TlsAcceptor>,
}

impl Tls {
    /// Does the handshake, if the server has TLS.
    pub(super) async fn secure<S>(&self, stream: S) -> io::Result<(Secured<S>, Agreed)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let Some(acceptor) = &self.acceptor else { return Ok((Secured::plain(stream), Agreed::default())) };
        let stream = Box::new(acceptor.accept(stream).await?);
        let agreed = Agreed { protocol: Protocol::of_alpn(stream.alpn()), is_encrypted: true };
        Ok((Secured::Tls(stream), agreed))
    }
}
