//! The shared state of a scope, its handles and its work: the state under its lock, and the stop source. The
//! functions here do what the transitions return, after the lock is released: no code of the program runs
//! under it.

use convoke_core::raw::sync::{Arc, Mutex, MutexGuard};
use convoke_core::{Executor, Panic, StopSource};

use super::name::Name;
use super::slab::Key;
use super::state::{AfterWait, State, Waiter};
use convoke_core::raw::report_panic;

/// The state that the scope, each handle and all work hold a count of: the last work may leave after the
/// scope was dropped.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    pub(super) stop: StopSource,
}

impl Shared {
    /// Creates an open, empty scope.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State::default()), stop: StopSource::new() })
    }

    /// Associates work with the scope, if it is open.
    pub(super) fn enter(this: &Arc<Self>, name: Name) -> Option<Association> {
        let key = this.state().enter(name)?;
        Some(Association { shared: this.clone(), key: Some(key) })
    }

    /// Stores a panic for the next join or drain. If it is too late for that, the panic is printed.
    pub(super) fn panicked(&self, name: Name, panic: Panic) {
        let result = self.state().panicked(Some(name), panic);
        if let Err(panic) = result {
            report_panic(panic);
        }
    }

    /// Locks the state.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
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

/// The membership of a piece of work in a scope. It moves with the work and ends when it is dropped.
#[derive(Debug)]
pub(super) struct Association {
    shared: Arc<Shared>,
    /// Taken when the membership ends.
    key: Option<Key>,
}

impl Association {
    /// Creates one more for the same scope under the same name, if the scope is still open.
    pub(super) fn again(&self) -> Option<Self> {
        let name = self.name()?;
        Shared::enter(&self.shared, name)
    }

    /// Reports a panic of the work to the scope.
    pub(super) fn panicked(&self, panic: Panic) {
        let result = {
            let mut state = self.shared.state();
            let name = self.key.as_ref().and_then(|key| state.name(key));
            state.panicked(name, panic)
        };
        if let Err(panic) = result {
            report_panic(panic);
        }
    }

    fn name(&self) -> Option<Name> {
        self.key.as_ref().and_then(|key| self.shared.state().name(key))
    }
}

impl Drop for Association {
    fn drop(&mut self) {
        let Some(key) = self.key.take() else { return };
        let waiting = self.shared.state().leave(key);
        // A waiter may drop the scope: `self.shared` keeps the state alive.
        for waiter in waiting.into_values() {
            waiter.wake();
        }
    }
}
