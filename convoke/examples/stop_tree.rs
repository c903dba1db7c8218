//! The graceful stop of ten thousand tasks: a tree of scopes, in which every task has something to clean up, is asked to stop
//! at its root. The program ends when the last clean-up has run.
//!
//! ```text
//! cargo run --release --example stop_tree
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use convoke::env::Changes;
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::task::forever;

fn main() {
    let pool = ThreadPool::new(2).expect("two threads can be had");
    let (branches, leaves) = (100, 99);
    let counts = Counts::default();
    let source = StopSource::new();
    let watched = counts.clone();
    let asked = source.clone();
    let root = async move {
        scope(async |s| {
            s.spawn(tree(branches, leaves, watched.clone()));
            while watched.waiting() < branches * (leaves + 1) {
                print_bar("waiting", watched.waiting(), branches * (leaves + 1));
                sleep(Duration::from_millis(2)).await;
            }
            print_bar("waiting", watched.waiting(), branches * (leaves + 1));
            println!();
            asked.request_stop(StopReason::Shutdown);
            forever().await
        })
        .await
    };
    let start = Instant::now();
    let outcome: Outcome<()> =
        sync_wait_with(Changes::new().stop_token(source.token()), task(root).starts_on(&pool.executor()));
    print_bar("cleaned", counts.cleaned(), branches * (leaves + 1));
    println!(
        "\nthe tree ended {outcome:?}, {:.1} ms after it was begun",
        start.elapsed().as_secs_f64() * 1e3
    );
    assert_eq!(counts.cleaned(), branches * (leaves + 1));
}

/// Branches with leaves, all of which wait until they are stopped.
pub async fn tree(branches: usize, leaves: usize, counts: Counts) {
    scope(async |s| {
        for branch in 0..branches {
            let counts = counts.clone();
            s.named(format!("branch {branch}")).spawn(async move {
                scope(async |s| {
                    for _ in 0..leaves {
                        s.spawn(wait_and_clean_up(counts.clone()));
                    }
                    wait_and_clean_up(counts.clone()).await;
                })
                .await;
            });
        }
    })
    .await;
}

/// Waits until it is stopped; then its clean-up, which itself has to wait, runs to its end.
async fn wait_and_clean_up(counts: Counts) {
    let cleaned = counts.clone();
    let clean_up = async move |_exit| {
        checkpoint().await;
        cleaned.0.cleaned.fetch_add(1, Ordering::Relaxed);
    };
    ensure(clean_up, async {
        counts.0.waiting.fetch_add(1, Ordering::Relaxed);
        forever().await
    })
    .await
}

/// How many wait, and how many have cleaned up.
#[derive(Clone, Debug, Default)]
pub struct Counts(Arc<Both>);

#[derive(Debug, Default)]
struct Both {
    waiting: AtomicUsize,
    cleaned: AtomicUsize,
}

impl Counts {
    /// Tasks that have begun to wait.
    pub fn waiting(&self) -> usize {
        self.0.waiting.load(Ordering::Relaxed)
    }

    /// Tasks whose clean-up has run.
    pub fn cleaned(&self) -> usize {
        self.0.cleaned.load(Ordering::Relaxed)
    }
}

fn print_bar(what: &str, count: usize, of: usize) {
    let filled = 40 * count / of;
    print!("\r{what} [{}{}] {count:>6} of {of}", "█".repeat(filled), "░".repeat(40 - filled));
}
