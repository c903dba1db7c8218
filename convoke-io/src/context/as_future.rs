//! An I/O context as a future: a foreign executor drives it, and its reactor watches the descriptor of the driver.
//!
//! Everything that concerns the context makes the descriptor readable: I/O, a post from another thread, a stop. So one
//! wait for the descriptor, and one for the time of the next timer, are all that the foreign executor must do.

use core::fmt;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use std::time::Instant;

use convoke_exec::raw::{LoopTimer, Sleeper, TimerBy, TimerOfProcess};
use convoke_exec::{LoopTurn, PIECES_PER_POLL};
use pin_project_lite::pin_project;

use super::{ForgetStops, IoContext};

pin_project! {
    /// An [`IoContext`] as a future, which a foreign executor polls: see [`IoContext::as_future`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct IoFuture<'a, M, R, T = TimerOfProcess> {
        context: &'a IoContext,
        most: usize,
        ran: usize,
        readable: M,
        #[pin]
        waits: Option<R>,
        #[pin]
        timer: T,
    }
}

impl IoContext {
    /// Returns the context as a future, for a foreign executor: tokio's, smol's, a `block_on` of another crate. It runs
    /// the work of the context whenever it is polled.
    ///
    /// The reactor of the foreign executor watches the [descriptor](IoContext::descriptor) of the context: `readable`
    /// returns a future that completes when that is readable. It is called again for each wait. With smol that is
    /// `|| fd.readable()` for `let fd = Async::new(context.descriptor()?.try_clone_to_owned()?)?`; with tokio
    /// `async || fd.readable().await.map(|mut ready| ready.clear_ready())` for an `AsyncFd`.
    ///
    /// The context stays on its thread, so the future is not `Send`. A poll runs at most [`PIECES_PER_POLL`] work items,
    /// and then lets the tasks of the foreign executor run. If the context has timers, the thread `convoke-timers` wakes
    /// the future at their time; with [`timer`](IoFuture::timer), a timer of the foreign executor does, and no thread is
    /// started.
    ///
    /// - *Completes with* the number of work items that have run, when there is [no work left](IoContext::run), or after
    ///   [`stop`](IoContext::stop).
    /// - *If dropped*, work stays queued. The context can be run in another way.
    /// - *Runs on* the thread of the context, which polls it.
    /// - *Panics* if a work item panics (tasks catch their panics). The rest stays queued.
    pub fn as_future<M, R>(&self, readable: M) -> IoFuture<'_, M, R::IntoFuture>
    where
        M: FnMut() -> R,
        R: IntoFuture,
    {
        let timer = TimerOfProcess::new();
        IoFuture { context: self, most: PIECES_PER_POLL, ran: 0, readable, waits: None, timer }
    }
}

impl<M, R, T> IoFuture<'_, M, R, T> {
    /// Sets how many work items one poll runs at most; at least one.
    pub fn pieces_per_poll(mut self, most: usize) -> Self {
        self.most = most.max(1);
        self
    }
}

impl<'a, M, R> IoFuture<'a, M, R> {
    /// Waits for the timers of the context by a timer of the foreign executor: `make` returns a future that completes at
    /// the time it is given, such as `smol::Timer::at(at)` or `tokio::time::sleep_until(at.into())`.
    pub fn timer<N, F>(self, make: N) -> IoFuture<'a, M, R, TimerBy<N, F::IntoFuture>>
    where
        N: FnMut(Instant) -> F,
        F: IntoFuture,
    {
        let Self { context, most, ran, readable, waits, timer: _ } = self;
        IoFuture { context, most, ran, readable, waits, timer: TimerBy::new(make) }
    }
}

impl<M, R, T, F> Future for IoFuture<'_, M, R, T>
where
    M: FnMut() -> F,
    F: IntoFuture<IntoFuture = R>,
    R: Future,
    T: LoopTimer,
{
    type Output = usize;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<usize> {
        let mut this = self.project();
        let LoopTurn { ran, has_more, next_timer, .. } =
            this.context.run_loop.turn_with(*this.most, || this.context.shared.check());
        *this.ran += ran;
        if this.context.shared.is_stopped() || !has_more && this.context.is_dry() {
            let _stop_ends_here = ForgetStops(&this.context.shared);
            this.context.run_loop.rouse();
            return Poll::Ready(*this.ran);
        }
        if has_more {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if this.waits.is_none() {
            let waits = (this.readable)().into_future();
            this.waits.set(Some(waits));
        }
        let is_readable = this.waits.as_mut().as_pin_mut().is_none_or(|waits| waits.poll(cx).is_ready());
        if is_readable {
            this.waits.set(None);
        }
        if is_readable || this.timer.poll_at(next_timer, cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl<M, R, T> fmt::Debug for IoFuture<'_, M, R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoFuture").field("ran", &self.ran).finish_non_exhaustive()
    }
}
