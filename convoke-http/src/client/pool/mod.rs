//! The pool: the connections of a client by route, and the requests that wait for one.
//!
//! # Protocol
//! - All of it is under one short lock (`state`). Wakers, channels and hyper's handles are called and dropped after the lock
//!   was released (`later`).
//! - A *line* is a connection as the pool sees it: by HTTP/1 hyper's handle of it, which is either here or with a request; by
//!   HTTP/2 a handle that is cloned for each request. The task of the connection is the only one that removes a line (`ended`).
//! - A request [acquires](Pool::acquire) a [`Checkout`], at once or by waiting. When the checkout is dropped, the line is free
//!   again. By HTTP/1 a line that was used goes through its task, which waits until hyper is ready for the next request: an
//!   exchange that was cut ends the connection there, and never reaches another request.
//! - Whoever learns that connections have to be opened gets them as [`Openings`], and starts their tasks.
//! - A request that waits is served in the order of arrival. It leaves the queue when its [`Waiting`] is dropped.

mod checkout;
mod later;
mod state;

use core::task::Waker;
use core::time::Duration;
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_exec::time::now;
use convoke_sync::oneshot;
use convoke_task::Scope;

use super::error::{Cause, ClientError, Phase};
use super::places::Place;
use super::route::Route;
pub(super) use checkout::{Checkout, Sender};
use later::{Delivery, Later};
pub(super) use state::Watch;
use state::{PoolState, Waiter};

/// The bounds of a pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) connections: usize,
    pub(super) per_origin: usize,
    pub(super) idle_per_origin: usize,
    pub(super) waiting: usize,
    pub(super) streams: usize,
}

pub(super) struct Pool {
    state: Mutex<PoolState>,
}

/// The routes to which connections have to be opened, and the scope to do it in.
#[must_use = "requests wait for these connections"]
pub(super) struct Openings {
    pub(super) routes: Vec<(Arc<Route>, Place)>,
    pub(super) scope: Option<Scope<()>>,
}

/// The answer to a request for a connection.
pub(super) enum Acquired {
    Now(Checkout),
    Later(Waiting, Openings),
}

/// A place in the queue.
pub(super) struct Waiting {
    pool: Arc<Pool>,
    route: Arc<Route>,
    id: u64,
    pub(super) receiver: oneshot::Receiver<Delivery>,
}

impl Pool {
    pub(super) fn new(scope: Scope<()>, bounds: Bounds) -> Self {
        Self { state: Mutex::new(PoolState::new(scope, bounds)) }
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        // No code of the program runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and then does what cannot be done under the lock.
    fn change<R>(self: &Arc<Self>, f: impl FnOnce(&mut PoolState, &mut Later) -> R) -> (R, Openings) {
        let mut later = Later::new(self.clone());
        let mut state = self.lock();
        let result = f(&mut state, &mut later);
        let scope = if later.has_openings() { state.scope.clone() } else { None };
        drop(state);
        (result, Openings { routes: later.run(), scope })
    }

    /// Changes the state in a way that never needs a new connection.
    fn change_only<R>(self: &Arc<Self>, f: impl FnOnce(&mut PoolState, &mut Later) -> R) -> R {
        let (result, openings) = self.change(f);
        debug_assert!(openings.routes.is_empty(), "nobody would open them");
        result
    }

    /// Takes a free connection, preferably one that runs where the request does, or a place in the queue.
    pub(super) fn acquire(
        self: &Arc<Self>,
        route: &Arc<Route>,
        place: Place,
    ) -> Result<Acquired, ClientError> {
        let (result, openings) = self.change(|state, later| {
            if state.scope.is_none() {
                return Err(closed());
            }
            if let Some(taken) = state.take_free(route, place, later) {
                return Ok((Some(taken), None));
            }
            if state.waiting >= state.bounds.waiting.max(1) {
                return Err(ClientError::new(Phase::Wait, Cause::Said("too many requests wait for one")));
            }
            let (sender, receiver) = oneshot::channel();
            let id = state.next_id();
            state.add_waiter(route, Waiter { id, place, sender }, later);
            Ok((None, Some((id, receiver))))
        });
        Ok(match result? {
            (Some(taken), _) => Acquired::Now(Checkout::new(self.clone(), route.clone(), taken)),
            (None, Some((id, receiver))) => {
                let waiting = Waiting { pool: self.clone(), route: route.clone(), id, receiver };
                Acquired::Later(waiting, openings)
            }
            (None, None) => unreachable!("a request is served or waits"),
        })
    }

    /// Adds a connection that was opened. Returns its number; `None` if the client was closed meanwhile.
    pub(super) fn opened(
        self: &Arc<Self>,
        route: &Arc<Route>,
        place: Place,
        sender: Sender,
    ) -> (Option<u64>, Openings) {
        let now = now();
        self.change(|state, later| state.add_line(route, place, sender, now, later))
    }

    /// Notes that a connection could not be opened, and tells those who wait for it.
    pub(super) fn not_opened(self: &Arc<Self>, route: &Arc<Route>, error: &ClientError) -> Openings {
        self.change(|state, later| state.fail_opening(route, error, later)).1
    }

    /// Returns what the task of a connection has to know, and wakes it by `waker` when that changes.
    pub(super) fn watch(&self, route: &Arc<Route>, id: u64, waker: &Waker) -> Watch {
        let mut before = None;
        let mut state = self.lock();
        let is_closed = state.scope.is_none();
        let watch = state.line(route, id).map(|line| line.watch(waker, &mut before)).unwrap_or_default();
        let watch = Watch { is_closed, ..watch };
        drop(state);
        drop(before);
        watch
    }

    /// Returns a line to the pool whose connection is ready for the next request.
    pub(super) fn ready(self: &Arc<Self>, route: &Arc<Route>, id: u64, sender: Sender) {
        let now = now();
        self.change_only(|state, later| state.put(route, id, sender, now, later));
    }

    /// Notes that a connection is not ready for the next request yet: those who wait need another one.
    pub(super) fn not_ready(self: &Arc<Self>, route: &Arc<Route>, id: u64) -> Openings {
        self.change(|state, later| {
            if let Some(line) = state.line(route, id) {
                line.is_returning = false;
            }
            state.open_for_waiters(route, later);
        })
        .1
    }

    /// Takes a line out of use: no request gets it any more.
    pub(super) fn retire(self: &Arc<Self>, route: &Arc<Route>, id: u64) -> Openings {
        self.change(|state, later| {
            state.retire(route, id, later);
            state.open_for_waiters(route, later);
        })
        .1
    }

    /// Takes a line out of use if it was idle for `time`. Else returns when that may be.
    pub(super) fn retire_idle(
        self: &Arc<Self>,
        route: &Arc<Route>,
        id: u64,
        time: Duration,
    ) -> Option<std::time::Instant> {
        let now = now();
        self.change_only(|state, later| {
            let line = state.line(route, id)?;
            let since = if line.is_idle() { line.idle_since } else { now };
            match since.checked_add(time) {
                Some(end) if end <= now => {
                    state.retire(route, id, later);
                    None
                }
                end => end,
            }
        })
    }

    /// Removes the line of a connection that has ended.
    pub(super) fn ended(self: &Arc<Self>, route: &Arc<Route>, id: u64) -> Openings {
        self.change(|state, later| state.remove_line(route, id, later)).1
    }

    /// Takes idle lines of a route out of use: one of them was found to be dead.
    pub(super) fn discard_idle(self: &Arc<Self>, route: &Arc<Route>) {
        self.change_only(|state, later| state.retire_idle_lines(route, later));
    }

    /// Closes the pool: requests that wait fail, idle lines end, and no request gets a line any more.
    pub(super) fn close(self: &Arc<Self>) {
        let scope = self.change_only(|state, later| {
            state.close(&closed(), later);
            state.scope.take()
        });
        drop(scope);
    }

    /// Returns the numbers of connections, of idle ones, and of requests that wait.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        let state = self.lock();
        (state.connections, state.idle(), state.waiting)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let waiter = self.pool.lock().remove_waiter(&self.route, self.id);
        drop(waiter);
    }
}

fn closed() -> ClientError {
    ClientError::new(Phase::Wait, Cause::Closed)
}
