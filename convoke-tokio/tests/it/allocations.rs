//! The allocations of a chain.

use std::time::Duration;

use convoke::prelude::*;
use convoke_testing::workshop::counting::allocated;
use convoke_tokio::{run, run_local};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

/// Asserts the number of allocations of each chain but the first one that runs on this thread: that one makes a loop.
fn assert_later_allocate<F: Future<Output = ()>>(expected: usize, chain: impl Fn() -> F) {
    // Without the cache of frames, each frame of a task is an allocation.
    if std::env::var_os("CONVOKE_FRAME_CACHE").is_some_and(|value| value == "0") {
        return;
    }
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        chain().await;
        let mut counts = Vec::new();
        for _ in 0..4 {
            let before = allocated();
            chain().await;
            counts.push(allocated() - before);
        }
        assert_eq!(counts, [expected; 4]);
    });
}

#[test]
fn later_chains_of_a_thread_allocate_only_their_entry_among_those_of_the_runtime() {
    assert_later_allocate(1, async || run(async { checkpoint().await }).await.unwrap());
    // A timer that nobody waits for any more does not keep the loop from being used again.
    assert_later_allocate(1, async || {
        let ended = run(timeout(Duration::from_secs(3600), async { checkpoint().await })).await;
        assert_eq!(ended, Ok(Ok(())));
    });
}

#[test]
fn later_local_chains_allocate_also_the_task_that_inherits_them() {
    assert_later_allocate(3, async || run_local(async { checkpoint().await }).await.unwrap());
}
