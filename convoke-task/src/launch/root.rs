//! The state that a launched task and its waiter share. The task has a reference until it has left, and the
//! `Launched`, or the operation that it became, has one.
//!
//! This is no `Rendezvous`, by which a handle meets its child and a future its operation: the waiter need not
//! be a future with a waker. It may be a thread, which is unparked, or a task, which is held; and each of them
//! may begin to wait, and a `Launched` be asked if the task has ended, at any time. So a lock guards an `End`.

use core::task::{Poll, Waker};
use std::sync::Arc;

use convoke_core::raw::sync::{Mutex, MutexGuard, thread};
use convoke_core::{Env, Outcome, Panic, StopSource};

use super::join::JoinWaits;
use super::root_parent::RootParent;
use crate::task_waits::TaskWaits;
use convoke_core::raw::{FrameArc, report_panic, wake};

/// The parent of a launched task.
pub(super) type Root<T> = RootParent<RootState<T>>;

/// The state that a launched task and its waiter share.
pub(super) struct RootState<T> {
    /// The source of the task's stop token.
    pub(super) source: StopSource,
    end: Mutex<End<T>>,
}

/// The progress of the launched task.
enum End<T> {
    /// It runs; the waiter is told when it ends.
    Running(Option<Waiter>),
    /// It has ended with this outcome. True if a panic in it was reported to a handler.
    Ended(Outcome<T>, bool),
    /// The outcome was taken, or is not wanted.
    Taken,
}

/// The waiter that is told of the end. There is one at most.
pub(super) enum Waiter {
    /// A thread that checks again when it is unparked.
    Thread(thread::Thread),
    /// A future outside a task, which is polled again.
    Future(Waker),
    /// An operation that takes the outcome.
    Operation(JoinWaits),
    /// A task that dropped the `Launched`: it does not end before the launched task, and discards the
    /// outcome.
    Task(TaskWaits),
}

/// Allocates a root in memory of the environment's allocator. Returns `None` if it has none.
pub(super) fn new_root<T>(env: Env, source: StopSource, name: Option<Arc<str>>) -> Option<FrameArc<Root<T>>> {
    let allocator = env.allocator().clone();
    RootParent::new(&allocator, env, name, RootState { source, end: Mutex::new(End::Running(None)) })
}

impl<T> RootState<T> {
    fn lock(&self) -> MutexGuard<'_, End<T>> {
        self.end.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Returns true if the launched task has ended.
    pub(super) fn has_ended(&self) -> bool {
        !matches!(*self.lock(), End::Running(_))
    }

    /// Takes the outcome, and true if a panic in it was reported; or stores the waiter.
    pub(super) fn take_or_wait(&self, waiter: Waiter) -> Result<(Outcome<T>, bool), StillRunning> {
        let mut end = self.lock();
        match core::mem::replace(&mut *end, End::Taken) {
            End::Ended(outcome, reported) => {
                drop(end);
                // A task that was about to wait need not: the waiter is dropped.
                Ok((outcome, reported))
            }
            End::Running(before) => {
                *end = End::Running(Some(waiter));
                drop(end);
                let _ = Panic::catch(|| drop(before));
                Err(StillRunning)
            }
            End::Taken => unreachable!("the outcome is taken by the one `Launched` there is"),
        }
    }

    /// Takes the outcome, or stores the waker.
    pub(super) fn poll_take(&self, waker: &Waker) -> Poll<Outcome<T>> {
        let mut clone = None;
        loop {
            let mut end = self.lock();
            match &mut *end {
                End::Running(Some(Waiter::Future(stored))) if stored.will_wake(waker) => {
                    return Poll::Pending;
                }
                End::Running(waiter) => {
                    if let Some(waker) = clone.take() {
                        let before = waiter.replace(Waiter::Future(waker));
                        drop(end);
                        drop(before);
                        return Poll::Pending;
                    }
                }
                End::Ended(..) | End::Taken => {
                    drop(end);
                    return self.take().map_or(Poll::Pending, Poll::Ready);
                }
            }
            // Cloned without the lock: a clone may run foreign code.
            drop(end);
            clone = Some(waker.clone());
        }
    }

    /// Stores the waiter. Drops it and returns `None` if the task has ended.
    pub(super) fn wait(&self, waiter: Waiter) -> Option<StillRunning> {
        let mut end = self.lock();
        let End::Running(now) = &mut *end else { return None };
        let before = now.replace(waiter);
        drop(end);
        // The waker of a `poll_join` is foreign code.
        let _ = Panic::catch(|| drop(before));
        Some(StillRunning)
    }

    /// Takes the outcome, if the task has ended and it was not taken before.
    pub(super) fn take(&self) -> Option<Outcome<T>> {
        let mut end = self.lock();
        match core::mem::replace(&mut *end, End::Taken) {
            End::Ended(outcome, _) => Some(outcome),
            before => {
                *end = before;
                None
            }
        }
    }

    /// Stores the outcome. Returns the waiter, which the caller tells.
    pub(super) fn end(&self, outcome: Outcome<T>, reported: bool) -> Option<Waiter> {
        let mut end = self.lock();
        let waiter = match &mut *end {
            End::Running(waiter) => waiter.take(),
            _ => None,
        };
        if matches!(waiter, Some(Waiter::Task(_))) {
            *end = End::Taken;
            drop(end);
            discard(outcome, reported);
        } else {
            *end = End::Ended(outcome, reported);
        }
        waiter
    }
}

/// The launched task still runs; the waiter will be told.
pub(super) struct StillRunning;

impl Waiter {
    /// Tells that the launched task has ended.
    pub(super) fn tell(self) {
        match self {
            Self::Thread(thread) => thread.unpark(),
            Self::Future(waker) => wake(waker),
            Self::Operation(operation) => operation.tell(),
            Self::Task(task) => drop(task),
        }
    }
}

/// Drops an outcome that nothing waits for. Reports a panic that was not reported before.
pub(super) fn discard<T>(outcome: Outcome<T>, reported: bool) {
    match outcome {
        Outcome::Panicked(panic) if !reported => report_panic(panic),
        outcome => {
            if let Err(panic) = Panic::catch(|| drop(outcome)) {
                report_panic(panic);
            }
        }
    }
}
