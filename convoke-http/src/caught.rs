//! A future whose panic is returned: a handler that panics does not end its connection.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::Panic;
use pin_project_lite::pin_project;

pin_project! {
    /// A future that completes with its output, or with its panic. It is dropped before that.
    pub(crate) struct Caught<F> {
        #[pin]
        future: Option<F>,
    }
}

impl<F: Future> Caught<F> {
    pub(crate) fn new(future: F) -> Self {
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
        // A panic of its destructor counts as its own.
        let dropped = Panic::catch(|| future.set(None));
        Poll::Ready(match (result, dropped) {
            (Ok(output), Ok(())) => Ok(output),
            (Err(panic), _) | (Ok(_), Err(panic)) => Err(panic),
        })
    }
}
