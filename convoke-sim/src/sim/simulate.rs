//! `simulate(seed, program)`: one program on one host, and what it returns.

use core::future::Future;
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::Mutex;

use super::Sim;

/// Runs a program on a host named `test` that is alone, and returns what it returns: virtual time, a scheduler that follows the seed, a network
/// inside of the host.
///
/// # Panics
/// As [`Sim::run`]; and if the program ends by the stopped door.
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

/// The same for somebody who has a way of his own to run it again, and says which.
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
    let (mut program, room) = (Some(program), returned.clone());
    sim.host("test").run(move || {
        let program = program.take().expect("nobody starts it again");
        let room = room.clone();
        async move {
            let value = program.await;
            *room.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        }
    });
    if let Err(failure) = sim.try_run() {
        panic!("{}", failure.replayed_by(replay.to_owned()));
    }
    let value = returned.lock().unwrap_or_else(PoisonError::into_inner).take();
    value.expect("the program was stopped, and has returned nothing")
}
