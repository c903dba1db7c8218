//! Encryption by `convoke-tls`, as tokio-postgres asks for it. It has no channel binding.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io::{self, IoSlice};

use convoke_tls::{TlsConnector, TlsStream};
use convoke_tokio::{Compat, CompatExt};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect};

use super::Plain;
use crate::socket::Server;
use crate::status::Watched;

/// The stream of a connection, above TLS: the messages in it are watched.
pub(crate) struct Encrypted(Watched<Compat<TlsStream<Compat<Plain>>>>);

/// Encryption of connections.
#[derive(Clone)]
pub(crate) struct Encryption(Option<TlsConnector>);

/// Encryption of one connection.
pub(crate) struct Handshake {
    connector: Option<TlsConnector>,
    /// The name that the certificate must bear.
    name: String,
}

impl Encryption {
    pub(crate) fn none() -> Self {
        Self(None)
    }

    pub(crate) fn by(connector: TlsConnector) -> Self {
        Self(Some(connector))
    }

    pub(crate) fn can_encrypt(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn handshake(&self, server: &Server) -> Handshake {
        let name = match server {
            Server::Tcp { name, .. } => name.clone(),
            #[cfg(unix)]
            Server::Unix(_) => String::new(),
        };
        Handshake { connector: self.0.clone(), name }
    }
}

impl TlsConnect<Plain> for Handshake {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, stream: Plain) -> Self::Future {
        Box::pin(async move {
            let Some(connector) = self.connector else {
                return Err(io::Error::other("there is no way to encrypt this connection"));
            };
            let status = stream.status().clone();
            let encrypted = connector.connect(&self.name, stream.compat()).await?;
            Ok(Encrypted(Watched::new(encrypted.compat(), false, status)))
        })
    }
}

impl tokio_postgres::tls::TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write_vectored(cx, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(cx)
    }
}
