//! The shared state of a scope, its handles and its work: the state under its lock, and the stop source. The
//! functions here do what the transitions return, after the lock is released: no code of the program runs
//! under it.

use convoke_core::raw::FrameArc;
use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::{Executor, Panic, StopSource};

use super::slab::Key;
use super::state::{AfterWait, ScopeState, Waiter};
use crate::async_scope::{Association, WorkName};
use convoke_core::raw::report_panic;

/// The state that the scope, each handle and all work hold a count of: the last work may leave after the
/// scope was dropped.
#[derive(Debug)]
pub(super) struct SharedScope {
    state: Mutex<ScopeState>,
    pub(super) stop: StopSource,
}

impl SharedScope {
    /// Creates an open, empty scope.
    pub(super) fn new() -> FrameArc<Self> {
        FrameArc::in_task(Self { state: Mutex::new(ScopeState::default()), stop: StopSource::new() })
    }

    /// Associates work with the scope, if it is open.
    pub(super) fn enter(this: &FrameArc<Self>, name: WorkName) -> Option<Membership> {
        let key = this.state().enter(name)?;
        Some(Membership { shared: this.clone(), state: Counted::Yes(key) })
    }

    /// Locks the state.
    pub(super) fn state(&self) -> MutexGuard<'_, ScopeState> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Waiter {
    /// Resumes the waiter, on its executor.
    pub(super) fn wake(self) {
        // Caught, because the program may implement the executor. If it panics, the runnable was dropped, so
        // the wait ends anyhow.
        if let Err(panic) = Panic::catch(|| self.executor.post_last(self.runnable)) {
            report_panic(panic);
        }
    }
}

impl AfterWait {
    /// Resumes the waiter at once if there is nothing to wait for.
    pub(super) fn resume_if_over(self) {
        if let Self::Over(waiter) = self {
            waiter.runnable.run();
        }
    }
}

/// The membership of a piece of work in a [`CountingScope`](super::CountingScope): the [`Association`] of that scope.
#[derive(Debug)]
pub struct Membership {
    shared: FrameArc<SharedScope>,
    state: Counted,
}

#[derive(Debug)]
enum Counted {
    /// The scope counts it, under this key.
    Yes(Key),
    /// It only reports to the scope, under this name.
    No(Option<WorkName>),
}

impl Membership {
    fn name(&self) -> Option<WorkName> {
        match &self.state {
            Counted::Yes(key) => self.shared.state().name(key),
            Counted::No(name) => *name,
        }
    }
}

impl Association for Membership {
    fn again(&self) -> Option<Self> {
        let name = self.name()?;
        SharedScope::enter(&self.shared, name)
    }

    fn uncounted(&self) -> Option<Self> {
        Some(Self { shared: self.shared.clone(), state: Counted::No(self.name()) })
    }

    fn panicked(&self, panic: Panic) {
        let name = self.name();
        let result = self.shared.state().panicked(name, panic);
        if let Err(panic) = result {
            report_panic(panic);
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let Counted::Yes(key) = core::mem::replace(&mut self.state, Counted::No(None)) else { return };
        let waiting = self.shared.state().leave(key);
        // A waiter may drop the scope: `self.shared` keeps the state alive.
        for waiter in waiting.into_values() {
            waiter.wake();
        }
    }
}
