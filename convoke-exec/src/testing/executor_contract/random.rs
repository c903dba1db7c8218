//! Posts and dispatches from outside and inside, in an order that a seed decides.

use std::thread;

use convoke_core::Executor;
use convoke_core::raw::Random;

use super::Harness;
use super::work::Ledger;

const THREADS: usize = 3;
const TREES: usize = if cfg!(miri) { 3 } else { 200 };
/// Pieces of a tree: its root and what that posts, in a chain.
const HEIGHT: usize = if cfg!(miri) { 3 } else { 6 };

pub(super) fn posts_and_dispatches_in_disorder<X: Executor>(harness: Harness<X>, seed: u64) {
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

/// Sends `index` and lets it send the `left - 1` after it.
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

/// Says which seed it was, if the test fails.
pub(super) struct NamesSeed(pub(super) u64);

impl Drop for NamesSeed {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("to see this again: executor_contract::check_random(make, {})", self.0);
        }
    }
}
