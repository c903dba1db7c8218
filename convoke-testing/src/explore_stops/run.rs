//! One run of a program that is explored, step by step, and what is looked at when it has ended.

use core::future::Future;

use convoke_core::{Outcome, StopToken};

use super::super::play::{MOST_STEPS, Running};
use super::exploration::{Asked, Ended, Stop, StopRun};
use super::parts::{Part, ask, parts};
use super::probe::Probe;
use convoke_task::raw::explored::Watching;

/// Runs the program with a stop, or without. The error says what was wrong.
pub(super) fn run<F, P>(program: &F, stop: Option<Stop>) -> Result<StopRun, String>
where
    F: Fn(&Probe) -> P,
    P: Future<Output: Send + 'static> + Send + 'static,
{
    let watching = stop.is_some_and(|stop| stop.part.is_some()).then(Watching::begin);
    let mut disturbance = Disturbance { stop, watching, asked_program: false, title: None };
    let probe = Probe::new();
    let ran = run_until_it_ends(program(&probe), &probe, |running| disturbance.come(running));
    disturbance.judge(ran, &probe)
}

/// Runs the program as it is. For each point, the parts it has there.
pub(super) fn run_and_look<F, P>(program: &F) -> Result<(StopRun, Vec<Vec<Part>>), String>
where
    F: Fn(&Probe) -> P,
    P: Future<Output: Send + 'static> + Send + 'static,
{
    let watching = Watching::begin();
    let mut points = Vec::new();
    let probe = Probe::new();
    let ran = run_until_it_ends(program(&probe), &probe, |running| {
        // A program that only ends when it is stopped is asked without a step.
        points.truncate(running.taken());
        points.push(parts(running, &watching));
        Ok(())
    });
    let nothing = Disturbance { stop: None, watching: None, asked_program: false, title: None };
    Ok((nothing.judge(ran, &probe)?, points))
}

/// How a program has ended, in how many steps, and what it has left behind.
struct Ran {
    ended: Ended,
    steps: usize,
    complaints: Vec<String>,
}

/// Takes steps until the program has ended; `before` is called before each.
fn run_until_it_ends<P, B>(program: P, probe: &Probe, mut before: B) -> Result<Ran, String>
where
    P: Future<Output: Send + 'static> + Send + 'static,
    B: FnMut(&Running<P::Output>) -> Result<(), String>,
{
    let mut running = Running::start_anywhere("the program".into(), &StopToken::never(), program);
    let mut asked_because_idle = false;
    let failure = loop {
        if running.has_ended() {
            break None;
        }
        if let Err(failure) = before(&running) {
            break Some(failure);
        }
        match running.step() {
            Ok(true) if running.taken() > MOST_STEPS => {
                break Some(format!("it still runs after {MOST_STEPS} steps"));
            }
            Ok(true) => {}
            Err(panic) => {
                break Some(format!("a piece of work panicked on its executor: {}", panic.message()));
            }
            Ok(false) if !asked_because_idle && probe.is_only_stopped() => {
                asked_because_idle = true;
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
    Ok(Ran { ended, steps, complaints: left.complaints() })
}

/// The stop that comes in a run.
struct Disturbance {
    stop: Option<Stop>,
    watching: Option<Watching>,
    asked_program: bool,
    /// The part that was asked, for people.
    title: Option<String>,
}

impl Disturbance {
    /// Asks at its point.
    fn come<T>(&mut self, running: &Running<T>) -> Result<(), String> {
        let Some(stop) = self.stop.filter(|stop| stop.point == running.taken() && !self.has_come()) else {
            return Ok(());
        };
        let (Some(part), Some(watching)) = (stop.part, &self.watching) else {
            self.asked_program = true;
            match stop.from {
                Asked::Outside => running.request_stop(),
                Asked::Inside => running.within(|| running.request_stop()),
            }
            return Ok(());
        };
        self.title = ask(running, watching, part, stop.from);
        if self.has_come() { Ok(()) } else { Err(format!("there is no {part}")) }
    }

    fn has_come(&self) -> bool {
        self.asked_program || self.title.is_some()
    }

    /// Whether all is well.
    fn judge(&self, ran: Result<Ran, String>, probe: &Probe) -> Result<StopRun, String> {
        let asked =
            self.title.as_ref().map(|title| format!("\nasked to stop was {title}")).unwrap_or_default();
        let Ran { ended, steps, complaints } = ran.map_err(|failure| format!("{failure}{asked}"))?;
        if let Some(stop) = self.stop.filter(|_| !self.has_come()) {
            let point = stop.point;
            return Err(format!(
                "it ended after {steps} steps, before step {point}: it is not the same every time"
            ));
        }
        let mut all = probe.complaints();
        all.extend(complaints);
        if all.is_empty() {
            Ok(StopRun::new(self.stop, ended, steps))
        } else {
            Err(format!("{}{asked}", all.join("; ")))
        }
    }
}
