//! How a future of a task waits for a time: an alarm in it, and an ear for a stop. All futures of this folder wait by it.

use core::pin::Pin;
use core::task::{Context, Poll};
use std::time::{Duration, Instant};

use convoke_core::ExecutorRef;
use convoke_core::raw::{Frame, outside_a_task};
use pin_project_lite::pin_project;

use super::{Alarm, When};
use convoke_core::raw::Pause;

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
    Comes(When),
    /// Until a stop is asked for.
    Never,
}

/// Whiles from here on do not end.
const FAR: Duration = Duration::from_secs(u32::MAX as u64);

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
        self.poll_until(who, cx, |alarm, executor| {
            let now = alarm.now(executor);
            match when(now) {
                Some(at) if at <= now => None,
                at => Some(at.map_or(Until::Never, |at| Until::Comes(When::At(at)))),
            }
        })
    }

    /// The same for a while that begins in the first poll. It does without a look at the clock, if the executor looks soon.
    ///
    /// # Panics
    /// As [`poll`](Wait::poll).
    #[inline]
    pub(super) fn poll_after(
        self: Pin<&mut Self>,
        who: &str,
        duration: Duration,
        cx: &Context<'_>,
    ) -> Poll<()> {
        self.poll_until(who, cx, |alarm, executor| {
            alarm.use_timers_of(executor);
            let comes = duration < FAR;
            let until = if comes { Until::Comes(When::After(duration)) } else { Until::Never };
            (!duration.is_zero()).then_some(until)
        })
    }

    /// In the first poll `begin` says until when it waits, or that the time has come.
    #[inline]
    fn poll_until(
        mut self: Pin<&mut Self>,
        who: &str,
        cx: &Context<'_>,
        begin: impl FnOnce(Pin<&Alarm>, &ExecutorRef) -> Option<Until>,
    ) -> Poll<()> {
        // As of the beginning of the poll, which is as much as those beside it know: who waits is polled again by one that comes.
        if Pause::was_stopped() {
            return Poll::Pending;
        }
        if let Until::NotKnown = self.until {
            let alarm = self.as_ref().project_ref().alarm;
            let Some(until) = with_executor(who, |executor| begin(alarm, executor)) else {
                return Poll::Ready(());
            };
            *self.as_mut().project().until = until;
        }
        self.poll_known(cx)
    }

    #[inline]
    fn poll_known(self: Pin<&mut Self>, cx: &Context<'_>) -> Poll<()> {
        let this = self.project();
        match *this.until {
            Until::Comes(when) if this.alarm.as_ref().poll_when(when, cx) => return Poll::Ready(()),
            _ => this.pause.wait(cx),
        }
        Poll::Pending
    }

    /// What the clock says that it waits by. It was polled before.
    pub(super) fn now(self: Pin<&mut Self>) -> Instant {
        self.project().alarm.clock().now()
    }
}

/// Calls `f` with the executor of the running task.
#[inline]
fn with_executor<R>(who: &str, f: impl FnOnce(&ExecutorRef) -> R) -> R {
    Frame::current(|frame| match frame {
        Some(frame) => f(frame.operation_owner().env().executor()),
        None => outside_a_task(who),
    })
}
