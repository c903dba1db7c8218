//! Hosts that have something to run, and the times at which the timers of the others are due. A host enters
//! the list when its driver is woken, when something that it waits for has happened, or when its timer is
//! due. So a step costs the same however many hosts there are.

use core::time::Duration;
use std::collections::BTreeSet;

use super::{HostId, WorldState};

#[derive(Debug, Default)]
pub(crate) struct Ready {
    /// Hosts with something to run. Each is there once: see `Host::is_ready`.
    hosts: Vec<HostId>,
    /// The timers of hosts whose loops are parked: see `Host::next_timer`.
    timers: BTreeSet<(Duration, HostId)>,
}

impl WorldState {
    /// Adds a host to those with something to run.
    pub(crate) fn mark_ready(&mut self, host: HostId) {
        if !core::mem::replace(&mut self.host(host).is_ready, true) {
            self.ready.hosts.push(host);
        }
    }

    /// Removes one of the hosts that have something to run, by the seed.
    pub(crate) fn choose_ready(&mut self) -> Option<HostId> {
        while let Some((at, host)) = self.ready.timers.first().copied()
            && at <= self.now
        {
            self.set_timer(host, None);
            self.mark_ready(host);
        }
        let chosen = match self.ready.hosts.len() {
            0 => return None,
            1 => 0,
            several => self.choose(several),
        };
        let host = self.ready.hosts.swap_remove(chosen);
        self.host(host).is_ready = false;
        Some(host)
    }

    /// Sets the time at which the next timer of a host is due.
    pub(crate) fn set_timer(&mut self, host: HostId, at: Option<Duration>) {
        let before = core::mem::replace(&mut self.host(host).next_timer, at);
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.ready.timers.remove(&(before, host));
        }
        self.ready.timers.extend(at.map(|at| (at, host)));
    }

    /// Returns the time at which the next timer of any host is due.
    pub(crate) fn next_timer(&self) -> Option<Duration> {
        self.ready.timers.first().map(|(at, _)| *at)
    }

    /// Chooses one of several by the seed.
    pub(crate) fn choose(&mut self, several: usize) -> usize {
        let chosen = self.random.below(several);
        self.trace.note_choice(chosen);
        chosen
    }
}
