//! `AdaptiveSpin`: decides whether a wait polls for some microseconds before it sleeps. Falling asleep and
//! waking up costs more than that, but polling pays off only if an event comes soon. The last waits decide.

use std::time::Duration;

use convoke_core::raw::sync::atomic::{AtomicU32, Ordering};

/// The number of short sleeps in a row after which the next wait polls. Each poll without success doubles it.
const MIN_SHORT_SLEEPS: u32 = 4;
/// The upper bound of that number, so that polling costs next to nothing where it never succeeds: on a single
/// core, for example, which the peer needs.
const MAX_SHORT_SLEEPS: u32 = 4096;

/// Statistics of the last waits. Only one thread waits at a time; a second one would merely make them less
/// accurate.
#[derive(Debug)]
pub(crate) struct AdaptiveSpin {
    longest: Duration,
    /// The number of short sleeps that are still needed.
    remaining: AtomicU32,
    /// The number that was needed the last time.
    required: AtomicU32,
}

impl AdaptiveSpin {
    /// Creates the statistics for polls of at most this duration. Zero disables polling.
    pub(crate) fn new(longest: Duration) -> Self {
        Self {
            longest,
            remaining: AtomicU32::new(MIN_SHORT_SLEEPS),
            required: AtomicU32::new(MIN_SHORT_SLEEPS),
        }
    }

    /// Returns the maximum duration of a poll.
    #[inline]
    pub(crate) fn longest(&self) -> Duration {
        self.longest
    }

    /// Returns true if the next wait polls before it sleeps.
    #[inline]
    pub(crate) fn should_spin(&self) -> bool {
        self.remaining.load(Ordering::Relaxed) == 0
    }

    /// Records a sleep of this duration.
    pub(crate) fn slept(&self, time: Duration) {
        let remaining = if time <= self.longest {
            self.remaining.load(Ordering::Relaxed).saturating_sub(1)
        } else {
            self.required.load(Ordering::Relaxed)
        };
        self.remaining.store(remaining, Ordering::Relaxed);
    }

    /// Records a poll that found an event.
    pub(crate) fn succeeded(&self) {
        self.required.store(MIN_SHORT_SLEEPS, Ordering::Relaxed);
    }

    /// Records a poll that found none.
    pub(crate) fn failed(&self) {
        let required = (self.required.load(Ordering::Relaxed) * 2).min(MAX_SHORT_SLEEPS);
        self.required.store(required, Ordering::Relaxed);
        self.remaining.store(required, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_micros(50);
    const LONG: Duration = Duration::from_micros(51);

    /// Counts the short sleeps until it polls.
    fn short_sleeps_until_spin(spin: &AdaptiveSpin) -> u32 {
        (0..)
            .find(|_| {
                spin.should_spin() || {
                    spin.slept(LONGEST);
                    false
                }
            })
            .unwrap()
    }

    #[test]
    fn a_row_of_short_sleeps_starts_polling() {
        let spin = AdaptiveSpin::new(LONGEST);
        assert_eq!(short_sleeps_until_spin(&spin), MIN_SHORT_SLEEPS);
        spin.slept(LONGEST);
        assert!(spin.should_spin(), "more short sleeps change nothing");
    }

    #[test]
    fn one_long_sleep_restarts_the_row() {
        let spin = AdaptiveSpin::new(LONGEST);
        (1..MIN_SHORT_SLEEPS).for_each(|_| spin.slept(LONGEST));
        spin.slept(LONG);
        assert_eq!(short_sleeps_until_spin(&spin), MIN_SHORT_SLEEPS);
    }

    #[test]
    fn each_failed_poll_makes_the_next_one_rarer_until_one_succeeds() {
        let spin = AdaptiveSpin::new(LONGEST);
        let mut rows = Vec::new();
        for _ in 0..12 {
            rows.push(short_sleeps_until_spin(&spin));
            spin.failed();
        }
        assert_eq!(
            rows[..4],
            [MIN_SHORT_SLEEPS, 2 * MIN_SHORT_SLEEPS, 4 * MIN_SHORT_SLEEPS, 8 * MIN_SHORT_SLEEPS]
        );
        assert_eq!(rows[11], MAX_SHORT_SLEEPS);
        assert_eq!(short_sleeps_until_spin(&spin), MAX_SHORT_SLEEPS);
        spin.succeeded();
        spin.slept(LONG);
        assert_eq!(short_sleeps_until_spin(&spin), MIN_SHORT_SLEEPS);
    }
}
