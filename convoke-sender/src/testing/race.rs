//! Work that another thread completes while it is still being started.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use super::{ByHand, Connected, Gate};
use crate::prelude::*;
use convoke_core::raw::sync::Arc;

/// Starts the sender that `make` returns again and again, while a second thread opens its gate as soon as
/// work waits there and a third runs the executor: the work is completed while it is still being started.
pub fn race_a_gate<S>(rounds: u32, make: impl Fn(&ByHand, &Gate<u32>) -> S)
where
    S: Sender<Value = u32, Error = Never>,
{
    // Under Miri each round takes as long as a thousand; Miri reports a race even if it does no harm.
    let rounds = if cfg!(miri) { rounds.min(5) } else { rounds };
    let (gates, opened) = mpsc::channel::<(Gate<u32>, u32)>();
    let by_hand = ByHand::new();
    let runner = by_hand.clone();
    let over = Arc::new(AtomicBool::new(false));
    let is_over = over.clone();
    let opener = thread::spawn(move || {
        for (gate, round) in opened {
            while !gate.is_waiting() {
                thread::yield_now();
            }
            assert!(gate.complete(Outcome::Value(round)));
        }
    });
    let runner = thread::spawn(move || {
        while !is_over.load(Ordering::Acquire) {
            if runner.run_all() == 0 {
                thread::yield_now();
            }
        }
    });
    for round in 0..rounds {
        let gate = Gate::new();
        let connected = Connected::new(make(&by_hand, &gate));
        gates.send((gate, round)).unwrap();
        assert_eq!(connected.wait(), Outcome::Value(round));
    }
    drop(gates);
    over.store(true, Ordering::Release);
    opener.join().unwrap();
    runner.join().unwrap();
}
