//! Pools that come and go do not add up in memory.
use convoke::executor::{PoolExecutor, Priority};
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke_testing::workshop::counting::live_bytes;

/// Makes pools, one after the other, and has each run something.
fn make_pools(pools: isize) -> PoolExecutor {
    let mut last = None;
    for number in 0..pools {
        let pool = ThreadPool::new(2).unwrap();
        let executor = pool.executor();
        assert_eq!(sync_wait(schedule(&executor).then(|()| number)), Outcome::Value(number));
        last = Some(executor);
    }
    last.unwrap()
}

#[test]
fn a_pool_that_has_ended_keeps_next_to_no_memory() {
    const POOLS: isize = if cfg!(miri) { 3 } else { 300 };
    // What is made once, and what the threads of earlier pools have left to be collected.
    make_pools(POOLS);
    let before = live_bytes();
    let last = make_pools(POOLS);
    let kept = (live_bytes() - before) / POOLS;
    assert!(cfg!(miri) || kept < 200, "each pool keeps {kept} bytes");
    // A handle outlives its pool, and refuses.
    assert_eq!(sync_wait(schedule(&last)), Outcome::Stopped);
    assert_eq!(sync_wait(schedule(&last.with_priority(Priority::High))), Outcome::Stopped);
    assert_eq!((last.priority(), last.parallelism()), (Priority::Normal, 2));
}
