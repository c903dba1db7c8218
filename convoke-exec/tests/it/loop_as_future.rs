//! A loop that a foreign executor drives.
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use convoke::executor::{BlockOn, PIECES_PER_POLL, RunLoop};
use convoke::prelude::*;
use convoke::sync::oneshot;
use convoke::task::forever;
use convoke::testing::runnable;
use convoke_core::Executor;

/// Wakes a thread, and counts how often.
struct Unpark {
    thread: Thread,
    wakes: AtomicUsize,
}

impl Unpark {
    fn new() -> Arc<Self> {
        Arc::new(Self { thread: thread::current(), wakes: AtomicUsize::new(0) })
    }

    fn wakes(&self) -> usize {
        self.wakes.load(Ordering::Acquire)
    }
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::Release);
        self.thread.unpark();
    }
}

/// The executor of another crate.
fn foreign_block_on<F: Future>(future: F) -> F::Output {
    let (mut future, waker) = (pin!(future), Waker::from(Unpark::new()));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

fn poll_once<F: Future>(future: Pin<&mut F>, waker: &Arc<Unpark>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(&waker.clone().into()))
}

#[test]
fn a_foreign_executor_drives_a_loop_with_messages_from_another_thread() {
    let run_loop = RunLoop::new();
    let executor = run_loop.executor();
    let (sender, mut receiver) = oneshot::channel();
    let (at_work, is_at_work) = mpsc::channel();
    let launched = launch(&run_loop.executor()).start(async move {
        at_work.send(()).unwrap();
        let received = receiver.recv().await;
        executor.finish();
        received
    });
    let elsewhere = thread::spawn(move || {
        is_at_work.recv().unwrap();
        sender.send(42).unwrap();
    });
    assert!(foreign_block_on(run_loop.as_future()) >= 2);
    assert_eq!(launched.wait(), Outcome::Value(Some(42)));
    elsewhere.join().unwrap();
}

#[test]
fn a_post_wakes_the_task_that_drives_the_loop_once() {
    let (run_loop, unpark) = (RunLoop::new(), Unpark::new());
    let mut driven = pin!(run_loop.as_future());
    assert!(poll_once(driven.as_mut(), &unpark).is_pending());
    assert_eq!(unpark.wakes(), 0);
    run_loop.executor().post(runnable(|_| ()));
    run_loop.executor().post(runnable(|_| ()));
    assert_eq!(unpark.wakes(), 1, "it is awake since the first");
    assert!(poll_once(driven.as_mut(), &unpark).is_pending());
    run_loop.finish();
    assert_eq!(unpark.wakes(), 2);
    assert_eq!(poll_once(driven.as_mut(), &unpark), Poll::Ready(3));
}

#[test]
fn a_poll_runs_a_named_number_of_pieces_and_lets_other_tasks_run() {
    for (set, most) in [(None, PIECES_PER_POLL), (Some(4), 4), (Some(0), 1)] {
        let (run_loop, unpark) = (RunLoop::new(), Unpark::new());
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..200 {
            let ran = ran.clone();
            run_loop.executor().post(runnable(move |_| {
                ran.fetch_add(1, Ordering::Relaxed);
            }));
        }
        let driven = run_loop.as_future();
        let mut driven = pin!(match set {
            Some(most) => driven.pieces_per_poll(most),
            None => driven,
        });
        for poll in 1..=3 {
            assert!(poll_once(driven.as_mut(), &unpark).is_pending());
            assert_eq!((ran.load(Ordering::Relaxed), unpark.wakes()), (poll * most, poll));
        }
    }
}

#[test]
fn a_timer_of_the_loop_wakes_it_by_the_timers_of_the_process() {
    let run_loop = RunLoop::new();
    let executor = run_loop.executor();
    let launched = launch(&run_loop.executor()).start(async move {
        for _ in 0..3 {
            sleep(Duration::from_millis(1)).await;
        }
        executor.finish();
    });
    foreign_block_on(run_loop.as_future());
    launched.wait().unwrap();
}

/// A timer that the test calls.
#[derive(Default)]
struct ForeignTimers(Mutex<Vec<(Instant, Option<Waker>)>>);

impl ForeignTimers {
    fn at(self: Arc<Self>, at: Instant) -> impl Future<Output = ()> {
        poll_fn(move |cx| {
            if at <= Instant::now() {
                return Poll::Ready(());
            }
            self.0.lock().unwrap().push((at, Some(cx.waker().clone())));
            Poll::Pending
        })
    }
}

#[test]
fn a_timer_of_the_foreign_executor_replaces_those_of_the_process() {
    let (run_loop, unpark, timers) = (RunLoop::new(), Unpark::new(), Arc::new(ForeignTimers::default()));
    let far = Duration::from_secs(3600);
    let far = launch(&run_loop.executor()).start(async move { sleep(far).await });
    let makes = timers.clone();
    let mut driven = pin!(run_loop.as_future().timer(move |at| makes.clone().at(at)));
    assert!(poll_once(driven.as_mut(), &unpark).is_pending());
    let first = timers.0.lock().unwrap().last().unwrap().0;
    assert!(first > Instant::now() + Duration::from_secs(1800));
    // An earlier timer is told to the foreign executor. So early that it is not due yet, however slow this is.
    let near = launch(&run_loop.executor()).start(async { sleep(Duration::from_secs(600)).await });
    assert_eq!(unpark.wakes(), 1);
    assert!(poll_once(driven.as_mut(), &unpark).is_pending());
    let second = timers.0.lock().unwrap().last().unwrap().0;
    assert!(second < first);
    // One whose time comes is called.
    let soon = launch(&run_loop.executor()).start(async { sleep(Duration::from_millis(1)).await });
    while !soon.is_finished() {
        assert!(poll_once(driven.as_mut(), &unpark).is_pending());
        thread::yield_now();
    }
    soon.wait().unwrap();
    for waits in [near, far] {
        waits.request_stop(StopReason::Requested);
        assert!(poll_once(driven.as_mut(), &unpark).is_pending());
        assert_eq!(waits.wait(), Outcome::Stopped);
    }
}

#[test]
fn a_future_that_is_dropped_leaves_the_loop_to_be_run_in_another_way() {
    let (run_loop, unpark) = (RunLoop::new(), Unpark::new());
    let launched = launch(&run_loop.executor()).start(async { forever().await });
    {
        let mut driven = pin!(run_loop.as_future());
        assert!(poll_once(driven.as_mut(), &unpark).is_pending());
    }
    assert_eq!(Arc::strong_count(&unpark), 1, "its waker is dropped");
    launched.request_stop(StopReason::Requested);
    assert_eq!(unpark.wakes(), 0);
    assert_eq!(run_loop.block_on(async { catch_stopped(launched).await.is_err() }), Outcome::Value(true));
}

/// Regression: it took the waker of the first one, and the next post woke nobody.
#[test]
fn a_second_future_that_is_dropped_unpolled_leaves_the_waker_of_the_first() {
    let run_loop = RunLoop::new();
    let waker = Unpark::new();
    let mut first = pin!(run_loop.as_future());
    assert!(poll_once(first.as_mut(), &waker).is_pending());
    drop(run_loop.as_future());
    let executor = run_loop.executor();
    let launched = thread::spawn(move || launch(&executor).start(async {})).join().unwrap();
    assert_eq!(waker.wakes(), 1);
    assert!(poll_once(first.as_mut(), &waker).is_pending());
    assert_eq!(launched.wait(), Outcome::Value(()));
}

/// Regression: a post and a `finish` that came after the last check of the queue ended the loop without the work.
#[test]
fn work_that_is_posted_before_finish_runs_however_the_loop_is_run() {
    const ROUNDS: usize = if cfg!(miri) { 4 } else { 1_000 };
    for round in 0..ROUNDS {
        let run_loop = RunLoop::new();
        let executor = run_loop.executor();
        let (begin, begins) = mpsc::channel::<()>();
        let poster = thread::spawn(move || {
            begins.recv().unwrap();
            let launched = launch(&executor).start(async {});
            executor.finish();
            launched
        });
        begin.send(()).unwrap();
        if round % 2 == 0 {
            run_loop.run();
        } else {
            foreign_block_on(run_loop.as_future());
        }
        drop(run_loop);
        assert_eq!(poster.join().unwrap().wait(), Outcome::Value(()), "round {round}");
    }
}
