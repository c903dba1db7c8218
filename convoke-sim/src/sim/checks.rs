//! Invariants of a run and checks of its end. The test declares them; the loop calls them.

use core::panic::Location;

use convoke_core::Panic;

use super::{Sim, Verdict};

/// A condition that must hold.
pub(super) struct Check {
    declared_at: &'static Location<'static>,
    holds: Box<dyn FnMut() -> Result<(), String>>,
}

impl Check {
    fn new<V: Verdict>(
        declared_at: &'static Location<'static>,
        mut check: impl FnMut() -> V + 'static,
    ) -> Self {
        Self { declared_at, holds: Box::new(move || check().verdict()) }
    }

    fn check(&mut self, what: &str) -> Result<(), String> {
        let found = Panic::catch(|| (self.holds)());
        found
            .unwrap_or_else(|panic| Err(panic.message().to_owned()))
            .map_err(|why| format!("{what} (declared at {}): {why}", self.declared_at))
    }
}

impl Sim {
    /// Declares an invariant. It is checked before each step of the run, and fails by returning an error or
    /// by a panic. The run then fails at once, with the seed, the state of all tasks, and the last trace
    /// lines.
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
    ///     sim.always(move || {
    ///         seen.read_synced(|numbers| assert!(numbers.is_sorted(), "{numbers:?}"));
    ///     });
    ///     sim.finally(move || disk.read_synced(|numbers| assert_eq!(numbers.len(), 3)));
    /// });
    /// ```
    #[track_caller]
    pub fn always<V: Verdict>(&mut self, check: impl FnMut() -> V + 'static) {
        self.invariants.push(Check::new(Location::caller(), check));
    }

    /// Declares a condition that must hold when all programs have ended. It is checked before the tasks of
    /// [crashed](Sim::crash) hosts are dropped.
    #[track_caller]
    pub fn finally<V: Verdict>(&mut self, check: impl FnMut() -> V + 'static) {
        self.last_checks.push(Check::new(Location::caller(), check));
    }

    pub(super) fn check_invariants(&mut self) -> Result<(), String> {
        self.invariants.iter_mut().try_for_each(|check| check.check("an invariant does not hold"))
    }

    pub(super) fn run_last_checks(&mut self) -> Result<(), String> {
        self.last_checks.iter_mut().try_for_each(|check| check.check("a final check failed"))
    }
}
