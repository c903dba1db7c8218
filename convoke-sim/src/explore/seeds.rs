//! SimExploration of seeds: one run for each.

use super::alone::{ONE_SEED, one_seed};
use crate::sim::{Sim, SimReport};

/// Runs the simulation that `set_up` prepares, once for each seed.
///
/// If the environment variable `CONVOKE_SEED` is set, only that seed runs. `CONVOKE_TRACE=1` prints each
/// trace line when it happens, among the output of the programs.
///
/// # Panics
/// As [`Sim::run`], at the first seed that fails.
///
/// ```
/// use convoke::sim::{Link, explore_seeds};
/// # use std::time::Duration;
/// # use convoke::prelude::*;
///
/// let reports = explore_seeds(0..20, |sim| {
///     sim.links(Link::rough());
///     sim.host("alone").run(|| async { sleep(Duration::from_secs(1)).await });
/// });
/// assert_eq!(reports.len(), 20);
/// ```
#[track_caller]
pub fn explore_seeds(seeds: impl IntoIterator<Item = u64>, set_up: impl Fn(&mut Sim)) -> Vec<SimReport> {
    if let Some(seed) = one_seed() {
        return vec![run(seed, &set_up)];
    }
    let mut reports = Vec::new();
    for seed in seeds {
        reports.push(run(seed, &set_up));
    }
    reports
}

#[track_caller]
pub(super) fn run(seed: u64, set_up: &impl Fn(&mut Sim)) -> SimReport {
    let mut sim = Sim::new(seed);
    set_up(&mut sim);
    match sim.try_run() {
        Ok(report) => report,
        Err(failure) => {
            panic!("{}", failure.replayed_by(format!("{ONE_SEED}={seed}` or `Sim::new({seed})")))
        }
    }
}
