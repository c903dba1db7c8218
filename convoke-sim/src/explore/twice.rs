//! A check that a seed always produces the same run.

use super::seeds::run;
use crate::sim::{Sim, SimReport};
use crate::world::TraceLine;

/// Runs the simulation that `set_up` prepares twice with the same seed, and compares the two runs.
///
/// A failure can be repeated only if the program is deterministic. It is not if it depends on the order of a
/// `HashMap`, the machine's clock, a thread, or random numbers that do not come from
/// [`chance`](convoke_task::chance).
///
/// # Panics
/// As [`Sim::run`]; and if the two runs differ, with the first trace line that does.
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::sim::run_twice;
///
/// run_twice(1, |sim| {
///     sim.host("alone").run(|| async { sleep(Duration::from_secs(1)).await });
/// });
/// ```
#[track_caller]
pub fn run_twice(seed: u64, set_up: impl Fn(&mut Sim)) -> SimReport {
    let (first, again) = (run(seed, &set_up), run(seed, &set_up));
    if first != again {
        let difference = difference(first.trace(), again.trace());
        panic!("seed {seed} does not produce the same run every time: {difference}");
    }
    first
}

fn difference(first: &[TraceLine], again: &[TraceLine]) -> String {
    let number = first.iter().zip(again).take_while(|(one, other)| one == other).count();
    match (first.get(number), again.get(number)) {
        (None, None) => "tasks ran in another order; the traces are equal".to_owned(),
        (one, other) => {
            let say = |line: Option<&TraceLine>| {
                line.map_or("(the run had ended)".to_owned(), TraceLine::to_string)
            };
            format!(
                "line {} of the trace was\n{}\nand in the second run\n{}",
                number + 1,
                say(one),
                say(other)
            )
        }
    }
}
