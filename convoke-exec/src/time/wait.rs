//! How a future waits for a time: an alarm, and a check for a stop. All futures of this module use it.

#![allow(unsafe_code)]

use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::time::{Duration, Instant};

use convoke_core::ExecutorRef;
use convoke_core::raw::{Frame, OutOfLine, budget, outside_a_task};
use pin_project_lite::pin_project;

use super::{Alarm, When};
use convoke_core::raw::Pause;

pin_project! {
    /// The wait of a future for a time.
    #[derive(Debug)]
    pub(super) struct Wait {
        #[pin]
        alarm: OutOfLine<Alarm>,
        pause: Pause,
        deadline: Deadline,
    }
}

// SAFETY: a shared reference allows only `Debug` and `is_over`, which read. Everything that changes the alarm
// takes `Pin<&mut Self>`, and the call of its timer touches nothing that they read but an atomic.
unsafe impl Sync for Wait {}

/// The time that is waited for. One level deep, so that it has one tag: a sleep is stored in every task that
/// sleeps.
#[derive(Clone, Copy, Debug)]
enum Deadline {
    /// Not polled yet. The first poll asks for the time.
    Unknown,
    /// At this time; not polled yet.
    BeginsAt(Instant),
    /// This long after the first poll; not polled yet.
    BeginsAfter(Duration),
    /// The alarm waits for this time.
    At(Instant),
    /// The alarm waits for this duration.
    After(Duration),
    /// Waits until a stop is requested.
    Never,
    /// It has completed.
    Over,
}

impl Deadline {
    fn known(when: When) -> Self {
        match when {
            When::At(at) => Self::At(at),
            When::After(duration) => Self::After(duration),
        }
    }

    fn begins(when: When) -> Self {
        match when {
            When::At(at) => Self::BeginsAt(at),
            When::After(duration) => Self::BeginsAfter(duration),
        }
    }
}

/// Durations from here on never end.
pub(super) const FAR: Duration = Duration::from_secs(u32::MAX as u64);

impl Wait {
    /// Creates a wait whose time is asked for by the first poll. It is shown at this location.
    #[inline]
    pub(super) fn at(location: &'static Location<'static>) -> Self {
        Self { alarm: OutOfLine::new(Alarm::new()), pause: Pause::at(location), deadline: Deadline::Unknown }
    }

    /// Creates a wait for this time, or for this long after the first poll.
    #[track_caller]
    #[inline]
    pub(super) fn until(when: When) -> Self {
        Self { alarm: OutOfLine::new(Alarm::new()), pause: Pause::here(), deadline: Deadline::begins(when) }
    }

    /// Returns true if it has completed.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.deadline, Deadline::Over) || self.alarm.is_due()
    }

    /// Waits until the time that `when` returns. It is called in the first poll, with the time of the clock;
    /// `None` means never. Completes as stopped if a stop was requested, even if the time was reached.
    ///
    /// # Panics
    /// If polled outside a task. The message names `who`.
    #[inline]
    pub(super) fn poll(
        mut self: Pin<&mut Self>,
        who: &str,
        when: impl FnOnce(Instant) -> Option<Instant>,
        cx: &Context<'_>,
    ) -> Poll<()> {
        // Reads the stop flag as of the start of this poll of the task. A stop that is requested later polls
        // the task again.
        if Pause::was_stopped() || !budget::may_proceed(cx) {
            return Poll::Pending;
        }
        let deadline = *self.as_mut().project().deadline;
        let over = match deadline {
            Deadline::Unknown => self.as_mut().begin(who, when),
            Deadline::BeginsAt(at) => self.as_mut().begin(who, |_| Some(at)),
            Deadline::BeginsAfter(duration) => self.as_mut().begin_after(who, duration),
            Deadline::Over => true,
            Deadline::At(_) | Deadline::After(_) | Deadline::Never => false,
        };
        if over || self.as_mut().is_reached(cx) {
            *self.project().deadline = Deadline::Over;
            budget::spend();
            return Poll::Ready(());
        }
        self.project().pause.wait(cx);
        Poll::Pending
    }

    /// Chooses the clock, and sets the deadline. Returns true if it was already reached.
    fn begin(self: Pin<&mut Self>, who: &str, when: impl FnOnce(Instant) -> Option<Instant>) -> bool {
        let this = self.project();
        let alarm = this.alarm.as_pin().into_ref();
        let now = with_executor(who, |executor| alarm.now(executor));
        match when(now) {
            Some(at) if at <= now => return true,
            Some(at) => *this.deadline = Deadline::At(at),
            None => *this.deadline = Deadline::Never,
        }
        false
    }

    /// Chooses the clock, and sets a duration that starts now. It does not read the clock if the executor does
    /// so soon. Returns true if the duration is zero.
    #[inline]
    fn begin_after(self: Pin<&mut Self>, who: &str, duration: Duration) -> bool {
        let this = self.project();
        let alarm = this.alarm.as_pin().into_ref();
        with_executor(who, |executor| alarm.use_timers_of(executor));
        *this.deadline = if duration < FAR { Deadline::After(duration) } else { Deadline::Never };
        duration.is_zero()
    }

    /// Returns true if the deadline was reached. If not, the waker of `cx` is called then.
    #[inline]
    fn is_reached(self: Pin<&mut Self>, cx: &Context<'_>) -> bool {
        let this = self.project();
        let alarm = this.alarm.as_pin().into_ref();
        match *this.deadline {
            Deadline::At(at) => alarm.poll_when(When::At(at), cx),
            Deadline::After(duration) => alarm.poll_when(When::After(duration), cx),
            _ => false,
        }
    }

    /// Waits for another time, from now on, also if it has completed. A task that waits is woken then: it need
    /// not poll again.
    pub(super) fn move_to(self: Pin<&mut Self>, when: When) {
        let this = self.project();
        let ends = !matches!(when, When::After(duration) if duration >= FAR);
        let alarm = this.alarm.as_pin().into_ref();
        let moved = ends && alarm.move_to(when);
        if !moved {
            alarm.disarm();
        }
        *this.deadline = if moved { Deadline::known(when) } else { Deadline::begins(when) };
    }

    /// Becomes like new: the next poll asks for the time, and may be by another clock.
    pub(super) fn reset(mut self: Pin<&mut Self>) {
        let location = self.pause.place();
        self.set(Self::at(location));
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
