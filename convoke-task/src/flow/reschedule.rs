//! `reschedule(&executor)`: moves the task to another executor.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::raw::{Frame, budget, outside_a_task};
use convoke_core::{Executor, ExecutorRef};

use crate::task::Inside;

/// Moves the running task to another executor. From here on it resumes there after every `await`.
///
/// Use this if the rest of the task runs on another executor. Use [`run_on`](crate::run_on()) if a part of it
/// does, and comes back.
///
/// - *Completes with* the executor that the task ran on before; or with [`NotSend`], without having moved.
///   Stopped, if a stop was requested.
/// - *If dropped* before it has completed, the task may have moved or not.
/// - *Runs on* the new executor. If that has ended, the task ends as stopped.
/// - *Panics* outside a task.
///
/// ```
/// use convoke::executor::reschedule;
/// use convoke::prelude::*;
///
/// let pool = ThreadPool::new(1).unwrap();
/// let executor = pool.executor();
/// let moved = launch(&pool.executor()).start(async move {
///     let before = reschedule(&executor).await?;
///     let there = std::thread::current().id();
///     reschedule(&before).await?;
///     Ok::<_, convoke::task::NotSend>(there)
/// });
/// assert_ne!(moved.wait().unwrap().unwrap(), std::thread::current().id());
/// ```
pub fn reschedule<X: Executor>(executor: &X) -> Reschedule {
    Reschedule { stage: Stage::New(ExecutorRef::new(executor.clone())) }
}

/// The error of a task that cannot move: its future is not `Send`, and was started as `local`, or in a like way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotSend;

impl fmt::Display for NotSend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a task that is not `Send` cannot move to another executor; start it without `local`, or \
             run a part of it there with `run_on`",
        )
    }
}

impl core::error::Error for NotSend {}

/// The future of [`reschedule()`].
#[derive(Debug)]
#[must_use = "futures do nothing until they are awaited"]
pub struct Reschedule {
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    New(ExecutorRef),
    Moved { before: ExecutorRef },
    Done,
}

impl Future for Reschedule {
    type Output = Result<ExecutorRef, NotSend>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Frame::current(|frame| {
            let Some(frame) = frame else { outside_a_task("`reschedule`") };
            let Some(task) = Inside::of(frame.operation_owner()) else { outside_a_task("`reschedule`") };
            if frame.honour_stop() || !budget::may_proceed(cx) {
                return Poll::Pending;
            }
            budget::spend();
            match core::mem::replace(&mut self.stage, Stage::Done) {
                Stage::New(executor) if executor == *task.executor() => Poll::Ready(Ok(executor)),
                Stage::New(_) if task.is_local() => Poll::Ready(Err(NotSend)),
                Stage::New(executor) => {
                    let before = task.executor().clone();
                    task.move_to(executor);
                    cx.waker().wake_by_ref();
                    self.stage = Stage::Moved { before };
                    Poll::Pending
                }
                Stage::Moved { before } => Poll::Ready(Ok(before)),
                Stage::Done => panic!("polled after it has ended"),
            }
        })
    }
}
