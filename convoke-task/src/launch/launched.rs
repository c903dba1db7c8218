//! The side of a launched chain that waits for it.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::fmt;
use core::mem::ManuallyDrop;
use core::panic::Location;

use convoke_core::raw::sync::thread;
use convoke_core::raw::{Frame, Runnable};
use convoke_core::{Outcome, Panic, StopReason};

use super::root::{Root, Waiter, discard};
use crate::frame_arc::FrameArc;
use crate::own_thread::runs_only_here;

/// A chain that was [launched](crate::launch()): the one way to wait for it. In a task, `launched.await` waits, and asks the chain to
/// stop if the task is; it is a sender, too.
///
/// - *Completes with* what the chain, or its value handler, returned. Stopped, if the chain was; if it panicked, so does who
///   waits, with the chain's name.
/// - *If dropped*, the chain is asked to stop ([`StopReason::Abandoned`]), and waited for: nothing is detached. In a task,
///   that is the task, before it ends; elsewhere it is the thread, which blocks. A panic that nobody was told of is then
///   written to the error stream.
/// - *Panics* if it is dropped outside a task on the one thread that could run the chain, which then cannot end.
#[must_use = "dropping it asks the chain to stop, and blocks until it has; use `wait` to wait for it"]
pub struct Launched<T> {
    root: FrameArc<Root<T>>,
    location: &'static Location<'static>,
}

// SAFETY: what the chain shares with us is guarded by a lock, and `T` may go from its thread to ours if it is `Send`, which
// `start` asks for.
unsafe impl<T: Send> Send for Launched<T> {}
// SAFETY: shared, it asks for a stop, and says whether the chain has ended.
unsafe impl<T: Send> Sync for Launched<T> {}

impl<T> Launched<T> {
    pub(super) fn new(root: FrameArc<Root<T>>, location: &'static Location<'static>) -> Self {
        Self { root, location }
    }

    /// The root, without asking the chain to stop.
    pub(super) fn into_root(self) -> FrameArc<Root<T>> {
        let this = ManuallyDrop::new(self);
        // SAFETY: `self` is given up, and the field is not used again; the other has nothing to drop.
        unsafe { (&raw const this.root).read() }
    }

    /// Asks the chain to stop. It is waited for as before.
    ///
    /// # Panics
    /// If a callback that is registered with the chain's stop token does.
    pub fn request_stop(&self, reason: StopReason) {
        self.root.source.request_stop(reason);
    }

    /// Whether the chain has ended, and its handlers have been called. Then [`wait`](Launched::wait) does not block.
    pub fn has_ended(&self) -> bool {
        self.root.has_ended()
    }

    /// Blocks this thread until the chain has ended.
    ///
    /// # Panics
    /// If the chain has: the panic goes on here. And if this is the one thread that could run the chain.
    #[track_caller]
    pub fn wait(self) -> Outcome<T> {
        assert!(
            self.has_ended() || !self.would_wait_for_itself(),
            "the chain launched at {} runs on this thread alone, which cannot wait for it; await it in a task, or run its \
             loop until it has ended",
            self.location
        );
        wait(&self.into_root()).0.resume_panic()
    }

    fn would_wait_for_itself(&self) -> bool {
        runs_only_here(self.root.ground.env().executor())
    }
}

/// Blocks until the chain has ended. Does not panic.
fn wait<T>(root: &Root<T>) -> (Outcome<T>, bool) {
    loop {
        match root.take_or_wait(Waiter::Thread(thread::current())) {
            Ok(outcome) => return outcome,
            // It may be refused just now, further up on our stack.
            Err(_) if Runnable::stop_deferred() => {}
            Err(_) => thread::park(),
        }
    }
}

impl<T> Drop for Launched<T> {
    fn drop(&mut self) {
        if self.has_ended() {
            let (outcome, told) = wait(&self.root);
            return discard(outcome, told);
        }
        // What a callback throws has been reported by the panic hook.
        let _ = Panic::catch(|| self.root.source.request_stop(StopReason::Abandoned));
        let in_task = Frame::current(|frame| {
            let memory = frame?.operation_owner().adopt(Layout::new::<u8>());
            Some(self.root.take_or_wait(Waiter::Task(memory)))
        });
        match in_task {
            Some(Ok((outcome, told))) => discard(outcome, told),
            Some(Err(_)) => {}
            None if self.has_ended() || !self.would_wait_for_itself() => {
                let (outcome, told) = wait(&self.root);
                discard(outcome, told);
            }
            // It was asked to stop, and so is queued: the executor runs it, or ends it with itself. A second panic would end the process.
            None if std::thread::panicking() => {}
            None => panic!(
                "the chain launched at {} runs on this thread alone, and was dropped here before it has ended; wait for it in \
                 a task, or run its loop until it has ended",
                self.location
            ),
        }
    }
}

impl<T> fmt::Debug for Launched<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launched")
            .field("launched at", &self.location)
            .field("has ended", &self.has_ended())
            .finish_non_exhaustive()
    }
}
