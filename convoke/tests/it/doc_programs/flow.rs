//! Tasks, and how an `async fn` controls its task.

use std::sync::Arc;

use convoke::env::Local;
use convoke::env::{current, with_local};
use convoke::executor::Strand;
use convoke::executor::reschedule;
use convoke::prelude::*;
use convoke::run_on;
use convoke::sender::prelude::*;
use convoke::task::{forever, stoppable, stopped};
use convoke::testing::Ended;

use super::{explore, explore_with};

static REQUEST: Local<u32> = Local::inherited("request");

async fn double(n: u32) -> u32 {
    just(n).then(|n| 2 * n).await
}

/// `task`.
#[test]
fn a_task_awaits_a_sender() {
    explore(Outcome::Value(42), || async { double(20).await + 2 });
}

async fn first_even(numbers: &[u32]) -> u32 {
    match numbers.iter().find(|n| **n % 2 == 0) {
        Some(n) => *n,
        None => stopped().await,
    }
}

/// `stopped`.
#[test]
fn a_function_stops_its_task() {
    explore(Outcome::Value(4), || async { first_even(&[1, 4]).await });
    explore(Outcome::Stopped, || async { first_even(&[1, 3]).await });
}

/// `current::env`, `with_local`.
#[test]
fn a_request_is_known_inside_and_nowhere_else() {
    explore(Outcome::Value((Some(7), None)), || async {
        let inside = with_local(&REQUEST, 7, async {
            scope(async |s| s.spawn_future(async { current::local(&REQUEST) }).await).await
        })
        .await;
        (inside, current::local(&REQUEST))
    });
}

/// `stoppable`.
#[test]
fn a_foreign_future_gives_way_to_a_stop() {
    explore_with(Ended::Stopped, |probe| {
        probe.ends_only_when_stopped();
        let held = Arc::new(probe.must_drop("held by the foreign future"));
        async move {
            let foreign = std::future::poll_fn(move |_| {
                let _held = &held;
                std::task::Poll::<()>::Pending
            });
            stoppable(foreign).await
        }
    });
}

/// `forever`.
#[test]
fn a_body_waits_for_the_error_of_a_child() {
    explore(Outcome::Value(Err::<(), _>("the disk is full")), || async {
        scope(async |s| {
            s.spawn(async { Err("the disk is full") });
            forever().await
        })
        .await
    });
}

/// `checkpoint`.
#[test]
fn a_long_sum_lets_others_run() {
    let exploration = explore(Outcome::Value(499_500), || async {
        let mut sum = 0_u64;
        for chunk in 0..10 {
            sum += (chunk * 100..(chunk + 1) * 100).sum::<u64>();
            checkpoint().await;
        }
        sum
    });
    assert_eq!(exploration.points(), 11, "{exploration}");
    assert!(cfg!(miri) || exploration.ended(Ended::Stopped) >= 9, "{exploration}");
}

/// `catch_stopped`.
#[test]
fn a_stop_of_its_own_is_caught() {
    explore(Outcome::Value("went on"), || async {
        let caught = catch_stopped(async { stopped().await }).await;
        assert!(caught.is_err());
        "went on"
    });
}

/// `run_on`.
#[test]
fn a_part_runs_elsewhere_and_comes_back() {
    explore(Outcome::Value(true), || async {
        let here = current::executor();
        let elsewhere = Strand::new(here.clone());
        let there = run_on(&elsewhere, async {
            checkpoint().await;
            current::executor()
        })
        .await;
        assert!(current::executor() == here);
        there != here
    });
}

/// `reschedule`.
#[test]
fn a_task_moves_and_moves_back() {
    explore(Outcome::Value(Ok::<_, convoke::task::NotSend>(true)), || async {
        let elsewhere = Strand::new(current::executor());
        let before = reschedule(&elsewhere).await?;
        checkpoint().await;
        let moved = current::executor() != before;
        reschedule(&before).await?;
        Ok(moved)
    });
}
