//! A body in a region of its own that stops with a token, and that may run under an overlay. The common part of
//! `run_until_stopped` and `env::with`.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::raw::{Frame, Overlay, Polled, UnderWay, budget};
use convoke_core::{FOREIGN_FUTURES, ForeignFutures, Panic, StopReason, StopToken, UntilStopped};
use pin_project_lite::pin_project;

use crate::pinned::is_there;
use crate::region::Region;

pin_project! {
    /// A body that is asked to stop when its task is, or through a token.
    pub(super) struct UntilToken<F> {
        #[pin]
        body: Option<F>,
        region: Region,
        overlay: Option<Overlay>,
        requested: Option<UntilStopped>,
        stage: Stage,
        // Set while the overlay says that a foreign future is waited for, though the task may say otherwise.
        under_way: UnderWay,
        // The panic of a stop callback. It is resumed when the body has ended.
        panic: Option<Panic>,
    }
}

#[derive(Clone, Copy)]
enum Stage {
    /// The body was not polled yet.
    NotBegun,
    /// The body runs. True if it was asked to stop by the token, and not from around.
    Running { by_token: bool },
    /// The body has stopped. It may be polled again, by a combinator that still has to finish another branch.
    Stopped,
}

/// The end of the body.
pub(super) enum Ended<T> {
    Value(T),
    /// It stopped for the token's request.
    ByToken(Option<StopReason>),
    /// It stopped by itself, or because of a request from around.
    Stopped,
}

impl<F: Future> UntilToken<F> {
    pub(super) fn new(body: F, token: Option<StopToken>) -> Self {
        let deadline = token.as_ref().and_then(|token| token.as_ref().deadline());
        let region = Region::new();
        Self {
            body: Some(body),
            region: deadline.map_or_else(Region::new, |at| region.with_deadline(at)),
            overlay: None,
            requested: token.map(|token| token.stopped()),
            stage: Stage::NotBegun,
            under_way: UnderWay::new(),
            panic: None,
        }
    }

    /// Polls the body. `overlay` is called before its first poll, for the changes that it runs under.
    pub(super) fn poll(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        overlay: impl FnOnce() -> Option<Overlay>,
    ) -> Poll<Ended<F::Output>> {
        let mut this = self.project();
        if matches!(this.stage, Stage::NotBegun) {
            if !budget::may_proceed(cx) {
                return Poll::Pending;
            }
            *this.overlay = overlay();
            *this.stage = Stage::Running { by_token: false };
        }
        let Stage::Running { by_token } = this.stage else { return Poll::Ready(Ended::Stopped) };
        assert!(is_there(this.body.as_mut()), "polled after it has ended");
        let held = Frame::held_before();
        let polled = loop {
            // A stop from around counts first, if both were requested.
            if let Err(panic) = Panic::catch(|| this.region.listen(cx)) {
                this.panic.get_or_insert(panic);
            }
            if this.region.stop_reason().is_none()
                && let Some(requested) = this.requested
                && let Poll::Ready(reason) = requested.poll_requested(cx)
            {
                *by_token = true;
                if let Err(panic) = Panic::catch(|| this.region.request_stop(reason)) {
                    this.panic.get_or_insert(panic);
                }
            }
            let Some(body) = this.body.as_mut().as_pin_mut() else { return Poll::Pending };
            let polled = this.region.poll_under(this.overlay.as_ref(), body, cx);
            // A request that the body made itself is heard at once: the callback has woken this task already.
            let requested = this.requested.as_ref().is_some_and(|it| it.token().stop_requested());
            if !matches!(polled, Polled::Pending) || *by_token || !requested {
                break polled;
            }
            if this.region.stop_reason().is_some() {
                break polled;
            }
        };
        let by_token = *by_token;
        let ended = match polled {
            Polled::Pending => {
                if this.region.is_asked() && this.overlay.as_ref().is_some_and(runs_foreign_futures_to_end) {
                    this.under_way.hold(cx);
                } else if by_token {
                    // The body is still ending: the task must not end before it.
                    Frame::hold_current();
                }
                return Poll::Pending;
            }
            Polled::Ready(value) => Ended::Value(value),
            Polled::Stopped if by_token => Ended::ByToken(this.region.stop_reason()),
            Polled::Stopped => Ended::Stopped,
        };
        *this.stage = match ended {
            Ended::Value(_) => Stage::Running { by_token },
            Ended::ByToken(_) | Ended::Stopped => Stage::Stopped,
        };
        this.under_way.end();
        budget::spend();
        Frame::forget_holds(held);
        this.region.within_under(this.overlay.as_ref(), || this.body.set(None));
        // A value of the overlay may panic when it is dropped.
        *this.overlay = None;
        if let Some(panic) = this.panic.take() {
            panic.resume();
        }
        Poll::Ready(ended)
    }
}

/// Returns true if a body under this overlay waits for futures of other crates after a stop request.
fn runs_foreign_futures_to_end(overlay: &Overlay) -> bool {
    overlay.local(&FOREIGN_FUTURES) == Some(&ForeignFutures::RunToEnd)
}

impl<F> fmt::Debug for UntilToken<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UntilToken").field("overlay", &self.overlay).finish_non_exhaustive()
    }
}
