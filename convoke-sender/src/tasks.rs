//! Tasks and launched chains as senders, and tasks that fail.

#![allow(unsafe_code)]

use core::future::Future;

use convoke_core::Never;
use convoke_task::launch::{JoinOperation, Launched};
use convoke_task::{Task, TaskOperation, task};

use crate::algorithm::transpose::Transpose;

use crate::receiver::ReceiverOf;
use crate::{Receiver, Sender};

/// Makes a sender of a future that returns a `Result`: `Err` is an error of the sender. Use
/// [`task()`](convoke_task::task) if a `Result` is just a value.
///
/// In a group, the difference decides: `when_all` of `try_task`s stops the others at the first error, while
/// `when_all` of `task`s waits for all and returns all results.
///
/// - *Completes with* the value in `Ok`, or the error in `Err`; stopped if the future was stopped. If the
///   future panics: panicked.
/// - *If dropped* before it starts, the future is dropped.
/// - *Runs on* the executor of the environment that it is started in.
///
/// ```
/// use convoke::sender::prelude::*;
/// use convoke::sender::try_task;
///
/// async fn parse(text: &str) -> Result<u32, std::num::ParseIntError> {
///     text.parse()
/// }
/// let sum = when_all((try_task(parse("1")), try_task(parse("41"))));
/// assert_eq!(sync_wait(sum.then(|(a, b)| a + b)), Outcome::Value(42));
///
/// let stopped_at_once = when_all((try_task(parse("one")), never().may_fail()));
/// assert!(sync_wait(stopped_at_once.then(|(_, ())| ())).is_error());
/// ```
pub fn try_task<F, V, E>(future: F) -> TryTask<F>
where
    F: Future<Output = Result<V, E>> + Send,
{
    task(future).transpose()
}

/// The sender of [`try_task()`].
pub type TryTask<F> = Transpose<Task<F>>;

// SAFETY: rules 1 and 2 of `Sender`: the task completes the receiver last: after its future is dropped, all
// that it awaited has completed, the stop callback is removed, and nothing is queued. Rule 3: `COMPLETES` is
// the default, `Anywhere`: the executor may have ended, or the task may have moved.
#[diagnostic::do_not_recommend]
unsafe impl<F: Future + Send> Sender for Task<F> {
    type Value = F::Output;
    type Error = Never;
    type Operation<R: Receiver<F::Output, Never>> = TaskOperation<F, ReceiverOf<R>>;

    fn connect<R: Receiver<F::Output, Never>>(self, receiver: R) -> Self::Operation<R> {
        Self::connect(self, ReceiverOf(receiver))
    }
}

// SAFETY: rules 1 and 2 of `Sender`: the chain completes the receiver last, after it has ended and the stop
// callback is removed. Rule 3: `COMPLETES` is the default, `Anywhere`.
#[diagnostic::do_not_recommend]
unsafe impl<T: Send> Sender for Launched<T> {
    type Value = T;
    type Error = Never;
    type Operation<R: Receiver<T, Never>> = JoinOperation<T, ReceiverOf<R>>;

    fn connect<R: Receiver<T, Never>>(self, receiver: R) -> Self::Operation<R> {
        Self::connect(self, ReceiverOf(receiver))
    }
}
