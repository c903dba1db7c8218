//! One run of a program that is explored, step by step, and what is looked at when it has ended.

use core::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use convoke_core::env::Changes;
use convoke_core::frames::{Counting, FrameAllocator};
use convoke_core::testing::Connected;
use convoke_core::{Env, Outcome, Panic, StopReason, StopSource};

use super::exploration::{Asked, Ended, StopRun};
use super::probe::Probe;
use super::stage::Stage;
use crate::diagnosis::{examine, in_tests};
use crate::run_loop::RunLoop;
use crate::{task, tree};

/// A program that is not done by then never is.
const MOST_STEPS: usize = 100_000;

/// Runs the program, asked to stop after so many steps and from there, or not at all. The error says what was wrong.
pub(super) fn run<F, P>(program: &F, stop: Option<(usize, Asked)>) -> Result<StopRun, String>
where
    F: Fn(&Probe) -> P,
    P: Future<Output: Send + 'static> + Send + 'static,
{
    in_tests();
    let run_loop = RunLoop::new();
    let stage = Stage::new(run_loop.executor());
    let frames = Counting::new(FrameAllocator::default());
    let source = StopSource::new();
    let probe = Probe::new();
    let name: Arc<str> = "the program".into();
    let env = Env::new().with(
        Changes::new()
            .executor(stage.clone())
            .stop_token(source.token())
            .allocator(FrameAllocator::new(frames.clone())),
    );
    let running = Connected::with_env(task(program(&probe)).named(name.clone()), env).start();
    let mut run = Steps { run_loop: &run_loop, stage: &stage, taken: 0 };
    let mut asked = false;
    let failure = loop {
        if running.is_complete() {
            break None;
        }
        if let Some((_, from)) = stop.filter(|(point, _)| !asked && *point == run.taken) {
            asked = true;
            let ask = || source.request_stop(StopReason::Requested);
            match from {
                Asked::Outside => ask(),
                Asked::Inside => run_loop.within(ask),
            };
        }
        match run.take() {
            Ok(true) if run.taken > MOST_STEPS => {
                break Some(format!("it still runs after {MOST_STEPS} steps"));
            }
            Ok(true) => {}
            Err(panic) => {
                break Some(format!("a piece of work panicked on its executor: {}", panic.message()));
            }
            Ok(false) if !asked && probe.is_only_stopped() => {
                asked = true;
                source.request_stop(StopReason::Requested);
            }
            Ok(false) => {
                break Some(
                    "it hangs: it has not ended, and there is nothing to run and no timer".to_owned(),
                );
            }
        }
    };
    if let Some(failure) = failure {
        let tree = tree();
        let tasks = tree.tasks().find(|task| task.has_name(&name)).map(|task| task.to_string());
        let reports: String = examine().iter().map(|report| format!("\n{report}")).collect();
        keep_for_ever(running);
        return Err(format!("{failure}\n{}{reports}", tasks.unwrap_or_default()));
    }
    let steps = run.taken;
    let outcome = running.outcome();
    let ended = match &outcome {
        Outcome::Value(_) => Ended::Value,
        Outcome::Stopped => Ended::Stopped,
        Outcome::Error(never) => never.absurd(),
        Outcome::Panicked(panic) => return Err(format!("it panicked: {}", panic.message())),
    };
    drop(outcome);
    // Nobody's memory is in what is left: letters to those who have gone.
    run_loop.run_ready();
    if let Some((point, _)) = stop.filter(|_| !asked) {
        return Err(format!(
            "it ended after {steps} steps, before step {point}: it is not the same every time"
        ));
    }
    let mut complaints = probe.complaints();
    if frames.live() > 0 {
        let (live, bytes) = (frames.live(), frames.live_bytes());
        complaints.push(format!("{live} pieces of memory for frames ({bytes} bytes) were not given back"));
    }
    if complaints.is_empty() { Ok(StopRun::new(stop, ended, steps)) } else { Err(complaints.join("; ")) }
}

/// What has not completed must stay where it is. Its address is kept, too: leak checkers then know that it is meant.
fn keep_for_ever<T>(running: T) {
    static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let address = core::ptr::from_mut(Box::leak(Box::new(running))).expose_provenance();
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(address);
}

struct Steps<'a> {
    run_loop: &'a RunLoop,
    stage: &'a Stage,
    taken: usize,
}

impl Steps<'_> {
    /// Takes a step, if there is one to take.
    fn take(&mut self) -> Result<bool, Panic> {
        let taken = Panic::catch(|| self.run_loop.run_one() || self.stage.jump())?;
        self.taken += usize::from(taken);
        Ok(taken)
    }
}
