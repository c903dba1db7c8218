//! P4003R1 §3.1: an awaitable of one's own, over an operation that completes
//! elsewhere.
//!
//! The paper's is a class with three functions and a second argument for the
//! environment. Here a closure gets a `Completion`, through which it also hears of
//! a stop.

use std::thread;

use convoke::prelude::*;
use convoke::sender::prelude::*;

/// Stands for a foreign library with callbacks.
fn start_async_operation(call_back: impl FnOnce(u32) + Send + 'static) {
    thread::spawn(move || call_back(42));
}

async fn my_awaitable() -> u32 {
    from_callback(|completion: Completion<u32>| {
        start_async_operation(move |result| completion.value(result));
    })
    .await
}

pub(crate) fn run() -> String {
    let here = thread::current().id();
    let outcome = block_on(async move {
        let result = my_awaitable().await;
        format!("{result}, resumed here: {}", thread::current().id() == here)
    });
    outcome.unwrap()
}
