//! The results of the children so far, and the ledger that all of them share.
//!
//! The policy is foreign code, and is called without the lock: it may start children in its own scope. It
//! still sees one result after the other: a child that brings a result takes the tally out of the ledger, and
//! puts it back when it has judged all results that arrived meanwhile. A child that finds no tally leaves its
//! result in the queue of the one that has it.

use std::sync::PoisonError;

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::raw::{FrameArc, FrameMemory, FrameVec};
use convoke_core::{Panic, StopReason};

use super::rules::Policy;
use crate::frame_queue::FrameQueue;
use crate::reserve::reserve_one;
use crate::scope::{ChildFailure, Handle};

/// Results of the children of a scope so far, as its policy sees them.
#[derive(Debug)]
pub struct Tally<V, E> {
    /// Values, in the order in which the children ended.
    pub values: Vec<V>,
    /// Failures, in the order in which the children ended.
    pub failures: Vec<ChildFailure<E>>,
}

impl<V, E> Tally<V, E> {
    fn new() -> Self {
        Self { values: Vec::new(), failures: Vec::new() }
    }
}

/// Error by which a child ends the scope: the policy said that it is over.
#[derive(Debug)]
pub(super) struct PolicyMet;

/// The policy, and the state that body and children share.
pub(super) struct Ledger<P, V, E> {
    policy: P,
    state: Mutex<TallyState<V, E>>,
}

struct TallyState<V, E> {
    /// `None` while a child judges results.
    tally: Option<Tally<V, E>>,
    /// Results that arrived while a child judges, the oldest first.
    arrived: FrameQueue<Result<V, ChildFailure<E>>>,
    /// Number of the body and the children that run and are no daemons.
    working: usize,
    daemons: FrameVec<Handle<()>>,
}

impl<P: Policy<V, E>, V, E> Ledger<P, V, E> {
    /// Creates a ledger that counts the body as working.
    pub(super) fn new(policy: P) -> Self {
        let state = TallyState {
            tally: Some(Tally::new()),
            arrived: FrameQueue::in_task(),
            working: 1,
            daemons: FrameMemory::vec_in_task(),
        };
        Self { policy, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, TallyState<V, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Judges the final result of a child, here, or on the thread of the child that is judging now.
    ///
    /// # Panics
    /// With the first panic of the policy for a result that is judged here. All of these results are in the
    /// tally in any case.
    pub(super) fn judge(&self, result: Result<V, ChildFailure<E>>) -> Result<(), PolicyMet> {
        let lock = || self.lock();
        let mut state = lock();
        if state.tally.is_none() {
            state = reserve_one(state, lock, |state| state.arrived.incoming());
        }
        let Some(mut tally) = state.tally.take() else {
            state.arrived.push(result);
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
            next = state.arrived.pop();
            if next.is_none() {
                // Under the lock: no other child can leave a result between the check and this.
                state.tally = Some(tally);
                break;
            }
        }
        match first_panic {
            Some(panic) => panic.resume(),
            None if enough => Err(PolicyMet),
            None => Ok(()),
        }
    }

    /// Adds a result to the tally, and asks the policy.
    fn is_enough_after(&self, result: Result<V, ChildFailure<E>>, tally: &mut Tally<V, E>) -> bool {
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

    /// Counts a child as working until the guard is dropped. After the last one, the daemons are asked to stop.
    pub(super) fn works(this: &FrameArc<Self>) -> Working<P, V, E> {
        this.lock().working += 1;
        Working(this.clone())
    }

    /// Returns the guard of the body, which was counted from the start.
    pub(super) fn body_works(this: &FrameArc<Self>) -> Working<P, V, E> {
        Working(this.clone())
    }

    /// Adds a daemon, to be asked to stop at the end.
    pub(super) fn add_daemon(&self, daemon: Handle<()>) {
        let state = self.store_daemon(daemon);
        if state.working == 0 {
            // Started by another daemon, after all others had ended.
            drop(state);
            self.stop_daemons();
        }
    }

    fn store_daemon(&self, daemon: Handle<()>) -> MutexGuard<'_, TallyState<V, E>> {
        let lock = || self.lock();
        let mut state = reserve_one(lock(), lock, |state| &mut state.daemons);
        state.daemons.push(daemon);
        state
    }

    /// Asks all daemons to stop, also if asking one of them panics: its executor is foreign code.
    fn stop_daemons(&self) {
        let mut daemons = core::mem::replace(&mut self.lock().daemons, FrameMemory::vec_in_task());
        let mut first_panic = None;
        // Without the lock: a daemon may run at once, and bring a failure. The handles are not dropped: that
        // would drop the daemons' panics. The caller is still in the scope, so that `output` is not called
        // meanwhile.
        for daemon in &daemons {
            if let Err(panic) = Panic::catch(|| daemon.request_stop(StopReason::Abandoned)) {
                first_panic.get_or_insert(panic);
            }
        }
        core::mem::swap(&mut self.lock().daemons, &mut daemons);
        for added_meanwhile in daemons {
            drop(self.store_daemon(added_meanwhile));
        }
        // A second panic during unwinding would abort the process. The panic hook has reported this one.
        if let Some(panic) = first_panic
            && !std::thread::panicking()
        {
            panic.resume();
        }
    }

    /// Makes the output of the scope. Body and children have ended.
    pub(super) fn output(&self) -> P::Output {
        let mut state = self.lock();
        let tally = state.tally.replace(Tally::new());
        let daemons = core::mem::replace(&mut state.daemons, FrameMemory::vec_in_task());
        drop(state);
        drop(daemons);
        self.policy.output(tally.expect("a child that judges puts the tally back before it ends"))
    }
}

/// Guard of a working child or body. Returned by [`Ledger::works`].
pub(super) struct Working<P: Policy<V, E>, V, E>(FrameArc<Ledger<P, V, E>>);

impl<P: Policy<V, E>, V, E> Drop for Working<P, V, E> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.working -= 1;
        let was_last = state.working == 0;
        drop(state);
        if was_last {
            self.0.stop_daemons();
        }
    }
}
