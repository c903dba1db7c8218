//! One run of an explored program, step by step, and the checks at its end.

use core::future::Future;

use convoke_core::{Outcome, StopToken};

use super::super::play::{MOST_STEPS, Running};
use super::exploration::{Asked, Ended, Stop, StopRun};
use super::parts::{Part, ask, parts};
use super::probe::Probe;
use convoke_task::raw::explored::Watching;

/// Runs the program with or without a stop request. The error says what went wrong.
pub(super) fn run<F, P>(program: &F, stop: Option<Stop>) -> Result<StopRun, String>
where
    F: Fn(&Probe) -> P,
    P: Future<Output: Send + 'static> + Send + 'static,
{
    let watching = stop.is_some_and(|stop| stop.part.is_some()).then(Watching::begin);
    let mut disturbance = Disturbance { stop, watching, asked_program: false, title: None };
    let probe = Probe::new();
    let ran = run_until_it_ends(program(&probe), &probe, |running| disturbance.apply(running));
    disturbance.judge(ran, &probe)
}

/// Runs the program undisturbed. Also returns its parts at each point.
pub(super) fn run_and_list_parts<F, P>(program: &F) -> Result<(StopRun, Vec<Vec<Part>>), String>
where
    F: Fn(&Probe) -> P,
    P: Future<Output: Send + 'static> + Send + 'static,
{
    let watching = Watching::begin();
    let mut points = Vec::new();
    let probe = Probe::new();
    let ran = run_until_it_ends(program(&probe), &probe, |running| {
        // A program that ends only when it is stopped is visited twice without a step between.
        points.truncate(running.taken());
        points.push(parts(running, &watching));
        Ok(())
    });
    let nothing = Disturbance { stop: None, watching: None, asked_program: false, title: None };
    Ok((nothing.judge(ran, &probe)?, points))
}

/// The ending of a run, its number of steps, and what it has left behind.
struct RunResult {
    ended: Ended,
    steps: usize,
    complaints: Vec<String>,
}

/// Takes steps until the program has ended. `before` is called before each.
fn run_until_it_ends<P, B>(program: P, probe: &Probe, mut before: B) -> Result<RunResult, String>
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
                break Some("it hangs: nothing is queued, no timer is set, and it has not ended".to_owned());
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
    Ok(RunResult { ended, steps, complaints: left.complaints() })
}

/// The stop request of a run.
struct Disturbance {
    stop: Option<Stop>,
    watching: Option<Watching>,
    asked_program: bool,
    /// A description of the part that was requested to stop.
    title: Option<String>,
}

impl Disturbance {
    /// Requests the stop, if this is its point.
    fn apply<T>(&mut self, running: &Running<T>) -> Result<(), String> {
        let Some(stop) = self.stop.filter(|stop| stop.point == running.taken() && !self.was_applied()) else {
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
        if self.was_applied() { Ok(()) } else { Err(format!("there is no {part}")) }
    }

    fn was_applied(&self) -> bool {
        self.asked_program || self.title.is_some()
    }

    /// Checks the result of the run.
    fn judge(&self, ran: Result<RunResult, String>, probe: &Probe) -> Result<StopRun, String> {
        let asked =
            self.title.as_ref().map(|title| format!("\nrequested to stop: {title}")).unwrap_or_default();
        let RunResult { ended, steps, complaints } = ran.map_err(|failure| format!("{failure}{asked}"))?;
        if let Some(stop) = self.stop.filter(|_| !self.was_applied()) {
            let point = stop.point;
            return Err(format!(
                "it ended after {steps} steps, before step {point}: the program is not deterministic"
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
