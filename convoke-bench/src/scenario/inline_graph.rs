//! A computation of five stages that never leaves the thread: what remains of the abstraction after
//! compilation.

use std::hint::black_box;
use std::time::Duration;

use convoke::sender::prelude::*;

use super::{CONVOKE, Scenario};
use crate::measure::time;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "inline_graph",
            "x, x + 1, x * 2, on with a function of that result, x ^ seed: five stages run in place",
        )
        .contestant(CONVOKE, convoke)
        .contestant("convoke_wait_only", wait_only)
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

/// A stage that depends on the result so far.
fn continue_with(x: u64) -> u64 {
    x.rotate_left(7)
}

fn mix(x: u64, seed: u64) -> u64 {
    x ^ seed
}

/// Returns the seed, which the compiler must not know.
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

/// The stages as senders: `just`, `then`, `then`, `let_value`, `then`, under `sync_wait`.
fn convoke() -> impl FnMut(u64) -> Duration {
    let seed = seed();
    move |ops| {
        time(|| {
            for x in 0..ops {
                let graph = just(black_box(x))
                    .then(increment)
                    .then(double)
                    .let_value(|x| just(continue_with(x)))
                    .then(move |x| mix(x, seed));
                black_box(sync_wait(graph).unwrap());
            }
        })
    }
}

/// The cost of `sync_wait` alone, around the hand-written function. The difference to `convoke` is the graph.
fn wait_only() -> impl FnMut(u64) -> Duration {
    let seed = seed();
    move |ops| {
        time(|| {
            for x in 0..ops {
                let value = mix(continue_with(double(increment(black_box(x)))), seed);
                black_box(sync_wait(just(value)).unwrap());
            }
        })
    }
}
