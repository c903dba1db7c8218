//! The policies of scopes: when the children have done enough, and what the scope returns.

use convoke_core::{BodyOutput, ExecutorRef};

use super::failures::Failures;
use super::tally::Tally;
use crate::scope::{ChildFailure, FailureKind};

/// Policy of a scope: decides when the scope is over, and what it returns. `V` is the value of its children,
/// `E` their error. A panic of a child is a failure, like an error. A child that was stopped has no result.
///
/// The functions are called for one result after the other, never on two threads at once, on the thread of a
/// child that has ended. If one panics, the scope ends, and its future panics.
pub trait Policy<V, E> {
    /// Output of the scope.
    type Output;

    /// Returns true if the scope is over after the last value in `tally`: then body and children are asked to
    /// stop.
    fn is_enough_after_value(&self, tally: &Tally<V, E>) -> bool;

    /// Returns true if the scope is over after the last failure in `tally`: then body and children are asked
    /// to stop.
    fn is_enough_after_failure(&self, tally: &Tally<V, E>) -> bool;

    /// Makes the output of the scope, when body and children have ended.
    fn output(&self, tally: Tally<V, E>) -> Self::Output;

    /// Returns the executor of the children. By default it is that of the task which opens the scope.
    /// [`On`](super::On) sets it for any policy.
    fn executor(&self) -> Option<ExecutorRef> {
        None
    }
}

/// Policy by which the first failure stops the others, as in [`scope()`](crate::scope()). The scope returns
/// all values, or the first error; it panics with the first panic.
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
        match tally.failures.into_iter().next().map(ChildFailure::into_kind) {
            None => Ok(tally.values),
            Some(FailureKind::Error(error)) => Err(error),
            Some(FailureKind::Panicked(panic)) => panic.resume(),
        }
    }
}

/// Policy by which all children run to their end. The scope returns all values; or all failures, if there are
/// any.
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

/// Policy by which the first value stops the others. The scope returns that value; or all failures, if there
/// is none.
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

/// Policy by which this number of values stops the others. The scope returns the values; or all failures, if
/// there are fewer.
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
        // Values that came after the quorum was reached.
        tally.values.truncate(self.0);
        Ok(tally.values)
    }
}

/// Policy by which a failure ends only its child. The scope returns all values and all failures.
#[derive(Clone, Copy, Debug, Default)]
pub struct Supervise;

/// Output of a scope with the policy [`Supervise`].
#[derive(Debug)]
pub struct ReportFailure<V, E> {
    /// Values of the children.
    pub values: Vec<V>,
    /// Failures of the children, after the last restart.
    pub failures: Failures<E>,
}

impl<V, E> BodyOutput for ReportFailure<V, E> {}

impl<V, E> Policy<V, E> for Supervise {
    type Output = ReportFailure<V, E>;

    fn is_enough_after_value(&self, _: &Tally<V, E>) -> bool {
        false
    }

    fn is_enough_after_failure(&self, _: &Tally<V, E>) -> bool {
        false
    }

    fn output(&self, tally: Tally<V, E>) -> ReportFailure<V, E> {
        ReportFailure { values: tally.values, failures: Failures::new(tally.failures) }
    }
}
