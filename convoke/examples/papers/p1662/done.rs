//! P1662R0, *Separating out the suspend-point and continuation responsibilities*:
//! an operation that resumes its coroutine with a value, or with the signal "done".
//!
//! A `Completion` has a method for each. After "done" the task is not resumed: its
//! frames are dropped, and its clean-up is awaited.

use std::sync::{Arc, Mutex};
use std::thread;

use convoke::prelude::*;
use convoke::sender::prelude::*;

/// Asks something foreign, which answers or is cancelled, on a thread of its own.
async fn some_awaitable(answer: Option<u32>) -> u32 {
    from_callback(move |completion: Completion<u32>| {
        thread::spawn(move || match answer {
            Some(result) => completion.value(result),
            None => completion.stopped(),
        });
    })
    .await
}

async fn asks(answer: Option<u32>, log: Arc<Mutex<Vec<String>>>) -> u32 {
    let clean_up = async |exit: Exit| log.lock().unwrap().push(exit.to_string());
    ensure(clean_up, some_awaitable(answer)).await
}

pub(crate) fn run() -> String {
    let log = Arc::new(Mutex::new(Vec::new()));
    let value = block_on(asks(Some(42), log.clone()));
    let done = block_on(asks(None, log.clone()));
    format!("{value:?}, {done:?}; clean-up: {}", log.lock().unwrap().join(", "))
}
