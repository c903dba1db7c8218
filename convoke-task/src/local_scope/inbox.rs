//! The inbox of a local scope: children that were started, and not yet moved to the scope's future.

use core::fmt;
use core::pin::Pin;

use convoke_core::raw::sync::{Mutex, MutexGuard};

use super::child::Label;
use crate::reserve::reserve_one;
use crate::together::wake_set::OwnerFlag;
use convoke_core::raw::{FrameArc, FrameBox, FrameMemory, FrameVec};

/// A child in the inbox.
pub(super) struct Started<C: ?Sized> {
    pub(super) future: Pin<FrameBox<C>>,
    /// The label for its panics. `None` if the child adds it itself.
    pub(super) label: Option<Label>,
}

/// The inbox of a local scope, shared by its future and the clones of its `LocalScope`.
pub(super) struct Inbox<C: ?Sized> {
    state: Mutex<InboxState<C>>,
    owner: OwnerFlag,
}

struct InboxState<C: ?Sized> {
    started: FrameVec<Started<C>>,
    ended: bool,
}

impl<C: ?Sized> Inbox<C> {
    pub(super) fn new(owner: OwnerFlag) -> Self {
        Self { state: Mutex::new(InboxState { started: FrameMemory::vec_in_task(), ended: false }), owner }
    }

    fn lock(&self) -> MutexGuard<'_, InboxState<C>> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Adds a child, and wakes the scope's future.
    ///
    /// # Panics
    /// If the scope has ended.
    #[track_caller]
    pub(super) fn push(&self, future: Pin<FrameBox<C>>, label: Option<Label>) {
        let lock = || self.lock();
        let mut state = reserve_one(lock(), lock, |state| &mut state.started);
        if state.ended {
            drop(state);
            panic!(
                "the scope has ended, and starts no more children; spawn while its body or another child runs"
            );
        }
        state.started.push(Started { future, label });
        drop(state);
        self.owner.set();
    }

    /// Takes all children out.
    pub(super) fn take(&self) -> FrameVec<Started<C>> {
        core::mem::replace(&mut self.lock().started, FrameMemory::vec_in_task())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().started.is_empty()
    }

    /// Closes the inbox, unless there is a child in it. Returns true if it is closed now.
    pub(super) fn end(&self) -> bool {
        let mut state = self.lock();
        state.ended = state.started.is_empty();
        state.ended
    }
}

/// The inbox as the scope's future has it. When the future is dropped, the inbox is closed and its children
/// are dropped.
pub(super) struct InboxOwner<C: ?Sized>(pub(super) FrameArc<Inbox<C>>);

impl<C: ?Sized> Drop for InboxOwner<C> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.ended = true;
        let started = core::mem::replace(&mut state.started, FrameMemory::vec_in_task());
        drop(state);
        // Outside the lock: a child may hold a clone of the `LocalScope`, and lock the inbox when it is
        // dropped.
        drop(started);
    }
}

impl<C: ?Sized> fmt::Debug for Inbox<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").finish_non_exhaustive()
    }
}
