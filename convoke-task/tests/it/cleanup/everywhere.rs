//! Clean-up on a pool, with borrowed locals, and with a stop at every point.

use std::future::Future;
use std::pin::pin;

use convoke::cleanup::cleanups;
use convoke::env::Changes;
use convoke::prelude::*;
use convoke::sender::prelude::*;

use crate::cleanup::resources::*;

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
    // Two nested resources and a stack, with a stop before each poll.
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

#[test]
fn siblings_that_a_failure_stops_close_what_they_have_before_the_scope_ends() {
    let pool = ThreadPool::new(2).unwrap();
    let log = Log::default();
    let also = log.clone();
    let work = async move {
        let outcome = using(Door::new("outer", &also), async |_| {
            scope(async |s| {
                for _ in 0..10 {
                    let door = Door::new("child's", &also);
                    s.spawn(async move {
                        using(door, async |_| {
                            never::<()>().await;
                            Ok(())
                        })
                        .await
                    });
                }
                s.spawn(async { Err(Refused("child")) });
                Ok(())
            })
            .await
        })
        .await;
        also.add("after the scope");
        outcome
    };
    let outcome = sync_wait(task(work).starts_on(&pool.executor()));
    assert_eq!(outcome, Outcome::Value(Err(Refused("child"))));
    let lines = log.lines();
    assert_eq!(lines.iter().filter(|line| *line == "child's closed").count(), 10, "{lines:?}");
    assert_eq!(lines[lines.len() - 3..], ["outer closes: failed", "outer closed", "after the scope"]);
}
