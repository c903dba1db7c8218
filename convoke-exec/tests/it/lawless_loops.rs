//! Programs that use a loop without a thread, and a loop as a future, in ways that the compiler lets pass and no documentation
//! asks for: they run it from inside, move it in the middle, forget it, drop it with work in it, and drive it with wakers that panic.
//! None of that may cause undefined behaviour, and what is dropped takes its work along. These tests also run under Miri and
//! AddressSanitizer.

use std::cell::RefCell;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use convoke::executor::{BlockOn, RunLoop};
use convoke::prelude::*;
use convoke::raw::{EmbeddedLoop, Moment, Sleeper};
use convoke::{launch, run_on};
use convoke_core::Panic;

/// Counts how often the loop is woken.
#[derive(Default)]
struct Around(AtomicUsize);

impl Sleeper for Around {
    fn sleep(&self, _: Option<Instant>) {
        unreachable!("an embedded loop does not sleep");
    }

    fn check(&self) {}

    fn wake(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn embedded() -> EmbeddedLoop {
    EmbeddedLoop::over(Arc::new(Around::default()), None)
}

fn run(embedded: &EmbeddedLoop) {
    embedded.rouse();
    embedded.run_while(|moment| moment == Moment::Next);
}

thread_local! {
    static LOOP: RefCell<Option<Rc<EmbeddedLoop>>> = const { RefCell::new(None) };
}

/// Forgets a value whose memory begins at this address. A static has the address, so that no tool takes it for a leak.
fn forget<T>(memory: *const T, forget: impl FnOnce()) {
    static FORGOTTEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    FORGOTTEN.lock().unwrap().push(memory.addr());
    forget();
}

/// Runs the loop of this thread, if there is one.
fn run_this_loop() {
    if let Some(embedded) = LOOP.with_borrow(Clone::clone) {
        run(&embedded);
        assert!(embedded.doze(), "all work has run");
    }
}

#[test]
fn an_embedded_loop_that_its_own_work_runs_and_lets_go_runs_on() {
    let embedded = Rc::new(embedded());
    let executor = embedded.executor();
    LOOP.set(Some(embedded.clone()));
    let theirs = executor.clone();
    let launched = launch(&executor).start(async move {
        let inside = launch(&theirs).start(async {
            checkpoint().await;
            // The loop runs in two places of this stack, and is let go by its work.
            run_this_loop();
            drop(LOOP.take());
            7
        });
        run_this_loop();
        checkpoint().await;
        inside.await
    });
    run(&embedded);
    assert_eq!(launched.wait(), Outcome::Value(7));
    drop(embedded);
    assert_eq!(launch(&executor).start(async {}).wait(), Outcome::Stopped, "the loop is gone");
}

#[test]
fn an_embedded_loop_may_be_run_by_another_thread_each_time() {
    let mut embedded = embedded();
    let executor = embedded.executor();
    let held = Arc::new(());
    let launched: Vec<_> = (0..3)
        .map(|number| {
            let (held, executor) = (held.clone(), executor.clone());
            launch(&executor.clone()).start(async move {
                let _held = held;
                scope(async |s| {
                    let child = s.spawn_future(async move {
                        checkpoint().await;
                        sleep(Duration::from_nanos(1)).await;
                        number
                    });
                    checkpoint().await;
                    run_on(&executor, checkpoint()).await;
                    child.await
                })
                .await
            })
        })
        .collect();
    while Arc::strong_count(&held) > 1 {
        embedded = thread::spawn(move || {
            embedded.rouse();
            let mut pieces = 3;
            embedded.run_while(|moment| {
                pieces -= usize::from(moment == Moment::Next);
                pieces > 0
            });
            // Woken and left alone, in the middle.
            let _ = embedded.doze();
            embedded
        })
        .join()
        .unwrap();
    }
    for (number, launched) in launched.into_iter().enumerate() {
        assert_eq!(launched.wait(), Outcome::Value(number));
    }
}

#[test]
fn an_embedded_loop_inside_a_task_of_a_loop_wakes_tasks_of_both() {
    let run_loop = RunLoop::new();
    let outer = run_loop.executor();
    let outcome = run_loop.block_on(async move {
        let embedded = embedded();
        let (here, there) = (outer.clone(), embedded.executor());
        // A chain of the embedded loop that goes to the outer one and back, and a local task of the outer one.
        let chain = launch(&there)
            .start(async move { run_on(&here, async { 1 }).await + run_on(&there, async { 2 }).await });
        local_scope(async |s| {
            let child = s.spawn_future(async {
                checkpoint().await;
                1
            });
            while !chain.is_finished() {
                run(&embedded);
                let _ = embedded.doze();
                checkpoint().await;
            }
            chain.await + child.await
        })
        .await
    });
    assert_eq!(outcome, Outcome::Value(4));
}

#[test]
fn an_embedded_loop_that_is_dropped_stops_its_work_and_one_that_is_forgotten_keeps_it() {
    for forgotten in [false, true] {
        let embedded = embedded();
        let executor = embedded.executor();
        let held = Arc::new(());
        let works: Vec<_> = [false, true]
            .map(|sleeps| {
                let held = held.clone();
                launch(&executor).start(async move {
                    let _held = held;
                    checkpoint().await;
                    if sleeps {
                        sleep(Duration::from_secs(3600)).await;
                    }
                    convoke::task::forever().await
                })
            })
            .into();
        executor.finish();
        executor.finish();
        run(&embedded);
        if forgotten {
            let embedded = Box::new(embedded);
            forget(&*embedded, || std::mem::forget(embedded));
            assert!(works.iter().all(|work| !work.is_finished()));
            forget(works.as_ptr(), || std::mem::forget(works));
            assert_eq!(Arc::strong_count(&held), 3);
        } else {
            drop(embedded);
            for work in works {
                work.request_stop(StopReason::Requested);
                assert_eq!(work.wait(), Outcome::Stopped);
            }
            assert_eq!(Arc::strong_count(&held), 1);
        }
    }
}

/// A waker that panics when it wakes, and when the last of it is dropped.
struct Rude(Arc<AtomicUsize>);

impl Wake for Rude {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("a waker that panics");
    }
}

impl Drop for Rude {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic!("a waker that panics when it is dropped");
        }
    }
}

fn poll<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

#[test]
fn a_loop_as_a_future_outlives_wakers_that_panic() {
    let run_loop = RunLoop::new();
    let executor = run_loop.executor();
    let woken = Arc::new(AtomicUsize::new(0));
    let rude = || Waker::from(Arc::new(Rude(woken.clone())));
    for round in 0..3 {
        let first = rude();
        let mut future = Box::pin(run_loop.as_future());
        assert!(poll(future.as_mut(), &first).is_pending());
        // Another waker replaces the first, whose destructor panics, here or there.
        let _ = Panic::catch(|| drop(first));
        let second = rude();
        let _ = Panic::catch(|| poll(future.as_mut(), &second).is_pending());
        // The post of another thread wakes the task, and does not hear of the panic.
        let theirs = executor.clone();
        let launched = thread::spawn(move || launch(&theirs).start(async move { round })).join().unwrap();
        let _ = Panic::catch(|| poll(future.as_mut(), &second).is_pending());
        let _ = Panic::catch(|| drop(second));
        let _ = Panic::catch(|| drop(future));
        run_loop.run_ready();
        assert_eq!(launched.wait(), Outcome::Value(round));
    }
    assert!(woken.load(Ordering::Relaxed) >= 3);
}

#[test]
fn a_loop_as_a_future_may_be_polled_and_run_from_its_own_work() {
    thread_local! {
        static RUN_LOOP: Rc<RunLoop> = Rc::new(RunLoop::new());
    }
    let run_loop = RUN_LOOP.with(Rc::clone);
    let launched = launch(&run_loop.executor()).start(async {
        let run_loop = RUN_LOOP.with(Rc::clone);
        let mut inner = pin!(run_loop.as_future());
        // Two futures of the loop, inside each other, and a run inside both.
        assert!(poll(inner.as_mut(), Waker::noop()).is_pending());
        run_loop.run_ready();
        1
    });
    let mut outer = pin!(run_loop.as_future());
    while !launched.is_finished() {
        assert!(poll(outer.as_mut(), Waker::noop()).is_pending());
    }
    assert_eq!(launched.wait(), Outcome::Value(1));
    run_loop.finish();
    assert!(poll(outer.as_mut(), Waker::noop()).is_ready() || poll(outer, Waker::noop()).is_ready());
}

#[test]
fn a_loop_whose_future_is_forgotten_can_be_run_and_dropped() {
    let run_loop = RunLoop::new();
    let executor = run_loop.executor();
    let sleeper = launch(&executor).start(async { sleep(Duration::from_secs(3600)).await });
    // It waits for the timer of the loop, and is never polled again nor dropped.
    let mut forgotten = Box::pin(run_loop.as_future());
    assert!(poll(forgotten.as_mut(), Waker::noop()).is_pending());
    forget(&*forgotten, || std::mem::forget(forgotten));
    let quick = launch(&executor).start(async { checkpoint().await });
    run_loop.run_ready();
    assert_eq!(quick.wait(), Outcome::Value(()));
    let mut second = Box::pin(run_loop.as_future());
    assert!(poll(second.as_mut(), Waker::noop()).is_pending());
    forget(&*second, || std::mem::forget(second));
    drop(run_loop);
    sleeper.request_stop(StopReason::Requested);
    assert_eq!(sleeper.wait(), Outcome::Stopped);
}
