//! The future of a sleep: what `sleep(duration).await` creates. A sleep is a sender too, but awaited directly
//! it needs no operation state, only a timer in the future.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

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
        when: When,
        #[pin]
        wait: Wait,
    }
}

impl Sleeping {
    #[track_caller]
    #[inline]
    pub(super) fn new(when: When) -> Self {
        Self { when, wait: Wait::here() }
    }
}

impl Future for Sleeping {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        match *this.when {
            When::At(at) => this.wait.poll("a sleep", |_| Some(at), cx),
            When::After(duration) => this.wait.poll_after("a sleep", duration, cx),
        }
    }
}
