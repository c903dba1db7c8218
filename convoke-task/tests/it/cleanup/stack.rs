//! `cleanups`: many resources, closed in reverse order.

use convoke::cleanup::cleanups;
use convoke::prelude::*;
use convoke::sender::prelude::*;

use crate::cleanup::resources::*;

#[test]
fn a_stack_closes_in_reverse_order_and_each_in_spite_of_the_others() {
    door_named!(InAStack);
    assert_eq!(problems("InAStack"), [""; 0]);
    let log = Log::default();
    let outcome = sync_wait(task(cleanups(async |cleanups| {
        let _a = cleanups.push(Door::new("a", &log));
        let _b = cleanups.push(InAStack(Door::with("b", &log, Then::Fail)));
        let _c = cleanups.push(InAStack(Door::with("c", &log, Then::Stop)));
        let d = cleanups.push(Door::with("d", &log, Then::Fail));
        cleanups.ensure(async |exit| log.add(format!("the body {exit}")));
        checkpoint().await;
        Ok::<_, Refused>(d.name)
    })));
    // The first clean-up that fails is `d`.
    assert_eq!(outcome, Outcome::Value(Err(Refused("d"))));
    assert_eq!(
        log.lines(),
        [
            "the body returned a value",
            "d closes: returned a value",
            "c closes: returned a value",
            "b closes: returned a value",
            "a closes: returned a value",
            "a closed"
        ]
    );
    let problems = problems("InAStack");
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].ends_with("stopped by itself before it had ended"), "{problems:?}");
    assert!(problems[1].ends_with("failed: b"), "{problems:?}");
}

#[test]
fn a_panic_in_a_stack_goes_on_after_the_rest_was_closed() {
    door_named!(BesideAPanic);
    assert_eq!(problems("BesideAPanic"), [""; 0]);
    let log = Log::default();
    let outcome = caught(cleanups(async |cleanups| {
        let _a = cleanups.push(Door::new("a", &log));
        let _b = cleanups.push(Door::with("b", &log, Then::Panic));
        let _c = cleanups.push(BesideAPanic(Door::with("c", &log, Then::Fail)));
        Ok::<_, Refused>(())
    }));
    assert_eq!(outcome.unwrap_err(), "b broke");
    assert_eq!(log.lines().last().unwrap(), "a closed");
    assert_eq!(problems("BesideAPanic").len(), 1);
}

#[test]
fn a_stack_is_closed_after_a_stop_and_after_a_panic() {
    let log = Log::default();
    let body = async |cleanups: convoke::cleanup::Cleanups<'_, Refused>| -> Result<(), Refused> {
        let _a = cleanups.push(Door::new("a", &log));
        let _b = cleanups.push(Gate(log.clone()));
        checkpoint().await;
        panic!("boom")
    };
    assert_eq!(asked_to_stop(cleanups(&body)), Outcome::Stopped);
    assert_eq!(caught(cleanups(&body)).unwrap_err(), "boom");
    assert_eq!(
        log.lines(),
        [
            "gate closes: was stopped (enough)",
            "a closes: was stopped (enough)",
            "a closed",
            "gate closes: panicked (boom)",
            "a closes: panicked (boom)",
            "a closed"
        ]
    );
}
