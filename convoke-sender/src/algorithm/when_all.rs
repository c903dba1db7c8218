//! `when_all((a, b, …))`: runs senders concurrently and collects all of their values.

#![allow(unsafe_code)]

use core::fmt;

use super::gather::{
    Accept, Gather, GatherChild, GatherParent, Gathering, ResultSlot, ResultWriter, Starter, together,
};
use crate::{Completes, Receiver, Sender};
use convoke_core::raw::Slot;
use convoke_core::raw::sync::Mutex;
use convoke_core::{Never, Outcome, Panic, StopReason};

/// Runs senders concurrently and completes when all of them have. Takes a tuple of up to twelve senders, or a
/// `Vec` of one type of sender. Use [`when_any`](super::when_any) to wait for the first value only.
///
/// The first that fails, panics or is stopped stops the others; all are awaited nevertheless. The senders
/// have the same error type: call `may_fail()` on one that cannot fail.
///
/// - *Completes with* the tuple of values, or the `Vec` of them, in the order of the senders. With the error
///   or panic that came first, if there was one; else stopped, if one of them was stopped.
/// - *If dropped* before it starts, the senders are dropped.
/// - *Runs on* the executors of its senders, and completes on the thread of the last one to complete. The
///   thread that starts it starts them one after another.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let both = when_all((just(1), just("one")));
/// assert_eq!(sync_wait(both), Outcome::Value((1, "one")));
///
/// let square = |n: u32| just(n).then(|n| n * n);
/// let squares = when_all((1..=3).map(square).collect::<Vec<_>>());
/// assert_eq!(sync_wait(squares), Outcome::Value(vec![1, 4, 9]));
/// ```
pub fn when_all<T>(senders: T) -> WhenAll<T>
where
    WhenAll<T>: Gather,
{
    WhenAll { senders }
}

/// The sender of [`when_all()`].
#[derive(Clone, Debug)]
#[must_use = "a sender does nothing until it is started"]
pub struct WhenAll<T> {
    pub(super) senders: T,
}

// SAFETY: rules 1 and 2 of `Sender`: `Gathering` completes the receiver last, when all children have
// completed. Rule 3: `COMPLETES` is that of the group.
#[diagnostic::do_not_recommend]
unsafe impl<T> Sender for WhenAll<T>
where
    Self: Gather,
{
    type Value = <Self as Gather>::Value;
    type Error = <Self as Gather>::Error;
    const COMPLETES: Completes = <Self as Gather>::COMPLETES;
    type Operation<R: Receiver<<Self as Gather>::Value, <Self as Gather>::Error>> = Gathering<Self, R>;

    #[inline]
    fn connect<R: Receiver<<Self as Gather>::Value, <Self as Gather>::Error>>(
        self,
        receiver: R,
    ) -> Gathering<Self, R> {
        Gathering::new(self, receiver)
    }
}

/// The stored outcomes of the children: the values, each in its own slot, and the first failure. If a slot is
/// still empty when all children have completed, and there is no failure, its child was stopped.
pub struct WhenAllOutcomes<C, E> {
    pub(super) values: C,
    failure: Mutex<Option<Failure<E>>>,
}

enum Failure<E> {
    Error(E),
    Panicked(Panic),
}

impl<C, E> WhenAllOutcomes<C, E> {
    #[inline]
    pub(super) fn new(values: C) -> Self {
        Self { values, failure: Mutex::new(None) }
    }

    #[cold]
    fn fail(&self, failure: Failure<E>) {
        let mut first = self.failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if first.is_none() {
            *first = Some(failure);
            return;
        }
        // Without the lock, because it runs code of the program. The first failure is the outcome, even if the
        // destructor of another one panics.
        drop(first);
        drop(Panic::of_drop(failure));
    }

    /// Returns the failure if there is one, else the values if they are complete, else stopped.
    #[inline]
    pub(super) fn outcome<V>(&mut self, values: impl FnOnce(&mut C) -> Option<V>) -> Outcome<V, E> {
        match self.failure.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner()).take() {
            Some(Failure::Error(error)) => Outcome::Error(error),
            Some(Failure::Panicked(panic)) => Outcome::Panicked(panic),
            None => values(&mut self.values).map_or(Outcome::Stopped, Outcome::Value),
        }
    }
}

impl<T, C, V, E> Accept<ResultWriter<V>, V, E> for WhenAll<T>
where
    Self: Gather<Kept = WhenAllOutcomes<C, E>>,
{
    #[inline]
    fn accept(
        kept: &WhenAllOutcomes<C, E>,
        writer: ResultWriter<V>,
        outcome: Outcome<V, E>,
    ) -> Option<StopReason> {
        match outcome {
            Outcome::Value(value) => {
                writer.put(value);
                return None;
            }
            Outcome::Error(error) => kept.fail(Failure::Error(error)),
            Outcome::Panicked(panic) => kept.fail(Failure::Panicked(panic)),
            Outcome::Stopped => {}
        }
        Some(StopReason::Sibling)
    }
}

macro_rules! tuples {
    ($(($count:literal $($sender:ident $at:tt)+))+) => { $(
        // SAFETY: rules 1 and 2 of `Gather`: each slot, and the writer of each result, is used once, for the sender
        // with the same index.
        unsafe impl<E, $($sender),+> Gather for WhenAll<($($sender,)+)>
        where
            E: Send,
            $($sender: Sender<Error = E>, $sender::Value: Send,)+
        {
            type Value = ($($sender::Value,)+);
            type Error = E;
            const COMPLETES: Completes = together(Completes::Inline$(.and($sender::COMPLETES))+);
            type Kept = WhenAllOutcomes<($(ResultSlot<$sender::Value>,)+), E>;
            type Slots<R: Receiver<Self::Value, E>> =
                ($(Slot<$sender::Operation<GatherChild<Self, R, ResultWriter<$sender::Value>>>>,)+);

            #[inline]
            fn count(&self) -> usize {
                $count
            }

            #[inline]
            fn kept(&self) -> Self::Kept {
                WhenAllOutcomes::new(($(ResultSlot::<$sender::Value>::new(),)+))
            }

            #[inline]
            fn slots<R: Receiver<Self::Value, E>>(&self) -> Self::Slots<R> {
                ($(Slot::<$sender::Operation<_>>::new(),)+)
            }

            #[inline]
            fn connect<R: Receiver<Self::Value, E>>(
                self,
                slots: &Self::Slots<R>,
                kept: &Self::Kept,
                parent: GatherParent<Self, R>,
            ) {
                $(parent.connect(&slots.$at, self.senders.$at, ResultWriter::of(&kept.values.$at));)+
            }

            #[inline]
            fn start<R: Receiver<Self::Value, E>>(slots: &Self::Slots<R>, starter: &Starter<'_>) {
                $(starter.start(&slots.$at);)+
            }

            #[inline]
            fn outcome(kept: &mut Self::Kept) -> Outcome<Self::Value, E> {
                kept.outcome(|results| Some(($(results.$at.take()?,)+)))
            }
        }
    )+ };
}

tuples! {
    (1 A 0)
    (2 A 0 B 1)
    (3 A 0 B 1 C 2)
    (4 A 0 B 1 C 2 D 3)
    (5 A 0 B 1 C 2 D 3 F 4)
    (6 A 0 B 1 C 2 D 3 F 4 G 5)
    (7 A 0 B 1 C 2 D 3 F 4 G 5 H 6)
    (8 A 0 B 1 C 2 D 3 F 4 G 5 H 6 I 7)
    (9 A 0 B 1 C 2 D 3 F 4 G 5 H 6 I 7 J 8)
    (10 A 0 B 1 C 2 D 3 F 4 G 5 H 6 I 7 J 8 K 9)
    (11 A 0 B 1 C 2 D 3 F 4 G 5 H 6 I 7 J 8 K 9 L 10)
    (12 A 0 B 1 C 2 D 3 F 4 G 5 H 6 I 7 J 8 K 9 L 10 M 11)
}

// SAFETY: rules 1 and 2 of `Gather`: there are no slots and no results.
unsafe impl Gather for WhenAll<()> {
    type Value = ();
    type Error = Never;
    const COMPLETES: Completes = Completes::Inline;
    type Kept = ();
    type Slots<R: Receiver<(), Never>> = ();

    fn count(&self) -> usize {
        0
    }

    fn kept(&self) {}

    fn slots<R: Receiver<(), Never>>(&self) {}

    fn connect<R: Receiver<(), Never>>(self, (): &(), (): &(), _: GatherParent<Self, R>) {}

    fn start<R: Receiver<(), Never>>((): &(), _: &Starter<'_>) {}

    fn outcome((): &mut ()) -> Outcome<(), Never> {
        Outcome::Value(())
    }
}

impl<C, E> fmt::Debug for WhenAllOutcomes<C, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WhenAllOutcomes").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    use crate::testing::{Connected, DropCount, Gate, all_outcomes, stopped_env};

    type Door = Gate<i32, &'static str>;

    #[test]
    fn completes_with_all_values_in_order() {
        assert_eq!(Connected::new(when_all((just(1), just("b")))).outcome(), Outcome::Value((1, "b")));
        assert_eq!(Connected::new(when_all((just(1),))).outcome(), Outcome::Value((1,)));
        assert_eq!(Connected::new(when_all(())).outcome(), Outcome::Value(()));
        let (first, second) = (Door::new(), Door::new());
        let running = Connected::new(when_all((first.sender(), second.sender()))).start();
        second.complete(Outcome::Value(2));
        assert!(!running.is_complete());
        first.complete(Outcome::Value(1));
        assert_eq!(running.outcome(), Outcome::Value((1, 2)));
    }

    #[test]
    fn each_door_of_a_child_is_that_of_the_whole() {
        for (outcome, sender) in all_outcomes(1, "e") {
            let expected = outcome.map(|v| (v, 2));
            assert_eq!(Connected::new(when_all((sender, just(2).may_fail()))).outcome(), expected);
        }
    }

    #[test]
    fn a_failure_stops_the_others_and_waits_for_them() {
        let (failing, other, deaf) = (Door::new(), Door::new(), Door::new());
        let sender = when_all((failing.sender(), other.sender(), deaf.deaf()));
        let running = Connected::new(sender).start();
        failing.complete(Outcome::Error("first"));
        assert_eq!(other.asked_to_stop(), Some(StopReason::Sibling));
        assert!(!running.is_complete());
        deaf.complete(Outcome::Error("second"));
        assert_eq!(running.outcome(), Outcome::Error("first"));
    }

    #[test]
    fn an_error_outweighs_an_earlier_stop_and_is_outweighed_by_an_earlier_panic() {
        let run = |outcomes: [Outcome<i32, &'static str>; 2]| {
            let gates = [Door::new(), Door::new()];
            let running = Connected::new(when_all((gates[0].deaf(), gates[1].deaf()))).start();
            gates.iter().zip(outcomes).for_each(|(gate, outcome)| assert!(gate.complete(outcome)));
            running.outcome()
        };
        assert_eq!(run([Outcome::Stopped, Outcome::Error("e")]), Outcome::Error("e"));
        assert_eq!(run([Outcome::Stopped, Outcome::Value(1)]), Outcome::Stopped);
        let panicked = || Outcome::Panicked(Panic::new("p"));
        assert_eq!(run([panicked(), Outcome::Error("e")]), Outcome::Panicked(Panic::new("p")));
        assert_eq!(run([Outcome::Error("e"), panicked()]), Outcome::Error("e"));
    }

    #[test]
    fn a_stopped_child_stops_the_others() {
        let gate = Door::new();
        let running = Connected::new(when_all((gate.sender(), just_stopped::<u8>().may_fail()))).start();
        assert_eq!(gate.asked_to_stop(), Some(StopReason::Sibling));
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn inline_children_after_a_failure_see_the_stop() {
        let reason = || read_env(|env: &Env| env.stop().reason()).may_fail::<&str>();
        assert_eq!(Connected::new(when_all((reason(), reason()))).outcome(), Outcome::Value((None, None)));
        let seen = std::sync::Mutex::new(None);
        let last = reason().then(|reason| *seen.lock().unwrap() = reason);
        let sender = when_all((just_error::<u8, _>("e"), last));
        assert_eq!(Connected::new(sender).outcome(), Outcome::Error("e"));
        assert_eq!(seen.into_inner().unwrap(), Some(StopReason::Sibling));
    }

    /// Children that cannot fail were once not stopped when another one failed, and the group waited for ever.
    #[test]
    fn children_that_cannot_fail_are_stopped_by_one_that_stops_or_panics() {
        for end in [Outcome::Stopped, Outcome::Panicked(Panic::new("p"))] {
            let gates = [Gate::<u8>::new(), Gate::<u8>::new()];
            let running = Connected::new(when_all((gates[0].sender(), gates[1].sender()))).start();
            let expected =
                if end.is_panicked() { Outcome::Panicked(Panic::new("p")) } else { Outcome::Stopped };
            gates[0].complete(end);
            assert_eq!(gates[1].asked_to_stop(), Some(StopReason::Sibling));
            assert_eq!(running.outcome(), expected);
        }
        let running = Connected::new(when_all((just_stopped::<u8>(), never::<u8>()))).start();
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn a_stop_of_the_parent_reaches_all() {
        let sender = || when_all((never::<u8>().may_fail::<&str>(), never::<u8>().may_fail()));
        assert_eq!(Connected::with_env(sender(), stopped_env()).outcome(), Outcome::Stopped);
        let source = StopSource::new();
        let gates = [Door::new(), Door::new()];
        let all = when_all((gates[0].sender(), gates[1].sender()));
        let running = Connected::stoppable(all, &source).start();
        source.request_stop(StopReason::Shutdown);
        assert!(gates.iter().all(|gate| gate.asked_to_stop() == Some(StopReason::Shutdown)));
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn dropping_it_unstarted_drops_the_senders() {
        let count = DropCount::new();
        drop(Connected::new(when_all((just(count.token()), just(count.token())))));
        assert_eq!(count.dropped(), 2);
    }

    #[test]
    fn values_beside_a_failure_are_dropped() {
        let count = DropCount::new();
        let sender = when_all((just(count.token()).may_fail(), just_error::<u8, _>("e")));
        assert!(Connected::new(sender).outcome().is_error());
        assert_eq!(count.dropped(), 1);
    }

    #[test]
    fn threads_may_complete_and_stop_the_children_in_any_order() {
        for round in 0..if cfg!(miri) { 5_u32 } else { 2_000 } {
            let gates = [Door::new(), Door::new(), Door::new()];
            let source = StopSource::new();
            let all = when_all((gates[0].sender(), gates[1].sender(), gates[2].sender()));
            let mut running = None;
            std::thread::scope(|scope| {
                running = Some(Connected::stoppable(all, &source).start());
                scope.spawn(|| gates[0].complete(Outcome::Value(1)));
                scope.spawn(|| gates[1].complete(Outcome::Error("e")));
                if round % 2 == 0 {
                    source.request_stop(StopReason::Requested);
                }
                gates[2].complete(Outcome::Value(3));
            });
            let outcome = running.take().map(|running| running.wait());
            assert!(matches!(outcome, Some(Outcome::Error("e") | Outcome::Stopped)), "{outcome:?}");
            assert!(round % 2 == 0 || outcome == Some(Outcome::Error("e")));
        }
    }
}
