//! P4003R1 §3.5: a launch function of one's own.
//!
//! The paper's reaches into promises and handles, and is constrained on a concept
//! of tasks. Here it decides the policy, takes any future, and `launch` does the
//! rest.

use convoke::env::{Local, current};
use convoke::prelude::*;
use convoke::task::Launched;
use convoke::{Executor, StopToken};

static REQUEST: Local<u32> = Local::inherited("request");

/// Launches the work of a request: it has a name and a number, and can be stopped.
fn launch_request<F>(
    executor: &impl Executor,
    token: StopToken, // Stops the request, and everything below it.
    id: u32,
    work: F,
) -> Launched<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let launch = launch(executor).stop_token(token).local(&REQUEST, id);
    launch.name(format!("request {id}")).start(work)
}

async fn answer() -> String {
    format!("this is request {}", current::local(&REQUEST).unwrap())
}

pub(crate) fn run() -> String {
    let pool = ThreadPool::new(1).unwrap();
    let source = StopSource::new();
    let launched = launch_request(&pool.executor(), source.token(), 7, answer());
    launched.wait().unwrap()
}
