//! The HTTP server: `Server::new(address, service)`.
//!
//! # Protocol
//! - `Server` runs on [`serve`](convoke_net::net::serve()), which accepts connections on all cores, bounds them, and shuts
//!   down sockets that outlast a drain. Each connection is a task (`connection`).
//! - The task of a connection does the TLS handshake (`tls`), finds out the version of HTTP (`protocol`), and then
//!   polls hyper's connection (`http1` and `http2`, by `drive`) over its stream (`observed`). A connection by HTTP/1 that
//!   waits for a request is dormant: it has no state of hyper, and none of its buffers.
//! - Hyper calls `Requests` for each request, which starts a child (`answer`). Hyper gets the handle (`reply`).
//! - An `Exchange` is the request as limits and logs see it. It is created with the child, and ends with the body of
//!   the response (`reply_body`).
//! - By HTTP/2 hyper has a task for each stream, which sends the response. It ends if the client takes nothing (`stalled`).
//! - `Activity` is shared by all of them, under a short lock: requests are counted there, and the task of the connection
//!   reads when an idle connection, or a slow head, has to end.

mod activity;
mod answer;
mod connection;
mod date;
mod drive;
mod exchange;
mod http1;
mod http2;
mod observed;
mod protocol;
mod reply;
mod reply_body;
mod requests;
mod service;
mod stalled;
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
mod tls;

pub use service::HttpService;

use core::fmt;
use core::future::{Future, IntoFuture};
use core::panic::Location;
use core::time::Duration;
use std::io;
use std::sync::Arc;

use convoke_core::{Panic, StopToken};
pub use convoke_net::net::Serving;
use convoke_net::net::{
    Accepting, DEFAULT_CONNECTIONS, DRAIN_GRACE, Kind, ListenAt, ListenOptions, SocketStream,
    serve as serve_connections,
};
use convoke_task::{current, shield};
use http::{Request, Response};
use hyper::body::Body;
use hyper::service::service_fn;

use crate::body::RequestBody;
use crate::limits::Limits;
use crate::record::RequestRecord;
use crate::report::{AnyError, Report};
use connection::serve_connection;
use exchange::{OnRequest, Places};
use tls::Tls;

/// The time that sockets stay open after the grace period of requests, for the clean-up of requests that were stopped then.
const CUT_MARGIN: Duration = Duration::from_secs(1);

/// Serves HTTP with an `async fn`, from a request to a response. Short for [`Server::new`] with
/// [`service_fn`].
///
/// ```no_run
/// use convoke_http::{RequestBody, serve};
/// use http::{Request, Response};
///
/// async fn hello(request: Request<RequestBody>) -> Result<Response<String>, std::io::Error> {
///     Ok(Response::new(format!("hello {}\n", request.uri().path())))
/// }
///
/// #[convoke::main]
/// async fn main() -> std::io::Result<()> {
///     serve("127.0.0.1:7000", hello).await
/// }
/// ```
#[track_caller]
pub fn serve<L, H, F, B, E>(at: L, handler: H) -> Server<L, impl HttpService<Body = B, Error = E, Future = F>>
where
    L: ListenAt,
    H: Fn(Request<RequestBody>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Response<B>, E>> + Send + 'static,
    B: Body<Data: Send, Error: Into<AnyError>> + Send + 'static,
    E: Into<AnyError> + 'static,
{
    Server::new(at, service_fn(handler))
}

/// The end of a handler whose client has gone.
///
/// A client that ends its side of the connection after a request (half-close: `nc -N`, some health checks) counts as gone, by
/// HTTP/1: nobody can tell it from one that was closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnHangUp {
    /// It is asked to stop, for the reason [`Abandoned`](convoke_core::StopReason::Abandoned), and its clean-up is awaited.
    /// The default.
    #[default]
    Stop,
    /// It finishes, and its response is dropped.
    Finish,
}

/// An HTTP server that was not started yet, and its options. Await it to run the server.
///
/// - **Protocols.** HTTP/1.1, and HTTP/2 if the client begins with it. With [TLS](Server::tls) both sides agree on one.
/// - **Cores, bound, lack of descriptors**: as [`net::serve`](convoke_net::net::serve()), on which it runs.
/// - **Requests.** Each is a task of its own, a child of its connection. When the client hangs up, the handler is asked to
///   stop, and its clean-up is awaited: see [`OnHangUp`]. A panic or an error of a handler is answered with 500 and
///   [reported](Server::report); other requests go on.
/// - **Limits**: see [`Limits`].
/// - **Stop.** If the drain is [announced](Server::announce), the server goes on for that time. Then listeners close at once, and so do idle connections. Requests that have begun go on for the
///   [grace period](Server::grace), and hear of it through [`Drain`](crate::Drain). Then they are asked to stop, and their
///   clean-up is awaited. [Upgraded](crate::upgrade()) connections hear the stop at once.
///
/// Awaited, it:
///
/// - *Completes with* an error, if no listener can be bound or a listener fails; or stopped. It does not complete with
///   `Ok`.
/// - *If dropped*, connections are asked to stop, and the task waits for them at its end.
/// - *Runs on* all contexts of the runtime.
///
/// ```
/// use std::io;
/// use std::time::Duration;
/// use convoke::net::{TcpListener, TcpStream};
/// use convoke::prelude::*;
/// use convoke_http::{Limits, RequestBody, Server};
/// use http::{Request, Response};
/// use hyper::service::service_fn;
///
/// async fn hello(_: Request<RequestBody>) -> io::Result<Response<String>> {
///     Ok(Response::new("hello".to_owned()))
/// }
///
/// #[convoke::main]
/// async fn main() -> io::Result<()> {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let address = listener.local_addr()?;
///     let server = Server::new(listener, service_fn(hello))
///         .limits(Limits::new().body_bytes(64 * 1024))
///         .request_time(Duration::from_secs(20));
///     let client = async {
///         let stream = TcpStream::connect(address).await?;
///         stream.write_all(b"GET / HTTP/1.1\r\nhost: me\r\nconnection: close\r\n\r\n").await?;
///         let mut answer = Vec::new();
///         while stream.read_buf(&mut answer).await? > 0 {}
///         assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n") && answer.ends_with(b"hello"));
///         Ok(())
///     };
///     race((server.into_future(), client)).await
/// }
/// ```
#[must_use = "a server does nothing until it is awaited"]
pub struct Server<L: ListenAt, S> {
    at: L,
    service: S,
    location: &'static Location<'static>,
    connections: usize,
    limits: Limits,
    request_time: Option<Duration>,
    on_hang_up: OnHangUp,
    announce: Duration,
    grace: Duration,
    accepting: Option<Accepting>,
    options: ListenOptions,
    tls: Tls,
    report: OnReport,
    on_request: Option<OnRequest>,
    on_listening: Option<OnListening<L>>,
}

type OnReport = Arc<dyn Fn(Report) + Send + Sync>;
type OnListening<L> = Box<dyn FnOnce(AddressOf<L>) + Send>;
type AddressOf<L> = <<L as ListenAt>::Kind as Kind>::Address;

/// The part of a server that all its connections share.
struct SharedServer<S> {
    service: S,
    limits: Limits,
    places: Places,
    request_time: Option<Duration>,
    on_hang_up: OnHangUp,
    grace: Duration,
    /// The stop of the server's task, if the drain is announced: connections are shielded from it for that time.
    announced: Option<StopToken>,
    tls: Tls,
    report: OnReport,
    on_request: Option<OnRequest>,
    /// True in a simulation: responses have a date by its clock, instead of hyper's.
    has_own_clock: bool,
    /// The names of requests, and of hyper's state machine, in the tree of tasks. One for all, so that a request
    /// allocates nothing for it.
    request_name: Arc<str>,
    driver_name: Arc<str>,
}

impl<S> SharedServer<S> {
    fn report(&self, report: Report) {
        report_to(&self.report, report);
    }
}

fn report_to(function: &OnReport, report: Report) {
    // The panic hook has reported a panic of the program's report function.
    _ = Panic::catch(|| function(report));
}

impl<L: ListenAt, S: HttpService> Server<L, S> {
    /// Creates a server that listens at an address, or with a listener of any kind, and that answers requests with a
    /// service: one of hyper's, an `async fn` in [`service_fn`], or a service of tower in `convoke_http::tower`.
    #[track_caller]
    pub fn new(at: L, service: S) -> Self {
        Self {
            at,
            service,
            location: Location::caller(),
            connections: DEFAULT_CONNECTIONS,
            limits: Limits::new(),
            request_time: None,
            on_hang_up: OnHangUp::default(),
            announce: Duration::ZERO,
            grace: DRAIN_GRACE,
            accepting: None,
            options: ListenOptions::new(),
            tls: Tls::default(),
            report: Arc::new(Report::print),
            on_request: None,
            on_listening: None,
        }
    }
}

impl<L: ListenAt, S> Server<L, S> {
    /// Sets the maximum number of connections, at least one:
    /// [`DEFAULT_CONNECTIONS`](convoke_net::net::DEFAULT_CONNECTIONS) by default. Further clients wait in the backlog of the
    /// listener.
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// Sets the limits of what clients may ask of the server.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the time that a handler may take until it returns a response; no limit by default. The handler, and all that
    /// it awaits and starts, see the deadline. After it the handler is asked to stop, its clean-up is awaited, and the
    /// request is answered with 503.
    pub fn request_time(mut self, time: Duration) -> Self {
        self.request_time = Some(time);
        self
    }

    /// Sets what becomes of a handler whose client has gone: it is stopped by default.
    pub fn on_hang_up(mut self, on_hang_up: OnHangUp) -> Self {
        self.on_hang_up = on_hang_up;
        self
    }

    /// Sets for how long the server goes on as before after a stop request: it accepts connections, answers requests, and
    /// [`Drain`](crate::Drain) says that the drain has begun. Then it drains. Zero by default.
    ///
    /// For servers behind a load balancer that asks a readiness probe: in this time the probe answers 503, and the load
    /// balancer sends no more clients. Set it to somewhat more than the balancer takes to notice. The time comes on top of the
    /// [grace period](Server::grace); both together must be shorter than that of `#[convoke::main]`, which is 30 seconds
    /// by default.
    ///
    /// ```
    /// use std::io;
    /// use std::time::Duration;
    /// use convoke_http::{Connection, RequestBody, serve};
    /// use http::{Request, Response, StatusCode};
    ///
    /// async fn answer(request: Request<RequestBody>) -> io::Result<Response<String>> {
    ///     let drains = Connection::current().is_some_and(|connection| connection.drain().has_begun());
    ///     let mut answer = Response::new("hello".to_owned());
    ///     if drains && request.uri().path() == "/ready" {
    ///         *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    ///     }
    ///     Ok(answer)
    /// }
    ///
    /// async fn run() -> io::Result<()> {
    ///     serve("127.0.0.1:7000", answer).announce(Duration::from_secs(10)).await
    /// }
    /// ```
    pub fn announce(mut self, time: Duration) -> Self {
        self.announce = time;
        self
    }

    /// Sets how long requests that have begun may go on after a stop request: [`DRAIN_GRACE`] by default.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets how connections are spread over contexts. Default: see [`Accepting`].
    pub fn accepting(mut self, accepting: Accepting) -> Self {
        self.accepting = Some(accepting);
        self
    }

    /// Sets the options of listeners that the server binds.
    pub fn options(mut self, options: ListenOptions) -> Self {
        self.options = options;
        self
    }

    /// Serves HTTPS. The acceptor should offer the protocols [`ALPN`](crate::ALPN); if both sides agree on none, the
    /// first bytes of the client decide.
    ///
    /// ```no_run
    /// use std::io;
    /// use convoke_http::{ALPN, RequestBody, serve};
    /// use convoke_tls::{Identity, TlsAcceptor};
    /// use http::{Request, Response};
    ///
    /// #[convoke::main]
    /// async fn main() -> io::Result<()> {
    ///     let identity = Identity::from_pem_files("server.crt", "server.key")?;
    ///     let acceptor = TlsAcceptor::builder(identity).alpn(ALPN).build()?;
    ///     let hello = async |_: Request<RequestBody>| {
    ///         io::Result::Ok(Response::new("hello".to_owned()))
    ///     };
    ///     serve("127.0.0.1:7443", hello).tls(acceptor).await
    /// }
    /// ```
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    pub fn tls(mut self, acceptor: convoke_tls::TlsAcceptor) -> Self {
        self.tls = Tls { acceptor: Some(acceptor) };
        self
    }

    /// Sets the function that is called for each failure that does not end the server. It runs on the context where that
    /// happens. Default: prints the report to stderr, unless it is [about the client](Report::is_about_client).
    pub fn report(mut self, report: impl Fn(Report) + Send + Sync + 'static) -> Self {
        self.report = Arc::new(report);
        self
    }

    /// Sets a function that is called for each request that has ended: an access log. It runs on the context of the
    /// connection, and must not block.
    ///
    /// ```
    /// use std::io;
    /// use convoke_http::{RequestBody, serve};
    /// use http::{Request, Response};
    ///
    /// async fn run() -> io::Result<()> {
    ///     let hello =
    ///         async |_: Request<RequestBody>| io::Result::Ok(Response::new(String::new()));
    ///     serve("127.0.0.1:7000", hello).on_request(|record| println!("{record}")).await
    /// }
    /// ```
    pub fn on_request(mut self, on_request: impl Fn(&RequestRecord) + Send + Sync + 'static) -> Self {
        self.on_request = Some(Arc::new(on_request));
        self
    }

    /// Sets a function that is called once, with the address, when all listeners are bound: to tell others that the
    /// server is ready, and at which port.
    pub fn on_listening(mut self, f: impl FnOnce(AddressOf<L>) + Send + 'static) -> Self {
        self.on_listening = Some(Box::new(f));
        self
    }
}

impl<L: ListenAt, S: HttpService> Server<L, S> {
    async fn run(self) -> io::Result<()> {
        let shared = Arc::new(SharedServer {
            service: self.service,
            places: Places::new(self.limits.requests),
            limits: self.limits,
            request_time: self.request_time,
            on_hang_up: self.on_hang_up,
            grace: self.grace,
            announced: (!self.announce.is_zero()).then(current::stop_token),
            tls: self.tls,
            report: self.report.clone(),
            on_request: self.on_request,
            has_own_clock: date::has_own_clock(),
            request_name: "request".into(),
            driver_name: "protocol".into(),
        });
        let handler = move |stream: SocketStream<L::Kind>, from: AddressOf<L>| {
            serve_connection(shared.clone(), stream, L::Kind::any(&from))
        };
        let report = self.report;
        let mut connections = serve_connections(self.at, handler)
            .connections(self.connections)
            .options(self.options)
            .grace(self.grace.saturating_add(CUT_MARGIN))
            .report(move |failure| report_to(&report, Report::Connection(failure)));
        if let Some(accepting) = self.accepting {
            connections = connections.accepting(accepting);
        }
        if let Some(on_listening) = self.on_listening {
            connections = connections.on_listening(on_listening);
        }
        if self.announce.is_zero() {
            connections.await
        } else {
            shield(connections).grace(self.announce).await
        }
    }
}

impl<L, S> IntoFuture for Server<L, S>
where
    L: ListenAt + Send + 'static,
    S: HttpService,
{
    type Output = io::Result<()>;
    type IntoFuture = Serving;

    fn into_future(self) -> Serving {
        Serving::new(self.location, self.run())
    }
}

impl<L: ListenAt, S> fmt::Debug for Server<L, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("connections", &self.connections)
            .field("limits", &self.limits)
            .field("request_time", &self.request_time)
            .field("on_hang_up", &self.on_hang_up)
            .field("announce", &self.announce)
            .field("grace", &self.grace)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}
