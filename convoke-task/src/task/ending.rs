//! The ending of a task: where its outcome goes, and the last step when its memory is released.

#![allow(unsafe_code)]

use std::sync::Arc;

use convoke_core::Outcome;

use super::cell::OutcomeSlot;
use super::inside::Inside;
use super::parent_link::ParentLink;
use super::reference::{Leaving, Left};

/// Where the outcome of a task goes.
///
/// # Safety
/// 1. [`own_link`](Ending::own_link) returns a part of `self`, the same each time, which does not change.
/// 2. If [`ASKED_FOR`](Ending::ASKED_FOR) is true, it begins with that word at the offset of `AskedFor`.
pub(crate) unsafe trait Ending<T>: Sized {
    /// The number of references to the task, besides its own, when it is created.
    const REFERENCES: u32 = 0;
    /// True if there is a handle that stays on the task's owner thread.
    const HANDLE: bool = false;
    /// True if it begins with a word for the reason of a stop: [`AskedFor`](super::asked_for::AskedFor).
    const ASKED_FOR: bool = false;
    /// The last step, when the task has left and its memory is released.
    type After: After;

    /// Returns the parent link of the task, if it lies in the ending and not in its parent.
    #[inline]
    fn own_link(&self) -> Option<&ParentLink> {
        None
    }

    /// Returns the name of the task, if it has one. Called before the task is posted.
    #[inline]
    fn name(&self) -> Option<Arc<str>> {
        None
    }

    /// Called once, from inside, when the future is gone and no operation is in flight, before the parent is
    /// told.
    #[inline]
    fn ended(&self, task: &Inside, outcome: &mut Outcome<T>) {
        let _ = (task, outcome);
    }

    /// Tells the parent, which no longer knows the task afterwards. Takes the outcome, or leaves it for a
    /// handle. Called once, after `ended`, on the thread that ended the task or received its remote wake.
    fn deliver(&self, task: Leaving<'_>, outcome: OutcomeSlot<'_, T>) -> (Left, Self::After);
}

/// The last step of a task that has left: it tells a waiter, which may then count on the task's memory being
/// released.
pub(crate) trait After {
    /// Does it.
    fn tell(self);
}

/// Nothing is left to do: the parent was told.
impl After for () {
    #[inline]
    fn tell(self) {}
}
