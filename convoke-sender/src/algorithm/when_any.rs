//! `when_any((a, b, …))`: runs senders concurrently, and the first value wins.

#![allow(unsafe_code)]

use super::gather::{Accept, Gather, GatherChild, GatherParent, Gathering, Starter, together};
use super::when_all_vec::in_task;
use crate::{Completes, Receiver, Sender};
use convoke_core::raw::sync::Mutex;
use convoke_core::raw::{FrameVec, Slot};
use convoke_core::{Outcome, Panic, StopReason};

/// Runs senders concurrently until one of them has a value. Takes a tuple of up to twelve senders with the
/// same value and error types, or a `Vec` of one type of sender. Use [`when_all`](super::when_all) to wait
/// for all values.
///
/// The first value wins. The others are asked to stop and awaited; their outcomes are dropped. An error does
/// not end the race: the others may still have a value.
///
/// - *Completes with* the value that came first. If there was none: with the error that came last, and if
///   there was no error either, stopped; an empty `Vec` is stopped too. A panic of any sender stops the
///   others and is the outcome, even if there is a value: a panic is never lost.
/// - *If dropped* before it starts, the senders are dropped.
/// - *Runs on* the executors of its senders, and completes on the thread of the last one to complete. The
///   thread that starts it starts them one after another.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let first = when_any((never::<&str>(), just("tortoise")));
/// assert_eq!(sync_wait(first), Outcome::Value("tortoise"));
///
/// let none = when_any(vec![just_error::<u32, _>("no"), just_error("nor this")]);
/// assert_eq!(sync_wait(none), Outcome::Error("nor this"));
/// ```
pub fn when_any<T>(senders: T) -> WhenAny<T>
where
    WhenAny<T>: Gather,
{
    WhenAny { senders }
}

/// The sender of [`when_any()`].
#[derive(Clone, Debug)]
#[must_use = "a sender does nothing until it is started"]
pub struct WhenAny<T> {
    senders: T,
}

// SAFETY: rules 1 and 2 of `Sender`: `Gathering` completes the receiver last, when all children have
// completed. Rule 3: `COMPLETES` is that of the group.
#[diagnostic::do_not_recommend]
unsafe impl<T> Sender for WhenAny<T>
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

/// The stored outcomes of the race.
#[derive(Debug)]
pub struct WhenAnyOutcomes<V, E>(Mutex<Ends<V, E>>);

/// The first value and the first panic, the last error.
#[derive(Debug)]
struct Ends<V, E> {
    value: Option<V>,
    error: Option<E>,
    panic: Option<Panic>,
}

impl<V, E> WhenAnyOutcomes<V, E> {
    fn new() -> Self {
        Self(Mutex::new(Ends { value: None, error: None, panic: None }))
    }

    /// Stores an outcome, and returns the reason to stop the others if it ends the race. An outcome that is
    /// not needed is returned: the caller drops it outside the lock, because that runs code of the program.
    fn store(&self, outcome: Outcome<V, E>) -> (Option<StopReason>, Option<Outcome<V, E>>) {
        let mut ends = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match outcome {
            Outcome::Value(value) if ends.value.is_none() => {
                ends.value = Some(value);
                (Some(StopReason::Lost), None)
            }
            Outcome::Panicked(panic) if ends.panic.is_none() => {
                ends.panic = Some(panic);
                (Some(StopReason::Sibling), None)
            }
            Outcome::Error(error) => (None, ends.error.replace(error).map(Outcome::Error)),
            late => (None, Some(late)),
        }
    }

    fn outcome(&mut self) -> Outcome<V, E> {
        let ends = self.0.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        match (ends.panic.take(), ends.value.take(), ends.error.take()) {
            (Some(panic), value, error) => {
                // Dropped by hand: if a destructor panics while a function returns, the return value leaks.
                drop(Panic::of_drop((value, error)));
                Outcome::Panicked(panic)
            }
            (None, Some(value), _) => Outcome::Value(value),
            (None, None, Some(error)) => Outcome::Error(error),
            (None, None, None) => Outcome::Stopped,
        }
    }
}

/// The index of a child of the race: no child differs from another.
#[derive(Debug)]
pub struct RaceChild;

impl<T, V, E> Accept<RaceChild, V, E> for WhenAny<T>
where
    Self: Gather<Kept = WhenAnyOutcomes<V, E>>,
{
    #[inline]
    fn accept(kept: &WhenAnyOutcomes<V, E>, _: RaceChild, outcome: Outcome<V, E>) -> Option<StopReason> {
        let (stop, useless) = kept.store(outcome);
        match Panic::of_drop(useless) {
            None => stop,
            Some(panic) => stop.or(kept.store(Outcome::Panicked(panic)).0),
        }
    }
}

macro_rules! tuples {
    ($(($count:literal $($sender:ident $at:tt)+))+) => { $(
        // SAFETY: rule 1 of `Gather`: each slot is used once, for the sender with the same index. Rule 2: there
        // are no results.
        unsafe impl<V, E, $($sender),+> Gather for WhenAny<($($sender,)+)>
        where
            V: Send,
            E: Send,
            $($sender: Sender<Value = V, Error = E>,)+
        {
            type Value = V;
            type Error = E;
            const COMPLETES: Completes = together(Completes::Inline$(.and($sender::COMPLETES))+);
            type Kept = WhenAnyOutcomes<V, E>;
            type Slots<R: Receiver<V, E>> = ($(Slot<$sender::Operation<GatherChild<Self, R, RaceChild>>>,)+);

            #[inline]
            fn count(&self) -> usize {
                $count
            }

            #[inline]
            fn kept(&self) -> WhenAnyOutcomes<V, E> {
                WhenAnyOutcomes::new()
            }

            #[inline]
            fn slots<R: Receiver<V, E>>(&self) -> Self::Slots<R> {
                ($(Slot::<$sender::Operation<_>>::new(),)+)
            }

            #[inline]
            fn connect<R: Receiver<V, E>>(
                self,
                slots: &Self::Slots<R>,
                _: &WhenAnyOutcomes<V, E>,
                parent: GatherParent<Self, R>,
            ) {
                $(parent.connect(&slots.$at, self.senders.$at, RaceChild);)+
            }

            #[inline]
            fn start<R: Receiver<V, E>>(slots: &Self::Slots<R>, starter: &Starter<'_>) {
                $(starter.start(&slots.$at);)+
            }

            #[inline]
            fn outcome(kept: &mut WhenAnyOutcomes<V, E>) -> Outcome<V, E> {
                kept.outcome()
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

// SAFETY: rule 1 of `Gather`: each slot is used once, for the sender with the same index; there are as many
// of them as senders. Rule 2: there are no results.
unsafe impl<S> Gather for WhenAny<Vec<S>>
where
    S: Sender<Value: Send, Error: Send>,
{
    type Value = S::Value;
    type Error = S::Error;
    const COMPLETES: Completes = together(S::COMPLETES);
    type Kept = WhenAnyOutcomes<S::Value, S::Error>;
    type Slots<R: Receiver<S::Value, S::Error>> =
        FrameVec<Slot<S::Operation<GatherChild<Self, R, RaceChild>>>>;

    fn count(&self) -> usize {
        self.senders.len()
    }

    fn kept(&self) -> Self::Kept {
        WhenAnyOutcomes::new()
    }

    fn slots<R: Receiver<S::Value, S::Error>>(&self) -> Self::Slots<R> {
        in_task(self.senders.iter().map(|_| Slot::new()))
    }

    fn connect<R: Receiver<S::Value, S::Error>>(
        self,
        slots: &Self::Slots<R>,
        _: &Self::Kept,
        parent: GatherParent<Self, R>,
    ) {
        for (sender, slot) in self.senders.into_iter().zip(slots) {
            parent.connect(slot, sender, RaceChild);
        }
    }

    fn start<R: Receiver<S::Value, S::Error>>(slots: &Self::Slots<R>, starter: &Starter<'_>) {
        for slot in slots {
            starter.start(slot);
        }
    }

    fn outcome(kept: &mut Self::Kept) -> Outcome<S::Value, S::Error> {
        kept.outcome()
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, DropCount, Gate, all_outcomes, stopped_env};

    type Door = Gate<i32, &'static str>;

    /// Runs two senders that ignore stop requests, and completes them in this order.
    fn run(outcomes: [Outcome<i32, &'static str>; 2]) -> Outcome<i32, &'static str> {
        let gates = [Door::new(), Door::new()];
        let running = Connected::new(when_any((gates[0].deaf(), gates[1].deaf()))).start();
        for (gate, outcome) in gates.iter().zip(outcomes) {
            assert!(!running.is_complete());
            gate.complete(outcome);
        }
        running.outcome()
    }

    #[test]
    fn the_first_value_wins_and_the_losers_are_stopped_and_awaited() {
        let (winner, loser, deaf) = (Door::new(), Door::new(), Door::new());
        let running = Connected::new(when_any((loser.sender(), winner.sender(), deaf.deaf()))).start();
        winner.complete(Outcome::Value(1));
        assert_eq!(loser.asked_to_stop(), Some(StopReason::Lost));
        assert!(!running.is_complete());
        deaf.complete(Outcome::Value(2));
        assert_eq!(running.outcome(), Outcome::Value(1));
    }

    #[test]
    fn a_value_outweighs_errors_and_a_panic_outweighs_all() {
        use Outcome::{Error, Panicked, Stopped, Value};
        assert_eq!(run([Error("e"), Value(1)]), Value(1));
        assert_eq!(run([Stopped, Value(1)]), Value(1));
        assert_eq!(run([Error("e"), Error("last")]), Error("last"));
        assert_eq!(run([Error("e"), Stopped]), Error("e"));
        assert_eq!(run([Stopped, Stopped]), Stopped);
        assert_eq!(run([Value(1), Panicked(Panic::new("late"))]), Panicked(Panic::new("late")));
        assert_eq!(run([Panicked(Panic::new("p")), Error("e")]), Panicked(Panic::new("p")));
    }

    #[test]
    fn a_panic_stops_the_others() {
        let (first, second) = (Door::new(), Door::new());
        let running = Connected::new(when_any((first.sender(), second.sender()))).start();
        first.complete(Outcome::Panicked(Panic::new("p")));
        assert_eq!(second.asked_to_stop(), Some(StopReason::Sibling));
        assert_eq!(running.outcome(), Outcome::Panicked(Panic::new("p")));
    }

    #[test]
    fn one_alone_passes_through_every_door() {
        for (outcome, sender) in all_outcomes(1, "e") {
            assert_eq!(Connected::new(when_any((sender,))).outcome(), outcome);
        }
        for (outcome, sender) in all_outcomes(1, "e") {
            assert_eq!(Connected::new(when_any(vec![sender])).outcome(), outcome);
        }
        assert_eq!(Connected::new(when_any(Vec::<Just<u8>>::new())).outcome(), Outcome::Stopped);
    }

    #[test]
    fn inline_children_after_the_winner_see_the_stop() {
        let seen = std::sync::Mutex::new(None);
        let late = read_env(|env: &Env| env.stop().reason()).then(|reason| {
            *seen.lock().unwrap() = reason;
            2
        });
        assert_eq!(Connected::new(when_any((just(1), late))).outcome(), Outcome::Value(1));
        assert_eq!(seen.into_inner().unwrap(), Some(StopReason::Lost));
    }

    #[test]
    fn a_stop_of_the_parent_reaches_all() {
        let sender = when_any((never::<u8>(), never::<u8>()));
        assert_eq!(Connected::with_env(sender, stopped_env()).outcome(), Outcome::Stopped);
        let source = StopSource::new();
        let gates = [Door::new(), Door::new()];
        let any = when_any(gates.iter().map(Gate::sender).collect::<Vec<_>>());
        let running = Connected::stoppable(any, &source).start();
        source.request_stop(StopReason::Shutdown);
        assert!(gates.iter().all(|gate| gate.asked_to_stop() == Some(StopReason::Shutdown)));
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn dropping_it_unstarted_drops_the_senders() {
        let count = DropCount::new();
        drop(Connected::new(when_any((just(count.token()), just(count.token())))));
        drop(Connected::new(when_any(vec![just(count.token())])));
        assert_eq!(count.dropped(), 3);
    }

    #[test]
    fn threads_may_race_to_be_first() {
        for _ in 0..if cfg!(miri) { 5 } else { 2_000 } {
            let gates = [Door::new(), Door::new()];
            let source = StopSource::new();
            let any = when_any((gates[0].sender(), gates[1].sender()));
            let running = Connected::stoppable(any, &source).start();
            std::thread::scope(|scope| {
                scope.spawn(|| gates[0].complete(Outcome::Value(0)));
                scope.spawn(|| source.request_stop(StopReason::Requested));
                gates[1].complete(Outcome::Value(1));
            });
            assert!(matches!(running.wait(), Outcome::Value(0 | 1) | Outcome::Stopped));
        }
    }
}
