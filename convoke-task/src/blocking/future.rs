//! The future of blocking work: waits for a thread, then for the function; passes a stop on, and enforces the
//! grace period.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::PoisonError;
use std::time::Instant;

use convoke_core::env::Changes;
use convoke_core::raw::sync::{Arc, Mutex, MutexGuard};
use convoke_core::raw::{Frame, StopWatch, outside_a_task};
use convoke_core::{Panic, StopReason, StopSource};
use pin_project_lite::pin_project;

use super::inside::Inside;
use super::overdue::{Overdue, report};
use super::pool::BlockingPool;
use convoke_core::raw::wake_if_any;
use convoke_exec::raw::Alarm;
use convoke_sync::OwnedPermit;

/// The time that a task which was asked to stop waits for its blocking work, if [`grace`](Blocking::grace) is
/// not called.
pub const DEFAULT_BLOCKING_GRACE: Duration = Duration::from_secs(5);

pin_project! {
    /// The future of [`blocking()`](super::blocking()).
    #[must_use = "futures do nothing until they are awaited"]
    pub struct Blocking<T, F> {
        pool: BlockingPool,
        f: Option<F>,
        take: Option<Pin<Box<dyn Future<Output = OwnedPermit> + Send>>>,
        running: Option<Running<T>>,
        #[pin]
        alarm: Alarm,
        // The end of the grace period, once a stop was requested.
        until: Option<Instant>,
        stopped: bool,
        grace: Duration,
        watch: StopWatch,
    }
}

/// A function on its thread. If this is dropped before the function has returned, the function is asked to
/// stop and reported.
struct Running<T> {
    shared: Arc<Mutex<SharedResult<T>>>,
    source: StopSource,
    origin: Origin,
}

/// The name and the origin of a function, for reports.
struct Origin {
    name: Option<Box<str>>,
    location: &'static Location<'static>,
    /// False if it may outlive a stop.
    is_reported: bool,
}

/// The state that the function's thread and the task share.
struct SharedResult<T> {
    result: Option<Result<T, Panic>>,
    /// True if the result was stored, or the function is not running.
    has_ended: bool,
    /// True if the grace period ended before that.
    given_up: bool,
    waker: Option<Waker>,
}

fn lock<T>(shared: &Mutex<SharedResult<T>>) -> MutexGuard<'_, SharedResult<T>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T, F> Blocking<T, F>
where
    F: FnOnce(Inside) -> T + Send + 'static,
    T: Send + 'static,
{
    #[track_caller]
    pub(super) fn new(pool: BlockingPool, f: F) -> Self {
        let shared = SharedResult { result: None, has_ended: true, given_up: false, waker: None };
        Self {
            take: Some(Box::pin(pool.bound.take(1))),
            pool,
            f: Some(f),
            running: Some(Running {
                shared: Arc::new(Mutex::new(shared)),
                source: StopSource::new(),
                origin: Origin { name: None, location: Location::caller(), is_reported: true },
            }),
            alarm: Alarm::new(),
            until: None,
            stopped: false,
            grace: DEFAULT_BLOCKING_GRACE,
            watch: StopWatch::new(),
        }
    }

    /// Sets how long the task waits for the function after both were asked to stop. `Duration::MAX` means
    /// without limit.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Leaves the function to its thread as soon as the task is asked to stop, and does not report it. For functions
    /// that cannot hear of a stop, and whose only effect is their result: lookups.
    #[doc(hidden)]
    pub fn left_at_a_stop(mut self) -> Self {
        if let Some(running) = &mut self.running {
            running.origin.is_reported = false;
        }
        self.grace(Duration::ZERO)
    }

    /// Sets the name that is reported to the [hook](super::set_overdue_hook).
    pub fn named(mut self, name: impl Into<Box<str>>) -> Self {
        if let Some(running) = &mut self.running {
            running.origin.name = Some(name.into());
        }
        self
    }
}

impl<T, F> Future for Blocking<T, F>
where
    F: FnOnce(Inside) -> T + Send + 'static,
    T: Send + 'static,
{
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        Frame::current(|frame| {
            let Some(frame) = frame else { outside_a_task("`blocking`") };
            let this = self.as_mut().project();
            if *this.stopped {
                frame.set_stopped();
                return Poll::Pending;
            }
            if let Some(take) = this.take {
                let Poll::Ready(permit) = Pin::new(take).poll(cx) else { return Poll::Pending };
                *this.take = None;
                let (Some(f), Some(running)) = (this.f.take(), &*this.running) else { ended_before() };
                running.begin(f, permit, this.pool, frame);
            }
            let Some(running) = &*this.running else { ended_before() };
            if let Some(result) = running.poll(cx) {
                *this.running = None;
                return Poll::Ready(result.unwrap_or_else(|panic| panic.resume()));
            }
            frame.waits_at(running.origin.location);
            if !frame.is_asked_to_stop() && this.until.is_none() {
                this.watch.watch(frame, cx);
                return Poll::Pending;
            }
            let alarm = this.alarm.as_ref();
            if this.until.is_none() {
                running.source.request_stop(frame.stop_reason().unwrap_or(StopReason::Requested));
                let now = alarm.now(frame.operation_owner().env().executor());
                *this.until = now.checked_add(*this.grace);
            }
            if this.until.is_some_and(|until| alarm.poll(until, cx)) {
                if let Some(result) = running.give_up() {
                    *this.running = None;
                    return Poll::Ready(result.unwrap_or_else(|panic| panic.resume()));
                }
                // Dropping it reports the function, which runs on.
                *this.running = None;
                *this.stopped = true;
                frame.set_stopped();
            } else {
                frame.hold();
            }
            Poll::Pending
        })
    }
}

fn ended_before() -> ! {
    panic!("polled after it has ended")
}

impl<T: Send + 'static> Running<T> {
    /// Hands the function to a thread, with its permit.
    fn begin<F>(&self, f: F, permit: OwnedPermit, pool: &BlockingPool, frame: &Frame<'_>)
    where
        F: FnOnce(Inside) -> T + Send + 'static,
    {
        let env = frame.child_env();
        let inside = Inside { env: env.with(Changes::new().stop_token(self.source.token())) };
        let shared = self.shared.clone();
        lock(&shared).has_ended = false;
        let job = Box::new(move || {
            let result = Panic::catch(|| f(inside));
            let mut state = lock(&shared);
            state.result = Some(result);
            state.has_ended = true;
            let waker = state.waker.take();
            drop(state);
            wake_if_any(waker);
            permit
        });
        if let Err(error) = pool.threads.post(job) {
            lock(&self.shared).has_ended = true;
            panic!("the system did not start a thread for blocking work: {error}");
        }
    }

    /// Takes the result; if there is none yet, stores the waker.
    fn poll(&self, cx: &Context<'_>) -> Option<Result<T, Panic>> {
        // Cloned without the lock: a waker may be code of the program.
        let waker = cx.waker().clone();
        let mut shared = lock(&self.shared);
        if shared.has_ended {
            return shared.result.take();
        }
        let before = shared.waker.replace(waker);
        drop(shared);
        drop(before);
        None
    }

    /// Takes the result if the function has returned at the last moment; else marks it as overdue, even if it
    /// returns a moment later.
    fn give_up(&self) -> Option<Result<T, Panic>> {
        let mut shared = lock(&self.shared);
        shared.given_up = !shared.has_ended;
        shared.result.take()
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        let shared = lock(&self.shared);
        let overdue = shared.given_up || !shared.has_ended;
        drop(shared);
        if overdue {
            self.source.request_stop(StopReason::Abandoned);
            if self.origin.is_reported {
                report(&Overdue { name: self.origin.name.as_deref(), place: self.origin.location });
            }
        }
    }
}

impl<T, F> fmt::Debug for Blocking<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocking")
            .field("pool", &self.pool)
            .field("waits for a thread", &self.take.is_some())
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}
