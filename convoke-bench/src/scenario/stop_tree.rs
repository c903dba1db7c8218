//! Stopping a tree of waiting tasks, until the last of them has ended and was joined: the cost of giving up.
//!
//! A root with 100 branches with 100 leaves each; the leaves wait. Only the stopping is timed, per leaf.
//! Aborting tokio's root would be quicker, but an aborted branch drops its leaves without waiting for them:
//! that stops the tree, but does not join it.

use std::cell::Cell;
use std::future::pending;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::channel::oneshot;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use convoke::env::Changes;
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::task::forever;

use super::{CONVOKE, Scenario};
use crate::peer::{OneThread, Smol, Spawner, Tokio};

const BRANCHES: u64 = 100;
const LEAVES: u64 = 100;
const TREE: u64 = BRANCHES * LEAVES;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "stop_tree",
            "stop and join one leaf of a tree of 100 branches with 100 waiting leaves each, on one thread",
        )
        .batch(TREE)
        .contestant(CONVOKE, convoke)
        .contestant("tokio", || tokio(CancellationToken::clone))
        .contestant("tokio_child_tokens", || tokio(CancellationToken::child_token))
        .contestant("smol", smol),
    ]
}

/// A scope for the root and one for each branch; the stop is requested at the root, and timed until the last
/// leaf has ended.
fn convoke() -> impl FnMut(u64) -> Duration {
    |ops| {
        let tree = |_| {
            let (source, started) = (StopSource::new(), Arc::new(Mutex::new(None)));
            let stopped = sync_wait_with(
                Changes::new().stop_token(source.token()),
                task(convoke_tree(source, Arc::clone(&started))),
            );
            assert_eq!(stopped, Outcome::Stopped);
            let started: Option<Instant> = *started.lock().expect("nobody panics");
            started.expect("the stop was asked for").elapsed()
        };
        (0..ops / TREE).map(tree).sum()
    }
}

async fn convoke_tree(source: StopSource, started: Arc<Mutex<Option<Instant>>>) {
    let waiting = Arc::new(AtomicU64::new(0));
    scope(async |s| {
        for _ in 0..BRANCHES {
            let waiting = Arc::clone(&waiting);
            s.spawn(async move {
                scope(async |s| {
                    for _ in 0..LEAVES {
                        let waiting = Arc::clone(&waiting);
                        s.spawn(async move {
                            waiting.fetch_add(1, Ordering::Relaxed);
                            forever().await;
                        });
                    }
                })
                .await;
            });
        }
        while waiting.load(Ordering::Relaxed) < TREE {
            checkpoint().await;
        }
        *started.lock().expect("nobody panics") = Some(Instant::now());
        source.request_stop(StopReason::Shutdown);
        forever().await;
    })
    .await;
}

/// A token for each branch, a child of the root's, from which `for_leaf` makes the leaf's; a `JoinSet` for
/// the root and one for each branch.
fn tokio(for_leaf: fn(&CancellationToken) -> CancellationToken) -> impl FnMut(u64) -> Duration {
    let mut runtime = Tokio::start();
    move |ops| (0..ops / TREE).map(|_| runtime.run(|spawner| tokio_tree(spawner, for_leaf))).sum()
}

async fn tokio_tree(
    spawner: impl Spawner,
    for_leaf: fn(&CancellationToken) -> CancellationToken,
) -> Duration {
    let (root, waiting) = (CancellationToken::new(), Rc::new(Cell::new(0)));
    let mut branches = JoinSet::new();
    for _ in 0..BRANCHES {
        let (branch, waiting) = (root.child_token(), Rc::clone(&waiting));
        branches.spawn_local(async move {
            let mut leaves = JoinSet::new();
            for _ in 0..LEAVES {
                let (leaf, waiting) = (for_leaf(&branch), Rc::clone(&waiting));
                leaves.spawn_local(async move {
                    waiting.update(|waiting| waiting + 1);
                    leaf.cancelled().await;
                });
            }
            while leaves.join_next().await.is_some() {}
        });
    }
    until_all_wait(spawner, &waiting).await;
    let start = Instant::now();
    root.cancel();
    while branches.join_next().await.is_some() {}
    start.elapsed()
}

/// A branch is told through a channel, because cancelling it would drop the handles of its leaves; it cancels
/// them all, and `cancel` waits until each has ended.
fn smol() -> impl FnMut(u64) -> Duration {
    let mut runtime = Smol::start();
    move |ops| (0..ops / TREE).map(|_| runtime.run(smol_tree)).sum()
}

async fn smol_tree(spawner: <Smol as OneThread>::Spawner) -> Duration {
    let waiting = Rc::new(Cell::new(0));
    let (mut stops, mut branches) = (Vec::new(), Vec::new());
    for _ in 0..BRANCHES {
        let (stop, stopped) = oneshot::channel::<()>();
        let waiting = Rc::clone(&waiting);
        stops.push(stop);
        branches.push(spawner.spawn(async move {
            let leaf = |_| {
                let waiting = Rc::clone(&waiting);
                spawner.spawn(async move {
                    waiting.update(|waiting| waiting + 1);
                    pending::<()>().await;
                })
            };
            let leaves: Vec<_> = (0..LEAVES).map(leaf).collect();
            // An error would mean that the root is gone, which has the same effect.
            _ = stopped.await;
            for leaf in leaves {
                leaf.cancel().await;
            }
        }));
    }
    until_all_wait(spawner, &waiting).await;
    let start = Instant::now();
    drop(stops);
    for branch in branches {
        branch.await;
    }
    start.elapsed()
}

/// Waits until all leaves wait. A leaf counts itself in the poll in which it starts to wait.
async fn until_all_wait(spawner: impl Spawner, waiting: &Cell<u64>) {
    while waiting.get() < TREE {
        spawner.yield_now().await;
    }
}
