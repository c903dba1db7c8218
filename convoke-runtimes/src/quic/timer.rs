//! quinn's trait of timers: a sleep that can be set to another time.

use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use std::time::Instant;

use ::quinn::AsyncTimer;
use convoke_exec::time::{Sleeping, sleep_until};
use pin_project_lite::pin_project;

pin_project! {
    #[derive(Debug)]
    pub(super) struct Timer {
        #[pin]
        sleeping: Sleeping,
    }
}

impl Timer {
    pub(super) fn new(at: Instant) -> Self {
        Self { sleeping: sleep_until(at).into_future() }
    }
}

impl AsyncTimer for Timer {
    fn reset(self: Pin<&mut Self>, at: Instant) {
        self.project().sleeping.set(sleep_until(at).into_future());
    }

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.project().sleeping.poll(cx)
    }
}
