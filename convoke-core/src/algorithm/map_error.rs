//! `map_error(f)`: changes the error.

use crate::{Completes, Env, ExecutorRef, Outcome, Receiver, Sender};

/// Calls a function with the error; its result is the new error.
///
/// - *Completes with* the value, unchanged, or what `f` makes of the error; stopped passes through.
///   If `f` panics: panicked.
/// - *If dropped* before it was started, `f` is dropped uncalled.
/// - *Runs on* the thread on which the sender before it completes.
///
/// ```
/// use convoke::prelude::*;
///
/// let failed = just_error::<u32, _>("no such file").map_error(str::len);
/// assert_eq!(sync_wait(failed), Outcome::Error(12));
/// ```
#[derive(Clone, Debug)]
#[must_use = "a sender does nothing until it is started"]
pub struct MapError<S, F> {
    sender: S,
    f: F,
}

impl<S, F> MapError<S, F> {
    pub(crate) fn new(sender: S, f: F) -> Self {
        Self { sender, f }
    }
}

#[diagnostic::do_not_recommend]
impl<S, F, T> Sender for MapError<S, F>
where
    S: Sender,
    F: FnOnce(S::Error) -> T + Send,
{
    type Value = S::Value;
    type Error = T;
    const COMPLETES: Completes = S::COMPLETES;
    type Operation<R: Receiver<S::Value, T>> = S::Operation<MapErrorReceiver<R, F>>;

    #[inline]
    fn connect<R: Receiver<S::Value, T>>(self, receiver: R) -> Self::Operation<R> {
        self.sender.connect(MapErrorReceiver { receiver, f: self.f })
    }

    fn completes_on(&self, env: &Env) -> Option<ExecutorRef> {
        self.sender.completes_on(env)
    }
}

/// Between the sender and the receiver of its changed error.
#[derive(Debug)]
pub struct MapErrorReceiver<R, F> {
    receiver: R,
    f: F,
}

#[diagnostic::do_not_recommend]
impl<V, E, T, R, F> Receiver<V, E> for MapErrorReceiver<R, F>
where
    R: Receiver<V, T>,
    F: FnOnce(E) -> T + Send,
{
    #[inline]
    fn complete(self, outcome: Outcome<V, E>) {
        self.receiver.complete(outcome.map_error(self.f));
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
    fn changes_the_error_and_lets_the_other_doors_pass() {
        for (outcome, sender) in all_doors(1, "e") {
            let expected = outcome.map_error(str::len);
            assert_eq!(Connected::new(sender.map_error(str::len)).start().outcome(), expected);
        }
    }

    #[test]
    fn a_panic_of_the_function_is_the_outcome() {
        let sender = just_error::<i32, _>(1).map_error(|_| -> u8 { panic!("boom") });
        assert_eq!(Connected::new(sender).start().outcome(), Outcome::Panicked(Panic::new("boom")));
    }

    #[test]
    fn a_stop_reaches_the_sender_before_the_start_and_while_it_runs() {
        let sender = never::<i32>().may_fail::<&str>().map_error(str::len);
        assert_eq!(Connected::with_env(sender, stopped_env()).start().outcome(), Outcome::Stopped);
        let source = StopSource::new();
        let gate = Gate::<i32, &str>::new();
        let running = Connected::stoppable(gate.sender().map_error(str::len), &source).start();
        source.request_stop(StopReason::Requested);
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn dropping_it_unstarted_calls_nothing() {
        let count = DropCount::new();
        let token = count.token();
        drop(Connected::new(
            just_error::<i32, _>(1).map_error(move |_: i32| -> i32 { unreachable!("{token:?}") }),
        ));
        assert_eq!(count.dropped(), 1);
    }
}
