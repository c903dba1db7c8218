//! SimExploration of stops: one run for each step at which a host's program can be stopped.

use super::alone::{ONE_POINT, points};
use super::{ExploredRun, SimExploration};
use crate::sim::{Disturbance, Sim, SimFailure, SimReport};

/// Runs the simulation that `set_up` prepares once undisturbed, and then once for each step before the
/// program of `host` ends, with a stop request for `host` at that step.
///
/// All runs have the same seed. In runs with a stop a host may return an error, because it may miss the
/// stopped one. Each run must still end, without a panic, with all promises kept and nothing left open.
///
/// # Panics
/// As [`Sim::run`], except for returned errors. The message says how to repeat the failing run alone: with
/// `CONVOKE_POINT` in the environment, or by [`replay_host_stop`].
///
/// ```
/// use convoke::net::UnixStream;
/// use convoke::sim::explore_host_stops;
///
/// let exploration = explore_host_stops(1, "host", |sim| {
///     let probe = sim.probe();
///     sim.host("host").run(move || {
///         let probe = probe.clone();
///         async move {
///             let _open = probe.must_drop("connection");
///             let (one, other) = UnixStream::pair()?;
///             one.write_all(b"hello").await?;
///             other.read_exact(&mut [0; 5]).await
///         }
///     });
/// });
/// assert!(!exploration.runs().is_empty());
/// ```
#[track_caller]
pub fn explore_host_stops(seed: u64, host: &str, set_up: impl Fn(&mut Sim)) -> SimExploration {
    let undisturbed = match run(seed, host, None, &set_up) {
        Ok(report) => report,
        Err(failure) => panic!("{failure}"),
    };
    let count = undisturbed.host(host).map_or(0, |host| host.ended_after());
    let mut runs = Vec::new();
    for point in points(count) {
        let report = replay_host_stop(seed, host, point, &set_up);
        runs.push(ExploredRun { point, what: "a stop".to_owned(), report });
    }
    SimExploration { host: host.to_owned(), runs, undisturbed }
}

/// Repeats one run of [`explore_host_stops`].
///
/// # Panics
/// As [`explore_host_stops`].
#[track_caller]
pub fn replay_host_stop(seed: u64, host: &str, point: usize, set_up: impl Fn(&mut Sim)) -> SimReport {
    match run(seed, host, Some(point), &set_up) {
        Ok(report) => report,
        Err(failure) => {
            let replay = format!("{ONE_POINT}={point}` or `replay_host_stop({seed}, \"{host}\", {point}, …)");
            panic!("with a stop of `{host}` after step {point}: {}", failure.replayed_by(replay))
        }
    }
}

#[track_caller]
fn run(
    seed: u64,
    host: &str,
    point: Option<usize>,
    set_up: &impl Fn(&mut Sim),
) -> Result<SimReport, SimFailure> {
    let mut sim = Sim::new(seed);
    set_up(&mut sim);
    let host = sim.find(host);
    let stop = point.map(|point| (host, point));
    sim.disturb(Disturbance { stop, errors_are_fine: point.is_some() });
    sim.try_run()
}
