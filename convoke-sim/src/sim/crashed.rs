//! Programs that did not end by themselves: those of crashed hosts, and all running ones after a failure.

use core::mem;
use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use convoke_core::{Outcome, Panic, StopReason};
use convoke_task::cleanup::skipping_clean_up;

use super::program::{Ending, Program, Running, Stage};
use super::{Disturbance, Sim};
use crate::world::WorldState;

/// The maximum number of pieces of work that a failed run may take to unwind.
const STEPS_TO_UNWIND: usize = 100_000;

impl Sim {
    /// Frees the memory of all programs whose hosts have crashed.
    pub(super) fn drop_crashed(&mut self) {
        self.world.with(WorldState::end);
        for running in mem::take(&mut self.crashed) {
            running.drop_unpolled();
        }
    }

    /// Unwinds the run after a failure: requests all programs to stop and runs them. Programs that do not end
    /// are leaked.
    pub(super) fn give_up(mut self) {
        self.actions.clear();
        self.invariants.clear();
        self.disturbance = Disturbance { stop: None, errors_are_fine: true };
        self.world.with(|state| state.plan = None);
        self.stop_daemons();
        self.step_limit = self.steps + STEPS_TO_UNWIND;
        self.time_limit = Duration::MAX;
        while !self.is_empty() {
            // The panic hook has already reported a panic of a program.
            let more = self.run_until(Self::is_empty);
            if more.is_err() && !self.programs.iter().any(Program::has_ended) {
                break;
            }
        }
        for program in &mut self.programs {
            if let Stage::Running(running) = mem::replace(&mut program.stage, Stage::Idle) {
                leak(running);
            }
        }
        self.drop_crashed();
    }
}

impl Running {
    /// Returns how a program that has ended did so; the error is the message of its panic.
    pub(super) fn into_ending(self) -> Result<Ending, String> {
        self.host_run.run_ready();
        match Panic::catch(|| self.launched.wait()) {
            Ok(Outcome::Value(Ok(()))) => Ok(Ending::Completed),
            Ok(Outcome::Value(Err(error))) => Ok(Ending::Failed(error)),
            Ok(Outcome::Stopped) => Ok(Ending::Stopped),
            Ok(Outcome::Panicked(panic)) | Err(panic) => Err(panic.message().to_owned()),
            Ok(Outcome::Error(never)) => never.absurd(),
        }
    }

    /// Drops a program without polling it. The stop request queues its root task; the loop stops queued work
    /// without polling it, and a stopped task requests its children to stop, which queues them.
    fn drop_unpolled(self) {
        let Self { host_run, launched, .. } = self;
        skipping_clean_up(|| {
            // The panic hook has already reported a panic of a destructor.
            let _ = Panic::catch(|| {
                host_run.stop_unrun(|| launched.request_stop(StopReason::Named("the host has crashed")));
            });
            let _ = Panic::catch(|| drop(host_run));
            if launched.is_finished() {
                let _ = Panic::catch(|| drop(launched));
            } else {
                leak(launched);
            }
        });
    }
}

/// Leaks a value that must not move or be dropped, because it has not ended. Its address is stored, so that
/// leak checkers do not report it.
fn leak<T>(what: T) {
    static LEAKED: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let address = core::ptr::from_mut(Box::leak(Box::new(what))).expose_provenance();
    LEAKED.lock().unwrap_or_else(PoisonError::into_inner).push(address);
}
