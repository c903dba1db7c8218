//! `run_until_stopped(token, future)`: runs a future until a stop is requested through a token.

use core::fmt;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use convoke_core::StopToken;
use pin_project_lite::pin_project;

use super::catch_stopped::Stopped;
use super::until_token::{Ended, UntilToken};
use crate::region::pass_on_stop;

/// Runs a future until a stop is requested through `token`. Then the future is asked to stop, with that reason,
/// and awaited: its clean-up runs to its end.
///
/// Use it for a part of a task that ends with a token of the program's own, such as "reload" or "disconnected".
/// The token of the task itself is not needed: a stop of the task ends the future in any case. Use
/// [`StopToken::stopped`] to hear of a stop without ending by it.
///
/// - *Completes with* `Ok` of what the future returns, even if it returns after the request; or with
///   [`Stopped`], if it has stopped for that request. Stopped, if the future stops by itself or because the
///   task is asked to stop.
/// - *If dropped*, the future is dropped.
/// - *Runs on* the task's executor.
/// - *Panics* with the panic of the future; and outside a task.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::task::{forever, run_until_stopped};
///
/// let outcome = block_on(async {
///     let reload = StopSource::new();
///     let token = reload.token();
///     scope(async |s| {
///         s.spawn(async move {
///             reload.request_stop(StopReason::Named("reload"));
///         });
///         let serves = async { forever().await };
///         let served: Result<(), Stopped> = run_until_stopped(token, serves).await;
///         served.unwrap_err().reason()
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value(Some(StopReason::Named("reload"))));
/// ```
#[doc(alias = "run_until_cancelled")]
pub fn run_until_stopped<F: IntoFuture>(token: StopToken, future: F) -> RunUntilStopped<F::IntoFuture> {
    RunUntilStopped { inner: UntilToken::new(future.into_future(), Some(token)) }
}

pin_project! {
    /// Future of [`run_until_stopped()`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct RunUntilStopped<F> {
        #[pin]
        inner: UntilToken<F>,
    }
}

impl<F: Future> Future for RunUntilStopped<F> {
    type Output = Result<F::Output, Stopped>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match ready!(self.project().inner.poll(cx, || None)) {
            Ended::Value(value) => Poll::Ready(Ok(value)),
            Ended::ByToken(reason) => Poll::Ready(Err(Stopped::new(reason))),
            Ended::Stopped => pass_on_stop(),
        }
    }
}

impl<F> fmt::Debug for RunUntilStopped<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunUntilStopped").finish_non_exhaustive()
    }
}
