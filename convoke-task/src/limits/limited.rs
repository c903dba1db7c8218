//! A body with a deadline: when the time is up, it is asked to stop, and awaited. The common part of
//! `timeout` and `stop_after`.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::time::Instant;

use convoke_core::raw::{Frame, OutOfLine, Polled, budget, outside_a_task};
use convoke_core::{Panic, StopReason};
use pin_project_lite::pin_project;

use crate::region::Region;
use convoke_exec::raw::{Alarm, When};

pin_project! {
    /// A body with a deadline.
    #[derive(Debug)]
    pub(super) struct Limited<F> {
        #[pin]
        body: OutOfLine<Option<F>>,
        #[pin]
        alarm: Alarm,
        region: Region,
        when: When,
        // Set by the first poll. `None` if the deadline is later than an `Instant` can be.
        at: Option<Instant>,
        begun: bool,
        elapsed: bool,
        // It ended as stopped. It may be polled again, by a combinator that still has to finish another branch.
        stopped: bool,
        // The panic of a stop callback. It is resumed when the body has ended.
        panic: Option<Panic>,
    }
}

/// The end of the body.
pub(super) enum Ended<T> {
    Value(T),
    /// It stopped because its time was up.
    Elapsed(Instant),
    /// It stopped by itself, or because of a request from outside.
    Stopped,
}

impl<F: Future> Limited<F> {
    pub(super) fn new(body: F, when: When) -> Self {
        Self {
            body: OutOfLine::new(Some(body)),
            alarm: Alarm::new(),
            region: Region::new(),
            when,
            at: None,
            begun: false,
            elapsed: false,
            stopped: false,
            panic: None,
        }
    }

    pub(super) fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended<F::Output>> {
        let this = self.as_mut().project();
        if *this.stopped {
            return Poll::Ready(Ended::Stopped);
        }
        if !*this.begun && !budget::may_proceed(cx) {
            return Poll::Pending;
        }
        let held = Frame::held_before();
        // A body whose time is up at the first poll is polled in any case, with the stop request already made.
        let up = if *this.begun { this.alarm.is_due() } else { self.as_mut().begin() };
        if up && self.as_mut().is_nearest() {
            self.as_mut().elapse();
        }
        self.as_mut().listen(cx);
        if up {
            self.as_mut().elapse();
        }
        let polled = loop {
            let this = self.as_mut().project();
            let Some(body) = this.body.as_pin().as_pin_mut() else { panic!("polled after completion") };
            match this.region.poll(body, cx) {
                Polled::Pending if self.as_mut().time_is_up(cx) => {}
                polled => break polled,
            }
        };
        let this = self.project();
        let ended = match polled {
            Polled::Pending => {
                if *this.elapsed {
                    // The body is still ending: the task must not end before it.
                    Frame::hold_current();
                }
                return Poll::Pending;
            }
            Polled::Ready(value) => Ended::Value(value),
            Polled::Stopped => match this.at {
                Some(at) if *this.elapsed => Ended::Elapsed(*at),
                _ => Ended::Stopped,
            },
        };
        budget::spend();
        *this.stopped = !matches!(ended, Ended::Value(_));
        // The body may have been polled twice, and its first poll may have held the task.
        Frame::forget_holds(held);
        let mut body = this.body.as_pin();
        this.region.within(|| body.set(None));
        if let Some(panic) = this.panic.take() {
            panic.resume();
        }
        Poll::Ready(ended)
    }

    /// Starts the time. Returns true if it is already up.
    fn begin(self: Pin<&mut Self>) -> bool {
        let this = self.project();
        *this.begun = true;
        let now = Frame::current(|frame| match frame {
            Some(frame) => this.alarm.as_ref().now(frame.operation_owner().env().executor()),
            None => outside_a_task("a future with a deadline"),
        });
        *this.at = this.when.from(now);
        if let Some(at) = *this.at {
            *this.region = Region::new().with_deadline(at);
        }
        this.at.is_some_and(|at| at <= now)
    }

    /// Returns true if this deadline is earlier than those from outside. If several have passed, the earliest
    /// one counts.
    fn is_nearest(self: Pin<&mut Self>) -> bool {
        let at = *self.project().at;
        let around = Frame::current(|frame| frame.and_then(Frame::deadline));
        around.is_none_or(|around| at.is_some_and(|at| at < around))
    }

    /// Checks for a stop request from outside.
    fn listen(self: Pin<&mut Self>, cx: &Context<'_>) {
        let this = self.project();
        if let Err(panic) = Panic::catch(|| this.region.listen(cx)) {
            *this.panic = Some(panic);
        }
    }

    /// Asks the body to stop if the time is up, and it was not asked before. Returns true if it was asked
    /// just now.
    fn time_is_up(mut self: Pin<&mut Self>, cx: &Context<'_>) -> bool {
        let this = self.as_mut().project();
        let Some(at) = *this.at else { return false };
        // After a stop request the time does not matter.
        this.region.stop_reason().is_none() && this.alarm.as_ref().poll(at, cx) && self.elapse()
    }

    /// Asks the body to stop, because its time is up. Returns false if it was asked before.
    fn elapse(self: Pin<&mut Self>) -> bool {
        let this = self.project();
        if this.region.stop_reason().is_some() {
            return false;
        }
        *this.elapsed = true;
        if let Err(panic) = Panic::catch(|| this.region.request_stop(StopReason::Deadline)) {
            *this.panic = Some(panic);
        }
        true
    }
}
