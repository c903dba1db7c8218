//! The resolver of a context: shares lookups, and bounds how many there are.

use core::fmt;
use core::net::SocketAddr;
use std::io;
use std::sync::Arc;

use convoke_core::env::Changes;
use convoke_core::{Env, Executor, ExecutorRef, StopReason};
use convoke_exec::context::{FromContext, Service};
use convoke_exec::{Bound, Context, CountingScope, task};

use super::error::naming;
use super::flight::{Flights, Pilot};
use super::{Names, SystemNames};

/// How many names a resolver looks up at a time, if nobody has said otherwise; and how many threads of the process ask the system for
/// names at the most.
pub const LOOKUPS: usize = 32;

/// The service that [`resolve`](crate::net::resolve) asks, and with it all that takes `"host:port"`.
///
/// Who asks for a name that is being looked up waits for the same answer. At most [so many](Resolver::at_once) are looked up at
/// a time; the others wait their turn. Nothing is remembered: that is for [names](Names) to do.
///
/// Lookups are work of the resolver's own, on its context. Whoever is stopped leaves at once; a lookup that nobody waits for
/// any more is asked to stop, and the context, when it ends, waits for it. Until it has ended it is
/// [work](crate::IoContext::run) of the context.
pub struct Resolver {
    /// None for a context that nobody runs: then names are asked for right away, by who wants to know.
    executor: Option<ExecutorRef>,
    names: Arc<dyn Names>,
    room: Bound,
    flights: Arc<Flights>,
    work: CountingScope,
}

impl Resolver {
    /// The resolver of this context, over the [names](super::install) that are installed there, or the system's.
    pub fn new(context: &Context) -> Self {
        Self {
            executor: context.executor(),
            names: context.use_service::<SystemNames>(),
            room: Bound::new(LOOKUPS),
            flights: Arc::new(Flights::default()),
            work: CountingScope::new(),
        }
    }

    /// How many names are looked up at a time.
    ///
    /// # Panics
    /// If that is none.
    ///
    /// ```
    /// use convoke::net::resolver::Resolver;
    ///
    /// let context = convoke::io_context().unwrap();
    /// context.services().make_service(|services| Resolver::new(services).at_once(2)).unwrap();
    /// ```
    #[must_use]
    #[track_caller]
    pub fn at_once(mut self, lookups: usize) -> Self {
        assert!(lookups > 0, "a resolver that looks up none at a time never finds any");
        self.room = Bound::new(lookups);
        self
    }

    /// The addresses of a host; their ports say nothing.
    ///
    /// - *Completes with* what was found, or an error that is a [`LookupError`](super::LookupError); stopped.
    /// - *If dropped*, it does not wait any more; if nobody does, the lookup is asked to stop.
    /// - *Runs on* the task; the lookup on the context.
    ///
    /// ```
    /// use convoke::io::use_service;
    /// use convoke::net::resolver::Resolver;
    ///
    /// let context = convoke::io_context().unwrap();
    /// let found = context.run_until(async { use_service::<Resolver>()?.look_up("localhost").await });
    /// assert!(found.unwrap().unwrap().iter().all(|address| address.ip().is_loopback()));
    /// ```
    pub async fn look_up(&self, host: &str) -> io::Result<Vec<SocketAddr>> {
        let (asker, first) = self.flights.join(host);
        if let Some(pilot) = first
            && !self.start(pilot)
        {
            // The context ends: what closes with it may still want to know.
            return self.names.look_up(host).await.map_err(|error| naming(host, error));
        }
        asker.found().await
    }

    /// Starts a lookup. False if there is nothing to run it on any more.
    fn start(&self, pilot: Pilot) -> bool {
        let Some(executor) = self.executor.clone() else { return false };
        let counted = Counted::new(executor.clone());
        let env = Env::on(executor).with(Changes::new().stop_token(pilot.stop_token()));
        let name = format!("lookup of {}", pilot.host());
        let lookup = fly(counted, pilot, self.room.clone(), self.names.clone());
        self.work.named("lookup").spawn(task(lookup).named(name), &env).is_ok()
    }
}

/// Waits for its turn, and looks up.
async fn fly(_counted: Counted, pilot: Pilot, room: Bound, names: Arc<dyn Names>) {
    let _permit = room.take(1).await;
    let found = names.look_up(&pilot.host()).await;
    pilot.land(found);
}

/// A lookup is work of its context: whoever asked may run elsewhere, and wait for a context that has nothing else to do.
struct Counted(ExecutorRef);

impl Counted {
    fn new(executor: ExecutorRef) -> Self {
        executor.work_began();
        Self(executor)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.work_ended();
    }
}

impl Service for Resolver {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }

    async fn close(&self) {
        self.work.request_stop(StopReason::Shutdown);
        self.work.join().await;
    }

    fn shutdown(&self) {
        self.work.request_stop(StopReason::Shutdown);
    }
}

impl FromContext for Resolver {
    fn from_context(context: &Context) -> Self {
        Self::new(context)
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").field("room", &self.room).field("work", &self.work).finish_non_exhaustive()
    }
}
