//! The timer of a loop that a foreign executor drives: it wakes the task that polls the loop at the time of the loop's
//! earliest timer.

use core::fmt;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use std::time::Instant;

use pin_project_lite::pin_project;

use crate::time::alarm::Alarm;

/// A timer that wakes the task that drives a loop.
pub trait LoopTimer {
    /// Returns `Ready` if the clock has reached `at`. Otherwise wakes the task of `cx` then, and not at the time of the
    /// call before. `None` is never reached.
    #[doc(hidden)]
    fn poll_at(self: Pin<&mut Self>, at: Option<Instant>, cx: &mut Context<'_>) -> Poll<()>;
}

pin_project! {
    /// The timers of the process: the thread `convoke-timers`, which is started when it is first needed.
    #[derive(Debug)]
    pub struct TimerOfProcess {
        #[pin]
        alarm: Alarm,
        at: Option<Instant>,
    }
}

impl TimerOfProcess {
    /// Creates a timer that waits for nothing.
    pub fn new() -> Self {
        Self { alarm: Alarm::new(), at: None }
    }
}

impl Default for TimerOfProcess {
    fn default() -> Self {
        Self::new()
    }
}

impl LoopTimer for TimerOfProcess {
    fn poll_at(self: Pin<&mut Self>, at: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        let alarm = this.alarm.as_ref();
        if *this.at != at {
            alarm.disarm();
            *this.at = at;
        }
        match at {
            // An alarm does not compare its time with the clock when it is armed.
            Some(at) if at <= Instant::now() || alarm.poll(at, cx) => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }
}

pin_project! {
    /// A timer of a foreign executor: `make` returns a future that completes at a time.
    pub struct TimerBy<M, F> {
        make: M,
        #[pin]
        waits: Option<F>,
        at: Option<Instant>,
    }
}

impl<M, F> TimerBy<M, F> {
    /// Creates a timer that waits for nothing.
    pub fn new(make: M) -> Self {
        Self { make, waits: None, at: None }
    }
}

impl<M, F, G> LoopTimer for TimerBy<M, F>
where
    M: FnMut(Instant) -> G,
    F: Future,
    G: IntoFuture<IntoFuture = F>,
{
    fn poll_at(self: Pin<&mut Self>, at: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        if *this.at != at {
            let waits = at.map(|at| (this.make)(at).into_future());
            this.waits.set(waits);
            *this.at = at;
        }
        let Some(waits) = this.waits.as_mut().as_pin_mut() else { return Poll::Pending };
        if waits.poll(cx).is_pending() {
            return Poll::Pending;
        }
        this.waits.set(None);
        *this.at = None;
        Poll::Ready(())
    }
}

impl<M, F> fmt::Debug for TimerBy<M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimerBy").field("at", &self.at).finish_non_exhaustive()
    }
}
