//! `run_until_stopped(token, future)`: runs a future until a stop is requested through a token.

use core::fmt;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::raw::{Frame, Polled, budget};
use convoke_core::{Panic, StopToken, UntilStopped};
use pin_project_lite::pin_project;

use super::catch_stopped::Stopped;
use crate::pinned::is_there;
use crate::region::{Region, pass_on_stop};

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
    RunUntilStopped {
        body: Some(future.into_future()),
        region: Region::new(),
        requested: token.stopped(),
        end: End::NotBegun,
        panic: None,
    }
}

pin_project! {
    /// Future of [`run_until_stopped()`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct RunUntilStopped<F> {
        #[pin]
        body: Option<F>,
        region: Region,
        requested: UntilStopped,
        end: End,
        // The panic of a stop callback. It is resumed when the body has ended.
        panic: Option<Panic>,
    }
}

#[derive(Clone, Copy)]
enum End {
    /// The body was not polled yet.
    NotBegun,
    /// The body runs. True if it was asked to stop by the token, and not from around.
    Running { by_token: bool },
    /// The body has stopped, and the task with it. It may be polled again, by a combinator that still has to
    /// finish another branch.
    Stopped,
}

impl<F: Future> Future for RunUntilStopped<F> {
    type Output = Result<F::Output, Stopped>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if matches!(this.end, End::NotBegun) {
            if !budget::may_proceed(cx) {
                return Poll::Pending;
            }
            *this.end = End::Running { by_token: false };
        }
        let End::Running { by_token } = this.end else { return pass_on_stop() };
        assert!(is_there(this.body.as_mut()), "`run_until_stopped` polled after it has ended");
        let held = Frame::held_before();
        let polled = loop {
            // A stop from around counts first, if both were requested.
            if let Err(panic) = Panic::catch(|| this.region.listen(cx)) {
                this.panic.get_or_insert(panic);
            }
            if this.region.stop_reason().is_none()
                && let Poll::Ready(reason) = this.requested.poll_requested(cx)
            {
                *by_token = true;
                if let Err(panic) = Panic::catch(|| this.region.request_stop(reason)) {
                    this.panic.get_or_insert(panic);
                }
            }
            let Some(body) = this.body.as_mut().as_pin_mut() else { return Poll::Pending };
            let polled = this.region.poll(body, cx);
            // A request that the body made itself is heard at once: the callback has woken this task already.
            if !matches!(polled, Polled::Pending) || *by_token || !this.requested.token().stop_requested() {
                break polled;
            }
            if this.region.stop_reason().is_some() {
                break polled;
            }
        };
        let by_token = *by_token;
        let ended = match polled {
            Polled::Pending => {
                if by_token {
                    // The body is still ending: the task must not end before it.
                    Frame::hold_current();
                }
                return Poll::Pending;
            }
            Polled::Ready(value) => Some(Ok(value)),
            Polled::Stopped if by_token => Some(Err(Stopped::new(this.region.stop_reason()))),
            Polled::Stopped => None,
        };
        budget::spend();
        Frame::forget_holds(held);
        this.region.within(|| this.body.set(None));
        if let Some(panic) = this.panic.take() {
            panic.resume();
        }
        match ended {
            Some(output) => Poll::Ready(output),
            None => {
                *this.end = End::Stopped;
                pass_on_stop()
            }
        }
    }
}

impl<F> fmt::Debug for RunUntilStopped<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunUntilStopped").finish_non_exhaustive()
    }
}
