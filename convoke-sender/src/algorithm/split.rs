//! `split()`: shares one result among several consumers.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr::NonNull;

use super::split_list::Waiter;
pub use super::split_state::Shareable;
use super::split_state::{Leaving, Shared};
use crate::operation::Handshake;
use crate::{OutcomeOf, Receiver, Sender};
use convoke_core::raw::Operation;
use convoke_core::raw::sync::Arc;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::{OnStop, RawCallback};
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
    shared: Arc<Shared<S>>,
}

impl<S: Shareable> Split<S> {
    pub(crate) fn new(sender: S) -> Self {
        Self { shared: Shared::new(sender) }
    }
}

impl<S: Shareable> Clone for Split<S> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

// SAFETY: rules 1 and 2 of `Sender`: the second to arrive at the rendezvous completes the receiver last. Its
// waiter is out of the list and its callback is removed by then. Rule 3: `COMPLETES` is the default,
// `Anywhere`.
#[diagnostic::do_not_recommend]
unsafe impl<S: Shareable> Sender for Split<S> {
    type Value = S::Value;
    type Error = S::Error;
    type Operation<R: Receiver<S::Value, S::Error>> = SplitOperation<S, R>;

    fn connect<R: Receiver<S::Value, S::Error>>(self, receiver: R) -> SplitOperation<S, R> {
        SplitOperation {
            waiter: Waiter::new(SplitOperation::<S, R>::end),
            parts: UnsafeCell::new(Some((self.shared, receiver))),
            outcome: UnsafeCell::new(None),
            callback: UnsafeCell::new(None),
            rendezvous: Handshake::new(),
            _pinned: PhantomPinned,
        }
    }
}

/// The operation of one consumer.
///
/// 1. The thread that removes the consumer's waiter from the shared list ends the wait: the completion of the
///    work, or the consumer's own stop request. Only this thread writes `outcome`, and then arrives at the
///    rendezvous.
/// 2. `start` arrives there too, as its last step. The second to arrive is the only user of everything.
/// 3. Before that, only `start` uses `parts` and `callback`.
#[repr(C)]
pub struct SplitOperation<S: Shareable, R> {
    // First, so that a pointer to it is a pointer to the operation.
    waiter: Waiter<S>,
    parts: UnsafeCell<Option<(Arc<Shared<S>>, R)>>,
    outcome: UnsafeCell<Option<OutcomeOf<S>>>,
    callback: UnsafeCell<Option<RawCallback<Leave<S>>>>,
    rendezvous: Handshake,
    _pinned: PhantomPinned,
}

// SAFETY: rules 1 to 3 give each part to one thread at a time, and all of them are `Send`, by the bounds of
// `Split`.
unsafe impl<S: Shareable, R: Send> Send for SplitOperation<S, R> {}
// SAFETY: rules 1 to 3 give each part to one thread at a time; the waiter's links are guarded by the lock of
// the list.
unsafe impl<S: Shareable, R: Send> Sync for SplitOperation<S, R> {}

impl<S, R> Operation for SplitOperation<S, R>
where
    S: Shareable,
    R: Receiver<S::Value, S::Error>,
{
    unsafe fn start(self: Pin<&mut Self>) {
        let this = NonNull::from(self.as_ref().get_ref());
        // SAFETY: rule 3: the parts are ours until `arrive`, which is last. The operation is pinned, so the
        // list may point to it. The environment of the receiver outlives the callback, which the second to
        // arrive removes.
        unsafe {
            let Some((shared, receiver)) = &*this.as_ref().parts.get_const() else { return };
            let env = receiver.env();
            let waiter = this.cast::<Waiter<S>>();
            if env.stop().stop_requested() && !shared.is_done() {
                Self::end(waiter, Outcome::Stopped);
            } else if shared.wait(waiter) {
                let callback = (*this.as_ref().callback.get())
                    .insert(RawCallback::new(Leave { shared: shared.clone(), waiter }));
                callback.register(env.stop());
                Shared::begin_once(shared, env);
            } else {
                Self::end(waiter, shared.outcome());
            }
            Self::arrive(this);
        }
    }
}

impl<S, R> SplitOperation<S, R>
where
    S: Shareable,
    R: Receiver<S::Value, S::Error>,
{
    /// Stores the outcome and arrives.
    ///
    /// # Safety
    /// Called once, with the waiter of a live operation, by the thread that ends the wait (rule 1).
    unsafe fn end(waiter: NonNull<Waiter<S>>, outcome: OutcomeOf<S>) {
        let this = waiter.cast::<Self>();
        // SAFETY: the waiter is the first field of the operation (`repr(C)`), and the pointer was made from
        // the whole operation. Rule 1: the outcome is ours to write.
        unsafe {
            *this.as_ref().outcome.get() = Some(outcome);
            Self::arrive(this);
        }
    }

    /// Arrives at the rendezvous; the second to arrive completes the receiver.
    ///
    /// # Safety
    /// Called once by `start` and once by `end`. Neither touches anything afterwards.
    unsafe fn arrive(this: NonNull<Self>) {
        // SAFETY: the operation is alive until both have arrived; rule 2: the second is the only user.
        unsafe {
            let this = this.as_ref();
            if this.rendezvous.arrive() {
                *this.callback.get() = None;
                if let (Some((shared, receiver)), Some(outcome)) =
                    ((*this.parts.get()).take(), (*this.outcome.get()).take())
                {
                    drop(shared);
                    receiver.complete(outcome);
                }
            }
        }
    }
}

/// The stop callback of a consumer: it leaves, unless the work has ended its wait already, or it is the last
/// one.
struct Leave<S: Shareable> {
    shared: Arc<Shared<S>>,
    waiter: NonNull<Waiter<S>>,
}

// SAFETY: the shared state is `Sync`, and the waiter is touched under its lock.
unsafe impl<S: Shareable> Send for Leave<S> {}

impl<S: Shareable> OnStop for Leave<S> {
    fn on_stop(self, _: StopReason) {
        // SAFETY: the operation is alive: it removes the callback before it ends, and removal waits for this
        // call. The callback was registered after the waiter was put on the list.
        match unsafe { self.shared.leave(self.waiter) } {
            Leaving::Gone => {}
            // SAFETY: rule 1 of the operation: this call removed the waiter from the list.
            Leaving::Left => unsafe { Waiter::end(self.waiter, Outcome::Stopped) },
            Leaving::IsLast => self.shared.abandon(),
        }
    }
}

impl<S: Shareable> fmt::Debug for Split<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Split").finish_non_exhaustive()
    }
}

impl<S: Shareable, R> fmt::Debug for SplitOperation<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SplitOperation").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use crate::prelude::*;
    use crate::testing::{ByHand, Connected, DropCount, Gate, all_doors, stopped_env};
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
        for (outcome, sender) in all_doors(1, "e") {
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
        let consumers = if cfg!(miri) { 100 } else { 20_000 };
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
