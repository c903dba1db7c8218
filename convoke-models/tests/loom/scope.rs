//! Real scopes in all interleavings: the last child ends while the scope is polled, dropped, or requested to
//! stop; and a child races with its handle.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use crate::model::{Count, Reached, explore};
use crate::threads::Threads;
use convoke_core::env::{Changes, FrameAllocator};
use convoke_sender::prelude::*;
use convoke_sender::sync_wait_with;
use convoke_task::{BodyOutput, Handle, catch_stopped, checkpoint, current, reschedule, scope, task};
use convoke_testing::workshop::frames::Frames;

/// Runs the future as a task here, and joins the threads. All frames have been freed then.
fn run<T: Send + 'static>(executor: &Threads, future: impl Future<Output = T> + Send) -> Outcome<T> {
    let frames = Frames::at_most(20);
    let changes = Changes::new().allocator(FrameAllocator::new(frames.clone()));
    let outcome = sync_wait_with(changes, task(future));
    executor.join();
    assert_eq!(frames.counts().0, 0, "frames are left");
    outcome
}

/// Polls a future once, as a foreign `select!` does.
async fn poll_once(mut future: Pin<&mut impl Future>) -> bool {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_ready())).await
}

#[test]
fn the_last_child_ends_elsewhere_while_the_scope_looks() {
    static THERE: Reached = Reached::new();
    static WAITED: Reached = Reached::new();
    explore(3, || {
        let (executor, polls) = (Threads::default(), Count::default());
        let (there, counted) = (executor.clone(), polls.clone());
        let outcome = run(&executor, async move {
            let mut opened = Box::pin(scope(async |s| s.child().on(&there).spawn(async {})));
            poll_fn(|cx| {
                counted.add();
                opened.as_mut().poll(cx)
            })
            .await;
        });
        assert_eq!(outcome, Outcome::Value(()));
        THERE.here_if(polls.get() == 1);
        WAITED.here_if(polls.get() > 1);
    });
    THERE.assert("it had ended");
    WAITED.assert("the scope was woken");
}

#[test]
fn a_scope_is_dropped_and_its_child_asked_to_stop_while_that_ends_elsewhere() {
    static ASKED: Reached = Reached::new();
    static NOT_ASKED: Reached = Reached::new();
    explore(1, || {
        let (executor, asked) = (Threads::default(), Count::default());
        let (there, counted) = (executor.clone(), asked.clone());
        let outcome = run(&executor, async move {
            let mut opened = Box::pin(scope(async |s| {
                s.child().on(&there).spawn(async move {
                    if current::stop_requested() {
                        counted.add();
                    }
                });
                poll_fn(|_| Poll::<()>::Pending).await
            }));
            assert!(!poll_once(opened.as_mut()).await);
            drop(opened);
        });
        assert_eq!(outcome, Outcome::Value(()));
        ASKED.here_if(asked.get() == 1);
        NOT_ASKED.here_if(asked.get() == 0);
    });
    ASKED.assert("it was asked in time");
    NOT_ASKED.assert("it had ended, or was about to");
}

#[test]
fn a_scope_is_dropped_elsewhere_while_its_child_ends_on_the_owner_thread() {
    static DONE: Reached = Reached::new();
    explore(1, || {
        let executor = Threads::default();
        let there = executor.clone();
        let outcome = run(&executor, async move {
            let mut opened = Box::pin(scope(async |s| {
                s.spawn(async {});
                poll_fn(|_| Poll::<()>::Pending).await
            }));
            assert!(!poll_once(opened.as_mut()).await);
            reschedule(&there).await.unwrap();
            drop(opened);
        });
        assert_eq!(outcome, Outcome::Value(()));
        DONE.here();
    });
    DONE.assert("all had ended");
}

#[test]
fn two_children_fail_at_once_and_one_of_them_is_the_outcome() {
    static FIRST: Reached = Reached::new();
    static SECOND: Reached = Reached::new();
    explore(1, || {
        let executor = Threads::default();
        let there = executor.clone();
        let outcome = run(&executor, async move {
            scope(async |s| {
                s.child().on(&there).spawn(async { Err(1) });
                s.child().on(&there).spawn(async { Err(2) });
                Ok::<(), u32>(())
            })
            .await
        });
        FIRST.here_if(outcome == Outcome::Value(Err(1)));
        SECOND.here_if(outcome == Outcome::Value(Err(2)));
        assert!(matches!(outcome, Outcome::Value(Err(1 | 2))));
    });
    FIRST.assert("the first failed first");
    SECOND.assert("the second failed first");
}

/// The first poll is inside of the parent's, and a stop comes from another thread meanwhile.
#[test]
fn a_stop_comes_from_elsewhere_while_an_eager_child_is_polled_first() {
    static BEFORE: Reached = Reached::new();
    static INSIDE: Reached = Reached::new();
    static AFTER: Reached = Reached::new();
    explore(1, || {
        let executor = Threads::default();
        let there = executor.clone();
        let outcome = run(&executor, async move {
            let seen = scope(async |s| {
                let other = s.clone();
                s.child().on(&there).spawn(async move { other.request_stop(StopReason::Requested) });
                let eager = s.child().spawn_future_eagerly(async {
                    let before = current::stop_requested();
                    let meanwhile = catch_stopped(checkpoint()).await.is_err();
                    (before, meanwhile)
                });
                eager.outcome().await
            });
            seen.await
        });
        let seen = match outcome {
            Outcome::Value(Outcome::Value(seen)) => Some(seen),
            Outcome::Value(Outcome::Stopped) => None,
            other => panic!("{other:?}"),
        };
        BEFORE.here_if(matches!(seen, Some((true, _))) || seen.is_none());
        INSIDE.here_if(matches!(seen, Some((false, true))));
        AFTER.here_if(matches!(seen, Some((false, false))));
    });
    BEFORE.assert("it came before the first poll");
    INSIDE.assert("it came between the first poll and the second");
    AFTER.assert("it came when the child had ended");
}

/// Runs a child that moves and returns elsewhere, while `with` uses its handle.
fn child_and_handle<F>(
    executor: &Threads,
    with: impl FnOnce(Handle<u32>) -> F + Send + 'static,
) -> Outcome<F::Output>
where
    F: Future<Output: BodyOutput + Send + 'static> + Send + 'static,
{
    let there = executor.clone();
    run(executor, async move {
        scope(async |s| {
            let handle = s.spawn_future(async move {
                reschedule(&there).await.unwrap();
                7
            });
            // The child moves first.
            checkpoint().await;
            with(handle).await
        })
        .await
    })
}

#[test]
fn a_handle_is_awaited_while_the_child_ends_elsewhere() {
    static THERE: Reached = Reached::new();
    static WOKEN: Reached = Reached::new();
    explore(3, || {
        let (executor, polls) = (Threads::default(), Count::default());
        let counted = polls.clone();
        let outcome = child_and_handle(&executor, async move |mut handle: Handle<u32>| {
            poll_fn(|cx| {
                counted.add();
                Pin::new(&mut handle).poll(cx)
            })
            .await
        });
        assert_eq!(outcome, Outcome::Value(7));
        THERE.here_if(polls.get() == 1);
        WOKEN.here_if(polls.get() > 1);
    });
    THERE.assert("it had returned");
    WOKEN.assert("the waiter was woken");
}

#[test]
fn a_handle_is_dropped_while_the_child_ends_elsewhere() {
    static DROPPED: Reached = Reached::new();
    explore(3, || {
        let executor = Threads::default();
        let outcome = child_and_handle(&executor, async |handle: Handle<u32>| drop(handle));
        assert_eq!(outcome, Outcome::Value(()));
        DROPPED.here();
    });
    DROPPED.assert("it was dropped");
}

#[test]
fn a_child_is_stopped_through_its_handle_while_it_ends_elsewhere() {
    static VALUE: Reached = Reached::new();
    static STOPPED: Reached = Reached::new();
    explore(3, || {
        let executor = Threads::default();
        let outcome = child_and_handle(&executor, async |handle: Handle<u32>| {
            handle.request_stop(convoke_core::StopReason::Requested);
            catch_stopped(handle).await.ok()
        });
        VALUE.here_if(outcome == Outcome::Value(Some(7)));
        STOPPED.here_if(outcome == Outcome::Value(None));
    });
    VALUE.assert("it had gone on");
    STOPPED.assert("it was stopped");
}

#[test]
fn a_handle_outlives_the_scope_while_the_child_lets_go_of_itself_elsewhere() {
    static DONE: Reached = Reached::new();
    explore(3, || {
        let executor = Threads::default();
        let there = executor.clone();
        let outcome = run(&executor, async move {
            let mut handle = None;
            scope(async |s| {
                handle = Some(s.spawn_future(async move {
                    reschedule(&there).await.unwrap();
                    7
                }));
            })
            .await;
            // The scope's memory is freed: the last one to release the child must not access it.
            handle.unwrap().await
        });
        assert_eq!(outcome, Outcome::Value(7));
        DONE.here();
    });
    DONE.assert("it was awaited");
}

#[test]
fn children_are_started_at_several_sites_on_two_threads_at_once() {
    static DONE: Reached = Reached::new();
    explore(2, || {
        let (executor, ran) = (Threads::default(), Count::default());
        let (there, counts) = (executor.clone(), [ran.clone(), ran.clone(), ran.clone(), ran.clone()]);
        let outcome = run(&executor, async move {
            let [first, second, third, fourth] = counts;
            scope(async |s| {
                let also = s.clone();
                s.child().on(&there).spawn(async move {
                    also.spawn(async move { _ = first.add() });
                    also.spawn(async move { _ = second.add() });
                });
                s.spawn(async move { _ = third.add() });
                s.spawn(async move { _ = fourth.add() });
            })
            .await;
        });
        assert_eq!((outcome, ran.get()), (Outcome::Value(()), 4));
        DONE.here();
    });
    DONE.assert("all have run");
}
