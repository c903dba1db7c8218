//! The activity of a connection: how many requests it has, and since when it waits for one.

use core::task::{Context, Waker};
use core::time::Duration;
use std::sync::PoisonError;
use std::time::Instant;

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_exec::time::now;

use super::protocol::Protocol;
use crate::limits::Limits;

/// The time after its last request after which a connection by HTTP/1 that was busy becomes dormant.
const BUSY_TIME: Duration = Duration::from_secs(1);

/// The activity of a connection. Its stream, its requests and the task that runs it share this.
pub(super) struct Activity {
    protocol: Protocol,
    state: Mutex<ActivityState>,
}

struct ActivityState {
    /// The number of requests that have begun and not ended.
    requests: usize,
    /// While there is no request: what the connection waits for, and since when. The time is `None` until the task
    /// asks: a request that comes and goes in one poll reads no clock.
    awaits: Awaits,
    since: Option<Instant>,
    /// True while a write waits for the client.
    has_unsent: bool,
    /// True if requests follow each other closely, as seen when the connection was last dormant.
    is_busy: bool,
    /// The task of the connection, if it has no timer and must hear when the last request ends.
    waiter: Option<Waker>,
}

/// The input that a connection without a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaits {
    Request,
    /// The first bytes of a request were received, by HTTP/1.
    RestOfHead,
}

/// The next step of a connection if nothing happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It works on requests for as long as they take. The task is woken when the last one ends.
    Works,
    /// It becomes dormant at once.
    Sleeps,
    /// At that time, its patience is over.
    Until(Instant, Over),
}

/// The time that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// That for the head of a request.
    Head,
    /// That in which requests follow each other.
    Busy,
    /// That without a request.
    Idle,
}

impl Activity {
    pub(super) fn new(protocol: Protocol) -> Self {
        let state = ActivityState {
            requests: 0,
            awaits: Awaits::Request,
            since: None,
            has_unsent: false,
            is_busy: false,
            waiter: None,
        };
        Self { protocol, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, ActivityState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that bytes were received. Under HTTP/2, bytes do not show that a request is active.
    pub(super) fn received(&self) {
        if self.protocol == Protocol::Http1 {
            let mut state = self.lock();
            if state.requests == 0 && state.awaits == Awaits::Request {
                (state.awaits, state.since) = (Awaits::RestOfHead, None);
            }
        }
    }

    /// Records that a write waits for the client.
    pub(super) fn waits_to_send(&self) {
        self.lock().has_unsent = true;
    }

    /// Records that bytes were sent after a wait: the rest of a response that has ended, by HTTP/1.
    pub(super) fn sent(&self) {
        let mut state = self.lock();
        state.has_unsent = false;
        if self.protocol == Protocol::Http1 && state.requests == 0 && state.awaits == Awaits::Request {
            state.since = None;
        }
    }

    /// Records that a request has begun.
    pub(super) fn request_began(&self) {
        self.lock().requests += 1;
    }

    /// Records that a request has ended.
    pub(super) fn request_ended(&self) {
        let mut state = self.lock();
        state.requests -= 1;
        if state.requests == 0 {
            (state.awaits, state.since) = (Awaits::Request, None);
            let waiter = state.waiter.take();
            drop(state);
            if let Some(waiter) = waiter {
                waiter.wake();
            }
        }
    }

    /// Returns the number of requests that have begun and not ended.
    pub(super) fn requests(&self) -> usize {
        self.lock().requests
    }

    /// Records that a dormant connection has slept for that long, until bytes were received.
    pub(super) fn woke_after(&self, slept: Duration) {
        self.lock().is_busy = slept < BUSY_TIME;
        self.received();
    }

    /// Returns what the connection does next if nothing happens. `None`: it waits for ever. One that is drained does not
    /// become dormant: it ends.
    pub(super) fn next(&self, limits: &Limits, is_draining: bool, cx: &Context<'_>) -> Option<Next> {
        let mut state = self.lock();
        if state.requests > 0 {
            if !state.waiter.as_ref().is_some_and(|waiter| waiter.will_wake(cx.waker())) {
                let before = state.waiter.replace(cx.waker().clone());
                drop(state);
                drop(before);
            }
            return Some(Next::Works);
        }
        let may_sleep = self.protocol == Protocol::Http1
            && state.awaits == Awaits::Request
            && !(state.has_unsent || is_draining);
        if may_sleep && !state.is_busy {
            return Some(Next::Sleeps);
        }
        let since = *state.since.get_or_insert_with(now);
        let (time, over) = match state.awaits {
            Awaits::RestOfHead => (limits.header_time, Over::Head),
            Awaits::Request if may_sleep && BUSY_TIME < limits.idle_time => (BUSY_TIME, Over::Busy),
            Awaits::Request => (limits.idle_time, Over::Idle),
        };
        Some(Next::Until(since.checked_add(time)?, over))
    }
}
