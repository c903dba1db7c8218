//! The state of a pool: lines and waiters by route, and their numbers.

use core::mem;
use core::task::Waker;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use convoke_task::Scope;

use super::super::error::ClientError;
use super::super::places::Place;
use super::super::route::Route;
use super::Bounds;
use super::checkout::{Sender, Taken};
use super::later::{Later, Recipient};

pub(super) struct PoolState {
    /// The scope of the connections. `None` once the client was closed.
    pub(super) scope: Option<Scope<()>>,
    pub(super) bounds: Bounds,
    /// The routes, in a fixed order: so a seed of a simulation always gives the same run.
    entries: BTreeMap<Arc<Route>, Entry>,
    /// The number of connections, with those that are being opened.
    pub(super) connections: usize,
    /// The number of requests that wait.
    pub(super) waiting: usize,
    last_id: u64,
}

/// The connections of one route.
#[derive(Default)]
struct Entry {
    lines: Vec<Line>,
    /// The number of connections that are being opened.
    opening: usize,
    waiters: VecDeque<Waiter>,
    /// The last connection was of HTTP/1, so that each serves one request at a time.
    is_http1: bool,
}

pub(super) struct Waiter {
    pub(super) id: u64,
    pub(super) place: Place,
    pub(super) sender: Recipient,
}

pub(super) struct Line {
    id: u64,
    /// Where the task of the connection runs.
    place: Place,
    handle: Handle,
    /// The number of requests that use it.
    used: usize,
    /// By HTTP/1, the last request is over, and hyper may be ready for the next one in a moment.
    pub(super) is_returning: bool,
    /// A request was sent by it.
    is_reused: bool,
    is_retired: bool,
    pub(super) idle_since: Instant,
    /// The task of the connection.
    waker: Option<Waker>,
}

/// Hyper's handle of a line, and where it is.
enum Handle {
    /// By HTTP/1, here and ready. By HTTP/2, here to be cloned.
    Here(Sender),
    /// By HTTP/1, a request was answered, and the task of the connection has to look whether hyper is ready.
    Returned(Sender),
    /// With a request, with the task, or gone.
    Away,
}

/// The part of a line that the task of its connection has to know.
#[derive(Default)]
pub(in super::super) struct Watch {
    pub(in super::super) used: usize,
    pub(in super::super) returned: Option<Sender>,
    pub(in super::super) is_retired: bool,
    /// The client was closed.
    pub(in super::super) is_closed: bool,
}

impl Line {
    /// Returns true if no request uses it, and the next one can.
    pub(super) fn is_idle(&self) -> bool {
        self.used == 0 && !self.is_retired && matches!(self.handle, Handle::Here(_))
    }

    pub(super) fn watch(&mut self, waker: &Waker, before: &mut Option<Waker>) -> Watch {
        if !self.waker.as_ref().is_some_and(|old| old.will_wake(waker)) {
            *before = self.waker.replace(waker.clone());
        }
        let returned = match mem::replace(&mut self.handle, Handle::Away) {
            Handle::Returned(sender) => Some(sender),
            other => {
                self.handle = other;
                None
            }
        };
        Watch { used: self.used, returned, is_retired: self.is_retired, is_closed: false }
    }

    /// Takes the line for a request, if it has room for one.
    fn take(&mut self, streams: usize, later: &mut Later) -> Option<Taken> {
        if self.is_retired || self.used >= streams {
            return None;
        }
        let sender = match &self.handle {
            // Its task is about to remove it.
            Handle::Here(sender) if sender.is_closed() => {
                self.retire(later);
                return None;
            }
            Handle::Here(Sender::Http2(sender)) => Sender::Http2(sender.clone()),
            Handle::Here(Sender::Http1(_)) => match mem::replace(&mut self.handle, Handle::Away) {
                Handle::Here(sender) => sender,
                _ => unreachable!("matched above"),
            },
            Handle::Returned(_) | Handle::Away => return None,
        };
        self.used += 1;
        Some(Taken { id: self.id, sender, is_reused: mem::replace(&mut self.is_reused, true) })
    }

    fn retire(&mut self, later: &mut Later) {
        self.is_retired = true;
        self.is_returning = false;
        if let Handle::Here(sender) | Handle::Returned(sender) = mem::replace(&mut self.handle, Handle::Away)
        {
            later.drop(Some(sender));
        }
        later.wake(self.waker.clone());
    }
}

impl Entry {
    fn take_free(&mut self, streams: usize, place: Place, later: &mut Later) -> Option<Taken> {
        loop {
            let best = self.best_free(streams, place)?;
            // A line whose connection has ended is retired by this.
            if let Some(taken) = self.lines[best].take(streams, later) {
                return Some(taken);
            }
        }
    }

    /// Returns the index of the line to use: by HTTP/2 the first one with room, by HTTP/1 one that runs at the same place, and of
    /// those the one that was used last, so that the others become old and end.
    fn best_free(&self, streams: usize, place: Place) -> Option<usize> {
        let rank = |line: &Line| (line.place == place, line.idle_since);
        let mut best: Option<usize> = None;
        for (index, line) in self.lines.iter().enumerate() {
            let Handle::Here(sender) = &line.handle else { continue };
            if line.is_retired || line.used >= streams {
                continue;
            }
            if matches!(sender, Sender::Http2(_)) {
                return Some(index);
            }
            if best.is_none_or(|best| rank(&self.lines[best]) <= rank(line)) {
                best = Some(index);
            }
        }
        best
    }

    fn is_unused(&self) -> bool {
        self.lines.is_empty() && self.opening == 0 && self.waiters.is_empty()
    }

    /// Returns the number of connections to open for those who wait.
    fn wanted(&self, route: &Route, bounds: &Bounds) -> usize {
        let in_use = self.lines.len() + self.opening;
        let wanted = if route.may_multiplex() && !self.is_http1 {
            // The first one may serve all.
            usize::from(!self.waiters.is_empty() && self.opening == 0)
        } else {
            let returning = self.lines.iter().filter(|line| line.is_returning).count();
            self.waiters.len().saturating_sub(self.opening + returning)
        };
        wanted.min(bounds.per_origin.max(1).saturating_sub(in_use))
    }
}

impl PoolState {
    pub(super) fn new(scope: Scope<()>, bounds: Bounds) -> Self {
        let scope = Some(scope);
        Self { scope, bounds, entries: BTreeMap::new(), connections: 0, waiting: 0, last_id: 0 }
    }

    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub(super) fn line(&mut self, route: &Arc<Route>, id: u64) -> Option<&mut Line> {
        self.entries.get_mut(route)?.lines.iter_mut().find(|line| line.id == id)
    }

    pub(super) fn idle(&self) -> usize {
        self.entries
            .values()
            .flat_map(|entry| &entry.lines)
            .filter(|line| line.used == 0 && !line.is_retired)
            .count()
    }

    pub(super) fn take_free(&mut self, route: &Arc<Route>, place: Place, later: &mut Later) -> Option<Taken> {
        self.entries.get_mut(route)?.take_free(self.bounds.streams.max(1), place, later)
    }

    pub(super) fn add_waiter(&mut self, route: &Arc<Route>, waiter: Waiter, later: &mut Later) {
        self.waiting += 1;
        self.entries.entry(route.clone()).or_default().waiters.push_back(waiter);
        self.open_for_waiters(route, later);
    }

    pub(super) fn remove_waiter(&mut self, route: &Arc<Route>, id: u64) -> Option<Waiter> {
        let entry = self.entries.get_mut(route)?;
        let index = entry.waiters.iter().position(|waiter| waiter.id == id)?;
        let waiter = entry.waiters.remove(index);
        self.waiting -= 1;
        self.forget_unused(route);
        waiter
    }

    /// Gives free lines to those who wait.
    fn serve(&mut self, route: &Arc<Route>, later: &mut Later) {
        let Some(entry) = self.entries.get_mut(route) else { return };
        while let Some(place) = entry.waiters.front().map(|waiter| waiter.place) {
            let Some(taken) = entry.take_free(self.bounds.streams.max(1), place, later) else { return };
            let Some(waiter) = entry.waiters.pop_front() else { return };
            self.waiting -= 1;
            later.deliver(waiter.sender, route, taken);
        }
    }

    /// Opens connections for those who wait, as far as the bounds allow.
    pub(super) fn open_for_waiters(&mut self, route: &Arc<Route>, later: &mut Later) {
        let Some(entry) = self.entries.get_mut(route) else { return };
        if self.scope.is_none() {
            return;
        }
        let wanted = entry.wanted(route, &self.bounds);
        let room = self.bounds.connections.max(1).saturating_sub(self.connections);
        let now = wanted.min(room);
        for index in entry.opening..entry.opening + now {
            // Where the request runs that it is opened for.
            later.open(route, entry.waiters.get(index).map_or(Place::default(), |waiter| waiter.place));
        }
        entry.opening += now;
        self.connections += now;
        for _ in now..wanted {
            // When it has ended, its place is free.
            self.retire_oldest_idle(later);
        }
    }

    fn retire_oldest_idle(&mut self, later: &mut Later) {
        let lines = self.entries.values_mut().flat_map(|entry| &mut entry.lines);
        if let Some(line) = lines.filter(|line| line.is_idle()).min_by_key(|line| (line.idle_since, line.id))
        {
            line.retire(later);
        }
    }

    pub(super) fn add_line(
        &mut self,
        route: &Arc<Route>,
        place: Place,
        sender: Sender,
        now: Instant,
        later: &mut Later,
    ) -> Option<u64> {
        let id = self.next_id();
        let is_closed = self.scope.is_none();
        let entry = self.entries.entry(route.clone()).or_default();
        entry.opening = entry.opening.saturating_sub(1);
        if is_closed {
            self.connections = self.connections.saturating_sub(1);
            later.drop(Some(sender));
            self.forget_unused(route);
            return None;
        }
        entry.is_http1 = matches!(sender, Sender::Http1(_));
        entry.lines.push(Line {
            id,
            place,
            handle: Handle::Here(sender),
            used: 0,
            is_returning: false,
            is_reused: false,
            is_retired: false,
            idle_since: now,
            waker: None,
        });
        self.serve(route, later);
        self.bound_idle(route, later);
        self.open_for_waiters(route, later);
        Some(id)
    }

    pub(super) fn fail_opening(&mut self, route: &Arc<Route>, error: &ClientError, later: &mut Later) {
        let Some(entry) = self.entries.get_mut(route) else { return };
        entry.opening = entry.opening.saturating_sub(1);
        self.connections = self.connections.saturating_sub(1);
        // One that may serve many has failed for all of them.
        let failed = if route.may_multiplex() && !entry.is_http1 { entry.waiters.len() } else { 1 };
        for waiter in entry.waiters.drain(..failed.min(entry.waiters.len())) {
            self.waiting -= 1;
            later.fail(waiter.sender, error.clone());
        }
        self.forget_unused(route);
        self.open_where_wanted(route, later);
    }

    /// Returns a line, whose connection is ready for the next request, or which was not used.
    pub(super) fn put(
        &mut self,
        route: &Arc<Route>,
        id: u64,
        sender: Sender,
        now: Instant,
        later: &mut Later,
    ) {
        match self.line(route, id) {
            Some(line) if !line.is_retired => {
                line.handle = Handle::Here(sender);
                line.is_returning = false;
                line.idle_since = now;
            }
            _ => return later.drop(Some(sender)),
        }
        self.serve(route, later);
        self.bound_idle(route, later);
        self.make_room(later);
    }

    pub(super) fn release(
        &mut self,
        route: &Arc<Route>,
        id: u64,
        sender: Sender,
        is_used: bool,
        now: Instant,
        later: &mut Later,
    ) {
        let Some(line) = self.line(route, id) else { return later.drop(Some(sender)) };
        line.used = line.used.saturating_sub(1);
        if line.is_retired {
            later.drop(Some(sender));
            later.wake(line.waker.clone());
            return;
        }
        match sender {
            Sender::Http1(_) if is_used => {
                line.handle = Handle::Returned(sender);
                line.is_returning = true;
                later.wake(line.waker.clone());
            }
            Sender::Http1(_) => self.put(route, id, sender, now, later),
            Sender::Http2(_) => {
                line.idle_since = now;
                later.drop(Some(sender));
                self.serve(route, later);
                self.bound_idle(route, later);
                self.make_room(later);
            }
        }
    }

    /// Retires an idle line if requests to another origin wait for its place.
    fn make_room(&mut self, later: &mut Later) {
        if self.waiting > 0 && self.connections >= self.bounds.connections.max(1) {
            let mut entries = self.entries.iter();
            if entries.any(|(route, entry)| entry.wanted(route, &self.bounds) > 0) {
                self.retire_oldest_idle(later);
            }
        }
    }

    /// Closes the oldest idle connections until at most the bound is left.
    fn bound_idle(&mut self, route: &Arc<Route>, later: &mut Later) {
        let Some(entry) = self.entries.get_mut(route) else { return };
        let idle = entry.lines.iter().filter(|line| line.is_idle()).count();
        for _ in self.bounds.idle_per_origin..idle {
            let idle = entry.lines.iter_mut().filter(|line| line.is_idle());
            if let Some(line) = idle.min_by_key(|line| (line.idle_since, line.id)) {
                line.retire(later);
            }
        }
    }

    pub(super) fn retire(&mut self, route: &Arc<Route>, id: u64, later: &mut Later) {
        if let Some(line) = self.line(route, id) {
            line.retire(later);
        }
    }

    pub(super) fn retire_idle_lines(&mut self, route: &Arc<Route>, later: &mut Later) {
        let lines = self.entries.get_mut(route).into_iter().flat_map(|entry| &mut entry.lines);
        lines.filter(|line| line.is_idle()).for_each(|line| line.retire(later));
    }

    pub(super) fn remove_line(&mut self, route: &Arc<Route>, id: u64, later: &mut Later) {
        let Some(entry) = self.entries.get_mut(route) else { return };
        let Some(index) = entry.lines.iter().position(|line| line.id == id) else { return };
        let mut line = entry.lines.swap_remove(index);
        line.retire(later);
        self.connections = self.connections.saturating_sub(1);
        self.forget_unused(route);
        self.open_where_wanted(route, later);
    }

    /// Opens connections after one has gone: to its route first, and to others that had no room.
    fn open_where_wanted(&mut self, route: &Arc<Route>, later: &mut Later) {
        self.open_for_waiters(route, later);
        // Only at the bound of all connections do others wait without one of theirs being open.
        if self.waiting == 0 || self.connections + 1 < self.bounds.connections {
            return;
        }
        let others = self.entries.iter();
        let others = others.filter_map(|(route, entry)| Some((entry.waiters.front()?.id, route.clone())));
        let mut others: Vec<_> = others.collect();
        others.sort_by_key(|(oldest, _)| *oldest);
        for (_, route) in others {
            self.open_for_waiters(&route, later);
        }
    }

    fn forget_unused(&mut self, route: &Arc<Route>) {
        if self.entries.get(route).is_some_and(Entry::is_unused) {
            self.entries.remove(route);
        }
    }

    pub(super) fn close(&mut self, error: &ClientError, later: &mut Later) {
        for entry in self.entries.values_mut() {
            entry.waiters.drain(..).for_each(|waiter| later.fail(waiter.sender, error.clone()));
            entry.lines.iter_mut().for_each(|line| line.retire(later));
        }
        self.waiting = 0;
    }
}
