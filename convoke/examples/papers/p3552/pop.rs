//! P3552R2 §4.4: a queue whose `pop` has two results, a value and "closed".
//!
//! The paper needs `into_optional`, since a sender cannot be awaited if it
//! completes in two ways. Here `recv` returns an `Option`, and a loop over the
//! queue is a `while let`.

use convoke::prelude::*;
use convoke::sync::mpsc;

async fn pop_demo(mut queue: mpsc::Receiver<u32>) -> Vec<u32> {
    let mut popped = Vec::new();
    while let Some(value) = queue.recv().await {
        popped.push(value);
    }
    popped
}

pub(crate) fn run() -> String {
    let (sender, queue) = mpsc::channel(2);
    sender.try_send(1).unwrap();
    sender.try_send(2).unwrap();
    drop(sender); // The queue is closed, and what is in it is still received.
    format!("{:?}", block_on(pop_demo(queue)).unwrap())
}
