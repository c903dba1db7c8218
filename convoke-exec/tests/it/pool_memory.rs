//! Pools that are created and dropped do not add up in memory.
use convoke::executor::{PoolExecutor, Priority};
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke_testing::workshop::counting::live_bytes;

/// Creates and drops pools, one after the other, and runs something on each.
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
fn a_dropped_pool_keeps_almost_no_memory() {
    const POOLS: isize = if cfg!(miri) { 3 } else { 300 };
    // Pays for what is allocated once, and for what the threads of earlier pools have left to be freed.
    make_pools(POOLS);
    let before = live_bytes();
    let last = make_pools(POOLS);
    let leaked = (live_bytes() - before) / POOLS;
    assert!(cfg!(miri) || leaked < 200, "each pool keeps {leaked} bytes");
    // An executor outlives its pool, and refuses work.
    assert_eq!(sync_wait(schedule(&last)), Outcome::Stopped);
    assert_eq!(sync_wait(schedule(&last.with_priority(Priority::High))), Outcome::Stopped);
    assert_eq!((last.priority(), last.parallelism()), (Priority::Normal, 2));
}
