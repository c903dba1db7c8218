//! A computation of five stages that never leaves the thread: what is left of the abstraction once it is compiled.

use std::hint::black_box;
use std::mem::ManuallyDrop;
use std::time::Duration;

use convoke::prelude::*;
use convoke::raw::Slot;
use convoke::{Env, Receiver};

use super::{CONVOKE, Scenario};
use crate::measure::time;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "inline_graph",
            "x, x + 1, x * 2, on with a function of that result, x ^ seed: five stages run in place",
        )
        .contestant(CONVOKE, convoke)
        .contestant("convoke_graph", convoke_graph)
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

/// The same stages as senders: `just`, `then`, `then`, `let_value`, `then`, under `sync_wait`.
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

/// The graph alone: connected to a receiver that keeps the value, and started. What `sync_wait` adds is the rest.
fn convoke_graph() -> impl FnMut(u64) -> Duration {
    let seed = seed();
    let env = Env::new();
    move |ops| {
        time(|| {
            for x in 0..ops {
                let mut value = 0;
                let graph = just(black_box(x))
                    .then(increment)
                    .then(double)
                    .let_value(|x| just(continue_with(x)))
                    .then(move |x| mix(x, seed));
                let operation = ManuallyDrop::new(Slot::new());
                let receiver = Keep { env: &env, value: &mut value };
                // SAFETY: the slot stays on this stack, and an inline graph has completed when `run` returns.
                unsafe {
                    operation.run(|| graph.connect(receiver));
                    operation.clear();
                }
                black_box(value);
            }
        })
    }
}

/// Keeps the value.
struct Keep<'a> {
    env: &'a Env,
    value: &'a mut u64,
}

impl Receiver<u64, Never> for Keep<'_> {
    fn complete(self, outcome: Outcome<u64>) {
        *self.value = outcome.unwrap();
    }

    fn env(&self) -> &Env {
        self.env
    }
}
