//! A computation of five stages that never leaves the thread: what is left of the abstraction once it is compiled.

use std::hint::black_box;
use std::time::Duration;

use super::Scenario;
use crate::measure::time;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "inline_graph",
            "x, x + 1, x * 2, on with a function of that result, x ^ seed: five stages run in place",
        )
        .contestant("hand_written", hand_written),
    ]
}

// The stages that every contestant composes.

fn increment(x: u64) -> u64 {
    x.wrapping_add(1)
}

fn double(x: u64) -> u64 {
    x.wrapping_mul(2)
}

/// What follows depends on the result so far.
fn continue_with(x: u64) -> u64 {
    x.rotate_left(7)
}

fn mix(x: u64, seed: u64) -> u64 {
    x ^ seed
}

/// The seed, which the compiler must not know.
fn seed() -> u64 {
    black_box(0x9e37_79b9_7f4a_7c15)
}

fn hand_written() -> impl FnMut(u64) -> Duration {
    let seed = seed();
    move |ops| {
        time(|| {
            for x in 0..ops {
                black_box(mix(continue_with(double(increment(black_box(x)))), seed));
            }
        })
    }
}
