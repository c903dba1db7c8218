//! P3552R2 §4.5: a task changes its scheduler, and later goes back to the one it
//! had.
//!
//! The paper's `co_continue_on` is `reschedule`. It can fail: a task that is not
//! `Send` must stay where it is.

use std::thread;

use convoke::executor::reschedule;
use convoke::prelude::*;

fn here() -> String {
    thread::current().name().unwrap_or("?").to_owned()
}

pub(crate) fn run() -> String {
    let pool = |name| ThreadPool::builder().threads(1).name(name).build().unwrap();
    let (first, second) = (pool("first"), pool("second"));
    let new_executor = second.executor();
    let launched = launch(&first.executor()).start(async move {
        let mut places = vec![here()];
        let previous = reschedule(&new_executor).await?;
        places.push(here());
        reschedule(&previous).await?;
        places.push(here());
        Ok::<_, convoke::task::NotSend>(places.join(", "))
    });
    launched.wait().unwrap().unwrap()
}
