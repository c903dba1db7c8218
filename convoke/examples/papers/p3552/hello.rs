//! P3552R2, the opening of the paper: a task that awaits a sender.
//!
//! A task is made of any future. `task(…)` is a sender, as the paper's is; a
//! program that needs no sender writes `block_on(async { … })`.

use convoke::sender::prelude::*;

pub(crate) fn run() -> String {
    let hello = task(async {
        let status = just(0).await;
        format!("Hello, world! {status}")
    });
    sync_wait(hello).unwrap()
}
