//! The loop of a simulation: run a piece of work; if there is none, let time pass; if none will come, something is wrong.

use core::mem;
use core::time::Duration;

use convoke_core::{Panic, StopReason};
use convoke_inspect::tree;

use super::program::{Ending, Program, Running, Stage};
use super::{Failure, HostReport, Report, Sim};
use crate::world::{Fault, HostId, State};

/// How long after a crash that was planned the host is started again.
const RESTART_AFTER: Duration = Duration::from_secs(1);

impl Sim {
    /// Runs until all programs have ended; then those of daemons are asked to stop, and it runs until they have. Hosts that have
    /// crashed, and that nothing will start again, are not waited for.
    ///
    /// # Panics
    /// If a program returns an error or panics; if all wait for ever; if the [step limit](Sim::step_limit) or the
    /// [time limit](Sim::time_limit) is reached; if a promise was not [kept](Sim::probe), or a program left a socket open or
    /// a task's memory behind. The message names the host and the seed.
    #[track_caller]
    pub fn run(self) -> Report {
        match self.try_run() {
            Ok(report) => report,
            Err(failure) => panic!("{failure}"),
        }
    }

    /// The same, and says why it has failed.
    ///
    /// # Errors
    /// As [`run`](Sim::run) panics.
    pub fn try_run(mut self) -> Result<Report, Failure> {
        // Calls are counted by the thread: what was there before is no function of the seed.
        convoke_io::count_calls_anew();
        self.running = true;
        for host in (0..self.programs.len()).map(HostId) {
            self.start_if_idle(host);
        }
        let ran = self.run_until(Self::is_over).and_then(|()| {
            self.stop_daemons();
            self.run_until(Self::is_empty)?;
            self.look_for_the_last_time()
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
        loop {
            self.act()?;
            self.look_after_hosts()?;
            self.check_invariants()?;
            if let Some(trouble) = self.trouble.take() {
                return Err(trouble);
            }
            if is_done(self) {
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

    /// Runs a piece of work of one of the hosts, if any has some. The seed decides which, and that host's loop asks it which of
    /// its own.
    fn run_one(&mut self) -> Result<bool, String> {
        loop {
            self.world.with(State::deliver_due);
            let mut hosts = self.awake();
            if hosts.is_empty() {
                return Ok(false);
            }
            while !hosts.is_empty() {
                let chosen = if hosts.len() > 1 { self.world.choose(hosts.len()) } else { 0 };
                let host = hosts.swap_remove(chosen);
                let ran = self.probe.in_the_name_of(host.number, || Panic::catch(|| host.life.run_one()));
                match ran {
                    Ok(true) => return Ok(true),
                    // It rests now, and may be woken by the next one.
                    Ok(false) => {}
                    Err(panic) => return Err(format!("a piece of work panicked: {}", panic.message())),
                }
            }
        }
    }

    /// The programs of hosts that may have something to run.
    fn awake(&self) -> Vec<&Running> {
        let now = self.now();
        let running = self.programs.iter().filter_map(Program::running);
        running.filter(|running| running.life.is_awake(now)).collect()
    }

    /// Jumps to what comes next: a timer, a packet, an action.
    fn let_time_pass(&self) -> Result<(), String> {
        let running = self.programs.iter().filter_map(Program::running);
        let timer = running.filter_map(|running| running.life.next_timer()).min();
        let action = self.actions.keys().next().map(|(at, _)| *at);
        match [timer, action, self.world.next_arrival()].into_iter().flatten().min() {
            Some(next) => {
                self.world.jump(next);
                Ok(())
            }
            None => Err("deadlock: all wait, and nothing is underway that could wake them".to_owned()),
        }
    }

    /// Does what is to be done by now.
    fn act(&mut self) -> Result<(), String> {
        while let Some(((at, _), action)) = self.next_action() {
            Panic::catch(|| action(self))
                .map_err(|panic| format!("what was to be done after {at:?} panicked: {}", panic.message()))?;
        }
        Ok(())
    }

    fn next_action(&mut self) -> Option<((Duration, usize), super::Action)> {
        let now = self.now();
        let first = self.actions.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove_entry())
    }

    /// Notes who has ended or crashed, and starts again what is to be.
    fn look_after_hosts(&mut self) -> Result<(), String> {
        self.heed_planned_crash();
        for host in (0..self.programs.len()).map(HostId) {
            if self.programs[host.0].has_ended() {
                self.note_end(host)?;
            }
        }
        Ok(())
    }

    fn note_end(&mut self, host: HostId) -> Result<(), String> {
        let program = &mut self.programs[host.0];
        program.ended_after = self.steps;
        match mem::replace(&mut program.stage, Stage::Idle) {
            Stage::Running(running) => {
                let name = program.name.clone();
                let ending = running.harvest().map_err(|panic| format!("host `{name}` panicked: {panic}"))?;
                program.stage = Stage::Ended(ending.clone());
                self.world.with(|state| state.note_event(format!("{name}: its program {ending}")));
                if let (Ending::Failed(error), false) = (ending, self.disturbance.errors_are_fine) {
                    return Err(format!("host `{name}` returned an error: {error}"));
                }
            }
            other => program.stage = other,
        }
        Ok(())
    }

    /// A crash that was planned has struck in the midst of a task.
    fn heed_planned_crash(&mut self) {
        let crashed = self.world.with(|state| {
            let plan = state.plan.as_ref().filter(|plan| plan.struck && plan.fault == Fault::Crash)?;
            let host = plan.host;
            state.plan = None;
            Some(host)
        });
        if let Some(host) = crashed {
            self.bury(host);
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

    /// Whether all have ended that are waited for. As long as something is still to be done a host that has crashed may be
    /// started again.
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

    /// What is wrong with a run that has ended.
    fn check(mut self) -> Result<Report, Failure> {
        self.open_graves();
        let mut complaints = self.probe.complaints();
        complaints.extend(self.missed());
        for (index, program) in self.programs.iter().enumerate() {
            let name = &program.name;
            let left = self.world.with(|state| state.left_open(HostId(index)));
            complaints.extend(left.into_iter().map(|socket| format!("host `{name}` left {socket} open")));
            if program.frames_left() > 0 {
                let pieces = program.frames_left();
                complaints.push(format!("host `{name}` left {pieces} pieces of memory of its tasks behind"));
            }
        }
        if complaints.is_empty() {
            return Ok(self.report());
        }
        Err(self.failure(complaints.join("; "), String::new()))
    }

    /// What was to be done to the run, and has not been: it was over before.
    fn missed(&self) -> Option<String> {
        let what = match (self.disturbance.stop, self.world.with(|state| state.plan)) {
            (Some((_, point)), _) => format!("step {point}"),
            (None, Some(plan)) if !plan.struck => format!("operation {}", plan.operation),
            _ => return None,
        };
        Some(format!("it ended after {} steps, before {what}: it is not the same every time", self.steps))
    }

    fn report(&mut self) -> Report {
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
        self.world.with(|state| Report {
            seed,
            elapsed: state.now,
            steps,
            hosts,
            fingerprint: state.trace.fingerprint,
            trace: mem::take(&mut state.trace.lines).into(),
        })
    }

    fn failure(&self, what: String, tasks: String) -> Failure {
        let trace = self.world.with(|state| state.trace.lines.iter().cloned().collect());
        Failure { seed: self.seed, at: self.now(), what, tasks, trace, replay: None }
    }

    /// The tasks of all hosts, as trees.
    fn tasks(&self) -> String {
        let tree = tree();
        let ours = self.programs.iter().filter_map(Program::running);
        let found = ours.filter_map(|running| tree.tasks().find(|task| task.has_name(&running.name)));
        found.map(|task| task.to_string()).collect::<Vec<_>>().join("\n")
    }
}
