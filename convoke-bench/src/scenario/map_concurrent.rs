//! A function over many items, sixteen at a time: taking the item, running its future, which waits once, and
//! returning the result.
//!
//! All on one thread. `buffer_unordered` polls inside one task, as Convoke does; `join_set` starts a task for
//! each item.

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt};
use tokio::task::JoinSet;

use super::{CONVOKE, Scenario};
use crate::own::Convoke;
use crate::peer::{OneThread, Tokio, tokio_run_loop};

const LIMIT: usize = 16;
/// Number of items of one stream.
const ITEMS: u64 = 1024;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new("map_concurrent", "one of 1024 items, 16 at a time, each of which waits once")
            .batch(ITEMS)
            .contestant(CONVOKE, convoke)
            .contestant("convoke_for_each", convoke_for_each)
            .contestant("buffer_unordered", buffer_unordered)
            .contestant("tokio_join_set", join_set),
    ]
}

/// A future that waits once: it wakes itself and lets others run.
struct Once(bool);

impl Future for Once {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.0 {
            return Poll::Ready(());
        }
        self.0 = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

async fn one(n: u64) -> u64 {
    Once(false).await;
    black_box(n)
}

fn convoke() -> impl FnMut(u64) -> Duration {
    let mut runtime = Convoke::start();
    move |ops| {
        runtime.run(|_| async move {
            let start = Instant::now();
            for _ in 0..ops / ITEMS {
                let mut results = convoke::task::map_concurrent(0..ITEMS, LIMIT, one);
                while let Some(n) = results.next().await {
                    black_box(n);
                }
            }
            start.elapsed()
        })
    }
}

fn convoke_for_each() -> impl FnMut(u64) -> Duration {
    let mut runtime = Convoke::start();
    move |ops| {
        runtime.run(|_| async move {
            let start = Instant::now();
            for _ in 0..ops / ITEMS {
                convoke::task::for_each_concurrent(0..ITEMS, LIMIT, async |n| {
                    black_box(one(n).await);
                })
                .await;
            }
            start.elapsed()
        })
    }
}

fn buffer_unordered() -> impl FnMut(u64) -> Duration {
    let mut runtime = Tokio::start();
    move |ops| {
        runtime.run(|_| async move {
            let start = Instant::now();
            for _ in 0..ops / ITEMS {
                let mut results = stream::iter(0..ITEMS).map(one).buffer_unordered(LIMIT);
                while let Some(n) = results.next().await {
                    black_box(n);
                }
            }
            start.elapsed()
        })
    }
}

fn join_set() -> impl FnMut(u64) -> Duration {
    let runtime = tokio_run_loop();
    move |ops| {
        runtime.block_on(async {
            let start = Instant::now();
            for _ in 0..ops / ITEMS {
                let mut running = JoinSet::new();
                for n in 0..ITEMS {
                    if running.len() == LIMIT {
                        black_box(running.join_next().await);
                    }
                    running.spawn(one(n));
                }
                while let Some(n) = running.join_next().await {
                    black_box(n.expect("it does not panic"));
                }
            }
            start.elapsed()
        })
    }
}
