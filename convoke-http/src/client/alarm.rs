//! A timer that is moved rarely: a busy connection does not touch it.

use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use std::time::Instant;

use convoke_exec::time::{Sleeping, sleep_until};

#[derive(Default)]
pub(super) struct Alarm {
    /// Allocated when it is first needed.
    timer: Option<Pin<Box<Sleeping>>>,
    /// The time that the timer is set to. Not later than the time that is waited for.
    armed: Option<Instant>,
}

impl Alarm {
    /// Completes if the time has come. Else wakes the task then, or before.
    pub(super) fn poll(&mut self, time: Instant, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let timer = self.timer.get_or_insert_with(|| {
                self.armed = Some(time);
                Box::pin(sleep_until(time).into_future())
            });
            let armed = match self.armed {
                Some(armed) if armed <= time => armed,
                _ => {
                    timer.as_mut().reset(time);
                    time
                }
            };
            self.armed = Some(armed);
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.armed = None;
            if armed >= time {
                return Poll::Ready(());
            }
        }
    }
}
