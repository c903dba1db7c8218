//! `transpose()`: turns a `Result` value into a value or an error.

use super::transform::{Transform, Transformed};
use convoke_core::{Never, Outcome};

/// Turns a `Result` into a value or an error: `Ok` becomes the value, `Err` the error. The inverse is
/// `into_result()`.
///
/// - *Completes with* the value of `Ok` or the error of `Err`; stopped passes through.
/// - *If dropped* before it starts, the sender is dropped.
/// - *Runs on* the thread on which the sender before it completes.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let parsed = just_from(|| "7".parse::<u32>()).transpose();
/// assert_eq!(sync_wait(parsed), Outcome::Value(7));
/// ```
pub type Transpose<S> = Transformed<S, ResultToDoors>;

/// The transformation of a `Result` into a value or an error.
#[derive(Clone, Copy, Debug)]
pub struct ResultToDoors;

impl<V, E> Transform<Result<V, E>, Never> for ResultToDoors {
    type Value = V;
    type Error = E;

    #[inline]
    fn apply(self, outcome: Outcome<Result<V, E>, Never>) -> Outcome<V, E> {
        outcome.transpose()
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::Connected;

    #[test]
    fn a_result_is_split_and_the_other_doors_pass() {
        assert_eq!(Connected::new(just(Ok::<_, &str>(1)).transpose()).start().outcome(), Outcome::Value(1));
        assert_eq!(
            Connected::new(just(Err::<i32, _>("e")).transpose()).start().outcome(),
            Outcome::Error("e")
        );
        let panics = just_from(|| -> Result<i32, &str> { panic!("boom") }).transpose();
        assert_eq!(Connected::new(panics).start().outcome(), Outcome::Panicked(Panic::new("boom")));
    }
}
