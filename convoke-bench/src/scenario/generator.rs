//! One item of a stream that is written as a body: from the consumer to the `yield` and back.
//!
//! `unfold` is the hand-written form, a function from state to item and state. `iter` is a stream that only
//! wraps an iterator, the minimum cost of an item. `convoke_erased` is Convoke with the type of the body
//! erased.

use std::hint::black_box;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures::stream::{self, Stream, StreamExt};

use convoke::task::generator;

use super::{CONVOKE, Scenario};
use crate::own::Convoke;
use crate::peer::{OneThread, Tokio};

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new("generator", "take one item from an endless generator of numbers")
            .contestant(CONVOKE, convoke)
            .contestant("convoke_erased", convoke_erased)
            .contestant("async_stream", || on_tokio(async_stream))
            .contestant("unfold", || on_tokio(unfold))
            .contestant("iter", || on_tokio(|| stream::iter(0_u64..))),
    ]
}

fn convoke() -> impl FnMut(u64) -> Duration {
    let mut runtime = Convoke::start();
    move |ops| {
        runtime.run(|_| async move {
            let mut numbers = generator(async |y| {
                for n in 0_u64.. {
                    y.yield_value(black_box(n)).await;
                }
            });
            let start = Instant::now();
            for _ in 0..ops {
                black_box(numbers.next().await);
            }
            start.elapsed()
        })
    }
}

fn convoke_erased() -> impl FnMut(u64) -> Duration {
    let mut runtime = Convoke::start();
    move |ops| {
        runtime.run(|_| async move {
            let mut numbers = generator(async |y| {
                for n in 0_u64.. {
                    y.yield_value(black_box(n)).await;
                }
            })
            .erased();
            let start = Instant::now();
            for _ in 0..ops {
                black_box(numbers.next().await);
            }
            start.elapsed()
        })
    }
}

fn on_tokio<S: Stream<Item = u64> + 'static>(make: fn() -> S) -> impl FnMut(u64) -> Duration {
    let mut runtime = Tokio::start();
    move |ops| {
        runtime.run(|_| async move {
            let mut numbers = pin!(make());
            let start = Instant::now();
            for _ in 0..ops {
                black_box(numbers.next().await);
            }
            start.elapsed()
        })
    }
}

fn async_stream() -> impl Stream<Item = u64> {
    async_stream::stream! {
        for n in 0_u64.. {
            yield black_box(n);
        }
    }
}

fn unfold() -> impl Stream<Item = u64> {
    stream::unfold(0_u64, async |n| Some((black_box(n), n + 1)))
}
