//! The price of crossing threads: a child on the same context, a function on another context, and one on the pool. The best of ten
//! rounds, as the guide's chapter on fairness and cores shows them.
//!
//! ```text
//! cargo run --release --example crossing
//! ```

use std::io;
use std::time::{Duration, Instant};

use convoke::prelude::*;
use convoke::run_on;
use convoke::runtime;

/// The number of calls of one round.
const CALLS: u32 = 1000;

/// Prints the time of one call: the best of ten rounds.
async fn measure(what: &str, call: impl AsyncFn()) {
    let mut best = Duration::MAX;
    for _ in 0..10 {
        let start = Instant::now();
        for _ in 0..CALLS {
            call().await;
        }
        best = best.min(start.elapsed() / CALLS);
    }
    println!("{what:45} {best:9.2?}");
}

#[convoke::main(contexts = 2, pool_threads = 2)]
async fn main() -> io::Result<()> {
    let runtime = runtime::current()?;
    let (there, pool) = (runtime.contexts()[1].clone(), runtime.pool());
    measure("a child that is spawned and awaited here", async || {
        scope(async |s| s.spawn_future(async {}).await).await;
    })
    .await;
    measure("`run_on` another context, and back", async || run_on(&there, async {}).await).await;
    measure("`run_on` the pool, and back", async || run_on(&pool, async {}).await).await;
    Ok(())
}
