//! A sender for each kind of outcome: the rows of the table that every adaptor is tested with.

#![allow(unsafe_code)]

use crate::algorithm::just::{CompleteWith, JustOperation};
use crate::operation::Leaf;
use crate::prelude::*;
use crate::{Completes, Receiver};

/// Returns a sender for each of the four kinds of outcome, of one type, each with the outcome it will have.
pub fn all_outcomes<V: Send + Clone, E: Send + Clone>(
    value: V,
    error: E,
) -> [(Outcome<V, E>, Ends<V, E>); 4] {
    let outcomes = || {
        [
            Outcome::Value(value.clone()),
            Outcome::Error(error.clone()),
            Outcome::Stopped,
            Outcome::Panicked(Panic::new("door")),
        ]
    };
    let mut expected = outcomes().into_iter();
    outcomes().map(|outcome| (expected.next().expect("there are four outcomes"), Ends { outcome }))
}

/// A sender that completes at once with the outcome it was given.
#[derive(Debug)]
pub struct Ends<V, E> {
    outcome: Outcome<V, E>,
}

// SAFETY: rules 1 to 3 of `Sender`: a leaf does one thing, in `start`: it completes the receiver, inline and
// last.
#[diagnostic::do_not_recommend]
unsafe impl<V: Send, E: Send> Sender for Ends<V, E> {
    type Value = V;
    type Error = E;
    const COMPLETES: Completes = Completes::Inline;
    type Operation<R: Receiver<V, E>> = JustOperation<V, E, R>;

    fn connect<R: Receiver<V, E>>(self, receiver: R) -> Self::Operation<R> {
        Leaf::new(CompleteWith { outcome: self.outcome, receiver })
    }
}

/// Returns what is known at compile time about where this sender completes.
pub fn completes_of<S: Sender>(_: &S) -> Completes {
    S::COMPLETES
}
