//! The builder of a request.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::Arc;

use convoke_core::raw::Frame;
use convoke_task::schedule::Backoff;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, request};
use hyper::body::Body;

use super::SharedClient;
use super::error::ClientError;
use super::payload::Payload;
use super::query::with_query;
use super::response::Response;
use super::send::{Order, send};
use crate::report::AnyError;

/// A request that was not sent yet. Made by [`Client::get`](super::Client::get) and its siblings.
///
/// ```
/// use convoke_http::{Client, ClientError};
///
/// async fn create(client: &Client, text: String) -> Result<(), ClientError> {
///     let request = client.put("http://server/note").header("content-type", "text/plain");
///     let request = request.body(text);
///     request.send().await?.error_for_status()?;
///     Ok(())
/// }
/// ```
#[must_use = "a request does nothing until it is sent"]
pub struct RequestBuilder {
    client: Arc<SharedClient>,
    /// The first mistake in the request, which `send` returns.
    error: Option<ClientError>,
    order: Order,
}

impl RequestBuilder {
    pub(super) fn new<U>(client: Arc<SharedClient>, method: Method, uri: U) -> Self
    where
        U: TryInto<Uri, Error: Into<http::Error>>,
    {
        let (mut head, ()) = Request::new(()).into_parts();
        head.method = method;
        let mut this = Self::of(client, head, Payload::default());
        match uri.try_into() {
            Ok(uri) => this.order.head.uri = uri,
            Err(error) => this.error = Some(ClientError::request(error.into())),
        }
        this
    }

    pub(super) fn from_http<B>(client: Arc<SharedClient>, request: Request<B>) -> Self
    where
        B: Body<Data: Send, Error: Into<AnyError>> + Send + 'static,
    {
        let (head, body) = request.into_parts();
        Self::of(client, head, Payload::stream(body))
    }

    fn of(client: Arc<SharedClient>, head: request::Parts, body: Payload) -> Self {
        let options = &client.options;
        let order = Order {
            head,
            body,
            total_time: options.total_time,
            head_time: options.head_time,
            redirects: options.redirects,
            retry: options.retry,
        };
        Self { client, error: None, order }
    }

    /// Adds a header field. A name or a value that is malformed is an error when the request is sent.
    pub fn header<N, V>(mut self, name: N, value: V) -> Self
    where
        N: TryInto<HeaderName, Error: Into<http::Error>>,
        V: TryInto<HeaderValue, Error: Into<http::Error>>,
    {
        let name = name.try_into().map_err(Into::into);
        match name.and_then(|name| Ok((name, value.try_into().map_err(Into::into)?))) {
            Ok((name, value)) => _ = self.order.head.headers.append(name, value),
            Err(error) => self.error = self.error.or_else(|| Some(ClientError::request(error))),
        }
        self
    }

    /// Returns the header fields, to change them.
    pub fn headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.order.head.headers
    }

    /// Adds a name and a password (`Authorization: Basic …`).
    pub fn basic_auth(mut self, name: &str, password: &str) -> Self {
        let value = super::basic::basic(format!("{name}:{password}").as_bytes());
        self.order.head.headers.insert(http::header::AUTHORIZATION, value);
        self
    }

    /// Adds a token (`Authorization: Bearer …`). One that cannot be in a header field is an error when the request is sent.
    pub fn bearer_auth(mut self, token: &str) -> Self {
        match HeaderValue::try_from(format!("Bearer {token}")) {
            Ok(mut value) => {
                value.set_sensitive(true);
                self.order.head.headers.insert(http::header::AUTHORIZATION, value);
            }
            Err(error) => self.error = self.error.or_else(|| Some(ClientError::request(error))),
        }
        self
    }

    /// Adds names and values to the query of the URI, percent-encoded, behind what is there.
    ///
    /// ```
    /// use convoke_http::client::RequestBuilder;
    /// use convoke_http::Client;
    ///
    /// fn search(client: &Client, words: &str, page: u32) -> RequestBuilder {
    ///     // http://server/search?q=caf%C3%A9%20%26%20cake&page=2
    ///     client.get("http://server/search").query([("q", words), ("page", &page.to_string())])
    /// }
    /// ```
    pub fn query<N, V>(mut self, pairs: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: AsRef<str>,
        V: AsRef<str>,
    {
        match with_query(&self.order.head.uri, pairs) {
            Ok(uri) => self.order.head.uri = uri,
            Err(error) => self.error = self.error.or_else(|| Some(ClientError::request(error))),
        }
        self
    }

    /// Sets the body: text or bytes, which can be sent again when a connection was lost, or a [`Payload`].
    pub fn body(mut self, body: impl Into<Payload>) -> Self {
        self.order.body = body.into();
        self
    }

    /// Sets the body to one that is sent while it is made: see [`Payload::stream`].
    pub fn stream<B>(self, body: B) -> Self
    where
        B: Body<Data: Send, Error: Into<AnyError>> + Send + 'static,
    {
        self.body(Payload::stream(body))
    }

    /// Sets the time that the request may take in all: see [`ClientBuilder::total_time`](super::ClientBuilder::total_time).
    pub fn total_time(mut self, time: Duration) -> Self {
        self.order.total_time = Some(time);
        self
    }

    /// Sets the time until the head of the response: see [`ClientBuilder::head_time`](super::ClientBuilder::head_time). For a
    /// long poll.
    pub fn head_time(mut self, time: Duration) -> Self {
        self.order.head_time = time;
        self
    }

    /// Sets the maximum number of redirects: see [`ClientBuilder::redirects`](super::ClientBuilder::redirects).
    pub fn redirects(mut self, redirects: usize) -> Self {
        self.order.redirects = redirects;
        self
    }

    /// Sets the pauses between attempts: see [`ClientBuilder::retry`](super::ClientBuilder::retry). With `None`, there is one
    /// attempt.
    pub fn retry(mut self, schedule: impl Into<Option<Backoff>>) -> Self {
        self.order.retry = schedule.into();
        self
    }

    /// Sends the request, and waits for the head of the response.
    ///
    /// - *Completes with* the response, whatever its status; an error; or stopped.
    /// - *If dropped*, the request is given up: see the [module](super) on what becomes of its connection.
    /// - *Runs on* the current task. The connection is a task of the client.
    /// - *Panics* outside a task.
    ///
    /// ```
    /// use convoke_http::{Client, ClientError};
    ///
    /// async fn length(client: &Client) -> Result<usize, ClientError> {
    ///     let page = client.get("http://server/").send().await?;
    ///     Ok(page.bytes().await?.len())
    /// }
    /// ```
    #[track_caller]
    pub fn send(self) -> Sending {
        let Self { client, error, order } = self;
        let sending = async move {
            match error {
                Some(error) => Err(error),
                None => send(client, order).await,
            }
        };
        Sending { location: Location::caller(), sending: Box::pin(sending) }
    }
}

/// The future of [`RequestBuilder::send`].
#[must_use = "futures do nothing until they are awaited"]
pub struct Sending {
    location: &'static Location<'static>,
    sending: Pin<Box<dyn Future<Output = Result<Response, ClientError>> + Send>>,
}

impl Future for Sending {
    type Output = Result<Response, ClientError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self.sending.as_mut().poll(cx);
        if polled.is_pending() {
            // The line of the program that sends the request, instead of the line in here that waits.
            Frame::current(|frame| {
                if let Some(frame) = frame {
                    frame.waits_at(self.location);
                }
            });
        }
        polled
    }
}

impl fmt::Debug for RequestBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBuilder")
            .field("method", &self.order.head.method)
            .field("uri", &self.order.head.uri)
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Sending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending").field("at", &self.location).finish_non_exhaustive()
    }
}
