//! SimExploration of faults: one run for each operation of a host and each fault.

use super::alone::{ONE_POINT, points};
use super::{ExploredRun, SimExploration};
use crate::sim::{Disturbance, Sim, SimFailure, SimReport};
use crate::world::{Fault, Plan};

/// Runs the simulation that `set_up` prepares once undisturbed, and then once for each operation that `host`
/// begins on a socket or disk and for each of `faults`, which strikes at that operation.
///
/// The number of runs is operations times faults, and each takes as long as the program: keep programs small.
///
/// All runs have the same seed. In runs with a fault a host may return an error. Each run must still end,
/// without a panic, with all promises kept and nothing left open.
///
/// # Panics
/// As [`Sim::run`], except for returned errors. The message says how to repeat the failing run alone: with
/// `CONVOKE_POINT` in the environment, or by [`replay_fault`].
///
/// ```
/// use convoke::net::UnixStream;
/// use convoke::sim::{Fault, explore_faults};
///
/// let exploration = explore_faults(1, "host", &Fault::ALL, |sim| {
///     sim.host("host").run(|| async {
///         let (one, other) = UnixStream::pair()?;
///         one.write_all(b"hello").await?;
///         drop(one);
///         other.read_exact(&mut [0; 5]).await
///     });
/// });
/// assert!(exploration.runs().len() >= 3 * Fault::ALL.len());
/// ```
#[track_caller]
pub fn explore_faults(seed: u64, host: &str, faults: &[Fault], set_up: impl Fn(&mut Sim)) -> SimExploration {
    let undisturbed = match run(seed, host, None, &set_up) {
        Ok(report) => report,
        Err(failure) => panic!("{failure}"),
    };
    let operations = undisturbed.host(host).map_or(0, |host| host.operations());
    let mut runs = Vec::new();
    for operation in points(operations) {
        for fault in faults {
            let report = replay_fault(seed, host, operation, *fault, &set_up);
            runs.push(ExploredRun { point: operation, what: fault.to_string(), report });
        }
    }
    SimExploration { host: host.to_owned(), runs, undisturbed }
}

/// Repeats one run of [`explore_faults`].
///
/// # Panics
/// As [`explore_faults`].
#[track_caller]
pub fn replay_fault(
    seed: u64,
    host: &str,
    operation: usize,
    fault: Fault,
    set_up: impl Fn(&mut Sim),
) -> SimReport {
    match run(seed, host, Some((operation, fault)), &set_up) {
        Ok(report) => report,
        Err(failure) => {
            let variable = format!("{ONE_POINT}={operation}");
            let replay =
                format!("{variable}` or `replay_fault({seed}, \"{host}\", {operation}, Fault::{fault:?}, …)");
            panic!("with {fault} at operation {operation} of `{host}`: {}", failure.replayed_by(replay))
        }
    }
}

#[track_caller]
fn run(
    seed: u64,
    host: &str,
    fault: Option<(usize, Fault)>,
    set_up: &impl Fn(&mut Sim),
) -> Result<SimReport, SimFailure> {
    let mut sim = Sim::new(seed);
    set_up(&mut sim);
    let host = sim.find(host);
    let plan = fault.map(|(operation, fault)| Plan { host, operation, fault, struck: false });
    sim.world().with(|state| state.plan = plan);
    sim.disturb(Disturbance { stop: None, errors_are_fine: plan.is_some() });
    sim.try_run()
}
