//! `Backoff`: the pauses between attempts, and their number.

use core::iter::FusedIterator;
use core::time::Duration;

use convoke_core::raw::Random;

use crate::chance::random;

/// Schedule of the pauses between attempts. It is a plain value: it can be a constant, or come from a
/// configuration, and be used any number of times.
///
/// ```
/// use std::time::Duration;
/// use convoke::retry::Backoff;
///
/// const POLITE: Backoff = Backoff::exponential(Duration::from_millis(100))
///     .at_most(Duration::from_secs(1))
///     .up_to(5);
///
/// let waits: Vec<u128> = POLITE.waits().map(|wait| wait.as_millis()).collect();
/// assert_eq!(waits, [100, 200, 400, 800, 1000]);
///
/// // With jitter, many clients do not come back at the same time.
/// assert!(POLITE.jitter(0.5).waits().all(|wait| wait >= Duration::from_millis(50)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    first: Duration,
    factor: f64,
    longest: Duration,
    jitter: f64,
    times: Option<u32>,
    in_all: Duration,
    seed: Option<u64>,
}

impl Backoff {
    /// Creates a schedule with the same pause every time, without end.
    pub const fn constant(wait: Duration) -> Self {
        Self {
            first: wait,
            factor: 1.0,
            longest: Duration::MAX,
            jitter: 0.0,
            times: None,
            in_all: Duration::MAX,
            seed: None,
        }
    }

    /// Creates a schedule that starts with this pause and doubles it each time, without end.
    pub const fn exponential(first: Duration) -> Self {
        Self { factor: 2.0, ..Self::constant(first) }
    }

    /// Multiplies the pause by `factor` each time.
    ///
    /// # Panics
    /// If the factor is negative, infinite or not a number.
    #[track_caller]
    pub const fn factor(self, factor: f64) -> Self {
        assert!(
            factor.is_finite() && factor >= 0.0,
            "the factor of a schedule must be finite, and not negative"
        );
        Self { factor, ..self }
    }

    /// Limits each pause to this length.
    pub const fn at_most(self, longest: Duration) -> Self {
        Self { longest, ..self }
    }

    /// Shortens each pause by a random amount of up to this share of it: with `0.0` by nothing, with `1.0`
    /// down to any length. The random numbers come from [`chance`](crate::chance), which a simulation seeds.
    ///
    /// # Panics
    /// If the share is not in `0.0..=1.0`.
    #[track_caller]
    pub const fn jitter(self, share: f64) -> Self {
        assert!(share >= 0.0 && share <= 1.0, "the jitter of a schedule must be in 0.0..=1.0");
        Self { jitter: share, ..self }
    }

    /// Limits the number of pauses. There is one attempt more than that. Without this the schedule has no end.
    pub const fn up_to(self, times: u32) -> Self {
        Self { times: Some(times), ..self }
    }

    /// Ends the schedule before the sum of the pauses exceeds this. The time of the attempts does not count:
    /// to limit that as well, put a [`timeout`](crate::timeout()) around it.
    pub const fn in_all(self, longest: Duration) -> Self {
        Self { in_all: longest, ..self }
    }

    /// Seeds the random numbers of the jitter, so that the pauses are the same every time.
    pub const fn seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Returns an iterator over the pauses.
    pub fn waits(&self) -> Waits {
        let random = Random::new(if self.jitter > 0.0 { self.seed.unwrap_or_else(random) } else { 0 });
        Waits { schedule: *self, next: self.first, left: self.times, waited: Duration::ZERO, random }
    }
}

impl IntoIterator for Backoff {
    type Item = Duration;
    type IntoIter = Waits;

    fn into_iter(self) -> Waits {
        self.waits()
    }
}

/// Iterator over the pauses of a [`Backoff`].
#[derive(Clone, Debug)]
pub struct Waits {
    schedule: Backoff,
    /// The next pause, without jitter.
    next: Duration,
    left: Option<u32>,
    waited: Duration,
    random: Random,
}

impl Iterator for Waits {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(1)?;
        }
        let full = self.next.min(self.schedule.longest);
        self.next = scale(full, self.schedule.factor);
        let wait = if self.schedule.jitter > 0.0 {
            scale(full, 1.0 - self.schedule.jitter * self.random.share())
        } else {
            full
        };
        self.waited = self.waited.saturating_add(wait);
        if self.waited > self.schedule.in_all {
            self.left = Some(0);
            return None;
        }
        Some(wait)
    }
}

impl FusedIterator for Waits {}

/// Returns the product, or `Duration::MAX` if it is too large.
fn scale(duration: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(duration.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_wait_that_would_be_too_long_to_be_named_is_the_longest_there_is() {
        let waits: Vec<_> = Backoff::exponential(Duration::MAX / 2).up_to(4).waits().collect();
        assert_eq!(waits[2..], [Duration::MAX; 2]);
    }

    #[test]
    fn the_random_part_stays_within_its_share_and_comes_from_the_seed() {
        let schedule = Backoff::constant(SECOND).jitter(0.25).up_to(200).seed(7);
        let waits: Vec<_> = schedule.waits().collect();
        assert!(waits.iter().all(|wait| (SECOND * 3 / 4..=SECOND).contains(wait)));
        assert!(
            waits.iter().any(|wait| *wait < SECOND * 4 / 5)
                && waits.iter().any(|wait| *wait > SECOND * 19 / 20)
        );
        assert_eq!(waits, schedule.waits().collect::<Vec<_>>());
        assert_ne!(waits, schedule.seed(8).waits().collect::<Vec<_>>());
    }

    #[test]
    fn without_a_seed_no_two_are_alike() {
        let schedule = Backoff::constant(SECOND).jitter(1.0).up_to(8);
        assert_ne!(schedule.waits().collect::<Vec<_>>(), schedule.waits().collect::<Vec<_>>());
    }

    #[test]
    fn all_waits_together_stay_within_what_is_allowed_in_all() {
        let mut waits = Backoff::exponential(SECOND).in_all(SECOND * 10).waits();
        assert_eq!(waits.by_ref().collect::<Vec<_>>(), [SECOND, SECOND * 2, SECOND * 4]);
        assert_eq!(waits.next(), None, "the end stays the end");
    }
}
