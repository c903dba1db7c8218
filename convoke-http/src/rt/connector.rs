//! Connections to the hosts of URIs, as a service of tower.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;

use convoke_net::net::{SocketOption, TcpStream};
use http::Uri;
use http::uri::Scheme;
use tower_service::Service;

use super::HyperIo;

/// A service of tower that connects to the host of a URI: for clients that take a connector, such as those of hyper-util and
/// tonic, and for layers around it. It makes no TLS; for that, wrap its streams by `TlsConnector`.
///
/// The port is that of the URI, or 443 for `https`, or 80. A connection takes as long as the system allows: put a limit around
/// it.
///
/// ```
/// use std::io;
/// use convoke::net::TcpStream;
/// use convoke_http::rt::{Connector, HyperIo};
/// use http::Uri;
/// use tower::ServiceExt;
///
/// async fn connect() -> io::Result<HyperIo<TcpStream>> {
///     Connector::new().oneshot(Uri::from_static("http://example.com/")).await
/// }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Connector {}

impl Connector {
    /// Creates a connector.
    pub const fn new() -> Self {
        Self {}
    }
}

impl Service<Uri> for Connector {
    type Response = HyperIo<TcpStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<HyperIo<TcpStream>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(async move {
            let Some(host) = uri.host().map(|host| host.trim_start_matches('[').trim_end_matches(']')) else {
                let message = format!("`{uri}` has no host to connect to");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
            };
            let usual = if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
            let stream = TcpStream::connect((host, uri.port_u16().unwrap_or(usual))).await?;
            // Requests are written as a whole. An error means that the socket is gone.
            _ = stream.set_option(SocketOption::NoDelay(true));
            Ok(HyperIo::new(stream).vectored(true))
        })
    }
}
