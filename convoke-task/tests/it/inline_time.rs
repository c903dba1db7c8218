//! Work in an environment without an executor: it runs inline, and is told so when it waits for a time. User
//! code never runs on the thread of the timers.
use std::time::Duration;

use convoke::env::Env;
use convoke::executor::InlineExecutor;
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::task::task;
use convoke::testing::Connected;
use convoke::time::now;

#[track_caller]
fn says_what_to_do<T: std::fmt::Debug, E: std::fmt::Debug>(outcome: Outcome<T, E>) {
    match outcome {
        Outcome::Panicked(panic) => {
            let message = panic.message();
            assert!(message.contains("without an executor") && message.contains("launch"), "{message}");
        }
        other => panic!("it went on, on the thread of the timers: {other:?}"),
    }
}

#[test]
fn a_task_without_an_executor_that_sleeps_panics_and_says_what_to_do() {
    let sleeps = task(async { convoke::sleep(Duration::from_millis(1)).await });
    says_what_to_do(Connected::with_env(sleeps, Env::new()).start().outcome());
    let timed =
        task(async { timeout(Duration::from_millis(1), std::future::pending::<()>()).await.is_err() });
    says_what_to_do(Connected::with_env(timed, Env::new()).start().outcome());
    let launched = launch(&InlineExecutor).start(async { convoke::sleep(Duration::from_millis(1)).await });
    says_what_to_do(Panic::catch(|| launched.wait()).unwrap_or_else(Outcome::Panicked));
}

#[test]
fn a_sender_without_an_executor_that_sleeps_panics_and_says_what_to_do() {
    let sleeps = convoke::sleep(Duration::from_millis(1)).then(|()| std::thread::current().id());
    says_what_to_do(Connected::with_env(sleeps, Env::new()).start().outcome());
}

#[test]
fn a_task_without_an_executor_can_read_the_clock() {
    assert!(Connected::with_env(task(async { now() }), Env::new()).start().outcome().is_value());
}
