//! `token.stopped()`: waits until a stop is requested, without ending by it.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::wake_on_stop::WakeOnStop;
use super::{Frame, StopWatch, budget};
use crate::{StopReason, StopToken};

/// Future of [`StopToken::stopped`].
#[must_use = "futures do nothing until they are awaited"]
pub struct UntilStopped {
    token: StopToken,
    registered: Option<WakeOnStop>,
    watch: StopWatch,
    location: &'static Location<'static>,
}

impl StopToken {
    /// Waits until a stop is requested, without ending by it: for code that has something to do then, such as a
    /// last message to a peer. It holds for the token that it is called on, not for the task: see *Completes
    /// with*.
    ///
    /// The request still holds afterwards. If it is that of the task itself, the next wait is stopped; work that
    /// must go on belongs into a `shield`.
    ///
    /// - *Completes with* the reason, when a stop is requested through this token. Stopped, if the task is asked
    ///   to stop and this token is not. It waits for ever if no stop is possible.
    /// - *If dropped*, nothing happens.
    /// - *Runs on* the task's executor. It can also be polled outside a task.
    ///
    /// ```
    /// use convoke::env::current;
    /// use convoke::prelude::*;
    ///
    /// let (pool, source) = (ThreadPool::new(1)?, StopSource::new());
    /// let launched = launch(&pool.executor()).stop_token(source.token()).start(async {
    ///     let reason = current::stop_token().stopped().await;
    ///     format!("good bye: {reason}")
    /// });
    /// source.request_stop(StopReason::Shutdown);
    /// assert_eq!(launched.wait(), Outcome::Value("good bye: shutting down".to_owned()));
    /// # std::io::Result::Ok(())
    /// ```
    #[doc(alias = "cancelled")]
    #[track_caller]
    pub fn stopped(&self) -> UntilStopped {
        let (token, location) = (self.clone(), Location::caller());
        UntilStopped { token, registered: None, watch: StopWatch::new(), location }
    }
}

impl UntilStopped {
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
        if !self.token.stop_possible() || self.registered.as_ref().is_some_and(|it| it.is_of(waker)) {
            return Poll::Pending;
        }
        self.unregister();
        self.registered = Some(WakeOnStop::new(self.token.clone(), waker));
        // A request that came meanwhile has woken the task already.
        Poll::Pending
    }

    fn unregister(&mut self) {
        if let Some(registered) = self.registered.take() {
            registered.unregister();
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
