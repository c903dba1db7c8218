//! The environment variables that select one seed, or one point of an exploration.

use core::ops::Range;

/// The variable that selects a single seed.
pub(super) const ONE_SEED: &str = "CONVOKE_SEED";
/// The variable that selects a single step or operation.
pub(super) const ONE_POINT: &str = "CONVOKE_POINT";

pub(super) fn one_seed() -> Option<u64> {
    asked(ONE_SEED)
}

/// Returns the points of an exploration to run: all `count`, or only the selected one.
pub(super) fn points(count: usize) -> Range<usize> {
    chosen(count, asked(ONE_POINT).map(|point| point as usize))
}

fn chosen(count: usize, one: Option<usize>) -> Range<usize> {
    match one {
        None => 0..count,
        Some(point) => point.min(count)..point.saturating_add(1).min(count),
    }
}

fn asked(name: &str) -> Option<u64> {
    let said = std::env::var(name).ok()?;
    Some(said.parse().unwrap_or_else(|_| panic!("{name}={said} is not a number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_point_is_run_alone_if_it_is_there() {
        assert_eq!(chosen(5, None), 0..5);
        assert_eq!(chosen(5, Some(4)), 4..5);
        assert!(chosen(5, Some(5)).is_empty());
        assert!(chosen(5, Some(usize::MAX)).is_empty());
    }
}
