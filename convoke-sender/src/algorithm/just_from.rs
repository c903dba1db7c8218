//! `just_from(f)`: calls a function when it starts.

#![allow(unsafe_code)]

use crate::operation::{Action, Leaf};
use crate::{Completes, Receiver, Sender};
use convoke_core::{Never, Outcome};

/// Makes a sender that calls `f` when it starts, and completes with what `f` returns.
///
/// - *Completes with* the result of `f`. If `f` panics: panicked. To turn a `Result` into value or error, add
///   `transpose()`.
/// - *If dropped* before it starts, `f` is dropped uncalled.
/// - *Runs on* the thread that starts it.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let parsed = just_from(|| "7".parse::<u32>()).transpose();
/// assert_eq!(sync_wait(parsed), Outcome::Value(7));
/// ```
pub fn just_from<F, V>(f: F) -> JustFrom<F>
where
    F: FnOnce() -> V + Send,
{
    JustFrom { f }
}

/// The sender of [`just_from()`].
#[derive(Clone, Debug)]
#[must_use = "a sender does nothing until it is started"]
pub struct JustFrom<F> {
    f: F,
}

// SAFETY: rules 1 to 3 of `Sender`: a leaf does one thing, in `start`: it calls the function and completes
// the receiver, inline and last.
#[diagnostic::do_not_recommend]
unsafe impl<F, V> Sender for JustFrom<F>
where
    F: FnOnce() -> V + Send,
{
    type Value = V;
    type Error = Never;
    const COMPLETES: Completes = Completes::Inline;
    type Operation<R: Receiver<V, Never>> = Leaf<CallAndComplete<F, R>>;

    #[inline]
    fn connect<R: Receiver<V, Never>>(self, receiver: R) -> Self::Operation<R> {
        Leaf::new(CallAndComplete { f: self.f, receiver })
    }
}

/// The action that calls the function and completes the receiver with its result.
#[derive(Debug)]
pub struct CallAndComplete<F, R> {
    f: F,
    receiver: R,
}

impl<F, V, R> Action for CallAndComplete<F, R>
where
    F: FnOnce() -> V + Send,
    R: Receiver<V, Never>,
{
    #[inline]
    fn act(self) {
        self.receiver.complete(Outcome::catch(self.f));
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, DropCount, stopped_env};

    #[test]
    fn calls_the_function_when_started_even_if_stopped_before() {
        assert_eq!(Connected::new(just_from(|| 3)).start().outcome(), Outcome::Value(3));
        assert_eq!(Connected::with_env(just_from(|| 3), stopped_env()).start().outcome(), Outcome::Value(3));
    }

    #[test]
    fn a_panic_of_the_function_is_the_outcome() {
        let outcome = Connected::new(just_from(|| -> u8 { panic!("boom") })).start().outcome();
        assert_eq!(outcome, Outcome::Panicked(Panic::new("boom")));
    }

    #[test]
    fn dropping_it_unstarted_calls_nothing() {
        let count = DropCount::new();
        let token = count.token();
        drop(Connected::new(just_from(move || -> u8 { unreachable!("{token:?}") })));
        assert_eq!(count.dropped(), 1);
    }
}
