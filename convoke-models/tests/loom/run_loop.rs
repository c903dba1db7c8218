//! Models of the run loop: no wake is lost, and a loop may be dropped while others still hold its executor.
use crate::model::{Reached, explore};
use convoke_core::raw::sync::thread;
use convoke_exec::RunLoop;
use convoke_sender::prelude::*;
use convoke_sender::sync_wait;

/// Runs what is queued at first, then all the rest. Records which thread was first.
fn run_noting_who_was_first(run_loop: &RunLoop, there: &Reached, waited: &Reached) {
    thread::yield_now();
    let first = if run_loop.run_ready() > 0 { there } else { waited };
    first.here();
    run_loop.run();
}

fn assert_both(there: &Reached, waited: &Reached) {
    there.assert("it was there already");
    waited.assert("it was waited for");
}

#[test]
fn work_posted_while_the_loop_falls_asleep_is_run() {
    static THERE: Reached = Reached::new();
    static WAITED: Reached = Reached::new();
    explore(3, || {
        let run_loop = RunLoop::new();
        let executor = run_loop.executor();
        let poster = thread::spawn(move || {
            // Waits on its own loop for work that runs on the other one.
            let outcome = sync_wait(schedule(&executor).then(|()| 7));
            assert_eq!(outcome, Outcome::Value(7));
            executor.finish();
        });
        run_noting_who_was_first(&run_loop, &THERE, &WAITED);
        poster.join().unwrap();
    });
    assert_both(&THERE, &WAITED);
}

#[test]
fn a_finish_that_meets_a_loop_falling_asleep_is_heard() {
    static THERE: Reached = Reached::new();
    static WAITED: Reached = Reached::new();
    explore(3, || {
        let run_loop = RunLoop::new();
        let executor = run_loop.executor();
        let other = thread::spawn(move || executor.finish());
        run_noting_who_was_first(&run_loop, &THERE, &WAITED);
        // Dropped, perhaps while `finish` still runs.
        drop(run_loop);
        other.join().unwrap();
    });
    assert_both(&THERE, &WAITED);
}

#[test]
fn work_posted_while_the_loop_goes_away_is_run_or_stopped() {
    static RAN: Reached = Reached::new();
    static STOPPED: Reached = Reached::new();
    explore(3, || {
        let run_loop = RunLoop::new();
        let executor = run_loop.executor();
        let poster = thread::spawn(move || match sync_wait(schedule(&executor)) {
            Outcome::Value(()) => RAN.here(),
            Outcome::Stopped => STOPPED.here(),
            other => panic!("{other:?}"),
        });
        for _ in 0..2 {
            run_loop.run_ready();
            thread::yield_now();
        }
        drop(run_loop);
        poster.join().unwrap();
    });
    RAN.assert("it ran");
    STOPPED.assert("it was stopped");
}

#[test]
fn a_loop_without_work_has_run_what_its_work_has_posted() {
    static THERE: Reached = Reached::new();
    static WAITED: Reached = Reached::new();
    explore(3, || {
        let run_loop = RunLoop::new();
        let executor = run_loop.executor();
        executor.work_began();
        let other = thread::spawn(move || {
            // `finish` posts a piece of work.
            executor.finish();
            executor.work_ended();
        });
        thread::yield_now();
        let mut ran = run_loop.run_ready();
        let first = if ran > 0 { &THERE } else { &WAITED };
        first.here();
        while run_loop.has_work() {
            ran += run_loop.run_ready();
            thread::yield_now();
        }
        assert_eq!(ran, 1);
        other.join().unwrap();
    });
    assert_both(&THERE, &WAITED);
}
