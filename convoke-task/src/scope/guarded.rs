//! A future that owns a guard until it has ended: a permit, for example.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use pin_project_lite::pin_project;

pin_project! {
    /// A future, and a guard that is dropped after it. The future is kept once: an `async` block around it
    /// would keep it twice.
    pub struct Guarded<F, G> {
        // The first field, and so dropped first: what a permit limits includes the child's destructors.
        #[pin]
        future: F,
        guard: G,
    }
}

impl<F, G> Guarded<F, G> {
    pub(crate) fn new(future: F, guard: G) -> Self {
        Self { future, guard }
    }

    pub(super) fn inner(self: Pin<&mut Self>) -> Pin<&mut F> {
        self.project().future
    }
}

impl<F: Future, G> Future for Guarded<F, G> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.project().future.poll(cx)
    }
}
