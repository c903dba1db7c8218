//! Whether a wait looks for a while before it sleeps. To fall asleep and to be woken costs both sides more than some tens of
//! microseconds of looking; but looking pays only where something comes that soon, so the waits before decide.

use std::time::Duration;

use convoke_core::raw::sync::atomic::{AtomicU32, Ordering};

/// So many short sleeps in a row are enough to look before the next, after a look that was not in vain; each that was in
/// vain doubles it.
const ENOUGH: u32 = 4;
/// Up to this, so that looking where it never pays costs next to nothing: on a single core, for example, where whoever is
/// waited for needs it.
const AT_THE_MOST: u32 = 4096;

/// What the last waits say about the next. One thread waits at a time; what another makes of it is merely less good.
#[derive(Debug)]
pub(crate) struct AdaptiveSpin {
    longest: Duration,
    /// How many more sleeps have to be short.
    missing: AtomicU32,
    /// How many had to be, the last time.
    enough: AtomicU32,
}

impl AdaptiveSpin {
    /// Looks for so long at the most; not at all, if that is zero.
    pub(crate) fn new(longest: Duration) -> Self {
        Self { longest, missing: AtomicU32::new(ENOUGH), enough: AtomicU32::new(ENOUGH) }
    }

    /// For how long it looks at the most.
    #[inline]
    pub(crate) fn longest(&self) -> Duration {
        self.longest
    }

    /// Whether the next wait looks before it sleeps.
    #[inline]
    pub(crate) fn is_alert(&self) -> bool {
        self.missing.load(Ordering::Relaxed) == 0
    }

    /// It has slept for so long.
    pub(crate) fn slept(&self, time: Duration) {
        let missing = if time <= self.longest {
            self.missing.load(Ordering::Relaxed).saturating_sub(1)
        } else {
            self.enough.load(Ordering::Relaxed)
        };
        self.missing.store(missing, Ordering::Relaxed);
    }

    /// It has looked for a while, and something came.
    pub(crate) fn found(&self) {
        self.enough.store(ENOUGH, Ordering::Relaxed);
    }

    /// It has looked in vain.
    pub(crate) fn missed(&self) {
        let enough = (self.enough.load(Ordering::Relaxed) * 2).min(AT_THE_MOST);
        self.enough.store(enough, Ordering::Relaxed);
        self.missing.store(enough, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_micros(50);
    const LONG: Duration = Duration::from_micros(51);

    /// How many short sleeps it takes until it looks.
    fn short_sleeps_until_alert(alertness: &AdaptiveSpin) -> u32 {
        (0..)
            .find(|_| {
                alertness.is_alert() || {
                    alertness.slept(LONGEST);
                    false
                }
            })
            .unwrap()
    }

    #[test]
    fn a_row_of_short_sleeps_makes_it_look() {
        let alertness = AdaptiveSpin::new(LONGEST);
        assert_eq!(short_sleeps_until_alert(&alertness), ENOUGH);
        alertness.slept(LONGEST);
        assert!(alertness.is_alert(), "more of them change nothing");
    }

    #[test]
    fn one_long_sleep_begins_the_row_anew() {
        let alertness = AdaptiveSpin::new(LONGEST);
        (1..ENOUGH).for_each(|_| alertness.slept(LONGEST));
        alertness.slept(LONG);
        assert_eq!(short_sleeps_until_alert(&alertness), ENOUGH);
    }

    #[test]
    fn each_look_in_vain_makes_the_next_one_rarer_until_one_has_found_something() {
        let alertness = AdaptiveSpin::new(LONGEST);
        let mut rows = Vec::new();
        for _ in 0..12 {
            rows.push(short_sleeps_until_alert(&alertness));
            alertness.missed();
        }
        assert_eq!(rows[..4], [ENOUGH, 2 * ENOUGH, 4 * ENOUGH, 8 * ENOUGH]);
        assert_eq!(rows[11], AT_THE_MOST);
        assert_eq!(short_sleeps_until_alert(&alertness), AT_THE_MOST);
        alertness.found();
        alertness.slept(LONG);
        assert_eq!(short_sleeps_until_alert(&alertness), ENOUGH);
    }
}
