//! How a future waits for a time: an alarm, and a check for a stop. All futures of this module use it.

use core::pin::Pin;
use core::task::{Context, Poll};
use std::time::{Duration, Instant};

use convoke_core::ExecutorRef;
use convoke_core::raw::{Frame, budget, outside_a_task};
use pin_project_lite::pin_project;

use super::{Alarm, When};
use convoke_core::raw::Pause;

pin_project! {
    /// The wait of a future for a time.
    #[derive(Debug)]
    pub(super) struct Wait {
        #[pin]
        alarm: Alarm,
        pause: Pause,
            deadline: Deadline,
    }
}

#[derive(Clone, Copy, Debug)]
enum Deadline {
    /// Not polled yet.
    Unknown,
    Known(When),
    /// Waits until a stop is requested.
    Never,
}

/// Durations from here on never end.
const FAR: Duration = Duration::from_secs(u32::MAX as u64);

impl Wait {
    #[track_caller]
    #[inline]
    pub(super) fn here() -> Self {
        Self { alarm: Alarm::new(), pause: Pause::here(), deadline: Deadline::Unknown }
    }

    /// Waits until the time that `when` returns. It is called in the first poll, with the time of the clock;
    /// `None` means never. Completes as stopped if a stop was requested, even if the time was reached.
    ///
    /// # Panics
    /// If polled outside a task. The message names `who`.
    #[inline]
    pub(super) fn poll(
        self: Pin<&mut Self>,
        who: &str,
        when: impl FnOnce(Instant) -> Option<Instant>,
        cx: &Context<'_>,
    ) -> Poll<()> {
        self.poll_deadline(who, cx, |alarm, executor| {
            let now = alarm.now(executor);
            match when(now) {
                Some(at) if at <= now => None,
                at => Some(at.map_or(Deadline::Never, |at| Deadline::Known(When::At(at)))),
            }
        })
    }

    /// Waits for a duration that starts in the first poll. It does not read the clock if the executor does so
    /// soon. Completes as stopped if a stop was requested.
    ///
    /// # Panics
    /// If polled outside a task. The message names `who`.
    #[inline]
    pub(super) fn poll_after(
        self: Pin<&mut Self>,
        who: &str,
        duration: Duration,
        cx: &Context<'_>,
    ) -> Poll<()> {
        self.poll_deadline(who, cx, |alarm, executor| {
            alarm.use_timers_of(executor);
            let ends = duration < FAR;
            let deadline = if ends { Deadline::Known(When::After(duration)) } else { Deadline::Never };
            (!duration.is_zero()).then_some(deadline)
        })
    }

    /// Waits for the deadline that `begin` returns in the first poll, or completes if it returns `None`.
    #[inline]
    fn poll_deadline(
        mut self: Pin<&mut Self>,
        who: &str,
        cx: &Context<'_>,
        begin: impl FnOnce(Pin<&Alarm>, &ExecutorRef) -> Option<Deadline>,
    ) -> Poll<()> {
        // Reads the stop flag as of the start of this poll of the task. A stop that is requested later polls
        // the task again.
        if Pause::was_stopped() || !budget::may_proceed(cx) {
            return Poll::Pending;
        }
        if let Deadline::Unknown = self.deadline {
            let alarm = self.as_ref().project_ref().alarm;
            let Some(deadline) = with_executor(who, |executor| begin(alarm, executor)) else {
                budget::spend();
                return Poll::Ready(());
            };
            *self.as_mut().project().deadline = deadline;
        }
        self.poll_known(cx)
    }

    #[inline]
    fn poll_known(self: Pin<&mut Self>, cx: &Context<'_>) -> Poll<()> {
        let this = self.project();
        match *this.deadline {
            Deadline::Known(when) if this.alarm.as_ref().poll_when(when, cx) => {
                budget::spend();
                return Poll::Ready(());
            }
            _ => this.pause.wait(cx),
        }
        Poll::Pending
    }

    /// Reads the clock by which it waits. It must have been polled before.
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
