//! A future that returns its panic as an error, so that a child can panic without ending the scope.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::Panic;
use pin_project_lite::pin_project;

pin_project! {
    /// A future that returns its panic as an error. The inner future is dropped before the result is returned.
    pub(super) struct Caught<F> {
        #[pin]
        future: Option<F>,
    }
}

impl<F> Caught<F> {
    pub(super) fn new(future: F) -> Self {
        Self { future: Some(future) }
    }
}

impl<F: Future> Future for Caught<F> {
    type Output = Result<F::Output, Panic>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut future = self.project().future;
        let Some(running) = future.as_mut().as_pin_mut() else { panic!("polled after completion") };
        let result = match Panic::catch(|| running.poll(cx)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(panic) => Err(panic),
        };
        let dropped = Panic::catch(|| future.set(None));
        Poll::Ready(match (result, dropped) {
            (Ok(output), Ok(())) => Ok(output),
            (Err(panic), _) | (Ok(_), Err(panic)) => Err(panic),
        })
    }
}
