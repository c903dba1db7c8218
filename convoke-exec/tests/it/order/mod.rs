//! Numbered work that records the order in which it runs, for tests of views.

#![allow(unreachable_pub, reason = "several tests share it")]

use std::sync::{Arc, Mutex};

use convoke_core::raw::{Call, Runnable};
use convoke_testing::runnable;

/// The numbers of the pieces that were run, in order.
#[derive(Clone, Default)]
pub struct Order(Arc<Mutex<Vec<u32>>>);

impl Order {
    pub fn piece(&self, number: u32) -> Runnable {
        let order = self.clone();
        runnable(move |call| {
            assert_eq!(call, Call::Run);
            order.note(number);
        })
    }

    pub fn note(&self, number: u32) {
        self.0.lock().unwrap().push(number);
    }

    pub fn get(&self) -> Vec<u32> {
        self.0.lock().unwrap().clone()
    }
}
