//! Tests that run on a stage: time that jumps, reports of hangs, leaks.
use std::future::Future;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use convoke::prelude::*;
use convoke::run_on;
use convoke::sender::prelude::*;
use convoke::sync::{Event, Semaphore, mpsc};
use convoke::task::stopped;
use convoke::testing::{self, DropCount, Play, Stage, wait_all_blocked};
use convoke::time::now;
use convoke::time::sleep_until;

/// Returns the message of a test that fails.
fn complaint<F: Future<Output: std::fmt::Debug> + 'static>(play: Play, body: F) -> String {
    let failed = Panic::catch(|| play.run(body)).expect_err("it should fail");
    failed.message().to_owned()
}

/// Leaks a value, where a leak checker still sees it.
fn leak(forgotten: impl Send + 'static) {
    static LEAKED: Mutex<Vec<Box<dyn Send>>> = Mutex::new(Vec::new());
    LEAKED.lock().unwrap().push(Box::new(forgotten));
}

#[test]
fn days_pass_at_once_and_all_limits_of_time_follow_the_clock() {
    let begin = Instant::now();
    testing::run(async {
        let day = Duration::from_secs(86_400);
        sleep(day).await;
        assert_eq!(testing::elapsed(), day);
        assert!(timeout(day, sleep(2 * day)).await.is_err());
        assert_eq!(testing::elapsed(), 2 * day);
        let at = now() + day;
        sleep_until(at).await;
        assert_eq!(now(), at);
        assert!(convoke::time::timeout_at(at + day, never::<()>()).await.is_err());
        assert_eq!(testing::elapsed(), 4 * day);
    });
    assert!(begin.elapsed() < Duration::from_secs(86_400));
}

#[test]
fn intervals_tick_by_the_clock() {
    testing::run(async {
        let hour = Duration::from_secs(3600);
        let mut ticks = convoke::time::interval(hour);
        for n in 0..5 {
            ticks.tick().await;
            assert_eq!(testing::elapsed(), n * hour);
            // Slow work does not delay the next tick.
            sleep(hour / 3).await;
        }
    });
}

#[test]
fn attempts_and_their_waits_follow_the_clock() {
    use convoke::retry::{Backoff, retry};
    testing::run(async {
        let mut at = Vec::new();
        let schedule = Backoff::exponential(Duration::from_secs(1)).jitter(0.0).up_to(3);
        let result = retry(schedule, || {
            at.push(testing::elapsed().as_secs());
            async { Err::<(), _>("no") }
        })
        .await;
        assert!(result.is_err());
        assert_eq!(at, [0, 1, 3, 7]);
    });
}

#[test]
fn time_stands_still_while_there_is_something_to_do() {
    testing::run(async {
        scope(async |s| {
            s.spawn(async { sleep(Duration::from_nanos(1)).await });
            for _ in 0..if cfg!(miri) { 20 } else { 1000 } {
                checkpoint().await;
            }
            assert_eq!(testing::elapsed(), Duration::ZERO);
        })
        .await;
    });
}

#[test]
fn a_body_that_is_not_send_runs_and_what_it_returns_is_returned() {
    let shared = Rc::new(41);
    let result: Result<u32, String> = testing::run(async move {
        checkpoint().await;
        Ok(*shared + 1)
    });
    assert_eq!(result, Ok(42));
    assert_eq!(testing::run(async { Err::<(), _>("no") }), Err("no"));
}

#[test]
fn a_test_that_hangs_ends_with_the_tree_of_its_tasks_and_says_why() {
    let says = complaint(Play::new().name("philosophers"), async {
        let forks = Arc::new((Semaphore::new(1), Semaphore::new(1)));
        scope(async |s| {
            let other = forks.clone();
            s.named("left-handed").spawn(async move {
                let _fork = other.0.acquire().await;
                checkpoint().await;
                drop(other.1.acquire().await);
            });
            let _fork = forks.1.acquire().await;
            checkpoint().await;
            drop(forks.0.acquire().await);
        })
        .await;
    });
    assert!(says.starts_with("the test hangs: nothing is queued, no timer is set"), "{says}");
    assert!(says.contains("`philosophers`") && says.contains("└─ `left-handed`"), "{says}");
    let (tree, reason) = says.split_once("deadlock: ").unwrap_or_else(|| panic!("nobody says why: {says}"));
    assert_eq!(tree.matches("waits at ").count(), 2, "{says}");
    assert!(reason.starts_with("2 tasks wait for each other"), "{says}");
}

#[test]
fn a_test_that_hangs_is_asked_to_stop_and_cleans_up() {
    let closed = DropCount::new();
    let token = closed.token();
    complaint(Play::new(), async move {
        let _token = token;
        never::<()>().await
    });
    assert_eq!(closed.dropped(), 1);
}

#[test]
fn a_test_that_cannot_be_stopped_either_stays_where_it_is() {
    let closed = DropCount::new();
    let token = closed.token();
    let says = complaint(Play::new(), async move {
        let _token = token;
        never::<()>().unstoppable().await
    });
    assert!(says.contains("hangs"), "{says}");
    assert_eq!(closed.dropped(), 0, "others may point into it");
}

#[test]
fn a_panic_goes_on_and_a_stop_is_no_value() {
    assert_eq!(complaint(Play::new(), async { panic!("of the body") }), "of the body");
    let says = complaint(Play::new(), async { stopped().await });
    assert!(says.contains("was stopped, so it has nothing to return"), "{says}");
    let source = StopSource::new();
    source.request_stop(StopReason::Requested);
    let says = complaint(Play::new().stop_token(source.token()), async { checkpoint().await });
    assert!(says.contains("was stopped, so it has nothing to return"), "{says}");
}

#[test]
fn a_test_that_never_ends_is_told_so() {
    let says = complaint(Play::new(), async {
        loop {
            checkpoint().await;
        }
    });
    assert!(says.contains("still runs after"), "{says}");
}

/// Opens a scope with a child that waits, and forgets it.
async fn leave_a_child_behind() {
    let mut opened = Box::pin(scope(async |s| {
        s.named("forgotten").spawn(async { never::<()>().await });
        std::future::pending::<()>().await
    }));
    std::future::poll_fn(|cx| {
        assert!(opened.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
    checkpoint().await;
    leak(opened);
}

#[test]
fn a_task_that_is_left_behind_is_named() {
    let says = complaint(Play::new(), leave_a_child_behind());
    assert!(says.contains("it left tasks behind:\n`forgotten`"), "{says}");
    assert!(says.contains("were not freed"), "{says}");
    Play::new().without_leak_check().run(leave_a_child_behind());
}

#[test]
fn a_chain_that_was_launched_beside_the_test_and_forgotten_is_named() {
    let says = complaint(Play::new(), async {
        let stage = Stage::current().unwrap();
        leak(launch(&stage).name("beside").start(async { never::<()>().await }));
        checkpoint().await;
    });
    assert!(says.contains("it left tasks behind:\n`beside`"), "{says}");
}

#[test]
fn an_operation_that_is_left_behind_is_found() {
    let says = complaint(Play::new(), async {
        let mut sleeps = Box::pin(timeout(Duration::from_secs(1), std::future::pending::<()>()));
        std::future::poll_fn(|cx| {
            assert!(sleeps.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        leak(sleeps);
    });
    assert!(says.contains("an operation behind that waits for a timer"), "{says}");
}

#[test]
fn all_who_can_go_on_have_gone_on_when_all_are_blocked() {
    testing::run(async {
        scope(async |s| {
            let (sender, mut receiver) = mpsc::channel(10);
            for n in 0..3 {
                let sender = sender.clone();
                s.spawn(async move {
                    for _ in 0..n {
                        checkpoint().await;
                    }
                    sender.send(n).await.unwrap();
                    sleep(Duration::from_secs(1)).await;
                    sender.send(n).await.unwrap();
                });
            }
            assert_eq!(receiver.len(), 0);
            wait_all_blocked().await;
            assert_eq!(receiver.len(), 3);
            assert_eq!(testing::elapsed(), Duration::ZERO, "before time jumps");
            drop(sender);
            while receiver.recv().await.is_some() {}
        })
        .await;
    });
}

#[test]
fn of_several_who_wait_until_all_are_blocked_one_at_a_time_goes_on() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = order.clone();
    testing::run(async move {
        scope(async |s| {
            for n in 0..3 {
                let seen = seen.clone();
                s.spawn(async move {
                    wait_all_blocked().await;
                    seen.lock().unwrap().push((n, "first"));
                    checkpoint().await;
                    seen.lock().unwrap().push((n, "then"));
                });
            }
        })
        .await;
    });
    let expected = [(0, "first"), (0, "then"), (1, "first"), (1, "then"), (2, "first"), (2, "then")];
    assert_eq!(*order.lock().unwrap(), expected);
}

#[test]
fn one_who_waits_until_all_are_blocked_can_be_stopped_and_dropped() {
    testing::run(async {
        let stopped = race((async { wait_all_blocked().await }, async { checkpoint().await })).await;
        assert_eq!(stopped, ());
        // The stopped one does not count any more: the next one is released.
        wait_all_blocked().await;
    });
}

#[test]
#[should_panic(expected = "outside a test that runs on a `Stage`")]
fn outside_of_a_test_nobody_knows_whether_all_are_blocked() {
    sync_wait(task(async { wait_all_blocked().await })).unwrap();
}

#[test]
fn tasks_on_other_threads_are_waited_for() {
    // Covers the way to the pool and back, on which the tree does not show the task.
    Play::new().patience(Duration::from_secs(100)).run(async {
        let pool = ThreadPool::new(1).unwrap();
        let executor = pool.executor();
        let there = run_on(&executor, async {
            for _ in 0..if cfg!(miri) { 10 } else { 100 } {
                checkpoint().await;
            }
            std::thread::current().id()
        })
        .await;
        assert_ne!(there, std::thread::current().id());
    });
}

#[test]
fn patience_waits_for_a_thread_before_time_jumps() {
    let play = Play::new().patience(Duration::from_secs(100));
    play.run(async {
        let event = Arc::new(Event::new());
        let sets = event.clone();
        let thread = std::thread::spawn(move || sets.set());
        assert!(timeout(Duration::from_secs(1), event.wait()).await.is_ok());
        thread.join().unwrap();
    });
}
