//! `Names`: the origin of host addresses. It is the system by default.

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

/// The names of the system: its hosts file and its name servers. At most [`LOOKUPS`] threads of the process
/// ask the system. They do nothing else, so a name server that does not answer cannot delay other
/// [blocking](convoke_task::blocking()) work.
///
/// A lookup that is stopped is waited for, like all blocking work. One that does not end in time is
/// abandoned, and reported to the [hook](convoke_task::blocking::set_overdue_hook).
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
