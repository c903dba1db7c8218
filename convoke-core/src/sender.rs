//! A description of work that has not started. The adaptors are provided methods, as `Iterator`'s are; each has
//! its own file in `algorithm`.

use crate::algorithm::{
    let_error::LetError, let_stopped::LetStopped, let_value::LetValue, map_error::MapError, then::Then,
};
use crate::{Completes, Env, ExecutorRef, Never, Operation, Outcome, Receiver};

/// A description of work that ends with an [`Outcome`]. Nothing happens until it is connected to a receiver and
/// started, by `sync_wait`, a scope or an `await`.
///
/// A sender is `Send`, and so are the closures it is made of: work may be started on one thread and complete on
/// another. The values that pass through need not be.
///
/// Writing one: `connect` moves the sender and the receiver into an [`Operation`]. It must not panic; whatever
/// may, happens in `start` and is caught there.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a sender",
    label = "expected a sender",
    note = "senders are made by `just`, `just_from`, `schedule`, `from_callback`, … and by adaptors on other senders",
    note = "a closure that is expected to return a sender must return one: wrap a plain value with `just(value)`, \
            or use `then` instead of `let_value`",
    note = "the values of a sender must be `Send` where they are kept, and its closures must be `Send`"
)]
#[must_use = "a sender does nothing until it is started: by `sync_wait`, a scope or an `await`"]
pub trait Sender: Sized + Send {
    // The bounds of the adaptors stand where their types do, and not in a `where`: the compiler then says in fewer lines
    // which one is not met.

    /// What it completes with.
    type Value;
    /// What it fails with. [`Never`] if it cannot fail.
    type Error;
    /// What is known, at compile time, about where this completes.
    const COMPLETES: Completes = Completes::Anywhere;
    /// The connected work.
    type Operation<R: Receiver<Self::Value, Self::Error>>: Operation;

    /// Connects the work to the receiver of its outcome.
    fn connect<R: Receiver<Self::Value, Self::Error>>(self, receiver: R) -> Self::Operation<R>;

    /// The executor that a value will be completed on if the work is started in `env`, where it can be told.
    fn completes_on(&self, env: &Env) -> Option<ExecutorRef> {
        (Self::COMPLETES <= Completes::Here).then(|| env.executor().clone())
    }

    /// Changes the value. See [`algorithm::then`](crate::algorithm::then).
    fn then<F: FnOnce(Self::Value) -> T + Send, T>(self, f: F) -> Then<Self, F> {
        Then::new(self, f)
    }

    /// Changes the error. See [`algorithm::map_error`](crate::algorithm::map_error).
    fn map_error<F: FnOnce(Self::Error) -> T + Send, T>(self, f: F) -> MapError<Self, F> {
        MapError::new(self, f)
    }

    /// The same work where an error type is asked for: for senders that cannot fail, beside senders that can.
    ///
    /// ```
    /// use convoke::prelude::*;
    ///
    /// let parsed = just("42").may_fail().let_value(|text| just_from(move || text.parse::<u32>()).transpose());
    /// assert_eq!(sync_wait(parsed), Outcome::Value(42));
    /// ```
    fn may_fail<E>(self) -> MapError<Self, fn(Never) -> E>
    where
        Self: Sender<Error = Never>,
    {
        MapError::new(self, Never::absurd)
    }

    /// Goes on with another sender made from the value. See [`algorithm::let_value`](crate::algorithm::let_value).
    fn let_value<F: FnOnce(Self::Value) -> S + Send, S: Sender<Error = Self::Error>>(
        self,
        f: F,
    ) -> LetValue<Self, F> {
        LetValue::new(self, f)
    }

    /// Goes on with another sender made from the error. See [`algorithm::let_error`](crate::algorithm::let_error).
    fn let_error<F: FnOnce(Self::Error) -> S + Send, S: Sender<Value = Self::Value>>(
        self,
        f: F,
    ) -> LetError<Self, F> {
        LetError::new(self, f)
    }

    /// Goes on with another sender if it was stopped. See [`algorithm::let_stopped`](crate::algorithm::let_stopped).
    fn let_stopped<F: FnOnce() -> S + Send, S: Sender<Value = Self::Value, Error = Self::Error>>(
        self,
        f: F,
    ) -> LetStopped<Self, F> {
        LetStopped::new(self, f)
    }
}

/// The outcome of a sender.
pub type OutcomeOf<S> = Outcome<<S as Sender>::Value, <S as Sender>::Error>;
