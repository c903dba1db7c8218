//! The parent of a root task, in memory of its own that the task and its waiter share.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::future::Future;
use core::ops::Deref;
use core::panic::Location;
use std::sync::Arc;

use convoke_core::raw::{FrameArc, OutOfLine};
use convoke_core::{Env, FrameAllocator, Outcome};

use crate::scope::name_panic;
use crate::solo_parent::SoloParent;
use crate::task::{After, Ending, Inside, Leaving, Left, OutcomeSlot, ParentLink, Spawnable};

/// The parent of a root task. `D` is what the task and its waiter share.
pub(super) struct RootParent<D> {
    parent: OutOfLine<SoloParent>,
    shared: D,
}

/// The last step of a root task: passes its outcome on, when the task has left and its memory is released.
pub(super) trait RootEnd<D, T> {
    /// True if a panic of the task is to have the task's name or spawn site in it.
    const NAMES_PANICS: bool = false;

    /// Passes the outcome to the waiter.
    fn tell(self, root: FrameArc<RootParent<D>>, outcome: Outcome<T>);
}

impl<D> RootParent<D> {
    /// Creates the parent of a task in this environment, in memory of `allocator`. Returns `None` if that has
    /// none.
    pub(super) fn new(
        allocator: &FrameAllocator,
        env: Env,
        name: Option<Arc<str>>,
        shared: D,
    ) -> Option<FrameArc<Self>> {
        let deadline = env.stop().deadline();
        FrameArc::new(allocator, |_| {
            let parent = SoloParent::new(ParentLink::new(env, deadline, None, None), name);
            Self { parent: OutOfLine::new(parent), shared }
        })
    }

    /// Returns the environment of the task.
    pub(super) fn env(&self) -> &Env {
        self.parent.env()
    }

    /// Creates the task and posts it. Called once. Returns the future if there is no memory.
    pub(super) fn start<F: Future, E: RootEnd<D, F::Output>>(
        root: &FrameArc<Self>,
        future: Spawnable<F>,
        end: E,
        location: &'static Location<'static>,
    ) -> Result<(), F> {
        let ending = ToRoot { end: Cell::new(Some((root.clone(), end))) };
        // SAFETY: rules 1 and 3 of `SoloParent`: the parent lies in memory that the ending has a reference to,
        // until the task has left (`RootAfter`). `ToRoot` calls `ended`, and owns what it has.
        unsafe { root.parent.create(future, ending, location) }?.post();
        Ok(())
    }
}

impl<D> Deref for RootParent<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.shared
    }
}

/// The ending of a root task.
struct ToRoot<D, E> {
    /// The parent, until the task leaves.
    end: Cell<Option<(FrameArc<RootParent<D>>, E)>>,
}

// SAFETY: contract 1: `own_link` is the provided one, which returns none. Contract 2: `ASKED_FOR` is false, as provided.
unsafe impl<D, T, E: RootEnd<D, T>> Ending<T> for ToRoot<D, E> {
    type After = RootAfter<D, T, E>;

    fn name(&self) -> Option<Arc<str>> {
        let end = self.end.take();
        let name = end.as_ref().and_then(|(root, _)| root.parent.name().cloned());
        self.end.set(end);
        name
    }

    fn ended(&self, task: &Inside, outcome: &mut Outcome<T>) {
        let Some((root, end)) = self.end.take() else { return };
        // SAFETY: rule 3 of `SoloParent`: a task calls this once, from inside.
        unsafe { root.parent.ended() };
        if E::NAMES_PANICS {
            name_panic(task, root.parent.name(), outcome);
        }
        self.end.set(Some((root, end)));
    }

    fn deliver(&self, task: Leaving<'_>, outcome: OutcomeSlot<'_, T>) -> (Left, RootAfter<D, T, E>) {
        let (root, end) = self.end.take().expect("a task is delivered once");
        let outcome = if task.must_stay_on_its_thread() { Outcome::Stopped } else { outcome.take() };
        (task.leave_no_list(), RootAfter { root, end, outcome })
    }
}

/// The outcome of a root task, for its waiter. It keeps the parent until the task has left.
struct RootAfter<D, T, E> {
    root: FrameArc<RootParent<D>>,
    end: E,
    outcome: Outcome<T>,
}

impl<D, T, E: RootEnd<D, T>> After for RootAfter<D, T, E> {
    fn tell(self) {
        self.end.tell(self.root, self.outcome);
    }
}
