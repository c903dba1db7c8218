//! Instructions per op: a number that a busy machine cannot disturb.
//!
//! The program runs itself under callgrind twice, for N and for 2N ops; the difference belongs to N ops,
//! because start-up and warm-up cancel out. Callgrind runs one thread at a time, so for scenarios with
//! several threads the number leaves out their mutual cost, and includes the spinning of idle ones: take it
//! as a hint there.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use crate::scenario::{Instructions, Scenario};

/// The time limit of a run. A run that takes longer is ended, and its number stays unknown.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// The factor by which N is smaller than a timed sample: callgrind is some fifty times slower than the
/// machine.
const LESS_THAN_A_SAMPLE: u64 = 50;

/// Returns true if valgrind is installed.
pub(crate) fn available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| {
        let status =
            Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    })
}

/// Returns the instructions per op of one contestant, or `None` if they cannot be determined.
pub(crate) fn per_op(scenario: &Scenario, peer: &str, ops_per_sample: u64) -> Option<f64> {
    let contestant = scenario.contestants.iter().find(|contestant| contestant.peer == peer)?;
    match &contestant.instructions {
        Instructions::OfThisProcess => of_this_process(scenario, peer, ops_per_sample),
        Instructions::OfServer(count) => count(),
        Instructions::Unknown => None,
    }
}

fn of_this_process(scenario: &Scenario, peer: &str, ops_per_sample: u64) -> Option<f64> {
    let ops = scenario.whole_batches((ops_per_sample / LESS_THAN_A_SAMPLE).max(1));
    let once = total(scenario.name, peer, ops)?;
    let twice = total(scenario.name, peer, 2 * ops)?;
    Some(twice.checked_sub(once)? as f64 / (ops * scenario.lanes) as f64)
}

/// Returns the instructions of a whole run. The child inherits the environment and with it the allocator.
fn total(scenario: &str, peer: &str, ops: u64) -> Option<u64> {
    let child = callgrind()
        .arg(std::env::current_exe().ok()?)
        .args(["--run-ops", scenario, peer, &ops.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    collected(&wait_at_most(TIME_LIMIT, child)?)
}

/// Returns a command that runs the program that follows under callgrind.
pub(crate) fn callgrind() -> Command {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--fair-sched=try"]);
    command
}

/// Waits for the child and returns its standard error, or kills it when the time is up. Callgrind writes a
/// few lines, far less than a pipe holds, so they can be read at the end.
fn wait_at_most(limit: Duration, mut child: Child) -> Option<String> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().ok()? {
            let mut text = String::new();
            child.stderr.take()?.read_to_string(&mut text).ok()?;
            return status.success().then_some(text);
        }
        if start.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the number in callgrind's line `==123== Collected : 456`.
pub(crate) fn collected(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_collected_line_is_found_among_the_others() {
        let text = "==7== Callgrind, a call-graph generating cache profiler\n==7== \n==7== Events    : Ir\n\
                    ==7== Collected : 1234567\n==7== \n";
        assert_eq!(collected(text), Some(1_234_567));
    }

    #[test]
    fn no_collected_line_is_unknown() {
        assert_eq!(collected("==7== Events    : Ir\n"), None);
        assert_eq!(collected("==7== Collected : many\n"), None);
    }
}
