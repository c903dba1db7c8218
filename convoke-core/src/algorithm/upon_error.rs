//! `upon_error(f)`: turns an error into a value.

use crate::{Completes, Env, Never, Outcome, Receiver, Sender};

/// Calls a function with the error; its result is the value. What comes out cannot fail any more.
///
/// - *Completes with* the value, unchanged, or what `f` makes of the error; stopped passes through.
///   If `f` panics: panicked.
/// - *If dropped* before it was started, `f` is dropped uncalled.
/// - *Runs on* the thread on which the sender before it completes.
///
/// ```
/// use convoke::prelude::*;
///
/// let length = just_error::<usize, _>("no such file").upon_error(str::len);
/// assert_eq!(sync_wait(length), Outcome::Value(12));
/// ```
#[derive(Clone, Debug)]
#[must_use = "a sender does nothing until it is started"]
pub struct UponError<S, F> {
    sender: S,
    f: F,
}

impl<S, F> UponError<S, F> {
    pub(crate) fn new(sender: S, f: F) -> Self {
        Self { sender, f }
    }
}

// `completes_on` is not forwarded: it speaks of values, and ours may have been an error that came home elsewhere.
#[diagnostic::do_not_recommend]
impl<S, F> Sender for UponError<S, F>
where
    S: Sender,
    F: FnOnce(S::Error) -> S::Value + Send,
{
    type Value = S::Value;
    type Error = Never;
    const COMPLETES: Completes = S::COMPLETES;
    type Operation<R: Receiver<S::Value, Never>> = S::Operation<UponErrorReceiver<R, F>>;

    #[inline]
    fn connect<R: Receiver<S::Value, Never>>(self, receiver: R) -> Self::Operation<R> {
        self.sender.connect(UponErrorReceiver { receiver, f: self.f })
    }
}

/// Between the sender and the receiver of values only.
#[derive(Debug)]
pub struct UponErrorReceiver<R, F> {
    receiver: R,
    f: F,
}

#[diagnostic::do_not_recommend]
impl<V, E, R, F> Receiver<V, E> for UponErrorReceiver<R, F>
where
    R: Receiver<V, Never>,
    F: FnOnce(E) -> V + Send,
{
    #[inline]
    fn complete(self, outcome: Outcome<V, E>) {
        self.receiver.complete(outcome.or_else(|error| Outcome::Value((self.f)(error))));
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
    fn turns_an_error_into_a_value_and_lets_the_other_doors_pass() {
        for (outcome, sender) in all_doors(1, "four") {
            let expected = match outcome {
                Outcome::Error(_) => Outcome::Value(4),
                other => other.map_error(|_| unreachable!()),
            };
            assert_eq!(Connected::new(sender.upon_error(str::len)).start().outcome(), expected);
        }
    }

    #[test]
    fn a_panic_of_the_function_is_the_outcome() {
        let sender = just_error::<i32, _>(1).upon_error(|_| panic!("boom"));
        assert_eq!(Connected::new(sender).start().outcome(), Outcome::Panicked(Panic::new("boom")));
    }

    #[test]
    fn a_stop_before_the_start_and_while_it_runs_reaches_the_sender_and_is_no_error() {
        let sender = never::<usize>().may_fail::<&str>().upon_error(str::len);
        assert_eq!(Connected::with_env(sender, stopped_env()).start().outcome(), Outcome::Stopped);
        let source = StopSource::new();
        let gate = Gate::<usize, &str>::new();
        let running = Connected::stoppable(gate.sender().upon_error(str::len), &source).start();
        assert!(!running.is_complete());
        source.request_stop(StopReason::Requested);
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn dropping_it_unstarted_calls_nothing() {
        let count = DropCount::new();
        let token = count.token();
        drop(Connected::new(just_error::<i32, _>(1).upon_error(move |_| unreachable!("{token:?}"))));
        assert_eq!(count.dropped(), 1);
    }
}
