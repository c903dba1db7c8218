//! Pseudo-random numbers from a seed. In the lowest layer because jitter, simulations and randomised tests
//! use it: a failed run is repeated from its seed.

use core::ops::Range;
use core::time::Duration;

/// A pseudo-random number generator that is a function of its seed: SplitMix64, which is short, and for which
/// every seed is a good one. Not for secrets.
///
/// ```
/// use convoke::raw::Random;
///
/// let mut random = Random::new(7);
/// let drawn = [random.below(6), random.below(6), random.below(6)];
/// let mut again = Random::new(7);
/// assert_eq!(drawn, [again.below(6), again.below(6), again.below(6)]);
/// ```
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator from a seed. Neighbouring seeds give unrelated sequences.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number, uniform over all of `u64`.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number in `0..bound`. Low numbers are slightly more likely (by the remainder).
    ///
    /// # Panics
    /// If `bound` is 0.
    #[track_caller]
    pub fn below(&mut self, bound: usize) -> usize {
        (self.draw() % bound as u64) as usize
    }

    /// Returns true with probability 1 / `times`.
    ///
    /// # Panics
    /// If `times` is 0.
    #[track_caller]
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Returns a number from 0 to 1, excluding 1.
    pub fn share(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns true with probability `of`: never for 0, always for 1. Draws no number for 0.
    pub fn chance(&mut self, of: f64) -> bool {
        of > 0.0 && self.share() < of
    }

    /// Returns a duration in `range`, or its start if it is empty.
    pub fn between(&mut self, range: &Range<Duration>) -> Duration {
        let span = range.end.saturating_sub(range.start).as_nanos();
        if span == 0 {
            return range.start;
        }
        let nanoseconds = u128::from(self.draw()) % span;
        range.start + Duration::from_nanos(nanoseconds.try_into().unwrap_or(u64::MAX))
    }

    /// Returns a generator of its own, whose numbers do not depend on later draws from this one.
    #[must_use = "the generator that is split off is the result"]
    pub fn split(&mut self) -> Self {
        Self(self.draw())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            [random.draw(), random.draw(), random.draw()]
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn chances_hit_about_as_often_as_they_should() {
        let mut random = Random::new(1);
        let (tries, expected) = if cfg!(miri) { (200, 30..70) } else { (10_000, 2_300..2_700) };
        let hits = (0..tries).filter(|_| random.chance(0.25)).count();
        assert!(expected.contains(&hits), "{hits}");
        assert!((0..100).all(|_| random.chance(1.0)));
        assert!(!(0..100).any(|_| random.chance(0.0)));
    }

    #[test]
    fn a_duration_lies_in_its_range() {
        let mut random = Random::new(1);
        let range = Duration::from_millis(1)..Duration::from_millis(3);
        assert!(
            (0..if cfg!(miri) { 50 } else { 1000 })
                .map(|_| random.between(&range))
                .all(|duration| range.contains(&duration))
        );
        let point = Duration::from_millis(1);
        assert_eq!(random.between(&(point..point)), point);
    }

    #[test]
    fn a_generator_that_was_split_off_is_independent() {
        let (mut one, mut same) = (Random::new(7), Random::new(7));
        let (mut other, mut idle) = (one.split(), same.split());
        _ = (other.draw(), other.draw());
        assert_eq!(one.draw(), same.draw(), "does not depend on the draws of the other");
        assert_ne!(idle.draw(), one.draw());
    }
}
