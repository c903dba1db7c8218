//! Connections with TLS, if the feature `tls` is on.

use std::io;

use convoke_tls::TlsConnector;
use futures_io::{AsyncRead, AsyncWrite};

use super::route::Versions;
use crate::secured::Secured;

/// The TLS of a client, if it has one.
#[derive(Clone, Debug, Default)]
pub(super) struct Tls {
    connectors: Option<Connectors>,
}

/// Connectors that offer different versions of HTTP. They share their sessions.
#[derive(Clone, Debug)]
struct Connectors {
    any: TlsConnector,
    http1: TlsConnector,
    http2: TlsConnector,
}

impl Tls {
    pub(super) fn new(connector: &TlsConnector) -> Self {
        let connectors = Connectors {
            any: connector.with_alpn(crate::ALPN),
            http1: connector.with_alpn(["http/1.1"]),
            http2: connector.with_alpn(["h2"]),
        };
        Self { connectors: Some(connectors) }
    }

    pub(super) fn is_there(&self) -> bool {
        self.connectors.is_some()
    }

    /// Does the handshake. Returns true if both sides have agreed on HTTP/2.
    pub(super) async fn secure<S>(
        &self,
        host: &str,
        versions: Versions,
        stream: S,
    ) -> io::Result<(Secured<S>, bool)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let Some(connectors) = &self.connectors else { return Err(io::ErrorKind::Unsupported.into()) };
        let connector = match versions {
            Versions::Agreed => &connectors.any,
            Versions::Http1 => &connectors.http1,
            Versions::Http2 => &connectors.http2,
        };
        let stream = Box::new(connector.connect(host, stream).await?);
        let is_http2 = stream.alpn() == Some(b"h2");
        Ok((Secured::Tls(stream), is_http2))
    }
}
