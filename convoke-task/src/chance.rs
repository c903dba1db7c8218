//! Chance: the machine's, or that which the environment names. In a simulation it is the seed's, so that a program which draws
//! its numbers here does the same when it is run again.

use core::fmt;
use core::hash::{BuildHasher, Hasher};
use std::hash::RandomState;
use std::sync::{Arc, PoisonError};

use convoke_core::env::Local;
use convoke_core::raw::Random;
use convoke_core::raw::sync::Mutex;

use crate::current;

/// Where [`random`] takes its numbers from, below whoever has said so. Simulations and test bodies say so.
pub static CHANCE: Local<Chance> = Local::inherited("chance");

/// A number by chance: by the [`CHANCE`] of the running task, and without one by the machine's. For schedules, choices among
/// peers, identifiers; not for secrets.
///
/// ```
/// use convoke::env::chance::{CHANCE, Chance, random};
/// use convoke::env::Changes;
/// use convoke::prelude::*;
/// use convoke::sender::prelude::*;
///
/// async fn throw_a_die() -> u64 {
///     1 + random() % 6
/// }
///
/// let throw = |seed| sync_wait_with(Changes::new().local(&CHANCE, Chance::seeded(seed)), task(throw_a_die()));
/// assert_eq!(throw(7), throw(7));
/// assert!((1..=6).contains(&block_on(throw_a_die()).unwrap()));
/// ```
pub fn random() -> u64 {
    match current::env(|env| env.and_then(|env| env.local(&CHANCE).cloned())) {
        Some(chance) => (chance.0)(),
        None => by_the_machine(),
    }
}

/// The standard library's keys are random, and other ones each time.
fn by_the_machine() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A source of numbers.
#[derive(Clone)]
pub struct Chance(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Chance {
    /// One that is asked for each number.
    pub fn new(draw: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(draw))
    }

    /// One whose numbers are a function of the seed. Clones go on with the same sequence.
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
