//! Work that must not run concurrently, on a pool of two threads: posted in batches, then awaited.
//!
//! tokio has no strand; users take a mutex in every task, or one task that owns the state and a channel to
//! it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use convoke::ThreadPool;
use convoke::executor::Strand;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::sync::{Mutex, oneshot};

use super::{CONVOKE, Scenario};
use crate::own::post_batches;
use crate::peer::{inside_tokio, tokio_pool};

/// Number of posts before the poster waits for all of them.
const BATCH: u64 = 1000;
const WORKERS: usize = 2;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "strand_post",
            "post a no-op to a serialised queue on a pool of 2 threads; each 1000 are awaited",
        )
        .batch(BATCH)
        .contestant(CONVOKE, convoke)
        .contestant("tokio_mutex", tokio_mutex)
        .contestant("tokio_actor", || tokio_actor(one_by_one))
        .contestant("tokio_actor_many", || tokio_actor(many_at_once)),
    ]
}

/// Operations with their own storage; the last of a batch starts the poster again, on the pool.
fn convoke() -> impl FnMut(u64) -> Duration {
    let pool = ThreadPool::new(WORKERS).expect("a pool starts");
    let mut post = post_batches(pool.executor(), Strand::new(pool.executor()), BATCH);
    move |ops| {
        // Moved in, so that the pool lives as long as the contestant.
        let _pool = &pool;
        post(ops)
    }
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
    /// Asks for an answer when all earlier messages have been processed.
    Reached(oneshot::Sender<u64>),
}

/// The actor's state: the work only counts.
#[derive(Default)]
struct Actor {
    done: u64,
}

impl Actor {
    fn handle(&mut self, message: Message) {
        match message {
            Message::Work => self.done += 1,
            // The poster waits for the answer, so the receiver exists.
            Message::Reached(answer) => drop(answer.send(self.done)),
        }
    }
}

/// The usual loop.
async fn one_by_one(mut receiver: UnboundedReceiver<Message>) {
    let mut actor = Actor::default();
    while let Some(message) = receiver.recv().await {
        actor.handle(message);
    }
}

/// An optimised loop with fewer calls to the channel.
async fn many_at_once(mut receiver: UnboundedReceiver<Message>) {
    const MANY: usize = 256;
    let (mut actor, mut messages) = (Actor::default(), Vec::with_capacity(MANY));
    while receiver.recv_many(&mut messages, MANY).await > 0 {
        for message in messages.drain(..) {
            actor.handle(message);
        }
    }
}

fn tokio_actor<F>(actor: fn(UnboundedReceiver<Message>) -> F) -> impl FnMut(u64) -> Duration
where
    F: Future<Output = ()> + Send + 'static,
{
    let runtime = tokio_pool(WORKERS);
    let (sender, receiver) = mpsc::unbounded_channel();
    runtime.spawn(actor(receiver));
    move |ops| {
        let sender = sender.clone();
        inside_tokio(&runtime, async move {
            let start = Instant::now();
            for _ in 0..ops / BATCH {
                for _ in 0..BATCH {
                    sender.send(Message::Work).expect("the actor lives as long as its channel");
                }
                let (answer, reached) = oneshot::channel();
                sender.send(Message::Reached(answer)).expect("the actor lives as long as its channel");
                reached.await.expect("the actor answers");
            }
            start.elapsed()
        })
    }
}
