//! The part of the executor contract about handles, and about work when the context ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use convoke_core::raw::Call;
use convoke_core::{Executor, ExecutorRef};

use super::ExecutorHarness;
use super::work::Ledger;
use crate::{Latch, runnable};

pub(super) fn clones_are_equal_and_others_are_not<X: Executor>(
    one: ExecutorHarness<X>,
    other: ExecutorHarness<X>,
) {
    assert!(one.executor == one.executor.clone(), "a clone is not equal");
    if !one.traits.inline {
        assert!(one.executor != other.executor, "executors of different contexts are equal");
    }
    assert!(one.executor.parallelism() > 0, "an executor runs at least one thing at a time");
    one.end();
    other.end();
}

pub(super) fn an_erased_handle_is_the_same_executor<X: Executor>(harness: ExecutorHarness<X>) {
    let erased = ExecutorRef::new(harness.executor.clone());
    assert_eq!(size_of_val(&erased), 2 * size_of::<usize>());
    assert!(erased == ExecutorRef::new(harness.executor.clone()), "the same executor, erased, is not equal");
    assert!(erased.downcast_ref::<X>() == Some(&harness.executor), "the downcast handle is not equal");
    assert_eq!(erased.parallelism(), harness.executor.parallelism());
    let ledger = Ledger::new(2);
    erased.post(ledger.piece(0));
    if let Some(back) = erased.clone().dispatch(ledger.piece(1)) {
        back.run();
    }
    ledger.wait_for_runs();
    harness.end();
}

/// Checks that queued work is stopped. All threads are blocked while the end begins, so none of it has
/// started.
pub(super) fn the_end_stops_what_is_queued<X: Executor>(harness: ExecutorHarness<X>) {
    const QUEUED: usize = 100;
    if harness.traits.inline {
        return harness.end();
    }
    let (executor, traits) = (harness.executor.clone(), harness.traits);
    let workers = executor.parallelism();
    let (busy, gate) = (Latch::new(workers), Latch::new(1));
    let (blockers, queued) = (Ledger::new(workers), Ledger::new(QUEUED));
    for index in 0..workers {
        let (busy, gate) = (busy.clone(), gate.clone());
        executor.post(blockers.piece_with(index, move || {
            busy.count_down();
            gate.wait();
        }));
    }
    busy.wait();
    (0..QUEUED).for_each(|index| executor.post(queued.piece(index)));
    let shut_down = harness.shut_down;
    let ending = thread::spawn(shut_down);
    if !traits.finishes_queue {
        wait_for_the_end_to_begin(&executor);
    }
    gate.count_down();
    ending.join().expect("shutting down panicked");
    blockers.wait_for_runs();
    queued.wait();
    if !traits.finishes_queue {
        assert_eq!(queued.stopped(), QUEUED, "work that had not started was run after the end had begun");
    }
}

/// Posts until a post is stopped.
fn wait_for_the_end_to_begin<X: Executor>(executor: &X) {
    let begun = Arc::new(AtomicBool::new(false));
    while !begun.load(Ordering::Acquire) {
        let begun = begun.clone();
        executor.post(runnable(move |call| {
            if call == Call::Stop {
                begun.store(true, Ordering::Release);
            }
        }));
        thread::yield_now();
    }
}

pub(super) fn after_the_end_posts_are_stopped<X: Executor>(harness: ExecutorHarness<X>) {
    if harness.traits.inline {
        return harness.end();
    }
    const SOME: usize = 10;
    let executor = harness.executor.clone();
    harness.end();
    let ledger = Ledger::new(2 * SOME);
    for index in 0..SOME {
        executor.post(ledger.piece(index));
        assert!(
            executor.dispatch(ledger.piece(SOME + index)).is_none(),
            "`dispatch` handed work back to a foreign thread"
        );
    }
    ledger.wait();
    assert_eq!(ledger.stopped(), 2 * SOME, "an executor that has ended ran work");
}
