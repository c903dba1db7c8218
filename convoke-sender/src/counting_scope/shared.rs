//! What a scope, its handles and its work share: the state under its lock, and the stop source. Here the transitions'
//! answers are carried out, after the lock is free: no code of the program runs under it.

use convoke_core::raw::sync::{Arc, Mutex, MutexGuard};
use convoke_core::{Executor, Panic, StopSource};

use super::name::Name;
use super::roll::Key;
use super::state::{AfterWait, State, Waiter};
use convoke_core::raw::report_panic;

/// Counted by the scope, by each handle and by all work: whoever leaves last may do so after the scope was dropped.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    pub(super) stop: StopSource,
}

impl Shared {
    /// An open scope in which nobody is.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State::default()), stop: StopSource::new() })
    }

    /// Associates work with the scope, if it is open.
    pub(super) fn enter(this: &Arc<Self>, name: Name) -> Option<Association> {
        let key = this.state().enter(name)?;
        Some(Association { shared: this.clone(), key: Some(key) })
    }

    /// Gives a panic to whoever joins. If it is too late for that it is reported: nothing is silent.
    pub(super) fn panicked(&self, name: Name, panic: Panic) {
        let result = self.state().panicked(Some(name), panic);
        if let Err(panic) = result {
            report_panic(panic);
        }
    }

    /// The state, locked.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Waiter {
    /// Goes on, on the executor of who waits.
    pub(super) fn wake(self) {
        // An executor of the program's; should it panic, the runnable was dropped, and so nobody waits for ever.
        if let Err(panic) = Panic::catch(|| self.executor.post_last(self.runnable)) {
            report_panic(panic);
        }
    }
}

impl AfterWait {
    /// Goes on at once if there is nothing to wait for.
    pub(super) fn go_on_if_over(self) {
        if let Self::Over(waiter) = self {
            waiter.runnable.run();
        }
    }
}

/// That a piece of work is counted by a scope. It moves with the work and ends when it is dropped.
#[derive(Debug)]
pub(super) struct Association {
    shared: Arc<Shared>,
    /// Taken when it ends.
    key: Option<Key>,
}

impl Association {
    /// One more for the same scope under the same name, if it is still open.
    pub(super) fn again(&self) -> Option<Self> {
        let name = self.name()?;
        Shared::enter(&self.shared, name)
    }

    /// The work panicked, and nobody but the scope can hear of it.
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
        // Whoever is woken may drop the scope: we count what we stand on.
        for waiter in waiting.into_values() {
            waiter.wake();
        }
    }
}
