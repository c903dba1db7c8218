//! Each wake-up ends a wait: the current one or the next one.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use convoke_task::{checkpoint, launch, try_join};

use super::DriverHarness;
use convoke_io::IoContext;

pub(super) fn a_wake_ends_the_next_wait(harness: &DriverHarness) {
    let driver = harness.driver();
    for _ in 0..100 {
        driver.wake();
        driver.wait(None).expect("a driver can wait");
    }
}

pub(super) fn many_wakes_end_one_wait(harness: &DriverHarness) {
    let driver = harness.driver();
    for _ in 0..if cfg!(miri) { 20 } else { 10_000 } {
        driver.wake();
    }
    driver.wait(None).expect("a driver can wait");
    driver.wake();
    driver.wait(None).expect("a driver can wait");
}

const THREADS: usize = 4;
const WAKES: usize = if cfg!(miri) { 10 } else { 5_000 };

pub(super) fn no_wake_from_another_thread_is_lost(harness: &DriverHarness) {
    if harness.one_thread {
        return;
    }
    let driver = harness.driver();
    let wakes = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..WAKES {
                    wakes.fetch_add(1, Ordering::Release);
                    driver.wake();
                }
            });
        }
        // Each wait has no timeout: if a wake-up were lost, at worst the last one, the test would hang.
        while wakes.load(Ordering::Acquire) < THREADS * WAKES {
            driver.wait(None).expect("a driver can wait");
        }
    });
}

const POSTS: usize = 250;
const ROUNDS: u64 = 500;

pub(super) fn a_storm_of_wakes_does_not_disturb_io(harness: &DriverHarness) {
    let context = IoContext::new(harness.driver());
    let threads = if harness.one_thread { 0 } else { THREADS };
    let ran = Arc::new(AtomicUsize::new(0));
    let storm: Vec<_> = (0..threads)
        .map(|_| {
            let (executor, ran) = (context.executor(), ran.clone());
            thread::spawn(move || {
                for _ in 0..POSTS {
                    let ran = ran.clone();
                    let counts = async move { _ = ran.fetch_add(1, Ordering::Relaxed) };
                    _ = launch(&executor).start(counts).wait();
                }
            })
        })
        .collect();
    let traffic = context.block_on(async {
        let (near, far) = harness.connection().await?;
        let mut received = [0; 8];
        for round in 0..ROUNDS {
            try_join((near.write_all(&round.to_le_bytes()), far.read_exact(&mut received))).await?;
            assert_eq!(u64::from_le_bytes(received), round);
            checkpoint().await;
        }
        while storm.iter().any(|thread| !thread.is_finished()) {
            checkpoint().await;
        }
        io::Result::Ok(())
    });
    assert!(traffic.unwrap().is_ok());
    for thread in storm {
        thread.join().expect("the thread does not panic");
    }
    assert_eq!(ran.load(Ordering::Relaxed), threads * POSTS);
}
