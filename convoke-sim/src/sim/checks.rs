//! What must be true of a run: always, or when it is over. Said by the test; looked at by the loop.

use core::panic::Location;

use convoke_core::Panic;

use super::{Sim, Verdict};

/// Something that must be true.
pub(super) struct Check {
    said_at: &'static Location<'static>,
    holds: Box<dyn FnMut() -> Result<(), String>>,
}

impl Check {
    fn new<V: Verdict>(said_at: &'static Location<'static>, mut check: impl FnMut() -> V + 'static) -> Self {
        Self { said_at, holds: Box::new(move || check().verdict()) }
    }

    fn look(&mut self, what: &str) -> Result<(), String> {
        let found = Panic::catch(|| (self.holds)());
        found
            .unwrap_or_else(|panic| Err(panic.message().to_owned()))
            .map_err(|why| format!("{what} (said at {}): {why}", self.said_at))
    }
}

impl Sim {
    /// Something that must be true all the time: it is looked at before each step of the run. A check says no by an error, or by
    /// a panic. The run fails then and there, with the seed, the tasks as they are at that moment, and what has happened last.
    ///
    /// ```
    /// use convoke::sim::{Sim, explore_seeds};
    ///
    /// explore_seeds(0..10, |sim| {
    ///     let disk = sim.disk("writer", Vec::new());
    ///     sim.host("writer").run_with(disk.clone(), async |disk| {
    ///         for number in 0..3 {
    ///             disk.write(|numbers| numbers.push(number));
    ///             disk.sync().await?;
    ///         }
    ///         std::io::Result::Ok(())
    ///     });
    ///     let seen = disk.clone();
    ///     sim.always(move || seen.read_synced(|numbers| assert!(numbers.is_sorted(), "{numbers:?}")));
    ///     sim.finally(move || disk.read_synced(|numbers| assert_eq!(numbers.len(), 3)));
    /// });
    /// ```
    #[track_caller]
    pub fn always<V: Verdict>(&mut self, check: impl FnMut() -> V + 'static) {
        self.invariants.push(Check::new(Location::caller(), check));
    }

    /// Something that must be true when all programs have ended. It is looked at before anything of those that have
    /// [crashed](Sim::crash) is destroyed.
    #[track_caller]
    pub fn finally<V: Verdict>(&mut self, check: impl FnMut() -> V + 'static) {
        self.last_checks.push(Check::new(Location::caller(), check));
    }

    pub(super) fn check_invariants(&mut self) -> Result<(), String> {
        self.invariants.iter_mut().try_for_each(|check| check.look("an invariant does not hold"))
    }

    pub(super) fn look_for_the_last_time(&mut self) -> Result<(), String> {
        self.last_checks.iter_mut().try_for_each(|check| check.look("it has ended, but not well"))
    }
}
