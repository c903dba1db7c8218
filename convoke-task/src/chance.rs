//! Random numbers: from the machine, or from the source that the environment names. In a simulation that is
//! seeded, so that a program which draws its numbers here repeats a run exactly.

use core::fmt;
use core::hash::{BuildHasher, Hasher};
use std::hash::RandomState;
use std::sync::{Arc, PoisonError};

use convoke_core::env::Local;
use convoke_core::raw::Random;
use convoke_core::raw::sync::Mutex;

use crate::current;

/// The key for the source that [`random`] draws from in the environment. Simulations and test bodies set it.
pub static CHANCE: Local<Chance> = Local::inherited("chance");

/// Draws a random number from the [`CHANCE`] of the running task, or from the machine if it has none. For
/// schedules, choices among peers, identifiers; not for secrets.
///
/// ```
/// use convoke::env::chance::{CHANCE, Chance, random};
/// use convoke::env::Changes;
/// use convoke::executor::block_on_with;
/// use convoke::prelude::*;
///
/// async fn throw_a_die() -> u64 {
///     1 + random() % 6
/// }
///
/// let throw = |seed| {
///     let changes = Changes::new().local(&CHANCE, Chance::seeded(seed));
///     block_on_with(changes, throw_a_die())
/// };
/// assert_eq!(throw(7), throw(7));
/// assert!((1..=6).contains(&block_on(throw_a_die()).unwrap()));
/// ```
pub fn random() -> u64 {
    match current::env(|env| env.and_then(|env| env.local(&CHANCE).cloned())) {
        Some(chance) => (chance.0)(),
        None => from_the_machine(),
    }
}

/// Draws from the keys of the standard library's hash maps, which differ each time.
fn from_the_machine() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A source of random numbers. Clones share it.
#[derive(Clone)]
pub struct Chance(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Chance {
    /// Creates a source that calls `draw` for each number.
    pub fn new(draw: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(draw))
    }

    /// Creates a source whose numbers are a function of the seed. Clones continue the same sequence.
    pub fn seeded(seed: u64) -> Self {
        let numbers = Mutex::new(Random::new(seed));
        Self::new(move || numbers.lock().unwrap_or_else(PoisonError::into_inner).draw())
    }
}

impl fmt::Debug for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chance").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;
    use crate::block_on_with;
    use crate::schedule::Backoff;
    use convoke_core::env::Changes;
    use core::time::Duration;

    #[test]
    fn jitter_is_a_function_of_the_environments_chance() {
        let waits = |seed| {
            let schedule = Backoff::constant(Duration::from_secs(1)).jitter(1.0).up_to(4);
            let changes = Changes::new().local(&CHANCE, Chance::seeded(seed));
            block_on_with(changes, async move { schedule.waits().collect::<Vec<_>>() }).unwrap()
        };
        assert_eq!(waits(1), waits(1));
        assert_ne!(waits(1), waits(2));
    }

    #[test]
    fn the_machines_chance_is_another_each_time() {
        assert_ne!(random(), random());
    }
}
