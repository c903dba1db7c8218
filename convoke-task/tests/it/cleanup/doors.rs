//! However a body ends, its frame is dropped, and then its resource is closed.

use convoke::env::Changes;
use convoke::prelude::*;
use convoke::scope::BodyOutput;
use convoke::sender::prelude::*;
use convoke::task::stopped;

use crate::cleanup::resources::*;

#[test]
fn a_returned_value_closes() {
    let log = Log::default();
    let outcome = sync_wait(task(async {
        using(Door::new("door", &log), async |door| {
            let _frame = Frame(door.log.clone());
            checkpoint().await;
            7
        })
        .await
    }));
    assert_eq!(outcome, Outcome::Value(Ok(7)));
    assert_eq!(log.lines(), ["frame dropped", "door closes: returned a value", "door closed"]);
}

#[test]
fn an_error_by_question_mark_closes_and_is_returned() {
    let log = Log::default();
    let outcome = sync_wait(task(async {
        using(Door::new("door", &log), async |_door| -> Result<u32, Refused> {
            let _frame = Frame(log.clone());
            Err(Refused("body"))?;
            Ok(1)
        })
        .await
    }));
    assert_eq!(outcome, Outcome::Value(Err(Refused("body"))));
    assert_eq!(log.lines(), ["frame dropped", "door closes: failed", "door closed"]);
}

#[test]
fn a_stop_drops_the_frame_then_closes_and_goes_on_as_a_stop() {
    let log = Log::default();
    let outcome = asked_to_stop(async {
        using(Door::new("door", &log), async |_door| {
            let _frame = Frame(log.clone());
            checkpoint().await;
            log.add("not reached");
        })
        .await
    });
    assert_eq!(outcome, Outcome::Stopped);
    assert_eq!(log.lines(), ["frame dropped", "door closes: was stopped (enough)", "door closed"]);
}

#[test]
fn a_body_that_stops_by_itself_closes_without_a_reason() {
    let log = Log::default();
    let outcome = sync_wait(task(async {
        let caught = catch_stopped(using(Gate(log.clone()), async |_gate| stopped().await)).await;
        caught.is_err()
    }));
    assert_eq!(outcome, Outcome::Value(true));
    assert_eq!(log.lines(), ["gate closes: stopped by itself"]);
}

#[test]
fn a_panic_drops_the_frame_then_closes_and_goes_on_as_a_panic() {
    let log = Log::default();
    let outcome = caught(async {
        using(Door::new("door", &log), async |_door| -> Result<(), Refused> {
            let _frame = Frame(log.clone());
            checkpoint().await;
            panic!("boom")
        })
        .await
    });
    assert_eq!(outcome.unwrap_err(), "boom");
    assert_eq!(log.lines(), ["frame dropped", "door closes: panicked (boom)", "door closed"]);
}

#[test]
fn a_close_that_cannot_fail_leaves_the_value_as_it_is() {
    let log = Log::default();
    let outcome = sync_wait(task(async {
        struct Own(u32);
        impl BodyOutput for Own {}
        let Own(plain) = using(Gate(log.clone()), async |_| Own(7)).await;
        let own: Result<u32, Refused> = using(Gate(log.clone()), async |_| Err(Refused("body"))).await;
        (plain, own)
    }));
    assert_eq!(outcome, Outcome::Value((7, Err(Refused("body")))));
    assert_eq!(log.lines(), ["gate closes: returned a value", "gate closes: failed"]);
}

#[test]
fn none_from_the_body_rolls_back() {
    async fn halve(number: u32, log: &Log) -> Option<u32> {
        using(Gate(log.clone()), async |_| {
            checkpoint().await;
            let half = number.checked_rem(2).filter(|rest| *rest == 0).map(|_| number / 2)?;
            log.add("halved");
            Some(half)
        })
        .await
    }
    let log = Log::default();
    assert_eq!(sync_wait(task(halve(4, &log))), Outcome::Value(Some(2)));
    assert_eq!(sync_wait(task(halve(3, &log))), Outcome::Value(None));
    assert_eq!(log.lines(), ["halved", "gate closes: returned a value", "gate closes: failed"]);
}

#[test]
fn none_from_the_body_is_kept_beside_an_error_of_the_close() {
    let log = Log::default();
    let body = async |_| None::<u32>;
    let closed = sync_wait(task(using(Door::new("door", &log), body)));
    assert_eq!(closed, Outcome::Value(Ok(None)));
    let refused = sync_wait(task(using(Door::with("door", &log, Then::Fail), body)));
    assert_eq!(refused, Outcome::Value(Err(Refused("door"))));
    assert_eq!(log.lines(), ["door closes: failed", "door closed", "door closes: failed"]);
}

#[test]
fn a_type_of_ones_own_says_when_it_is_a_failure() {
    enum Reply {
        Accepted,
        Refused,
    }
    impl BodyOutput for Reply {
        fn is_failure(&self) -> bool {
            matches!(self, Self::Refused)
        }
    }
    let log = Log::default();
    let _ = sync_wait(task(using(Gate(log.clone()), async |_| Reply::Accepted)));
    let _ = sync_wait(task(using(Gate(log.clone()), async |_| Reply::Refused)));
    assert_eq!(log.lines(), ["gate closes: returned a value", "gate closes: failed"]);
}

#[test]
fn stop_during_close_still_closes() {
    let log = Log::default();
    let source = StopSource::new();
    let token = source.token();
    let outcome = sync_wait_with(
        Changes::new().stop_token(token),
        task(async {
            let clean_up = async |_: Exit| {
                checkpoint().await;
                source.request_stop(StopReason::Requested);
                assert!(!convoke::env::current::stop_requested());
                checkpoint().await;
                just(()).await;
                log.add("cleaned up");
            };
            let value = ensure(clean_up, async { 7 }).await;
            log.add(format!("went on with {value}"));
            checkpoint().await;
            unreachable!("the stop is heard again after the clean-up")
        }),
    );
    assert_eq!(outcome, Outcome::<()>::Stopped);
    assert_eq!(log.lines(), ["cleaned up", "went on with 7"]);
}

#[test]
fn ensure_runs_after_each_door() {
    let log = Log::default();
    let noted = || async |exit: Exit| log.add(exit.to_string());
    assert_eq!(sync_wait(task(ensure(noted(), async { 1 }))), Outcome::Value(1));
    let failing = ensure(noted(), async { Err::<(), _>("no") });
    assert_eq!(sync_wait(task(failing)), Outcome::Value(Err("no")));
    assert_eq!(sync_wait(task(ensure(noted(), async { None::<u32> }))), Outcome::Value(None));
    assert_eq!(asked_to_stop(ensure(noted(), async { checkpoint().await })), Outcome::Stopped);
    assert!(
        caught(ensure(noted(), async {
            if true {
                panic!("boom")
            }
        }))
        .is_err()
    );
    let seen = ["returned a value", "failed", "failed", "was stopped (enough)", "panicked (boom)"];
    assert_eq!(log.lines(), seen);
}

#[test]
fn nested_resources_unwind_inside_out_on_a_stop() {
    let log = Log::default();
    let outcome = asked_to_stop(async {
        using(Door::new("outer", &log), async |_| {
            using(Door::new("inner", &log), async |_| checkpoint().await).await
        })
        .await
    });
    assert_eq!(outcome, Outcome::Stopped);
    assert_eq!(
        log.lines(),
        [
            "inner closes: was stopped (enough)",
            "inner closed",
            "outer closes: was stopped (enough)",
            "outer closed"
        ]
    );
}

#[test]
fn a_loop_without_an_end_is_a_body_too() {
    let log = Log::default();
    let outcome = asked_to_stop(async {
        let _never = using(Door::new("door", &log), async |_| {
            loop {
                checkpoint().await;
            }
        })
        .await;
    });
    assert_eq!(outcome, Outcome::Stopped);
    assert_eq!(log.lines(), ["door closes: was stopped (enough)", "door closed"]);
}
