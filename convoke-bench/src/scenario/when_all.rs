//! Joining children that are ready at once: the cost of the join itself. The futures that `join` takes, as those of the
//! peers, and senders.

use std::future::ready;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use convoke::prelude::*;
use convoke::sender::prelude::*;

use super::{CONVOKE, Scenario};
use crate::measure::time;
use crate::peer::tokio_run_loop;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new("when_all_2", "join 2 children that are ready at once and add up their values")
            .contestant(CONVOKE, || on_convoke(join_2))
            .contestant("convoke_senders", || on_convoke(when_all_2))
            .contestant("futures_join", || polled_once(futures_join_2))
            .contestant("tokio_join", || on_tokio(tokio_join_2)),
        Scenario::new("when_all_8", "join 8 children that are ready at once and add up their values")
            .contestant(CONVOKE, || on_convoke(join_8))
            .contestant("convoke_senders", || on_convoke(when_all_8))
            .contestant("futures_join", || polled_once(futures_join_8))
            .contestant("tokio_join", || on_tokio(tokio_join_8)),
    ]
}

/// The cheapest possible driver: each op is its own future, polled once with a waker that does nothing.
fn polled_once<F: Future<Output = u64>>(join: fn(u64) -> F) -> impl FnMut(u64) -> Duration {
    move |ops| {
        time(|| {
            let mut context = Context::from_waker(Waker::noop());
            for x in 0..ops {
                let joined = pin!(join(black_box(x)));
                let Poll::Ready(sum) = joined.poll(&mut context) else {
                    unreachable!("the children are ready")
                };
                black_box(sum);
            }
        })
    }
}

/// One `block_on` for all ops, so that entering the runtime costs nothing.
fn on_tokio<F: Future<Output = u64>>(join: fn(u64) -> F) -> impl FnMut(u64) -> Duration {
    let runtime = tokio_run_loop();
    move |ops| {
        runtime.block_on(async {
            let start = Instant::now();
            for x in 0..ops {
                black_box(join(black_box(x)).await);
            }
            start.elapsed()
        })
    }
}

async fn futures_join_2(x: u64) -> u64 {
    let (a, b) = futures::join!(ready(x), ready(x + 1));
    a + b
}

async fn tokio_join_2(x: u64) -> u64 {
    let (a, b) = tokio::join!(ready(x), ready(x + 1));
    a + b
}

async fn futures_join_8(x: u64) -> u64 {
    let (a, b, c, d, e, f, g, h) = futures::join!(
        ready(x),
        ready(x + 1),
        ready(x + 2),
        ready(x + 3),
        ready(x + 4),
        ready(x + 5),
        ready(x + 6),
        ready(x + 7)
    );
    a + b + c + d + e + f + g + h
}

async fn tokio_join_8(x: u64) -> u64 {
    let (a, b, c, d, e, f, g, h) = tokio::join!(
        ready(x),
        ready(x + 1),
        ready(x + 2),
        ready(x + 3),
        ready(x + 4),
        ready(x + 5),
        ready(x + 6),
        ready(x + 7)
    );
    a + b + c + d + e + f + g + h
}

/// One `block_on` for all ops, as with tokio.
fn on_convoke<F: Future<Output = u64>>(join: fn(u64) -> F) -> impl FnMut(u64) -> Duration {
    move |ops| {
        let all = async {
            let start = Instant::now();
            for x in 0..ops {
                black_box(join(black_box(x)).await);
            }
            start.elapsed()
        };
        block_on(all).unwrap()
    }
}

async fn join_2(x: u64) -> u64 {
    let (a, b) = join((ready(x), ready(x + 1))).await;
    a + b
}

async fn join_8(x: u64) -> u64 {
    let (a, b, c, d, e, f, g, h) = join((
        ready(x),
        ready(x + 1),
        ready(x + 2),
        ready(x + 3),
        ready(x + 4),
        ready(x + 5),
        ready(x + 6),
        ready(x + 7),
    ))
    .await;
    a + b + c + d + e + f + g + h
}

async fn when_all_2(x: u64) -> u64 {
    let (a, b) = when_all((just(x), just(x + 1))).await;
    a + b
}

async fn when_all_8(x: u64) -> u64 {
    let (a, b, c, d, e, f, g, h) = when_all((
        just(x),
        just(x + 1),
        just(x + 2),
        just(x + 3),
        just(x + 4),
        just(x + 5),
        just(x + 6),
        just(x + 7),
    ))
    .await;
    a + b + c + d + e + f + g + h
}
