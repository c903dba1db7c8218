//! P3552R2 §4.1: a task awaits a task, and gets its value.
//!
//! An `async fn` that is awaited lies inside its caller and is not allocated; its
//! type names no environment. `task(answer()).await` would make it a task of its
//! own.

use convoke::prelude::*;

async fn answer() -> u32 {
    42
}

pub(crate) fn run() -> String {
    let outcome = block_on(async {
        let result = answer().await;
        format!("the answer is {result}")
    });
    outcome.unwrap()
}
