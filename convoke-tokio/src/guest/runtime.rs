//! The guest runtime: a tokio runtime that is a service of an I/O context, with one thread that drives it.
//!
//! 1. The thread runs the runtime until `end` is set. Then it shuts the runtime down, and sets `ended`.
//! 2. `close` waits until no task is alive. Tasks end on that thread, which then parks: before each time it parks, it
//!    counts the tasks, once `is_closing` is set, and sets `idle` if there are none.

use core::any::type_name;
use core::fmt;
use core::panic::Location;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::calls::{GuestCall, GuestCalls};
use convoke_core::raw::sync::atomic::{AtomicBool, Ordering};
use convoke_exec::raw::start_thread;
use convoke_sync::Event;
use convoke_task::cleanup::ProblemKind;
use convoke_task::context::{Context, FromContext, Service};
use convoke_task::raw::report_problem;
use convoke_task::timeout;
use tokio::runtime::{Builder, Handle, Runtime};

/// The tokio runtime of [`tokio_guest`](super::tokio_guest()), a service of the I/O context: one thread, named
/// `tokio-guest`, that drives tokio's sockets and timers, and runs the tasks that guests spawn.
///
/// When the context closes, the tasks that are alive have a [grace period](GuestRuntime::with_grace) to end. Those
/// that are left are dropped, and their number is reported to the clean-up hook
/// (`convoke::cleanup::set_cleanup_hook`). Then blocking work of `spawn_blocking` has
/// [`BLOCKING_GRACE`](GuestRuntime::BLOCKING_GRACE) to end.
///
/// ```
/// use std::time::Duration;
/// use convoke::driver::with_services;
/// use convoke_tokio::{GuestRuntime, tokio_guest};
///
/// #[convoke::main]
/// async fn main() -> std::io::Result<()> {
///     // Before the first guest; without it, there is one with the default grace period.
///     let patient = GuestRuntime::with_grace(Duration::from_secs(20))?;
///     with_services(|services| services.make_service(|_| patient).map(drop))?
///         .map_err(std::io::Error::other)?;
///     tokio_guest(|| async { tokio::task::yield_now().await }).await;
///     Ok(())
/// }
/// ```
pub struct GuestRuntime {
    handle: Handle,
    shared: Arc<SharedRuntime>,
    calls: Arc<GuestCalls>,
    grace: Duration,
    location: &'static Location<'static>,
}

#[derive(Default)]
struct SharedRuntime {
    is_closing: AtomicBool,
    idle: Event,
    end: Event,
    ended: Event,
    /// Set when the tasks that were left have been reported.
    is_reported: AtomicBool,
}

/// Problem of a [`GuestRuntime`] that closes, as the clean-up hook is told it: tasks that had not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TasksLeft {
    tasks: usize,
    guests: Vec<GuestCall>,
}

impl TasksLeft {
    /// Returns the number of tasks that were dropped.
    pub fn tasks(&self) -> usize {
        self.tasks
    }

    /// Returns the lines that have called [`tokio_guest`](super::tokio_guest()) in this runtime, up to 64; those whose guests
    /// were seen to spawn most tasks first.
    pub fn guests(&self) -> &[GuestCall] {
        &self.guests
    }
}

impl fmt::Display for TasksLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (plural, verb) = if self.tasks == 1 { ("", "was") } else { ("s", "were") };
        write!(f, "{} tokio task{plural} had not ended in time, and {verb} dropped", self.tasks)?;
        // Those that have spawned tasks, or all if none was seen to do that.
        let have_spawned = self.guests.iter().take_while(|call| call.spawned() > 0).count();
        let (named, who) = match have_spawned {
            0 => (&self.guests[..], "the guests were at"),
            spawned => (&self.guests[..spawned], "guests have spawned tasks at"),
        };
        for (index, call) in named.iter().enumerate() {
            let before = if index == 0 { format!("; {who}") } else { ",".to_owned() };
            write!(f, "{before} {call}")?;
        }
        Ok(())
    }
}

impl core::error::Error for TasksLeft {}

impl GuestRuntime {
    /// Time that tasks have to end, if no other is set.
    pub const GRACE: Duration = Duration::from_secs(10);

    /// Time that work of `spawn_blocking` has to end, after all tasks have ended.
    pub const BLOCKING_GRACE: Duration = Duration::from_secs(1);

    /// Creates a runtime whose tasks have [`GRACE`](GuestRuntime::GRACE) to end.
    ///
    /// # Errors
    /// As [`with_grace`](GuestRuntime::with_grace).
    #[track_caller]
    pub fn new() -> io::Result<Self> {
        Self::with_grace(Self::GRACE)
    }

    /// Creates a runtime whose tasks have `grace` to end. The grace period of a service bounds it
    /// (`convoke::cleanup::GRACE`).
    ///
    /// # Errors
    /// If tokio's driver cannot be created, or its thread not be started.
    #[track_caller]
    pub fn with_grace(grace: Duration) -> io::Result<Self> {
        let location = Location::caller();
        let shared = Arc::new(SharedRuntime::default());
        let parks = shared.clone();
        let runtime =
            Builder::new_current_thread().enable_all().on_thread_park(move || parks.count_tasks()).build()?;
        let (handle, drives) = (runtime.handle().clone(), shared.clone());
        start_thread("tokio-guest".into(), None, Box::new(move || drives.drive(runtime)))?;
        Ok(Self { handle, shared, calls: Arc::default(), grace, location })
    }

    /// Returns the handle of the runtime, for crates that ask for one.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(super) fn calls(&self) -> &Arc<GuestCalls> {
        &self.calls
    }

    /// Reports the tasks that are alive, once.
    fn report_left(&self) {
        let tasks = self.handle.metrics().num_alive_tasks();
        if tasks > 0 && !self.shared.is_reported.swap(true, Ordering::Relaxed) {
            let left = TasksLeft { tasks, guests: self.calls.list() };
            report_problem(type_name::<Self>(), self.location, ProblemKind::Failed(&left));
        }
    }
}

impl SharedRuntime {
    /// Runs the runtime on this thread: rule 1.
    fn drive(&self, runtime: Runtime) {
        runtime.block_on(self.end.wait());
        runtime.shutdown_timeout(GuestRuntime::BLOCKING_GRACE);
        self.ended.set();
    }

    /// Called by the thread before it parks: rule 2.
    fn count_tasks(&self) {
        if self.is_closing.load(Ordering::Acquire)
            && Handle::try_current().is_ok_and(|runtime| runtime.metrics().num_alive_tasks() == 0)
        {
            self.idle.set();
        }
    }
}

impl Service for GuestRuntime {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }

    async fn close(&self) {
        self.shared.is_closing.store(true, Ordering::Release);
        // A task makes the thread park again, and count.
        drop(self.handle.spawn(core::future::ready(())));
        if timeout(self.grace, self.shared.idle.wait()).await.is_err() {
            self.report_left();
        }
        self.shared.end.set();
        self.shared.ended.wait().await;
    }

    fn shutdown(&self) {
        if !self.shared.end.is_set() {
            self.report_left();
            self.shared.end.set();
        }
    }
}

impl Drop for GuestRuntime {
    fn drop(&mut self) {
        // One that no context has shut down: its thread ends, too.
        self.shared.end.set();
    }
}

impl FromContext for GuestRuntime {
    fn from_context(_: &Context) -> Self {
        Self::new().unwrap_or_else(|error| panic!("cannot create a tokio runtime for guests: {error}"))
    }
}

impl fmt::Debug for GuestRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuestRuntime").field("grace", &self.grace).finish_non_exhaustive()
    }
}
