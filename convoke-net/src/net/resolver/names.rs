//! Where addresses of hosts come from: the system, unless somebody puts something else in its place.

use core::future::Future;
use core::net::SocketAddr;
use core::pin::Pin;
use std::io;
use std::net::ToSocketAddrs;
use std::sync::{Arc, OnceLock};

use convoke_task::context::{FromContext, Service};
use convoke_task::{BlockingPool, Context};

use super::LOOKUPS;

/// Knows hosts by name. [`install`](super::install) puts one into a context.
///
/// A [`Resolver`](super::Resolver) asks it for a name once for all who want that at the same time, and never for more names at
/// a time than it may. It is asked in a task of the context: it may wait, sleep, and use sockets. When nobody wants the
/// answer any more that task is asked to stop.
///
/// ```
/// use std::net::SocketAddr;
/// use convoke::net::resolver::{LookUp, Names, SystemNames};
///
/// /// Finds `*.test` at home, and asks the system for the rest.
/// struct TestsAtHome;
///
/// impl Names for TestsAtHome {
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
    /// The addresses of this host, the best first. What port they have does not matter. None at all is an error, too.
    fn look_up<'a>(&'a self, host: &'a str) -> LookUp<'a>;
}

/// A lookup on its way.
pub type LookUp<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;

impl<N: Names + ?Sized> Names for Arc<N> {
    fn look_up<'a>(&'a self, host: &'a str) -> LookUp<'a> {
        (**self).look_up(host)
    }
}

/// What the system knows: its file of hosts, its name servers. It is asked on [`LOOKUPS`] threads of the process at most, which
/// do nothing else: a name server that does not answer keeps no other [blocking](convoke_exec::blocking()) work waiting.
///
/// A lookup that is asked to stop is waited for as all blocking work is; one that does not end is left alone, and named
/// to the [hook](convoke_exec::blocking::set_overdue_hook).
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemNames;

impl Names for SystemNames {
    fn look_up<'a>(&'a self, host: &'a str) -> LookUp<'a> {
        static THREADS: OnceLock<BlockingPool> = OnceLock::new();
        let threads = THREADS.get_or_init(|| BlockingPool::new(LOOKUPS));
        let name = host.to_owned();
        let ask = move |_| (name.as_str(), 0).to_socket_addrs().map(Vec::from_iter);
        Box::pin(threads.run(ask).named(format!("lookup of {host}")))
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

/// Names that somebody has put in the place of the system's.
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
