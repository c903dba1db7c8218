//! Models of the run loop: nobody's wake-up is lost, and a loop may go away while others still hold on to it.
#![cfg(feature = "loom")]

use std::sync::atomic::{AtomicUsize, Ordering};

use convoke_core::prelude::*;
use convoke_exec::{RunLoop, sync_wait};
use loom::thread;

fn model(f: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(f);
}

#[test]
fn work_posted_while_the_loop_falls_asleep_is_run() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    model(|| {
        let run_loop = RunLoop::new();
        let executor = run_loop.executor();
        let poster = thread::spawn(move || {
            // Waits on its own loop for work that runs on the other one.
            let outcome = sync_wait(schedule(&executor).then(|()| 7));
            assert_eq!(outcome, Outcome::Value(7));
            executor.finish();
        });
        run_loop.run();
        poster.join().unwrap();
        RUNS.fetch_add(1, Ordering::Relaxed);
    });
    assert!(RUNS.load(Ordering::Relaxed) > 1, "the model had one way to go only");
}

#[test]
fn a_finish_that_meets_a_loop_falling_asleep_is_heard() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    model(|| {
        let run_loop = RunLoop::new();
        let executor = run_loop.executor();
        let other = thread::spawn(move || executor.finish());
        run_loop.run();
        // Gone, perhaps while `finish` is still at work.
        drop(run_loop);
        other.join().unwrap();
        RUNS.fetch_add(1, Ordering::Relaxed);
    });
    assert!(RUNS.load(Ordering::Relaxed) > 1, "the model had one way to go only");
}

#[test]
fn work_posted_while_the_loop_goes_away_is_run_or_stopped() {
    static RAN: AtomicUsize = AtomicUsize::new(0);
    static STOPPED: AtomicUsize = AtomicUsize::new(0);
    model(|| {
        let run_loop = RunLoop::new();
        let executor = run_loop.executor();
        let poster = thread::spawn(move || match sync_wait(schedule(&executor)) {
            Outcome::Value(()) => RAN.fetch_add(1, Ordering::Relaxed),
            Outcome::Stopped => STOPPED.fetch_add(1, Ordering::Relaxed),
            other => panic!("{other:?}"),
        });
        for _ in 0..2 {
            run_loop.run_ready();
            thread::yield_now();
        }
        drop(run_loop);
        poster.join().unwrap();
    });
    let (ran, stopped) = (RAN.load(Ordering::Relaxed), STOPPED.load(Ordering::Relaxed));
    assert!(ran > 0 && stopped > 0, "both sides of the race: {ran} ran, {stopped} were stopped");
}
