//! What a launched chain shares with whoever waits for it. The chain keeps it, and the `Launched` or the operation that it
//! became.

#![allow(unsafe_code)]

use core::ptr::NonNull;
use std::sync::Arc;

use convoke_core::raw::sync::{Mutex, MutexGuard, thread};
use convoke_core::raw::{AdoptedMemory, OwnerRef};
use convoke_core::{Env, Outcome, Panic, StopSource};

use super::root_parent::RootParent;
use crate::frame_arc::FrameArc;
use convoke_core::raw::report_panic;

#[repr(C)]
pub(super) struct Root<T> {
    /// First, so that its address is ours.
    pub(super) ground: RootParent,
    /// That of the chain's token.
    pub(super) source: StopSource,
    end: Mutex<End<T>>,
}

/// What has become of the chain.
enum End<T> {
    /// It runs, and perhaps somebody waits.
    Running(Option<Waiter<T>>),
    /// It has ended with this, and whether somebody was told if that is a panic.
    Ended(Outcome<T>, bool),
    Taken,
}

/// Who is told of the end. There is one at a time.
pub(super) enum Waiter<T> {
    /// Looks again when it is unparked.
    Thread(thread::Thread),
    /// An operation: it takes the outcome.
    Operation(Consumer<T>),
    /// Nobody wants the outcome; a task waits with its end until the chain has ended.
    Task(AdoptedMemory),
}

/// An operation that waits.
pub(super) struct Consumer<T> {
    pub(super) operation: NonNull<()>,
    pub(super) end: unsafe fn(NonNull<()>, Outcome<T>),
}

// SAFETY: `end` may be called from any thread; the outcome goes there, and so must be `Send`.
unsafe impl<T: Send> Send for Consumer<T> {}
// SAFETY: an operation may be released from any thread, and the rest is `Send`.
unsafe impl<T: Send> Send for Waiter<T> {}

impl<T> Root<T> {
    pub(super) fn new(env: Env, source: StopSource, name: Option<Arc<str>>) -> Option<FrameArc<Self>> {
        let allocator = env.allocator().clone();
        FrameArc::new(&allocator, |root: NonNull<Self>| {
            // SAFETY: it is the first field (`repr(C)`) of what is made here, and does not move; the ending keeps it.
            let ground = unsafe { RootParent::new(root.cast(), env, name) };
            Self { ground, source, end: Mutex::new(End::Running(None)) }
        })
    }

    fn lock(&self) -> MutexGuard<'_, End<T>> {
        self.end.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn has_ended(&self) -> bool {
        !matches!(*self.lock(), End::Running(_))
    }

    /// The outcome, and whether somebody was told; or the waiter is put in place.
    pub(super) fn take_or_wait(&self, waiter: Waiter<T>) -> Result<(Outcome<T>, bool), StillRunning> {
        let mut end = self.lock();
        match core::mem::replace(&mut *end, End::Taken) {
            End::Ended(outcome, told) => {
                drop(end);
                // A task that wanted to wait need not.
                waiter.not_needed();
                Ok((outcome, told))
            }
            End::Running(_) => {
                *end = End::Running(Some(waiter));
                Err(StillRunning)
            }
            End::Taken => unreachable!("the outcome is taken by the one `Launched` there is"),
        }
    }

    /// The chain has ended.
    pub(super) fn ended(&self, outcome: Outcome<T>, told: bool) {
        let mut end = self.lock();
        let waiter = match &mut *end {
            End::Running(waiter) => waiter.take(),
            _ => None,
        };
        match waiter {
            Some(Waiter::Operation(consumer)) => {
                *end = End::Taken;
                drop(end);
                // SAFETY: it waits, and is told this once.
                unsafe { (consumer.end)(consumer.operation, outcome) };
            }
            Some(Waiter::Task(memory)) => {
                *end = End::Taken;
                drop(end);
                discard(outcome, told);
                // SAFETY: it was received by the host, and its memory is not used.
                unsafe { OwnerRef::release(memory) };
            }
            Some(Waiter::Thread(thread)) => {
                *end = End::Ended(outcome, told);
                drop(end);
                thread.unpark();
            }
            None => *end = End::Ended(outcome, told),
        }
    }
}

/// The chain runs, and who waits will be told.
pub(super) struct StillRunning;

impl<T> Waiter<T> {
    fn not_needed(self) {
        if let Self::Task(memory) = self {
            // SAFETY: it was received by the host, and its memory is not used.
            unsafe { OwnerRef::release(memory) };
        }
    }
}

/// Nobody wants the outcome; a panic that nobody was told of is reported.
pub(super) fn discard<T>(outcome: Outcome<T>, told: bool) {
    match outcome {
        Outcome::Panicked(panic) if !told => report_panic(panic),
        outcome => {
            if let Err(panic) = Panic::catch(|| drop(outcome)) {
                report_panic(panic);
            }
        }
    }
}
