//! What the consumers of a `split` share: the work, its result, and who waits for it.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use super::split_list::{Place, Places};
use crate::{OutcomeOf, Receiver, Sender};
use convoke_core::env::Changes;
use convoke_core::raw::Slot;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::sync::{Arc, Mutex, MutexGuard};
use convoke_core::{Env, Outcome, Panic, StopReason, StopSource};

/// A sender whose result can be given to several consumers. It borrows nothing: the result may outlive every consumer,
/// for whoever lets go of it last does so after the last consumer was told.
pub trait Shareable: Sender<Value: Clone + Send, Error: Clone + Send> + 'static {}

impl<S: Sender<Value: Clone + Send, Error: Clone + Send> + 'static> Shareable for S {}

/// The shared state.
///
/// 1. Whoever changes `phase` from idle to running, under the lock, alone uses `sender`, `env` and `work` until he has
///    started the work. From then on `env` is only read, and `work` is used by whoever completes it.
/// 2. A place is in the list until it is taken out, under the lock, by who will end that consumer's wait: the work when
///    it has completed, or, before that, the consumer's stop request. Until then the consumer is alive.
/// 3. The result is written before `phase` becomes done, and stays.
/// 4. While the work runs somebody waits for it: a consumer that is stopped leaves if others wait, and else asks the work
///    to stop and waits on. So the work is never left behind.
/// 5. No code of the program runs under the lock of `waiting`. The result is cloned under its own lock, so that it need
///    not be `Sync`; all that can happen there is the clone.
pub(super) struct Shared<S: Shareable> {
    work: Slot<S::Operation<WorkReceiver<S>>>,
    sender: UnsafeCell<Option<S>>,
    env: UnsafeCell<Option<Env>>,
    waiting: Mutex<Waiting<S>>,
    result: Mutex<Option<Kept<S>>>,
    stop: StopSource,
}

struct Waiting<S: Shareable> {
    phase: Phase,
    places: Places<S>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Running,
    Done,
}

enum Kept<S: Sender> {
    Value(S::Value),
    Error(S::Error),
    Stopped,
    /// The payload is for the first who asks; the others get its message.
    Panicked(Option<Panic>, String),
}

// SAFETY: everything in it is `Send`; rules 1 to 5 say who uses what when.
unsafe impl<S: Shareable> Send for Shared<S> {}
// SAFETY: as above.
unsafe impl<S: Shareable> Sync for Shared<S> {}

/// What a consumer that wants to leave must now do.
pub(super) enum Leaving {
    /// Nothing: its wait has been ended already, or is about to be.
    Gone,
    /// End its wait: it is out of the list.
    Left,
    /// Ask the work to stop, and wait for it (rule 4).
    IsLast,
}

impl<S: Shareable> Shared<S> {
    /// The state of work that has not begun.
    pub(super) fn new(sender: S) -> Arc<Self> {
        Arc::new(Self {
            work: Slot::new(),
            sender: UnsafeCell::new(Some(sender)),
            env: UnsafeCell::new(None),
            waiting: Mutex::new(Waiting { phase: Phase::Idle, places: Places::new() }),
            result: Mutex::new(None),
            stop: StopSource::new(),
        })
    }

    /// Adds a consumer to those that wait. False if there is nothing to wait for any more: the result is there.
    ///
    /// # Safety
    /// The place is in no list, stays where it is, and is alive until its wait is ended (rule 2).
    pub(super) unsafe fn wait(&self, place: NonNull<Place<S>>) -> bool {
        let mut waiting = self.waiting();
        let waits = waiting.phase != Phase::Done;
        if waits {
            // SAFETY: the contract of `push` is that of this function.
            unsafe { waiting.places.push(place) };
        }
        waits
    }

    /// A consumer was stopped, and wants to leave.
    ///
    /// # Safety
    /// The place was given to `wait` of this state, and is alive.
    pub(super) unsafe fn leave(&self, place: NonNull<Place<S>>) -> Leaving {
        let mut waiting = self.waiting();
        if waiting.phase == Phase::Done {
            return Leaving::Gone;
        }
        if waiting.places.count() == 1 {
            return Leaving::IsLast;
        }
        // SAFETY: the place is alive. It is in this list or in none, as it was given to no other.
        if unsafe { waiting.places.remove(place) } { Leaving::Left } else { Leaving::Gone }
    }

    /// How many places have been touched so far.
    #[cfg(test)]
    pub(super) fn steps(&self) -> usize {
        self.waiting().places.steps
    }

    /// Asks the work to stop: nobody wants its result.
    pub(super) fn abandon(&self) {
        self.stop.request_stop(StopReason::Abandoned);
    }

    /// Whether the result is there.
    pub(super) fn is_done(&self) -> bool {
        self.waiting().phase == Phase::Done
    }

    /// Starts the work in the environment of this consumer, unless another one has.
    pub(super) fn begin_once(this: &Arc<Self>, env: &Env) {
        {
            let mut waiting = this.waiting();
            if waiting.phase != Phase::Idle {
                return;
            }
            waiting.phase = Phase::Running;
        }
        let env = env.child().with(Changes::new().stop_token(this.stop.token()));
        // SAFETY: rule 1: we changed the phase. The state does not move, as it is in an `Arc`, and the receiver keeps it
        // alive until the work has completed.
        unsafe {
            *this.env.get() = Some(env);
            if let Some(sender) = (*this.sender.get()).take() {
                let receiver = WorkReceiver { shared: this.clone() };
                Slot::run(NonNull::from(&this.work), || sender.connect(receiver));
            }
        }
    }

    /// A copy of the result, which is there.
    pub(super) fn outcome(&self) -> OutcomeOf<S> {
        let mut result = self.result.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match result.as_mut() {
            Some(Kept::Value(value)) => Outcome::catch(|| value.clone()),
            Some(Kept::Error(error)) => {
                Panic::catch(|| error.clone()).map_or_else(Outcome::Panicked, Outcome::Error)
            }
            Some(Kept::Panicked(payload, message)) => {
                Outcome::Panicked(payload.take().unwrap_or_else(|| Panic::new(message.clone())))
            }
            Some(Kept::Stopped) | None => Outcome::Stopped,
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting<S>> {
        // Rule 5: no foreign code runs under the lock, so a poisoned list is a sound list.
        self.waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The receiver of the work. It keeps the shared state alive until the work has completed.
pub(super) struct WorkReceiver<S: Shareable> {
    shared: Arc<Shared<S>>,
}

#[diagnostic::do_not_recommend]
impl<S: Shareable> Receiver<S::Value, S::Error> for WorkReceiver<S> {
    fn complete(self, outcome: OutcomeOf<S>) {
        let shared = self.shared;
        // SAFETY: rule 1: the work has completed, and it is we who complete it.
        let outcome = unsafe { shared.work.clear_after(outcome) };
        let kept = match outcome {
            Outcome::Value(value) => Kept::Value(value),
            Outcome::Error(error) => Kept::Error(error),
            Outcome::Stopped => Kept::Stopped,
            Outcome::Panicked(panic) => {
                let message = panic.message().to_owned();
                Kept::Panicked(Some(panic), message)
            }
        };
        *shared.result.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(kept);
        let mut next = {
            let mut waiting = shared.waiting();
            // From here on nobody comes, and nobody leaves by himself.
            waiting.phase = Phase::Done;
            waiting.places.pop()
        };
        while let Some(place) = next {
            // SAFETY: rule 2: we took the place out of the list.
            unsafe { Place::end(place, shared.outcome()) };
            next = shared.waiting().places.pop();
        }
    }

    fn env(&self) -> &Env {
        // SAFETY: rule 1: written before the work was connected, and only read since.
        unsafe { (*self.shared.env.get_const()).as_ref() }.expect("written before the work was connected")
    }
}

impl<S: Shareable> core::fmt::Debug for WorkReceiver<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("WorkReceiver").finish_non_exhaustive()
    }
}
