//! `just_error(error)`: fails at once.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;

use super::just::{CompleteWith, JustOperation};
use crate::operation::Leaf;
use crate::{Completes, Receiver, Sender};
use convoke_core::Outcome;

/// Makes a sender that fails at once with `error`. Name its value type where it cannot be inferred:
/// `just_error::<u32, _>(error)`.
///
/// - *Completes with* the error. Ignores stop requests.
/// - *If dropped* before it starts, the error is dropped.
/// - *Runs on* the thread that starts it.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// assert_eq!(sync_wait(just_error::<u32, _>("no")), Outcome::Error("no"));
/// ```
pub fn just_error<V, E: Send>(error: E) -> JustError<V, E> {
    JustError { error, _value: PhantomData }
}

/// The sender of [`just_error()`].
#[must_use = "a sender does nothing until it is started"]
pub struct JustError<V, E> {
    error: E,
    _value: PhantomData<fn() -> V>,
}

impl<V, E: Clone> Clone for JustError<V, E> {
    fn clone(&self) -> Self {
        Self { error: self.error.clone(), _value: PhantomData }
    }
}

impl<V, E: fmt::Debug> fmt::Debug for JustError<V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JustError").field(&self.error).finish()
    }
}

// SAFETY: rules 1 to 3 of `Sender`: a leaf does one thing, in `start`: it completes the receiver, inline and
// last.
#[diagnostic::do_not_recommend]
unsafe impl<V: Send, E: Send> Sender for JustError<V, E> {
    type Value = V;
    type Error = E;
    const COMPLETES: Completes = Completes::Inline;
    type Operation<R: Receiver<V, E>> = JustOperation<V, E, R>;

    #[inline]
    fn connect<R: Receiver<V, E>>(self, receiver: R) -> JustOperation<V, E, R> {
        Leaf::new(CompleteWith { outcome: Outcome::Error(self.error), receiver })
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, DropCount, stopped_env};

    #[test]
    fn fails_with_its_error_even_if_stopped_before() {
        assert_eq!(Connected::new(just_error::<u8, _>(3)).start().outcome(), Outcome::Error(3));
        assert_eq!(
            Connected::with_env(just_error::<u8, _>(3), stopped_env()).start().outcome(),
            Outcome::Error(3)
        );
    }

    #[test]
    fn dropping_it_unstarted_drops_the_error() {
        let count = DropCount::new();
        drop(Connected::new(just_error::<u8, _>(count.token())));
        assert_eq!(count.dropped(), 1);
    }
}
