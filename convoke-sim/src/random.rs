//! The one source of chance: all that is not decided by the program is decided here, by the seed.

use core::ops::Range;
use core::time::Duration;

/// Numbers that look random and are a function of the seed: SplitMix64, which is short enough to be read.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of `0..bound`, which is not empty. That low numbers are a trifle likelier does not matter here.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// True so often: never for 0, always for 1. Draws nothing if there is nothing to decide.
    pub(crate) fn chance(&mut self, of: f64) -> bool {
        of > 0.0 && (self.next() >> 11) as f64 / ((1_u64 << 53) as f64) < of
    }

    /// A while in this range; its start, if it is empty.
    pub(crate) fn between(&mut self, range: &Range<Duration>) -> Duration {
        let span = range.end.saturating_sub(range.start).as_nanos();
        if span == 0 {
            return range.start;
        }
        let nanoseconds = u128::from(self.next()) % span;
        range.start + Duration::from_nanos(nanoseconds.try_into().unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            [random.next(), random.next(), random.next()]
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn chances_come_about_as_often_as_they_should() {
        let mut random = Random::new(1);
        let hits = (0..10_000).filter(|_| random.chance(0.25)).count();
        assert!((2_300..2_700).contains(&hits), "{hits}");
        assert!((0..100).all(|_| random.chance(1.0)));
        assert!(!(0..100).any(|_| random.chance(0.0)));
    }

    #[test]
    fn a_while_lies_in_its_range() {
        let mut random = Random::new(1);
        let range = Duration::from_millis(1)..Duration::from_millis(3);
        assert!((0..1000).map(|_| random.between(&range)).all(|while_| range.contains(&while_)));
        let point = Duration::from_millis(1);
        assert_eq!(random.between(&(point..point)), point);
    }
}
