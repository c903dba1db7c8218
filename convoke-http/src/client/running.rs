//! The body that a client is run with, inside the scope of its connections.
//!
//! Written as futures by hand: an `async fn` that takes the body would hold it several times.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::Mutex;
use convoke_task::scope;
use convoke_task::scope::ScopeFuture;
use pin_project_lite::pin_project;

use super::pool::Pool;
use super::{Client, SharedClient};

/// The output of the body, which the scope does not know: its children have no part in it.
type Output<T> = Arc<Mutex<Option<T>>>;

pin_project! {
    /// The future of [`Client::run`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct Running<F: Future> {
        #[pin]
        scope: ScopeFuture<Body<F>>,
        output: Output<F::Output>,
    }
}

impl<F: Future> Running<F> {
    #[track_caller]
    pub(super) fn new(
        client: impl FnOnce(convoke_task::Scope<()>) -> Client,
        body: impl FnOnce(Client) -> F,
    ) -> Self {
        let output = Output::default();
        let scope = scope(|connections| {
            let client = client(connections);
            let close = Close(client.shared.clone());
            Body { body: body(client), output: output.clone(), close }
        });
        Self { scope, output }
    }
}

impl<F: Future> Future for Running<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        ready!(this.scope.poll(cx));
        let output = this.output.lock().unwrap_or_else(PoisonError::into_inner).take();
        Poll::Ready(output.unwrap_or_else(|| panic!("polled after completion")))
    }
}

impl<F: Future> fmt::Debug for Running<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

pin_project! {
    /// The body of the scope. When it is dropped, however it has ended, the client is closed.
    struct Body<F: Future> {
        #[pin]
        body: F,
        output: Output<F::Output>,
        // Dropped last.
        close: Close,
    }
}

impl<F: Future> Future for Body<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        let output = ready!(this.body.poll(cx));
        *this.output.lock().unwrap_or_else(PoisonError::into_inner) = Some(output);
        Poll::Ready(())
    }
}

/// Closes a client.
struct Close(Arc<SharedClient>);

impl Drop for Close {
    fn drop(&mut self) {
        Pool::close(&self.0.pool);
        self.0.closing.set();
    }
}
