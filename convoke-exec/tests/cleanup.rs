//! Clean-up: what a resource can rely on, by whichever door its user leaves.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Poll;

use convoke::env::Changes;
use convoke::prelude::*;
use convoke::{Never, Panic, cleanups, set_cleanup_hook};

/// What happened, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Says so when the frame it is in is dropped.
struct Frame(Log);

impl Drop for Frame {
    fn drop(&mut self) {
        self.0.add("frame dropped");
    }
}

#[derive(Debug, PartialEq)]
struct Refused(&'static str);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Refused {}

/// What its close does after a suspension.
#[derive(Clone, Copy)]
enum Then {
    Well,
    Fail,
    Panic,
    Stop,
}

struct Door {
    name: &'static str,
    log: Log,
    then: Then,
}

impl Door {
    fn new(name: &'static str, log: &Log) -> Self {
        Self::with(name, log, Then::Well)
    }

    fn with(name: &'static str, log: &Log, then: Then) -> Self {
        Self { name, log: log.clone(), then }
    }
}

impl AsyncClose for Door {
    type Error = Refused;

    async fn close(self, exit: Exit) -> Result<(), Refused> {
        self.log.add(format!("{} closes: {exit}", self.name));
        checkpoint().await;
        match self.then {
            Then::Well => {}
            Then::Fail => return Err(Refused(self.name)),
            Then::Panic => panic!("{} broke", self.name),
            Then::Stop => stopped().await,
        }
        self.log.add(format!("{} closed", self.name));
        Ok(())
    }
}

/// A resource whose close cannot fail.
struct Gate(Log);

impl AsyncClose for Gate {
    type Error = Never;

    async fn close(self, exit: Exit) -> Result<(), Never> {
        self.0.add(format!("gate closes: {exit}"));
        Ok(())
    }
}

/// A resource that borrows, as does its close.
struct Hatch<'a>(&'a Log);

impl AsyncClose for Hatch<'_> {
    type Error = Refused;

    async fn close(self, exit: Exit) -> Result<(), Refused> {
        checkpoint().await;
        self.0.add(format!("hatch closes: {exit}"));
        Ok(())
    }
}

/// All problems that were reported in this process. Tests look for their own, by the name of a type.
fn problems(of: &str) -> Vec<String> {
    static PROBLEMS: OnceLock<Log> = OnceLock::new();
    let problems = PROBLEMS.get_or_init(|| {
        let log = Log::default();
        let other = log.clone();
        set_cleanup_hook(move |problem| other.add(problem.to_string()));
        log
    });
    problems.lines().into_iter().filter(|line| line.contains(of)).collect()
}

/// A wrapper that gives a door a type of the test's own, to be found in reports.
macro_rules! door_named {
    ($name:ident) => {
        struct $name(Door);

        impl AsyncClose for $name {
            type Error = Refused;

            async fn close(self, exit: Exit) -> Result<(), Refused> {
                self.0.close(exit).await
            }
        }
    };
}

/// Runs a future in a task that was asked to stop before it began; honoured at its first checkpoint.
fn asked_to_stop<F: Future + Send>(future: F) -> Outcome<F::Output>
where
    F::Output: Send,
{
    let source = StopSource::new();
    source.request_stop(StopReason::Named("enough"));
    sync_wait_with(Changes::new().stop_token(source.token()), task(future))
}

/// The outcome, with a panic as an outcome too.
fn caught<F: Future + Send>(future: F) -> Result<Outcome<F::Output>, String>
where
    F::Output: Send,
{
    Panic::catch(|| sync_wait(task(future))).map_err(|panic| panic.message().to_owned())
}

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
    assert_eq!(log.lines(), ["frame dropped", "door closes: returned an error", "door closed"]);
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
        let caught = catch_stopped(using(Gate(log.clone()), async |_gate| stopped::<u32>().await)).await;
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
        let plain: u32 = using(Gate(log.clone()), async |_| 7_u32).await;
        let own: Result<u32, Refused> = using(Gate(log.clone()), async |_| Err(Refused("body"))).await;
        (plain, own)
    }));
    assert_eq!(outcome, Outcome::Value((7, Err(Refused("body")))));
    assert_eq!(log.lines(), ["gate closes: returned a value", "gate closes: returned an error"]);
}

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
    assert!(
        problems[0].ends_with("failed: door") && problems[0].contains("tests/cleanup.rs:"),
        "{problems:?}"
    );
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
    let after_a_stop = caught(using(door, async |_| stopped::<u32>().await));
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
                assert!(!convoke::current::stop_requested());
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
    assert_eq!(asked_to_stop(ensure(noted(), async { checkpoint().await })), Outcome::Stopped);
    assert!(
        caught(ensure(noted(), async {
            if true {
                panic!("boom")
            }
        }))
        .is_err()
    );
    let seen = ["returned a value", "returned an error", "was stopped (enough)", "panicked (boom)"];
    assert_eq!(log.lines(), seen);
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
    // The first that failed is `d`.
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
    let body = async |cleanups: convoke::Cleanups<'_, Refused>| -> Result<(), Refused> {
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

/// Polls once, in the task that runs, and then drops it: as a foreign `select!` does.
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
    assert!(
        skipped[0].contains("skipped: its future was dropped") && skipped[0].contains("tests/cleanup.rs")
    );
    let cut = problems("DroppedInClose");
    assert_eq!(cut.len(), 1);
    assert!(cut[0].contains("cut short"));
    let mut stack = problems("DroppedInStack");
    stack.sort();
    assert_eq!(stack.len(), 2);
    assert!(stack[0].contains("skipped") && stack[1].contains("cut short"), "{stack:?}");
}

#[test]
fn nothing_is_reported_if_the_body_never_started() {
    door_named!(NeverStarted);
    assert_eq!(problems("NeverStarted"), [""; 0]);
    let log = Log::default();
    drop(using(NeverStarted(Door::new("door", &log)), async |_| ()));
    assert_eq!(problems("NeverStarted"), [""; 0]);
    assert_eq!(log.lines(), [""; 0]);
}

#[test]
fn a_resource_that_the_body_keeps_is_reported_and_nobody_waits_for_it() {
    door_named!(Kept);
    assert_eq!(problems("::Kept"), [""; 0]);
    let log = Log::default();
    let mut kept = None;
    let outcome = sync_wait(task(async {
        using(Kept(Door::new("door", &log)), async |door| kept = Some(door)).await?;
        using(Kept(Door::new("leaked", &log)), async |door| std::mem::forget(door)).await?;
        Ok::<_, Refused>(())
    }));
    assert_eq!(outcome, Outcome::Value(Ok(())));
    assert_eq!(kept.unwrap().0.name, "door");
    assert_eq!(log.lines(), [""; 0]);
    let problems = problems("::Kept");
    assert_eq!(problems.len(), 2);
    assert!(problems[0].ends_with("the body has kept the resource"));
}

#[test]
fn a_resource_and_borrowed_locals_in_a_send_task_on_a_pool() {
    let pool = ThreadPool::new(2).unwrap();
    let log = Log::default();
    let executor = pool.executor();
    let work = async {
        let mut sum = 0;
        let words = ["one".to_owned(), "three".to_owned()];
        for word in &words {
            sum += using(Door::new("door", &log), async |mut door| {
                door.name = "renamed";
                checkpoint().await;
                schedule(&executor).await;
                Ok::<_, Refused>(word.len())
            })
            .await?;
        }
        cleanups(async |cleanups| {
            let _gate = cleanups.push(Gate(log.clone()));
            let _hatch = cleanups.push(Hatch(&log));
            using(Hatch(&log), async |hatch| hatch.0.add("hatch used")).await?;
            cleanups.ensure(async |_| log.add(words[0].as_str()));
            checkpoint().await;
            ensure(async |_| log.add(words[1].as_str()), async { checkpoint().await }).await;
            Ok::<_, Refused>(sum)
        })
        .await
    };
    let outcome = sync_wait(task(work).starts_on(&executor));
    assert_eq!(outcome, Outcome::Value(Ok(8)));
    assert_eq!(
        log.lines(),
        [
            "renamed closes: returned a value",
            "renamed closed",
            "renamed closes: returned a value",
            "renamed closed",
            "hatch used",
            "hatch closes: returned a value",
            "three",
            "one",
            "hatch closes: returned a value",
            "gate closes: returned a value"
        ]
    );
}

#[test]
fn a_stop_at_any_point_closes_everything_exactly_once() {
    // Two nested resources and a stack, and a stop before each of the polls that it takes.
    async fn program(log: &Log) -> Result<u32, Refused> {
        checkpoint().await;
        using(Door::new("outer", log), async |_| {
            log.add("outer opened");
            checkpoint().await;
            let sum = using(Door::new("inner", log), async |_| {
                log.add("inner opened");
                checkpoint().await;
                cleanups(async |cleanups| {
                    let _stacked = cleanups.push(Door::new("stacked", log));
                    log.add("stacked opened");
                    checkpoint().await;
                    Ok::<_, Refused>(1)
                })
                .await
            })
            .await?;
            checkpoint().await;
            Ok(sum + 1)
        })
        .await
    }

    let mut stopped_at = 0;
    for stop_at in 0.. {
        let log = Log::default();
        let source = StopSource::new();
        let token = source.token();
        let mut polls = 0;
        let outcome = sync_wait_with(
            Changes::new().stop_token(token),
            task(async {
                let mut program = pin!(program(&log));
                std::future::poll_fn(|cx| {
                    if polls == stop_at {
                        source.request_stop(StopReason::Requested);
                    }
                    polls += 1;
                    program.as_mut().poll(cx)
                })
                .await
            }),
        );
        let lines = log.lines();
        for name in ["outer", "inner", "stacked"] {
            let count =
                |what: &str| lines.iter().filter(|line| line.starts_with(&format!("{name} {what}"))).count();
            assert_eq!(count("closes"), count("opened"), "stopped at {stop_at}: {lines:?}");
            assert_eq!(count("closed"), count("opened"), "stopped at {stop_at}: {lines:?}");
        }
        match outcome {
            Outcome::Stopped => stopped_at += 1,
            outcome => assert_eq!(outcome, Outcome::Value(Ok(2))),
        }
        if polls <= stop_at {
            break;
        }
    }
    assert!(stopped_at >= 5, "{stopped_at}");
}
