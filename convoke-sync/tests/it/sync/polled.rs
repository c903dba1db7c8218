//! Futures that are polled by hand, outside all tasks: the tests see each step.

use std::future::Future;

use convoke_testing::workshop::polled_by_hand::PolledByHand as ByHand;

/// Not polled yet.
pub(crate) fn polled<'a, T>(future: impl Future<Output = T> + Send + 'a) -> ByHand<'a, T> {
    ByHand::new(future)
}

/// Polled once, and waits.
#[track_caller]
pub(crate) fn waits<'a, T>(future: impl Future<Output = T> + Send + 'a) -> ByHand<'a, T> {
    let mut polled = polled(future);
    assert!(polled.poll().is_none(), "it does not wait");
    polled
}

/// Polled once, and ready.
#[track_caller]
pub(crate) fn ready<T>(future: impl Future<Output = T> + Send) -> T {
    polled(future).poll().expect("it waits")
}
