//! A chain shares its thread with the tokio tasks beside it: a poll runs a bounded number of pieces of work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke::prelude::*;
use convoke_tokio::{PIECES_PER_POLL, Workers, join, run};

/// Counts its polls, beside the chain.
fn beside() -> (Arc<AtomicUsize>, tokio::task::JoinHandle<()>) {
    let polls = Arc::new(AtomicUsize::new(0));
    let counts = polls.clone();
    let beside = tokio::spawn(async move {
        loop {
            counts.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    (polls, beside)
}

/// Largest number of steps between two polls of the task beside.
#[derive(Default)]
struct Longest {
    seen: AtomicUsize,
    run: AtomicUsize,
    longest: AtomicUsize,
}

impl Longest {
    fn step(&self, polls: &AtomicUsize) {
        let polls = polls.load(Ordering::Relaxed);
        if self.seen.swap(polls, Ordering::Relaxed) != polls {
            self.run.store(0, Ordering::Relaxed);
        }
        let run = self.run.fetch_add(1, Ordering::Relaxed) + 1;
        self.longest.fetch_max(run, Ordering::Relaxed);
    }

    fn get(&self) -> usize {
        self.longest.load(Ordering::Relaxed)
    }
}

async fn many_pieces(polls: Arc<AtomicUsize>, longest: Arc<Longest>) {
    scope(async |s| {
        for _ in 0..20 {
            let (polls, longest) = (polls.clone(), longest.clone());
            s.spawn(async move {
                for _ in 0..100 {
                    longest.step(&polls);
                    checkpoint().await;
                }
            });
        }
    })
    .await;
}

#[tokio::test]
async fn a_poll_of_a_chain_runs_a_bounded_number_of_pieces() {
    let ((polls, beside), longest) = (beside(), Arc::new(Longest::default()));
    run(many_pieces(polls, longest.clone())).await.unwrap();
    beside.abort();
    assert!((PIECES_PER_POLL / 2..=PIECES_PER_POLL).contains(&longest.get()), "{}", longest.get());
}

#[tokio::test]
async fn a_poll_of_a_runner_runs_a_bounded_number_of_pieces() {
    let ((polls, beside), longest) = (beside(), Arc::new(Longest::default()));
    let workers = Workers::new();
    join(launch(&workers).start(many_pieces(polls, longest.clone()))).await.unwrap();
    beside.abort();
    // tokio wakes tasks that have yielded in reverse order: the runner may be last in one round and first in the next.
    assert!((PIECES_PER_POLL / 2..=2 * PIECES_PER_POLL).contains(&longest.get()), "{}", longest.get());
}

/// tokio's leaves share the budget of one poll. When it is spent they wake themselves at once, and the poll ends.
#[tokio::test]
async fn a_poll_ends_when_tokios_budget_is_spent() {
    /// tokio's budget of a poll.
    const BUDGET: usize = 128;
    let ((polls, beside), longest) = (beside(), Arc::new(Longest::default()));
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    for n in 0..10_000_u64 {
        sender.send(n).unwrap();
    }
    drop(sender);
    let steps = longest.clone();
    let sum = run(async move {
        scope(async |s| {
            s.spawn_future(async move {
                let mut sum = 0;
                while let Some(n) = receiver.recv().await {
                    steps.step(&polls);
                    sum += n;
                }
                sum
            })
            .await
        })
        .await
    });
    assert_eq!(sum.await, Ok(49_995_000));
    beside.abort();
    assert!((BUDGET / 2..=BUDGET).contains(&longest.get()), "{}", longest.get());
}
