//! What the handles of a local scope share with its future: children that were started and not yet taken in.

use core::fmt;
use core::pin::Pin;
use std::sync::Arc;

use convoke_core::raw::sync::{Mutex, MutexGuard};

use super::child::Label;
use crate::together::wake_set::OwnerFlag;

/// A child that was started.
pub(super) struct Newcomer<C: ?Sized> {
    pub(super) future: Pin<Box<C>>,
    /// How to name a panic of it, unless it does so itself.
    pub(super) label: Option<Label>,
}

/// See the head of this file.
pub(super) struct Inbox<C: ?Sized> {
    state: Mutex<State<C>>,
    owner: OwnerFlag,
}

struct State<C: ?Sized> {
    newcomers: Vec<Newcomer<C>>,
    ended: bool,
}

impl<C: ?Sized> Inbox<C> {
    pub(super) fn new(owner: OwnerFlag) -> Self {
        Self { state: Mutex::new(State { newcomers: Vec::new(), ended: false }), owner }
    }

    fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Starts a child.
    ///
    /// # Panics
    /// If the scope has ended.
    #[track_caller]
    pub(super) fn push(&self, future: Pin<Box<C>>, label: Option<Label>) {
        let mut state = self.lock();
        if state.ended {
            drop(state);
            panic!("the scope has ended; a child is started while its body or another child runs");
        }
        state.newcomers.push(Newcomer { future, label });
        drop(state);
        self.owner.ring();
    }

    pub(super) fn take(&self) -> Vec<Newcomer<C>> {
        core::mem::take(&mut self.lock().newcomers)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().newcomers.is_empty()
    }

    /// Ends it, unless there is somebody in it.
    pub(super) fn end(&self) -> bool {
        let mut state = self.lock();
        state.ended = state.newcomers.is_empty();
        state.ended
    }
}

/// The future's side: when it goes, nobody comes in any more, and those that are in go with it.
pub(super) struct Door<C: ?Sized>(pub(super) Arc<Inbox<C>>);

impl<C: ?Sized> Drop for Door<C> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.ended = true;
        let newcomers = core::mem::take(&mut state.newcomers);
        drop(state);
        // Outside the lock: they may have handles of their own.
        drop(newcomers);
    }
}

impl<C: ?Sized> fmt::Debug for Inbox<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").finish_non_exhaustive()
    }
}
