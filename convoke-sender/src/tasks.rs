//! Tasks and launched chains as senders.

#![allow(unsafe_code)]

use core::future::Future;

use convoke_core::Never;
use convoke_task::launch::{JoinOperation, Launched};
use convoke_task::{Task, TaskOperation};

use crate::receiver::ReceiverOf;
use crate::{Receiver, Sender};

// SAFETY: 1. and 2. The receiver is completed when the future is gone, all that was awaited in it has completed, the stop callback
// is removed, and nothing is queued. 3. It completes on the executor of its environment, unless that has ended, or the task moved.
#[diagnostic::do_not_recommend]
unsafe impl<F: Future + Send> Sender for Task<F> {
    type Value = F::Output;
    type Error = Never;
    type Operation<R: Receiver<F::Output, Never>> = TaskOperation<F, ReceiverOf<R>>;

    fn connect<R: Receiver<F::Output, Never>>(self, receiver: R) -> Self::Operation<R> {
        Self::connect(self, ReceiverOf(receiver))
    }
}

// SAFETY: the receiver is completed when the chain has ended and the stop callback is removed, as the last thing that is done.
#[diagnostic::do_not_recommend]
unsafe impl<T: Send> Sender for Launched<T> {
    type Value = T;
    type Error = Never;
    type Operation<R: Receiver<T, Never>> = JoinOperation<T, ReceiverOf<R>>;

    fn connect<R: Receiver<T, Never>>(self, receiver: R) -> Self::Operation<R> {
        Self::connect(self, ReceiverOf(receiver))
    }
}
