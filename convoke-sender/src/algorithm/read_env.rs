//! `read_env(f)`: reads the environment.

#![allow(unsafe_code)]

use crate::operation::{Action, Leaf};
use crate::{Completes, Receiver, Sender};
use convoke_core::{Env, Never, Outcome};

/// Makes a sender that calls `f` with the environment it is started in, and completes with what `f` returns.
///
/// - *Completes with* the result of `f`. If `f` panics: panicked. Ignores stop requests.
/// - *If dropped* before it starts, `f` is dropped uncalled.
/// - *Runs on* the thread that starts it.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let stopped = read_env(|env| env.stop().stop_requested());
/// assert_eq!(sync_wait(stopped), Outcome::Value(false));
/// ```
pub fn read_env<F, T>(f: F) -> ReadEnv<F>
where
    F: FnOnce(&Env) -> T + Send,
{
    ReadEnv { f }
}

/// The sender of [`read_env()`].
#[derive(Clone, Debug)]
#[must_use = "a sender does nothing until it is started"]
pub struct ReadEnv<F> {
    f: F,
}

// SAFETY: rules 1 to 3 of `Sender`: a leaf does one thing, in `start`: it calls the function and completes
// the receiver, inline and last.
#[diagnostic::do_not_recommend]
unsafe impl<F, T> Sender for ReadEnv<F>
where
    F: FnOnce(&Env) -> T + Send,
{
    type Value = T;
    type Error = Never;
    const COMPLETES: Completes = Completes::Inline;
    type Operation<R: Receiver<T, Never>> = Leaf<ReadAndComplete<F, R>>;

    #[inline]
    fn connect<R: Receiver<T, Never>>(self, receiver: R) -> Self::Operation<R> {
        Leaf::new(ReadAndComplete { f: self.f, receiver })
    }
}

/// The action that calls the function with the environment and completes the receiver with its result.
#[derive(Debug)]
pub struct ReadAndComplete<F, R> {
    f: F,
    receiver: R,
}

impl<F, T, R> Action for ReadAndComplete<F, R>
where
    F: FnOnce(&Env) -> T + Send,
    R: Receiver<T, Never>,
{
    #[inline]
    fn act(self) {
        let outcome = Outcome::catch(|| (self.f)(self.receiver.env()));
        self.receiver.complete(outcome);
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{ByHand, Connected, DropCount, stopped_env};
    use convoke_core::Env;

    #[test]
    fn completes_with_what_the_environment_says_even_if_stopped_before() {
        let by_hand = ByHand::new();
        let sender = read_env(|env| env.executor().downcast_ref::<ByHand>() == Some(&by_hand));
        let outcome = Connected::with_env(sender, Env::from(by_hand.clone())).outcome();
        assert_eq!(outcome, Outcome::Value(true));
        let sender = read_env(|env| env.stop().stop_requested());
        assert_eq!(Connected::with_env(sender, stopped_env()).outcome(), Outcome::Value(true));
    }

    #[test]
    fn a_panic_of_the_function_is_the_outcome() {
        let outcome = Connected::new(read_env(|_| -> i32 { panic!("boom") })).outcome();
        assert_eq!(outcome, Outcome::Panicked(Panic::new("boom")));
    }

    #[test]
    fn dropping_it_unstarted_calls_nothing() {
        let count = DropCount::new();
        let token = count.token();
        drop(Connected::new(read_env(move |_| -> i32 { unreachable!("{token:?}") })));
        assert_eq!(count.dropped(), 1);
    }
}
