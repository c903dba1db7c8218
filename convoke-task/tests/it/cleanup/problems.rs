//! Closes that fail, panic or stop, combined with each outcome of the body.

use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::task::stopped;

use crate::cleanup::resources::*;

#[test]
fn a_failed_close_is_the_outcome_of_a_body_that_was_fine() {
    let log = Log::default();
    #[derive(Debug, PartialEq)]
    struct Wider(&'static str);
    impl From<Refused> for Wider {
        fn from(error: Refused) -> Self {
            Self(error.0)
        }
    }
    let outcome = sync_wait(task(async {
        let plain = using(Door::with("door", &log, Then::Fail), async |_| 7).await;
        let wider = using(Door::with("door", &log, Then::Fail), async |_| Ok::<_, Wider>(7)).await;
        (plain, wider)
    }));
    assert_eq!(outcome, Outcome::Value((Err(Refused("door")), Err(Wider("door")))));
}

#[test]
fn a_failed_close_does_not_hide_the_error_of_the_body_and_both_are_reported() {
    door_named!(BothFail);
    assert_eq!(problems("BothFail"), [""; 0]);
    let log = Log::default();
    let door = BothFail(Door::with("door", &log, Then::Fail));
    let outcome = sync_wait(task(using(door, async |_| Err::<u32, _>(Refused("body")))));
    assert_eq!(outcome, Outcome::Value(Err(Refused("body"))));
    let problems = problems("BothFail");
    assert_eq!(problems.len(), 1);
    assert!(problems[0].ends_with("failed: door") && problems[0].contains("problems.rs:"), "{problems:?}");
}

#[test]
fn a_failed_close_after_a_stop_is_reported_and_the_stop_goes_on() {
    door_named!(FailAfterStop);
    assert_eq!(problems("FailAfterStop"), [""; 0]);
    let log = Log::default();
    let door = FailAfterStop(Door::with("door", &log, Then::Fail));
    let outcome = asked_to_stop(using(door, async |_| checkpoint().await));
    assert_eq!(outcome, Outcome::Stopped);
    assert_eq!(problems("FailAfterStop").len(), 1);
}

#[test]
fn a_failed_close_after_a_panic_is_reported_and_the_panic_goes_on() {
    door_named!(FailAfterPanic);
    assert_eq!(problems("FailAfterPanic"), [""; 0]);
    let log = Log::default();
    let door = FailAfterPanic(Door::with("door", &log, Then::Fail));
    let outcome = caught(using(door, async |_| -> () { panic!("boom") }));
    assert_eq!(outcome.unwrap_err(), "boom");
    assert_eq!(problems("FailAfterPanic").len(), 1);
}

#[test]
fn a_panic_in_close_goes_on_if_the_body_was_fine_or_stopped() {
    let log = Log::default();
    let fine = caught(using(Door::with("door", &log, Then::Panic), async |_| 7));
    assert_eq!(fine.unwrap_err(), "door broke");
    let door = Door::with("door", &log, Then::Panic);
    let after_a_stop = caught(using(door, async |_| stopped().await));
    assert_eq!(after_a_stop.unwrap_err(), "door broke");
}

#[test]
fn a_panic_in_close_does_not_hide_the_error_of_the_body() {
    door_named!(PanicAfterError);
    assert_eq!(problems("PanicAfterError"), [""; 0]);
    let log = Log::default();
    let door = PanicAfterError(Door::with("door", &log, Then::Panic));
    let outcome = caught(using(door, async |_| Err::<u32, _>(Refused("body"))));
    assert_eq!(outcome, Ok(Outcome::Value(Err(Refused("body")))));
    assert!(problems("PanicAfterError")[0].ends_with("panicked: door broke"));
}

#[test]
fn a_panic_in_close_while_panicking_is_reported_and_the_first_goes_on() {
    door_named!(PanicTwice);
    assert_eq!(problems("PanicTwice"), [""; 0]);
    let log = Log::default();
    let door = PanicTwice(Door::with("door", &log, Then::Panic));
    let outcome = caught(using(door, async |_| -> () { panic!("boom") }));
    assert_eq!(outcome.unwrap_err(), "boom");
    let problems = problems("PanicTwice");
    assert_eq!(problems.len(), 1);
    assert!(problems[0].ends_with("panicked: door broke"), "{problems:?}");
}

#[test]
fn a_close_that_stops_by_itself_changes_nothing_and_is_reported() {
    door_named!(StopsItself);
    assert_eq!(problems("StopsItself"), [""; 0]);
    let log = Log::default();
    let door = StopsItself(Door::with("door", &log, Then::Stop));
    assert_eq!(sync_wait(task(using(door, async |_| 7))), Outcome::Value(Ok(7)));
    assert_eq!(problems("StopsItself").len(), 1);
}

#[test]
fn a_clean_up_may_fail_too() {
    let outcome = sync_wait(task(async {
        let plain = ensure(async |_| Err::<(), _>(Refused("clean-up")), async { 1 }).await;
        let body = ensure(async |_| Ok::<_, Refused>(()), async { Err::<u32, _>(Refused("body")) }).await;
        (plain, body)
    }));
    assert_eq!(outcome, Outcome::Value((Err(Refused("clean-up")), Err(Refused("body")))));
}
