//! P3552R2 §4.10: a million awaits of something that is ready, on an executor that
//! runs its work in place.
//!
//! In C++ this innocent loop overflows the stack. A Rust future returns to its
//! caller to wait, so that the stack stays flat; every 128 awaits the task lets
//! others run.

use convoke::env::Changes;
use convoke::executor::InlineExecutor;
use convoke::sender::prelude::*;

pub(crate) fn run() -> String {
    let work = task(async {
        let mut sum = 0;
        for i in 0..1_000_000_u64 {
            sum += just(i).await;
        }
        sum
    });
    let changes = Changes::new().executor(InlineExecutor);
    sync_wait_with(changes, work).unwrap().to_string()
}
