//! `finally(clean_up)`: clean-up that runs on every exit.

use super::continuation::{Continuation, Sequenced, Step};
use super::transform::{Transform, Transformed};
use super::unstoppable::Unstoppable;
use crate::Sender;
use convoke_core::{Never, Outcome, Panic};

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
pub type Finally<S, C> = Sequenced<S, CleanUp<C>>;

/// The continuation of `finally`: the clean-up, shielded from stop requests, whatever the outcome of the work
/// is.
#[derive(Clone, Debug)]
pub struct CleanUp<C>(pub(crate) C);

impl<V, E, C> Continuation<V, E> for CleanUp<C>
where
    V: Send,
    E: Send,
    C: Sender<Value = (), Error = Never>,
{
    type Next = Transformed<Unstoppable<C>, AfterCleanUp<V, E>>;

    #[inline]
    fn step(self, outcome: Outcome<V, E>) -> Step<Self::Next> {
        Step::Next(Transformed::new(self.0.unstoppable(), AfterCleanUp { outcome }))
    }
}

/// The transformation of the outcome of the clean-up into that of the work.
#[derive(Debug)]
pub struct AfterCleanUp<V, E> {
    outcome: Outcome<V, E>,
}

impl<V: Send, E: Send> Transform<(), Never> for AfterCleanUp<V, E> {
    type Value = V;
    type Error = E;
    const ONLY_VALUES: bool = false;

    #[inline]
    fn apply(self, cleaned_up: Outcome<()>) -> Outcome<V, E> {
        after_clean_up(self.outcome, cleaned_up)
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use crate::prelude::*;
    use crate::testing::{Connected, DropCount, Gate, all_outcomes, race_a_gate, stopped_env};

    #[test]
    fn every_door_waits_for_the_clean_up_and_then_passes() {
        for (outcome, work) in all_outcomes(1, "e") {
            let clean_up = Gate::<()>::new();
            let running = Connected::new(work.finally(clean_up.sender())).start();
            assert!(!running.is_complete());
            clean_up.complete(Outcome::Value(()));
            assert_eq!(running.outcome(), outcome);
        }
    }

    #[test]
    fn a_clean_up_that_panics_is_the_outcome_unless_the_work_has_panicked() {
        for (outcome, work) in all_outcomes(1, "e") {
            let expected =
                if outcome.is_panicked() { outcome } else { Outcome::Panicked(Panic::new("clean-up")) };
            let clean_up = just_from(|| Panic::new("clean-up").resume());
            assert_eq!(Connected::new(work.finally(clean_up)).outcome(), expected);
        }
    }

    #[test]
    fn a_clean_up_that_is_stopped_changes_nothing() {
        for (outcome, work) in all_outcomes(1, "e") {
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
