//! `simulate(seed, program)`: one program on one host.

use core::future::Future;
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::Mutex;

use super::Sim;

/// Runs a program on a single host named `test` and returns its output: with virtual time, a scheduler that
/// follows the seed, and a network inside the host.
///
/// # Panics
/// As [`Sim::run`]; and if the program is stopped.
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
///
/// let answer = convoke::sim::simulate(1, async {
///     sleep(Duration::from_secs(3600)).await;
///     42
/// });
/// assert_eq!(answer, 42);
/// ```
#[track_caller]
pub fn simulate<P>(seed: u64, program: P) -> P::Output
where
    P: Future<Output: Send + 'static> + Send + 'static,
{
    simulate_replayed_by(&format!("simulate({seed}, …)"), seed, program)
}

/// Runs a program as [`simulate`] does; a failure names `replay` as the way to repeat it.
///
/// # Panics
/// As [`simulate`].
#[doc(hidden)]
#[track_caller]
pub fn simulate_replayed_by<P>(replay: &str, seed: u64, program: P) -> P::Output
where
    P: Future<Output: Send + 'static> + Send + 'static,
{
    let mut sim = Sim::new(seed);
    let returned = Arc::new(Mutex::new(None));
    let (mut program, slot) = (Some(program), returned.clone());
    sim.host("test").run(move || {
        let program = program.take().expect("the host starts once");
        let slot = slot.clone();
        async move {
            let value = program.await;
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        }
    });
    if let Err(failure) = sim.try_run() {
        panic!("{}", failure.replayed_by(replay.to_owned()));
    }
    let value = returned.lock().unwrap_or_else(PoisonError::into_inner).take();
    value.expect("the program was stopped and returned no value")
}
