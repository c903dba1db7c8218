//! The future of a sleep: what `sleep(duration).await` creates. A sleep is a sender too, but awaited directly
//! it needs no operation state, only a timer in the future.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::time::{Duration, Instant};

use pin_project_lite::pin_project;

use super::When;
use super::wait::Wait;

pin_project! {
    /// Future of [`sleep()`](super::sleep()) and [`sleep_until()`](super::sleep_until()).
    ///
    /// - *Completes with* `()`, and not before its time; or as stopped as soon as a stop is requested.
    /// - *If dropped*, its timer is disarmed.
    /// - *Runs on* the task that awaits it.
    /// - *Panics* if polled outside a task.
    ///
    /// ```
    /// use std::future::IntoFuture;
    /// use std::time::Duration;
    /// use convoke::prelude::*;
    /// use convoke::time::{Sleeping, sleep};
    ///
    /// let outcome = block_on(async {
    ///     let sleeping: Sleeping = sleep(Duration::from_millis(1)).into_future();
    ///     sleeping.await
    /// });
    /// assert_eq!(outcome, Outcome::Value(()));
    /// ```
    #[derive(Debug)]
    #[must_use = "futures do nothing until they are awaited"]
    pub struct Sleeping {
        #[pin]
        wait: Wait,
    }
}

impl Sleeping {
    #[track_caller]
    #[inline]
    pub(super) fn new(when: When) -> Self {
        Self { wait: Wait::until(when) }
    }

    /// Moves the sleep: it completes at `deadline`, or at once if that was already reached. It may have
    /// completed before, and then sleeps again. A task that awaits it in another branch is woken at the new
    /// time.
    ///
    /// ```
    /// use std::future::IntoFuture;
    /// use std::pin::pin;
    /// use std::time::Duration;
    /// use convoke::prelude::*;
    /// use convoke::time::{now, sleep};
    ///
    /// let outcome = block_on(async {
    ///     let mut idle = pin!(sleep(Duration::from_secs(3600)).into_future());
    ///     let deadline = now() + Duration::from_millis(1);
    ///     idle.as_mut().reset(deadline);
    ///     idle.as_mut().await;
    ///     assert!(now() >= deadline);
    ///     idle.reset_after(Duration::from_millis(1));
    /// });
    /// assert_eq!(outcome, Outcome::Value(()));
    /// ```
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        self.project().wait.move_to(When::At(deadline));
    }

    /// Moves the sleep: it completes after `duration`. The duration starts now if the sleep was polled before,
    /// and with the first poll otherwise. See [`reset`](Sleeping::reset).
    pub fn reset_after(self: Pin<&mut Self>, duration: Duration) {
        self.project().wait.move_to(When::After(duration));
    }

    /// Returns true if its time has come, by the clock of the task that has polled it.
    pub fn is_elapsed(&self) -> bool {
        self.wait.is_over()
    }
}

impl Future for Sleeping {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.project().wait.poll("a sleep", |_| None, cx)
    }
}
