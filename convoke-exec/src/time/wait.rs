//! How a future of a task waits for a time: an alarm in it, and an ear for a stop. All futures of this folder wait by it.

use core::pin::Pin;
use core::task::{Context, Poll};
use std::time::Instant;

use convoke_core::raw::{Frame, outside_a_task};
use pin_project_lite::pin_project;

use super::Alarm;
use crate::sync::pause::Pause;

pin_project! {
    /// See the head of this file.
    #[derive(Debug)]
    pub(super) struct Wait {
        #[pin]
        alarm: Alarm,
        pause: Pause,
        until: Until,
    }
}

#[derive(Clone, Copy, Debug)]
enum Until {
    /// It was not polled yet.
    NotKnown,
    At(Instant),
    /// Until a stop is asked for.
    Never,
}

impl Wait {
    #[track_caller]
    #[inline]
    pub(super) fn here() -> Self {
        Self { alarm: Alarm::new(), pause: Pause::here(), until: Until::NotKnown }
    }

    /// Ready when the time has come. In its first poll it asks `when` for it, with what the clock says: `None` is never.
    /// Ends by the stopped door if a stop is asked for, also if the time has come.
    ///
    /// # Panics
    /// Outside all tasks, naming `who` waits.
    #[inline]
    pub(super) fn poll(
        self: Pin<&mut Self>,
        who: &str,
        when: impl FnOnce(Instant) -> Option<Instant>,
        cx: &Context<'_>,
    ) -> Poll<()> {
        // As of the beginning of the poll, which is as much as those beside it know: who waits is polled again by one that comes.
        if Pause::was_stopped() {
            return Poll::Pending;
        }
        let this = self.project();
        let alarm = this.alarm.as_ref();
        if let Until::NotKnown = this.until {
            let now = Frame::current(|frame| match frame {
                Some(frame) => alarm.now(frame.host().env().executor()),
                None => outside_a_task(who),
            });
            *this.until = when(now).map_or(Until::Never, Until::At);
            if let Until::At(at) = *this.until
                && at <= now
            {
                return Poll::Ready(());
            }
        }
        match *this.until {
            Until::At(at) if alarm.poll(at, cx) => return Poll::Ready(()),
            _ => this.pause.wait(cx),
        }
        Poll::Pending
    }

    /// What the clock says that it waits by. It was polled before.
    pub(super) fn now(self: Pin<&mut Self>) -> Instant {
        self.project().alarm.clock().now()
    }
}
