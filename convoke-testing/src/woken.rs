//! A counting waker to poll futures by hand, for the contract suites.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

/// A count of the wakes of a future that is polled by hand.
pub(super) struct Woken(Arc<Count>);

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

impl Woken {
    /// Creates a waker that has not been called.
    pub(super) fn new() -> Self {
        Self(Arc::default())
    }

    pub(super) fn poll<F: Future + ?Sized>(&self, future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(&Waker::from(self.0.clone())))
    }

    pub(super) fn count(&self) -> usize {
        self.0.0.load(Ordering::Acquire)
    }
}
