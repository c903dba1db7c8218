//! One step of a stream that may be of another crate: a stop takes effect before it, and it takes from the budget of the
//! task. Streams of Convoke do both by themselves, and are not charged twice.

use core::task::{Context, Poll};

use convoke_core::raw::{Pause, budget};

/// Polls one step, such as a read. `Pending` without a step if the task was asked to stop, or has to let others run.
#[inline]
pub(crate) fn poll_step<T>(cx: &mut Context<'_>, step: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
    if Pause::was_stopped() { Poll::Pending } else { budget::poll_in_turn(cx, step) }
}
