//! `defer(f)`: makes the sender at its start.

use super::continuation::{Continuation, Sequenced, Step};
use super::just::{Just, just};
use crate::Sender;
use convoke_core::{Never, Outcome};

/// Makes a sender that calls `f` when it starts, and then runs the sender that `f` returns.
///
/// - *Completes with* the outcome of the sender that `f` returns. If `f` panics: panicked.
/// - *If dropped* before it starts, `f` is dropped uncalled.
/// - *Runs on* the thread that starts it, for `f`, then on the executors of the sender that `f` returns.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let sender = defer(|| just(std::process::id()));
/// assert_eq!(sync_wait(sender), Outcome::Value(std::process::id()));
/// ```
pub fn defer<F, S>(f: F) -> Defer<F>
where
    F: FnOnce() -> S + Send,
    S: Sender,
{
    Sequenced::new(just(()), OnStart(f))
}

/// The sender of [`defer()`].
pub type Defer<F> = Sequenced<Just<()>, OnStart<F>>;

/// The continuation of `defer`: makes the sender.
#[derive(Clone, Debug)]
pub struct OnStart<F>(F);

impl<F, S> Continuation<(), Never> for OnStart<F>
where
    F: FnOnce() -> S + Send,
    S: Sender,
{
    type Next = S;

    #[inline]
    fn step(self, outcome: Outcome<()>) -> Step<S> {
        Step::from_value(outcome.map_error(Never::absurd), |()| (self.0)())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use crate::prelude::*;
    use crate::testing::Connected;

    #[test]
    fn the_function_is_called_at_the_start_and_not_before() {
        let called = AtomicBool::new(false);
        let connected = Connected::new(defer(|| just(called.swap(true, Ordering::Relaxed))));
        assert!(!called.load(Ordering::Relaxed));
        assert_eq!(connected.outcome(), Outcome::Value(false));
        assert!(called.load(Ordering::Relaxed));
    }
}
