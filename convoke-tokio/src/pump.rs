//! A loop of Convoke's inside one tokio task: each poll of the task runs some of its work and waits, with tokio's
//! timer, for the next of its timers.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;
use std::time::Instant;

use convoke_core::raw::{contain, report_panic};
use convoke_exec::raw::{EmbeddedLoop, Moment};
use convoke_exec::{RunLoop, RunLoopExecutor};
use tokio::task::coop::has_budget_remaining;
use tokio::time::{Sleep, sleep_until};

use crate::task_waker::TaskWaker;

/// The bound of one poll of a tokio task. All pieces of a poll share the tokio budget of that poll, and a future of
/// tokio's that finds it spent wakes itself at once: without a bound the poll would not end. The poll also ends
/// when tokio's budget is spent.
pub use convoke_exec::PIECES_PER_POLL;

/// A loop that can be run step by step.
pub(crate) trait StepLoop {
    fn executor(&self) -> RunLoopExecutor;
    fn run_while(&self, goes_on: impl FnMut(Moment) -> bool);
    fn doze(&self) -> bool;
    fn rouse(&self);
    fn next_timer(&self) -> Option<Instant>;
}

/// A loop, and how the tokio task that runs it is woken.
pub(crate) struct Pump<L> {
    pub(crate) run_loop: L,
    pub(crate) task: Arc<TaskWaker>,
    /// Waits for the earliest timer of the loop. `None` while there is no timer: a clock that is paused must not
    /// jump to a time that nothing waits for.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl<L: StepLoop> Pump<L> {
    pub(crate) fn over(run_loop: L, task: Arc<TaskWaker>) -> Self {
        Self { run_loop, task, sleep: None }
    }

    /// Returns it without the timer and the waker of the task that ran it last.
    pub(crate) fn idle(mut self) -> Self {
        self.sleep = None;
        self.task.clear();
        self
    }

    /// Runs work, until there is none or the poll has done its share. Then returns ready if `done` does; else
    /// makes sure that the task is polled again when there is work, or a timer is due.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, done: impl FnOnce() -> bool) -> Poll<()> {
        self.task.set(cx.waker());
        self.run_loop.rouse();
        let has_more = self.run_some();
        if done() {
            return Poll::Ready(());
        }
        if has_more || !self.run_loop.doze() || self.poll_timer(cx).is_ready() {
            yield_task(cx);
        }
        Poll::Pending
    }

    /// Runs at most [`PIECES_PER_POLL`] pieces of work. Returns true if there may be more.
    fn run_some(&self) -> bool {
        let (mut left, mut has_more) = (PIECES_PER_POLL, true);
        // Tasks catch their panics; a piece of work of another kind may not.
        contain(report_panic, || {
            self.run_loop.run_while(|moment| match moment {
                Moment::Idle => {
                    has_more = false;
                    false
                }
                Moment::Next => {
                    let goes_on = left > 0 && has_budget_remaining();
                    left = left.saturating_sub(1);
                    goes_on
                }
            });
        });
        has_more
    }

    /// Completes when the earliest timer is due. Pending if there is none.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.run_loop.next_timer() else {
            self.sleep = None;
            return Poll::Pending;
        };
        let at = tokio::time::Instant::from_std(at);
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(at)));
        if sleep.deadline() != at {
            sleep.as_mut().reset(at);
        }
        sleep.as_mut().poll(cx)
    }
}

/// Wakes the task when the others, and tokio's driver, had their turn. A task that wakes itself at once would be
/// ahead of tasks that yield, until tokio polls its driver.
pub(crate) fn yield_task(cx: &mut Context<'_>) {
    let yields = core::pin::pin!(tokio::task::yield_now());
    let _: Poll<()> = yields.poll(cx);
}

impl StepLoop for EmbeddedLoop {
    fn executor(&self) -> RunLoopExecutor {
        self.executor()
    }

    fn run_while(&self, goes_on: impl FnMut(Moment) -> bool) {
        self.run_while(goes_on);
    }

    fn doze(&self) -> bool {
        self.doze()
    }

    fn rouse(&self) {
        self.rouse();
    }

    fn next_timer(&self) -> Option<Instant> {
        self.next_timer()
    }
}

impl StepLoop for RunLoop {
    fn executor(&self) -> RunLoopExecutor {
        self.executor()
    }

    fn run_while(&self, goes_on: impl FnMut(Moment) -> bool) {
        self.run_while(goes_on);
    }

    fn doze(&self) -> bool {
        self.doze()
    }

    fn rouse(&self) {
        self.rouse();
    }

    fn next_timer(&self) -> Option<Instant> {
        self.next_timer()
    }
}
