//! The budget of a poll: how many awaits of one poll of a task may be ready at once before the task yields.
//!
//! An await that is ready at once returns to the task without letting anything else run. A loop of such
//! awaits would keep its thread for ever. So each task has a budget of [`PER_POLL`] for one poll, and every
//! future of Convoke takes one from it when it completes. At zero it yields: it wakes its task and returns
//! `Pending`, and the run loop checks its inbox, timers, driver and signals before its next run.
//!
//! # Protocol
//! 1. The executor's poll of a task sets the budget ([`of_poll`]) and restores that of the task around it, if
//!    there is one. Nothing else sets it: a wait of another task does not renew it, nor does a nested poll.
//! 2. A leaf future calls [`may_proceed`] before it takes anything (a message, a permit), at each poll, after
//!    it has checked for a stop. If that returns false it returns `Pending` and changes nothing.
//! 3. A combinator calls [`may_proceed`] only at its first poll, before anything in it has begun: later it may
//!    hold work that has to be told of a stop, or kept.
//! 4. Both call [`spend`] when they return `Ready`. A poll that returns `Pending` costs nothing, so a task
//!    with more branches than budget polls all of them.
//! 5. A future around others that may or may not be of Convoke takes a [`mark`] before it polls them, and calls
//!    [`Mark::spend_once`] instead of `spend`: what is awaited in several layers is taken once.
//! 6. Outside of tasks there is no budget: nothing there could yield to anything.

use core::marker::PhantomData;
use core::task::{Context, Poll};

use super::Frame;
use crate::this_thread::{ThisThread, UNLIMITED_BUDGET};

/// The number of awaits that may complete in one poll of a task.
pub const PER_POLL: u32 = 128;

/// Returns true if the calling future may complete in this poll. Otherwise the budget is spent: the waker was
/// woken, and the future returns `Pending` now.
#[inline]
#[must_use = "if this returns false, return `Pending`"]
pub fn may_proceed(cx: &Context<'_>) -> bool {
    has_left() || yields(cx)
}

/// Returns true if the running poll has budget left.
#[inline]
pub fn has_left() -> bool {
    ThisThread::with(|thread| thread.budget.get() > 0)
}

/// Takes one from the budget. Call it when a future completes.
#[inline]
pub fn spend() {
    ThisThread::with(|thread| thread.budget.set(thread.budget.get().saturating_sub(1)));
}

/// The budget at one point of a poll.
#[derive(Clone, Copy, Debug)]
pub struct Mark(u32);

/// Returns the budget as it is now, to see later if anything was taken from it.
#[inline]
pub fn mark() -> Mark {
    Mark(ThisThread::with(|thread| thread.budget.get()))
}

impl Mark {
    /// Takes one from the budget, unless something inside has done so since. Call it when a future completes.
    #[inline]
    pub fn spend_once(self) {
        if self.0 == mark().0 {
            spend();
        }
    }
}

/// Polls one step of something that may not be of Convoke, such as a read of a foreign stream. `Pending` without a step,
/// if the budget is spent.
#[inline]
pub fn poll_in_turn<T>(cx: &mut Context<'_>, step: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
    if !may_proceed(cx) {
        return Poll::Pending;
    }
    let mark = mark();
    let polled = step(cx);
    if polled.is_ready() {
        mark.spend_once();
    }
    polled
}

/// Wakes the task, so that it runs again behind others. Returns true if it need not yield, outside of tasks.
#[cold]
#[inline(never)]
fn yields(cx: &Context<'_>) -> bool {
    let on_yield = ThisThread::with(|thread| {
        if thread.current_frame.get().is_null() {
            thread.budget.set(UNLIMITED_BUDGET);
            return Err(());
        }
        Ok(thread.on_yield.get())
    });
    let Ok(on_yield) = on_yield else { return true };
    yield_now(cx);
    if let Some(on_yield) = on_yield {
        on_yield();
    }
    false
}

/// Wakes the caller, a future that returns `Pending` now although it could go on: it has a bound of its own,
/// which holds outside of tasks too.
#[cold]
pub fn yield_now(cx: &Context<'_>) {
    // The caller is polled again soon. Until then it must not be taken for a future that gives way to a stop.
    Frame::hold_current();
    cx.waker().wake_by_ref();
}

/// Restores the budget of the task around, also if the poll panics.
#[derive(Debug)]
#[must_use = "the budget lasts until this is dropped"]
pub struct PollBudget {
    outer: u32,
    _not_send: PhantomData<*const ()>,
}

/// Starts the budget of one poll of a task.
#[inline]
pub fn of_poll() -> PollBudget {
    replace(PER_POLL)
}

/// Lifts the limit until the returned guard is dropped.
#[inline]
pub fn unlimited() -> PollBudget {
    replace(UNLIMITED_BUDGET)
}

#[inline]
fn replace(budget: u32) -> PollBudget {
    PollBudget { outer: ThisThread::with(|thread| thread.budget.replace(budget)), _not_send: PhantomData }
}

impl Drop for PollBudget {
    #[inline]
    fn drop(&mut self) {
        ThisThread::with(|thread| thread.budget.set(self.outer));
    }
}

/// Restores the function that was called for a yield before.
#[derive(Debug)]
#[must_use = "the function is called until this is dropped"]
pub struct OnYield {
    outer: Option<fn()>,
    _not_send: PhantomData<*const ()>,
}

/// Makes this thread call `on_yield` each time a task yields because its budget is spent. A run loop checks
/// its timers and its driver then before it runs the next piece of work.
pub fn on_yield(on_yield: fn()) -> OnYield {
    let outer = ThisThread::with(|thread| thread.on_yield.replace(Some(on_yield)));
    OnYield { outer, _not_send: PhantomData }
}

impl Drop for OnYield {
    fn drop(&mut self) {
        ThisThread::with(|thread| thread.on_yield.set(self.outer));
    }
}
