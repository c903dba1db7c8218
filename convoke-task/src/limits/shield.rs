//! `shield(future)`: a stop of what is around does not reach inside.

use core::fmt;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use std::time::Duration;

use convoke_core::raw::{Frame, Polled};
use pin_project_lite::pin_project;

use super::grace::GracePeriod;
use crate::region::{Region, pass_on_stop};

/// Runs a future to its end even if the task is asked to stop meanwhile: for what must not be left half-done. Neither the
/// request nor the deadline around is seen inside.
///
/// The request is not lost: the next thing that waits behind the shield is stopped. What is inside should be short, and is best
/// given a [`timeout`](super::timeout()) of its own; or a [grace period](Shield::grace), which begins when the stop is asked for.
///
/// - *Completes with* what the future returns. Stopped, if the future ended so by itself.
/// - *If dropped*, the future is dropped.
/// - *Runs on* the task.
/// - *Panics* as the future does, and outside a task.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sender::prelude::*;
///
/// let source = StopSource::new();
/// let asks = source.clone();
/// let program = task(async move {
///     asks.request_stop(StopReason::Shutdown);
///     shield(async { checkpoint().await }).await;
///     println!("what must be done is done");
///     checkpoint().await;
///     unreachable!("stopped here");
/// });
/// let changes = convoke::env::Changes::new().stop_token(source.token());
/// assert_eq!(sync_wait_with(changes, program), Outcome::<()>::Stopped);
/// ```
pub fn shield<F: IntoFuture>(future: F) -> Shield<F::IntoFuture> {
    Shield { body: Some(future.into_future()), region: Region::shielded() }
}

impl<F: Future> Shield<F> {
    /// A shield that holds for this long: the stop reaches inside when that much time has passed since it was asked for. So a
    /// server lets requests that it has begun come to their end, and ends itself in time all the same.
    ///
    /// Inside, the deadline around is seen, and is that much later.
    ///
    /// - *Completes with* what the future returns. Stopped, if it was, when the grace period was over or by itself.
    /// - *If dropped*, the future is dropped.
    /// - *Runs on* the task, by the clock of its executor.
    /// - *Panics* as the future does, and outside a task.
    ///
    /// ```
    /// use std::time::Duration;
    /// use convoke::prelude::*;
    /// use convoke::sender::prelude::*;
    ///
    /// async fn request(takes: Duration) {
    ///     shield(sleep(takes)).grace(Duration::from_millis(200)).await;
    ///     println!("the request that takes {takes:?} was answered");
    /// }
    ///
    /// let program = task(async {
    ///     let server = async {
    ///         scope(async |s| {
    ///             s.spawn(request(Duration::from_millis(20))); // Is answered,
    ///             s.spawn(request(Duration::from_secs(3600))); // and this is not waited for.
    ///         })
    ///         .await;
    ///     };
    ///     timeout(Duration::from_millis(5), server).await.is_err()
    /// });
    /// assert_eq!(sync_wait(program), Outcome::Value(true));
    /// ```
    pub fn grace(self, period: Duration) -> GracePeriod<F> {
        GracePeriod::new(self.body, period)
    }
}

pin_project! {
    /// See [`shield()`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct Shield<F> {
        #[pin]
        body: Option<F>,
        region: Region,
    }
}

impl<F: Future> Future for Shield<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        // Gone if it was stopped: then this is polled beside something that must not be dropped yet.
        let Some(body) = this.body.as_mut().as_pin_mut() else { return pass_on_stop() };
        match this.region.poll(body, cx) {
            Polled::Ready(value) => Poll::Ready(value),
            Polled::Pending => {
                // Also if something beside it, in a foreign `join!`, has ended by the stopped door.
                Frame::hold_current();
                Poll::Pending
            }
            Polled::Stopped => {
                this.region.within(|| this.body.set(None));
                pass_on_stop()
            }
        }
    }
}

impl<F> fmt::Debug for Shield<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shield").field("region", &self.region).finish_non_exhaustive()
    }
}
