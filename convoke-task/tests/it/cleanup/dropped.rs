//! Futures that are dropped while they run, and resources that are not returned: skipped clean-up is reported.

use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::pin;
use std::task::Poll;

use convoke::cleanup::cleanups;
use convoke::env::Env;
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::testing::{ByHand, Connected};

use crate::cleanup::resources::*;

/// Polls a future once, in the current task, and drops it, as a foreign `select!` does.
async fn poll_and_drop(future: impl Future) {
    let mut future = pin!(future);
    std::future::poll_fn(|cx| {
        assert!(future.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
}

#[test]
fn dropped_in_flight_the_skipped_clean_up_is_reported_once() {
    door_named!(DroppedInBody);
    door_named!(DroppedInClose);
    door_named!(DroppedInStack);
    assert_eq!(problems("Dropped"), [""; 0]);
    let log = Log::default();
    let outcome = sync_wait(task(async {
        poll_and_drop(using(DroppedInBody(Door::new("a", &log)), async |_| checkpoint().await)).await;
        poll_and_drop(using(DroppedInClose(Door::new("b", &log)), async |_| ())).await;
        poll_and_drop(cleanups(async |cleanups| {
            let _c = cleanups.push(DroppedInStack(Door::new("c", &log)));
            let _d = cleanups.push(DroppedInStack(Door::new("d", &log)));
            Ok::<_, Refused>(())
        }))
        .await;
    }));
    assert_eq!(outcome, Outcome::Value(()));
    assert_eq!(log.lines(), ["b closes: returned a value", "d closes: returned a value"]);
    let skipped = problems("DroppedInBody");
    assert_eq!(skipped.len(), 1);
    assert!(skipped[0].contains("skipped: its future was dropped") && skipped[0].contains("dropped.rs:"));
    let cut = problems("DroppedInClose");
    assert_eq!(cut.len(), 1);
    assert!(cut[0].contains("cut short"));
    let mut stack = problems("DroppedInStack");
    stack.sort();
    assert_eq!(stack.len(), 2);
    assert!(stack[0].contains("skipped") && stack[1].contains("cut short"), "{stack:?}");
}

#[test]
fn a_resource_whose_body_never_started_is_reported_and_a_clean_up_without_one_is_not() {
    door_named!(NeverStarted);
    assert_eq!(problems("NeverStarted"), [""; 0]);
    let log = Log::default();
    drop(using(NeverStarted(Door::new("door", &log)), async |_| ()));
    assert_eq!(problems("NeverStarted").len(), 1);
    drop(ensure(async |_| (), async {}));
    assert_eq!(problems("NeverStarted").len(), 1);
    assert_eq!(log.lines(), [""; 0]);
}

#[test]
fn a_resource_that_the_body_keeps_is_reported_and_not_waited_for() {
    door_named!(Kept);
    assert_eq!(problems("::Kept"), [""; 0]);
    let log = Log::default();
    let (mut kept, mut leaked) = (None, None);
    let outcome = sync_wait(task(async {
        using(Kept(Door::new("door", &log)), async |door| kept = Some(door)).await?;
        // Like `forget`, but dropped at the end of the test, so that nothing leaks.
        using(Kept(Door::new("leaked", &log)), async |door| leaked = Some(ManuallyDrop::new(door))).await?;
        Ok::<_, Refused>(())
    }));
    assert_eq!(outcome, Outcome::Value(Ok(())));
    assert_eq!(kept.unwrap().0.name, "door");
    assert_eq!(log.lines(), [""; 0]);
    let problems = problems("::Kept");
    assert_eq!(problems.len(), 2);
    assert!(problems[0].ends_with("the body did not return the resource"));
    drop(leaked.map(ManuallyDrop::into_inner));
}

#[test]
fn a_task_whose_executor_ends_reports_the_clean_up_that_it_had_to_skip() {
    door_named!(ExecutorEnds);
    assert_eq!(problems("ExecutorEnds"), [""; 0]);
    let log = Log::default();
    let work = ByHand::new();
    let door = ExecutorEnds(Door::new("door", &log));
    let running =
        Connected::with_env(task(using(door, async |_| checkpoint().await)), Env::from(work.clone())).start();
    assert!(work.run_one());
    work.drop_all();
    assert_eq!(running.outcome(), Outcome::Stopped);
    assert_eq!(log.lines(), [""; 0]);
    assert_eq!(problems("ExecutorEnds").len(), 1);
}

#[test]
fn a_foreign_join_that_is_stopped_waits_for_the_close_of_its_slower_branch() {
    // Such a join knows nothing of stops. Without the hold it would be dropped when its first branch has
    // stopped.
    door_named!(SlowerBranch);
    assert_eq!(problems("SlowerBranch"), [""; 0]);
    let log = Log::default();
    let outcome = asked_to_stop(async {
        let mut quick = pin!(using(Gate(log.clone()), async |_| checkpoint().await));
        let mut slow = pin!(using(SlowerBranch(Door::new("door", &log)), async |_| checkpoint().await));
        std::future::poll_fn(|cx| {
            let _ = slow.as_mut().poll(cx);
            quick.as_mut().poll(cx)
        })
        .await;
    });
    assert_eq!(outcome, Outcome::Stopped);
    let lines = ["door closes: was stopped (enough)", "gate closes: was stopped (enough)", "door closed"];
    assert_eq!(log.lines(), lines);
    assert_eq!(problems("SlowerBranch"), [""; 0]);
}
