//! The policies of scopes: when enough has come of the children, and what all comes to.

use convoke_core::{BodyOutput, ExecutorRef};

use super::failures::{Failure, FailureKind, Failures};
use super::tally::Tally;

/// When a scope is over, and what it returns. `V` is what its children return, `E` their error; a panic of a child is a
/// failure like an error. A child that was stopped is merely gone.
///
/// The functions are called for one result after the other, never by two threads at once, on the thread of a child that has ended.
/// A panic of theirs ends the scope, and goes on where that is awaited.
pub trait Policy<V, E> {
    /// What the scope returns.
    type Output;

    /// Whether that value was the last that was wanted: then all others are asked to stop.
    fn is_enough_after_value(&self, tally: &Tally<V, E>) -> bool;

    /// Whether after that failure there is nothing to be hoped for: then all others are asked to stop.
    fn is_enough_after_failure(&self, tally: &Tally<V, E>) -> bool;

    /// What all comes to, when everybody has ended.
    fn output(&self, tally: Tally<V, E>) -> Self::Output;

    /// Where the children run; if it is not said, where the scope is opened. [`On`](super::On) says it for any policy.
    fn executor(&self) -> Option<ExecutorRef> {
        None
    }
}

/// The first failure stops the others and is the scope's, as in [`scope()`](crate::scope()); a panic goes on. Otherwise all values.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstError;

impl<V, E> Policy<V, E> for FirstError {
    type Output = Result<Vec<V>, E>;

    fn is_enough_after_value(&self, _: &Tally<V, E>) -> bool {
        false
    }

    fn is_enough_after_failure(&self, _: &Tally<V, E>) -> bool {
        true
    }

    fn output(&self, tally: Tally<V, E>) -> Result<Vec<V>, E> {
        match tally.failures.into_iter().next().map(Failure::into_kind) {
            None => Ok(tally.values),
            Some(FailureKind::Error(error)) => Err(error),
            Some(FailureKind::Panicked(panic)) => panic.resume(),
        }
    }
}

/// All children come to their end. All values; or all failures, if there are any.
#[derive(Clone, Copy, Debug, Default)]
pub struct WaitForAll;

impl<V, E> Policy<V, E> for WaitForAll {
    type Output = Result<Vec<V>, Failures<E>>;

    fn is_enough_after_value(&self, _: &Tally<V, E>) -> bool {
        false
    }

    fn is_enough_after_failure(&self, _: &Tally<V, E>) -> bool {
        false
    }

    fn output(&self, tally: Tally<V, E>) -> Self::Output {
        if tally.failures.is_empty() { Ok(tally.values) } else { Err(Failures::new(tally.failures)) }
    }
}

/// The first value stops the others. If there is none, all failures.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstSuccess;

impl<V, E> Policy<V, E> for FirstSuccess {
    type Output = Result<V, Failures<E>>;

    fn is_enough_after_value(&self, _: &Tally<V, E>) -> bool {
        true
    }

    fn is_enough_after_failure(&self, _: &Tally<V, E>) -> bool {
        false
    }

    fn output(&self, tally: Tally<V, E>) -> Self::Output {
        tally.values.into_iter().next().ok_or_else(|| Failures::new(tally.failures))
    }
}

/// This many values stop the others. If there are fewer, all failures.
#[derive(Clone, Copy, Debug)]
pub struct Quorum(pub usize);

impl<V, E> Policy<V, E> for Quorum {
    type Output = Result<Vec<V>, Failures<E>>;

    fn is_enough_after_value(&self, tally: &Tally<V, E>) -> bool {
        tally.values.len() >= self.0
    }

    fn is_enough_after_failure(&self, _: &Tally<V, E>) -> bool {
        false
    }

    fn output(&self, mut tally: Tally<V, E>) -> Self::Output {
        if tally.values.len() < self.0 {
            return Err(Failures::new(tally.failures));
        }
        // Those that came after it was enough.
        tally.values.truncate(self.0);
        Ok(tally.values)
    }
}

/// A failure stays with its child; the others go on. Values and failures both are reported.
#[derive(Clone, Copy, Debug, Default)]
pub struct Supervise;

/// What a scope that supervises returns.
#[derive(Debug)]
pub struct Report<V, E> {
    /// What children have returned.
    pub values: Vec<V>,
    /// How children have failed, for good.
    pub failures: Failures<E>,
}

impl<V, E> BodyOutput for Report<V, E> {}

impl<V, E> Policy<V, E> for Supervise {
    type Output = Report<V, E>;

    fn is_enough_after_value(&self, _: &Tally<V, E>) -> bool {
        false
    }

    fn is_enough_after_failure(&self, _: &Tally<V, E>) -> bool {
        false
    }

    fn output(&self, tally: Tally<V, E>) -> Report<V, E> {
        Report { values: tally.values, failures: Failures::new(tally.failures) }
    }
}
