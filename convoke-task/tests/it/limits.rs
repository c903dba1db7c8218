//! Deadlines and shields of parts of a task, with a manual clock.
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use convoke::env::Changes;
use convoke::env::current;
use convoke::executor::reschedule;
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::task::Task;
use convoke::task::stopped;
use convoke::testing::{Clockwork, Connected};
use convoke::time::{stop_after, timeout_at};

use crate::doors::{Door, Ledger, outcome_of};

const HOUR: Duration = Duration::from_secs(3600);
const SECOND: Duration = Duration::from_secs(1);

/// Runs a program on a manual clock, advances the clock, and returns the outcome, which must be there then.
fn after<F: Future<Output: Send> + Send + 'static>(
    clock: &Clockwork,
    duration: Duration,
    program: F,
) -> Outcome<F::Output> {
    let running = Connected::with_env(task(program), Env::from(clock.clone())).start();
    clock.advance(duration);
    running.outcome()
}

/// Returns the time of the clock.
async fn clock_now() -> Instant {
    convoke::time::now()
}

#[test]
fn a_body_that_is_in_time_has_its_value_and_leaves_no_timer_behind() {
    let clock = Clockwork::new();
    let ended = after(&clock, SECOND, async {
        let at_once = timeout(HOUR, async { 1 }).await;
        let later = timeout(HOUR, sleep(SECOND).then(|()| 2)).await;
        (at_once, later, stop_after(HOUR, async { 3 }).await)
    });
    assert_eq!(ended, Outcome::Value((Ok(1), Ok(2), 3)));
    assert_eq!(clock.advance(2 * HOUR), 0, "nothing waits for the clock any more");
}

#[test]
fn when_the_time_is_up_the_body_cleans_up_before_the_error_is_returned() {
    let clock = Clockwork::new();
    let ledger = Ledger::default();
    let waits = ledger.clone();
    let at = clock.now() + SECOND;
    let ended = after(&clock, SECOND, async move {
        let elapsed = timeout(SECOND, waits.clone().waits::<()>()).await;
        waits.assert_drained("before the error is there");
        elapsed.map_err(|elapsed| elapsed.deadline())
    });
    assert_eq!(ended, Outcome::Value(Err(at)));
    assert_eq!(ledger.begun(), 1);
    ledger.assert_reasons(StopReason::Deadline);
}

#[test]
fn not_before_its_time() {
    let clock = Clockwork::new();
    let running = Connected::with_env(task(timeout(SECOND, never::<()>())), Env::from(clock.clone())).start();
    clock.advance(SECOND - Duration::from_nanos(1));
    assert!(!running.is_complete());
    clock.advance(Duration::from_nanos(1));
    assert!(matches!(running.outcome(), Outcome::Value(Err(_))));
}

#[test]
fn a_value_that_comes_when_the_time_is_up_wins() {
    let clock = Clockwork::new();
    let ended = after(&clock, HOUR, async {
        timeout(SECOND, async {
            let caught = catch_stopped(async { never::<()>().await }).await;
            caught.unwrap_err().reason()
        })
        .await
    });
    assert_eq!(ended, Outcome::Value(Ok(Some(StopReason::Deadline))));
}

#[test]
fn every_other_door_goes_through_a_timeout_as_it_is() {
    assert_eq!(
        outcome_of(async { timeout(HOUR, crate::doors::ends_by(Door::Error, 1, 0)).await.unwrap() }),
        Outcome::Value(Err("error 0".to_owned()))
    );
    assert_eq!(outcome_of(async { timeout(HOUR, stopped()).await.is_ok() }), Outcome::Stopped);
    let ended = outcome_of(async { timeout(HOUR, crate::doors::ends_by(Door::Panic, 1, 0)).await.is_ok() });
    assert!(matches!(ended, Outcome::Panicked(panic) if panic.message() == "panic 0"));
}

#[test]
fn stop_after_stops_the_task_that_awaits_it() {
    let clock = Clockwork::new();
    let ledger = Ledger::default();
    let waits = ledger.clone();
    let ended = after(&clock, SECOND, async move {
        let caught = catch_stopped(stop_after(SECOND, waits.waits::<()>())).await;
        assert_eq!(caught.unwrap_err().reason(), None, "the one around was not asked");
        stop_after(Duration::ZERO, checkpoint()).await;
        unreachable!("not resumed");
    });
    assert_eq!(ended, Outcome::<()>::Stopped);
    ledger.assert_drained("stop_after");
}

#[test]
fn the_nearest_deadline_is_seen_inside_by_functions_senders_and_tasks() {
    let clock = Clockwork::new();
    let start = clock.now();
    type Seen = Vec<Option<Instant>>;
    async fn observe() -> Seen {
        let sender = read_env(|env| env.stop().deadline()).starts_on(&current::executor());
        vec![
            current::deadline(),
            current::stop_token().deadline(),
            sender.await,
            task(async { current::deadline() }).await,
            scope(async |s| s.spawn_future(async { current::deadline() }).await).await,
            local_scope(async |s| s.spawn_future(async { current::deadline() }).await).await,
            join((async { current::deadline() }, async {})).await.0,
        ]
    }
    let ended = after(&clock, Duration::ZERO, async move {
        let outer = timeout(HOUR, observe()).await.unwrap();
        let inner_nearer = timeout(HOUR, timeout(SECOND, observe())).await.unwrap().unwrap();
        let outer_nearer = timeout(SECOND, timeout(HOUR, observe())).await.unwrap().unwrap();
        let absolute = timeout_at(start + SECOND, stop_after(HOUR, observe())).await.unwrap();
        let shielded = timeout(SECOND, shield(observe())).await.unwrap();
        let far = timeout(Duration::MAX, observe()).await.unwrap();
        [outer, inner_nearer, outer_nearer, absolute, shielded, far]
    });
    let (near, far) = (Some(start + SECOND), Some(start + HOUR));
    for (seen, expected) in ended.unwrap().into_iter().zip([far, near, near, near, None, None]) {
        assert_eq!(seen, vec![expected; 7]);
    }
}

#[test]
fn of_nested_deadlines_the_one_that_passes_first_has_the_error() {
    for (outer, inner) in [(1, 2), (2, 1), (1, 1)] {
        let clock = Clockwork::new();
        let ended = after(&clock, HOUR, async move {
            let inside = timeout(inner * SECOND, never::<()>());
            timeout(outer * SECOND, async { inside.await.is_err() }).await.is_err()
        });
        // Of two deadlines at the same instant, the outer one counts.
        assert_eq!(ended, Outcome::Value(outer <= inner), "{outer} around {inner}");
    }
}

#[test]
fn of_deadlines_that_have_both_passed_the_nearest_has_the_error() {
    for (outer, inner) in [(1, 2), (2, 1), (1, 1)] {
        let clock = Clockwork::new();
        let start = clock.now();
        clock.advance(HOUR);
        let late = task(async move {
            let inside = timeout_at(start + inner * SECOND, never::<()>());
            timeout_at(start + outer * SECOND, async { inside.await.is_err() }).await.is_err()
        });
        let running = Connected::with_env(late, Env::from(clock.clone())).start();
        clock.run_ready();
        assert_eq!(running.outcome(), Outcome::Value(outer <= inner), "{outer} around {inner}");
    }
}

#[test]
fn a_deadline_that_has_passed_begins_the_body_with_the_request_made() {
    let clock = Clockwork::new();
    let past = clock.now();
    clock.advance(SECOND);
    let ended = after(&clock, Duration::ZERO, async move {
        let seen = timeout_at(past, async { current::stop_reason() }).await;
        let stopped = timeout_at(past, checkpoint()).await;
        (seen, stopped.is_err())
    });
    assert_eq!(ended, Outcome::Value((Ok(Some(StopReason::Deadline)), true)));
}

#[test]
fn a_while_is_counted_from_the_first_poll() {
    let clock = Clockwork::new();
    let start = clock.now();
    let ended = after(&clock, HOUR, async move {
        let later = timeout(SECOND, never::<()>());
        sleep(SECOND).await;
        later.await.map_err(|elapsed| elapsed.deadline().duration_since(start))
    });
    assert_eq!(ended, Outcome::Value(Err(2 * SECOND)));
}

#[test]
fn a_stop_from_around_goes_through_a_timeout_and_not_through_a_shield() {
    for stop_at in 0..4 {
        let ledger = Ledger::default();
        let (waits, log) = (ledger.clone(), Arc::new(Mutex::new(Vec::new())));
        let lines = log.clone();
        let source = StopSource::new();
        let asks = source.clone();
        let program: Task<_> = task(async move {
            let asking = async {
                for _ in 0..stop_at {
                    checkpoint().await;
                }
                asks.request_stop(StopReason::Shutdown);
            };
            let shielded = shield(async {
                for _ in 0..6 {
                    checkpoint().await;
                }
                lines.lock().unwrap().push("shielded");
                current::stop_reason()
            });
            let (_, _, elapsed) = join((asking, shielded, timeout(HOUR, waits.waits::<()>()))).await;
            unreachable!("not resumed: {elapsed:?}");
        });
        let ended: Outcome<()> = sync_wait_with(Changes::new().stop_token(source.token()), program);
        assert_eq!(ended, Outcome::Stopped, "at {stop_at}");
        assert_eq!(*log.lock().unwrap(), ["shielded"]);
        ledger.assert_drained("from around");
        ledger.assert_reasons(StopReason::Shutdown);
    }
}

#[test]
fn a_shield_hides_the_request_and_what_follows_it_is_stopped() {
    let source = StopSource::new();
    let asks = source.clone();
    let program = task(async move {
        asks.request_stop(StopReason::Requested);
        let inside = shield(async {
            checkpoint().await;
            schedule(&current::executor()).await;
            current::stop_reason()
        })
        .await;
        assert_eq!(inside, None);
        assert_eq!(current::stop_reason(), Some(StopReason::Requested));
        checkpoint().await;
        unreachable!("not resumed");
    });
    let ended: Outcome<()> = sync_wait_with(Changes::new().stop_token(source.token()), program);
    assert_eq!(ended, Outcome::Stopped);
}

/// Checks the stop reason at the start, after one second, and after two.
async fn looks_twice() -> [Option<StopReason>; 2] {
    let mut seen = [None; 2];
    for reason in &mut seen {
        _ = catch_stopped(sleep(SECOND)).await;
        *reason = current::stop_reason();
    }
    seen
}

#[test]
fn a_shield_with_a_grace_period_lets_the_stop_through_when_that_is_over() {
    let clock = Clockwork::new();
    let ended = after(&clock, HOUR, async {
        let mut seen = Vec::new();
        for period in [3 * SECOND, SECOND + SECOND / 2, SECOND / 2, Duration::ZERO, Duration::MAX] {
            let begun = clock_now().await;
            let graced = shield(looks_twice()).grace(period);
            let ended = timeout(Duration::ZERO, graced).await.unwrap();
            seen.push((ended, clock_now().await - begun));
        }
        seen
    });
    let asked = Some(StopReason::Deadline);
    assert_eq!(
        ended.unwrap(),
        [
            ([None, None], 2 * SECOND),
            ([None, asked], SECOND + SECOND / 2),
            ([asked, asked], SECOND / 2),
            ([asked, asked], Duration::ZERO),
            ([None, None], 2 * SECOND),
        ]
    );
}

#[test]
fn what_outlasts_its_grace_period_is_stopped_and_cleans_up() {
    let clock = Clockwork::new();
    let ledger = Ledger::default();
    let waits = ledger.clone();
    let ended = after(&clock, 3 * SECOND, async move {
        let begun = clock_now().await;
        let graced = shield(waits.waits::<()>()).grace(2 * SECOND);
        let elapsed = timeout(SECOND, graced).await.is_err();
        (elapsed, clock_now().await - begun)
    });
    assert_eq!(ended, Outcome::Value((true, 3 * SECOND)));
    ledger.assert_drained("when the grace period is over");
    ledger.assert_reasons(StopReason::Deadline);
    assert_eq!(clock.advance(2 * HOUR), 0, "nothing waits for the clock any more");
}

#[test]
fn the_deadline_in_a_grace_period_is_that_much_later() {
    let clock = Clockwork::new();
    let at = clock.now() + SECOND;
    let ended = after(&clock, SECOND, async move {
        let observe = || async { current::deadline() };
        let none = shield(observe()).grace(SECOND).await;
        let later = timeout_at(at, async { shield(observe()).grace(2 * SECOND).await }).await.unwrap();
        (none, later)
    });
    assert_eq!(ended, Outcome::Value((None, Some(at + 2 * SECOND))));
}

#[test]
fn timeouts_in_a_vector_wake_only_their_own_branch() {
    let clock = Clockwork::new();
    let ended = after(&clock, HOUR, async {
        let late = 10 * SECOND + SECOND / 2;
        join((1..=20).map(|n| timeout(n * SECOND, sleep(late))).collect::<Vec<_>>()).await
    });
    let in_time: Vec<_> = ended.unwrap().iter().map(Result::is_ok).collect();
    assert_eq!(in_time, [[false; 10], [true; 10]].concat());
}

#[test]
fn an_alarm_outlives_the_executor_that_it_was_armed_on() {
    let clock = Clockwork::new();
    let pool = ThreadPool::new(1).unwrap();
    let executor = pool.executor();
    let ends = clock.clone();
    let moved = async move {
        reschedule(&executor).await.unwrap();
        ends.close();
        never::<()>().await
    };
    let at = Instant::now() + Duration::from_millis(5);
    let running = Connected::with_env(task(timeout_at(at, moved)), Env::from(clock.clone())).start();
    clock.run_ready();
    // The timers of the manual clock have ended; those of the process go on. It ends on the pool.
    assert!(matches!(running.wait(), Outcome::Value(Err(_))));
}

#[test]
fn deadlines_are_kept_on_loops_and_pools() {
    let pool = ThreadPool::new(2).unwrap();
    let program = || {
        task(async {
            let start = Instant::now();
            let elapsed = timeout(Duration::from_millis(3), never::<()>()).await;
            elapsed.is_err() && start.elapsed() >= Duration::from_millis(3)
        })
    };
    assert_eq!(sync_wait(program()), Outcome::Value(true));
    assert_eq!(sync_wait(program().starts_on(&pool.executor())), Outcome::Value(true));
}

#[test]
fn many_alarms_race_their_bodies_on_a_pool() {
    const ALARMS: u64 = if cfg!(miri) { 20 } else { 400 };
    let pool = ThreadPool::new(2).unwrap();
    let both = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let seen = both.clone();
    let program = task(async move {
        scope(async |s| {
            for n in 0..ALARMS {
                let seen = seen.clone();
                s.spawn(async move {
                    let while_ = Duration::from_micros(n % 40);
                    let ended = timeout(while_, sleep(Duration::from_micros(20))).await;
                    seen[usize::from(ended.is_ok())].fetch_add(1, Ordering::Relaxed);
                });
            }
        })
        .await;
    });
    assert_eq!(sync_wait(program.starts_on(&pool.executor())), Outcome::Value(()));
    let ended = both[0].load(Ordering::Relaxed) + both[1].load(Ordering::Relaxed);
    assert_eq!(ended as u64, ALARMS);
}
