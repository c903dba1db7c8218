//! What has come of the children so far, shared by all of them.
//!
//! The policy is code of the program's, and is called without the lock: it may start children in the scope that it judges. So that
//! it still sees one result after the other, whoever brings a result takes the tally out, and puts it back when it has judged
//! all that has arrived meanwhile. Whoever finds the tally taken leaves its result to the one who has it.

use std::collections::VecDeque;
use std::sync::PoisonError;

use convoke_core::Panic;
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

impl<V, E> Tally<V, E> {
    fn new() -> Self {
        Self { values: Vec::new(), failures: Vec::new() }
    }
}

/// A child says this when enough has come: then the scope is over.
#[derive(Debug)]
pub(super) struct Enough;

pub(super) struct Ledger<P, V, E> {
    policy: P,
    state: Mutex<State<V, E>>,
}

struct State<V, E> {
    /// `None` while somebody judges it.
    tally: Option<Tally<V, E>>,
    /// Results that have come while somebody judges, the oldest first.
    arrived: VecDeque<Result<V, Failure<E>>>,
    /// The body, and children that are no daemons.
    working: usize,
    daemons: Vec<Handle<()>>,
}

impl<P: Policy<V, E>, V, E> Ledger<P, V, E> {
    /// The body works.
    pub(super) fn new(policy: P) -> Self {
        let state =
            State { tally: Some(Tally::new()), arrived: VecDeque::new(), working: 1, daemons: Vec::new() };
        Self { policy, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State<V, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A child has ended for good: its result is judged, here, or by the child that judges another one just now.
    ///
    /// # Panics
    /// As the policy does, about any of the results that are judged here. All of them are in the tally nevertheless.
    pub(super) fn judge(&self, result: Result<V, Failure<E>>) -> Result<(), Enough> {
        let mut state = self.lock();
        let Some(mut tally) = state.tally.take() else {
            state.arrived.push_back(result);
            return Ok(());
        };
        drop(state);
        let (mut enough, mut first_panic, mut next) = (false, None, Some(result));
        while let Some(result) = next {
            match Panic::catch(|| self.is_enough_after(result, &mut tally)) {
                Ok(is_enough) => enough |= is_enough,
                Err(panic) => _ = first_panic.get_or_insert(panic),
            }
            let mut state = self.lock();
            next = state.arrived.pop_front();
            if next.is_none() {
                // With the lock held: nobody leaves a result to us any more.
                state.tally = Some(tally);
                break;
            }
        }
        match first_panic {
            Some(panic) => panic.resume(),
            None if enough => Err(Enough),
            None => Ok(()),
        }
    }

    fn is_enough_after(&self, result: Result<V, Failure<E>>, tally: &mut Tally<V, E>) -> bool {
        match result {
            Ok(value) => {
                tally.values.push(value);
                self.policy.is_enough_after_value(tally)
            }
            Err(failure) => {
                tally.failures.push(failure);
                self.policy.is_enough_after_failure(tally)
            }
        }
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

    /// Asks the daemons to stop, all of them, also if asking one panics: its executor is the program's.
    fn dismiss(&self) {
        let daemons = core::mem::take(&mut self.lock().daemons);
        let mut first_panic = None;
        // Not under the lock: they may run at once, and have something to say. Nor are they dropped: that would give up what
        // they say. Whoever dismisses them is still in the scope, so that nobody asks for its output meanwhile.
        for daemon in &daemons {
            if let Err(panic) = Panic::catch(|| daemon.request_stop()) {
                first_panic.get_or_insert(panic);
            }
        }
        self.lock().daemons.extend(daemons);
        // A second panic while one unwinds would end the process; the panic hook has told of this one.
        if let Some(panic) = first_panic
            && !std::thread::panicking()
        {
            panic.resume();
        }
    }

    /// What all has come to. Everybody has ended.
    pub(super) fn output(&self) -> P::Output {
        let mut state = self.lock();
        let tally = state.tally.replace(Tally::new());
        let daemons = core::mem::take(&mut state.daemons);
        drop(state);
        drop(daemons);
        self.policy.output(tally.expect("whoever judges is in the scope, and has ended"))
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
