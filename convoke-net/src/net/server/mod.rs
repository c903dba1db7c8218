//! A server on all cores: `serve(address, handler)`.
//!
//! # Protocol
//! - `Server::run` binds one listener (`listen_at`), or one on each I/O context of the runtime
//!   (`Accepting::PerContext`).
//! - Each listener has an *acceptor* (`acceptor`): a loop in a scope of its own. The listener belongs to the
//!   body of that scope, and so it is closed as soon as the server is asked to stop.
//! - Each connection is a child of its acceptor's scope (`connection`). It calls the handler, catches its panic,
//!   and reports its failure. After a stop request it may go on for the grace period; then its socket is shut
//!   down, which ends reads and writes that are shielded. At its end it lingers, so that answers are delivered.

pub(crate) mod acceptor;
mod connection;
mod listen_at;
mod report;

pub use acceptor::ACCEPT_PAUSE;
pub use listen_at::ListenAt;
pub use report::{ConnectionOutput, ServerReport};

use core::fmt;
use core::future::{Future, IntoFuture};
use core::net::SocketAddr;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::io;
use std::sync::Arc;

use convoke_core::Panic;
use convoke_core::raw::Frame;
use convoke_io::IoExecutor;
use convoke_io::context::{CONTEXTS, Contexts, current_driver, driver_of_executor};
use convoke_io::driver::{ListenOptions, shut_down};
use convoke_task::{Bound, current, frame_dyn, scope};

use super::kind::Kind;
use super::listener::Listener;
use super::socket_stream::SocketStream;
use super::to_address::resolve_own;
use acceptor::{HandOver, SpawnThere, accept_all, spawn_there};
use listen_at::{HANDS_OVER, ListenPlace, bind, check_unused};

/// The default maximum number of connections of a server.
pub const DEFAULT_CONNECTIONS: usize = 16_384;

/// The default time that open connections of a server may take after a stop request. Shorter than the grace
/// period of `#[convoke::main]`, so that the process ends as stopped, and is not ended hard.
pub const DRAIN_GRACE: Duration = Duration::from_secs(10);

/// Accepts connections on all cores, and runs `handler` for each one, until the task is asked to stop.
///
/// Use this if each connection has a handler. Use `convoke_http::serve` for HTTP, and a
/// [`TcpListener`](crate::net::TcpListener) in a scope for what this does not bound, drain or report as the
/// program needs it.
///
/// `at` is an address, or a listener of any kind. The handler takes the connection and the address of the peer,
/// and returns `()` or a `Result`. It runs as a task of its own. Its error or panic is
/// [reported](Server::report), and the other connections go on.
///
/// - **Cores.** On a runtime with several contexts, connections are spread over all of them: see [`Accepting`].
///   Elsewhere, and in a simulation, everything runs on the context of the current task.
/// - **Bound.** At most [`connections`](Server::connections) handlers run at a time. Further clients wait in the
///   backlog of the listener. Each acceptor may hold one more that it has accepted.
/// - **Lack of descriptors or memory** does not end the server: it reports that, pauses
///   [`ACCEPT_PAUSE`], and tries again.
/// - **Stop.** Listeners close at once. Connections are asked to stop: one that waits in `read` ends, and what
///   is in a [`shield`](convoke_task::shield) or a clean-up goes on. After the [grace period](Server::grace) the
///   sockets that are still open are shut down, so that their reads and writes end, too. The server ends when
///   all connections have.
/// - **Close.** When a handler has ended, the connection is closed so that what was written is delivered, within
///   the default limits of [`Linger`](crate::stream::Linger).
///
/// The result is a builder. Await it to run the server:
///
/// - *Completes with* an error, if no listener can be bound or a listener fails; or stopped. It does not
///   complete with `Ok`.
/// - *If dropped*, connections are asked to stop, and the task waits for them at its end.
/// - *Runs on* all contexts of the runtime.
///
/// ```
/// use std::io;
/// use std::net::SocketAddr;
/// use convoke::net::{TcpListener, TcpStream, serve};
/// use convoke::prelude::*;
///
/// async fn greet(client: TcpStream, from: SocketAddr) -> io::Result<()> {
///     client.write_all(format!("hello {}", from.ip()).as_bytes()).await
/// }
///
/// #[convoke::main(contexts = 2)]
/// async fn main() -> io::Result<()> {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let address = listener.local_addr()?;
///     let client = async {
///         let mut heard = [0; 15];
///         TcpStream::connect(address).await?.read_exact(&mut heard).await?;
///         assert_eq!(&heard, b"hello 127.0.0.1");
///         Ok(())
///     };
///     race((serve(listener, greet).into_future(), client)).await
/// }
/// ```
///
/// [`ACCEPT_PAUSE`]: super::ACCEPT_PAUSE
#[doc(alias = "bind")]
#[track_caller]
pub fn serve<L, H, F>(at: L, handler: H) -> Server<L::Kind, H>
where
    L: ListenAt,
    H: Fn(SocketStream<L::Kind>, <L::Kind as Kind>::Address) -> F + Send + Sync + 'static,
    F: Future<Output: ConnectionOutput> + Send + 'static,
{
    Server {
        at: at.into_place(),
        handler,
        location: Location::caller(),
        connections: DEFAULT_CONNECTIONS,
        grace: DRAIN_GRACE,
        accepting: None,
        spawn_there: if L::HANDS_OVER { Some(spawn_there) } else { None },
        options: ListenOptions::new(),
        report: Arc::new(|report| eprintln!("{report}")),
        on_listening: None,
    }
}

/// The way in which a server spreads connections over the contexts of its runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Accepting {
    /// One listener on each context, all bound to the same address (SO_REUSEPORT). The kernel chooses a listener
    /// for each connection by a hash of its addresses. Nothing crosses threads: the fastest way for many
    /// connections. The default for addresses on Linux.
    ///
    /// Fewer connections than about eight for each core may be spread unevenly, since the kernel does not
    /// count them.
    PerContext,
    /// One acceptor, which hands connections to the contexts in turn. Spreads evenly, and costs two system
    /// calls more for each connection. The default for a listener that exists already, and on other systems
    /// than Linux, which do not spread connections over several listeners.
    HandOver,
}

/// A server that was not started yet, and its options. Returned by [`serve()`]; await it to run the server.
#[must_use = "a server does nothing until it is awaited"]
pub struct Server<K: Kind, H> {
    at: ListenPlace<K>,
    handler: H,
    location: &'static Location<'static>,
    connections: usize,
    grace: Duration,
    accepting: Option<Accepting>,
    /// Set if connections may be handed over.
    spawn_there: Option<SpawnThere<K, H>>,
    options: ListenOptions,
    report: Report,
    on_listening: Option<OnListening<K>>,
}

type Report = Arc<dyn Fn(ServerReport) + Send + Sync>;
type OnListening<K> = Box<dyn FnOnce(<K as Kind>::Address) + Send>;

/// The part of a server that all its acceptors and connections share.
struct SharedServer<H> {
    handler: H,
    bound: Bound,
    grace: Duration,
    report: Report,
    /// The name of connections in the tree of tasks. One for all, so that a connection allocates nothing for it.
    connection_name: Arc<str>,
}

impl<H> SharedServer<H> {
    fn report(&self, report: ServerReport) {
        // The panic hook has reported a panic of the program's report function.
        let _ = Panic::catch(|| (self.report)(report));
    }
}

impl<K: Kind, H> Server<K, H> {
    /// Sets the maximum number of connections, at least one. Default: [`DEFAULT_CONNECTIONS`].
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// Sets how long connections may go on after a stop request, in a shield or a clean-up, before their sockets
    /// are shut down. Default: [`DRAIN_GRACE`].
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets the options of listeners that the server binds.
    ///
    /// With [`reuse_port`](ListenOptions::reuse_port) several processes may serve one address, for restarts
    /// without a gap. Without it, an address that another process listens at is an error, although the server
    /// itself binds several listeners to it.
    pub fn options(mut self, options: ListenOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the function that is called for each failure that does not end the server: of a connection, of an
    /// `accept`. It runs on the context where that happens. Default: prints the report to stderr.
    ///
    /// ```
    /// use convoke::net::{TcpStream, serve};
    ///
    /// async fn run() -> std::io::Result<()> {
    ///     let hello = async |client: TcpStream, _| client.write_all(b"hello").await;
    ///     let server = serve("127.0.0.1:7000", hello);
    ///     server.report(|report| eprintln!("my server: {report}")).await
    /// }
    /// ```
    pub fn report(mut self, report: impl Fn(ServerReport) + Send + Sync + 'static) -> Self {
        self.report = Arc::new(report);
        self
    }

    /// Sets a function that is called once, with the address, when all listeners are bound: to tell others that
    /// the server is ready, and at which port.
    pub fn on_listening(mut self, f: impl FnOnce(K::Address) + Send + 'static) -> Self {
        self.on_listening = Some(Box::new(f));
        self
    }
}

impl<K, H, F> Server<K, H>
where
    K: Kind,
    H: Fn(SocketStream<K>, K::Address) -> F + Send + Sync + 'static,
    F: Future<Output: ConnectionOutput> + Send + 'static,
{
    /// Sets how connections are spread over contexts. Default: see [`Accepting`].
    pub fn accepting(mut self, accepting: Accepting) -> Self {
        self.accepting = Some(accepting);
        self.spawn_there = Some(spawn_there);
        self
    }

    async fn run(self) -> io::Result<()> {
        let contexts = current::local(&CONTEXTS).filter(|contexts| contexts.all().len() > 1);
        let listeners = listen(self.at, contexts, self.accepting, &self.options).await?;
        let address = listeners.address()?;
        let shared = Arc::new(SharedServer {
            handler: self.handler,
            bound: Bound::new(self.connections),
            grace: self.grace,
            report: self.report,
            connection_name: format!("connection at {}", K::any(&address)).into(),
        });
        if let Some(on_listening) = self.on_listening {
            on_listening(address);
        }
        match listeners {
            Listeners::One(listener, contexts) => {
                let hand_over = contexts.zip(self.spawn_there);
                let hand_over =
                    hand_over.map(|(contexts, spawn)| HandOver::new(contexts, spawn)).transpose()?;
                accept_all(listener, shared, hand_over).await
            }
            Listeners::Each(listeners) => {
                scope(async |s| {
                    for (index, (context, listener)) in listeners.into_iter().enumerate() {
                        let accepting = frame_dyn(accept_all(listener, shared.clone(), None));
                        s.named(format!("acceptor {index}")).on(&context).spawn(accepting);
                    }
                    Ok(())
                })
                .await
            }
        }
    }
}

/// The listeners of a server.
enum Listeners<K> {
    /// One, whose connections are handed to these contexts.
    One(Listener<K>, Option<Contexts>),
    /// One on each context.
    Each(Vec<(IoExecutor, Listener<K>)>),
}

impl<K: Kind> Listeners<K> {
    fn address(&self) -> io::Result<K::Address> {
        match self {
            Self::One(listener, _) => listener.local_addr(),
            Self::Each(all) => all[0].1.local_addr(),
        }
    }
}

async fn listen<K: Kind>(
    at: ListenPlace<K>,
    contexts: Option<Contexts>,
    accepting: Option<Accepting>,
    options: &ListenOptions,
) -> io::Result<Listeners<K>> {
    let query = match at {
        ListenPlace::Listener(_) if accepting == Some(Accepting::PerContext) => return Err(exists_already()),
        ListenPlace::Listener(listener) => return Ok(Listeners::One(listener, contexts)),
        ListenPlace::Query(query) => query,
    };
    let addresses = resolve_own(query).await?;
    let default = if HANDS_OVER { Accepting::HandOver } else { Accepting::PerContext };
    match contexts {
        Some(contexts) if accepting.unwrap_or(default) == Accepting::PerContext => {
            listen_on_each(&contexts, addresses, options).map(Listeners::Each)
        }
        contexts => Ok(Listeners::One(bind(&current_driver()?, addresses, options)?, contexts)),
    }
}

/// Binds a listener on each context, all to the first address that can be used.
fn listen_on_each<K: Kind>(
    contexts: &Contexts,
    addresses: Vec<SocketAddr>,
    options: &ListenOptions,
) -> io::Result<Vec<(IoExecutor, Listener<K>)>> {
    if !options.reuse_port {
        check_unused(&addresses, options)?;
    }
    let options = options.clone().reuse_port(true);
    let mut addresses = addresses;
    let mut listeners: Vec<(IoExecutor, Listener<K>)> = Vec::with_capacity(contexts.all().len());
    for context in contexts.all() {
        // Any thread may call a driver.
        let driver = driver_of_executor(context).ok_or_else(shut_down)?;
        let listener = bind(&driver, addresses, &options)?;
        // The others are bound to the port that the first one got.
        addresses = K::any(&listener.local_addr()?).internet().into_iter().collect();
        listeners.push((context.clone(), listener));
    }
    Ok(listeners)
}

#[cold]
fn exists_already() -> io::Error {
    let message = "a server cannot bind a listener on each context if it was given a listener: give it an \
                   address, or use `Accepting::HandOver`";
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

impl<K, H, F> IntoFuture for Server<K, H>
where
    K: Kind,
    H: Fn(SocketStream<K>, K::Address) -> F + Send + Sync + 'static,
    F: Future<Output: ConnectionOutput> + Send + 'static,
{
    type Output = io::Result<()>;
    type IntoFuture = Serving;

    fn into_future(self) -> Serving {
        Serving::new(self.location, self.run())
    }
}

/// The future of a [`Server`].
#[must_use = "futures do nothing until they are awaited"]
pub struct Serving {
    location: &'static Location<'static>,
    running: Pin<Box<dyn Future<Output = io::Result<()>> + Send>>,
}

impl Serving {
    /// Creates the future of a server that was made at this location.
    #[doc(hidden)]
    pub fn new(
        location: &'static Location<'static>,
        running: impl Future<Output = io::Result<()>> + Send + 'static,
    ) -> Self {
        Self { location, running: Box::pin(running) }
    }
}

impl Future for Serving {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = self.running.as_mut().poll(cx);
        if polled.is_pending() {
            // The line of the program that has the server, instead of the line in here that waits.
            Frame::current(|frame| {
                if let Some(frame) = frame {
                    frame.waits_at(self.location);
                }
            });
        }
        polled
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving").field("at", &self.location).finish_non_exhaustive()
    }
}

impl<K: Kind, H> fmt::Debug for Server<K, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("at", &self.at)
            .field("connections", &self.connections)
            .field("grace", &self.grace)
            .field("accepting", &self.accepting)
            .finish_non_exhaustive()
    }
}
