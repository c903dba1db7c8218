//! Handles of every kind, and all that they do beside being awaited: they ask for a stop with a reason, hand out
//! stop handles, say if the child has ended, and return its outcome as a value.
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use convoke::executor::RunLoop;
use convoke::prelude::*;
use convoke::retry::Backoff;
use convoke::scope::policy::WaitForAll;
use convoke::scope::{Handle, StopHandle, blocking_scope, local_scope_not_send, scope_with};
use convoke::task::{forever, run_until_stopped, stopped};

const REASON: StopReason = StopReason::Named("a reason of the test's own");

/// Runs until it is stopped, and notes the reason that it sees.
async fn note_reason(seen: Arc<Mutex<Option<StopReason>>>) {
    let caught: Result<(), _> = catch_stopped(async { forever().await }).await;
    *seen.lock().unwrap() = caught.unwrap_err().reason();
    stopped().await
}

/// Asks a child of each kind to stop, through its handle or a stop handle of it; `$handle` is made in a body
/// that has `$seen`. Child and handle see the reason.
macro_rules! every_kind {
    ($($name:ident: |$seen:ident| $run:expr;)+) => { $(
        #[test]
        fn $name() {
            let $seen = Arc::new(Mutex::new(None));
            let noted = $seen.clone();
            let outcome: Outcome<Option<StopReason>> = $run;
            assert_eq!(outcome, Outcome::Value(Some(REASON)), "what `catch_stopped` sees");
            assert_eq!(*noted.lock().unwrap(), Some(REASON), "what the child sees");
        }
    )+ };
}

macro_rules! ask_and_catch {
    ($handle:expr) => {{
        let handle = $handle;
        checkpoint().await;
        assert!(!handle.is_finished());
        handle.request_stop(REASON);
        handle.request_stop(StopReason::Requested);
        let caught: Result<(), _> = catch_stopped(handle).await;
        caught.unwrap_err().reason()
    }};
}

every_kind! {
    a_child: |seen| block_on(async {
        scope(async |s| ask_and_catch!(s.spawn_future(note_reason(seen)))).await
    });
    a_local_child: |seen| block_on(async {
        scope(async |s| ask_and_catch!(s.child().local().spawn_future(note_reason(seen)))).await
    });
    a_child_elsewhere: |seen| {
        let pool = ThreadPool::new(1).unwrap();
        let there = pool.executor();
        block_on(async {
            scope(async |s| ask_and_catch!(s.child().on(&there).spawn_future(note_reason(seen)))).await
        })
    };
    a_child_of_a_local_scope: |seen| block_on(async {
        local_scope(async |s| ask_and_catch!(s.spawn_future(note_reason(seen)))).await
    });
    a_child_of_a_local_scope_that_is_not_send: |seen| block_on(async {
        local_scope_not_send(async |s| ask_and_catch!(s.spawn_future(note_reason(seen)))).await
    });
    a_child_of_a_scope_with_a_policy: |seen| block_on(async {
        let reason = Arc::new(Mutex::new(None));
        let put = reason.clone();
        let ended = scope_with(WaitForAll, async |s| {
            s.spawn(async { Ok::<(), ()>(()) });
            let caught = ask_and_catch!(s.spawn_future(note_reason(seen)));
            *put.lock().unwrap() = caught;
        })
        .await;
        assert!(ended.is_ok());
        drop(put);
        Arc::into_inner(reason).and_then(|reason| reason.into_inner().unwrap())
    });
    a_child_that_would_be_restarted: |seen| block_on(async {
        scope(async |s| {
            let child = s.child().restart(Backoff::constant(Duration::from_millis(1))).spawn_future(move || {
                let seen = seen.clone();
                async move {
                    note_reason(seen).await;
                    Err::<(), ()>(())
                }
            });
            checkpoint().await;
            child.request_stop(REASON);
            let caught = catch_stopped(child).await;
            caught.unwrap_err().reason()
        })
        .await
    });
    a_child_of_a_blocking_scope: |seen| {
        let pool = ThreadPool::new(1).unwrap();
        let waits = pool.executor();
        Outcome::Value(blocking_scope(&pool.executor(), |s| {
            let child = s.spawn_future(note_reason(seen));
            let asks = s.spawn_future(async move { ask_and_catch!(child) });
            let _ = waits;
            asks.wait().unwrap()
        }))
    };
    a_launched_chain: |seen| {
        let pool = ThreadPool::new(1).unwrap();
        let launched = launch(&pool.executor()).start(note_reason(seen));
        block_on(async move { ask_and_catch!(launched) })
    };
    a_launched_chain_that_is_asked_by_its_stop_handle: |seen| {
        let pool = ThreadPool::new(1).unwrap();
        let launched = launch(&pool.executor()).start(note_reason(seen));
        let stop = launched.stop_handle();
        block_on(async move {
            stop.request_stop(REASON);
            let caught: Result<(), _> = catch_stopped(launched).await;
            caught.unwrap_err().reason()
        })
    };
    a_child_that_is_asked_by_a_stop_handle_on_another_thread: |seen| block_on(async {
        scope(async |s| {
            let handle = s.child().local().spawn_future(note_reason(seen));
            let stop = handle.stop_handle();
            let again = stop.clone();
            thread::spawn(move || stop.request_stop(REASON)).join().unwrap();
            drop(again);
            let caught: Result<(), _> = catch_stopped(handle).await;
            caught.unwrap_err().reason()
        })
        .await
    });
    a_child_of_a_local_scope_that_is_asked_by_a_stop_handle: |seen| block_on(async {
        local_scope(async |s| {
            let handle = s.spawn_future(note_reason(seen));
            let stop = handle.stop_handle();
            checkpoint().await;
            thread::spawn(move || stop.request_stop(REASON)).join().unwrap();
            let caught: Result<(), _> = catch_stopped(handle).await;
            caught.unwrap_err().reason()
        })
        .await
    });
    a_child_behind_a_limit: |seen| block_on(async {
        scope(async |s| {
            let handle = s.spawn_future(note_reason(seen));
            handle.request_stop(REASON);
            // The reason goes through what is around the handle.
            let limited = async { timeout(Duration::from_secs(60), handle).await };
            catch_stopped(limited).await.unwrap_err().reason()
        })
        .await
    });
}

#[test]
fn a_child_that_its_scope_stopped_says_why_and_one_that_stopped_itself_does_not() {
    let outcome = block_on(async {
        scope(async |s| {
            let asked = s.spawn_future(async { forever().await });
            let by_itself = s.spawn_future(async { stopped().await });
            let by_itself: Result<(), Stopped> = catch_stopped(by_itself).await;
            s.request_stop(REASON);
            // A later request of the handle does not change the reason.
            asked.request_stop(StopReason::Requested);
            let asked: Result<(), Stopped> = catch_stopped(asked).await;
            (by_itself.unwrap_err().reason(), asked.unwrap_err().reason())
        })
        .await
    });
    assert_eq!(outcome, Outcome::Value((None, Some(REASON))));
}

#[test]
fn a_reason_that_was_caught_is_not_that_of_the_next_stop() {
    let outcome = block_on(async {
        scope(async |s| {
            let child = s.spawn_future(async { forever().await });
            child.request_stop(REASON);
            let first: Result<(), Stopped> = catch_stopped(child).await;
            let second: Result<(), Stopped> = catch_stopped(async { stopped().await }).await;
            (first.unwrap_err().reason(), second.unwrap_err().reason())
        })
        .await
    });
    assert_eq!(outcome, Outcome::Value((Some(REASON), None)));
}

/// Sets a counter when it is dropped.
struct Leaves(Arc<AtomicUsize>);

impl Drop for Leaves {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_stop_handle_keeps_neither_the_task_nor_its_result() {
    let (count, stops) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::<StopHandle>::new())));
    let (counted, kept) = (count.clone(), stops.clone());
    let outcome = block_on(async move {
        scope(async |s| {
            // A result that nothing awaits.
            let returns = Leaves(counted.clone());
            let ended = s.spawn_future(async move { returns });
            kept.lock().unwrap().push(ended.stop_handle());
            checkpoint().await;
            assert!(ended.is_finished());
            drop(ended);
            assert_eq!(counted.load(Ordering::Relaxed), 1, "the result is dropped with the handle");
            // A child that runs.
            let inside = Leaves(counted.clone());
            let runs = s.spawn_future(async move {
                let _inside = inside;
                forever().await
            });
            kept.lock().unwrap().push(runs.stop_handle());
            drop::<Handle<()>>(runs);
        })
        .await;
    });
    assert_eq!(outcome, Outcome::Value(()));
    assert_eq!(count.load(Ordering::Relaxed), 2, "the child was stopped when its handle was dropped");
    // After the end a request has no effect.
    for stop in stops.lock().unwrap().drain(..) {
        stop.request_stop(REASON);
    }
}

#[test]
fn an_outcome_is_a_value_for_each_door() {
    let outcome = block_on(async {
        scope(async |s| {
            let value = s.spawn_future(async { 7 }).outcome().await;
            let panicked = s.child().local().spawn_future(async { panic!("seven") }).outcome().await;
            let stops = s.spawn_future(async { forever().await });
            stops.request_stop(REASON);
            let stopped: Outcome<()> = stops.outcome().await;
            let panicked: Outcome<()> = panicked;
            (
                value,
                matches!(panicked, Outcome::Panicked(panic) if panic.message().contains("seven")),
                stopped,
            )
        })
        .await
    });
    assert_eq!(outcome, Outcome::Value((Outcome::Value(7), true, Outcome::Stopped)));
}

#[test]
fn an_outcome_of_a_child_of_a_local_scope_is_a_value_for_each_door() {
    let outcome = block_on(async {
        local_scope(async |s| {
            let value = s.spawn_future(async { 7 }).outcome().await;
            let panicked: Outcome<()> = s.spawn_future(async { panic!("seven") }).outcome().await;
            let stops = s.spawn_future(async { forever().await });
            assert!(!stops.is_finished());
            stops.request_stop(REASON);
            let stopped: Outcome<()> = stops.outcome().await;
            (
                value,
                matches!(panicked, Outcome::Panicked(panic) if panic.message().contains("seven")),
                stopped,
            )
        })
        .await
    });
    assert_eq!(outcome, Outcome::Value((Outcome::Value(7), true, Outcome::Stopped)));
}

#[test]
fn a_task_that_awaits_an_outcome_can_be_stopped() {
    let outcome = block_on(async {
        scope(async |s| {
            let child = s.spawn_future(async { forever().await });
            let waits: Result<Outcome<()>, _> = timeout(Duration::from_millis(1), child.outcome()).await;
            waits.is_err()
        })
        .await
    });
    assert_eq!(outcome, Outcome::Value(true));
}

#[test]
fn code_that_waits_for_a_stop_hears_of_it_and_goes_on() {
    let run_loop = RunLoop::new();
    let launched = launch(&run_loop.executor()).start(async {
        let reason = convoke::env::current::stop_token().stopped().await;
        // Does not wait any more: says good bye, and returns.
        reason
    });
    run_loop.run_ready();
    assert!(!launched.is_finished());
    launched.request_stop(REASON);
    run_loop.run_ready();
    assert_eq!(launched.wait(), Outcome::Value(REASON));
}

#[test]
fn code_that_waits_for_the_stop_of_another_token_is_stopped_itself() {
    let (run_loop, other) = (RunLoop::new(), StopSource::new());
    let token = other.token();
    let launched = launch(&run_loop.executor()).start(async move { token.stopped().await });
    run_loop.run_ready();
    launched.request_stop(REASON);
    run_loop.run_ready();
    assert_eq!(launched.wait(), Outcome::Stopped);
    drop(other);
}

#[test]
fn a_stop_is_heard_outside_of_tasks_too_and_by_all_clones() {
    let source = StopSource::new();
    let mut waits = source.token().stopped();
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(Pin::new(&mut waits).poll(&mut cx).is_pending());
    source.request_stop(REASON);
    assert_eq!(Pin::new(&mut waits).poll(&mut cx), std::task::Poll::Ready(REASON));
    let mut later = source.token().stopped();
    assert_eq!(Pin::new(&mut later).poll(&mut cx), std::task::Poll::Ready(REASON));
}

#[test]
fn a_future_that_runs_until_a_stop_cleans_up_first() {
    let (run_loop, source, log) = (RunLoop::new(), StopSource::new(), Arc::new(Mutex::new(Vec::new())));
    let (token, says) = (source.token(), log.clone());
    let launched = launch(&run_loop.executor()).start(async move {
        let body = async {
            ensure(
                async |_| {
                    checkpoint().await;
                    says.lock().unwrap().push("cleaned up");
                },
                forever(),
            )
            .await
        };
        let ended: Result<(), Stopped> = run_until_stopped(token, body).await;
        says.lock().unwrap().push("went on");
        checkpoint().await;
        ended.unwrap_err().reason()
    });
    run_loop.run_ready();
    source.request_stop(REASON);
    while run_loop.run_ready() > 0 {}
    assert_eq!(launched.wait(), Outcome::Value(Some(REASON)));
    assert_eq!(*log.lock().unwrap(), ["cleaned up", "went on"]);
}

#[test]
fn a_future_that_runs_until_a_stop_returns_its_value_or_stops_with_its_task() {
    let (run_loop, source) = (RunLoop::new(), StopSource::new());
    let token = source.token();
    let value =
        launch(&run_loop.executor()).start(async move { run_until_stopped(token, async { 7 }).await });
    run_loop.run_ready();
    assert_eq!(value.wait(), Outcome::Value(Ok(7)));

    let token = source.token();
    let waits = launch(&run_loop.executor()).start(async move {
        let ended: Result<(), Stopped> = run_until_stopped(token, async { forever().await }).await;
        ended
    });
    run_loop.run_ready();
    waits.request_stop(StopReason::Requested);
    run_loop.run_ready();
    assert_eq!(waits.wait(), Outcome::Stopped, "the task was stopped, and not the token");

    // Asked before it begins, and by the body itself.
    for before in [true, false] {
        let source = StopSource::new();
        let token = source.token();
        if before {
            source.request_stop(REASON);
        }
        let launched = launch(&run_loop.executor()).start(async move {
            run_until_stopped(token, async move {
                source.request_stop(REASON);
                forever().await
            })
            .await
        });
        run_loop.run_ready();
        let ended: Outcome<Result<(), Stopped>> = launched.wait();
        assert_eq!(ended.unwrap().unwrap_err().reason(), Some(REASON));
    }
}

#[test]
fn a_local_handle_that_is_dropped_while_it_waits_gives_its_waker_back_at_once() {
    struct Count;
    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {}
    }

    let count = Arc::new(Count);
    let outcome = block_on(async {
        scope(async |s: convoke::Scope<()>| {
            let mut handle = s.child().local().spawn_future(async { forever().await });
            let waker = std::task::Waker::from(count.clone());
            let polled = Pin::new(&mut handle).poll(&mut std::task::Context::from_waker(&waker));
            let _: std::task::Poll<()> = polled;
            drop(waker);
            assert!(Arc::strong_count(&count) > 1, "the child has the waker");
            drop(handle);
            assert_eq!(Arc::strong_count(&count), 1);
        })
        .await;
    });
    assert_eq!(outcome, Outcome::Value(()));
}
