//! `stop_when(trigger)`: stops the work when another sender completes.

#![allow(unsafe_code)]

use super::gather::{
    Accept, Gather, GatherChild, GatherParent, Gathering, ResultSlot, ResultWriter, Starter, together,
};
use crate::{Completes, Receiver, Sender};
use convoke_core::raw::Slot;
use convoke_core::{Outcome, Panic, StopReason};

/// Runs a sender together with a trigger. When the trigger completes, the sender is asked to stop; when the
/// sender completes, the trigger is. Both are awaited.
///
/// It does not matter whether the trigger completes with a value, with an error or as stopped. A sender that
/// ignores its stop token runs to its own end.
///
/// - *Completes with* the outcome of the sender. If the trigger panics: panicked, unless the sender has
///   panicked too.
/// - *If dropped* before it starts, both are dropped.
/// - *Runs on* the executors of both. The thread that starts it starts the sender first, then the trigger.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// assert_eq!(sync_wait(never::<u32>().stop_when(just("enough"))), Outcome::Stopped);
/// assert_eq!(sync_wait(just(7).stop_when(never::<()>())), Outcome::Value(7));
/// ```
#[derive(Clone, Debug)]
#[must_use = "a sender does nothing until it is started"]
pub struct StopWhen<S, T> {
    sender: S,
    trigger: T,
}

impl<S, T> StopWhen<S, T> {
    pub(crate) fn new(sender: S, trigger: T) -> Self {
        Self { sender, trigger }
    }
}

// SAFETY: rules 1 and 2 of `Sender`: `Gathering` completes the receiver last, when both children have
// completed. Rule 3: `COMPLETES` is that of the group.
#[diagnostic::do_not_recommend]
unsafe impl<S, T> Sender for StopWhen<S, T>
where
    S: Sender<Value: Send, Error: Send>,
    T: Sender,
{
    type Value = S::Value;
    type Error = S::Error;
    const COMPLETES: Completes = <Self as Gather>::COMPLETES;
    type Operation<R: Receiver<S::Value, S::Error>> = Gathering<Self, R>;

    #[inline]
    fn connect<R: Receiver<S::Value, S::Error>>(self, receiver: R) -> Gathering<Self, R> {
        Gathering::new(self, receiver)
    }
}

/// The stored results of the two.
#[derive(Debug)]
pub struct StopWhenOutcomes<V, E> {
    outcome: ResultSlot<Outcome<V, E>>,
    trigger_panicked: ResultSlot<Panic>,
}

/// The index of the sender: the writer of its outcome.
#[derive(Debug)]
pub struct WorkIndex<V, E>(ResultWriter<Outcome<V, E>>);

/// The index of the trigger: the writer of its panic.
#[derive(Debug)]
pub struct TriggerIndex(ResultWriter<Panic>);

impl<S, T> Accept<WorkIndex<S::Value, S::Error>, S::Value, S::Error> for StopWhen<S, T>
where
    S: Sender<Value: Send, Error: Send>,
    T: Sender,
{
    #[inline]
    fn accept(
        _: &Self::Kept,
        WorkIndex(writer): WorkIndex<S::Value, S::Error>,
        outcome: Outcome<S::Value, S::Error>,
    ) -> Option<StopReason> {
        writer.put(outcome);
        Some(StopReason::Abandoned)
    }
}

impl<S, T> Accept<TriggerIndex, T::Value, T::Error> for StopWhen<S, T>
where
    S: Sender<Value: Send, Error: Send>,
    T: Sender,
{
    #[inline]
    fn accept(
        _: &Self::Kept,
        TriggerIndex(writer): TriggerIndex,
        outcome: Outcome<T::Value, T::Error>,
    ) -> Option<StopReason> {
        let panic = match outcome {
            Outcome::Panicked(panic) => Some(panic),
            useless => Panic::of_drop(useless),
        };
        if let Some(panic) = panic {
            writer.put(panic);
        }
        Some(StopReason::Requested)
    }
}

// SAFETY: rules 1 and 2 of `Gather`: each of the two slots, and the writer of each result, is used once.
unsafe impl<S, T> Gather for StopWhen<S, T>
where
    S: Sender<Value: Send, Error: Send>,
    T: Sender,
{
    type Value = S::Value;
    type Error = S::Error;
    const COMPLETES: Completes = together(S::COMPLETES.and(T::COMPLETES));
    type Kept = StopWhenOutcomes<S::Value, S::Error>;
    type Slots<R: Receiver<S::Value, S::Error>> = (
        Slot<S::Operation<GatherChild<Self, R, WorkIndex<S::Value, S::Error>>>>,
        Slot<T::Operation<GatherChild<Self, R, TriggerIndex>>>,
    );

    #[inline]
    fn count(&self) -> usize {
        2
    }

    #[inline]
    fn kept(&self) -> Self::Kept {
        StopWhenOutcomes { outcome: ResultSlot::new(), trigger_panicked: ResultSlot::new() }
    }

    #[inline]
    fn slots<R: Receiver<S::Value, S::Error>>(&self) -> Self::Slots<R> {
        (Slot::new(), Slot::new())
    }

    #[inline]
    fn connect<R: Receiver<S::Value, S::Error>>(
        self,
        (work, trigger): &Self::Slots<R>,
        kept: &Self::Kept,
        parent: GatherParent<Self, R>,
    ) {
        parent.connect(work, self.sender, WorkIndex(ResultWriter::of(&kept.outcome)));
        parent.connect(trigger, self.trigger, TriggerIndex(ResultWriter::of(&kept.trigger_panicked)));
    }

    #[inline]
    fn start<R: Receiver<S::Value, S::Error>>((work, trigger): &Self::Slots<R>, starter: &Starter<'_>) {
        starter.start(work);
        starter.start(trigger);
    }

    #[inline]
    fn outcome(kept: &mut Self::Kept) -> Outcome<S::Value, S::Error> {
        match (kept.outcome.take(), kept.trigger_panicked.take()) {
            (Some(Outcome::Panicked(own)), _) => Outcome::Panicked(own),
            (_, Some(panic)) => Outcome::Panicked(panic),
            (outcome, None) => outcome.expect("the sender stores its outcome before it arrives"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, DropCount, Gate, all_outcomes, stopped_env};

    type Door = Gate<i32, &'static str>;

    #[test]
    fn the_outcome_is_that_of_the_sender() {
        for (outcome, sender) in all_outcomes(1, "e") {
            assert_eq!(Connected::new(sender.stop_when(never::<()>())).start().outcome(), outcome);
        }
    }

    #[test]
    fn any_door_of_the_trigger_stops_the_sender_and_a_panic_is_passed_on() {
        for (door, trigger) in all_outcomes(1, "e") {
            let work = Door::new();
            let outcome = Connected::new(work.sender().stop_when(trigger)).start().outcome();
            assert_eq!(work.asked_to_stop(), Some(StopReason::Requested));
            let passed_on = if door.is_panicked() { door } else { Outcome::Stopped };
            assert_eq!(outcome, passed_on);
        }
    }

    #[test]
    fn both_are_awaited() {
        let (work, trigger) = (Door::new(), Door::new());
        let running = Connected::new(work.deaf().stop_when(trigger.deaf())).start();
        trigger.complete(Outcome::Value(0));
        assert!(!running.is_complete());
        work.complete(Outcome::Value(1));
        assert_eq!(running.outcome(), Outcome::Value(1));
        let running = Connected::new(work.sender().stop_when(trigger.deaf())).start();
        work.complete(Outcome::Error("e"));
        assert!(!running.is_complete());
        trigger.complete(Outcome::Stopped);
        assert_eq!(running.outcome(), Outcome::Error("e"));
    }

    #[test]
    fn the_trigger_is_stopped_when_the_sender_is_done() {
        let (work, trigger) = (Door::new(), Door::new());
        let running = Connected::new(work.sender().stop_when(trigger.sender())).start();
        work.complete(Outcome::Value(1));
        assert_eq!(trigger.asked_to_stop(), Some(StopReason::Abandoned));
        assert_eq!(running.outcome(), Outcome::Value(1));
    }

    #[test]
    fn a_panic_of_the_sender_outweighs_that_of_the_trigger() {
        let (work, trigger) = (Door::new(), Door::new());
        let running = Connected::new(work.deaf().stop_when(trigger.deaf())).start();
        trigger.complete(Outcome::Panicked(Panic::new("trigger")));
        work.complete(Outcome::Panicked(Panic::new("work")));
        assert_eq!(running.outcome(), Outcome::Panicked(Panic::new("work")));
    }

    #[test]
    fn a_stop_of_the_parent_reaches_both() {
        let sender = never::<u8>().stop_when(never::<u8>());
        assert_eq!(Connected::with_env(sender, stopped_env()).start().outcome(), Outcome::Stopped);
        let source = StopSource::new();
        let running = Connected::stoppable(never::<u8>().stop_when(never::<u8>()), &source).start();
        assert!(!running.is_complete());
        source.request_stop(StopReason::Requested);
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn dropping_it_unstarted_drops_both() {
        let count = DropCount::new();
        drop(Connected::new(just(count.token()).stop_when(just(count.token()))));
        assert_eq!(count.dropped(), 2);
    }
}
