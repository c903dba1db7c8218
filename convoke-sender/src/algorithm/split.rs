//! `split()`: shares one result among several consumers.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::pin::Pin;

use super::split_list::{Node, Waiter};
pub use super::split_state::Shareable;
use super::split_state::{Leaving, SplitState};
use crate::operation::{Completion, Listening, Pending, Starting, Until};
use crate::{OutcomeOf, Receiver, Sender};
use convoke_core::raw::FrameArc;
use convoke_core::raw::OnStop;
use convoke_core::{Outcome, StopReason};

/// Work that runs once and whose result goes to every clone of this sender, its consumers.
///
/// The first consumer that starts also starts the work, which gets the executor, allocator and locals of that
/// consumer. A consumer that is stopped leaves, and the work continues for the others that wait. The last of
/// them does not leave: it asks the work to stop, and completes when the work has. So the work is never left
/// running alone; clones that start later get the outcome of the stopped work.
///
/// - *Completes with* a clone of the value or error of the work, or stopped. If the work panicked: panicked;
///   the first consumer gets the payload, the others its message. Stopped if the consumer itself is stopped
///   before.
/// - *If dropped* before it starts, there is one clone less. Dropping all drops the work unstarted, or its
///   result. It borrows nothing, because the result may be dropped after the last consumer has completed.
/// - *Runs on* the thread of the first consumer; consumers complete on the thread on which the work
///   completes, late ones at once.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let answer = just_from(|| 6 * 7).split();
/// let both = when_all((answer.clone(), answer.then(|n| n + 1)));
/// assert_eq!(sync_wait(both), Outcome::Value((42, 43)));
/// ```
#[must_use = "a sender does nothing until it is started"]
pub struct Split<S: Shareable> {
    shared: FrameArc<SplitState<S>>,
}

impl<S: Shareable> Split<S> {
    pub(crate) fn new(sender: S) -> Self {
        Self { shared: SplitState::new(sender) }
    }
}

impl<S: Shareable> Clone for Split<S> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

// SAFETY: rules 1 and 2 of `Sender`: `Pending` completes the receiver last. The consumer is out of the list
// and its callback is removed by then. Rule 3: `COMPLETES` is the default, `Anywhere`.
#[diagnostic::do_not_recommend]
unsafe impl<S: Shareable> Sender for Split<S> {
    type Value = S::Value;
    type Error = S::Error;
    type Operation<R: Receiver<S::Value, S::Error>> = Pending<Consumer<S, R>>;

    fn connect<R: Receiver<S::Value, S::Error>>(self, receiver: R) -> Self::Operation<R> {
        let consumer =
            Consumer { waiter: Waiter::new(), shared: Cell::new(Some(self.shared)), _receiver: PhantomData };
        Pending::new(consumer, receiver)
    }
}

/// The wait of one consumer. The thread that removes its waiter from the shared list gets its completion, and
/// ends the wait: the completion of the work, or the consumer's own stop request.
pub struct Consumer<S: Shareable, R> {
    waiter: Waiter<S>,
    /// Taken when the wait has ended, and out of here while it begins.
    shared: Cell<Option<FrameArc<SplitState<S>>>>,
    _receiver: PhantomData<fn(R)>,
}

impl<S: Shareable, R> Consumer<S, R> {
    fn waiter(self: Pin<&Self>) -> Node<S> {
        // SAFETY: the waiter is pinned with the consumer, and not moved from it. The list uses the address
        // while it has the completion of this operation, and the stop callback, which is removed before the
        // operation ends, uses it while it runs.
        unsafe { self.map_unchecked(|consumer| &consumer.waiter).node() }
    }
}

impl<S, R> Until for Consumer<S, R>
where
    S: Shareable,
    R: Receiver<S::Value, S::Error>,
{
    type Given = S::Value;
    type GivenError = S::Error;
    type Value = S::Value;
    type Error = S::Error;
    type Receiver = R;
    type Listening = Listening<LeaveSplit<S>>;

    fn begin(self: Pin<&Self>, start: &Starting<'_, Self>, completion: Completion<S::Value, S::Error>) {
        let Some(shared) = self.shared.take() else { return };
        self.wait_at(&shared, start, completion);
        self.shared.set(Some(shared));
    }

    fn finish(self: Pin<&mut Self>, outcome: OutcomeOf<S>) -> OutcomeOf<S> {
        drop(self.shared.take());
        outcome
    }
}

impl<S, R> Consumer<S, R>
where
    S: Shareable,
    R: Receiver<S::Value, S::Error>,
{
    /// Begins to wait for the work, and starts it if it is not running.
    fn wait_at(
        self: Pin<&Self>,
        shared: &FrameArc<SplitState<S>>,
        start: &Starting<'_, Self>,
        completion: Completion<S::Value, S::Error>,
    ) {
        let (waiter, env) = (self.waiter(), start.env());
        if env.stop().stop_requested() && !shared.is_done() {
            return completion.stopped();
        }
        match shared.wait(waiter, completion) {
            Ok(()) => {
                start.listen(LeaveSplit { shared: shared.clone(), waiter });
                SplitState::begin_once(shared, env);
            }
            Err(completion) => completion.complete(shared.outcome()),
        }
    }
}

/// The stop callback of a consumer: it leaves, unless the work has ended its wait already, or it is the last
/// one.
pub struct LeaveSplit<S: Shareable> {
    shared: FrameArc<SplitState<S>>,
    waiter: Node<S>,
}

impl<S: Shareable> OnStop for LeaveSplit<S> {
    fn on_stop(self, _: StopReason) {
        match self.shared.leave(self.waiter) {
            Leaving::Gone => {}
            Leaving::Left(completion) => completion.complete(Outcome::Stopped),
            Leaving::IsLast => self.shared.abandon(),
        }
    }
}

impl<S: Shareable> fmt::Debug for Split<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Split").finish_non_exhaustive()
    }
}

impl<S: Shareable, R> fmt::Debug for Consumer<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").finish_non_exhaustive()
    }
}

impl<S: Shareable> fmt::Debug for LeaveSplit<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaveSplit").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use crate::prelude::*;
    use crate::testing::{ByHand, Connected, DropCount, Gate, all_outcomes, stopped_env};
    use convoke_core::env::{Changes, Local};

    type Door = Gate<i32, &'static str>;

    #[test]
    fn the_work_is_done_once_and_every_consumer_has_its_outcome() {
        static RUNS: AtomicUsize = AtomicUsize::new(0);
        let split = just_from(|| RUNS.fetch_add(1, Ordering::Relaxed)).split();
        for consumer in [split.clone(), split.clone(), split] {
            assert_eq!(Connected::new(consumer).start().outcome(), Outcome::Value(0));
        }
        assert_eq!(RUNS.load(Ordering::Relaxed), 1);
        for (outcome, sender) in all_outcomes(1, "e") {
            let split = sender.split();
            assert_eq!(Connected::new(split.clone()).start().outcome(), outcome);
            assert_eq!(Connected::new(split).start().outcome(), outcome);
        }
    }

    #[test]
    fn consumers_wait_for_the_work_and_late_ones_do_not() {
        let gate = Door::new();
        let split = gate.sender().split();
        let running = [split.clone(), split.clone()].map(|consumer| Connected::new(consumer).start());
        assert!(running.iter().all(|consumer| !consumer.is_complete()));
        gate.complete(Outcome::Value(5));
        for consumer in running {
            assert_eq!(consumer.outcome(), Outcome::Value(5));
        }
        assert_eq!(Connected::with_env(split, stopped_env()).start().outcome(), Outcome::Value(5));
    }

    #[test]
    fn the_first_consumer_of_a_panic_gets_the_payload_and_the_others_its_message() {
        let split = just_from(|| std::panic::panic_any(7_u8)).then(|()| 1).split();
        let outcome = |consumer| match Connected::new(consumer).start().outcome() {
            Outcome::Panicked(panic) => panic,
            other => panic!("{other:?}"),
        };
        assert_eq!(outcome(split.clone()).downcast_ref(), Some(&7_u8));
        assert_eq!(outcome(split).message(), "a panic whose payload is not text");
    }

    #[test]
    fn a_clone_that_panics_is_the_outcome_of_its_consumer_alone() {
        #[derive(Debug)]
        struct Once(AtomicUsize);
        impl Clone for Once {
            fn clone(&self) -> Self {
                assert_eq!(self.0.fetch_add(1, Ordering::Relaxed), 1, "only the second clone is good");
                Self(AtomicUsize::new(0))
            }
        }
        let split = just(Once(AtomicUsize::new(0))).split();
        assert!(Connected::new(split.clone()).start().outcome().is_panicked());
        assert!(Connected::new(split).start().outcome().is_value());
    }

    #[test]
    fn a_consumer_that_stops_leaves_the_others_alone() {
        let (gate, source) = (Door::new(), StopSource::new());
        let split = gate.sender().split();
        let first = Connected::stoppable(split.clone(), &source).start();
        let second = Connected::new(split).start();
        source.request_stop(StopReason::Requested);
        assert_eq!(first.outcome(), Outcome::Stopped);
        assert_eq!(gate.asked_to_stop(), None);
        gate.complete(Outcome::Value(1));
        assert_eq!(second.outcome(), Outcome::Value(1));
    }

    #[test]
    fn a_consumer_stopped_before_its_start_starts_nothing() {
        let split = just_from(|| -> u8 { unreachable!("the only consumer was stopped before") }).split();
        assert_eq!(Connected::with_env(split, stopped_env()).start().outcome(), Outcome::Stopped);
    }

    #[test]
    fn the_last_consumer_stops_the_work_and_later_ones_get_that_outcome() {
        let (gate, source) = (Door::new(), StopSource::new());
        let split = gate.sender().split();
        let running = Connected::stoppable(split.clone(), &source).start();
        source.request_stop(StopReason::Requested);
        assert_eq!(gate.asked_to_stop(), Some(StopReason::Abandoned));
        assert_eq!(running.outcome(), Outcome::Stopped);
        assert_eq!(Connected::new(split).start().outcome(), Outcome::Stopped);
    }

    #[test]
    fn the_last_consumer_waits_for_work_that_takes_its_time_to_stop() {
        let (gate, source, count) = (Gate::<i32>::new(), StopSource::new(), DropCount::new());
        let token = count.token();
        let split = gate.deaf().then(move |v| (v, drop(token)).0).split();
        let running = Connected::stoppable(split, &source).start();
        source.request_stop(StopReason::Requested);
        assert!(!running.is_complete(), "the work has not ended yet");
        gate.complete(Outcome::Value(1));
        assert_eq!((running.outcome(), count.dropped()), (Outcome::Value(1), 1));
    }

    #[test]
    fn the_work_has_the_surroundings_of_the_first_consumer() {
        static WHO: Local<&str> = Local::inherited("who");
        let by_hand = ByHand::new();
        let split = read_env(|env: &Env| (env.local(&WHO).copied(), env.executor().clone())).split();
        let env = Env::from(by_hand.clone()).with(Changes::new().local(&WHO, "first"));
        let expected = || Outcome::Value((Some("first"), ExecutorRef::new(by_hand.clone())));
        assert_eq!(Connected::with_env(split.clone(), env).start().outcome(), expected());
        assert_eq!(Connected::new(split).start().outcome(), expected());
    }

    #[test]
    fn dropping_all_unstarted_drops_the_work() {
        let count = DropCount::new();
        let token = count.token();
        let split = just_from(move || drop(token)).split();
        drop(Connected::new(split.clone()));
        assert_eq!(count.dropped(), 0);
        drop(split);
        assert_eq!(count.dropped(), 1);
    }

    /// Once, each consumer that left was searched for among all the others: n consumers took n * n / 2 steps.
    #[test]
    fn many_consumers_leave_in_steps_proportional_to_their_number() {
        let consumers = if cfg!(miri) { 40 } else { 20_000 };
        let gate = Door::new();
        let split = gate.sender().split();
        let source = StopSource::new();
        let leaving: Vec<_> =
            (0..consumers).map(|_| Connected::stoppable(split.clone(), &source).start()).collect();
        let staying: Vec<_> = (0..consumers).map(|_| Connected::new(split.clone()).start()).collect();
        source.request_stop(StopReason::Requested);
        assert!(leaving.into_iter().all(|consumer| consumer.outcome() == Outcome::Stopped));
        gate.complete(Outcome::Value(3));
        assert!(staying.into_iter().all(|consumer| consumer.outcome() == Outcome::Value(3)));
        let steps = split.shared.steps();
        assert!(
            steps <= 5 * 2 * consumers,
            "{steps} steps for {consumers} that leave, and as many that stay"
        );
    }

    #[test]
    fn a_consumer_that_is_stopped_while_results_are_handed_out_has_the_result() {
        let (gate, source) = (Door::new(), StopSource::new());
        let split = gate.sender().split();
        let stops_the_other = source.clone();
        let first = split.clone().then(move |v| (stops_the_other.request_stop(StopReason::Requested), v).1);
        let first = Connected::new(first).start();
        let second = Connected::stoppable(split.clone(), &source).start();
        let third = Connected::new(split).start();
        gate.complete(Outcome::Value(4));
        for consumer in [second, third] {
            assert_eq!(consumer.outcome(), Outcome::Value(4));
        }
        assert_eq!(first.outcome(), Outcome::Value(4));
    }

    #[test]
    fn threads_may_start_stop_and_complete_in_any_order() {
        for _ in 0..if cfg!(miri) { 5 } else { 1_000 } {
            let (gate, source) = (Door::new(), StopSource::new());
            let split = gate.deaf().split();
            let (mine, theirs) = (split.clone(), split);
            let gate = &gate;
            std::thread::scope(|scope| {
                let other = scope.spawn(move || Connected::new(theirs).start().wait());
                scope.spawn(|| source.request_stop(StopReason::Requested));
                let consumer = Connected::stoppable(mine, &source).start();
                while !gate.complete(Outcome::Value(9)) {
                    std::thread::yield_now();
                }
                assert!(matches!(consumer.wait(), Outcome::Value(9) | Outcome::Stopped));
                assert_eq!(other.join().unwrap(), Outcome::Value(9));
            });
        }
    }
}
