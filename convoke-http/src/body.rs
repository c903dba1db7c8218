//! The body of a request, with its limits.

use core::error::Error;
use core::fmt;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;
use std::time::Instant;

use bytes::Bytes;
use convoke_core::raw::budget;
use convoke_exec::time::{Sleeping, sleep_until};
use http::StatusCode;
use http_body_util::{LengthLimitError, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};

/// The body of a request: hyper's, with the limits of the server in bytes and time.
///
/// A client is told to send a body that it has announced with `Expect: 100-continue` when it is first read.
pub struct RequestBody {
    body: Limited<Incoming>,
    limit: u64,
    /// When the last byte must be there. `None`: never.
    deadline: Option<Instant>,
    /// Allocated when a read has to wait.
    timer: Option<Pin<Box<Sleeping>>>,
}

impl RequestBody {
    pub(crate) fn new(body: Incoming, limit: u64, deadline: Option<Instant>) -> Self {
        let bytes = usize::try_from(limit).unwrap_or(usize::MAX);
        Self { body: Limited::new(body, bytes), limit, deadline, timer: None }
    }

    /// Completes if the time is up. Else wakes the task then.
    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.deadline else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline).into_future()));
        timer.as_mut().poll(cx)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        // A client may have sent many frames before the first one is read.
        match budget::poll_in_turn(cx, |cx| Pin::new(&mut self.body).poll_frame(cx)) {
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(BodyError::new(error, self.limit)))),
            Poll::Ready(frame) => {
                Poll::Ready(frame.map(|frame| frame.map_err(|_| unreachable!("matched above"))))
            }
            Poll::Pending => self.poll_deadline(cx).map(|()| Some(Err(BodyError { kind: Kind::TooSlow }))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBody")
            .field("limit", &self.limit)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// A failure to read the body of a request. A service that returns it, also inside another error, answers with its
/// [status](BodyError::status).
///
/// ```
/// use convoke_http::{BodyError, RequestBody};
/// use http::{Request, Response};
/// use http_body_util::BodyExt;
///
/// /// Returns the body. One that is too large is answered with 413, by the `?`.
/// async fn echo(request: Request<RequestBody>) -> Result<Response<String>, BodyError> {
///     let body = request.into_body().collect().await?.to_bytes();
///     Ok(Response::new(String::from_utf8_lossy(&body).into_owned()))
/// }
/// ```
#[derive(Debug)]
pub struct BodyError {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// The error of the limit: frameworks look for it among the sources.
    TooLarge {
        limit: u64,
        error: LengthLimitError,
    },
    TooSlow,
    /// The connection, or what the client has sent.
    Broken(Box<dyn Error + Send + Sync>),
}

impl BodyError {
    fn new(error: Box<dyn Error + Send + Sync>, limit: u64) -> Self {
        let kind = match error.downcast::<LengthLimitError>() {
            Ok(error) => Kind::TooLarge { limit, error: *error },
            Err(error) => Kind::Broken(error),
        };
        Self { kind }
    }

    /// Returns the status to answer with: 413 for a body that is too large, 408 for one that is too slow, and 400 for
    /// one that is broken.
    pub fn status(&self) -> StatusCode {
        match self.kind {
            Kind::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Kind::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Kind::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }

    /// Returns the error of the limit, if that is the cause, or else itself.
    #[cfg(feature = "tower")]
    pub(crate) fn into_innermost(self) -> Box<dyn Error + Send + Sync> {
        match self.kind {
            Kind::TooLarge { error, .. } => error.into(),
            kind => Self { kind }.into(),
        }
    }

    /// Finds a failure to read the body in an error and its sources, and returns the status to answer with.
    pub(crate) fn status_in(error: &(dyn Error + 'static)) -> Option<StatusCode> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref::<Self>() {
                return Some(found.status());
            }
            if error.is::<LengthLimitError>() {
                return Some(StatusCode::PAYLOAD_TOO_LARGE);
            }
            // Its source is that of the error inside.
            let inside = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            next = inside.map(|inside| inside as &(dyn Error + 'static)).or_else(|| error.source());
        }
        None
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::TooLarge { limit, .. } => write!(f, "the body of the request is larger than {limit} bytes"),
            Kind::TooSlow => f.write_str("the body of the request did not arrive in time"),
            Kind::Broken(error) => write!(f, "the body of the request is broken: {error}"),
        }
    }
}

impl Error for BodyError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            Kind::TooLarge { error, .. } => Some(error),
            Kind::TooSlow => None,
            Kind::Broken(error) => Some(&**error),
        }
    }
}

impl From<BodyError> for io::Error {
    fn from(error: BodyError) -> Self {
        let kind = match error.kind {
            Kind::TooLarge { .. } => io::ErrorKind::FileTooLarge,
            Kind::TooSlow => io::ErrorKind::TimedOut,
            Kind::Broken(_) => io::ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}
