//! Work that must not run at the same time as its neighbours, on a pool of two threads: posted in batches, then awaited.
//!
//! tokio has no strand; people use a mutex in every task, or one task that owns the state and a channel to it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, mpsc, oneshot};

use super::Scenario;
use crate::peer::{inside_tokio, tokio_pool};

/// Posts before the poster waits for all of them.
const BATCH: u64 = 1000;
const WORKERS: usize = 2;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "strand_post",
            "post a no-op to a serialised queue on a pool of 2 threads; each 1000 are awaited",
        )
        .batch(BATCH)
        .contestant("tokio_mutex", tokio_mutex)
        .contestant("tokio_actor", tokio_actor),
    ]
}

fn tokio_mutex() -> impl FnMut(u64) -> Duration {
    let runtime = tokio_pool(WORKERS);
    let state = Arc::new(Mutex::new(0_u64));
    move |ops| {
        let state = Arc::clone(&state);
        inside_tokio(&runtime, async move {
            let start = Instant::now();
            for _ in 0..ops / BATCH {
                let post = |_| {
                    let state = Arc::clone(&state);
                    tokio::spawn(async move { *state.lock().await += 1 })
                };
                let posted: Vec<_> = (0..BATCH).map(post).collect();
                for task in posted {
                    task.await.expect("the contestant does not panic");
                }
            }
            start.elapsed()
        })
    }
}

enum Message {
    Work,
    /// Everything before this has been done.
    Reached(oneshot::Sender<u64>),
}

fn tokio_actor() -> impl FnMut(u64) -> Duration {
    let runtime = tokio_pool(WORKERS);
    let (sender, mut receiver) = mpsc::unbounded_channel();
    runtime.spawn(async move {
        let mut state = 0_u64;
        while let Some(message) = receiver.recv().await {
            match message {
                Message::Work => state += 1,
                // The poster waits for the answer, so it is still there.
                Message::Reached(answer) => drop(answer.send(state)),
            }
        }
    });
    move |ops| {
        let sender = sender.clone();
        inside_tokio(&runtime, async move {
            let start = Instant::now();
            for _ in 0..ops / BATCH {
                for _ in 0..BATCH {
                    sender.send(Message::Work).ok().expect("the actor lives as long as its channel");
                }
                let (answer, reached) = oneshot::channel();
                sender.send(Message::Reached(answer)).ok().expect("the actor lives as long as its channel");
                reached.await.expect("the actor answers");
            }
            start.elapsed()
        })
    }
}
