//! What can be done to hosts and to the network: before a run, or in the midst of it by [`Sim::at`].

use convoke_core::{Panic, StopReason};
use convoke_net::signal::Signal;

use super::Sim;
use super::program::{Ending, Stage};
use crate::life::Life;
use crate::world::{HostId, Link};

impl Sim {
    /// What lies between all hosts for which nothing else is said.
    pub fn links(&mut self, link: Link) {
        self.world.with(|state| state.links.usual = link);
    }

    /// What lies between two hosts, in both directions.
    ///
    /// # Panics
    /// If there is no such host; so do all that take a name.
    #[track_caller]
    pub fn link(&mut self, one: &str, other: &str, link: Link) {
        self.link_one_way(one, other, link.clone());
        self.link_one_way(other, one, link);
    }

    /// What lies on the way from one host to another.
    #[track_caller]
    pub fn link_one_way(&mut self, from: &str, to: &str, link: Link) {
        let (from, to) = (self.find(from), self.find(to));
        self.world.with(|state| state.links.set(from, to, link));
    }

    /// Nothing gets from either host to the other any more, until that is [healed](Sim::heal). Their connections stay: what was
    /// sent is sent again every so often, and if that goes on for too long (about three minutes), they have timed out.
    #[track_caller]
    pub fn partition(&mut self, one: &str, other: &str) {
        self.partition_one_way(one, other);
        self.partition_one_way(other, one);
    }

    /// Nothing gets from the first host to the second any more; the other way is open.
    #[track_caller]
    pub fn partition_one_way(&mut self, from: &str, to: &str) {
        let (from, to) = (self.find(from), self.find(to));
        self.world.with(|state| {
            state.note_event(format!("{} ✗ {}: cut", state.name(from), state.name(to)));
            state.links.cut(from, to);
        });
    }

    /// Cuts a host off from all others.
    #[track_caller]
    pub fn isolate(&mut self, name: &str) {
        let others: Vec<_> = self.programs.iter().map(|program| program.name.clone()).collect();
        for other in others.iter().filter(|other| ***other != *name) {
            self.partition(name, other);
        }
    }

    /// Packets get through between two hosts again, in both directions.
    #[track_caller]
    pub fn heal(&mut self, one: &str, other: &str) {
        let (one, other) = (self.find(one), self.find(other));
        self.world.with(|state| {
            state.note_event(format!("{} — {}: healed", state.name(one), state.name(other)));
            state.links.mend(one, other);
            state.links.mend(other, one);
        });
    }

    /// Packets get through between all hosts again.
    pub fn heal_all(&mut self) {
        self.world.with(|state| {
            state.note_event("all is healed".to_owned());
            state.links.mend_all();
        });
    }

    /// Resets all connections between two hosts: both ends are told.
    #[track_caller]
    pub fn reset(&mut self, one: &str, other: &str) {
        let (one, other) = (self.find(one), self.find(other));
        self.world.with(|state| state.reset_between(one, other));
    }

    /// One host loses its connections with another, which is not told: its ends are half-open. It finds out when it sends
    /// something, or by keep-alive.
    #[track_caller]
    pub fn half_open(&mut self, gone: &str, left: &str) {
        let (gone, left) = (self.find(gone), self.find(left));
        self.world.with(|state| state.half_open(gone, left));
    }

    /// Asks the program of a host to stop.
    #[track_caller]
    pub fn stop(&mut self, name: &str) {
        let host = self.find(name);
        self.ask_to_stop(host, StopReason::Requested);
    }

    /// The program of a host hears of a signal, as a process does: all who [subscribed](convoke_net::signal::signals) to it are told, and
    /// SIGINT and SIGTERM ask the program to stop, as `#[convoke::main]` does. Others that nobody has subscribed to do
    /// nothing here.
    #[track_caller]
    pub fn raise(&mut self, name: &str, signal: Signal) {
        let host = self.find(name);
        self.world.with(|state| state.note_event(format!("{}: {signal}", state.name(host))));
        if let Some(running) = self.programs[host.0].running() {
            running.life.hear(signal);
        }
    }

    /// The host crashes: from one moment to the next it does nothing any more.
    ///
    /// - None of its tasks is polled again, so nothing is unwound: no clean-up (`using`, `ensure`, services) and no destructor runs.
    ///   Timers do not fire, wakers wake nobody.
    /// - Its peers hear nothing of it. What it had sent is on its way and arrives, unless it gets lost, for nobody sends it again; its
    ///   ports and paths are free.
    /// - What it had [synced](crate::Disk::sync) to its [disk](Sim::disk) stays; of what it had written since, the seed decides how
    ///   much. All else that its next life is to find again it does not find: what the test shares with a program by other means
    ///   is no part of the host.
    /// - What it had [promised](Sim::probe) need not be kept.
    ///
    /// When the run is over, after the [last checks](Sim::finally), the memory of its tasks is given back, and then destructors do run:
    /// without a poll, so again without clean-up. They reach nobody: its sockets are dead, time stands still, its disk takes
    /// nothing. Only what the test itself shares with the program can be changed by them, when [`run`](Sim::run) returns.
    #[track_caller]
    pub fn crash(&mut self, name: &str) {
        let host = self.find(name);
        if self.programs[host.0].running().is_some() {
            self.world.with(|state| state.crash(host));
            self.bury(host);
        }
    }

    /// The host starts again, with a new call of its program. One that runs crashes first.
    #[track_caller]
    pub fn restart(&mut self, name: &str) {
        self.crash(name);
        self.start(self.find(name));
    }

    pub(super) fn start_if_idle(&mut self, host: HostId) {
        if matches!(self.programs[host.0].stage, Stage::Idle) {
            self.start(host);
        }
    }

    /// Launches the program of a host that has none running.
    pub(super) fn start(&mut self, host: HostId) {
        let life = self.world.with(|state| state.boot(host));
        let program = &mut self.programs[host.0];
        let life = Life::new(self.world.clone(), host, life, program.clock);
        self.lives += 1;
        if let Err(panic) = program.launch(life, self.lives) {
            self.trouble = Some(format!("host `{}` could not start: {}", program.name, panic.message()));
        }
    }

    /// The program of a host that has crashed is put aside.
    pub(super) fn bury(&mut self, host: HostId) {
        let program = &mut self.programs[host.0];
        program.ended_after = self.steps;
        let stage = core::mem::replace(&mut program.stage, Stage::Ended(Ending::Crashed));
        if let Stage::Running(running) = stage {
            self.probe.excuse(running.number);
            self.graves.push(running);
        }
    }

    pub(super) fn ask_to_stop(&mut self, host: HostId, reason: StopReason) {
        if let Some(running) = self.programs[host.0].running() {
            // What a callback throws has been reported by the panic hook.
            let _ = Panic::catch(|| running.chain.request_stop(reason));
        }
    }
}
