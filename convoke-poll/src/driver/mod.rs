//! `PollDriver`: creates sources, waits for events and passes them to their sources, shuts down.

mod attempts;
mod source;
mod state;

use core::fmt;
use core::mem;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use convoke_core::raw::sync::atomic::{AtomicBool, Ordering};
use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_io::driver::{
    Address, Driver, Finished, ListenOptions, Source, StandardSocket, shut_down, unsupported,
};

use crate::count::Count;
use crate::poller::{EVENTS_AT_ONCE, Poller};
use crate::registry::Registry;
use crate::{calls, sockets};
use source::PollSource;

/// The maximum time that a wait polls before it sleeps. It polls only while recent sleeps were shorter than
/// this.
///
/// On virtual machines, falling asleep and waking up costs tens of microseconds on both ends of a connection.
/// If that is cheap, and a busy core is worse than a late answer, use zero: [`PollDriver::spinning`].
pub const SPIN: Duration = Duration::from_micros(50);

/// A driver for kernels that report when a socket is ready. Its sockets may be used from any thread; one
/// thread waits.
///
/// On Linux it waits for whole milliseconds, rounded up: timers of its context are at most 1 ms late, and
/// never early.
///
/// ```
/// use std::sync::Arc;
///
/// use convoke_io::IoContext;
/// use convoke_poll::PollDriver;
///
/// let context = IoContext::new(Arc::new(PollDriver::new()?));
/// assert_eq!(context.block_on(async { 42 }).unwrap(), 42);
/// # std::io::Result::Ok(())
/// ```
pub struct PollDriver {
    pub(crate) shared: Arc<SharedDriver>,
}

/// The part of the driver that its sources share.
#[derive(Debug)]
pub(crate) struct SharedDriver {
    pub(crate) poller: Poller,
    registry: Mutex<Registry<PollSource>>,
    /// The number of parked operations and watchers.
    parked: Count,
    is_shut: AtomicBool,
    /// The notifications that a wait collects. The memory is reused.
    finished: Mutex<Vec<Finished>>,
}

impl PollDriver {
    /// Creates a driver over the best interface of this system: epoll, kqueue, IOCP or event ports.
    ///
    /// # Errors
    /// Returns the error of the kernel, for example that there are no descriptors left.
    pub fn new() -> io::Result<Self> {
        Self::spinning(SPIN)
    }

    /// Creates a driver that polls for at most `longest` instead of [`SPIN`]; zero means to sleep at once. It
    /// has an effect on Linux only.
    ///
    /// # Errors
    /// Fails as [`new`](PollDriver::new) does.
    pub fn spinning(longest: Duration) -> io::Result<Self> {
        Poller::new(longest).map(Self::over)
    }

    /// Creates a driver without the special code for Linux, to test the code of other systems.
    ///
    /// # Errors
    /// Fails as [`new`](PollDriver::new) does.
    #[doc(hidden)]
    #[cfg(any(not(any(target_os = "linux", target_os = "android")), feature = "portable"))]
    pub fn portable() -> io::Result<Self> {
        Poller::portable(true).map(Self::over)
    }

    /// Creates a driver that requests each event (level-triggered), as on Windows, to test that code.
    ///
    /// # Errors
    /// Fails as [`new`](PollDriver::new) does.
    #[doc(hidden)]
    #[cfg(any(not(any(target_os = "linux", target_os = "android")), feature = "portable"))]
    pub fn portable_without_edges() -> io::Result<Self> {
        Poller::portable(false).map(Self::over)
    }

    fn over(poller: Poller) -> Self {
        let shared = SharedDriver {
            poller,
            registry: Mutex::default(),
            parked: Count::new(),
            is_shut: AtomicBool::new(false),
            finished: Mutex::new(Vec::with_capacity(EVENTS_AT_ONCE)),
        };
        Self { shared: Arc::new(shared) }
    }
}

impl SharedDriver {
    pub(crate) fn registry(&self) -> MutexGuard<'_, Registry<PollSource>> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a source, unless the driver has shut down.
    pub(crate) fn insert(&self, make: impl FnOnce(u32) -> Arc<PollSource>) -> io::Result<Arc<PollSource>> {
        let mut registry = self.registry();
        // Checked under the lock that `shut_down` holds while it sets the flag.
        if self.is_shut.load(Ordering::Acquire) {
            return Err(shut_down());
        }
        Ok(registry.insert(make))
    }

    #[inline]
    pub(crate) fn count_parked(&self) {
        self.parked.increment();
    }

    /// Counts waiters that ended outside of the driver's wait, and wakes the context if none are left.
    #[inline]
    pub(crate) fn count_finished(&self, operations: usize) {
        if self.parked.subtract(operations) {
            self.poller.wake();
        }
    }

    fn finished(&self) -> MutexGuard<'_, Vec<Finished>> {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits, and passes the events to their sources.
    #[inline]
    fn wait_and_dispatch(&self, timeout: Option<Duration>, finished: &mut Vec<Finished>) -> io::Result<()> {
        let mut registry = None;
        let mut ended = 0;
        let waited = self.poller.wait(timeout, |key, event| {
            if let Some(PollSource { state, .. }) = registry.get_or_insert_with(|| self.registry()).get(key) {
                ended += state.handle_event(event, finished);
            }
        });
        drop(registry);
        ended += finished.len();
        // No wake-up is needed: the context counts again after this wait.
        let _ = ended > 0 && self.parked.subtract(ended);
        waited
    }
}

impl PollDriver {
    fn wait_for(&self, timeout: Option<Duration>) -> io::Result<()> {
        // Moved out, not borrowed: a notified task may call `wait` again.
        let mut finished = mem::take(&mut *self.shared.finished());
        let waited = self.shared.wait_and_dispatch(timeout, &mut finished);
        // This notifies the waiters, with no lock held.
        finished.clear();
        *self.shared.finished() = finished;
        waited
    }
}

impl Driver for PollDriver {
    fn listen(&self, at: &Address, options: &ListenOptions) -> io::Result<Arc<dyn Source>> {
        PollSource::register(&self.shared, sockets::listener(at, options)?)
    }

    fn stream(&self, like: &Address) -> io::Result<Arc<dyn Source>> {
        Ok(PollSource::unconnected(&self.shared, sockets::stream(like)?)?)
    }

    fn datagrams(&self, at: &Address, options: &ListenOptions) -> io::Result<Arc<dyn Source>> {
        PollSource::register(&self.shared, sockets::datagrams(at, options)?)
    }

    #[cfg(unix)]
    fn pair(&self) -> io::Result<(Arc<dyn Source>, Arc<dyn Source>)> {
        let (one, other) = sockets::pair()?;
        Ok((PollSource::register(&self.shared, one)?, PollSource::register(&self.shared, other)?))
    }

    fn adopt(&self, socket: StandardSocket) -> io::Result<Arc<dyn Source>> {
        if !calls::is_known(&socket) {
            return Err(unsupported("sockets of this kind"));
        }
        calls::reference(&socket).set_nonblocking(true)?;
        PollSource::register(&self.shared, socket)
    }

    fn wait(&self, until: Option<Instant>) -> io::Result<()> {
        self.wait_for(until.map(|until| until.saturating_duration_since(Instant::now())))
    }

    // Without reading the clock.
    fn check(&self) -> io::Result<()> {
        self.wait_for(Some(Duration::ZERO))
    }

    fn wake(&self) {
        self.shared.poller.wake();
    }

    fn in_flight(&self) -> usize {
        self.shared.parked.request()
    }

    fn shut_down(&self) {
        let mut finished = Vec::new();
        let registry = self.shared.registry();
        self.shared.is_shut.store(true, Ordering::Release);
        for PollSource { state, .. } in registry.iter() {
            state.shut(&mut finished);
        }
        drop(registry);
        self.shared.count_finished(finished.len());
        drop(finished);
    }

    #[cfg(unix)]
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.shared.poller.descriptor()
    }
}

impl Drop for PollDriver {
    fn drop(&mut self) {
        // Without a wait there are no more notifications, so all waiters end now.
        self.shut_down();
    }
}

impl fmt::Debug for PollDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PollDriver").field("in_flight", &self.in_flight()).finish_non_exhaustive()
    }
}
