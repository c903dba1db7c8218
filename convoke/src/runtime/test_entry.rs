//! `Test`: a test that awaits. `#[convoke::test]` calls it. Where it runs is a type parameter, since each place
//! has other requirements for the body.

use core::fmt;
use core::future::Future;

use convoke_core::Outcome;

use super::io_context;

/// Runs the body of a test: `#[convoke::test]` without the attribute.
///
/// ```
/// use convoke::net::{TcpListener, TcpStream};
/// use convoke::prelude::*;
/// use convoke::runtime::Test;
///
/// Test::new("somebody answers").run(async || {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let client = TcpStream::connect(listener.local_addr()?);
///     try_join((client, listener.accept())).await.map(drop)
/// })
/// .unwrap();
/// ```
#[must_use = "nothing is run before `run`"]
pub struct Test<P = OnAContext> {
    name: &'static str,
    place: P,
}

/// The place of a test on an I/O context of its own, in real time.
#[derive(Debug)]
pub struct OnAContext;

/// The place of a test in virtual time, without I/O.
#[cfg(feature = "testing")]
#[derive(Debug)]
pub struct InVirtualTime;

/// The place of a test on a simulated host. It runs once for each seed.
#[cfg(feature = "sim")]
#[derive(Debug)]
pub struct Simulated {
    seeds: core::ops::Range<u64>,
}

impl Test {
    /// Creates a test with this name, on an I/O context of its own.
    pub fn new(name: &'static str) -> Self {
        Self { name, place: OnAContext }
    }

    /// Runs the test in virtual time: time jumps to the next timer when everything is idle. There is no real I/O.
    #[cfg(feature = "testing")]
    pub fn virtual_time(self) -> Test<InVirtualTime> {
        Test { name: self.name, place: InVirtualTime }
    }

    /// Runs the test on the host `test` of a simulated network, in virtual time. The seed is the value of the
    /// variable `CONVOKE_SEED`, or 0.
    ///
    /// # Panics
    /// If the value of the variable is not a number.
    #[cfg(feature = "sim")]
    pub fn sim(self) -> Test<Simulated> {
        self.seed(one_seed().unwrap_or(0))
    }

    /// Runs the test in a simulated network with this seed: see [`sim`](Test::sim).
    #[cfg(feature = "sim")]
    pub fn seed(self, seed: u64) -> Test<Simulated> {
        Test { name: self.name, place: Simulated { seeds: seed..seed + 1 } }
    }

    /// Runs the test in a simulated network, once for each seed below this; or only for the seed in the variable
    /// `CONVOKE_SEED`, if that is set.
    ///
    /// # Panics
    /// If the value of the variable is not a number.
    #[cfg(feature = "sim")]
    pub fn seeds(self, seeds: u64) -> Test<Simulated> {
        let seeds = one_seed().map_or(0..seeds, |seed| seed..seed + 1);
        Test { name: self.name, place: Simulated { seeds } }
    }

    /// Runs the body, and returns its output.
    ///
    /// # Panics
    /// If the body panics, if it ends as stopped, or if the system has no descriptors for a context.
    pub fn run<F: Future>(self, body: impl FnOnce() -> F) -> F::Output {
        let context = io_context().unwrap_or_else(|error| panic!("no I/O context could be created: {error}"));
        match context.block_on(body()) {
            Outcome::Value(value) => value,
            Outcome::Stopped => {
                panic!("`{}` ended as stopped, and so has nothing to return", self.name)
            }
            Outcome::Error(never) => never.absurd(),
            Outcome::Panicked(panic) => panic.resume(),
        }
    }
}

#[cfg(feature = "testing")]
impl Test<InVirtualTime> {
    /// Runs the body, and returns its output.
    ///
    /// # Panics
    /// As [`testing::run`](convoke_testing::run()).
    pub fn run<F: Future + 'static>(self, body: impl FnOnce() -> F) -> F::Output {
        convoke_testing::Play::new().name(self.name).run(body())
    }
}

#[cfg(feature = "sim")]
impl Test<Simulated> {
    /// Sets the seed. For attributes that name `sim` and a seed.
    pub fn seed(self, seed: u64) -> Self {
        Test::new(self.name).seed(seed)
    }

    /// Runs once for each seed below this. For attributes that name `sim` and `seeds`.
    pub fn seeds(self, seeds: u64) -> Self {
        Test::new(self.name).seeds(seeds)
    }

    /// Runs the body once for each seed, until one fails. Returns the last output.
    ///
    /// # Panics
    /// As [`simulate`](convoke_sim::simulate), which names the seed; and if there is no seed to run with.
    pub fn run<F>(self, mut body: impl FnMut() -> F) -> F::Output
    where
        F: Future<Output: TestOutput + Send + 'static> + Send + 'static,
    {
        let mut last = None;
        for seed in self.place.seeds {
            let replay = format!("CONVOKE_SEED={seed}` or `seed = {seed}");
            let output = convoke_sim::simulate_replayed_by(&replay, seed, body());
            if output.is_failure() {
                eprintln!("`{}` failed with seed {seed}: `{replay}` runs that alone", self.name);
                return output;
            }
            last = Some(output);
        }
        last.unwrap_or_else(|| panic!("`{}` has no seed to run with", self.name))
    }
}

/// Returns the seed in the variable `CONVOKE_SEED`, if it is set.
#[cfg(feature = "sim")]
fn one_seed() -> Option<u64> {
    let seed = std::env::var("CONVOKE_SEED").ok()?;
    Some(seed.parse().unwrap_or_else(|_| panic!("CONVOKE_SEED must be a number, but is `{seed}`")))
}

/// The output of a test: `()` or a `Result`.
#[diagnostic::on_unimplemented(
    message = "a test cannot return `{Self}`",
    note = "a test returns nothing, or a `Result`"
)]
pub trait TestOutput {
    /// Returns true if the test has failed.
    fn is_failure(&self) -> bool;
}

impl TestOutput for () {
    fn is_failure(&self) -> bool {
        false
    }
}

impl<T, E> TestOutput for Result<T, E> {
    fn is_failure(&self) -> bool {
        self.is_err()
    }
}

impl<P: fmt::Debug> fmt::Debug for Test<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Test").field("name", &self.name).field("place", &self.place).finish()
    }
}
