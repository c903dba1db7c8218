//! `Names`: the origin of host addresses. It is the system by default.

use core::fmt;
use core::future::Future;
use core::net::SocketAddr;
use core::pin::Pin;
use std::io;
use std::net::ToSocketAddrs;
use std::sync::{Arc, OnceLock};

use convoke_task::context::{FromContext, Service};
use convoke_task::{BlockingPool, Context};

use super::LOOKUPS;

/// A source of host addresses. [`install`](super::install) puts one into a context.
///
/// The [`Resolver`](super::Resolver) asks once for all tasks that want the same name at the same time, and
/// limits the number of names that it asks for at once. It asks in a task of the context, which may wait,
/// sleep and use sockets. When no task waits for the answer any more, that task is stopped.
///
/// ```
/// use std::net::SocketAddr;
/// use convoke::net::resolver::{LookUp, Names, SystemNames};
///
/// /// Finds `*.test` on this machine, and asks the system for the rest.
/// struct LocalTests;
///
/// impl Names for LocalTests {
///     fn look_up<'a>(&'a self, host: &'a str) -> LookUp<'a> {
///         if !host.ends_with(".test") {
///             return SystemNames.look_up(host);
///         }
///         Box::pin(async { Ok(vec![SocketAddr::from(([127, 0, 0, 1], 0))]) })
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not know hosts by name",
    note = "a table is `HostTable::new().with(\"host\", [127, 0, 0, 1])`; anything else implements `Names`"
)]
pub trait Names: Send + Sync + 'static {
    /// Looks up the addresses of this host, the best first. Their ports are ignored. An empty result is an
    /// error.
    fn look_up<'a>(&'a self, host: &'a str) -> LookUp<'a>;
}

/// The future of [`Names::look_up`].
pub type LookUp<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;

impl<N: Names + ?Sized> Names for Arc<N> {
    fn look_up<'a>(&'a self, host: &'a str) -> LookUp<'a> {
        (**self).look_up(host)
    }
}

/// Names from a function that blocks its thread, such as that of the system. At most [`LOOKUPS`] threads call it. They do
/// nothing else, so a name server that does not answer cannot delay other [blocking](convoke_task::blocking()) work.
///
/// A lookup that is asked to stop is left to its thread: nobody wants its answer, and it has no other effect. So one that
/// is pending delays no exit.
///
/// ```
/// use std::net::{Ipv4Addr, SocketAddr};
/// use convoke::net::resolve;
/// use convoke::net::resolver::{BlockingNames, install};
///
/// let context = convoke::driver::io_context().unwrap();
/// let localhost = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
/// let names = BlockingNames::new(move |_host| Ok(vec![localhost]));
/// install(context.services(), names).unwrap();
/// let found = context.block_on(resolve("anything:80")).unwrap().unwrap();
/// assert_eq!(found, ["127.0.0.1:80".parse().unwrap()]);
/// ```
pub struct BlockingNames<F> {
    look_up: Arc<F>,
    threads: BlockingPool,
}

impl<F> BlockingNames<F>
where
    F: Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static,
{
    /// Creates names from a function, which is called with the name of a host.
    pub fn new(look_up: F) -> Self {
        Self { look_up: Arc::new(look_up), threads: BlockingPool::new(LOOKUPS) }
    }
}

impl<F> Names for BlockingNames<F>
where
    F: Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static,
{
    fn look_up<'a>(&'a self, host: &'a str) -> LookUp<'a> {
        let (look_up, name) = (self.look_up.clone(), host.to_owned());
        let asks = self.threads.run(move |_| look_up(&name)).left_at_a_stop();
        Box::pin(asks)
    }
}

impl<F> fmt::Debug for BlockingNames<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingNames").finish_non_exhaustive()
    }
}

/// The names of the system: its hosts file and its name servers, asked as [`BlockingNames`] are, by threads of the
/// process.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemNames;

impl Names for SystemNames {
    fn look_up<'a>(&'a self, host: &'a str) -> LookUp<'a> {
        type AsksSystem = fn(&str) -> io::Result<Vec<SocketAddr>>;
        static SYSTEM: OnceLock<BlockingNames<AsksSystem>> = OnceLock::new();
        let ask = |host: &str| (host, 0).to_socket_addrs().map(Vec::from_iter);
        SYSTEM.get_or_init(|| BlockingNames::new(ask)).look_up(host)
    }
}

impl Service for SystemNames {
    type Interface = dyn Names;

    fn into_interface(self: Arc<Self>) -> Arc<dyn Names> {
        self
    }
}

impl FromContext for SystemNames {
    fn from_context(_: &Context) -> Self {
        Self
    }
}

/// Names that were installed in place of the system's.
pub(super) struct Installed<N>(pub(super) N);

impl<N: Names> Names for Installed<N> {
    fn look_up<'a>(&'a self, host: &'a str) -> LookUp<'a> {
        self.0.look_up(host)
    }
}

impl<N: Names> Service for Installed<N> {
    type Interface = dyn Names;

    fn into_interface(self: Arc<Self>) -> Arc<dyn Names> {
        self
    }
}
