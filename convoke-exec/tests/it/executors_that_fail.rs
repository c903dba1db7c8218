//! Executors are safe code, and may be wrong in any way that the compiler accepts: they panic where they
//! should queue, before or after it. No task then waits for ever, no stack frame is unwound that must stay,
//! and no freed memory is touched: memory checkers run these tests too.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;

use convoke::env::Changes;
use convoke::executor::{BlockOn, Limited, RunLoop, Strand};
use convoke::executor::{ExecutorRef, RunLoopExecutor};
use convoke::prelude::*;
use convoke::raw::{Runnable, Timers};
use convoke::sender::prelude::*;
use convoke::testing::runnable;

/// The failure of an executor.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wrong {
    /// None.
    Nothing,
    /// `post` and `dispatch` panic and drop the work.
    Before,
    /// `post` and `dispatch` panic after they have queued the work.
    After,
    /// `work_ended` panics.
    WorkEnded,
}

/// A run loop with a failure that can be chosen.
#[derive(Clone)]
struct Lawless {
    inner: RunLoopExecutor,
    wrong: Arc<Mutex<Wrong>>,
}

impl PartialEq for Lawless {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

impl Lawless {
    fn new(run_loop: &RunLoop, wrong: Wrong) -> Self {
        Self { inner: run_loop.executor(), wrong: Arc::new(Mutex::new(wrong)) }
    }

    fn is(&self, wrong: Wrong) -> bool {
        *self.wrong.lock().unwrap() == wrong
    }

    fn becomes(&self, wrong: Wrong) {
        *self.wrong.lock().unwrap() = wrong;
    }
}

impl Executor for Lawless {
    fn post(&self, runnable: Runnable) {
        if self.is(Wrong::Before) {
            panic!("before it is queued, on purpose");
        }
        self.inner.post(runnable);
        if self.is(Wrong::After) {
            panic!("after it was queued, on purpose");
        }
    }

    fn timers(&self) -> Option<&dyn Timers> {
        self.inner.timers()
    }

    fn work_ended(&self) {
        if self.is(Wrong::WorkEnded) {
            panic!("when the work has ended, on purpose");
        }
    }
}

const BOTH: [Wrong; 2] = [Wrong::Before, Wrong::After];

/// Returns the outcome of work whose post panics.
fn expected<T>(wrong: Wrong, value: T) -> Outcome<T> {
    if wrong == Wrong::Before { Outcome::Stopped } else { Outcome::Value(value) }
}

/// Waits for the sender on another thread, while this thread runs the loop.
fn wait_for<S>(run_loop: &RunLoop, sender: S) -> Outcome<S::Value, S::Error>
where
    S: Sender + Send,
    S::Value: Send,
    S::Error: Send,
{
    let executor = run_loop.executor();
    std::thread::scope(|threads| {
        let waits = threads.spawn(move || {
            let outcome = sync_wait(sender);
            executor.finish();
            outcome
        });
        run_loop.run();
        waits.join().unwrap()
    })
}

#[test]
fn a_post_that_panics_stops_scheduled_work() {
    for wrong in BOTH {
        let run_loop = RunLoop::new();
        let lawless = Lawless::new(&run_loop, wrong);
        assert_eq!(wait_for(&run_loop, schedule(&lawless).then(|()| 1)), expected(wrong, 1));
        let run_loop = RunLoop::new();
        let erased = ExecutorRef::new(Lawless::new(&run_loop, wrong));
        assert_eq!(wait_for(&run_loop, schedule(&erased).then(|()| 1)), expected(wrong, 1));
    }
}

#[test]
fn a_post_that_panics_stops_work_that_should_continue_there() {
    for wrong in BOTH {
        let run_loop = RunLoop::new();
        let lawless = Lawless::new(&run_loop, wrong);
        assert_eq!(wait_for(&run_loop, just(1).continues_on(&lawless)), expected(wrong, 1));
        let run_loop = RunLoop::new();
        let lawless = Lawless::new(&run_loop, wrong);
        // Dispatched from the thread of another executor.
        let pool = ThreadPool::new(1).unwrap();
        let on_pool = schedule(&pool.executor()).then(|()| 1).continues_on(&lawless);
        assert_eq!(wait_for(&run_loop, on_pool), expected(wrong, 1));
    }
}

#[test]
fn a_post_that_panics_inside_a_timer_leaves_the_timers_in_order() {
    for wrong in BOTH {
        let run_loop = RunLoop::new();
        let lawless = Lawless::new(&run_loop, wrong);
        // Started by the waiting thread; the loop's thread calls the timers, which post.
        let sleeps = || convoke::time::sleep(Duration::from_millis(1)).then(|()| 1);
        let changes = Changes::new().executor(ExecutorRef::new(lawless));
        let both = when_all((sleeps(), sleeps())).write_env(changes);
        assert_eq!(wait_for(&run_loop, both), expected(wrong, (1, 1)));
        let again = run_loop.block_on(async { sleep(Duration::from_millis(1)).await });
        assert_eq!(again, Outcome::Value(()));
    }
}

#[test]
fn a_post_that_panics_does_not_lose_the_turn_of_a_strand_or_the_seat_of_a_view() {
    fn check<X: Executor>(run_loop: &RunLoop, lawless: &Lawless, view: &X) {
        for wrong in BOTH {
            let runs = Arc::new(AtomicUsize::new(0));
            lawless.becomes(wrong);
            let piece = |runs: &Arc<AtomicUsize>| {
                let runs = runs.clone();
                runnable(move |_| {
                    runs.fetch_add(1, Ordering::Relaxed);
                })
            };
            let posted = catch_unwind(AssertUnwindSafe(|| view.post(piece(&runs))));
            assert!(posted.is_err(), "the poster must get the panic");
            lawless.becomes(Wrong::Nothing);
            view.post(piece(&runs));
            run_loop.run_ready();
            assert_eq!(runs.load(Ordering::Relaxed), 2, "each must be run or stopped once: {wrong:?}");
        }
    }

    let run_loop = RunLoop::new();
    let lawless = Lawless::new(&run_loop, Wrong::Nothing);
    check(&run_loop, &lawless, &Strand::new(lawless.clone()));
    check(&run_loop, &lawless, &Limited::new(&lawless, 1));
    check(&run_loop, &lawless, &Limited::new(&lawless, 3));
}

/// The task has left its parent link when its last waker is dropped. A task that did not finish leaving would
/// search for its siblings there. Only a memory checker detects that.
#[test]
fn an_executor_that_panics_at_the_end_of_work_lets_the_task_leave() {
    let run_loop = RunLoop::new();
    let lawless = Lawless::new(&run_loop, Wrong::WorkEnded);
    let stored = Arc::new(Mutex::new(None::<Waker>));
    let launched = launch(&lawless).start({
        let stored = stored.clone();
        std::future::poll_fn(move |cx| {
            *stored.lock().unwrap() = Some(cx.waker().clone());
            std::task::Poll::Ready(1)
        })
    });
    run_loop.run_ready();
    assert_eq!(launched.wait(), Outcome::Value(1));
    drop((lawless, run_loop));
    let waker = stored.lock().unwrap().take().unwrap();
    waker.wake();
}

#[test]
fn a_panic_of_one_completion_stops_the_rest_of_the_queue() {
    let (run_loop, stopped) = (RunLoop::new(), Arc::new(AtomicUsize::new(0)));
    for index in 0..10 {
        let stopped = stopped.clone();
        run_loop.executor().post(runnable(move |_| {
            stopped.fetch_add(1, Ordering::Relaxed);
            assert_ne!(index % 3, 1, "on purpose");
        }));
    }
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(run_loop)));
    assert!(dropped.is_err(), "the first panic must be resumed");
    assert_eq!(stopped.load(Ordering::Relaxed), 10);
}
