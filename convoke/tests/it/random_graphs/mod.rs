//! Random graphs of senders, which cover every combination of adaptors, threads, stops and panics over time.
//!
//! After each graph the test checks that the root has completed once, with an outcome that the graph allows,
//! that every token of a closure, value or error was dropped once, and that every clean-up and every exit has
//! run once if it had to, and not otherwise.
//!
//! `CONVOKE_ROUNDS=n` sets the number of graphs. `CONVOKE_SEED=n` runs only that graph, `CONVOKE_ROUNDS`
//! times.

mod build;
mod doors;
mod leaves;
mod ledger;
mod plan;
mod rounds;
mod threads;
mod together;

use std::env;
use std::io::Write;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use convoke::env::Changes;
use convoke::raw::Random;
use convoke::sender::prelude::*;

use build::{World, build};
use ledger::{EXPECTED, ExpectedPanic, Ledger};
use plan::{Kind, Plan};
use threads::{Job, THREADS, spin};

/// The time limit of a graph.
const PATIENCE: Duration = Duration::from_secs(if cfg!(miri) { 3600 } else { 20 });

/// The number of threads that run graphs at the same time.
const DRIVERS: u64 = 2;

/// The default number of graphs.
const ROUNDS: u64 = if cfg!(miri) { 40 } else { 25_000 };

#[test]
fn random_graphs_end_as_they_may_and_leave_nothing_behind() {
    let number = |name| env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let (seed, rounds) = (number("CONVOKE_SEED"), number("CONVOKE_ROUNDS"));
    be_quiet_about_expected_panics();
    let count = rounds.unwrap_or(if seed.is_some() { 1 } else { ROUNDS });
    let run_some = |driver: u64| {
        let watch = Watch::begin();
        let mut doors = [0_u64; 5];
        for round in (driver..count).step_by(DRIVERS as usize) {
            doors[run(seed.unwrap_or(round), &watch)] += 1;
        }
        doors
    };
    let mut doors = [0_u64; 5];
    thread::scope(|scope| {
        let drivers: Vec<_> = (0..DRIVERS).map(|driver| scope.spawn(move || run_some(driver))).collect();
        for driver in drivers {
            let some = driver.join().unwrap_or_else(|panic| panic::resume_unwind(panic));
            doors.iter_mut().zip(some).for_each(|(all, some)| *all += some);
        }
    });
    let [values, errors, stopped, panicked, unstarted] = doors;
    println!(
        "{values} values, {errors} errors, {stopped} stopped, {panicked} panicked, {unstarted} unstarted"
    );
    if seed.is_none() && rounds.is_none() {
        assert!(
            cfg!(miri) || doors.iter().all(|&door| door > ROUNDS / 50),
            "the graphs are not as various as they should be"
        );
    }
}

/// Runs one graph. Returns the number of its outcome, or of none if it was dropped before it was started.
fn run(seed: u64, watch: &Watch) -> usize {
    let mut random = Random::new(seed);
    // Half of the graphs are stopped: some before they start, most while they run.
    let (stops, early) = (random.one_in(2), random.one_in(8));
    let size = 1 + random.below(24);
    let plan = Arc::new(Plan::random(&mut random, size, 7, stops));
    let moment = 1 << random.below(15);
    let moment = random.below(moment);
    watch.0.send(Some((seed, plan.clone()))).unwrap();

    let ledger = Ledger::new();
    let source = StopSource::new();
    let root = build(&plan, &World(ledger.clone()));
    if random.one_in(32) {
        drop(root);
        return judge(seed, &plan, &ledger, watch, 0, 4);
    }
    let (done, stop_done) = mpsc::channel();
    if stops {
        let source = source.clone();
        let stop = move || {
            spin(moment);
            source.request_stop(StopReason::Requested);
            done.send(()).unwrap();
        };
        match early {
            true => stop(),
            false => THREADS.stopper.send(Job::run(stop)).unwrap(),
        }
    }
    let counting = ledger.clone();
    let root = root.materialize().then(move |outcome| {
        counting.completions.fetch_add(1, Ordering::AcqRel);
        outcome
    });
    let changes = Changes::new().stop_token(source.token());
    let outcome = catch_unwind(AssertUnwindSafe(|| sync_wait_with(changes, root.dematerialize())));
    let door = match &outcome {
        Ok(Outcome::Value(value)) => {
            value.token.touch();
            doors::VALUE
        }
        Ok(Outcome::Error(error)) => {
            error.token.touch();
            doors::ERROR
        }
        Ok(Outcome::Stopped) => doors::STOPPED,
        Ok(Outcome::Panicked(_)) => unreachable!("`sync_wait` lets panics go on"),
        Err(payload) => {
            if !is_expected(&**payload) {
                ledger.complain("it panicked with something that is not part of the graph");
            }
            doors::PANICKED
        }
    };
    drop(outcome);
    if stops {
        stop_done.recv().unwrap();
    }
    let allowed = plan.doors(stops);
    if door & allowed == 0 {
        ledger.complain(format!("it ended through door {door}, of {allowed}"));
    }
    judge(seed, &plan, &ledger, watch, 1, door.trailing_zeros() as usize)
}

/// Checks the counters of a graph that has ended.
fn judge(seed: u64, plan: &Plan, ledger: &Ledger, watch: &Watch, completions: usize, door: usize) -> usize {
    // Shared work may continue after its last consumer has left; all else ends before the wait does.
    while plan.contains(Kind::Split) && ledger.outstanding() > 0 {
        thread::yield_now();
    }
    let complaints = ledger.complaints(completions);
    watch.0.send(None).unwrap();
    assert!(complaints.is_empty(), "{complaints:#?}\n{}", describe(seed, plan));
    door
}

fn describe(seed: u64, plan: &Plan) -> String {
    let replay = "cargo test -p convoke --test random_graphs";
    format!("graph {plan:#?}\nto replay: CONVOKE_SEED={seed} CONVOKE_ROUNDS=10000 {replay}\n")
}

/// A graph, by its seed and its plan; or none.
type Running = Option<(u64, Arc<Plan>)>;

/// A channel that tells the watching thread which graph starts and when it has ended.
struct Watch(mpsc::Sender<Running>);

impl Watch {
    /// Starts a thread that aborts the process if a graph takes too long.
    fn begin() -> Self {
        let (tell, told) = mpsc::channel::<Running>();
        thread::spawn(move || {
            while let Ok(running) = told.recv() {
                let Some((seed, plan)) = running else { continue };
                if let Err(mpsc::RecvTimeoutError::Timeout) = told.recv_timeout(PATIENCE) {
                    // Bypasses the output capture of the test harness, which an abort would lose.
                    let text = format!("a graph does not end: {}", describe(seed, &plan));
                    let _ = std::io::stderr().write_all(text.as_bytes());
                    process::abort();
                }
            }
        });
        Self(tell)
    }
}

fn is_expected(payload: &(dyn std::any::Any + Send)) -> bool {
    if let Some(expected) = payload.downcast_ref::<ExpectedPanic>() {
        expected.touch();
        return true;
    }
    // The message for a second consumer of shared work that panicked without text.
    const NO_TEXT: &str = "a panic whose payload is not text";
    payload.downcast_ref::<String>().is_some_and(|text| text.starts_with(EXPECTED) || text == NO_TEXT)
}

fn be_quiet_about_expected_panics() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !is_expected(info.payload()) {
            usual(info);
        }
    }));
}
