//! Responses, and their bodies with limits.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::time::Instant;

use bytes::Bytes;
use convoke_core::raw::{Pause, budget};
use convoke_exec::time::now;
use convoke_task::stoppable;
use http::{HeaderMap, StatusCode, Uri, Version, response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::upgrade;

use super::alarm::Alarm;
use super::error::{Cause, ClientError, Phase};
use super::origin::Origin;
use super::pool::Checkout;
use crate::upgrade::Upgraded;

/// A response whose body was not read yet. [`into_http`](Response::into_http) makes one of `http` of it.
///
/// If it is dropped, the rest of its body is not awaited: by HTTP/1 the connection is closed, unless the rest is there.
pub struct Response {
    head: response::Parts,
    body: ResponseBody,
    uri: Uri,
    collected_bytes: usize,
}

impl Response {
    pub(super) fn new(
        response: http::Response<Incoming>,
        uri: Uri,
        collected_bytes: usize,
        body: impl FnOnce(Incoming) -> ResponseBody,
    ) -> Self {
        let (head, incoming) = response.into_parts();
        Self { head, body: body(incoming), uri, collected_bytes }
    }

    /// Returns the status.
    pub fn status(&self) -> StatusCode {
        self.head.status
    }

    /// Returns the version of HTTP of the connection.
    pub fn version(&self) -> Version {
        self.head.version
    }

    /// Returns the header fields.
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// Returns the URI that has answered: after redirects, not the one of the request.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Returns an error if the status is one: 400 to 599.
    ///
    /// # Errors
    /// The error has the phase [`Status`](Phase::Status), and the [status](ClientError::status). The response is dropped.
    pub fn error_for_status(self) -> Result<Self, ClientError> {
        let status = self.head.status;
        if status.is_client_error() || status.is_server_error() {
            let error = ClientError::new(Phase::Status, Cause::Status(status));
            return Err(error.of(&self.body.origin, true));
        }
        Ok(self)
    }

    /// Reads the body to its end, up to [`collected_bytes`](super::ClientBuilder::collected_bytes).
    ///
    /// - *Completes with* the body; an error, if it is too large, too slow or incomplete; or stopped.
    /// - *If dropped*, the response is dropped.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke_http::{Client, ClientError};
    ///
    /// async fn picture(client: &Client) -> Result<bytes::Bytes, ClientError> {
    ///     client.get("http://server/cat.png").send().await?.bytes().await
    /// }
    /// ```
    pub async fn bytes(self) -> Result<Bytes, ClientError> {
        let (origin, limit) = (self.body.origin.clone(), self.collected_bytes);
        match Limited::new(self.body, limit).collect().await {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) => Err(match error.downcast::<ClientError>() {
                Ok(error) => *error,
                Err(error) => match error.downcast::<LengthLimitError>() {
                    Ok(error) => {
                        ClientError::new(Phase::Body, Cause::TooLarge(limit, *error)).of(&origin, true)
                    }
                    Err(error) => ClientError::failed(Phase::Body, error).of(&origin, true),
                },
            }),
        }
    }

    /// Reads the body to its end, as [`bytes`](Response::bytes) does, and returns it as text. Bytes that are not UTF-8 are
    /// replaced.
    ///
    /// - *Completes with* the text; an error, if the body is too large, too slow or incomplete; or stopped.
    /// - *If dropped*, the response is dropped.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke_http::{Client, ClientError};
    ///
    /// async fn page(client: &Client) -> Result<String, ClientError> {
    ///     client.get("http://server/").send().await?.text().await
    /// }
    /// ```
    pub async fn text(self) -> Result<String, ClientError> {
        let bytes = self.bytes().await?;
        Ok(String::from_utf8(bytes.into())
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// Waits for the next chunk of the body, of any size. A body that is read like this has no limit in bytes.
    ///
    /// - *Completes with* the chunk, or with `None` at the end; an error, if the body is too slow or incomplete; or stopped.
    /// - *If dropped*, no chunk is lost.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke_http::{Client, ClientError};
    ///
    /// async fn count(client: &Client) -> Result<usize, ClientError> {
    ///     let mut download = client.get("http://server/large").send().await?;
    ///     let mut count = 0;
    ///     while let Some(chunk) = download.chunk().await? {
    ///         count += chunk.len();
    ///     }
    ///     Ok(count)
    /// }
    /// ```
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        while let Some(frame) = self.body.frame().await {
            if let Ok(data) = frame?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// Takes over the connection after a response with the status 101, or one to `CONNECT`: a stream of bytes in both directions.
    /// The program closes it, with [`using`](convoke_task::using()). The client does not wait for it.
    ///
    /// - *Completes with* the stream; an error, if the server has not changed the protocol; or stopped.
    /// - *If dropped*, the connection is closed.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use std::io;
    /// use convoke::io::write_all;
    /// use convoke::prelude::*;
    /// use convoke_http::Client;
    /// use http::header::{CONNECTION, UPGRADE};
    ///
    /// async fn say_hello(client: &Client) -> io::Result<()> {
    ///     let request = client.get("http://server/chat").header(CONNECTION, "upgrade");
    ///     let response = request.header(UPGRADE, "chat").send().await?;
    ///     using(response.upgrade().await?, async |mut chat| {
    ///         write_all(&mut *chat, b"hello\n").await
    ///     })
    ///     .await
    /// }
    /// ```
    pub async fn upgrade(self) -> Result<Upgraded, ClientError> {
        let Self { head, body, .. } = self;
        let origin = body.origin.clone();
        let response = http::Response::from_parts(head, ());
        match stoppable(upgrade::on(response)).await {
            Ok(upgraded) => Ok(Upgraded::new(upgraded)),
            Err(error) => Err(ClientError::failed(Phase::Body, error).of(&origin, true)),
        }
    }

    /// Returns a response of `http`, with the body as a stream.
    pub fn into_http(self) -> http::Response<ResponseBody> {
        http::Response::from_parts(self.head, self.body)
    }

    /// Reads what is left of a small body, so that the connection can be used again.
    pub(super) async fn skip_body(mut self, limit: usize) {
        let mut left = limit;
        while let Ok(Some(chunk)) = self.chunk().await {
            match left.checked_sub(chunk.len()) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    }
}

impl From<Response> for http::Response<ResponseBody> {
    fn from(response: Response) -> Self {
        response.into_http()
    }
}

/// The body of a response, with the time limits of the client. It returns the connection to the pool at its end, or when it
/// is dropped.
pub struct ResponseBody {
    // Dropped before the checkout: hyper must see first that nobody reads any more.
    incoming: Incoming,
    /// `None` at the end.
    checkout: Option<Checkout>,
    origin: Origin,
    idle_time: Duration,
    /// The end of the time that the request may take in all, and that time.
    total: Option<(Instant, Duration)>,
    /// The end of the time for the next chunk, if a read waits for it.
    idle_at: Option<Instant>,
    alarm: Alarm,
    pause: Pause,
}

impl ResponseBody {
    pub(super) fn new(
        incoming: Incoming,
        checkout: Checkout,
        origin: Origin,
        idle_time: Duration,
        total: Option<(Instant, Duration)>,
    ) -> Self {
        let checkout = (!incoming.is_end_stream()).then_some(checkout);
        let (alarm, pause) = (Alarm::default(), Pause::here());
        Self { incoming, checkout, origin, idle_time, total, idle_at: None, alarm, pause }
    }

    /// Completes with an error if a time is up. Else wakes the task then.
    fn poll_time(&mut self, cx: &mut Context<'_>) -> Poll<ClientError> {
        let idle_at = match self.idle_at {
            Some(idle_at) => Some(idle_at),
            None => now().checked_add(self.idle_time),
        };
        self.idle_at = idle_at;
        let total_at = self.total.map(|(at, _)| at);
        let Some(at) = idle_at.into_iter().chain(total_at).min() else {
            self.pause.wait(cx);
            return Poll::Pending;
        };
        if self.alarm.poll(at, cx).is_pending() {
            return Poll::Pending;
        }
        let cause = match self.total {
            Some((total_at, time)) if total_at <= at => Cause::Time("the request", time),
            _ => Cause::Time("the next chunk", self.idle_time),
        };
        Poll::Ready(ClientError::new(Phase::Body, cause).of(&self.origin, true))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = ClientError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ClientError>>> {
        if Pause::is_stopped() || !budget::may_proceed(cx) {
            return Poll::Pending;
        }
        let this = &mut *self;
        let frame = match Pin::new(&mut this.incoming).poll_frame(cx) {
            Poll::Ready(frame) => frame,
            Poll::Pending => return this.poll_time(cx).map(|error| Some(Err(error))),
        };
        budget::spend();
        this.idle_at = None;
        let frame = frame.map(|frame| {
            frame.map_err(|error| ClientError::failed(Phase::Body, error).of(&this.origin, true))
        });
        if this.incoming.is_end_stream() || !matches!(frame, Some(Ok(_))) {
            this.checkout = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("uri", &self.uri)
            .field("status", &self.head.status)
            .field("version", &self.head.version)
            .field("headers", &self.head.headers)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody")
            .field("origin", &self.origin)
            .field("ended", &self.incoming.is_end_stream())
            .finish_non_exhaustive()
    }
}
