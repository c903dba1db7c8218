//! A loop as a future: a foreign executor drives it. Each poll is a bounded turn; a post wakes the task that polls.
//!
//! A poll stores the waker, and then dozes: from then on a post, or a timer that another thread arms, finds the loop
//! asleep and takes the waker. Between polls nothing runs: there is no thread for the loop. Something has
//! to wake the task when a timer is due. That is the thread that serves executors without timers, which the process starts
//! when it is first needed; or a timer of the foreign executor, and then no thread is started.

use core::fmt;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::time::Instant;

use pin_project_lite::pin_project;

use super::loop_timer::{LoopTimer, TimerBy, TimerOfProcess};
use super::{RunLoop, SharedLoop, lock};

/// Number of pieces of work that one poll of a [`LoopFuture`] runs at most, unless the program says otherwise.
pub const PIECES_PER_POLL: usize = 64;

pin_project! {
    /// A [`RunLoop`] as a future, which a foreign executor polls: see [`RunLoop::as_future`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct LoopFuture<'a, T = TimerOfProcess> {
        run_loop: &'a RunLoop,
        most: usize,
        ran: usize,
        // True once a poll has stored its waker: another future of the loop may have stored one since, or before.
        stored: bool,
        #[pin]
        timer: T,
    }

    impl<T> PinnedDrop for LoopFuture<'_, T> {
        fn drop(this: Pin<&mut Self>) {
            if !this.stored {
                return;
            }
            this.run_loop.rouse();
            let waker = lock(&this.run_loop.executor.shared.driven_by).take();
            // Dropped without the lock: a waker is foreign code.
            drop(waker);
        }
    }
}

impl RunLoop {
    /// Returns the loop as a future, for a foreign executor: tokio's, smol's, a `block_on` of another crate. It runs
    /// the work of the loop whenever it is polled, and posts and timers wake it.
    ///
    /// The loop stays on its thread, so the future is not `Send`: it is driven by an executor of one thread, or by one
    /// that takes local futures. A poll runs at most [`PIECES_PER_POLL`] pieces of work, and then lets the tasks of the
    /// foreign executor run. If the loop has timers, the thread `convoke-timers` wakes the future at their time; with
    /// [`timer`](LoopFuture::timer), a timer of the foreign executor does, and no thread is started.
    ///
    /// A loop over a [sleeper](crate::raw::Sleeper) wakes that, and not the future: an I/O context has a future of its
    /// own.
    ///
    /// - *Completes with* the number of pieces that have run, when [`finish`](RunLoop::finish) was called and the queue
    ///   is empty.
    /// - *If dropped*, work stays queued. The loop can be run in another way. Poll one future of a loop at a time: the
    ///   one that was polled last is woken.
    /// - *Runs on* the thread of the loop, which polls it.
    /// - *Panics* if a piece of work panics (tasks catch their panics). The rest stays queued.
    ///
    /// ```
    /// use std::time::Duration;
    /// use convoke::executor::RunLoop;
    /// use convoke::prelude::*;
    /// # use std::{pin::pin, sync::Arc, task::{Context, Poll, Wake}, thread::{self, Thread}};
    /// # struct Unpark(Thread);
    /// # impl Wake for Unpark {
    /// #     fn wake(self: Arc<Self>) { self.0.unpark() }
    /// # }
    /// # fn foreign_block_on<F: Future>(future: F) -> F::Output {
    /// #     let (mut future, waker) = (pin!(future), Arc::new(Unpark(thread::current())).into());
    /// #     loop {
    /// #         match future.as_mut().poll(&mut Context::from_waker(&waker)) {
    /// #             Poll::Ready(output) => return output,
    /// #             Poll::Pending => thread::park(),
    /// #         }
    /// #     }
    /// # }
    ///
    /// let run_loop = RunLoop::new();
    /// let executor = run_loop.executor();
    /// let launched = launch(&executor.clone()).start(async move {
    ///     sleep(Duration::from_millis(1)).await;
    ///     executor.finish();
    ///     42
    /// });
    /// foreign_block_on(run_loop.as_future());
    /// assert_eq!(launched.wait(), Outcome::Value(42));
    /// ```
    pub fn as_future(&self) -> LoopFuture<'_> {
        LoopFuture {
            run_loop: self,
            most: PIECES_PER_POLL,
            ran: 0,
            stored: false,
            timer: TimerOfProcess::new(),
        }
    }
}

impl<T> LoopFuture<'_, T> {
    /// Sets how many pieces of work one poll runs at most; at least one.
    pub fn pieces_per_poll(mut self, most: usize) -> Self {
        self.most = most.max(1);
        self
    }
}

impl<'a> LoopFuture<'a> {
    /// Waits for the timers of the loop by a timer of the foreign executor: `make` returns a future that completes at
    /// the time it is given, such as `smol::Timer::at(at)` or `tokio::time::sleep_until(at.into())`.
    pub fn timer<M, F>(self, make: M) -> LoopFuture<'a, TimerBy<M, F::IntoFuture>>
    where
        M: FnMut(Instant) -> F,
        F: IntoFuture,
    {
        let (run_loop, most, ran) = (self.run_loop, self.most, self.ran);
        LoopFuture { run_loop, most, ran, stored: false, timer: TimerBy::new(make) }
    }
}

impl<T: LoopTimer> Future for LoopFuture<'_, T> {
    type Output = usize;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<usize> {
        let this = self.project();
        // Before the loop dozes: a post takes it from then on.
        this.run_loop.executor.shared.store_driver(cx.waker());
        *this.stored = true;
        // Before the turn: work that was posted before `finish` is then found by the turn.
        let finished = this.run_loop.is_finished();
        let turn = this.run_loop.turn(*this.most);
        *this.ran += turn.ran;
        if turn.has_more || (!finished && this.run_loop.is_finished()) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if finished {
            this.run_loop.rouse();
            return Poll::Ready(*this.ran);
        }
        if this.timer.poll_at(turn.next_timer, cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl SharedLoop {
    /// Stores the waker of the task that drives the loop, unless it is there.
    fn store_driver(&self, waker: &Waker) {
        if lock(&self.driven_by).as_ref().is_some_and(|stored| stored.will_wake(waker)) {
            return;
        }
        // Cloned and dropped without the lock: a waker is foreign code.
        let waker = waker.clone();
        let before = lock(&self.driven_by).replace(waker);
        drop(before);
    }
}

impl<T> fmt::Debug for LoopFuture<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopFuture").field("ran", &self.ran).finish_non_exhaustive()
    }
}
