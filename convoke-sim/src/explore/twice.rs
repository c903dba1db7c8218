//! One seed, twice: whether the programs do the same when they are run again.

use super::seeds::run;
use crate::sim::{Report, Sim};
use crate::world::TraceLine;

/// Runs what `set_up` makes of a simulation two times with the same seed, and compares them. A program that is another one each
/// time (by the order of a `HashMap`, the machine's clock, a thread, a random number that is not from
/// [`chance`](convoke_task::chance)) cannot be run again when it has failed; here is where it is found out.
///
/// # Panics
/// As [`Sim::run`]; and if the two runs differ: with the first line of the trace in which they do.
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
pub fn run_twice(seed: u64, set_up: impl Fn(&mut Sim)) -> Report {
    let (first, again) = (run(seed, &set_up), run(seed, &set_up));
    if first != again {
        let difference = difference(first.trace(), again.trace());
        panic!("seed {seed} does not make the same run every time: {difference}");
    }
    first
}

fn difference(first: &[TraceLine], again: &[TraceLine]) -> String {
    let number = first.iter().zip(again).take_while(|(one, other)| one == other).count();
    match (first.get(number), again.get(number)) {
        (None, None) => "tasks were run in another order, and nothing else is seen of it".to_owned(),
        (one, other) => {
            let say =
                |line: Option<&TraceLine>| line.map_or("(it had ended)".to_owned(), TraceLine::to_string);
            format!("line {} of its trace\n{}\nwas then\n{}", number + 1, say(one), say(other))
        }
    }
}
