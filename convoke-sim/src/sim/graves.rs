//! What becomes of programs that did not end by themselves: those of hosts that have crashed, and all of them after a failure.

use core::mem;
use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use convoke_core::{Outcome, Panic, StopReason};
use convoke_exec::cleanup::skipping_clean_up;

use super::program::{Ending, Program, Running, Stage};
use super::{Disturbance, Sim};
use crate::world::State;

/// How many pieces of work a run that has failed may take to unwind.
const STEPS_TO_UNWIND: usize = 100_000;

impl Sim {
    /// Gives back the memory of all that has crashed.
    pub(super) fn open_graves(&mut self) {
        self.world.with(State::end);
        for running in mem::take(&mut self.graves) {
            running.dissolve();
        }
    }

    /// After a failure: all are asked to stop and unwind. Those that do not stay as they are, for ever.
    pub(super) fn give_up(mut self) {
        self.actions.clear();
        self.invariants.clear();
        self.disturbance = Disturbance { stop: None, errors_are_fine: true };
        self.world.with(|state| state.plan = None);
        self.stop_daemons();
        self.step_limit = self.steps + STEPS_TO_UNWIND;
        self.time_limit = Duration::MAX;
        while !self.is_empty() {
            // One that panics has been reported by the panic hook.
            let more = self.run_until(Self::is_empty);
            if more.is_err() && !self.programs.iter().any(Program::has_ended) {
                break;
            }
        }
        for program in &mut self.programs {
            if let Stage::Running(running) = mem::replace(&mut program.stage, Stage::Idle) {
                keep_for_ever(running);
            }
        }
        self.open_graves();
    }
}

impl Running {
    /// How a program that has ended ended; the error says that it panicked.
    pub(super) fn harvest(self) -> Result<Ending, String> {
        self.life.run_ready();
        match Panic::catch(|| self.chain.wait()) {
            Ok(Outcome::Value(Ok(()))) => Ok(Ending::Completed),
            Ok(Outcome::Value(Err(error))) => Ok(Ending::Failed(error)),
            Ok(Outcome::Stopped) => Ok(Ending::Stopped),
            Ok(Outcome::Panicked(panic)) | Err(panic) => Err(panic.message().to_owned()),
            Ok(Outcome::Error(never)) => never.absurd(),
        }
    }

    /// Destroys a program that is not to run any more. It is asked to stop, so its first task is queued; work that is dropped unrun is
    /// stopped without being polled, and a task that is stopped asks its children, who are queued.
    fn dissolve(self) {
        let Self { life, chain, .. } = self;
        skipping_clean_up(|| {
            // What destructors throw has been reported by the panic hook.
            let _ = Panic::catch(|| {
                life.stop_unrun(|| chain.request_stop(StopReason::Named("the host has crashed")));
            });
            let _ = Panic::catch(|| drop(life));
            if chain.has_ended() {
                let _ = Panic::catch(|| drop(chain));
            } else {
                keep_for_ever(chain);
            }
        });
    }
}

/// What has not ended must stay where it is. Its address is kept, too: leak checkers then know that it is meant.
fn keep_for_ever<T>(what: T) {
    static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let address = core::ptr::from_mut(Box::leak(Box::new(what))).expose_provenance();
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(address);
}
