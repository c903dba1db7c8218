//! Where does it hang? A program that prints the tree of its tasks at SIGUSR1: each task, its children, and the line where each waits.
//! Without an argument it sends itself the signal.
//!
//! ```text
//! cargo run --release --example tree_by_signal
//! cargo run --release --example tree_by_signal -- wait &    kill -USR1 $!
//! ```

use std::io;
use std::time::Duration;

use convoke::inspect::tree;
use convoke::prelude::*;
use convoke::signal::{Signal, Signals, raise, signals};
use convoke::sync::mpsc;

/// Prints the tree at each signal, and returns it after the last one.
async fn print_trees(mut asked: Signals, at_most: usize) -> String {
    let mut last = String::new();
    for _ in 0..at_most {
        asked.next().await;
        last = tree().to_string();
        println!("{last}");
    }
    last
}

/// A worker that hangs: its queue stays empty.
async fn worker(mut queue: mpsc::Receiver<u32>) {
    scope(async |s| {
        s.named("heartbeat").spawn(async {
            loop {
                sleep(Duration::from_secs(60)).await;
            }
        });
        while let Some(job) = queue.recv().await {
            println!("job {job}");
        }
    })
    .await;
}

#[convoke::main(contexts = 1)]
async fn main() -> io::Result<()> {
    let plays = std::env::args().nth(1).is_none();
    // Signals count from here on.
    let asked = signals([Signal::USER_1])?;
    let (_jobs, queue) = mpsc::channel(1);
    let printed = race((print_trees(asked, if plays { 1 } else { usize::MAX }), async {
        scope(async |s| {
            s.named("worker").spawn(worker(queue));
            checkpoint().await; // The worker begins.
            if plays {
                raise(Signal::USER_1)?;
            } else {
                println!("`kill -USR1 {}` prints the tree", std::process::id());
            }
            std::future::pending::<io::Result<()>>().await
        })
        .await
        .map_or_else(|error| error.to_string(), |()| String::new())
    }))
    .await;
    assert!(!plays || printed.contains("`worker`") && printed.contains("`heartbeat`"), "{printed}");
    Ok(())
}
