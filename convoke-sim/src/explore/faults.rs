//! A fault at each operation of one host.

use super::alone::{ONE_POINT, points};
use super::{Exploration, ExploredRun};
use crate::sim::{Disturbance, Failure, Report, Sim};
use crate::world::{Fault, Plan};

/// Runs what `set_up` makes of a simulation as it is, and then again for each operation that `host` begins on a socket and for each
/// of these faults, which strikes there.
///
/// There are as many runs as operations times faults, each as long as the program: keep that small.
///
/// All runs have the same seed. In those with a fault no host fails by returning an error: that is what errors are for. But each
/// run must end, without a panic, with all promises kept and nothing left behind.
///
/// # Panics
/// As [`Sim::run`], but for errors. The message says how to run that alone: with `CONVOKE_POINT` in the environment, or by
/// [`replay_fault`].
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
pub fn explore_faults(seed: u64, host: &str, faults: &[Fault], set_up: impl Fn(&mut Sim)) -> Exploration {
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
    Exploration { host: host.to_owned(), runs, undisturbed }
}

/// One run of [`explore_faults`] alone.
///
/// # Panics
/// As there.
#[track_caller]
pub fn replay_fault(
    seed: u64,
    host: &str,
    operation: usize,
    fault: Fault,
    set_up: impl Fn(&mut Sim),
) -> Report {
    match run(seed, host, Some((operation, fault)), &set_up) {
        Ok(report) => report,
        Err(failure) => {
            let here = format!("{ONE_POINT}={operation}");
            let replay =
                format!("{here}` or `replay_fault({seed}, \"{host}\", {operation}, Fault::{fault:?}, …)");
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
) -> Result<Report, Failure> {
    let mut sim = Sim::new(seed);
    set_up(&mut sim);
    let host = sim.find(host);
    let plan = fault.map(|(operation, fault)| Plan { host, operation, fault, struck: false });
    sim.world().with(|state| state.plan = plan);
    sim.disturb(Disturbance { stop: None, errors_are_fine: plan.is_some() });
    sim.try_run()
}
