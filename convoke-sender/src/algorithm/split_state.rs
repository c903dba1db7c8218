//! The shared state of the consumers of a `split`: the work, its result, and the list of waiters.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use super::split_list::{CompletionOf, Node, WaiterList};
use crate::{OutcomeOf, Receiver, Sender};
use convoke_core::env::Changes;
use convoke_core::raw::FrameArc;
use convoke_core::raw::Slot;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::{Env, Outcome, Panic, StopReason, StopSource};

/// A sender whose result can be cloned for several consumers. It borrows nothing: the result may outlive
/// every consumer, because it may be dropped after the last consumer has completed.
pub trait Shareable: Sender<Value: Clone + Send, Error: Clone + Send> + 'static {}

impl<S: Sender<Value: Clone + Send, Error: Clone + Send> + 'static> Shareable for S {}

/// The shared state.
///
/// 1. The thread that changes `phase` from idle to running, under the lock, is the only user of `sender`,
///    `env` and `work` until it has started the work. From then on `env` is read-only, and `work` belongs to
///    the completion of the work.
/// 2. A waiter is in the list until it is removed, under the lock, by the thread that will end its wait: the
///    completion of the work, or, before that, the consumer's stop request. Until then the consumer is alive.
/// 3. The result is written before `phase` becomes done, and stays.
/// 4. While the work runs at least one consumer waits for it: a consumer that is stopped leaves if others
///    wait; otherwise it asks the work to stop and continues to wait. So the work is never left running
///    alone.
/// 5. No code of the program runs under the lock of `waiting`. The result is cloned under its own lock, so
///    that it need not be `Sync`; no other code of the program runs there.
pub(super) struct SplitState<S: Shareable> {
    work: Slot<S::Operation<WorkReceiver<S>>>,
    sender: UnsafeCell<Option<S>>,
    env: UnsafeCell<Option<Env>>,
    waiting: Mutex<Waiting<S>>,
    result: Mutex<Option<Stored<S>>>,
    stop: StopSource,
}

struct Waiting<S: Shareable> {
    phase: Phase,
    waiters: WaiterList<S>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Running,
    Done,
}

enum Stored<S: Sender> {
    Value(S::Value),
    Error(S::Error),
    Stopped,
    /// The payload is for the first consumer; the others get its message.
    Panicked(Option<Panic>, String),
}

// SAFETY: everything in it is `Send`; rules 1 to 5 give it to one thread at a time, or guard it by a lock.
unsafe impl<S: Shareable> Send for SplitState<S> {}
// SAFETY: everything in it is `Send`; rules 1 to 5 give it to one thread at a time, or guard it by a lock.
unsafe impl<S: Shareable> Sync for SplitState<S> {}

/// The next step of a consumer that wants to leave.
pub(super) enum Leaving<S: Shareable> {
    /// Nothing: its wait has ended already, or is about to end.
    Gone,
    /// End its wait: it was removed from the list.
    Left(CompletionOf<S>),
    /// Ask the work to stop, and wait for it (rule 4).
    IsLast,
}

impl<S: Shareable> SplitState<S> {
    /// Creates the state of work that has not begun.
    pub(super) fn new(sender: S) -> FrameArc<Self> {
        FrameArc::in_task(Self {
            work: Slot::new(),
            sender: UnsafeCell::new(Some(sender)),
            env: UnsafeCell::new(None),
            waiting: Mutex::new(Waiting { phase: Phase::Idle, waiters: WaiterList::new() }),
            result: Mutex::new(None),
            stop: StopSource::new(),
        })
    }

    /// Adds a consumer to the list. Returns its completion if there is nothing to wait for any more, because
    /// the result is there.
    pub(super) fn wait(&self, waiter: Node<S>, completion: CompletionOf<S>) -> Result<(), CompletionOf<S>> {
        let mut waiting = self.waiting();
        if waiting.phase == Phase::Done {
            return Err(completion);
        }
        waiting.waiters.push(waiter, completion);
        Ok(())
    }

    /// Removes a consumer that was stopped from the list, unless it is the last one.
    pub(super) fn leave(&self, waiter: Node<S>) -> Leaving<S> {
        let mut waiting = self.waiting();
        if waiting.phase == Phase::Done {
            return Leaving::Gone;
        }
        if waiting.waiters.count() == 1 {
            return Leaving::IsLast;
        }
        waiting.waiters.remove(waiter).map_or(Leaving::Gone, Leaving::Left)
    }

    /// Returns the number of waiters touched so far.
    #[cfg(test)]
    pub(super) fn steps(&self) -> usize {
        self.waiting().waiters.steps
    }

    /// Asks the work to stop, because no consumer wants its result.
    pub(super) fn abandon(&self) {
        self.stop.request_stop(StopReason::Abandoned);
    }

    /// Returns true if the result is there.
    pub(super) fn is_done(&self) -> bool {
        self.waiting().phase == Phase::Done
    }

    /// Starts the work in the environment of this consumer, unless another consumer has started it.
    pub(super) fn begin_once(this: &FrameArc<Self>, env: &Env) {
        {
            let mut waiting = this.waiting();
            if waiting.phase != Phase::Idle {
                return;
            }
            waiting.phase = Phase::Running;
        }
        let env = env.child().with(Changes::new().stop_token(this.stop.token()));
        // SAFETY: rule 1: this thread changed the phase. The state does not move, because it is in an `Arc`,
        // and the receiver keeps it alive until the work has completed.
        unsafe {
            *this.env.get() = Some(env);
            if let Some(sender) = (*this.sender.get()).take() {
                let receiver = WorkReceiver { shared: this.clone() };
                Slot::run(NonNull::from(&this.work), || sender.connect(receiver));
            }
        }
    }

    /// Returns a clone of the result. Called when the phase is done.
    pub(super) fn outcome(&self) -> OutcomeOf<S> {
        let mut result = self.result.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match result.as_mut() {
            Some(Stored::Value(value)) => Outcome::catch(|| value.clone()),
            Some(Stored::Error(error)) => {
                Panic::catch(|| error.clone()).map_or_else(Outcome::Panicked, Outcome::Error)
            }
            Some(Stored::Panicked(payload, message)) => {
                Outcome::Panicked(payload.take().unwrap_or_else(|| Panic::new(message.clone())))
            }
            Some(Stored::Stopped) | None => Outcome::Stopped,
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting<S>> {
        // Rule 5: no code of the program runs under the lock, so the list is consistent even if the lock is
        // poisoned.
        self.waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The receiver of the work. It keeps the shared state alive until the work has completed.
pub(super) struct WorkReceiver<S: Shareable> {
    shared: FrameArc<SplitState<S>>,
}

#[diagnostic::do_not_recommend]
impl<S: Shareable> Receiver<S::Value, S::Error> for WorkReceiver<S> {
    fn complete(self, outcome: OutcomeOf<S>) {
        let shared = self.shared;
        // SAFETY: rule 1: the work has completed, and this is its completion.
        let outcome = unsafe { shared.work.clear_after(outcome) };
        let stored = match outcome {
            Outcome::Value(value) => Stored::Value(value),
            Outcome::Error(error) => Stored::Error(error),
            Outcome::Stopped => Stored::Stopped,
            Outcome::Panicked(panic) => {
                let message = panic.message().to_owned();
                Stored::Panicked(Some(panic), message)
            }
        };
        *shared.result.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(stored);
        let mut next = {
            let mut waiting = shared.waiting();
            // From here on no consumer is added, and none leaves by itself.
            waiting.phase = Phase::Done;
            waiting.waiters.pop()
        };
        while let Some(waiter) = next {
            waiter.complete(shared.outcome());
            next = shared.waiting().waiters.pop();
        }
    }

    fn env(&self) -> &Env {
        // SAFETY: rule 1: written before the work was connected, and read-only since.
        unsafe { (*self.shared.env.get_const()).as_ref() }.expect("`begin_once` writes it before it connects")
    }
}

impl<S: Shareable> core::fmt::Debug for WorkReceiver<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("WorkReceiver").finish_non_exhaustive()
    }
}
