//! The state that a launched task and its waiter share. The task has a reference, and so has the `Launched`
//! or the operation that it became.

#![allow(unsafe_code)]

use core::ptr::NonNull;
use std::sync::Arc;

use convoke_core::raw::sync::{Mutex, MutexGuard, thread};
use convoke_core::raw::{AdoptedMemory, OwnerRef};
use convoke_core::{Env, Outcome, Panic, StopSource};

use super::root_parent::RootParent;
use crate::frame_arc::FrameArc;
use convoke_core::raw::report_panic;

/// The state that a launched task and its waiter share.
#[repr(C)]
pub(super) struct Root<T> {
    /// First, so that a pointer to the root parent is a pointer to this.
    pub(super) parent: RootParent,
    /// The source of the task's stop token.
    pub(super) source: StopSource,
    end: Mutex<End<T>>,
}

/// The progress of the launched task.
enum End<T> {
    /// It runs; the waiter is told when it ends.
    Running(Option<Waiter<T>>),
    /// It has ended with this outcome. True if a panic in it was reported to a handler.
    Ended(Outcome<T>, bool),
    /// The outcome was taken.
    Taken,
}

/// The waiter that is told of the end. There is one at most.
pub(super) enum Waiter<T> {
    /// A thread that checks again when it is unparked.
    Thread(thread::Thread),
    /// An operation that takes the outcome.
    Operation(Consumer<T>),
    /// A task that dropped the `Launched`: it does not end before the launched task, and discards the
    /// outcome.
    Task(AdoptedMemory),
}

/// An operation that waits for the outcome.
pub(super) struct Consumer<T> {
    pub(super) operation: NonNull<()>,
    pub(super) end: unsafe fn(NonNull<()>, Outcome<T>),
}

// SAFETY: any thread may call `end`; the outcome goes there, and is `Send`.
unsafe impl<T: Send> Send for Consumer<T> {}
// SAFETY: any thread may release adopted memory, and the rest is `Send`.
unsafe impl<T: Send> Send for Waiter<T> {}

impl<T> Root<T> {
    /// Allocates a root in memory of the environment's allocator. Returns `None` if it has none.
    pub(super) fn new(env: Env, source: StopSource, name: Option<Arc<str>>) -> Option<FrameArc<Self>> {
        let allocator = env.allocator().clone();
        FrameArc::new(&allocator, |root: NonNull<Self>| {
            // SAFETY: it becomes the first field (`repr(C)`) of the value at that address, which does not
            // move; the ending has a reference to it.
            let parent = unsafe { RootParent::new(root.cast(), env, name) };
            Self { parent, source, end: Mutex::new(End::Running(None)) }
        })
    }

    fn lock(&self) -> MutexGuard<'_, End<T>> {
        self.end.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Returns true if the launched task has ended.
    pub(super) fn has_ended(&self) -> bool {
        !matches!(*self.lock(), End::Running(_))
    }

    /// Takes the outcome, and true if a panic in it was reported; or stores the waiter.
    pub(super) fn take_or_wait(&self, waiter: Waiter<T>) -> Result<(Outcome<T>, bool), StillRunning> {
        let mut end = self.lock();
        match core::mem::replace(&mut *end, End::Taken) {
            End::Ended(outcome, reported) => {
                drop(end);
                // A task that was about to wait need not.
                waiter.not_needed();
                Ok((outcome, reported))
            }
            End::Running(_) => {
                *end = End::Running(Some(waiter));
                Err(StillRunning)
            }
            End::Taken => unreachable!("the outcome is taken by the one `Launched` there is"),
        }
    }

    /// Stores the outcome, or hands it to the waiter.
    pub(super) fn ended(&self, outcome: Outcome<T>, reported: bool) {
        let mut end = self.lock();
        let waiter = match &mut *end {
            End::Running(waiter) => waiter.take(),
            _ => None,
        };
        match waiter {
            Some(Waiter::Operation(consumer)) => {
                *end = End::Taken;
                drop(end);
                // SAFETY: the operation is alive while it waits, and is told once: the waiter was taken.
                unsafe { (consumer.end)(consumer.operation, outcome) };
            }
            Some(Waiter::Task(memory)) => {
                *end = End::Taken;
                drop(end);
                discard(outcome, reported);
                // SAFETY: the memory was adopted by its owner for this wait, and is not used.
                unsafe { OwnerRef::release(memory) };
            }
            Some(Waiter::Thread(thread)) => {
                *end = End::Ended(outcome, reported);
                drop(end);
                thread.unpark();
            }
            None => *end = End::Ended(outcome, reported),
        }
    }
}

/// The launched task still runs; the waiter will be told.
pub(super) struct StillRunning;

impl<T> Waiter<T> {
    /// Releases a task that need not wait.
    fn not_needed(self) {
        if let Self::Task(memory) = self {
            // SAFETY: the memory was adopted by its owner for this wait, and is not used.
            unsafe { OwnerRef::release(memory) };
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
