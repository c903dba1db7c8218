//! Actions on hosts and on the network: before a run, or during it by [`Sim::at`].

use convoke_core::{Panic, StopReason};
use convoke_net::signal::Signal;

use super::Sim;
use super::program::{Ending, Stage};
use crate::host_run::HostRun;
use crate::world::{HostId, Link};

impl Sim {
    /// Sets the link between all hosts that have no link of their own.
    pub fn links(&mut self, link: Link) {
        self.world.with(|state| state.links.usual = link);
    }

    /// Sets the link between two hosts, in both directions.
    ///
    /// # Panics
    /// If there is no host of one of these names.
    #[track_caller]
    pub fn link(&mut self, one: &str, other: &str, link: Link) {
        self.link_one_way(one, other, link.clone());
        self.link_one_way(other, one, link);
    }

    /// Sets the link from one host to another.
    ///
    /// # Panics
    /// If there is no host of one of these names.
    #[track_caller]
    pub fn link_one_way(&mut self, from: &str, to: &str, link: Link) {
        let (from, to) = (self.find(from), self.find(to));
        self.world.with(|state| state.links.set(from, to, link));
    }

    /// Drops all packets between two hosts, in both directions, until [healed](Sim::heal). Connections stay
    /// open: packets are sent again with growing delays, and after about three minutes the connections time
    /// out.
    ///
    /// # Panics
    /// If there is no host of one of these names.
    #[track_caller]
    pub fn partition(&mut self, one: &str, other: &str) {
        self.partition_one_way(one, other);
        self.partition_one_way(other, one);
    }

    /// Drops all packets from one host to another, until [healed](Sim::heal). The other direction stays open.
    ///
    /// # Panics
    /// If there is no host of one of these names.
    #[track_caller]
    pub fn partition_one_way(&mut self, from: &str, to: &str) {
        let (from, to) = (self.find(from), self.find(to));
        self.world.with(|state| {
            state.note_break(format!("{} ✗ {}: cut", state.name(from), state.name(to)));
            state.links.cut(from, to);
        });
    }

    /// Partitions a host from all others.
    ///
    /// # Panics
    /// If there is no host of this name.
    #[track_caller]
    pub fn isolate(&mut self, name: &str) {
        let others: Vec<_> = self.programs.iter().map(|program| program.name.clone()).collect();
        for other in others.iter().filter(|other| ***other != *name) {
            self.partition(name, other);
        }
    }

    /// Ends the partition between two hosts, in both directions.
    ///
    /// # Panics
    /// If there is no host of one of these names.
    #[track_caller]
    pub fn heal(&mut self, one: &str, other: &str) {
        let (one, other) = (self.find(one), self.find(other));
        self.world.with(|state| {
            state.note_event(format!("{} — {}: healed", state.name(one), state.name(other)));
            state.links.mend(one, other);
            state.links.mend(other, one);
        });
    }

    /// Ends all partitions.
    pub fn heal_all(&mut self) {
        self.world.with(|state| {
            state.note_event("all is healed".to_owned());
            state.links.mend_all();
        });
    }

    /// Resets all connections between two hosts. Both ends get an error.
    ///
    /// # Panics
    /// If there is no host of one of these names.
    #[track_caller]
    pub fn reset(&mut self, one: &str, other: &str) {
        let (one, other) = (self.find(one), self.find(other));
        self.world.with(|state| state.reset_between(one, other));
    }

    /// Makes the connections between two hosts half-open: `gone` loses them, and `left` is not told. `left`
    /// notices when it sends something, or by keep-alive.
    ///
    /// # Panics
    /// If there is no host of one of these names.
    #[track_caller]
    pub fn half_open(&mut self, gone: &str, left: &str) {
        let (gone, left) = (self.find(gone), self.find(left));
        self.world.with(|state| state.half_open(gone, left));
    }

    /// Requests the program of a host to stop.
    ///
    /// # Panics
    /// If there is no host of this name.
    #[track_caller]
    pub fn stop(&mut self, name: &str) {
        let host = self.find(name);
        self.ask_to_stop(host, StopReason::Requested);
    }

    /// Delivers a signal to the program of a host, as to a process. All
    /// [subscribers](convoke_net::signal::signals) of the signal are woken. SIGINT and SIGTERM also request
    /// the program to stop, as in `#[convoke::main]`. Other signals without a subscriber have no effect.
    ///
    /// # Panics
    /// If there is no host of this name.
    #[track_caller]
    pub fn raise(&mut self, name: &str, signal: Signal) {
        let host = self.find(name);
        self.world.with(|state| state.note_event(format!("{}: {signal}", state.name(host))));
        if let Some(running) = self.programs[host.0].running() {
            running.host_run.deliver_signal(signal);
        }
    }

    /// Crashes a host: it stops at once.
    ///
    /// - None of its tasks is polled again and nothing is unwound: no clean-up (`using`, `ensure`, services)
    ///   and no destructor runs. Timers do not fire, and wakers have no effect.
    /// - Its peers are not told. Packets that it sent are in transit and arrive unless they are lost; they
    ///   are not sent again. Its ports and paths are free.
    /// - What it [synced](crate::Disk::sync) to its [disk](Sim::disk) survives; of its later writes the seed
    ///   decides how many do. The next run of the host must not rely on anything else: state that the test
    ///   shares with the program by other means is not part of the host.
    /// - Its [promises](Sim::probe) need not be kept.
    ///
    /// The memory of its tasks is freed at the end of the run, after the [final checks](Sim::finally). Then
    /// destructors run, without a poll and so without clean-up. They have no effect on the simulation: its
    /// sockets are closed, time stands still, and its disk ignores writes. They can only change what the test
    /// itself shares with the program, before [`run`](Sim::run) returns.
    ///
    /// # Panics
    /// If there is no host of this name.
    #[track_caller]
    pub fn crash(&mut self, name: &str) {
        let host = self.find(name);
        if self.programs[host.0].running().is_some() {
            self.world.with(|state| state.crash(host));
            self.set_aside_crashed(host);
        }
    }

    /// Restarts a host with a new call of its program. If it runs, it crashes first.
    ///
    /// # Panics
    /// If there is no host of this name.
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

    /// Launches the program of a host that does not run.
    pub(super) fn start(&mut self, host: HostId) {
        let number = self.world.with(|state| state.boot(host));
        let program = &mut self.programs[host.0];
        let host_run = HostRun::new(self.world.clone(), host, number);
        self.host_runs += 1;
        self.has_changed = true;
        if let Err(panic) = program.launch(host_run, self.host_runs) {
            self.start_failure = Some(format!(
                "host `{}` could not start: its program panicked: {}",
                program.name,
                panic.message()
            ));
        }
    }

    /// Sets aside the program of a host that has crashed, to be dropped at the end of the run.
    pub(super) fn set_aside_crashed(&mut self, host: HostId) {
        let program = &mut self.programs[host.0];
        program.ended_after = self.steps;
        self.has_changed = true;
        self.world.with(|state| state.set_timer(host, None));
        let stage = core::mem::replace(&mut program.stage, Stage::Ended(Ending::Crashed));
        if let Stage::Running(running) = stage {
            self.probe.excuse(running.number);
            self.crashed.push(running);
        }
    }

    pub(super) fn ask_to_stop(&mut self, host: HostId, reason: StopReason) {
        if let Some(running) = self.programs[host.0].running() {
            // The panic hook has already reported a panic of a stop callback.
            let _ = Panic::catch(|| running.launched.request_stop(reason));
        }
    }
}
