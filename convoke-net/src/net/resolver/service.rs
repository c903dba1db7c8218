//! The resolver of a context: shares lookups, and bounds how many there are.

use core::fmt;
use core::net::SocketAddr;
use std::io;
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::Mutex;
use convoke_core::{ExecutorRef, StopReason};
use convoke_task::context::{FromContext, Service};
use convoke_task::{Bound, Context, Launched, launch};

use super::error::naming;
use super::lookup::{LookupRun, Lookups};
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
/// [work](convoke_io::IoContext::run) of the context.
pub struct Resolver {
    /// None for a context that nobody runs: then names are asked for right away, by who wants to know.
    executor: Option<ExecutorRef>,
    names: Arc<dyn Names>,
    room: Bound,
    shared: Arc<Lookups>,
    launched: LaunchedLookups,
}

impl Resolver {
    /// The resolver of this context, over the [names](super::install) that are installed there, or the system's.
    pub fn new(context: &Context) -> Self {
        Self {
            executor: context.executor(),
            names: context.use_service::<SystemNames>(),
            room: Bound::new(LOOKUPS),
            shared: Arc::new(Lookups::default()),
            launched: LaunchedLookups::default(),
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
    /// let context = convoke::driver::io_context().unwrap();
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
    /// use convoke::driver::use_service;
    /// use convoke::net::resolver::Resolver;
    ///
    /// let context = convoke::driver::io_context().unwrap();
    /// let found = context.run_until(async { use_service::<Resolver>()?.look_up("localhost").await });
    /// assert!(found.unwrap().unwrap().iter().all(|address| address.ip().is_loopback()));
    /// ```
    pub async fn look_up(&self, host: &str) -> io::Result<Vec<SocketAddr>> {
        let (waiter, first) = self.shared.join(host);
        if let Some(pilot) = first
            && !self.start(pilot)
        {
            // The context ends: what closes with it may still want to know.
            return self.names.look_up(host).await.map_err(|error| naming(host, error));
        }
        waiter.found().await
    }

    /// Starts a lookup. Returns false if there is nothing to run it on any more.
    fn start(&self, pilot: LookupRun) -> bool {
        let Some(executor) = &self.executor else { return false };
        let name = format!("lookup of {}", pilot.host());
        let launch = launch(executor).stop_token(pilot.stop_token()).name(name);
        let lookup = fly(pilot, self.room.clone(), self.names.clone());
        self.launched.add(|| launch.start(lookup))
    }
}

/// Waits for its turn, and looks up.
async fn fly(pilot: LookupRun, room: Bound, names: Arc<dyn Names>) {
    let _permit = room.take(1).await;
    let found = names.look_up(&pilot.host()).await;
    pilot.land(found);
}

/// The lookups that were started, until they have ended.
#[derive(Debug, Default)]
struct LaunchedLookups(Mutex<Started>);

#[derive(Debug, Default)]
struct Started {
    launched: Vec<Launched<()>>,
    /// How many there may be before those that have ended are removed: so each is visited a few times only.
    swept_at: usize,
    closed: bool,
}

impl LaunchedLookups {
    /// Adds a lookup that `start` starts. Returns false, and starts nothing, once they are closed.
    fn add(&self, start: impl FnOnce() -> Launched<()>) -> bool {
        let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if started.closed {
            return false;
        }
        let ended = if started.launched.len() >= started.swept_at {
            let ended = started.launched.extract_if(.., |launched| launched.has_ended()).collect::<Vec<_>>();
            started.swept_at = 2 * started.launched.len() + 1;
            ended
        } else {
            Vec::new()
        };
        started.launched.push(start());
        drop(started);
        drop(ended);
        true
    }

    /// Starts no more, and asks those that run to stop. They are waited for when they are dropped.
    fn close(&self) -> Vec<Launched<()>> {
        let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        started.closed = true;
        let launched = core::mem::take(&mut started.launched);
        drop(started);
        launched.iter().for_each(|launched| launched.request_stop(StopReason::Shutdown));
        launched
    }

    /// Asks those that run to stop.
    fn request_stop(&self) {
        let started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let running = started.launched.iter().filter(|launched| !launched.has_ended());
        running.for_each(|launched| launched.request_stop(StopReason::Shutdown));
    }
}

impl Service for Resolver {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }

    async fn close(&self) {
        // Dropped in the task that closes the service, which waits for them before it ends.
        drop(self.launched.close());
    }

    fn shutdown(&self) {
        self.launched.request_stop();
    }
}

impl FromContext for Resolver {
    fn from_context(context: &Context) -> Self {
        Self::new(context)
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver")
            .field("room", &self.room)
            .field("lookups", &self.launched)
            .finish_non_exhaustive()
    }
}
