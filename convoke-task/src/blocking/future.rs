//! The future of blocking work: waits for a thread, then for the function; asks it to stop, and gives it a while.

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

/// How long a task that was asked to stop waits for its blocking work, if nobody has said otherwise.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(5);

pin_project! {
    /// See [`blocking()`](super::blocking()).
    #[must_use = "futures do nothing until they are awaited"]
    pub struct Blocking<T, F> {
        pool: BlockingPool,
        f: Option<F>,
        take: Option<Pin<Box<dyn Future<Output = OwnedPermit> + Send>>>,
        running: Option<Running<T>>,
        #[pin]
        alarm: Alarm,
        // When the grace period is over; from when it was asked to stop.
        until: Option<Instant>,
        stopped: bool,
        grace: Duration,
        watch: StopWatch,
    }
}

/// A function on its thread. When it is dropped before that has ended, the function is asked to stop, and named.
struct Running<T> {
    room: Arc<Mutex<Room<T>>>,
    source: StopSource,
    whose: Whose,
}

struct Whose {
    name: Option<Box<str>>,
    place: &'static Location<'static>,
}

struct Room<T> {
    result: Option<Result<T, Panic>>,
    /// The result was put there.
    has_ended: bool,
    /// The task's patience was over before that.
    given_up: bool,
    waker: Option<Waker>,
}

fn lock<T>(room: &Mutex<Room<T>>) -> MutexGuard<'_, Room<T>> {
    room.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T, F> Blocking<T, F>
where
    F: FnOnce(Inside) -> T + Send + 'static,
    T: Send + 'static,
{
    #[track_caller]
    pub(super) fn new(pool: BlockingPool, f: F) -> Self {
        let room = Room { result: None, has_ended: true, given_up: false, waker: None };
        Self {
            take: Some(Box::pin(pool.bound.take(1))),
            pool,
            f: Some(f),
            running: Some(Running {
                room: Arc::new(Mutex::new(room)),
                source: StopSource::new(),
                whose: Whose { name: None, place: Location::caller() },
            }),
            alarm: Alarm::new(),
            until: None,
            stopped: false,
            grace: DEFAULT_GRACE,
            watch: StopWatch::new(),
        }
    }

    /// How long the task waits for the function when both were asked to stop. `Duration::MAX` is for ever.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// A name, for the [hook](super::set_overdue_hook).
    pub fn named(mut self, name: impl Into<Box<str>>) -> Self {
        if let Some(running) = &mut self.running {
            running.whose.name = Some(name.into());
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
            frame.waits_at(running.whose.place);
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
                // It is named, and left alone.
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
    /// Gives the function to a thread, with its permit.
    fn begin<F>(&self, f: F, permit: OwnedPermit, pool: &BlockingPool, frame: &Frame<'_>)
    where
        F: FnOnce(Inside) -> T + Send + 'static,
    {
        let env = frame.operation_owner().env().child();
        let inside = Inside { env: env.with(Changes::new().stop_token(self.source.token())) };
        let room = self.room.clone();
        lock(&room).has_ended = false;
        let job = Box::new(move || {
            let result = Panic::catch(|| f(inside));
            let mut state = lock(&room);
            state.result = Some(result);
            state.has_ended = true;
            let waker = state.waker.take();
            drop(state);
            wake_if_any(waker);
            permit
        });
        if let Err(error) = pool.threads.post(job) {
            lock(&self.room).has_ended = true;
            panic!("no thread for blocking work could be started: {error}");
        }
    }

    /// What has come of it; if nothing yet, the waker is in its place.
    fn poll(&self, cx: &Context<'_>) -> Option<Result<T, Panic>> {
        // Cloned without the lock: it may be anybody's.
        let waker = cx.waker().clone();
        let mut room = lock(&self.room);
        if room.has_ended {
            return room.result.take();
        }
        let before = room.waker.replace(waker);
        drop(room);
        drop(before);
        None
    }

    /// The last look: what has come of it at the last moment; if nothing, it is overdue, also if it ends a moment later.
    fn give_up(&self) -> Option<Result<T, Panic>> {
        let mut room = lock(&self.room);
        room.given_up = !room.has_ended;
        room.result.take()
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        let room = lock(&self.room);
        let overdue = room.given_up || !room.has_ended;
        drop(room);
        if overdue {
            self.source.request_stop(StopReason::Abandoned);
            report(&Overdue { name: self.whose.name.as_deref(), place: self.whose.place });
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
