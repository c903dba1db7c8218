//! The guard of a lock gives references to its value: several threads may share it only if they may share the value.

use std::cell::Cell;

use convoke_core::raw::SpinLock;

fn main() {
    let lock = SpinLock::new(Cell::new(0));
    let guard = lock.lock();
    std::thread::scope(|threads| {
        threads.spawn(|| guard.set(1));
        guard.set(2);
    });
}
