//! The allocations of a chain.

use std::time::Duration;

use convoke::prelude::*;
use convoke_testing::workshop::counting::allocated;
use convoke_tokio::{run, run_local};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

/// Returns the number of allocations of each of some chains that run one after the other on this thread, without the first: that one
/// makes a loop.
fn of_later<F: Future<Output = ()>>(chain: impl Fn() -> F) -> Vec<usize> {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        chain().await;
        let mut counts = Vec::new();
        for _ in 0..4 {
            let before = allocated();
            chain().await;
            counts.push(allocated() - before);
        }
        counts
    })
}

#[test]
fn later_chains_of_a_thread_allocate_only_their_entry_among_those_of_the_runtime() {
    assert_eq!(of_later(async || run(async { checkpoint().await }).await.unwrap()), [1; 4]);
    let chain = async || {
        let ended = run(timeout(Duration::from_secs(3600), async { checkpoint().await })).await;
        assert_eq!(ended, Ok(Ok(())));
    };
    assert_eq!(of_later(chain), [1; 4], "a timer that nobody waits for any more does not keep the loop");
}

#[test]
fn later_local_chains_allocate_also_the_task_that_inherits_them() {
    assert_eq!(of_later(async || run_local(async { checkpoint().await }).await.unwrap()), [3; 4]);
}
