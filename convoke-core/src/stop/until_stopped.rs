//! `token.stopped()`: waits until a stop is requested, without ending by it.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use super::{StopReason, StopToken};
use crate::Panic;
use crate::frame::{Frame, StopWatch, budget};

/// Future of [`StopToken::stopped`].
#[must_use = "futures do nothing until they are awaited"]
pub struct UntilStopped {
    token: StopToken,
    registered: Option<Registered>,
    watch: StopWatch,
    location: &'static Location<'static>,
}

/// A callback that wakes the waiter.
struct Registered {
    waker: Waker,
    // Boxed: it stays in place while it is registered, and the future may be moved.
    _callback: Pin<Box<dyn Send>>,
}

impl UntilStopped {
    pub(super) fn new(token: StopToken, location: &'static Location<'static>) -> Self {
        Self { token, registered: None, watch: StopWatch::new(), location }
    }

    /// Returns the token.
    pub fn token(&self) -> &StopToken {
        &self.token
    }

    /// Completes with the reason if a stop was requested. If not, registers the waker. Unlike `poll`, it does not
    /// end as stopped if the task is asked to stop, and takes nothing from the task's budget.
    pub fn poll_requested(&mut self, cx: &Context<'_>) -> Poll<StopReason> {
        if let Some(reason) = self.token.reason() {
            self.unregister();
            return Poll::Ready(reason);
        }
        let waker = cx.waker();
        if !self.token.stop_possible() || self.registered.as_ref().is_some_and(|it| it.waker.will_wake(waker))
        {
            return Poll::Pending;
        }
        self.unregister();
        let call = waker.clone();
        let callback = Box::pin(self.token.clone().on_stop(move |_: StopReason| call.wake()));
        callback.as_ref().register();
        self.registered = Some(Registered { waker: waker.clone(), _callback: callback });
        // A request that came meanwhile has woken the task already.
        Poll::Pending
    }

    /// Drops the registration. A foreign waker may panic when it is dropped, which the panic hook has reported.
    fn unregister(&mut self) {
        if let Some(registered) = self.registered.take() {
            let _ = Panic::catch(|| drop(registered));
        }
    }
}

impl Future for UntilStopped {
    type Output = StopReason;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<StopReason> {
        if !budget::may_proceed(cx) {
            return Poll::Pending;
        }
        if let Poll::Ready(reason) = self.poll_requested(cx) {
            budget::spend();
            return Poll::Ready(reason);
        }
        Frame::current(|frame| {
            if let Some(frame) = frame
                && !frame.honour_stop()
            {
                frame.waits_at(self.location);
                self.watch.watch(frame, cx);
            }
        });
        Poll::Pending
    }
}

impl fmt::Debug for UntilStopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UntilStopped")
            .field("requested", &self.token.stop_requested())
            .finish_non_exhaustive()
    }
}
