//! Upgraded connections: WebSockets and their like.

use core::error::Error;
use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io::{self, IoSlice};
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::Mutex;
use convoke_net::net::ConnectionOutput;
use convoke_net::stream::{Linger, lingering_close};
use convoke_task::{AsyncClose, Exit, ensure};
use futures_io::{AsyncRead, AsyncWrite};
use http::Request;
use hyper::upgrade::{self, OnUpgrade};

use crate::connection::Connection;
use crate::rt::FuturesStream;

/// A connection that has changed its protocol: a stream of bytes, in both directions, with the traits of `futures-io`.
///
/// On a server it is closed when its handler has ended, however that ends: by TLS the client sees close_notify. Elsewhere,
/// [`using`](convoke_task::using()) closes it, so that what was written is delivered.
pub struct Upgraded {
    /// `None` when the stream was taken out.
    stream: Option<UpgradedStream>,
    /// Where the stream goes when it is dropped, on a server.
    returned: Option<Arc<Returned>>,
}

type UpgradedStream = FuturesStream<upgrade::Upgraded>;

/// The stream of a handler that has dropped it, to be closed.
#[derive(Default)]
struct Returned(Mutex<Option<UpgradedStream>>);

impl Returned {
    /// Sends the end of a stream that was dropped. That it is delivered is the business of the connection.
    async fn close(&self) {
        let stream = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut stream) = stream {
            // The client may have gone.
            _ = poll_fn(|cx| Pin::new(&mut stream).poll_close(cx)).await;
        }
    }
}

impl Upgraded {
    pub(crate) fn new(stream: upgrade::Upgraded) -> Self {
        Self { stream: Some(FuturesStream::new(stream)), returned: None }
    }

    /// Returns the stream of hyper. It is for the program to close, then.
    pub fn into_inner(mut self) -> upgrade::Upgraded {
        self.take().into_inner()
    }

    fn take(&mut self) -> UpgradedStream {
        self.stream.take().expect("only its last call takes it")
    }

    fn stream(&mut self) -> Pin<&mut UpgradedStream> {
        Pin::new(self.stream.as_mut().expect("only its last call takes it"))
    }
}

impl Drop for Upgraded {
    fn drop(&mut self) {
        if let (Some(stream), Some(returned)) = (self.stream.take(), self.returned.take()) {
            *returned.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(stream);
        }
    }
}

#[diagnostic::do_not_recommend]
impl AsyncClose for Upgraded {
    type Error = io::Error;

    /// Closes the stream so that what was written is delivered, within the default limits of [`Linger`]. If the body failed, its
    /// error is kept: a broken connection does not close well either.
    async fn close(mut self, exit: Exit) -> io::Result<()> {
        let closed = lingering_close(&mut self.take(), Linger::new()).await;
        if matches!(exit, Exit::Error) { Ok(()) } else { closed }
    }
}

impl AsyncRead for Upgraded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        target: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_read(cx, target)
    }
}

impl AsyncWrite for Upgraded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.stream().poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(cx, buffers)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_close(cx)
    }
}

impl fmt::Debug for Upgraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upgraded").field("stream", &self.stream).finish_non_exhaustive()
    }
}

/// Runs `handler` with the connection of this request, when the response has been sent and the connection has changed its
/// protocol. The response must have the status 101 (or 200 for `CONNECT`) and say `Upgrade` in its header. If it does not,
/// the handler does not run.
///
/// The handler is a child of the connection, and not of the request. It hears a stop of the server at once, and what it
/// still has to say belongs into its clean-up. Then the stream is closed. Its failure is [reported](crate::Report::Upgraded).
///
/// # Errors
/// Fails if the request asks for no upgrade, or does not come from a [`Server`](crate::Server).
///
/// ```
/// use std::io;
/// use convoke::io::{read_exact, write_all};
/// use convoke::prelude::*;
/// use convoke_http::{RequestBody, Upgraded, upgrade};
/// use http::header::{CONNECTION, UPGRADE};
/// use http::{Request, Response, StatusCode};
///
/// /// Says good bye however it ends, also if the server is asked to stop.
/// struct Polite(Upgraded);
///
/// impl AsyncClose for Polite {
///     type Error = io::Error;
///     async fn close(mut self, _: Exit) -> io::Result<()> {
///         write_all(&mut self.0, b"bye").await
///     }
/// }
///
/// /// Returns each byte, until one is a dot.
/// async fn echo(stream: Upgraded) -> io::Result<()> {
///     using(Polite(stream), async |mut stream| {
///         let mut byte = [0];
///         while byte != *b"." {
///             read_exact(&mut stream.0, &mut byte).await?;
///             write_all(&mut stream.0, &byte).await?;
///         }
///         Ok(())
///     })
///     .await
/// }
///
/// async fn handler(mut request: Request<RequestBody>) -> io::Result<Response<String>> {
///     upgrade(&mut request, echo).map_err(io::Error::other)?;
///     let answer = Response::builder()
///         .status(StatusCode::SWITCHING_PROTOCOLS)
///         .header(CONNECTION, "upgrade")
///         .header(UPGRADE, "echo");
///     answer.body(String::new()).map_err(io::Error::other)
/// }
/// ```
pub fn upgrade<B, F, R>(request: &mut Request<B>, handler: F) -> Result<(), UpgradeError>
where
    F: FnOnce(Upgraded) -> R + Send + 'static,
    R: Future<Output: ConnectionOutput> + Send + 'static,
{
    if request.extensions().get::<OnUpgrade>().is_none() {
        return Err(UpgradeError { why: "it asks for no upgrade" });
    }
    let Some(connection) = Connection::current() else {
        return Err(UpgradeError {
            why: "it comes from no server of Convoke, or was passed to a task outside of it",
        });
    };
    let upgraded = upgrade::on(request);
    connection.upgrades().named("upgraded connection").spawn(async move {
        // An error means that the client has gone, or that the response says something else.
        let Ok(upgraded) = upgraded.await else { return Ok(()) };
        let returned = Arc::<Returned>::default();
        let mut stream = Upgraded::new(upgraded);
        stream.returned = Some(returned.clone());
        // On every exit of the handler, a stop too.
        let close = async move |_: Exit| returned.close().await;
        ensure(close, async { handler(stream).await.error().map_or(Ok(()), Err) }).await
    });
    Ok(())
}

/// The error of [`upgrade()`].
#[derive(Clone, Debug)]
pub struct UpgradeError {
    why: &'static str,
}

impl fmt::Display for UpgradeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the request cannot be upgraded: {}", self.why)
    }
}

impl Error for UpgradeError {}
