//! `sequence((a, b, …))`: runs senders one after the other.

use core::fmt;

use super::continuation::{Continuation, Sequenced, Step};
use crate::Sender;
use convoke_core::Outcome;

/// Runs senders one after the other. Takes a tuple of up to twelve senders with the same error type.
///
/// All but the last complete with `()`, so that no value is lost silently: use `then(drop)` to discard a
/// value, and `let_value` to use it. Each operation is destroyed before the next starts.
///
/// - *Completes with* the value of the last sender. The first that fails, panics or is stopped ends the
///   sequence with its outcome.
/// - *If dropped* before it starts, the senders are dropped.
/// - *Runs on* the thread that starts it; each sender starts on the thread on which the one before it
///   completes.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let hello = just_from(|| print!("hello "));
/// let world = just_from(|| println!("world"));
/// assert_eq!(sync_wait(sequence((hello, world, just(11)))), Outcome::Value(11));
/// ```
pub fn sequence<T: InOrder>(senders: T) -> Sequence<T> {
    senders.in_order()
}

/// The sender of [`sequence()`].
pub type Sequence<T> = <T as InOrder>::Sender;

/// A tuple of senders that can run one after the other.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tuple of senders that can run one after the other",
    note = "`sequence` takes a tuple of up to twelve senders with the same error type",
    note = "all but the last complete with `()`: discard a value with `.then(drop)`, or use it with `let_value`"
)]
pub trait InOrder: Send {
    /// The sender that runs them.
    type Sender: Sender;

    /// Makes that sender.
    fn in_order(self) -> Self::Sender;
}

/// The continuation of `sequence`: with the remaining senders.
#[derive(Clone)]
pub struct Rest<T>(T);

impl<E, T> Continuation<(), E> for Rest<T>
where
    T: InOrder<Sender: Sender<Error = E>>,
{
    type Next = T::Sender;

    #[inline]
    fn step(self, outcome: Outcome<(), E>) -> Step<T::Sender> {
        Step::from_value(outcome, |()| self.0.in_order())
    }
}

impl<T> fmt::Debug for Rest<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rest").finish_non_exhaustive()
    }
}

#[diagnostic::do_not_recommend]
impl<S: Sender> InOrder for (S,) {
    type Sender = S;

    #[inline]
    fn in_order(self) -> S {
        self.0
    }
}

macro_rules! tuples {
    ($(($first:ident $($rest:ident)+))+) => { $(
        #[diagnostic::do_not_recommend]
        impl<E, $first, $($rest),+> InOrder for ($first, $($rest),+,)
        where
            $first: Sender<Value = (), Error = E>,
            ($($rest,)+): InOrder<Sender: Sender<Error = E>>,
            $($rest: Send,)+
        {
            type Sender = Sequenced<$first, Rest<($($rest,)+)>>;

            #[inline]
            fn in_order(self) -> Self::Sender {
                #[expect(non_snake_case, reason = "one name for a sender's type and for the sender")]
                let ($first, $($rest),+,) = self;
                Sequenced::new($first, Rest(($($rest,)+)))
            }
        }
    )+ };
}

tuples! {
    (A B)
    (A B C)
    (A B C D)
    (A B C D F)
    (A B C D F G)
    (A B C D F G H)
    (A B C D F G H I)
    (A B C D F G H I J)
    (A B C D F G H I J K)
    (A B C D F G H I J K L)
    (A B C D F G H I J K L M)
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{ByHand, Connected, DropCount, Gate, all_outcomes, stopped_env};

    #[test]
    fn runs_in_order_and_completes_with_the_last_value() {
        let trace = std::sync::Mutex::new(String::new());
        let trace_of = &trace;
        let say = |name| just_from(move || trace_of.lock().unwrap().push(name));
        let sender = sequence((
            say('a'),
            say('b'),
            say('c'),
            say('d'),
            say('e'),
            say('f'),
            say('g'),
            say('h'),
            say('i'),
            say('j'),
            say('k'),
            just(12),
        ));
        assert_eq!(Connected::new(sender).outcome(), Outcome::Value(12));
        assert_eq!(trace.into_inner().unwrap(), "abcdefghijk");
        assert_eq!(Connected::new(sequence((just(1),))).outcome(), Outcome::Value(1));
    }

    #[test]
    fn the_first_without_a_value_is_the_end() {
        for (outcome, sender) in all_outcomes((), "e") {
            let count = DropCount::new();
            let token = count.token();
            let last = just_from(move || drop(token)).then(|()| count.dropped()).may_fail();
            let outcome = outcome.map(|()| 1);
            assert_eq!(Connected::new(sequence((sender, last))).outcome(), outcome);
        }
    }

    #[test]
    fn a_panic_is_the_outcome() {
        let sender = sequence((just_from(|| panic!("boom")), just(1)));
        assert_eq!(Connected::new(sender).outcome(), Outcome::Panicked(Panic::new("boom")));
    }

    #[test]
    fn each_is_destroyed_before_the_next_starts() {
        let (count, first) = (DropCount::new(), Gate::<()>::new());
        let sender =
            sequence((first.holding(count.token()), just_from(|| assert_eq!(count.dropped(), 1)), just(2)));
        let outcome = Connected::new(sender).meanwhile(|_| {
            first.complete(Outcome::Value(()));
        });
        assert_eq!(outcome, Outcome::Value(2));
    }

    #[test]
    fn a_stop_reaches_the_one_that_runs() {
        let sender = sequence((never::<()>(), just(1)));
        assert_eq!(Connected::with_env(sender, stopped_env()).outcome(), Outcome::Stopped);
        let (source, by_hand) = (StopSource::new(), ByHand::new());
        let sender = sequence((schedule(&by_hand), never::<()>(), just(1)));
        let running = Connected::stoppable(sender, &source).start();
        by_hand.run_all();
        assert!(!running.is_complete());
        source.request_stop(StopReason::Requested);
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn dropping_it_unstarted_drops_all() {
        let count = DropCount::new();
        let hold = || {
            let token = count.token();
            just_from(move || drop(token))
        };
        drop(Connected::new(sequence((hold(), hold(), hold()))));
        assert_eq!(count.dropped(), 3);
    }
}
