//! `Resolver`: the service of a context that shares lookups and limits their number.

use core::fmt;
use core::future::Future;
use core::net::SocketAddr;
use core::pin::Pin;
use std::io;
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::Mutex;
use convoke_core::{ExecutorRef, StopReason};
use convoke_task::context::{FromContext, Service};
use convoke_task::{Bound, Context, Launched, catch_stopped, launch};

use super::error::with_host;
use super::lookup::{LookupRun, Lookups};
use super::{Names, SystemNames};

/// The default number of names that a resolver looks up at once. Also the maximum number of threads of the
/// process that ask the system.
pub const LOOKUPS: usize = 32;

/// The service that looks up names for [`resolve`](crate::net::resolve), and so for everything that takes
/// `"host:port"`.
///
/// A task that asks for a name that is being looked up waits for the same answer. At most
/// [`at_once`](Resolver::at_once) names are looked up at a time; the others queue. Nothing is cached: that is
/// the task of [`Names`].
///
/// Lookups are tasks of the resolver, on its context. A caller that is stopped leaves at once. A lookup
/// without waiters is stopped, and the context waits for it when it ends. A lookup that has not ended is
/// [work](convoke_io::IoContext::run) of the context.
pub struct Resolver {
    /// `None` for a context without a run loop: then each caller asks the names itself.
    executor: Option<ExecutorRef>,
    names: Arc<dyn Names>,
    permits: Bound,
    shared: Arc<Lookups>,
    launched: LaunchedLookups,
}

impl Resolver {
    /// Creates the resolver of this context, over its [installed names](super::install), or those of the
    /// system.
    pub fn new(context: &Context) -> Self {
        Self {
            executor: context.executor(),
            names: context.use_service::<SystemNames>(),
            permits: Bound::new(LOOKUPS),
            shared: Arc::new(Lookups::default()),
            launched: LaunchedLookups::default(),
        }
    }

    /// Sets the number of names that are looked up at once.
    ///
    /// # Panics
    /// If it is zero.
    ///
    /// ```
    /// use convoke::net::resolver::Resolver;
    ///
    /// let context = convoke::driver::io_context().unwrap();
    /// let services = context.services();
    /// services.make_service(|services| Resolver::new(services).at_once(2)).unwrap();
    /// ```
    #[must_use]
    #[track_caller]
    pub fn at_once(mut self, lookups: usize) -> Self {
        assert!(lookups > 0, "a resolver needs to look up at least 1 name at once, not 0");
        self.permits = Bound::new(lookups);
        self
    }

    /// Looks up the addresses of a host. Their ports are meaningless.
    ///
    /// - *Completes with* the addresses; an error, which is a [`LookupError`](super::LookupError); or
    ///   stopped.
    /// - *If dropped*, it stops waiting. A lookup without waiters is stopped.
    /// - *Runs on* the current task; the lookup runs on the context.
    ///
    /// ```
    /// use convoke::driver::use_service;
    /// use convoke::net::resolver::Resolver;
    ///
    /// let context = convoke::driver::io_context().unwrap();
    /// let found = context.block_on(async {
    ///     use_service::<Resolver>()?.look_up("localhost").await
    /// });
    /// assert!(found.unwrap().unwrap().iter().all(|address| address.ip().is_loopback()));
    /// ```
    pub async fn look_up(&self, host: &str) -> io::Result<Vec<SocketAddr>> {
        let (waiter, first) = self.shared.join(host);
        if let Some(run) = first
            && !self.start(run)
        {
            // The context is closing. A service that closes with it may still need the address.
            return self.names.look_up(host).await.map_err(|error| with_host(host, error));
        }
        waiter.found().await
    }

    /// Starts a lookup. Returns false if there is no executor for it any more.
    fn start(&self, run: LookupRun) -> bool {
        let Some(executor) = &self.executor else { return false };
        let name = format!("lookup of {}", run.host());
        let launch = launch(executor).stop_token(run.stop_token()).name(name);
        let lookup = look_up_when_permitted(run, self.permits.clone(), self.names.clone());
        // Erased: the code that starts and runs a task is long, and is compiled again for every type of future.
        let lookup: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(lookup);
        self.launched.add(|| launch.start(lookup))
    }
}

/// Waits for a permit, and looks up.
async fn look_up_when_permitted(run: LookupRun, permits: Bound, names: Arc<dyn Names>) {
    let _permit = permits.take(1).await;
    let found = names.look_up(&run.host()).await;
    run.finish(found);
}

/// The lookups that were started and have not been swept yet.
#[derive(Debug, Default)]
struct LaunchedLookups(Mutex<Started>);

#[derive(Debug, Default)]
struct Started {
    launched: Vec<Launched<()>>,
    /// The length at which ended lookups are removed. It doubles, so the cost per lookup is constant.
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
        let mut ended = Vec::new();
        if started.launched.len() >= started.swept_at {
            for launched in core::mem::take(&mut started.launched) {
                let list = if launched.is_finished() { &mut ended } else { &mut started.launched };
                list.push(launched);
            }
            started.swept_at = 2 * started.launched.len() + 1;
        }
        started.launched.push(start());
        drop(started);
        drop(ended);
        true
    }

    /// Stops all lookups and allows no more. Dropping the returned values waits for them.
    fn close(&self) -> Vec<Launched<()>> {
        let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        started.closed = true;
        let launched = core::mem::take(&mut started.launched);
        drop(started);
        launched.iter().for_each(|launched| launched.request_stop(StopReason::Shutdown));
        launched
    }

    /// Stops the lookups that run.
    fn request_stop(&self) {
        let started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let running = started.launched.iter().filter(|launched| !launched.is_finished());
        running.for_each(|launched| launched.request_stop(StopReason::Shutdown));
    }
}

impl Service for Resolver {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }

    async fn close(&self) {
        // Awaited one by one: a panic of a lookup is the panic of the close. The others are then awaited by the task.
        for lookup in self.launched.close() {
            _ = catch_stopped(lookup.into_future()).await;
        }
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
            .field("permits", &self.permits)
            .field("lookups", &self.launched)
            .finish_non_exhaustive()
    }
}
