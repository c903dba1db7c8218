//! P4003R1 §3.4, `run_async`: launching a chain from ordinary code, with a stop
//! token, a frame allocator and handlers.
//!
//! The paper's five positional arguments and two calls are a builder. What it
//! returns waits for the chain, also if it is dropped: nothing is detached.

use convoke::alloc::{Bounded, FrameAllocator};
use convoke::prelude::*;

async fn compute_value(text: &'static str) -> Result<u32, std::num::ParseIntError> {
    text.parse()
}

pub(crate) fn run() -> String {
    let pool = ThreadPool::new(1).unwrap();
    let source = StopSource::new();
    let alloc = FrameAllocator::new(Bounded::new(4096));
    let compute = |text| {
        launch(&pool.executor())
            .stop_token(source.token())
            .allocator(alloc.clone())
            .on_value(|result: u32| format!("Got: {result}"))
            .on_error(|error: std::num::ParseIntError| error.to_string())
            .start(compute_value(text))
    };
    let (good, bad) = (compute("42").wait().unwrap(), compute("x").wait().unwrap());
    format!("{good:?}, {bad:?}")
}
