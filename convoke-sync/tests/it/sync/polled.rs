//! Futures that are polled by hand, outside a task, so that the tests see each step.

use std::future::Future;

use convoke_testing::workshop::polled_by_hand::PolledByHand as ByHand;

/// Wraps a future that is not polled yet.
pub(crate) fn polled<'a, T>(future: impl Future<Output = T> + Send + 'a) -> ByHand<'a, T> {
    ByHand::new(future)
}

/// Polls a future once, and asserts that it waits.
#[track_caller]
pub(crate) fn waits<'a, T>(future: impl Future<Output = T> + Send + 'a) -> ByHand<'a, T> {
    let mut polled = polled(future);
    assert!(polled.poll().is_none(), "the future did not wait");
    polled
}

/// Polls a future once, and returns its result.
#[track_caller]
pub(crate) fn ready<T>(future: impl Future<Output = T> + Send) -> T {
    polled(future).poll().expect("the future was not ready")
}
