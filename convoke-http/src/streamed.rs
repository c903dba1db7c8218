//! Bodies of responses that a task writes while they are sent: events, exports, proxies.

use core::error::Error;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use bytes::Bytes;
use convoke_core::{Outcome, Panic};
use convoke_net::net::ConnectionOutput;
use convoke_sync::mpsc;
use convoke_task::scope::{Handle, HandleOutcome};
use futures_core::Stream;
use hyper::body::{Body, Frame};

use crate::caught::Caught;
use crate::connection::Connection;
use crate::report::AnyError;

/// The number of chunks that wait until the client takes them, before [`BodyWriter::send`] waits.
pub const CHUNKS: usize = 4;

/// Makes a body that `producer` writes, in a task of its own: a child of the connection, as the request is. The producer
/// starts at once.
///
/// When the client hangs up, the producer is asked to stop, and its clean-up is awaited. In a drain it goes on for the
/// grace period, and hears of it through [`Drain`](crate::Drain). The request time does not hold for it. If it fails,
/// panics or stops by itself, the client sees that the response is incomplete.
///
/// # Panics
/// Outside a request of a [`Server`](crate::Server).
///
/// ```
/// use std::io;
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke_http::{RequestBody, StreamedBody, streamed};
/// use http::{Request, Response};
///
/// /// Sends a line each second.
/// async fn clock(_: Request<RequestBody>) -> io::Result<Response<StreamedBody>> {
///     let body = streamed(async |body| {
///         for second in 0..60 {
///             body.send(format!("{second}\n")).await?;
///             sleep(Duration::from_secs(1)).await;
///         }
///         io::Result::Ok(())
///     });
///     Ok(Response::new(body))
/// }
/// ```
#[track_caller]
pub fn streamed<F, R>(producer: F) -> StreamedBody
where
    F: FnOnce(BodyWriter) -> R + Send + 'static,
    R: Future<Output: ConnectionOutput> + Send + 'static,
{
    let Some(scope) = Connection::current().and_then(|connection| connection.requests()) else {
        panic!(
            "`streamed` was called outside a request of a server: the task that writes the body has no scope"
        );
    };
    let (sender, receiver) = mpsc::channel(CHUNKS);
    // Called inside the task, so that a panic of the call itself is that of the producer.
    let producing = Caught::new(async move { producer(BodyWriter { sender }).await.error() });
    let handle: Handle<_> = scope.named("body of a response").spawn_future(producing);
    StreamedBody { receiver: Some(receiver), producer: Some(handle.outcome()) }
}

/// The end of a [`StreamedBody`] that its producer writes to. The body ends when the producer does.
pub struct BodyWriter {
    sender: mpsc::Sender<Bytes>,
}

impl BodyWriter {
    /// Sends a chunk. Waits while [`CHUNKS`] of them wait for the client.
    ///
    /// - *Completes with* `()` when the chunk is queued; with an error, if the body is not read any more; or stopped.
    /// - *If dropped*, the chunk is not sent.
    /// - *Runs on* the current task.
    pub async fn send(&self, chunk: impl Into<Bytes>) -> Result<(), BodyClosed> {
        self.sender.send(chunk.into()).await.map_err(|_| BodyClosed { _private: () })
    }
}

/// The body of a response that a task writes. Returned by [`streamed()`].
pub struct StreamedBody {
    /// `None` after the last chunk.
    receiver: Option<mpsc::Receiver<Bytes>>,
    /// `None` after its end.
    producer: Option<HandleOutcome<Result<Option<AnyError>, Panic>>>,
}

impl StreamedBody {
    /// Returns why a producer that has ended did not finish the body.
    fn failure(end: Outcome<Result<Option<AnyError>, Panic>>) -> Option<AnyError> {
        match end {
            Outcome::Value(Ok(error)) => error,
            Outcome::Value(Err(panic)) | Outcome::Panicked(panic) => Some(panic.to_string().into()),
            Outcome::Stopped => Some("the task that writes the body has stopped".into()),
            Outcome::Error(never) => match never {},
        }
    }
}

impl Body for StreamedBody {
    type Data = Bytes;
    type Error = AnyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, AnyError>>> {
        if let Some(receiver) = &mut self.receiver {
            if let Some(chunk) = ready!(Pin::new(receiver).poll_next(cx)) {
                return Poll::Ready(Some(Ok(Frame::data(chunk))));
            }
            self.receiver = None;
        }
        let Some(producer) = &mut self.producer else { return Poll::Ready(None) };
        let end = ready!(Pin::new(producer).poll(cx));
        self.producer = None;
        Poll::Ready(Self::failure(end).map(Err))
    }
}

/// The error of [`BodyWriter::send`]: the body is not read any more.
#[derive(Clone, Debug)]
pub struct BodyClosed {
    _private: (),
}

impl fmt::Display for BodyClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body of the response is not read any more")
    }
}

impl Error for BodyClosed {}

impl From<BodyClosed> for std::io::Error {
    fn from(error: BodyClosed) -> Self {
        Self::new(std::io::ErrorKind::BrokenPipe, error)
    }
}

impl fmt::Debug for BodyWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyWriter").field("waiting", &self.sender.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for StreamedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamedBody").field("ended", &self.producer.is_none()).finish_non_exhaustive()
    }
}
