//! `finally(clean_up)`: clean-up that runs on every exit.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr::NonNull;

use super::trampoline::Enclosing;
use super::unstoppable::Unstoppable;
use crate::{Completes, OutcomeOf, Receiver, Sender};
use convoke_core::raw::Operation;
use convoke_core::raw::Slot;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::{Env, Never, Outcome, Panic};

/// Runs `clean_up` after the work, whatever its outcome, shielded from stop requests; then passes the outcome
/// of the work on. The operation of the work is destroyed before the clean-up starts.
///
/// - *Completes with* the outcome of the work. If the clean-up panics: panicked, unless the work has
///   panicked: then the first panic is the outcome and the second is printed. A clean-up that completes as
///   stopped has no effect.
/// - *If dropped* before it starts, neither the work nor the clean-up runs.
/// - *Runs on* the executors of the work. The clean-up starts on the thread on which the work completes, and
///   decides where the whole completes.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use convoke::sender::prelude::*;
///
/// let closed = AtomicBool::new(false);
/// let close = just_from(|| closed.store(true, Ordering::Relaxed));
/// let sender = just_error::<u32, _>("broken pipe").finally(close);
/// assert_eq!(sync_wait(sender), Outcome::Error("broken pipe"));
/// assert!(closed.load(Ordering::Relaxed));
/// ```
#[derive(Clone, Debug)]
#[must_use = "a sender does nothing until it is started"]
pub struct Finally<S, C> {
    work: S,
    clean_up: C,
}

impl<S, C> Finally<S, C> {
    pub(crate) fn new(work: S, clean_up: C) -> Self {
        Self { work, clean_up }
    }
}

// SAFETY: rules 1 and 2 of `Sender`: the receiver is completed last, after work and clean-up have ended. Rule
// 3: `COMPLETES` combines those of both.
#[diagnostic::do_not_recommend]
unsafe impl<S, C> Sender for Finally<S, C>
where
    S: Sender,
    S::Value: Send,
    S::Error: Send,
    C: Sender<Value = (), Error = Never>,
{
    type Value = S::Value;
    type Error = S::Error;
    const COMPLETES: Completes = S::COMPLETES.and(C::COMPLETES);
    type Operation<R: Receiver<S::Value, S::Error>> = FinallyOperation<S, C, R>;

    #[inline]
    fn connect<R: Receiver<S::Value, S::Error>>(self, receiver: R) -> Self::Operation<R> {
        FinallyOperation {
            parts: UnsafeCell::new(Parts {
                work: Some(self.work),
                clean_up: Some(self.clean_up.unstoppable()),
                outcome: None,
                receiver: Some(receiver),
            }),
            work: Slot::new(),
            clean_up: Slot::new(),
            _pinned: PhantomPinned,
        }
    }
}

/// The operation of [`Finally`]: the work, then the clean-up, then the outcome of the work.
///
/// 1. One thread at a time uses everything: `start` until the work starts, the completion of the work until
///    the clean-up starts, then the completion of the clean-up. While a child runs it may read the receiver
///    in `parts`, which is not moved.
pub struct FinallyOperation<S, C, R>
where
    S: Sender,
    C: Sender<Value = (), Error = Never>,
    R: Receiver<S::Value, S::Error>,
{
    /// Rule 1.
    parts: UnsafeCell<Parts<S, C, R>>,
    work: Slot<S::Operation<WorkReceiver<S, C, R>>>,
    clean_up: Slot<<Unstoppable<C> as Sender>::Operation<CleanUpReceiver<S, C, R>>>,
    _pinned: PhantomPinned,
}

struct Parts<S: Sender, C, R> {
    work: Option<S>,
    clean_up: Option<Unstoppable<C>>,
    outcome: Option<OutcomeOf<S>>,
    receiver: Option<R>,
}

impl<S, C, R> Operation for FinallyOperation<S, C, R>
where
    S: Sender,
    S::Value: Send,
    S::Error: Send,
    C: Sender<Value = (), Error = Never>,
    R: Receiver<S::Value, S::Error>,
{
    #[inline]
    unsafe fn start(self: Pin<&mut Self>) {
        let this = NonNull::from(self.as_ref().get_ref());
        // SAFETY: rule 1: nothing has started, so the parts are ours, and nothing is touched after the work
        // has started. The operation is pinned, so the receiver may point to it.
        unsafe {
            if let Some(work) = (*this.as_ref().parts.get()).work.take() {
                let slot = NonNull::from(&this.as_ref().work);
                Slot::run(slot, || work.connect(WorkReceiver { operation: this }));
            }
        }
    }
}

impl<S, C, R> FinallyOperation<S, C, R>
where
    S: Sender,
    C: Sender<Value = (), Error = Never>,
    R: Receiver<S::Value, S::Error>,
{
    /// Returns the environment of the receiver.
    ///
    /// # Safety
    /// Called by a child that runs (rule 1).
    unsafe fn env(&self) -> &Env {
        // SAFETY: rule 1: a child runs, so the parts are not written and the receiver is not moved.
        let receiver = unsafe { &(*self.parts.get_const()).receiver };
        receiver.as_ref().expect("the receiver is taken when the clean-up completes").env()
    }
}

/// Combines the outcomes of work and clean-up. Of two panics the first is passed on.
fn after_clean_up<V, E>(outcome: Outcome<V, E>, cleaned_up: Outcome<()>) -> Outcome<V, E> {
    match (outcome, cleaned_up) {
        (Outcome::Panicked(first), Outcome::Panicked(second)) => {
            eprintln!("convoke: clean-up after a panic has itself panicked: {}", second.message());
            Outcome::Panicked(first)
        }
        (replaced, Outcome::Panicked(panic)) => {
            // Dropped by hand: if a destructor panics while a function returns, the return value leaks.
            Outcome::Panicked(Panic::of_drop(replaced).unwrap_or(panic))
        }
        (outcome, _) => outcome,
    }
}

/// The receiver of the work: stores the outcome and starts the clean-up.
pub struct WorkReceiver<S, C, R>
where
    S: Sender,
    C: Sender<Value = (), Error = Never>,
    R: Receiver<S::Value, S::Error>,
{
    operation: NonNull<FinallyOperation<S, C, R>>,
}

// SAFETY: the operation is `Send`, and rule 1 makes the completion of the work its only user.
unsafe impl<S, C, R> Send for WorkReceiver<S, C, R>
where
    S: Sender,
    C: Sender<Value = (), Error = Never>,
    R: Receiver<S::Value, S::Error>,
{
}

#[diagnostic::do_not_recommend]
impl<S, C, R> Receiver<S::Value, S::Error> for WorkReceiver<S, C, R>
where
    S: Sender,
    C: Sender<Value = (), Error = Never>,
    R: Receiver<S::Value, S::Error>,
{
    #[inline]
    fn complete(self, outcome: OutcomeOf<S>) {
        // SAFETY: rule 1: the work has completed, so this call is the only user. The operation lives until
        // the clean-up has completed its receiver, and nothing is touched after the clean-up has started.
        unsafe {
            let operation = self.operation.as_ref();
            let outcome = operation.work.clear_after(outcome);
            let parts = &mut *operation.parts.get();
            parts.outcome = Some(outcome);
            if let Some(clean_up) = parts.clean_up.take() {
                let receiver = CleanUpReceiver { operation: self.operation };
                Slot::run(NonNull::from(&operation.clean_up), || clean_up.connect(receiver));
            }
        }
    }

    #[inline]
    fn env(&self) -> &Env {
        // SAFETY: rule 1: the work runs, so the operation is alive and its receiver is not moved.
        unsafe { self.operation.as_ref().env() }
    }

    #[inline]
    fn enclosing(&self) -> Option<Enclosing> {
        // SAFETY: rule 1: the work runs, so the operation is alive and its receiver is not moved.
        unsafe { (*self.operation.as_ref().parts.get()).receiver.as_ref() }.and_then(Receiver::enclosing)
    }
}

/// The receiver of the clean-up: passes the stored outcome on.
pub struct CleanUpReceiver<S, C, R>
where
    S: Sender,
    C: Sender<Value = (), Error = Never>,
    R: Receiver<S::Value, S::Error>,
{
    operation: NonNull<FinallyOperation<S, C, R>>,
}

// SAFETY: the operation is `Send`, and rule 1 makes the completion of the clean-up its only user.
unsafe impl<S, C, R> Send for CleanUpReceiver<S, C, R>
where
    S: Sender,
    C: Sender<Value = (), Error = Never>,
    R: Receiver<S::Value, S::Error>,
{
}

#[diagnostic::do_not_recommend]
impl<S, C, R> Receiver<(), Never> for CleanUpReceiver<S, C, R>
where
    S: Sender,
    C: Sender<Value = (), Error = Never>,
    R: Receiver<S::Value, S::Error>,
{
    #[inline]
    fn complete(self, cleaned_up: Outcome<()>) {
        // SAFETY: rule 1: the clean-up has completed, so this call is the only user. The operation lives
        // until its receiver is completed; that is taken out first, and nothing is touched afterwards.
        unsafe {
            let operation = self.operation.as_ref();
            let cleaned_up = operation.clean_up.clear_after(cleaned_up);
            let parts = &mut *operation.parts.get();
            if let (Some(receiver), Some(outcome)) = (parts.receiver.take(), parts.outcome.take()) {
                // Caught, because an outcome that is replaced is dropped in there.
                let outcome = Panic::catch(|| after_clean_up(outcome, cleaned_up));
                receiver.complete(outcome.unwrap_or_else(Outcome::Panicked));
            }
        }
    }

    #[inline]
    fn env(&self) -> &Env {
        // SAFETY: rule 1: the clean-up runs, so the operation is alive and its receiver is not moved.
        unsafe { self.operation.as_ref().env() }
    }

    #[inline]
    fn enclosing(&self) -> Option<Enclosing> {
        // SAFETY: rule 1: the clean-up runs, so the operation is alive and its receiver is not moved.
        unsafe { (*self.operation.as_ref().parts.get()).receiver.as_ref() }.and_then(Receiver::enclosing)
    }
}

impl<S, C, R> fmt::Debug for FinallyOperation<S, C, R>
where
    S: Sender,
    C: Sender<Value = (), Error = Never>,
    R: Receiver<S::Value, S::Error>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FinallyOperation")
            .field("work", &self.work)
            .field("clean_up", &self.clean_up)
            .finish_non_exhaustive()
    }
}

impl<S, C, R> fmt::Debug for WorkReceiver<S, C, R>
where
    S: Sender,
    C: Sender<Value = (), Error = Never>,
    R: Receiver<S::Value, S::Error>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkReceiver").finish_non_exhaustive()
    }
}

impl<S, C, R> fmt::Debug for CleanUpReceiver<S, C, R>
where
    S: Sender,
    C: Sender<Value = (), Error = Never>,
    R: Receiver<S::Value, S::Error>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CleanUpReceiver").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use crate::prelude::*;
    use crate::testing::{Connected, DropCount, Gate, all_doors, race_a_gate, stopped_env};

    #[test]
    fn every_door_waits_for_the_clean_up_and_then_passes() {
        for (outcome, work) in all_doors(1, "e") {
            let clean_up = Gate::<()>::new();
            let running = Connected::new(work.finally(clean_up.sender())).start();
            assert!(!running.is_complete());
            clean_up.complete(Outcome::Value(()));
            assert_eq!(running.outcome(), outcome);
        }
    }

    #[test]
    fn a_clean_up_that_panics_is_the_outcome_unless_the_work_has_panicked() {
        for (outcome, work) in all_doors(1, "e") {
            let expected =
                if outcome.is_panicked() { outcome } else { Outcome::Panicked(Panic::new("clean-up")) };
            let clean_up = just_from(|| Panic::new("clean-up").resume());
            assert_eq!(Connected::new(work.finally(clean_up)).outcome(), expected);
        }
    }

    #[test]
    fn a_clean_up_that_is_stopped_changes_nothing() {
        for (outcome, work) in all_doors(1, "e") {
            assert_eq!(Connected::new(work.finally(just_stopped())).outcome(), outcome);
        }
    }

    #[test]
    fn the_operation_of_the_work_is_gone_before_the_clean_up_and_that_before_the_end() {
        let (work, clean_up) = (DropCount::new(), DropCount::new());
        let seen = AtomicUsize::new(9);
        let (gate, cleaning) = (Gate::<i32>::new(), Gate::<()>::new());
        let cleans = just_from(|| seen.store(work.dropped(), Ordering::Relaxed))
            .let_value(|()| cleaning.holding(clean_up.token()));
        let sender = gate.holding(work.token()).finally(cleans).then(|v| (v, clean_up.dropped()));
        let outcome = Connected::new(sender).meanwhile(|_| {
            gate.complete(Outcome::Value(5));
            assert_eq!((seen.load(Ordering::Relaxed), clean_up.dropped()), (1, 0));
            cleaning.complete(Outcome::Value(()));
        });
        assert_eq!(outcome, Outcome::Value((5, 1)));
    }

    #[test]
    fn a_stop_before_the_start_reaches_the_work_and_not_the_clean_up() {
        let clean_up = Gate::<()>::new();
        let running = Connected::with_env(never::<i32>().finally(clean_up.sender()), stopped_env()).start();
        assert!(!running.is_complete());
        clean_up.complete(Outcome::Value(()));
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn a_stop_while_the_work_or_the_clean_up_runs_does_not_stop_the_clean_up() {
        let source = StopSource::new();
        let clean_up = Gate::<()>::new();
        let running = Connected::stoppable(never::<i32>().finally(clean_up.sender()), &source).start();
        assert!(!clean_up.is_waiting());
        source.request_stop(StopReason::Requested);
        assert!(clean_up.is_waiting());
        clean_up.complete(Outcome::Value(()));
        assert_eq!(running.outcome(), Outcome::Stopped);

        let source = StopSource::new();
        let running = Connected::stoppable(just(1).finally(clean_up.sender()), &source).start();
        source.request_stop(StopReason::Requested);
        assert!(clean_up.is_waiting() && !running.is_complete());
        clean_up.complete(Outcome::Value(()));
        assert_eq!(running.outcome(), Outcome::Value(1));
    }

    #[test]
    fn dropping_it_unstarted_runs_neither() {
        let count = DropCount::new();
        let token = count.token();
        let work = Gate::<i32>::new().holding(count.token());
        drop(Connected::new(work.finally(just_from(move || unreachable!("{token:?}")))));
        assert_eq!(count.dropped(), 2);
    }

    #[test]
    fn another_thread_completes_it_while_it_is_being_started() {
        race_a_gate(2000, |by_hand, gate| gate.sender().finally(schedule(by_hand)));
    }
}
