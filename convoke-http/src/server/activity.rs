//! The activity of a connection: how many requests it has, and since when it waits for one.

use core::task::{Context, Waker};
use core::time::Duration;
use std::sync::PoisonError;
use std::time::Instant;

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_exec::time::now;

use super::protocol::Protocol;
use crate::limits::Limits;

/// The activity of a connection. Its stream, its requests and the task that runs it share this.
pub(super) struct Activity {
    protocol: Protocol,
    state: Mutex<State>,
}

struct State {
    /// The number of requests that have begun and not ended.
    requests: usize,
    /// While there is no request: what the connection waits for, and since when.
    awaits: Awaits,
    since: Instant,
    /// The task of the connection, if it has no timer and must hear when the last request ends.
    waiter: Option<Waker>,
}

/// The input that a connection without a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaits {
    Request,
    /// The first bytes of a request were received, by HTTP/1.
    RestOfHead,
}

impl Activity {
    pub(super) fn new(protocol: Protocol) -> Self {
        let state = State { requests: 0, awaits: Awaits::Request, since: now(), waiter: None };
        Self { protocol, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that bytes were received. By HTTP/2 they may be anything, and say nothing about requests.
    pub(super) fn received(&self) {
        if self.protocol == Protocol::Http1 {
            let mut state = self.lock();
            if state.requests == 0 && state.awaits == Awaits::Request {
                (state.awaits, state.since) = (Awaits::RestOfHead, now());
            }
        }
    }

    /// Records that bytes were sent: the rest of a response that has ended, by HTTP/1.
    pub(super) fn sent(&self) {
        if self.protocol == Protocol::Http1 {
            let mut state = self.lock();
            if state.requests == 0 && state.awaits == Awaits::Request {
                state.since = now();
            }
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
            (state.awaits, state.since) = (Awaits::Request, now());
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

    /// Returns what the connection waits for, and until when it may. While it has requests it may wait for ever: `None`,
    /// and the task is woken when the last request ends.
    pub(super) fn deadline(&self, limits: &Limits, cx: &Context<'_>) -> Option<(Awaits, Instant)> {
        let mut state = self.lock();
        if state.requests > 0 {
            if !state.waiter.as_ref().is_some_and(|waiter| waiter.will_wake(cx.waker())) {
                let before = state.waiter.replace(cx.waker().clone());
                drop(state);
                drop(before);
            }
            return None;
        }
        let time: Duration = match state.awaits {
            Awaits::Request => limits.idle_time,
            Awaits::RestOfHead => limits.header_time,
        };
        Some((state.awaits, state.since.checked_add(time)?))
    }
}
