//! `materialize()`: the outcome becomes the value.

use crate::{Completes, Env, Never, Outcome, Receiver, Sender};

/// Completes with the outcome itself, whichever of the four doors it came through. The way back is `dematerialize()`.
///
/// - *Completes with* the [`Outcome`] as a value, always; a panic too.
/// - *If dropped* before it was started, the sender is dropped.
/// - *Runs on* the thread on which the sender before it completes.
///
/// ```
/// use convoke::prelude::*;
///
/// assert_eq!(sync_wait(just_stopped::<u32>().materialize()), Outcome::Value(Outcome::Stopped));
/// ```
#[derive(Clone, Debug)]
#[must_use = "a sender does nothing until it is started"]
pub struct Materialize<S> {
    sender: S,
}

impl<S> Materialize<S> {
    pub(crate) fn new(sender: S) -> Self {
        Self { sender }
    }
}

// `completes_on` is not forwarded: it speaks of values, and ours may have come through any door, from anywhere.
#[diagnostic::do_not_recommend]
impl<S: Sender> Sender for Materialize<S> {
    type Value = Outcome<S::Value, S::Error>;
    type Error = Never;
    const COMPLETES: Completes = S::COMPLETES;
    type Operation<R: Receiver<Self::Value, Never>> = S::Operation<MaterializeReceiver<R>>;

    #[inline]
    fn connect<R: Receiver<Self::Value, Never>>(self, receiver: R) -> Self::Operation<R> {
        self.sender.connect(MaterializeReceiver { receiver })
    }
}

/// Between the sender and the receiver of its outcome as a value.
#[derive(Debug)]
pub struct MaterializeReceiver<R> {
    receiver: R,
}

#[diagnostic::do_not_recommend]
impl<V, E, R: Receiver<Outcome<V, E>, Never>> Receiver<V, E> for MaterializeReceiver<R> {
    #[inline]
    fn complete(self, outcome: Outcome<V, E>) {
        self.receiver.complete(Outcome::Value(outcome));
    }

    #[inline]
    fn env(&self) -> &Env {
        self.receiver.env()
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, DropCount, Gate, all_doors, stopped_env};

    #[test]
    fn every_door_becomes_a_value() {
        for (outcome, sender) in all_doors(1, "e") {
            assert_eq!(Connected::new(sender.materialize()).start().outcome(), Outcome::Value(outcome));
        }
    }

    #[test]
    fn a_stop_request_before_the_start_and_while_it_runs_becomes_a_value() {
        let stopped = Outcome::Value(Outcome::Stopped);
        let sender = never::<i32>().materialize();
        assert_eq!(Connected::with_env(sender, stopped_env()).start().outcome(), stopped);
        let source = StopSource::new();
        let gate = Gate::<i32>::new();
        let running = Connected::stoppable(gate.sender().materialize(), &source).start();
        assert!(!running.is_complete());
        source.request_stop(StopReason::Requested);
        assert_eq!(running.outcome(), stopped);
    }

    #[test]
    fn dropping_it_unstarted_drops_the_sender() {
        let count = DropCount::new();
        drop(Connected::new(Gate::<i32>::new().holding(count.token()).materialize()));
        assert_eq!(count.dropped(), 1);
    }
}
