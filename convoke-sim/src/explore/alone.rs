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

/// Returns the points to run: all `count`, or `one` of them, if it is there.
pub fn chosen(count: usize, one: Option<usize>) -> Range<usize> {
    match one {
        None => 0..count,
        Some(point) => point.min(count)..point.saturating_add(1).min(count),
    }
}

fn asked(name: &str) -> Option<u64> {
    let said = std::env::var(name).ok()?;
    Some(said.parse().unwrap_or_else(|_| panic!("{name}={said} is not a number")))
}
