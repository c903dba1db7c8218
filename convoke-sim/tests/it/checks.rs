//! Invariants and final checks of a run, and the message when one fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use convoke::prelude::*;
use convoke::sim::{Fault, Sim, SimFailure, explore_faults, explore_seeds};

const SECOND: Duration = Duration::from_secs(1);

/// Adds a host that counts to ten, once per second.
fn counts(sim: &mut Sim) -> Arc<AtomicU32> {
    let count = Arc::new(AtomicU32::new(0));
    let shared = count.clone();
    sim.host("counter").run(move || {
        let count = shared.clone();
        async move {
            for _ in 0..10 {
                sleep(SECOND).await;
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    count
}

fn failure(sim: Sim) -> SimFailure {
    sim.try_run().expect_err("it fails")
}

#[test]
fn an_invariant_that_breaks_ends_the_run_at_that_moment() {
    let mut sim = Sim::new(9);
    let count = counts(&mut sim);
    sim.always(move || assert!(count.load(Ordering::Relaxed) < 4, "too many"));
    let failure = failure(sim);
    assert_eq!(failure.at(), 4 * SECOND);
    let what = failure.what();
    assert!(
        what.starts_with("an invariant does not hold (declared at convoke-sim/tests/it/checks.rs:"),
        "{what}"
    );
    assert!(what.ends_with("): too many"), "{what}");
    assert!(failure.tasks().contains("`counter`"), "{failure}");
}

#[test]
fn a_check_may_say_no_by_an_error() {
    let mut sim = Sim::new(9);
    let count = counts(&mut sim);
    sim.always(move || if count.load(Ordering::Relaxed) < 2 { Ok(()) } else { Err("two") });
    assert!(failure(sim).what().ends_with("): \"two\""));
}

#[test]
fn the_last_checks_are_made_when_all_have_ended() {
    let mut sim = Sim::new(9);
    let count = counts(&mut sim);
    sim.finally(move || assert_ne!(count.load(Ordering::Relaxed), 10, "it counts to ten"));
    let failure = failure(sim);
    assert!(failure.what().starts_with("a final check failed (declared at "), "{failure}");
    assert_eq!(failure.at(), 10 * SECOND);
}

#[test]
#[should_panic = "`CONVOKE_SEED=0`"]
fn an_exploration_of_seeds_names_the_seed_of_a_check() {
    explore_seeds(0..3, |sim| {
        let count = counts(sim);
        sim.finally(move || assert_eq!(count.load(Ordering::Relaxed), 11));
    });
}

#[test]
#[should_panic = "replay_fault(5, \"counter\", 0, Fault::Crash"]
fn an_exploration_of_faults_names_the_run_of_a_check() {
    explore_faults(5, "counter", &[Fault::Crash], |sim| {
        let (disk, starts) = (sim.disk("counter", ()), Arc::new(AtomicU32::new(0)));
        let count = starts.clone();
        sim.host("counter").run(move || {
            count.fetch_add(1, Ordering::Relaxed);
            let disk = disk.clone();
            async move { disk.sync().await }
        });
        sim.finally(move || assert_eq!(starts.load(Ordering::Relaxed), 1));
    });
}
