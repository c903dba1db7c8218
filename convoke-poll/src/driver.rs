//! The driver: makes sources, waits for events and hands them to their sources, shuts down.

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
use crate::poller::Poller;
use crate::registry::Registry;
use crate::source::PollSource;
use crate::{calls, sockets};

/// How many events a wait takes from the kernel at the most. The rest is there for the next one.
pub const EVENTS_AT_ONCE: usize = 1024;

/// For how long a wait looks for events before it sleeps, at the most; and only while its sleeps turn out shorter than this.
///
/// To be put to sleep and woken takes tens of microseconds on both sides of a connection, where the machine is a virtual one.
/// Where it takes less, and a core that looks busy is worse than a late answer, say zero: [`PollDriver::spinning`].
pub const SPIN: Duration = Duration::from_micros(50);

/// A driver for kernels that say when a socket is ready. Its sockets are used from any thread; one waits.
///
/// On Linux it waits for whole milliseconds, rounded up: timers of its context are up to one late, and never early.
///
/// ```
/// use std::sync::Arc;
///
/// use convoke_io::IoContext;
/// use convoke_poll::PollDriver;
///
/// let context = IoContext::new(Arc::new(PollDriver::new()?));
/// assert_eq!(context.run_until(async { 42 }).unwrap(), 42);
/// # std::io::Result::Ok(())
/// ```
pub struct PollDriver {
    pub(crate) shared: Arc<Shared>,
}

/// What the driver shares with its sources.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) poller: Poller,
    registry: Mutex<Registry<PollSource>>,
    /// Operations that are parked, and those who watch.
    parked: Count,
    is_shut: AtomicBool,
    /// What a wait has finished, in memory that is used again.
    finished: Mutex<Vec<Finished>>,
}

impl PollDriver {
    /// Over the best that this system has: epoll, kqueue, IOCP, event ports.
    ///
    /// # Errors
    /// What the kernel says: there are no descriptors left.
    pub fn new() -> io::Result<Self> {
        Self::spinning(SPIN)
    }

    /// The same, with this instead of [`SPIN`]; zero to always sleep at once. It is of no consequence but on Linux.
    ///
    /// # Errors
    /// As [`new`](PollDriver::new).
    pub fn spinning(longest: Duration) -> io::Result<Self> {
        Poller::new(longest).map(Self::over)
    }

    /// The same without what is special about Linux: as it is on other systems, to be tested here.
    ///
    /// # Errors
    /// As [`new`](PollDriver::new).
    #[doc(hidden)]
    pub fn portable() -> io::Result<Self> {
        Poller::portable(true).map(Self::over)
    }

    /// The same without edges: each event is asked for, as it is on Windows.
    ///
    /// # Errors
    /// As [`new`](PollDriver::new).
    #[doc(hidden)]
    pub fn portable_without_edges() -> io::Result<Self> {
        Poller::portable(false).map(Self::over)
    }

    fn over(poller: Poller) -> Self {
        let shared = Shared {
            poller,
            registry: Mutex::default(),
            parked: Count::new(),
            is_shut: AtomicBool::new(false),
            finished: Mutex::new(Vec::with_capacity(EVENTS_AT_ONCE)),
        };
        Self { shared: Arc::new(shared) }
    }
}

impl Shared {
    pub(crate) fn registry(&self) -> MutexGuard<'_, Registry<PollSource>> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a source, unless the driver has shut down.
    pub(crate) fn insert(&self, make: impl FnOnce(u32) -> Arc<PollSource>) -> io::Result<Arc<PollSource>> {
        let mut registry = self.registry();
        // With the lock that `shut_down` takes after it has said so.
        if self.is_shut.load(Ordering::Acquire) {
            return Err(shut_down());
        }
        Ok(registry.insert(make))
    }

    #[inline]
    pub(crate) fn has_parked(&self) {
        self.parked.more();
    }

    /// So many are not any more, by somebody else's doing than the driver's wait.
    #[inline]
    pub(crate) fn has_finished(&self, operations: usize) {
        if self.parked.less(operations) {
            self.poller.wake();
        }
    }

    fn finished(&self) -> MutexGuard<'_, Vec<Finished>> {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits, and hands the events to their sources.
    #[inline]
    fn serve(&self, timeout: Option<Duration>, finished: &mut Vec<Finished>) -> io::Result<()> {
        let mut registry = None;
        let mut told = 0;
        let waited = self.poller.wait(timeout, |key, event| {
            if let Some(PollSource { state, .. }) = registry.get_or_insert_with(|| self.registry()).get(key) {
                told += state.happened(event, finished);
            }
        });
        drop(registry);
        told += finished.len();
        // Who waits has asked, and asks again when this wait has ended.
        let _ = told > 0 && self.parked.less(told);
        waited
    }
}

impl Driver for PollDriver {
    fn listen(&self, at: &Address, options: &ListenOptions) -> io::Result<Arc<dyn Source>> {
        PollSource::take_in(&self.shared, sockets::listener(at, options)?)
    }

    fn stream(&self, like: &Address) -> io::Result<Arc<dyn Source>> {
        Ok(PollSource::unconnected(&self.shared, sockets::stream(like)?)?)
    }

    fn datagrams(&self, at: &Address, options: &ListenOptions) -> io::Result<Arc<dyn Source>> {
        PollSource::take_in(&self.shared, sockets::datagrams(at, options)?)
    }

    #[cfg(unix)]
    fn pair(&self) -> io::Result<(Arc<dyn Source>, Arc<dyn Source>)> {
        let (one, other) = sockets::pair()?;
        Ok((PollSource::take_in(&self.shared, one)?, PollSource::take_in(&self.shared, other)?))
    }

    fn adopt(&self, socket: StandardSocket) -> io::Result<Arc<dyn Source>> {
        if !calls::is_known(&socket) {
            return Err(unsupported("sockets of this kind"));
        }
        calls::reference(&socket).set_nonblocking(true)?;
        PollSource::take_in(&self.shared, socket)
    }

    fn wait(&self, until: Option<Instant>) -> io::Result<()> {
        let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
        // Taken, not borrowed: whoever is told may run code that comes here again.
        let mut finished = mem::take(&mut *self.shared.finished());
        let waited = self.shared.serve(timeout, &mut finished);
        // Those who wait are told: no lock is held.
        finished.clear();
        *self.shared.finished() = finished;
        waited
    }

    fn wake(&self) {
        self.shared.poller.wake();
    }

    fn in_flight(&self) -> usize {
        self.shared.parked.ask()
    }

    fn shut_down(&self) {
        let mut finished = Vec::new();
        let registry = self.shared.registry();
        self.shared.is_shut.store(true, Ordering::Release);
        for PollSource { state, .. } in registry.iter() {
            state.shut(&mut finished);
        }
        drop(registry);
        self.shared.has_finished(finished.len());
        drop(finished);
    }

    #[cfg(unix)]
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.shared.poller.descriptor()
    }
}

impl Drop for PollDriver {
    fn drop(&mut self) {
        // Nobody will wait any more, so nobody would be told.
        self.shut_down();
    }
}

impl fmt::Debug for PollDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PollDriver").field("in_flight", &self.in_flight()).finish_non_exhaustive()
    }
}
