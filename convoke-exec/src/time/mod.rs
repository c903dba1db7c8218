//! Work that waits for a time: [`sleep()`] and [`sleep_until()`], or for one after the other: [`interval()`]; and work that
//! is asked to stop at one: [`stop_after()`] and [`stop_at()`].
//!
//! Executors that can wait, as the run loop does, bring timers of their own; for all others there is one thread in the
//! process. [`timers_of`] chooses.

pub(crate) mod alarm;
mod fallback;
mod interval;
mod lists;
mod now;
pub(crate) mod queue;
mod sleep;
mod sleeping;
mod sorting;
mod wait;
mod wheel;

pub(crate) use alarm::Alarm;
pub use interval::{Interval, MissedTicks, Tick, interval, interval_at};
pub use now::now;
pub use sleep::{Sleep, sleep, sleep_until};
pub use sleeping::Sleeping;

use convoke_core::raw::Timers;
use convoke_core::{Env, Executor};

/// The timers of work in this environment: those of its executor, or, if that has none, those of a thread named
/// `convoke-timers`, which the first call starts and which stays.
///
/// # Panics
/// If that thread cannot be started.
pub fn timers_of(env: &Env) -> &dyn Timers {
    env.executor().timers().unwrap_or_else(|| fallback::timers())
}

/// A time, or a while from the start of the work.
#[derive(Clone, Copy, Debug)]
pub enum When {
    /// At this time.
    At(std::time::Instant),
    /// This long after the start.
    After(std::time::Duration),
}

impl When {
    /// The time itself. `None` for one that is too far away to be named.
    pub fn from(self, now: std::time::Instant) -> Option<std::time::Instant> {
        match self {
            Self::At(at) => Some(at),
            Self::After(duration) => now.checked_add(duration),
        }
    }
}
