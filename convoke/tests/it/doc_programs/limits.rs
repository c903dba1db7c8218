//! `timeout`, `deadline`, `stop_after` and `shield`.

use std::time::Duration;

use convoke::env::current;
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::testing::Ended;
use convoke::time::{stop_after, timeout_at};

use super::{explore, explore_with};

/// `timeout`.
#[test]
fn the_quick_one_is_in_time_and_the_slow_one_is_not() {
    explore(Outcome::Value((Ok(1), true)), || async {
        let quick = timeout(Duration::from_secs(3600), async { 1 }).await;
        let slow = timeout(Duration::from_millis(1), never::<u32>()).await;
        (quick, slow.is_err())
    });
}

/// `deadline`.
#[test]
fn two_share_a_deadline() {
    explore(Outcome::Value(true), || async {
        // The time on the program's own clock; the example uses the machine's.
        let at = timeout(Duration::from_millis(2), async { current::deadline().unwrap() }).await.unwrap();
        let first = timeout_at(at, async { current::deadline() }).await;
        let second = timeout_at(at, sleep(Duration::from_secs(3600))).await;
        first == Ok(Some(at)) && second.map_err(|elapsed| elapsed.deadline()) == Err(at)
    });
}

/// `stop_after`.
#[test]
fn what_comes_after_the_time_is_not_reached() {
    explore(Outcome::<()>::Stopped, || async {
        stop_after(Duration::from_millis(1), sleep(Duration::from_secs(3600))).await;
        unreachable!("not resumed");
    });
}

/// `shield`.
#[test]
fn what_must_be_done_is_done() {
    explore_with(Ended::Stopped, |probe| {
        probe.ends_only_when_stopped();
        let probe = probe.clone();
        async move {
            probe.acquired("what must be done");
            shield(async { checkpoint().await }).await;
            probe.cleaned_up("what must be done");
            never::<()>().await
        }
    });
}
