//! The observer of a task: called around its polls, and when it has ended. It is in the cold state, so that a task without
//! one has no room for it.

use core::cell::Cell;

use convoke_core::StopReason;
use convoke_core::raw::{contain, report_panic, watching};

use super::inside::Inside;
use crate::hooks::{HOOKS, Spawned, TaskEnd, TaskObserver};

/// The place of an observer in the cold state.
#[derive(Default)]
pub(super) struct ObserverSlot {
    observer: Cell<Option<Box<dyn TaskObserver>>>,
    /// True once it was told of a stop.
    told: Cell<bool>,
}

impl ObserverSlot {
    /// Calls `f` with the observer, if there is one. It is out of its place meanwhile. A panic is reported.
    fn with(&self, f: impl FnOnce(&mut dyn TaskObserver)) {
        if let Some(mut observer) = self.observer.take() {
            contain(report_panic, || f(&mut *observer));
            self.observer.set(Some(observer));
        }
    }
}

impl Inside {
    /// Shows a task that is not posted yet to the hooks in its environment, and stores the observer that they return.
    #[cold]
    #[inline(never)]
    pub(super) fn show_to_hooks(&self, name: Option<&str>) {
        let Some(hooks) = self.parent_link().env().local(&HOOKS) else { return };
        let Some(observer) = hooks.spawned(&Spawned { name, location: self.location() }) else { return };
        match self.try_make_cold() {
            Some(cold) => cold.observer.observer.set(Some(observer)),
            // Without memory for a cold state the task is not observed. Contained: the task may be in a list.
            None => _ = contain(report_panic, || drop(observer)),
        }
    }

    /// Tells the observer, if there is one, that a poll begins. `asked` says whether a stop was requested.
    #[cold]
    pub(super) fn observe_begin(&self, asked: bool) {
        let Some(slot) = self.cold().map(|cold| &cold.observer) else {
            if asked {
                self.record_if_abandoned();
            }
            return;
        };
        slot.with(|observer| {
            if asked
                && !slot.told.replace(true)
                && let Some(reason) = self.requested_stop()
            {
                observer.asked_to_stop(reason);
            }
            observer.poll_begins();
        });
    }

    /// Records a task whose handle was dropped before its first poll, which begins now. A task that was polled while it was
    /// watched has a cold state; one that was polled before has recorded where it waits, unless it waits for a foreign
    /// future.
    fn record_if_abandoned(&self) {
        let began = self.waits().get().is_some();
        if watching::is_on() && !began && self.requested_stop() == Some(StopReason::Abandoned) {
            // A model has no `static`, and its tasks are not watched.
            #[cfg(not(feature = "loom"))]
            super::abandoned::record_abandoned(self.location());
        }
    }

    /// Tells the observer, if there is one, that the poll is over.
    #[cold]
    pub(super) fn observe_end(&self) {
        if let Some(cold) = self.cold() {
            cold.observer.with(|observer| observer.poll_ends());
        }
    }

    /// Tells the observer, if there is one, that the task has ended, and drops it.
    #[inline]
    pub(super) fn observe_ended(&self, end: TaskEnd) {
        if let Some(observer) = self.cold().and_then(|cold| cold.observer.observer.take()) {
            tell_ended(observer, end);
        }
    }
}

#[cold]
#[inline(never)]
fn tell_ended(mut observer: Box<dyn TaskObserver>, end: TaskEnd) {
    contain(report_panic, move || {
        observer.ended(end);
        drop(observer);
    });
}
