//! Posts and dispatches from outside and inside the executor, in an order that a seed decides.

use std::thread;

use convoke_core::Executor;
use convoke_core::raw::Random;

use super::ExecutorHarness;
use super::work::Ledger;

const THREADS: usize = 3;
const TREES: usize = if cfg!(miri) { 1 } else { 200 };
/// The number of pieces of a tree: its root, and a chain of pieces that each post the next.
const HEIGHT: usize = if cfg!(miri) { 3 } else { 6 };

pub(super) fn posts_and_dispatches_in_random_order<X: Executor>(harness: ExecutorHarness<X>, seed: u64) {
    let ledger = Ledger::new(THREADS * TREES * HEIGHT);
    thread::scope(|scope| {
        for poster in 0..THREADS {
            let (executor, ledger) = (&harness.executor, &ledger);
            let mut random = Random::new(seed ^ (poster as u64) << 32);
            scope.spawn(move || {
                for tree in 0..TREES {
                    let root = (poster * TREES + tree) * HEIGHT;
                    send(executor, ledger, root, HEIGHT, random.split());
                    if random.one_in(16) {
                        thread::yield_now();
                    }
                }
            });
        }
    });
    ledger.wait_for_runs();
    harness.end();
}

/// Sends piece `index`, which sends the `left - 1` pieces after it.
fn send<X: Executor>(executor: &X, ledger: &Ledger, index: usize, left: usize, mut random: Random) {
    let dispatch = random.one_in(2);
    let (to, inner) = (executor.clone(), ledger.clone());
    let work = ledger.piece_with(index, move || {
        if left > 1 {
            if random.one_in(8) {
                thread::yield_now();
            }
            send(&to, &inner, index + 1, left - 1, random);
        }
    });
    if !dispatch {
        executor.post(work);
    } else if let Some(back) = executor.dispatch(work) {
        back.run();
    }
}

/// A guard that prints the seed if the test fails.
pub(super) struct PrintSeedOnPanic(pub(super) u64);

impl Drop for PrintSeedOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("to repeat this: executor_contract::check_random(make, {})", self.0);
        }
    }
}
