//! `fork_join((f, g, …))`: passes one result to several continuations, which run concurrently and are joined.

use super::continuation::{Continuation, Sequenced, Step};
use super::gather::Gather;
use super::when_all::{WhenAll, when_all};
use crate::Sender;
use convoke_core::Outcome;

/// Passes the value to several functions, each of which makes a sender from it, and runs these senders
/// concurrently. Takes a tuple of two to six functions.
///
/// Every function gets a clone of the value, the last one the value itself. The senders run as in
/// [`when_all`](super::when_all): the first that fails, panics or is stopped stops the others, and all are
/// awaited. They have the error type of the sender before: use `may_fail()` where one of them cannot fail.
///
/// - *Completes with* the tuple of their values; error and stopped of the sender before pass through. If a
///   function or a clone panics: panicked, and none of the senders is started.
/// - *If dropped* before it starts, the functions are dropped uncalled.
/// - *Runs on* the thread on which the sender before completes, then on the executors of the senders.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let length = |text: String| just(text.len());
/// let upper = |text: String| just(text.to_uppercase());
/// let sizes = just("four".to_owned()).fork_join((length, upper));
/// assert_eq!(sync_wait(sizes), Outcome::Value((4, "FOUR".to_owned())));
/// ```
pub type ForkJoin<S, F> = Sequenced<S, Fork<F>>;

/// A tuple of functions from one value to senders.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tuple of functions that make senders of `{V}`",
    note = "`fork_join` takes a tuple of two to six closures; each gets the value and returns a sender with error `{E}`",
    note = "the value must be `Clone`, and the closures and the values of their senders `Send`"
)]
pub trait Forks<V, E>: Send {
    /// The tuple of the senders that they make.
    type Senders;

    /// Calls all functions and joins the senders that they make.
    fn fork(self, value: V) -> WhenAll<Self::Senders>;
}

/// The continuation of `fork_join`: from a value to all branches.
#[derive(Clone, Debug)]
pub struct Fork<F>(pub(crate) F);

impl<V, E, F> Continuation<V, E> for Fork<F>
where
    F: Forks<V, E>,
    WhenAll<F::Senders>: Gather<Error = E>,
{
    type Next = WhenAll<F::Senders>;

    #[inline]
    fn step(self, outcome: Outcome<V, E>) -> Step<Self::Next> {
        Step::from_value(outcome, |value| self.0.fork(value))
    }
}

macro_rules! tuples {
    ($(($($f:ident $s:ident $at:tt)+; $last:ident $last_s:ident $last_at:tt))+) => { $(
        impl<V, E, $($f, $s,)+ $last, $last_s> Forks<V, E> for ($($f,)+ $last,)
        where
            V: Clone,
            E: Send,
            $($f: FnOnce(V) -> $s + Send, $s: Sender<Error = E, Value: Send>,)+
            $last: FnOnce(V) -> $last_s + Send,
            $last_s: Sender<Error = E, Value: Send>,
        {
            type Senders = ($($s,)+ $last_s,);

            #[inline]
            fn fork(self, value: V) -> WhenAll<Self::Senders> {
                when_all(($((self.$at)(value.clone()),)+ (self.$last_at)(value),))
            }
        }
    )+ };
}

tuples! {
    (A S 0; B T 1)
    (A S 0 B T 1; C U 2)
    (A S 0 B T 1 C U 2; D W 3)
    (A S 0 B T 1 C U 2 D W 3; F X 4)
    (A S 0 B T 1 C U 2 D W 3 F X 4; G Y 5)
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, DropCount, Gate, all_outcomes, stopped_env};

    type Door = Gate<i32, &'static str>;

    #[test]
    fn every_branch_has_the_value_and_the_values_are_joined() {
        let sender = just(5).fork_join((|v| just(v + 1), |v| just(v * 2), |v: i32| just(v.to_string())));
        assert_eq!(Connected::new(sender).outcome(), Outcome::Value((6, 10, "5".to_owned())));
        let sender =
            just(1).fork_join((just::<i32>, just::<i32>, just::<i32>, just::<i32>, just::<i32>, just::<i32>));
        assert_eq!(Connected::new(sender).outcome(), Outcome::Value((1, 1, 1, 1, 1, 1)));
    }

    #[test]
    fn the_value_is_cloned_once_less_than_there_are_branches() {
        let value = std::sync::Arc::new(());
        let sender = just(value.clone()).fork_join((just::<std::sync::Arc<()>>, just::<std::sync::Arc<()>>));
        let pair = Connected::new(sender).outcome().unwrap();
        assert_eq!(std::sync::Arc::strong_count(&value), 3);
        drop(pair);
    }

    #[test]
    fn other_doors_pass_by_the_branches() {
        for (outcome, sender) in all_outcomes(1, "e") {
            let forked = sender.fork_join((|v| just(v).may_fail(), |v| just(v + 1).may_fail()));
            assert_eq!(Connected::new(forked).outcome(), outcome.map(|v| (v, v + 1)));
        }
        for (outcome, branch) in all_outcomes(1, "e") {
            let forked = just(2).may_fail().fork_join((|_| branch, |v: i32| just(v).may_fail()));
            assert_eq!(Connected::new(forked).outcome(), outcome.map(|v| (v, 2)));
        }
    }

    #[test]
    fn a_failing_branch_stops_the_others() {
        let (failing, other) = (Door::new(), Door::new());
        let sender = just(()).may_fail().fork_join((|()| failing.sender(), |()| other.sender()));
        let outcome = Connected::new(sender).meanwhile(|_| {
            failing.complete(Outcome::Error("e"));
            assert_eq!(other.asked_to_stop(), Some(StopReason::Sibling));
        });
        assert_eq!(outcome, Outcome::Error("e"));
    }

    /// Once, branches that cannot fail were not stopped because of another: the whole waited for ever.
    #[test]
    fn branches_that_cannot_fail_are_stopped_by_one_that_stops_or_panics() {
        for end in [Outcome::Stopped, Outcome::Panicked(Panic::new("p"))] {
            let (ending, other) = (Gate::<u8>::new(), Gate::<u8>::new());
            let expected =
                if end.is_panicked() { Outcome::Panicked(Panic::new("p")) } else { Outcome::Stopped };
            let sender = just(()).fork_join((|()| ending.sender(), |()| other.sender()));
            let outcome = Connected::new(sender).meanwhile(|_| {
                ending.complete(end);
                assert_eq!(other.asked_to_stop(), Some(StopReason::Sibling));
            });
            assert_eq!(outcome, expected);
        }
    }

    #[test]
    fn a_panic_of_a_function_is_the_outcome_and_nothing_is_started() {
        let count = DropCount::new();
        let token = count.token();
        let sender = just(1).fork_join((
            move |_| just_from(move || -> u8 { unreachable!("{token:?}") }),
            |_| -> Just<u8> { panic!("boom") },
        ));
        assert_eq!(Connected::new(sender).outcome(), Outcome::Panicked(Panic::new("boom")));
        assert_eq!(count.dropped(), 1);
    }

    #[test]
    fn a_stop_reaches_the_branches() {
        let sender = || just(()).fork_join((|()| never::<u8>(), |()| never::<u8>()));
        assert_eq!(Connected::with_env(sender(), stopped_env()).outcome(), Outcome::Stopped);
        let source = StopSource::new();
        let running = Connected::stoppable(sender(), &source).start();
        assert!(!running.is_complete());
        source.request_stop(StopReason::Requested);
        assert_eq!(running.outcome(), Outcome::Stopped);
    }
}
