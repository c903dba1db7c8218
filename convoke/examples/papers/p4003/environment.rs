//! P4003R1 §3.3: a coroutine asks for its environment, without waiting, and ends
//! gracefully when it is asked to stop.
//!
//! Asking is a function call, from any function below. Most functions need not ask:
//! a stop ends them at their next wait, with their clean-up.

use convoke::env::current;
use convoke::executor::ExecutorRef;
use convoke::prelude::*;

async fn process_chunk(executor: &ExecutorRef, i: u32, stop: &StopSource) {
    assert_eq!(*executor, current::executor());
    checkpoint().await;
    if i == 2 {
        stop.request_stop(StopReason::Requested); // Another part of the program.
    }
}

async fn cancellable_work(stop: StopSource) -> u32 {
    let executor = current::executor();
    for i in 0..1000 {
        if current::stop_requested() {
            return i;
        }
        process_chunk(&executor, i, &stop).await;
    }
    1000
}

pub(crate) fn run() -> String {
    let pool = ThreadPool::new(1).unwrap();
    let source = StopSource::new();
    let launch = launch(&pool.executor()).stop_token(source.token());
    let chunks = launch.start(cancellable_work(source)).wait();
    format!("{chunks:?} chunks")
}
