//! Posts and dispatches from outside and inside, in an order that a seed decides.

use std::thread;

use convoke_core::Executor;

use super::Harness;
use super::work::Ledger;

const THREADS: usize = 3;
const TREES: usize = 200;
/// Pieces of a tree: its root and what that posts, in a chain.
const HEIGHT: usize = 6;

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

/// Splitmix: small, and every seed is a good one.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn one_in(&mut self, number: u64) -> bool {
        self.next().is_multiple_of(number)
    }

    fn split(&mut self) -> Self {
        Self(self.next())
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
