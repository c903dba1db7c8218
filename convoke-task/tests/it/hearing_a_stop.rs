//! Hearing of a stop without ending by it.
use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke::env::current;
use convoke::prelude::*;
use convoke::select;
use convoke::task::{forever, run_until_stopped};
use convoke::time::Elapsed;

/// Waits for a stop of the task, and then goes on in a shield, where it awaits once more.
async fn good_bye() -> Option<StopReason> {
    let reason = current::stop_token().stopped().await;
    shield(async {
        checkpoint().await;
        Some(reason)
    })
    .await
}

#[test]
fn a_child_hears_of_its_stop_and_returns_a_value_after_another_wait() {
    let outcome = block_on(async {
        scope(async |s| {
            let child = s.spawn_future(good_bye());
            checkpoint().await;
            child.request_stop(StopReason::Named("enough"));
            child.outcome().await
        })
        .await
    });
    assert_eq!(outcome.unwrap(), Outcome::Value(Some(StopReason::Named("enough"))));
}

#[test]
fn a_child_whose_scope_fails_hears_of_it() {
    let heard = Arc::new(Mutex::new(None));
    let hears = heard.clone();
    let outcome = block_on(async {
        scope(async |s| {
            s.spawn(async move {
                let reason = good_bye().await;
                *hears.lock().unwrap() = reason;
                Ok(())
            });
            checkpoint().await;
            Err::<(), _>("no disk")
        })
        .await
    });
    assert_eq!(outcome, Outcome::Value(Err("no disk")));
    assert_eq!(*heard.lock().unwrap(), Some(StopReason::Sibling));
}

#[test]
fn work_that_is_selected_beside_the_token_ends_and_the_task_goes_on() {
    let outcome = block_on(async {
        scope(async |s| {
            let child = s.spawn_future(async {
                let token = current::stop_token();
                select! {
                    () = async { forever().await } => "worked",
                    _ = token.stopped() => "heard",
                }
            });
            checkpoint().await;
            child.request_stop(StopReason::Requested);
            child.outcome().await
        })
        .await
    });
    assert_eq!(outcome.unwrap(), Outcome::Value("heard"));
}

#[test]
fn a_timeout_around_a_body_that_hears_of_it_returns_the_value_of_the_body() {
    let outcome = block_on(async { timeout(Duration::from_millis(1), good_bye()).await });
    assert_eq!(outcome.unwrap(), Ok(Some(StopReason::Deadline)));
    let deaf = block_on(async { timeout(Duration::from_millis(1), async { forever().await }).await });
    let deaf: Result<(), Elapsed> = deaf.unwrap();
    assert!(deaf.is_err(), "one that does not listen is stopped, as before");
}

#[test]
fn a_part_that_runs_until_a_token_hears_of_it_inside_and_not_around_it() {
    let outcome = block_on(async {
        let reload = StopSource::new();
        let token = reload.token();
        let (part, _) = join((
            async {
                let inside = run_until_stopped(token, good_bye()).await;
                (inside, current::stop_token().stop_requested())
            },
            async {
                checkpoint().await;
                reload.request_stop(StopReason::Named("reload"));
            },
        ))
        .await;
        part
    });
    let (inside, around) = outcome.unwrap();
    assert_eq!((inside.unwrap(), around), (Some(StopReason::Named("reload")), false));
}
