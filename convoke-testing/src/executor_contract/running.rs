//! The part of the executor contract about a live executor.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use convoke_core::{Executor, Outcome};
use convoke_sender::algorithm::schedule::schedule;
use convoke_sender::testing::{Connected, stopped_env};

use super::ExecutorHarness;
use super::work::{Ledger, ON_PURPOSE};
use crate::Latch;

const SOME: usize = if cfg!(miri) { 10 } else { 1000 };
const BURST: usize = if cfg!(miri) { 50 } else { 100_000 };

pub(super) fn each_post_runs_once<X: Executor>(harness: ExecutorHarness<X>) {
    let ledger = Ledger::new(SOME);
    for index in 0..SOME {
        harness.executor.post(ledger.piece(index));
    }
    ledger.wait_for_runs();
    harness.end();
}

thread_local! {
    static IN_POST: Cell<bool> = const { Cell::new(false) };
}

/// Posts a piece that fails if it runs inside this `post`.
fn marked_post<X: Executor>(
    executor: &X,
    ledger: &Ledger,
    index: usize,
    then: impl FnOnce() + Send + 'static,
) {
    let work = ledger.piece_with(index, move || {
        assert!(!IN_POST.get(), "`post` ran the work inline");
        then();
    });
    IN_POST.set(true);
    executor.post(work);
    IN_POST.set(false);
}

pub(super) fn post_never_runs_inline<X: Executor>(harness: ExecutorHarness<X>) {
    if !harness.traits.inline {
        let ledger = Ledger::new(2 * SOME);
        for index in 0..SOME {
            let (executor, inner) = (harness.executor.clone(), ledger.clone());
            marked_post(&harness.executor, &ledger, index, move || {
                marked_post(&executor, &inner, SOME + index, || ());
            });
        }
        ledger.wait_for_runs();
    }
    harness.end();
}

/// Checks the order. The first piece blocks the executor until all are posted, so that it could reorder them.
pub(super) fn a_serial_executor_keeps_the_order<X: Executor>(harness: ExecutorHarness<X>) {
    if harness.traits.serial {
        let (ledger, gate) = (Ledger::new(SOME + 1), Latch::new(1));
        if harness.traits.inline {
            gate.count_down();
        }
        let opened = gate.clone();
        harness.executor.post(ledger.piece_with(SOME, move || opened.wait()));
        let (next, busy) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        for index in 0..SOME {
            let (next, busy) = (next.clone(), busy.clone());
            harness.executor.post(ledger.piece_with(index, move || {
                assert!(!busy.swap(true, Ordering::Relaxed), "a serial executor ran two things at once");
                let turn = next.fetch_add(1, Ordering::Relaxed);
                assert_eq!(turn, index, "a serial executor ran the work out of order");
                busy.store(false, Ordering::Relaxed);
            }));
        }
        if !gate.is_open() {
            gate.count_down();
        }
        ledger.wait_for_runs();
    }
    harness.end();
}

pub(super) fn dispatch_hands_back_or_queues<X: Executor>(harness: ExecutorHarness<X>) {
    let ledger = Ledger::new(2 * SOME);
    for index in 0..SOME {
        let (executor, inner) = (harness.executor.clone(), ledger.clone());
        let work = ledger.piece_with(index, move || {
            if let Some(back) = executor.dispatch(inner.piece(SOME + index)) {
                back.run();
            }
        });
        if let Some(back) = harness.executor.dispatch(work) {
            back.run();
        }
    }
    ledger.wait_for_runs();
    harness.end();
}

pub(super) fn posts_come_from_many_threads<X: Executor>(harness: ExecutorHarness<X>) {
    const THREADS: usize = 4;
    let ledger = Ledger::new(THREADS * SOME);
    thread::scope(|scope| {
        for poster in 0..THREADS {
            let (executor, ledger) = (&harness.executor, &ledger);
            scope.spawn(move || {
                (0..SOME).for_each(|index| executor.post(ledger.piece(poster * SOME + index)));
            });
        }
    });
    ledger.wait_for_runs();
    harness.end();
}

/// Posts a binary tree: each piece posts two more.
pub(super) fn posts_come_from_inside<X: Executor>(harness: ExecutorHarness<X>) {
    const LEAVES: usize = if cfg!(miri) { 16 } else { 512 };
    let ledger = Ledger::new(2 * LEAVES);
    harness.executor.post(ledger.piece(0));
    grow(harness.executor.clone(), ledger.clone(), 1);
    ledger.wait_for_runs();
    harness.end();

    fn grow<X: Executor>(executor: X, ledger: Ledger, index: usize) {
        let (above, to) = (ledger.clone(), executor.clone());
        executor.post(above.piece_with(index, move || {
            if index < LEAVES {
                grow(to.clone(), ledger.clone(), 2 * index);
                grow(to, ledger, 2 * index + 1);
            }
        }));
    }
}

pub(super) fn a_burst_is_run<X: Executor>(harness: ExecutorHarness<X>) {
    let ledger = Ledger::new(BURST);
    for index in 0..BURST {
        harness.executor.post(ledger.piece(index));
    }
    ledger.wait_for_runs();
    harness.end();
}

pub(super) fn a_panic_is_survived<X: Executor>(harness: ExecutorHarness<X>) {
    if !harness.traits.inline {
        let workers = harness.executor.parallelism();
        let ledger = Ledger::new(workers + SOME);
        for index in 0..workers {
            harness.executor.post(ledger.piece_with(index, || panic!("{ON_PURPOSE}")));
        }
        for index in workers..workers + SOME {
            harness.executor.post(ledger.piece(index));
        }
        ledger.wait_for_runs();
    }
    harness.end();
}

pub(super) fn schedule_completes_on_it<X: Executor>(harness: ExecutorHarness<X>) {
    assert_eq!(Connected::new(schedule(&harness.executor)).start().wait(), Outcome::Value(()));
    let stopped = Connected::with_env(schedule(&harness.executor), stopped_env());
    assert_eq!(stopped.start().wait(), Outcome::Stopped);
    harness.end();
}
