//! Encryption of the server's connections: by `convoke-tls`, or not at all.

use std::io;

use convoke_net::stream::AnyStream;

#[cfg(feature = "tls")]
pub(super) use convoke_tls::TlsAcceptor as Acceptor;

/// None: without the feature `tls` there is no encryption.
#[cfg(not(feature = "tls"))]
#[derive(Clone)]
pub(super) enum Acceptor {}

/// Encrypts a connection whose client has asked for it.
#[cfg(feature = "tls")]
pub(super) async fn encrypt(acceptor: &Acceptor, stream: AnyStream) -> io::Result<AnyStream> {
    Ok(AnyStream::new(acceptor.accept(stream).await?))
}

#[cfg(not(feature = "tls"))]
pub(super) async fn encrypt(acceptor: &Acceptor, _: AnyStream) -> io::Result<AnyStream> {
    match *acceptor {}
}
