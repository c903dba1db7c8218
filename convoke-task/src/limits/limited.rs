//! A body with a deadline: when the time is up it is asked to stop, and awaited. `timeout` and `stop_after` say what that comes
//! to.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::time::Instant;

use convoke_core::raw::{Frame, Polled, outside_a_task};
use convoke_core::{Panic, StopReason};
use pin_project_lite::pin_project;

use crate::region::Region;
use convoke_exec::raw::{Alarm, When};

pin_project! {
    /// See the head of this file.
    #[derive(Debug)]
    pub(super) struct Limited<F> {
        #[pin]
        body: Option<F>,
        #[pin]
        alarm: Alarm,
        region: Region,
        when: When,
        // From the first poll on; none if the time is too far away to be named.
        at: Option<Instant>,
        begun: bool,
        elapsed: bool,
        // It has ended by the stopped door, and may be polled again, beside something that must not be dropped yet.
        stopped: bool,
        // Of a stop callback; it goes on when the body has ended.
        panic: Option<Panic>,
    }
}

/// How the body has ended.
pub(super) enum Ended<T> {
    Value(T),
    /// It was stopped because its time was up.
    Elapsed(Instant),
    /// It was stopped by itself, or from around.
    Stopped,
}

impl<F: Future> Limited<F> {
    pub(super) fn new(body: F, when: When) -> Self {
        Self {
            body: Some(body),
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
        let held = Frame::held_before();
        // A body whose time is up when it begins is begun nevertheless, with the request made.
        let up = if *this.begun { this.alarm.is_due() } else { self.as_mut().begin() };
        if up && self.as_mut().is_nearest() {
            self.as_mut().elapse();
        }
        self.as_mut().hear(cx);
        if up {
            self.as_mut().elapse();
        }
        let polled = loop {
            let this = self.as_mut().project();
            let Some(body) = this.body.as_pin_mut() else { panic!("polled after it has ended") };
            match this.region.poll(body, cx) {
                Polled::Pending if self.as_mut().time_is_up(cx) => {}
                polled => break polled,
            }
        };
        let mut this = self.project();
        let ended = match polled {
            Polled::Pending => {
                if *this.elapsed {
                    // It is on its way home.
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
        *this.stopped = !matches!(ended, Ended::Value(_));
        // It may have been polled twice, and have held the task for the first time of it.
        Frame::forget_holds(held);
        this.region.within(|| this.body.set(None));
        if let Some(panic) = this.panic.take() {
            panic.resume();
        }
        Poll::Ready(ended)
    }

    /// The time is counted from here. True if it is up already.
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

    /// Whether no deadline around is as near. If several have passed at once, it is the nearest that counts.
    fn is_nearest(self: Pin<&mut Self>) -> bool {
        let at = *self.project().at;
        let around = Frame::current(|frame| frame.and_then(Frame::deadline));
        around.is_none_or(|around| at.is_some_and(|at| at < around))
    }

    /// Hears of a stop from around.
    fn hear(self: Pin<&mut Self>, cx: &Context<'_>) {
        let this = self.project();
        if let Err(panic) = Panic::catch(|| this.region.listen(cx)) {
            *this.panic = Some(panic);
        }
    }

    /// Whether the time is up, and nobody was before us: then the body was asked to stop just now.
    fn time_is_up(mut self: Pin<&mut Self>, cx: &Context<'_>) -> bool {
        let this = self.as_mut().project();
        let Some(at) = *this.at else { return false };
        // Once it was asked to stop the time does not matter any more.
        this.region.stop_reason().is_none() && this.alarm.as_ref().poll(at, cx) && self.elapse()
    }

    /// Asks the body to stop, if nobody was before us.
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
