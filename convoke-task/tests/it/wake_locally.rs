//! `wake_locally`: wakes a task through a stored waker, only on its owner thread, only in a loop that runs, and never
//! past an executor that must see each post.

use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use convoke::Executor;
use convoke::executor::{BlockOn, RunLoop};
use convoke::prelude::*;
use convoke::raw::{OwnerThread, Runnable, wake_locally};

/// A stored waker of a task, and the number of times that the task was polled.
#[derive(Clone, Default)]
struct Stored {
    waker: Arc<Mutex<Option<Waker>>>,
    polls: Arc<AtomicUsize>,
}

impl Stored {
    fn waker(&self) -> Option<Waker> {
        self.waker.lock().unwrap().clone()
    }

    fn polls(&self) -> usize {
        self.polls.load(Ordering::Relaxed)
    }

    /// Stores its waker, and ends when it is polled for the second time.
    fn second_poll(&self) -> impl Future<Output = ()> + Send + use<> {
        let this = self.clone();
        poll_fn(move |cx| {
            *this.waker.lock().unwrap() = Some(cx.waker().clone());
            if this.polls.fetch_add(1, Ordering::Relaxed) == 1 { Poll::Ready(()) } else { Poll::Pending }
        })
    }

    /// Waits until the waker is stored.
    async fn left(&self) -> Waker {
        loop {
            match self.waker() {
                Some(waker) => return waker,
                None => checkpoint().await,
            }
        }
    }
}

#[test]
fn a_task_of_the_loop_that_runs_here_is_queued_once() {
    let stored = Stored::default();
    let outcome = RunLoop::new().block_on(async {
        scope(async |s| {
            s.spawn(stored.second_poll());
            let waker = stored.left().await;
            assert!(wake_locally(&waker));
            assert!(wake_locally(&waker), "it is queued already, which is no failure");
            assert_eq!(stored.polls(), 1, "it is not run here");
        })
        .await
    });
    assert_eq!((outcome, stored.polls()), (Outcome::Value(()), 2));
}

#[test]
fn a_task_that_runs_is_polled_again() {
    let mut polls = 0;
    let outcome = RunLoop::new().block_on(poll_fn(|cx| {
        polls += 1;
        assert!(wake_locally(cx.waker()));
        if polls == 3 { Poll::Ready(()) } else { Poll::Pending }
    }));
    assert_eq!((outcome, polls), (Outcome::Value(()), 3));
}

#[test]
fn on_another_thread_nothing_is_done() {
    let stored = Stored::default();
    let outcome = RunLoop::new().block_on(async {
        scope(async |s| {
            s.spawn(stored.second_poll());
            let waker = stored.left().await;
            let elsewhere = waker.clone();
            assert!(!std::thread::spawn(move || wake_locally(&elsewhere)).join().unwrap());
            checkpoint().await;
            assert_eq!(stored.polls(), 1, "it was not woken");
            waker.wake();
        })
        .await
    });
    assert_eq!((outcome, stored.polls()), (Outcome::Value(()), 2));
}

#[test]
fn a_task_of_another_loop_on_the_same_thread_is_not_woken() {
    let stored = Stored::default();
    let outcome = RunLoop::new().block_on(async {
        scope(async |s| {
            s.spawn(stored.second_poll());
            let waker = stored.left().await;
            let inner = RunLoop::new().block_on(async { wake_locally(&waker) });
            assert_eq!(inner, Outcome::Value(false));
            waker.wake();
        })
        .await
    });
    assert_eq!((outcome, stored.polls()), (Outcome::Value(()), 2));
}

#[test]
fn a_task_that_has_ended_is_not_woken() {
    let stored = Stored::default();
    let run_loop = RunLoop::new();
    let outcome = run_loop.block_on(async {
        scope(async |s| {
            s.spawn(stored.second_poll());
            stored.left().await.wake();
        })
        .await;
        wake_locally(&stored.waker().unwrap())
    });
    assert_eq!((outcome, stored.polls()), (Outcome::Value(false), 2));
}

#[test]
fn foreign_wakers_and_threads_without_a_loop_are_left_alone() {
    assert!(!wake_locally(Waker::noop()));
    let stored = Stored::default();
    let run_loop = RunLoop::new();
    let outcome = run_loop.block_on(async {
        scope(async |s| {
            assert!(!wake_locally(Waker::noop()));
            s.spawn(stored.second_poll());
            stored.left().await.wake();
        })
        .await
    });
    assert_eq!(outcome, Outcome::Value(()));
    assert!(!wake_locally(&stored.waker().unwrap()));
}

/// An executor that counts what it posts to a loop.
#[derive(Clone)]
struct Counting<X> {
    inner: X,
    posts: Arc<AtomicUsize>,
}

impl<X: PartialEq> PartialEq for Counting<X> {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner && Arc::ptr_eq(&self.posts, &other.posts)
    }
}

impl<X: Executor> Executor for Counting<X> {
    fn post(&self, runnable: Runnable) {
        self.posts.fetch_add(1, Ordering::Relaxed);
        self.inner.post(runnable);
    }

    fn owner_thread(&self) -> Option<&OwnerThread> {
        self.inner.owner_thread()
    }
}

#[test]
fn an_executor_that_wraps_a_loop_sees_each_post() {
    let stored = Stored::default();
    let run_loop = RunLoop::new();
    let counting = Counting { inner: run_loop.executor(), posts: Arc::default() };
    let outcome = run_loop.block_on(async {
        scope(async |s| {
            s.child().on(&counting).spawn(stored.second_poll());
            let waker = stored.left().await;
            assert!(!wake_locally(&waker));
            checkpoint().await;
            assert_eq!(stored.polls(), 1, "it was not woken");
            waker.wake();
        })
        .await
    });
    assert_eq!((outcome, stored.polls()), (Outcome::Value(()), 2));
    assert_eq!(counting.posts.load(Ordering::Relaxed), 2, "once to start, once to go on");
}
