//! What has come of the children so far, shared by all of them.

use std::sync::PoisonError;

use convoke_core::raw::sync::{Arc, Mutex, MutexGuard};

use super::failures::Failure;
use super::rules::Policy;
use crate::scope::Handle;

/// Values and failures of the children of a scope, as its policy sees them.
#[derive(Debug)]
pub struct Tally<V, E> {
    /// In the order in which they came.
    pub values: Vec<V>,
    /// In the order in which they came.
    pub failures: Vec<Failure<E>>,
}

/// A child says this when enough has come: then the scope is over.
#[derive(Debug)]
pub(super) struct Enough;

pub(super) struct Ledger<P, V, E> {
    policy: P,
    state: Mutex<State<V, E>>,
}

struct State<V, E> {
    tally: Tally<V, E>,
    /// The body, and children that are no daemons.
    working: usize,
    daemons: Vec<Handle<()>>,
}

impl<P: Policy<V, E>, V, E> Ledger<P, V, E> {
    /// The body works.
    pub(super) fn new(policy: P) -> Self {
        let tally = Tally { values: Vec::new(), failures: Vec::new() };
        Self { policy, state: Mutex::new(State { tally, working: 1, daemons: Vec::new() }) }
    }

    fn lock(&self) -> MutexGuard<'_, State<V, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A child has returned a value.
    pub(super) fn value(&self, value: V) -> Result<(), Enough> {
        let tally = &mut self.lock().tally;
        tally.values.push(value);
        if self.policy.is_enough_after_value(tally) { Err(Enough) } else { Ok(()) }
    }

    /// A child has failed, for good.
    pub(super) fn failure(&self, failure: Failure<E>) -> Result<(), Enough> {
        let tally = &mut self.lock().tally;
        tally.failures.push(failure);
        if self.policy.is_enough_after_failure(tally) { Err(Enough) } else { Ok(()) }
    }

    /// Somebody works. When the last one has ended, by whichever door, the daemons are asked to stop.
    pub(super) fn works(this: &Arc<Self>) -> Working<P, V, E> {
        this.lock().working += 1;
        Working(this.clone())
    }

    /// The body, which counts from the beginning.
    pub(super) fn body_works(this: &Arc<Self>) -> Working<P, V, E> {
        Working(this.clone())
    }

    /// Keeps a daemon, to be asked.
    pub(super) fn keep(&self, daemon: Handle<()>) {
        let mut state = self.lock();
        state.daemons.push(daemon);
        if state.working == 0 {
            // Started by another daemon, when all was over.
            drop(state);
            self.dismiss();
        }
    }

    /// Asks the daemons to stop.
    fn dismiss(&self) {
        let daemons = core::mem::take(&mut self.lock().daemons);
        // Not under the lock: they may run at once, and have something to say. Nor are they dropped: that would give up what
        // they say. Whoever dismisses them is still in the scope, so that nobody asks for its output meanwhile.
        daemons.iter().for_each(Handle::request_stop);
        self.lock().daemons.extend(daemons);
    }

    /// What all has come to. Everybody has ended.
    pub(super) fn output(&self) -> P::Output {
        let mut state = self.lock();
        let tally = core::mem::replace(&mut state.tally, Tally { values: Vec::new(), failures: Vec::new() });
        let daemons = core::mem::take(&mut state.daemons);
        drop(state);
        drop(daemons);
        self.policy.output(tally)
    }
}

/// See [`Ledger::works`].
pub(super) struct Working<P: Policy<V, E>, V, E>(Arc<Ledger<P, V, E>>);

impl<P: Policy<V, E>, V, E> Drop for Working<P, V, E> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.working -= 1;
        let was_last = state.working == 0;
        drop(state);
        if was_last {
            self.0.dismiss();
        }
    }
}
