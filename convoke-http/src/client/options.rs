//! The options of a client: limits with names, and how requests are sent.

use core::fmt;
use core::future::Future;
use core::time::Duration;
use std::sync::Arc;

use convoke_sync::Event;
use convoke_task::schedule::Backoff;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::places::Places;
use super::pool::{Bounds, Pool};
use super::proxy::Proxy;
use super::route::Versions;
use super::running::Running;
use super::tls::Tls;
use super::{Client, SharedClient};

/// The default maximum number of connections of a client, to all origins.
pub const CONNECTIONS: usize = 1024;
/// The default maximum number of connections to one origin.
pub const CONNECTIONS_PER_ORIGIN: usize = 64;
/// The default maximum number of idle connections to one origin.
pub const IDLE_PER_ORIGIN: usize = 16;
/// The default time for which an idle connection is kept open.
pub const IDLE_TIME: Duration = Duration::from_secs(45);
/// The default maximum number of requests that wait for a connection.
pub const WAITING: usize = 4096;
/// The default maximum number of requests at a time on one connection by HTTP/2.
pub const STREAMS: usize = 100;
/// The default time that looking up a name and connecting may take.
pub const CONNECT_TIME: Duration = Duration::from_secs(10);
/// The default time that the TLS handshake may take.
pub const TLS_TIME: Duration = Duration::from_secs(10);
/// The default time that a request may wait for a connection, to become free or to be opened.
pub const WAIT_TIME: Duration = Duration::from_secs(30);
/// The default time from the last chunk of the request to the head of the response.
pub const HEAD_TIME: Duration = Duration::from_secs(60);
/// The default time between two chunks of the body of a response.
pub const BODY_IDLE_TIME: Duration = Duration::from_secs(30);
/// The default maximum size of the head of a response.
pub const HEAD_BYTES: usize = 64 * 1024;
/// The default maximum size of a body that [`bytes`](super::Response::bytes) or [`text`](super::Response::text) collects.
pub const COLLECTED_BYTES: usize = 16 * 1024 * 1024;
/// The default maximum number of redirects that a request follows.
pub const REDIRECTS: usize = 10;
/// The default time that requests of clones may go on after the body of [`Client::run`] has ended.
pub const GRACE: Duration = Duration::from_secs(5);

/// The options as requests and connections read them.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) idle_time: Duration,
    pub(super) connect_time: Duration,
    pub(super) tls_time: Duration,
    pub(super) wait_time: Duration,
    pub(super) head_time: Duration,
    pub(super) body_idle_time: Duration,
    pub(super) total_time: Option<Duration>,
    pub(super) head_bytes: usize,
    pub(super) collected_bytes: usize,
    pub(super) redirects: usize,
    pub(super) retry: Option<Backoff>,
    pub(super) grace: Duration,
    pub(super) headers: HeaderMap,
    pub(super) proxy: Proxy,
    pub(super) tls: Tls,
    pub(super) versions: Versions,
}

/// Configures a [`Client`], and [runs](ClientBuilder::run) a body with it.
///
/// A limit of `Duration::MAX` or `usize::MAX` is none.
///
/// ```
/// use std::time::Duration;
/// use convoke::retry::Backoff;
/// use convoke_http::{Client, ClientError};
///
/// async fn page() -> Result<String, ClientError> {
///     Client::builder()
///         .connections_per_origin(8)
///         .connect_time(Duration::from_secs(2))
///         .total_time(Duration::from_secs(10))
///         .retry(Backoff::exponential(Duration::from_millis(100)).jitter(0.5).up_to(3))
///         .run(async |client| client.get("http://server/").send().await?.text().await)
///         .await
/// }
/// ```
#[derive(Clone)]
#[must_use = "a client does nothing until it is run"]
pub struct ClientBuilder {
    bounds: Bounds,
    options: Options,
}

impl ClientBuilder {
    pub(super) fn new() -> Self {
        let bounds = Bounds {
            connections: CONNECTIONS,
            per_origin: CONNECTIONS_PER_ORIGIN,
            idle_per_origin: IDLE_PER_ORIGIN,
            waiting: WAITING,
            streams: STREAMS,
        };
        let options = Options {
            idle_time: IDLE_TIME,
            connect_time: CONNECT_TIME,
            tls_time: TLS_TIME,
            wait_time: WAIT_TIME,
            head_time: HEAD_TIME,
            body_idle_time: BODY_IDLE_TIME,
            total_time: None,
            head_bytes: HEAD_BYTES,
            collected_bytes: COLLECTED_BYTES,
            redirects: REDIRECTS,
            retry: None,
            grace: GRACE,
            headers: HeaderMap::new(),
            proxy: Proxy::default(),
            tls: Tls::default(),
            versions: Versions::Agreed,
        };
        Self { bounds, options }
    }

    /// Sets the maximum number of connections to all origins, at least one: [`CONNECTIONS`] by default. If there are as many, an
    /// idle one to another origin is closed, or the request waits.
    pub fn connections(mut self, connections: usize) -> Self {
        self.bounds.connections = connections;
        self
    }

    /// Sets the maximum number of connections to one origin, at least one: [`CONNECTIONS_PER_ORIGIN`] by default. Further
    /// requests wait.
    pub fn connections_per_origin(mut self, connections: usize) -> Self {
        self.bounds.per_origin = connections;
        self
    }

    /// Sets the maximum number of idle connections to one origin: [`IDLE_PER_ORIGIN`] by default.
    pub fn idle_per_origin(mut self, connections: usize) -> Self {
        self.bounds.idle_per_origin = connections;
        self
    }

    /// Sets the time for which an idle connection is kept open: [`IDLE_TIME`] by default. It should be shorter than that of
    /// the server.
    pub fn idle_time(mut self, time: Duration) -> Self {
        self.options.idle_time = time;
        self
    }

    /// Sets the maximum number of requests that wait for a connection, to become free or to be opened; at least one, and [`WAITING`] by
    /// default. A further one fails.
    pub fn waiting(mut self, requests: usize) -> Self {
        self.bounds.waiting = requests;
        self
    }

    /// Sets the maximum number of requests at a time on one connection by HTTP/2, at least one: [`STREAMS`] by default. For
    /// further ones another connection is opened. A server that allows fewer makes the rest wait.
    pub fn streams(mut self, streams: usize) -> Self {
        self.bounds.streams = streams;
        self
    }

    /// Sets the time that looking up a name and connecting may take: [`CONNECT_TIME`] by default. The tunnel of a proxy may take
    /// as long again.
    pub fn connect_time(mut self, time: Duration) -> Self {
        self.options.connect_time = time;
        self
    }

    /// Sets the time that the TLS handshake may take: [`TLS_TIME`] by default. The connector has a limit of its own; the
    /// shorter one holds.
    pub fn tls_time(mut self, time: Duration) -> Self {
        self.options.tls_time = time;
        self
    }

    /// Sets the time that a request may wait for a connection: [`WAIT_TIME`] by default. It includes the time in which one is
    /// opened.
    pub fn wait_time(mut self, time: Duration) -> Self {
        self.options.wait_time = time;
        self
    }

    /// Sets the time from the last chunk of the request to the head of the response: [`HEAD_TIME`] by default.
    pub fn head_time(mut self, time: Duration) -> Self {
        self.options.head_time = time;
        self
    }

    /// Sets the time between two chunks of the body of a response: [`BODY_IDLE_TIME`] by default. Time in which the program does not
    /// read does not count.
    pub fn body_idle_time(mut self, time: Duration) -> Self {
        self.options.body_idle_time = time;
        self
    }

    /// Sets the time that a request may take in all, with its retries and redirects, to the end of the response's body; no limit by
    /// default. A deadline of the task holds as well.
    pub fn total_time(mut self, time: Duration) -> Self {
        self.options.total_time = Some(time);
        self
    }

    /// Sets the maximum size of the head of a response: [`HEAD_BYTES`] by default, and at least 8 KiB by HTTP/1.
    pub fn head_bytes(mut self, bytes: usize) -> Self {
        self.options.head_bytes = bytes;
        self
    }

    /// Sets the maximum size of a body that [`bytes`](super::Response::bytes) or [`text`](super::Response::text) collects:
    /// [`COLLECTED_BYTES`] by default.
    pub fn collected_bytes(mut self, bytes: usize) -> Self {
        self.options.collected_bytes = bytes;
        self
    }

    /// Sets the maximum number of redirects that a request follows: [`REDIRECTS`] by default. With 0, a redirect is a
    /// response like others.
    pub fn redirects(mut self, redirects: usize) -> Self {
        self.options.redirects = redirects;
        self
    }

    /// Sends requests again that have failed because no connection could be opened or one was lost, with these pauses; they fail
    /// at once by default.
    ///
    /// Only requests that the server cannot have processed are sent again, and idempotent ones (GET, HEAD, PUT, DELETE, OPTIONS,
    /// TRACE), if their body is not a stream. Independently of this, such a request is sent again at once if the server has
    /// closed an idle connection at the moment when it was to be used, or if it says by HTTP/2 that it has not looked at the
    /// request.
    pub fn retry(mut self, schedule: Backoff) -> Self {
        self.options.retry = Some(schedule);
        self
    }

    /// Sets the time that requests of clones may go on after the body of [`run`](ClientBuilder::run) has ended: [`GRACE`] by
    /// default.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.options.grace = grace;
        self
    }

    /// Adds a header field to all requests that do not have it.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.options.headers.append(name, value);
        self
    }

    /// Sends requests through a proxy; none by default.
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.options.proxy = proxy;
        self
    }

    /// Allows requests for `https`. The client offers the versions of HTTP by ALPN itself.
    ///
    /// ```no_run
    /// use std::io;
    /// use convoke_http::Client;
    /// use convoke_tls::{Roots, TlsConnector};
    ///
    /// async fn page(roots: Roots) -> io::Result<String> {
    ///     Client::builder()
    ///         .tls(&TlsConnector::new(roots)?)
    ///         .run(async |client| {
    ///             Ok(client.get("https://server/").send().await?.text().await?)
    ///         })
    ///         .await
    /// }
    /// ```
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    pub fn tls(mut self, connector: &convoke_tls::TlsConnector) -> Self {
        self.options.tls = Tls::new(connector);
        self
    }

    /// Speaks HTTP/1.1 only. By default both sides agree on a version by TLS, and without TLS that is HTTP/1.1.
    pub fn http1_only(mut self) -> Self {
        self.options.versions = Versions::Http1;
        self
    }

    /// Speaks HTTP/2 only. Without TLS, servers must expect it ("prior knowledge").
    pub fn http2_only(mut self) -> Self {
        self.options.versions = Versions::Http2;
        self
    }

    /// Runs a body with the client, and closes it: see [`Client::run`].
    #[track_caller]
    pub fn run<B, F>(self, body: B) -> Running<F>
    where
        B: FnOnce(Client) -> F,
        F: Future,
    {
        let Self { bounds, options } = self;
        let client = |connections| {
            let pool = Arc::new(Pool::new(connections, bounds));
            Client {
                shared: Arc::new(SharedClient {
                    pool,
                    options,
                    places: Places::of_current_task(),
                    closing: Event::new(),
                }),
            }
        };
        Running::new(client, body)
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("bounds", &self.bounds).field("options", &self.options).finish()
    }
}
