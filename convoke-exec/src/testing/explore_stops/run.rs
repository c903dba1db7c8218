//! One run of a program that is explored, step by step, and what is looked at when it has ended.

use convoke_core::{Outcome, StopToken};
use core::future::Future;

use super::super::play::{MOST_STEPS, Running};
use super::exploration::{Asked, Ended, StopRun};
use super::probe::Probe;

/// Runs the program, asked to stop after so many steps and from there, or not at all. The error says what was wrong.
pub(super) fn run<F, P>(program: &F, stop: Option<(usize, Asked)>) -> Result<StopRun, String>
where
    F: Fn(&Probe) -> P,
    P: Future<Output: Send + 'static> + Send + 'static,
{
    let probe = Probe::new();
    let mut running = Running::start_anywhere("the program".into(), &StopToken::never(), program(&probe));
    let mut asked = false;
    let failure = loop {
        if running.has_ended() {
            break None;
        }
        if let Some((_, from)) = stop.filter(|(point, _)| !asked && *point == running.taken()) {
            asked = true;
            match from {
                Asked::Outside => running.request_stop(),
                Asked::Inside => running.within(|| running.request_stop()),
            };
        }
        match running.step() {
            Ok(true) if running.taken() > MOST_STEPS => {
                break Some(format!("it still runs after {MOST_STEPS} steps"));
            }
            Ok(true) => {}
            Err(panic) => {
                break Some(format!("a piece of work panicked on its executor: {}", panic.message()));
            }
            Ok(false) if !asked && probe.is_only_stopped() => {
                asked = true;
                running.request_stop();
            }
            Ok(false) => {
                break Some(
                    "it hangs: it has not ended, and there is nothing to run and no timer".to_owned(),
                );
            }
        }
    };
    if let Some(failure) = failure {
        return Err(format!("{failure}\n{}", running.give_up()));
    }
    let steps = running.taken();
    let (outcome, left) = running.end();
    let ended = match &outcome {
        Outcome::Value(_) => Ended::Value,
        Outcome::Stopped => Ended::Stopped,
        Outcome::Error(never) => never.absurd(),
        Outcome::Panicked(panic) => return Err(format!("it panicked: {}", panic.message())),
    };
    drop(outcome);
    if let Some((point, _)) = stop.filter(|_| !asked) {
        return Err(format!(
            "it ended after {steps} steps, before step {point}: it is not the same every time"
        ));
    }
    let mut complaints = probe.complaints();
    complaints.extend(left.complaints());
    if complaints.is_empty() { Ok(StopRun::new(stop, ended, steps)) } else { Err(complaints.join("; ")) }
}
