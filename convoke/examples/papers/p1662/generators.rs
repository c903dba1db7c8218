//! P1662R0, *Synchronous generators*, *Asynchronous generators* and appendix A:
//! random numbers, a ticker, and a generator over a generator, each left before its
//! end.
//!
//! `co_yield` is `y.yield_value(…).await`. A consumer that may leave early says
//! `using`, as in the paper, and the generator is stopped with its clean-up. The
//! clock here is virtual.

use std::time::Duration;

use convoke::prelude::*;
use convoke::task::{Generator, generator, sync_generator};
use convoke::testing;

fn random(min: u32, max: u32, count: usize) -> impl Iterator<Item = u32> {
    sync_generator(async move |y| {
        let mut seed = 1_u32;
        for _ in 0..count {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            y.yield_value(min + seed % (max - min)).await;
        }
    })
}

fn int_ticker() -> Generator<u32, impl Future<Output = ()>> {
    generator(async |y| {
        for i in 0.. {
            y.yield_value(i).await;
            sleep(Duration::from_millis(100)).await;
        }
    })
}

fn string_ticker() -> Generator<String, impl Future<Output = ()>> {
    generator(async |y| {
        using(int_ticker(), async |mut stream| {
            while let Some(value) = stream.next().await {
                y.yield_value(value.to_string()).await;
            }
        })
        .await;
    })
}

async fn consumer() -> String {
    using(string_ticker(), async |mut stream| {
        let mut last = String::new();
        while let Some(tick) = stream.next().await {
            last = format!("tick {tick} after {:?}", testing::elapsed());
            if testing::elapsed() >= Duration::from_secs(10) {
                break;
            }
        }
        last
    })
    .await
}

pub(crate) fn run() -> String {
    let mut drawn = Vec::new();
    for i in random(0, 100, 20) {
        if i == 42 || drawn.len() == 3 {
            break;
        }
        drawn.push(i);
    }
    format!("{drawn:?}; {}", testing::run(consumer()))
}
