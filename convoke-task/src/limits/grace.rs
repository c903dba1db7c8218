//! A shield for a limited time: `shield(future).grace(period)`.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::time::{Duration, Instant};

use convoke_core::raw::{Frame, Polled, StopWatch, UnderWay, budget, outside_a_task};
use convoke_core::{Panic, StopReason};
use pin_project_lite::pin_project;

use crate::pinned::is_there;
use crate::region::{Region, pass_on_stop};
use convoke_exec::raw::Alarm;

pin_project! {
    /// Future of [`Shield::grace`](super::Shield::grace).
    #[must_use = "futures do nothing until they are awaited"]
    pub struct GracePeriod<F> {
        #[pin]
        body: Option<F>,
        #[pin]
        alarm: Alarm,
        region: Region,
        period: Duration,
        begun: bool,
        // The stop request from outside, once it was seen.
        heard: Option<StopSeen>,
        watch: StopWatch,
        under_way: UnderWay,
        // The panic of a stop callback. It is resumed when the body has ended.
        panic: Option<Panic>,
    }
}

/// A stop request from outside.
#[derive(Clone, Copy)]
struct StopSeen {
    reason: StopReason,
    /// The instant at which it is passed to the body. `None` if that is later than an `Instant` can be.
    at: Option<Instant>,
}

impl<F: Future> GracePeriod<F> {
    pub(super) fn new(body: Option<F>, period: Duration) -> Self {
        Self {
            body,
            alarm: Alarm::new(),
            region: Region::shielded(),
            period,
            begun: false,
            heard: None,
            watch: StopWatch::new(),
            under_way: UnderWay::new(),
            panic: None,
        }
    }

    /// Checks for a stop request from outside. At the first poll, also takes over the deadline from outside,
    /// later by the period.
    fn listen(self: Pin<&mut Self>, around: &Frame<'_>, cx: &Context<'_>) {
        let this = self.project();
        if !*this.begun {
            *this.begun = true;
            if let Some(latest) = around.deadline().and_then(|deadline| deadline.checked_add(*this.period)) {
                *this.region = Region::shielded().with_deadline(latest);
            }
        }
        if this.heard.is_some() {
            return;
        }
        let Some(reason) = around.stop_reason() else { return this.watch.watch(around, cx) };
        let now = this.alarm.as_ref().now(around.operation_owner().env().executor());
        *this.heard = Some(StopSeen { reason, at: now.checked_add(*this.period) });
        if this.period.is_zero() {
            ask(this.region, reason, this.panic);
        }
    }

    /// Asks the body to stop if the grace period is over. Returns true if it was asked just now.
    fn is_over(self: Pin<&mut Self>, cx: &Context<'_>) -> bool {
        let this = self.project();
        let Some(StopSeen { reason, at: Some(at) }) = *this.heard else { return false };
        let over = this.region.stop_reason().is_none() && this.alarm.as_ref().poll(at, cx);
        if over {
            ask(this.region, reason, this.panic);
        }
        over
    }
}

/// Asks the region to stop. A panic of a stop callback is stored.
fn ask(region: &Region, reason: StopReason, caught: &mut Option<Panic>) {
    if let Err(panic) = Panic::catch(|| region.request_stop(reason)) {
        *caught = Some(panic);
    }
}

impl<F: Future> Future for GracePeriod<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        if !is_there(self.as_mut().project().body) {
            // Polled again after the stop, by a combinator that still has to finish another branch.
            return pass_on_stop();
        }
        if !*self.as_mut().project().begun && !budget::may_proceed(cx) {
            return Poll::Pending;
        }
        let (mark, held) = (budget::mark(), Frame::held_before());
        Frame::current(|frame| match frame {
            Some(around) => self.as_mut().listen(around, cx),
            None => outside_a_task("a shield"),
        });
        let polled = loop {
            let this = self.as_mut().project();
            let Some(body) = this.body.as_pin_mut() else { unreachable!("the body was checked above") };
            match this.region.poll(body, cx) {
                Polled::Pending if self.as_mut().is_over(cx) => {}
                polled => break polled,
            }
        };
        let mut this = self.project();
        if matches!(polled, Polled::Pending) {
            this.under_way.hold(cx);
            return Poll::Pending;
        }
        this.under_way.end();
        // The body may have been polled twice, and its first poll may have held the task.
        Frame::forget_holds(held);
        this.region.within(|| this.body.set(None));
        if let Some(panic) = this.panic.take() {
            panic.resume();
        }
        match polled {
            Polled::Ready(value) => {
                mark.spend_once();
                Poll::Ready(value)
            }
            _ => pass_on_stop(),
        }
    }
}

impl<F> fmt::Debug for GracePeriod<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GracePeriod")
            .field("period", &self.period)
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}
