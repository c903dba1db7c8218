//! `just(value)`: completes at once with a value.

#![allow(unsafe_code)]

use crate::operation::{Action, Leaf};
use crate::{Completes, Receiver, Sender};
use convoke_core::{Never, Outcome};

/// Makes a sender that completes at once with `value`.
///
/// - *Completes with* the value. Never fails, and ignores stop requests.
/// - *If dropped* before it starts, the value is dropped.
/// - *Runs on* the thread that starts it.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// assert_eq!(sync_wait(just(42)), Outcome::Value(42));
/// ```
pub fn just<V: Send>(value: V) -> Just<V> {
    Just { value }
}

/// The sender of [`just()`].
#[derive(Clone, Copy, Debug)]
#[must_use = "a sender does nothing until it is started"]
pub struct Just<V> {
    value: V,
}

// SAFETY: rules 1 to 3 of `Sender`: a leaf does one thing, in `start`: it completes the receiver, inline and
// last.
#[diagnostic::do_not_recommend]
unsafe impl<V: Send> Sender for Just<V> {
    type Value = V;
    type Error = Never;
    const COMPLETES: Completes = Completes::Inline;
    type Operation<R: Receiver<V, Never>> = Leaf<CompleteWithValue<V, R>>;

    #[inline]
    fn connect<R: Receiver<V, Never>>(self, receiver: R) -> Leaf<CompleteWithValue<V, R>> {
        Leaf::new(CompleteWithValue { value: self.value, receiver })
    }
}

/// The action that completes a receiver with a value. Of its type the compiler knows that the outcome is a value: what the
/// receiver does with others is not in the code.
#[derive(Debug)]
pub struct CompleteWithValue<V, R> {
    value: V,
    receiver: R,
}

impl<V: Send, R: Receiver<V, Never>> Action for CompleteWithValue<V, R> {
    #[inline]
    fn act(self) {
        self.receiver.complete(Outcome::Value(self.value));
    }
}

/// The operation of senders whose outcome is known when they are made.
pub type JustOperation<V, E, R> = Leaf<CompleteWith<V, E, R>>;

/// The action that completes a receiver with a known outcome.
#[derive(Debug)]
pub struct CompleteWith<V, E, R> {
    /// The outcome.
    pub outcome: Outcome<V, E>,
    /// The receiver to complete.
    pub receiver: R,
}

impl<V: Send, E: Send, R: Receiver<V, E>> Action for CompleteWith<V, E, R> {
    #[inline]
    fn act(self) {
        self.receiver.complete(self.outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Connected, DropCount, stopped_env};

    #[test]
    fn completes_with_its_value_even_if_stopped_before() {
        assert_eq!(Connected::new(just(3)).start().outcome(), Outcome::Value(3));
        assert_eq!(Connected::with_env(just(3), stopped_env()).start().outcome(), Outcome::Value(3));
    }

    #[test]
    fn dropping_it_unstarted_drops_the_value() {
        let count = DropCount::new();
        drop(Connected::new(just(count.token())));
        assert_eq!(count.dropped(), 1);
    }
}
