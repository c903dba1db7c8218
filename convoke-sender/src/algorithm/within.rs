//! `within(enter, work, exit)`: opens a resource before the work and closes it after the work, on every exit.

use std::sync::Arc;

use super::continuation::{Continuation, Sequenced, Step};
use super::finally::Finally;
use super::just::{Just, just};
use super::let_value::LetValue;
use super::map_error::MapError;
use crate::Sender;
use convoke_core::{Never, Outcome};

/// Makes a sender that runs `enter` to get a resource, then the sender that `work` makes from it, then the
/// one that `exit` makes from it. The exit runs whatever the outcome of the work is, and is shielded from
/// stop requests.
///
/// The resource is shared by an `Arc`, one allocation: the work may hold its handle for longer than the exit
/// runs, so a reference would not be sound. Close the resource in `exit`, not in its destructor.
///
/// - *Completes with* the outcome of the work. If `enter` ends with anything but a value, that is the outcome
///   and nothing else runs. If `work` panics: panicked, after the exit has run. If the exit panics: panicked,
///   unless the work has panicked; then the second panic is printed.
/// - *If dropped* before it starts, nothing runs.
/// - *Runs on* the thread that starts it, then on the executors of the three; each starts on the thread on
///   which the one before it completes.
///
/// ```
/// use std::sync::Mutex;
/// use convoke::sender::prelude::*;
///
/// let log = Mutex::new(Vec::new());
/// let say = |word: &'static str| log.lock().unwrap().push(word);
/// let sender = within(
///     just_from(|| { say("open"); "file" }),
///     |file| just_from(move || { say("work"); file.len() }),
///     |_file| just_from(|| say("close")),
/// );
/// assert_eq!(sync_wait(sender), Outcome::Value(4));
/// assert_eq!(*log.lock().unwrap(), ["open", "work", "close"]);
/// ```
pub fn within<S, T, E, W, N, X, C>(enter: S, work: W, exit: X) -> Within<S, W, X>
where
    S: Sender<Value = T, Error = E>,
    T: Send + Sync,
    E: Send,
    W: FnOnce(Arc<T>) -> N + Send,
    N: Sender<Error = E>,
    N::Value: Send,
    X: FnOnce(Arc<T>) -> C + Send,
    C: Sender<Value = (), Error = Never>,
{
    Sequenced::new(enter, OnEntered { work, exit })
}

/// The sender of [`within()`].
pub type Within<S, W, X> = Sequenced<S, OnEntered<W, X>>;

/// A sender that `f` makes, when it starts, from its handle to the shared value: so a panic of `f` is the
/// outcome of that sender only.
pub type WithShared<T, E, F> = LetValue<MapError<Just<Arc<T>>, fn(Never) -> E>, F>;

/// The continuation of `within`: from the resource.
#[derive(Clone, Debug)]
pub struct OnEntered<W, X> {
    work: W,
    exit: X,
}

impl<T, E, W, N, X, C> Continuation<T, E> for OnEntered<W, X>
where
    T: Send + Sync,
    W: FnOnce(Arc<T>) -> N + Send,
    N: Sender<Error = E>,
    N::Value: Send,
    E: Send,
    X: FnOnce(Arc<T>) -> C + Send,
    C: Sender<Value = (), Error = Never>,
{
    type Next = Finally<WithShared<T, E, W>, LetValue<Just<Arc<T>>, X>>;

    fn step(self, outcome: Outcome<T, E>) -> Step<Self::Next> {
        Step::from_value(outcome, |resource| {
            let resource = Arc::new(resource);
            let work = just(resource.clone()).may_fail().let_value(self.work);
            work.finally(just(resource).let_value(self.exit))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use crate::prelude::*;
    use crate::testing::{Connected, DropCount, Gate, all_outcomes, stopped_env};

    #[test]
    fn every_door_of_the_work_is_passed_on_after_the_exit() {
        for (outcome, work) in all_outcomes(1, "e") {
            let log = Mutex::new(Vec::new());
            let say = |word| log.lock().unwrap().push(word);
            let enter = just_from(|| (say("enter"), 7).1).may_fail();
            let sender = within(
                enter,
                |seven| {
                    just_from(move || say(if *seven == 7 { "work" } else { "?" }))
                        .may_fail()
                        .let_value(|()| work)
                },
                |seven| just_from(move || say(if *seven == 7 { "exit" } else { "?" })),
            );
            assert_eq!(Connected::new(sender).outcome(), outcome);
            assert_eq!(*log.lock().unwrap(), ["enter", "work", "exit"]);
        }
    }

    #[test]
    fn if_entering_ends_with_anything_but_a_value_nothing_else_runs() {
        for (outcome, enter) in all_outcomes(1, "e") {
            let ran = Mutex::new(0);
            let sender = within(
                enter,
                |one| just(*one).may_fail(),
                |_| {
                    *ran.lock().unwrap() += 1;
                    just(())
                },
            );
            let ran_expected = i32::from(outcome.is_value());
            assert_eq!(Connected::new(sender).outcome(), outcome);
            assert_eq!(*ran.lock().unwrap(), ran_expected);
        }
    }

    #[test]
    fn a_panic_of_the_work_function_still_exits() {
        let left = Mutex::new(false);
        let sender = within(
            just(1),
            |_| -> Just<i32> { Panic::new("boom").resume() },
            |_| just_from(|| *left.lock().unwrap() = true),
        );
        assert_eq!(Connected::new(sender).outcome(), Outcome::Panicked(Panic::new("boom")));
        assert!(*left.lock().unwrap());
    }

    #[test]
    fn a_panic_of_the_exit_function_is_the_outcome_unless_the_work_has_panicked() {
        for (outcome, work) in all_outcomes(1, "e") {
            let expected =
                if outcome.is_panicked() { outcome } else { Outcome::Panicked(Panic::new("exit")) };
            let sender =
                within(just(1).may_fail(), |_| work, |_| -> Just<()> { Panic::new("exit").resume() });
            assert_eq!(Connected::new(sender).outcome(), expected);
        }
    }

    #[test]
    fn the_resource_is_dropped_after_the_exit_and_before_the_outcome() {
        let count = DropCount::new();
        let exit = Gate::<()>::new();
        let sender = within(just(count.token()), |_held| just(1), |_held| exit.sender())
            .then(|v| (v, count.dropped()));
        let outcome = Connected::new(sender).meanwhile(|running| {
            assert!(!running.is_complete());
            exit.complete(Outcome::Value(()));
        });
        assert_eq!(outcome, Outcome::Value((1, 1)));
    }

    #[test]
    fn a_stop_before_the_start_and_while_it_works_is_followed_by_the_exit() {
        let left = Mutex::new(0);
        let sender = || within(just(1), |_| never::<i32>(), |_| just_from(|| *left.lock().unwrap() += 1));
        assert_eq!(Connected::with_env(sender(), stopped_env()).outcome(), Outcome::Stopped);
        assert_eq!(*left.lock().unwrap(), 1);
        let source = StopSource::new();
        let outcome = Connected::stoppable(sender(), &source).meanwhile(|running| {
            assert!(!running.is_complete());
            source.request_stop(StopReason::Requested);
        });
        assert_eq!(outcome, Outcome::Stopped);
        assert_eq!(*left.lock().unwrap(), 2);
    }

    #[test]
    fn a_stop_does_not_reach_the_exit() {
        let source = StopSource::new();
        let exit = Gate::<()>::new();
        let outcome = Connected::stoppable(within(just(1), |_| just(2), |_| exit.sender()), &source)
            .meanwhile(|running| {
                source.request_stop(StopReason::Requested);
                assert!(exit.is_waiting() && !running.is_complete());
                exit.complete(Outcome::Value(()));
            });
        assert_eq!(outcome, Outcome::Value(2));
    }

    #[test]
    fn dropping_it_unstarted_runs_nothing() {
        let count = DropCount::new();
        let (work, exit) = (count.token(), count.token());
        drop(Connected::new(within(
            just_from(|| -> i32 { unreachable!() }),
            move |_| -> Just<i32> { unreachable!("{work:?}") },
            move |_| -> Just<()> { unreachable!("{exit:?}") },
        )));
        assert_eq!(count.dropped(), 2);
    }
}
