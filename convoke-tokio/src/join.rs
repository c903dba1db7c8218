//! `join(launched)`: awaits a launched task in a tokio task.

use core::fmt;
use core::future::{Future, poll_fn};
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::StopReason;
use convoke_core::raw::{contain, report_panic};
use convoke_task::cleanup::ProblemKind;
use convoke_task::raw::report_problem;
use convoke_task::{Launched, Stopped};
use tokio::runtime::Handle;

use crate::chains::Registered;
use crate::run::current_runtime;

/// Awaits, in a tokio task, what was [launched](convoke_task::launch()) on an executor of Convoke's: on a
/// [`Workers`](crate::Workers), a thread pool, a context of another thread. A sender is awaited inside
/// [`run`](crate::run()).
///
/// - *Completes with* `Ok` of what the launched task returns; with [`Stopped`], and the reason, if it was
///   stopped.
/// - *If dropped*, the launched task is asked to stop ([`StopReason::Abandoned`]), and a task of the runtime
///   awaits it. [`finish`](crate::finish()) waits for that.
/// - *Runs on* the tokio task that awaits it. The launched task runs on its own executor.
/// - *Panics* if the launched task does; and outside a tokio runtime.
///
/// ```
/// use convoke::prelude::*;
/// use convoke_tokio::{Workers, join};
///
/// # #[tokio::main(flavor = "multi_thread", worker_threads = 2)]
/// # async fn main() {
/// let workers = Workers::new();
/// let launched = launch(&workers).name("answer").start(async { 6 * 7 });
/// assert_eq!(join(launched).await, Ok(42));
/// # }
/// ```
#[track_caller]
pub fn join<T: Send + 'static>(launched: Launched<T>) -> Join<T> {
    Join { launched: Some(launched), reaper: None, location: Location::caller() }
}

/// Future of [`join()`].
#[must_use = "dropping it asks the launched task to stop; await it"]
pub struct Join<T: Send + 'static> {
    /// `None` when it has ended.
    launched: Option<Launched<T>>,
    /// The runtime that awaits the task if this is dropped. Set by the first poll.
    reaper: Option<(Handle, Registered)>,
    location: &'static Location<'static>,
}

impl<T: Send + 'static> Future for Join<T> {
    type Output = Result<T, Stopped>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(launched) = &mut this.launched else {
            panic!("`convoke_tokio::join` polled after it has ended")
        };
        if this.reaper.is_none() {
            let runtime = current_runtime(this.location);
            let registered = Registered::new(runtime.id(), launched.stop_handle(), None, this.location);
            this.reaper = Some((runtime, registered));
        }
        let ended = launched.poll_join(cx);
        if ended.is_ready() {
            (this.launched, this.reaper) = (None, None);
        }
        ended
    }
}

impl<T: Send + 'static> Drop for Join<T> {
    fn drop(&mut self) {
        let Some(launched) = self.launched.take() else { return };
        if launched.is_finished() {
            return;
        }
        contain(report_panic, || launched.request_stop(StopReason::Abandoned));
        let here = || {
            let runtime = Handle::try_current().ok()?;
            let registered = Registered::new(runtime.id(), launched.stop_handle(), None, self.location);
            Some((runtime, registered))
        };
        // Without a runtime, dropping the `Launched` blocks this thread.
        let Some((runtime, registered)) = self.reaper.take().or_else(here) else { return };
        let mut reaped = Reaped { launched: Some(launched), location: self.location };
        drop(runtime.spawn(async move {
            let _registered = registered;
            poll_fn(|cx| reaped.poll(cx)).await;
        }));
    }
}

/// A launched task whose future was dropped.
struct Reaped<T> {
    launched: Option<Launched<T>>,
    location: &'static Location<'static>,
}

impl<T> Reaped<T> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(launched) = &mut self.launched else { return Poll::Ready(()) };
        // Its panic is reported, as by a `Launched` that is dropped.
        match contain(report_panic, || launched.poll_join(cx)) {
            Some(Poll::Pending) => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }
}

impl<T> Drop for Reaped<T> {
    fn drop(&mut self) {
        if let Some(launched) = self.launched.take()
            && !launched.is_finished()
        {
            // The runtime has ended, and this thread must not block: the task may need it. Its executor runs it to
            // its end, or stops it.
            report_problem("a launched task that tokio awaited", self.location, ProblemKind::CutShort);
            core::mem::forget(launched);
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Join<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Join").field(&self.launched).finish()
    }
}
