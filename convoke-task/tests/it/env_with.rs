//! `env::with()` and `with_local`: futures in a changed environment, which may borrow.

use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use convoke::alloc::{FrameAllocator, frame};
use convoke::env::{self, FOREIGN_FUTURES, ForeignFutures, Local, current, with_local};
use convoke::executor::reschedule;
use convoke::prelude::*;
use convoke::run_on;
use convoke::sender::prelude::*;
use convoke::task::{budget, catch_stopped, forever};
use convoke::testing;
use convoke_testing::workshop::frames::Frames;

static REQUEST: Local<u32> = Local::inherited("request");
static OWN: Local<u32> = Local::not_inherited("own");

fn request() -> Option<u32> {
    current::local(&REQUEST)
}

#[test]
fn a_future_that_borrows_runs_with_a_local_and_all_below_it_inherits_that() {
    testing::run(async {
        let mut seen = Vec::new();
        with_local(&REQUEST, 7, async {
            seen.push(request());
            // A child, a task that is awaited, a sender, blocking work, a branch.
            seen.push(scope(async |s| s.spawn_future(async { request() }).await).await);
            seen.push(task(async { request() }).await);
            seen.push(read_env(|env: &Env| env.local(&REQUEST).copied()).await);
            seen.push(blocking(|inside| inside.local(&REQUEST)).await);
            let (left, right) = join((async { request() }, async { request() })).await;
            seen.extend([left, right]);
            seen.push(current::env(|env| env.unwrap().local(&REQUEST).copied()));
        })
        .await;
        assert_eq!(seen, [Some(7); 8]);
        assert_eq!(request(), None, "it holds for the future alone");
    });
}

#[test]
fn inner_changes_win_and_outer_ones_come_back() {
    testing::run(async {
        let seen = env::with().local(&REQUEST, 1).local(&OWN, 2).run(async {
            let inner = with_local(&REQUEST, 3, async { (request(), current::local(&OWN)) }).await;
            let child =
                task(async { scope(async |s| s.spawn_future(async { current::local(&OWN) }).await).await });
            (inner, request(), child.await)
        });
        assert_eq!(seen.await, ((Some(3), Some(2)), Some(1), None));
    });
}

#[test]
fn a_future_that_is_not_send_runs_with_a_local() {
    testing::run(async {
        let shared = std::rc::Rc::new(std::cell::Cell::new(None));
        let sets = shared.clone();
        with_local(&REQUEST, 5, async move { sets.set(request()) }).await;
        assert_eq!(shared.get(), Some(5));
    });
}

#[test]
fn frames_below_come_from_the_allocator_that_was_named() {
    let frames = Frames::at_most(100);
    let allocator = FrameAllocator::new(frames.clone());
    testing::run(async move {
        let mut borrowed = 0;
        let below = async {
            borrowed += frame(async { 1 }).await;
            borrowed += scope(async |s| s.spawn_future(async { 2 }).await).await;
        };
        env::with().allocator(allocator.clone()).run(below).await;
        let (_, after) = frames.counts();
        assert!(after >= 3, "a framed future, a scope and its child: {after}");
        frame(async {}).await;
        assert_eq!(frames.counts(), (0, after), "the allocator holds for the future alone");
        // A task of its own lies there, too.
        env::with().allocator(allocator).name("child").run(checkpoint()).await;
        assert!(frames.counts().1 > after);
    });
}

#[test]
fn a_token_stops_the_future_and_the_function_around_it_ends_as_stopped() {
    testing::run(async {
        for in_own_task in [false, true] {
            let source = StopSource::new();
            let token = source.token();
            let program = async move {
                let with = env::with().stop_token(token);
                match in_own_task {
                    false => with.run(async { forever().await }).await,
                    true => with.name("child").run(async { forever().await }).await,
                }
                unreachable!("stopped above");
            };
            let caught = scope(async |s| {
                s.spawn(async move {
                    source.request_stop(StopReason::Named("reload"));
                });
                catch_stopped(program).await
            });
            assert!(caught.await.is_err(), "own task: {in_own_task}");
        }
    });
}

#[test]
fn the_reason_of_the_token_is_seen_inside_and_by_what_catches_the_stop() {
    testing::run(async {
        let source = StopSource::new();
        let token = source.token();
        let mut inside = None;
        let program = env::with().stop_token(token).run(async {
            source.request_stop(StopReason::Named("reload"));
            let reason = current::stop_token().stopped().await;
            inside = Some(reason);
            forever().await;
        });
        let caught = catch_stopped(program).await;
        assert_eq!(inside, Some(StopReason::Named("reload")));
        assert_eq!(caught.unwrap_err().reason(), Some(StopReason::Named("reload")));
    });
}

#[test]
fn a_stop_of_the_task_still_reaches_a_future_with_a_token_of_its_own() {
    testing::run(async {
        for in_own_task in [false, true] {
            let token = StopSource::new().token();
            let with = env::with().stop_token(token);
            let stopped = match in_own_task {
                false => timeout(Duration::from_secs(1), with.run(async { forever().await })).await.is_err(),
                true => {
                    let child = with.name("child").run(async { forever().await });
                    timeout(Duration::from_secs(1), child).await.is_err()
                }
            };
            assert!(stopped, "own task: {in_own_task}");
        }
    });
}

#[test]
fn a_stop_by_the_token_waits_for_clean_up() {
    testing::run(async {
        let source = StopSource::new();
        let token = source.token();
        let mut cleaned = false;
        let program = env::with().stop_token(token).run(async {
            let cleaned = &mut cleaned;
            ensure(
                async move |_| {
                    sleep(Duration::from_secs(1)).await;
                    *cleaned = true;
                },
                async {
                    source.request_stop(StopReason::Requested);
                    forever().await
                },
            )
            .await
        });
        assert!(catch_stopped(program).await.is_err());
        assert!(cleaned);
    });
}

#[test]
fn the_deadline_of_the_token_is_announced() {
    testing::run(async {
        let at = convoke::time::now() + Duration::from_secs(5);
        let source = StopSource::with_deadline(at);
        let seen = env::with().stop_token(source.token()).run(async { current::deadline() }).await;
        assert_eq!(seen, Some(at));
        assert_eq!(current::deadline(), None);
    });
}

#[test]
fn it_runs_on_the_executor_and_returns_with_the_name_of_a_task() {
    let pool = ThreadPool::new(1).unwrap();
    let executor = pool.executor();
    let outcome = block_on(async move {
        let here = std::thread::current().id();
        let run = env::with().name("far").executor(&executor).local(&REQUEST, 4);
        let (there, seen) = run.run(async { (std::thread::current().id(), request()) }).await;
        (there != here, std::thread::current().id() == here, seen)
    });
    assert_eq!(outcome, Outcome::Value((true, true, Some(4))));
}

#[test]
fn a_task_that_moves_inside_keeps_its_local_and_sees_its_new_executor() {
    let (pool, other) = (ThreadPool::new(1).unwrap(), ThreadPool::new(1).unwrap());
    let target = other.executor();
    let moved = launch(&pool.executor()).start(async move {
        with_local(&REQUEST, 6, async {
            reschedule(&target).await.unwrap();
            let child = scope(async |s| s.spawn_future(async { current::executor() }).await).await;
            (request(), current::executor().is(&target), child.is(&target))
        })
        .await
    });
    assert_eq!(moved.wait(), Outcome::Value((Some(6), true, true)));
}

#[test]
fn an_operation_that_outlives_the_future_keeps_the_local() {
    static LATE: Local<String> = Local::inherited("late");
    let seen = std::sync::Arc::new(std::sync::Mutex::new(None));
    let sees = seen.clone();
    testing::run(async move {
        let started = async {
            task(async move {
                let waits = ensure(async move |_| *sees.lock().unwrap() = current::local(&LATE), async {
                    forever().await
                });
                waits.await
            })
            .await
        };
        let mut future = Box::pin(with_local(&LATE, "here".to_owned(), started));
        poll_fn(|cx| {
            assert!(future.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        checkpoint().await;
        // The operation is abandoned, and the task waits for it; the overlay is gone.
        drop(future);
    });
    assert_eq!(seen.lock().unwrap().as_deref(), Some("here"));
}

#[test]
fn a_policy_for_foreign_futures_around_a_borrowing_future_holds_the_task() {
    testing::run(async {
        let mut polls = 0;
        let foreign = poll_fn(|cx| {
            polls += 1;
            cx.waker().wake_by_ref();
            if polls > 5 { Poll::Ready(polls) } else { Poll::Pending }
        });
        let run = with_local(&FOREIGN_FUTURES, ForeignFutures::RunToEnd, foreign);
        let outcome = timeout(Duration::ZERO, run).await;
        assert_eq!(outcome, Ok(6), "it ran to its end, after the request");
        // Without the policy it gives way.
        assert!(timeout(Duration::ZERO, pending::<()>()).await.is_err());
    });
}

#[test]
fn many_that_are_ready_at_once_let_others_run() {
    const POLLS: u32 = if cfg!(miri) { 2 } else { 10 };
    testing::run(async {
        let mut yielded = false;
        let mut all = pin!(async {
            for _ in 0..POLLS * budget::PER_POLL {
                with_local(&REQUEST, 1, async {}).await;
            }
        });
        poll_fn(|cx| {
            let polled = all.as_mut().poll(cx);
            yielded |= polled.is_pending();
            polled
        })
        .await;
        assert!(yielded);
    });
}

/// A value that panics when it is dropped.
struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("a local that is dropped");
    }
}

static PANICS: Local<PanicsWhenDropped> = Local::inherited("panics when it is dropped");

/// Regression: the panic left the operation unreleased, and its task waited for ever.
#[test]
fn a_local_that_panics_in_an_abandoned_operation_does_not_keep_its_task() {
    let (pool, other) = (ThreadPool::new(1).unwrap(), ThreadPool::new(1).unwrap());
    let (executor, (open, gate)) = (other.executor(), std::sync::mpsc::channel::<()>());
    let launched = launch(&pool.executor()).start(async move {
        let mut future = Box::pin(env::with().local(&PANICS, PanicsWhenDropped).run(async move {
            run_on(&executor, async move { _ = gate.recv() }).await;
        }));
        std::future::poll_fn(|cx| {
            assert!(future.as_mut().poll(cx).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        drop(future);
        open.send(()).unwrap();
    });
    // It ends: with its value, or with the panic.
    _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| launched.wait()));
}
