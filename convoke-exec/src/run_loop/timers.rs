//! A run loop as the timers of its executor: arming a timer wakes a loop that sleeps longer.

#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use convoke_core::raw::sync::atomic::{Ordering, fence};
use convoke_core::raw::{ArmedTimer, IdleTimer, Timers, contain, report_panic};

use super::SharedLoop;
use super::runner::Runner;
use crate::time::queue::AfterArm;

// SAFETY: the queue keeps the contract of `Timers`. The block outlives each call of a timer: the runner that
// makes it holds a handle.
unsafe impl Timers for SharedLoop {
    fn now(&self) -> Instant {
        SharedLoop::now(self)
    }

    fn arm(&self, timer: IdleTimer, at: Instant) {
        let after = self.timers.arm(timer, at);
        if after == AfterArm::IsEarliest && !Runner::is_running(self) {
            // Pairs with the fence in `sleep`: either we see that the loop sleeps, or it sees the time
            // that we have set.
            fence(Ordering::SeqCst);
            if self.inbox.is_asleep() && self.inbox.wake_up() {
                // Contained: the timer is armed, so this must not look like a failure.
                contain(report_panic, || self.unpark());
            }
        }
    }

    fn arm_after(&self, timer: IdleTimer, duration: Duration) -> Option<Instant> {
        if Runner::is_running(self) {
            // This thread runs the loop, which reads the clock before its next run: once for all durations that
            // one run has armed.
            self.timers.arm_at_next_check(timer, duration);
            Runner::settle_next();
            return None;
        }
        let at = SharedLoop::now(self) + duration;
        self.arm(timer, at);
        Some(at)
    }

    fn known_time(&self, timer: ArmedTimer) -> Option<Instant> {
        self.timers.known_time(timer)
    }

    fn disarm(&self, timer: ArmedTimer) -> bool {
        self.timers.disarm(timer)
    }
}
