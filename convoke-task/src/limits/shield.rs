//! `shield(future)`: protects a future from stop requests to its task.

use core::fmt;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use std::time::Duration;

use convoke_core::raw::{Polled, UnderWay, budget};
use pin_project_lite::pin_project;

use super::grace::GracePeriod;
use crate::region::{Region, pass_on_stop};

/// Runs a future to its end even if the task is asked to stop meanwhile: for work that must not be left
/// half-done. The future sees neither the stop request nor the deadline of its task.
///
/// Use this if the work must not be left half-done. Use [`using`](crate::using()) or
/// [`ensure`](crate::ensure()) if it is a clean-up.
///
/// The request is not lost: the task stops at its next wait after the shield. A shielded future should be
/// short. Give it a [`timeout`](super::timeout()) of its own; or a [grace period](Shield::grace), which
/// begins with the stop request.
///
/// - *Completes with* the output of the future. Stopped, if the future stops by itself.
/// - *If dropped*, the future is dropped.
/// - *Runs on* the task.
/// - *Panics* with the panic of the future; and outside a task.
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
///
/// let elapsed = block_on(async {
///     let work = async {
///         shield(sleep(Duration::from_millis(5))).await;
///         println!("the shielded work is done");
///         checkpoint().await;
///         unreachable!("stopped here");
///     };
///     timeout(Duration::from_millis(1), work).await.is_err()
/// });
/// assert_eq!(elapsed, Outcome::Value(true));
/// ```
pub fn shield<F: IntoFuture>(future: F) -> Shield<F::IntoFuture> {
    Shield {
        body: Some(future.into_future()),
        region: Region::shielded(),
        under_way: UnderWay::new(),
        begun: false,
    }
}

impl<F: Future> Shield<F> {
    /// Limits the shield to a grace period: the future is asked to stop when that time has passed since the
    /// stop request. So a server can finish the requests that it has begun, and still end in time.
    ///
    /// The future sees the deadline of its task, later by the period.
    ///
    /// - *Completes with* the output of the future. Stopped, if it stops after the grace period, or by itself.
    /// - *If dropped*, the future is dropped.
    /// - *Runs on* the task, by the clock of its executor.
    /// - *Panics* with the panic of the future; and outside a task.
    ///
    /// ```
    /// use std::time::Duration;
    /// use convoke::prelude::*;
    ///
    /// async fn request(takes: Duration) {
    ///     shield(sleep(takes)).grace(Duration::from_millis(200)).await;
    ///     println!("the request that takes {takes:?} was answered");
    /// }
    ///
    /// let elapsed = block_on(async {
    ///     let server = async {
    ///         scope(async |s| {
    ///             s.spawn(request(Duration::from_millis(20))); // Is answered.
    ///             s.spawn(request(Duration::from_secs(3600))); // Is stopped after 200 ms.
    ///         })
    ///         .await;
    ///     };
    ///     timeout(Duration::from_millis(5), server).await.is_err()
    /// });
    /// assert_eq!(elapsed, Outcome::Value(true));
    /// ```
    pub fn grace(self, period: Duration) -> GracePeriod<F> {
        GracePeriod::new(self.body, period)
    }
}

pin_project! {
    /// Future of [`shield()`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct Shield<F> {
        #[pin]
        body: Option<F>,
        region: Region,
        under_way: UnderWay,
        begun: bool,
    }
}

impl<F: Future> Future for Shield<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        // No body: polled again after the stop, by a combinator that still has to finish another branch.
        let Some(body) = this.body.as_mut().as_pin_mut() else { return pass_on_stop() };
        if !*this.begun && !budget::may_proceed(cx) {
            return Poll::Pending;
        }
        *this.begun = true;
        let mark = budget::mark();
        match this.region.poll(body, cx) {
            Polled::Ready(value) => {
                this.under_way.end();
                mark.spend_once();
                Poll::Ready(value)
            }
            Polled::Pending => {
                // Also if another branch of a foreign `join!` has stopped: the task must not end before this
                // one.
                this.under_way.hold(cx);
                Poll::Pending
            }
            Polled::Stopped => {
                this.under_way.end();
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
