//! `dematerialize()`: an outcome that is a value becomes the outcome.

use crate::{Completes, Env, ExecutorRef, Never, Outcome, Receiver, Sender};

/// Completes with the [`Outcome`] that the sender completes with as a value: what `materialize()` did, undone.
///
/// - *Completes with* the outcome that was the value; stopped and panicked of the sender itself pass through.
/// - *If dropped* before it was started, the sender is dropped.
/// - *Runs on* the thread on which the sender before it completes.
///
/// ```
/// use convoke::prelude::*;
///
/// let sender = just(Outcome::<u32, &str>::Error("no")).dematerialize();
/// assert_eq!(sync_wait(sender), Outcome::Error("no"));
/// ```
#[derive(Clone, Debug)]
#[must_use = "a sender does nothing until it is started"]
pub struct Dematerialize<S> {
    sender: S,
}

impl<S> Dematerialize<S> {
    pub(crate) fn new(sender: S) -> Self {
        Self { sender }
    }
}

#[diagnostic::do_not_recommend]
impl<S, V, E> Sender for Dematerialize<S>
where
    S: Sender<Value = Outcome<V, E>, Error = Never>,
{
    type Value = V;
    type Error = E;
    const COMPLETES: Completes = S::COMPLETES;
    type Operation<R: Receiver<V, E>> = S::Operation<DematerializeReceiver<R>>;

    #[inline]
    fn connect<R: Receiver<V, E>>(self, receiver: R) -> Self::Operation<R> {
        self.sender.connect(DematerializeReceiver { receiver })
    }

    fn completes_on(&self, env: &Env) -> Option<ExecutorRef> {
        self.sender.completes_on(env)
    }
}

/// Between the sender of an outcome as a value and the receiver of that outcome.
#[derive(Debug)]
pub struct DematerializeReceiver<R> {
    receiver: R,
}

#[diagnostic::do_not_recommend]
impl<V, E, R: Receiver<V, E>> Receiver<Outcome<V, E>, Never> for DematerializeReceiver<R> {
    #[inline]
    fn complete(self, outcome: Outcome<Outcome<V, E>, Never>) {
        self.receiver.complete(match outcome {
            Outcome::Value(outcome) => outcome,
            Outcome::Error(never) => never.absurd(),
            Outcome::Stopped => Outcome::Stopped,
            Outcome::Panicked(panic) => Outcome::Panicked(panic),
        });
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
    fn the_outcome_in_the_value_is_the_outcome() {
        let twice = all_doors(1, "e").into_iter().zip(all_doors(1, "e"));
        for ((expected, _), (outcome, _)) in twice {
            assert_eq!(Connected::new(just(outcome).dematerialize()).start().outcome(), expected);
        }
    }

    #[test]
    fn a_panic_of_the_sender_itself_passes() {
        let sender = just_from(|| -> Outcome<i32, &str> { panic!("boom") }).dematerialize();
        assert_eq!(Connected::new(sender).start().outcome(), Outcome::Panicked(Panic::new("boom")));
    }

    #[test]
    fn it_undoes_materialize_for_every_door() {
        for (outcome, sender) in all_doors(1, "e") {
            assert_eq!(Connected::new(sender.materialize().dematerialize()).start().outcome(), outcome);
        }
    }

    #[test]
    fn a_stop_before_the_start_and_while_it_runs_reaches_the_sender() {
        let sender = never::<Outcome<i32, &str>>().dematerialize();
        assert_eq!(Connected::with_env(sender, stopped_env()).start().outcome(), Outcome::Stopped);
        let source = StopSource::new();
        let gate = Gate::<Outcome<i32, &str>>::new();
        let running = Connected::stoppable(gate.sender().dematerialize(), &source).start();
        assert!(!running.is_complete());
        source.request_stop(StopReason::Requested);
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn dropping_it_unstarted_drops_the_sender() {
        let count = DropCount::new();
        drop(Connected::new(Gate::<Outcome<i32, &str>>::new().holding(count.token()).dematerialize()));
        assert_eq!(count.dropped(), 1);
    }
}
