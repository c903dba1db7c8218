//! Awaiting something that is ready at once: the cost of `await` when there is nothing to wait for.
//!
//! A future of one's own is a call (`ready`, `async_fn`), which the compiler can inline. If it is behind a
//! pointer, it is a box and an indirect call (`boxed`). A runtime's own primitives do more: a free mutex
//! (`tokio_mutex`) and an answer that arrived before it was awaited (`tokio_oneshot`), both of which also
//! take from tokio's cooperation budget.

use std::future::{Future, ready};
use std::hint::black_box;
use std::pin::Pin;
use std::time::{Duration, Instant};

use futures_lite::future::block_on;
use tokio::sync::{Mutex, oneshot};

use convoke::sender::prelude::just;

use super::{CONVOKE, Scenario};
use crate::own::Convoke;
use crate::peer::{OneThread, Tokio};

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new("await_inline", "await an operation that completes at once")
            .contestant(CONVOKE, convoke)
            .contestant("ready", std_ready)
            .contestant("async_fn", async_fn)
            .contestant("boxed", boxed)
            .contestant("tokio_mutex", tokio_mutex)
            .contestant("tokio_oneshot", tokio_oneshot),
    ]
}

fn convoke() -> impl FnMut(u64) -> Duration {
    let mut runtime = Convoke::start();
    move |ops| {
        runtime.run(|_| async move {
            let start = Instant::now();
            for op in 0..ops {
                black_box(just(black_box(op)).await);
            }
            start.elapsed()
        })
    }
}

fn std_ready() -> impl FnMut(u64) -> Duration {
    |ops| {
        block_on(async {
            let start = Instant::now();
            for op in 0..ops {
                black_box(ready(black_box(op)).await);
            }
            start.elapsed()
        })
    }
}

fn async_fn() -> impl FnMut(u64) -> Duration {
    |ops| {
        block_on(async {
            let start = Instant::now();
            for op in 0..ops {
                black_box(add_one(black_box(op)).await);
            }
            start.elapsed()
        })
    }
}

fn boxed() -> impl FnMut(u64) -> Duration {
    |ops| {
        block_on(async {
            let start = Instant::now();
            for op in 0..ops {
                let future: Pin<Box<dyn Future<Output = u64>>> = Box::pin(add_one(black_box(op)));
                black_box(black_box(future).await);
            }
            start.elapsed()
        })
    }
}

async fn add_one(number: u64) -> u64 {
    number + 1
}

fn tokio_mutex() -> impl FnMut(u64) -> Duration {
    let mut runtime = Tokio::start();
    move |ops| {
        runtime.run(|_| async move {
            let mutex = Mutex::new(0);
            let start = Instant::now();
            for op in 0..ops {
                *black_box(&mutex).lock().await = black_box(op);
            }
            start.elapsed()
        })
    }
}

fn tokio_oneshot() -> impl FnMut(u64) -> Duration {
    let mut runtime = Tokio::start();
    move |ops| {
        runtime.run(|_| async move {
            let start = Instant::now();
            for op in 0..ops {
                let (answer, answered) = oneshot::channel();
                answer.send(black_box(op)).expect("the receiver is there");
                black_box(answered.await.expect("it was sent"));
            }
            start.elapsed()
        })
    }
}
