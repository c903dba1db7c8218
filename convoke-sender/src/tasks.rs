//! Tasks and launched chains as senders.

#![allow(unsafe_code)]

use core::future::Future;

use convoke_core::Never;
use convoke_task::launch::{JoinOperation, Launched};
use convoke_task::{Task, TaskOperation};

use crate::receiver::ReceiverOf;
use crate::{Receiver, Sender};

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
