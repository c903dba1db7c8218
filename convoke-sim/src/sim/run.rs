//! The loop of a simulation: it runs a piece of work; if there is none, it advances the time; if nothing is
//! pending, the run has failed.

use core::mem;
use core::time::Duration;

use convoke_core::{Panic, StopReason};
use convoke_inspect::tree;

use super::program::{Ending, Program, Stage};
use super::{HostReport, Sim, SimFailure, SimReport};
use crate::world::{Fault, HostId};

/// The delay before a host that crashed by a planned fault restarts.
const RESTART_AFTER: Duration = Duration::from_secs(1);

impl Sim {
    /// Runs until all programs have ended. Then it requests the daemons to stop, and runs until they have
    /// ended. It does not wait for crashed hosts that no pending action can restart.
    ///
    /// # Panics
    /// If a program returns an error or panics; if all tasks wait and nothing is pending; if the [step
    /// limit](Sim::step_limit) or the [time limit](Sim::time_limit) is reached; if a [promise](Sim::probe)
    /// was broken, or a program left a socket open or did not free the memory of a task. The message names
    /// the host and the seed.
    #[track_caller]
    pub fn run(self) -> SimReport {
        match self.try_run() {
            Ok(report) => report,
            Err(failure) => panic!("{failure}"),
        }
    }

    /// Runs as [`run`](Sim::run) does, but returns a failure as an error.
    ///
    /// # Errors
    /// Where [`run`](Sim::run) panics.
    pub fn try_run(mut self) -> Result<SimReport, SimFailure> {
        self.running = true;
        for host in (0..self.programs.len()).map(HostId) {
            self.start_if_idle(host);
        }
        let ran = self.run_until(Self::is_over).and_then(|()| {
            self.stop_daemons();
            self.run_until(Self::is_empty)?;
            self.run_last_checks()
        });
        match ran {
            Ok(()) => self.check(),
            Err(what) => {
                let failure = self.failure(what, self.tasks());
                self.give_up();
                Err(failure)
            }
        }
    }

    pub(super) fn run_until(&mut self, is_done: fn(&Self) -> bool) -> Result<(), String> {
        self.has_changed = true;
        loop {
            self.act()?;
            self.update_hosts()?;
            self.check_invariants()?;
            if let Some(start_failure) = self.start_failure.take() {
                return Err(start_failure);
            }
            if mem::take(&mut self.has_changed) && is_done(self) {
                return Ok(());
            }
            self.check_limits()?;
            self.stop_as_planned();
            match self.run_one()? {
                true => self.steps += 1,
                false => self.let_time_pass()?,
            }
        }
    }

    /// Runs one piece of work of one host and returns true, or returns false if there is none. The seed
    /// chooses the host, and the host's loop asks the world which piece of work to take.
    fn run_one(&mut self) -> Result<bool, String> {
        loop {
            let chosen = self.world.with(|state| {
                state.deliver_due();
                state.choose_ready()
            });
            let Some(host) = chosen else { return Ok(false) };
            let Some(running) = self.programs[host.0].running() else { continue };
            let run = || Panic::catch(|| running.host_run.run_one());
            let ran = self.probe.in_the_name_of(running.number, run);
            self.ran_last = Some(host);
            match ran {
                Ok(true) => return Ok(true),
                // Its loop is parked now.
                Ok(false) => {}
                Err(panic) => {
                    // Its loop is not parked: what is left is unwound with all programs.
                    self.world.with(|state| state.mark_ready(host));
                    return Err(format!("a piece of work panicked: {}", panic.message()));
                }
            }
        }
    }

    /// Advances the time to the next timer, packet or action.
    fn let_time_pass(&mut self) -> Result<(), String> {
        let action = self.actions.keys().next().map(|(at, _)| *at);
        let passes = self.world.with(|state| {
            let next = [action, state.next_timer(), state.next_arrival()].into_iter().flatten().min();
            state.now = state.now.max(next?);
            Some(())
        });
        passes.ok_or_else(|| "deadlock: all tasks wait, and no timer, packet or action is pending".to_owned())
    }

    /// Performs all actions that are due.
    fn act(&mut self) -> Result<(), String> {
        while let Some(((at, _), action)) = self.next_action() {
            self.has_changed = true;
            Panic::catch(|| action(self))
                .map_err(|panic| format!("the action at {at:?} panicked: {}", panic.message()))?;
        }
        Ok(())
    }

    fn next_action(&mut self) -> Option<((Duration, usize), super::Action)> {
        if self.actions.is_empty() {
            return None;
        }
        let now = self.now();
        let first = self.actions.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove_entry())
    }

    /// Records the program of the last step if it has ended or crashed, and schedules restarts. A program
    /// ends only in a step of its own host.
    fn update_hosts(&mut self) -> Result<(), String> {
        self.apply_planned_crash();
        match self.ran_last.take() {
            Some(host) if self.programs[host.0].has_ended() => self.record_end(host),
            _ => Ok(()),
        }
    }

    fn record_end(&mut self, host: HostId) -> Result<(), String> {
        self.has_changed = true;
        let program = &mut self.programs[host.0];
        program.ended_after = self.steps;
        match mem::replace(&mut program.stage, Stage::Idle) {
            Stage::Running(running) => {
                let name = program.name.clone();
                let ending =
                    running.into_ending().map_err(|panic| format!("host `{name}` panicked: {panic}"))?;
                program.stage = Stage::Ended(ending.clone());
                self.world.with(|state| {
                    state.set_timer(host, None);
                    state.end_program(host);
                    state.note_event(format!("{name}: its program {ending}"));
                });
                if let (Ending::Failed(error), false) = (ending, self.disturbance.errors_are_fine) {
                    return Err(format!("host `{name}` returned an error: {error}"));
                }
            }
            other => program.stage = other,
        }
        Ok(())
    }

    /// Sets aside the program of a host that a planned fault has crashed during a poll, and schedules its
    /// restart.
    fn apply_planned_crash(&mut self) {
        let crashed = self.world.with(|state| {
            let plan = state.plan.as_ref().filter(|plan| plan.struck && plan.fault == Fault::Crash)?;
            let host = plan.host;
            state.plan = None;
            Some(host)
        });
        if let Some(host) = crashed {
            self.set_aside_crashed(host);
            let name = self.programs[host.0].name.clone();
            self.at(self.now() + RESTART_AFTER, move |sim| sim.restart(&name));
        }
    }

    fn stop_as_planned(&mut self) {
        if let Some((host, point)) = self.disturbance.stop
            && point == self.steps
        {
            self.disturbance.stop = None;
            self.ask_to_stop(host, StopReason::Requested);
        }
    }

    pub(super) fn stop_daemons(&mut self) {
        for host in (0..self.programs.len()).map(HostId) {
            self.ask_to_stop(host, StopReason::Requested);
        }
    }

    /// Returns true if all programs have ended that the run waits for. A crashed host counts only if no
    /// action is pending, because an action may restart it.
    fn is_over(&self) -> bool {
        self.programs.iter().all(|program| match &program.stage {
            _ if program.daemon => true,
            Stage::Idle => true,
            Stage::Ended(Ending::Crashed) => self.actions.is_empty(),
            Stage::Ended(_) => true,
            Stage::Running(_) => false,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.programs.iter().all(|program| program.running().is_none())
    }

    fn check_limits(&self) -> Result<(), String> {
        if self.steps >= self.step_limit {
            return Err(format!("it still runs after {} steps", self.steps));
        }
        if self.now() >= self.time_limit {
            return Err(format!("it still runs after {:?}", self.time_limit));
        }
        Ok(())
    }

    /// Checks a run that has ended for broken promises, open sockets and memory that was not freed.
    fn check(mut self) -> Result<SimReport, SimFailure> {
        self.drop_crashed();
        let mut complaints = self.probe.complaints();
        complaints.extend(self.missed());
        for (index, program) in self.programs.iter().enumerate() {
            let name = &program.name;
            let left = self.world.with(|state| state.left_open(HostId(index)));
            complaints.extend(left.into_iter().map(|socket| format!("host `{name}` left {socket} open")));
            if program.frames_left() > 0 {
                let pieces = program.frames_left();
                complaints.push(format!("host `{name}` did not free {pieces} allocations of its tasks"));
            }
        }
        if complaints.is_empty() {
            return Ok(self.report());
        }
        Err(self.failure(complaints.join("; "), String::new()))
    }

    /// Returns a complaint if the run ended before its planned disturbance.
    fn missed(&self) -> Option<String> {
        let what = match (self.disturbance.stop, self.world.with(|state| state.plan)) {
            (Some((_, point)), _) => format!("step {point}"),
            (None, Some(plan)) if !plan.struck => format!("operation {}", plan.operation),
            _ => return None,
        };
        Some(format!("it ended after {} steps, before {what}: the program is not deterministic", self.steps))
    }

    fn report(&mut self) -> SimReport {
        let mut hosts = Vec::new();
        for (index, program) in self.programs.iter().enumerate() {
            hosts.push(HostReport {
                name: program.name.clone(),
                ending: program.ending(),
                starts: program.starts,
                operations: self.world.with(|state| state.host(HostId(index)).operations),
                ended_after: program.ended_after,
            });
        }
        let (seed, steps) = (self.seed, self.steps);
        self.world.with(|state| SimReport {
            seed,
            elapsed: state.now,
            steps,
            hosts,
            fingerprint: state.trace.fingerprint,
            trace: state.take_trace(),
        })
    }

    fn failure(&self, what: String, tasks: String) -> SimFailure {
        let (trace, lines) = self.world.with(|state| (state.take_trace(), state.trace.count));
        SimFailure { seed: self.seed, at: self.now(), what, tasks, trace, lines, replay: None }
    }

    /// Returns the task trees of all hosts as text.
    fn tasks(&self) -> String {
        let tree = tree();
        let ours = self.programs.iter().filter_map(Program::running);
        let found = ours.filter_map(|running| tree.tasks().find(|task| task.has_name(&running.name)));
        found.map(|task| task.to_string()).collect::<Vec<_>>().join("\n")
    }
}
