//! Executors are safe code, and may be wrong in any way that the compiler lets pass: they run work where they should queue it,
//! drop it, keep it, move it to other threads, panic, call back into the runtime, and lie about their owner thread, their clones and
//! their timers. None of that may cause undefined behaviour, and a task may wait for ever only if it waits for work that the executor
//! still has. These tests also run under Miri and AddressSanitizer.
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use crate::lawless::{Came, Lawless, PROGRAMS, Program, end_in_order};
use convoke::env::Changes;
use convoke::executor::{BlockOn, RunLoop};
use convoke::executor::{PoolExecutor, RunLoopExecutor};
use convoke::prelude::*;
use convoke::raw::{OwnerThread, Runnable, Timers};
use convoke::sender::prelude::*;
use convoke::{Panic, launch, run_on};

/// Runs all programs, each on an executor of its own. Whatever came of them, all their work is gone afterwards.
#[track_caller]
fn run_all(make: impl Fn() -> Lawless) -> Vec<(&'static str, Came)> {
    let one = |(name, program): (&'static str, Program)| {
        let (x, held) = (make(), Arc::new(()));
        let came = program(&x, &held);
        x.join();
        while let Some(runnable) = x.take() {
            drop(runnable);
        }
        assert_eq!(Arc::strong_count(&held), 1, "`{name}` has leaked work, and ended: {came:?}");
        (name, came)
    };
    PROGRAMS.map(one).into()
}

#[track_caller]
fn assert_all(all: &[(&'static str, Came)], came: &Came) {
    let others: Vec<_> = all.iter().filter(|(_, other)| other != came).collect();
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn an_executor_that_runs_its_work_inside_of_post_runs_it() {
    assert_all(&run_all(|| Lawless::new(|_, runnable| runnable.run())), &Came::Value);
}

#[test]
fn an_executor_that_drops_its_work_stops_it() {
    let all = run_all(|| Lawless::new(|_, runnable| drop(runnable)));
    let panicked: Vec<_> = all.iter().filter(|(_, came)| matches!(came, Came::Panicked(_))).collect();
    assert!(panicked.is_empty(), "{panicked:?}");
}

#[test]
fn an_executor_that_drops_its_work_on_another_thread_stops_it() {
    let all = run_all(|| Lawless::new(|x, runnable| x.on_thread(move || drop(runnable))));
    let panicked: Vec<_> = all.iter().filter(|(_, came)| matches!(came, Came::Panicked(_))).collect();
    assert!(panicked.is_empty(), "{panicked:?}");
}

#[test]
fn an_executor_with_a_thread_for_each_piece_of_work_runs_it() {
    assert_all(&run_all(|| Lawless::new(|x, runnable| x.on_thread(move || runnable.run()))), &Came::Value);
}

#[test]
fn an_executor_that_runs_the_newest_first_and_all_at_once_runs_it() {
    // Work that is posted while other work runs is run by the poster, before the queued work.
    let x = || {
        Lawless::new(|x, runnable| {
            x.keep(runnable);
            while let Some(runnable) = x.take() {
                runnable.run();
            }
        })
    };
    assert_all(&run_all(x), &Came::Value);
}

#[test]
fn an_executor_that_waits_for_other_work_inside_of_post_comes_back() {
    let pool = ThreadPool::new(1).unwrap();
    let x = || {
        Lawless::over(&pool.executor(), |x, runnable| {
            let inner = sync_wait(task(async {
                checkpoint().await;
                scope(async |s| s.spawn_future(async { 1 }).await).await
            }));
            assert_eq!(inner, Outcome::Value(1));
            x.pass_on(runnable);
        })
    };
    assert_all(&run_all(x), &Came::Value);
}

#[test]
fn an_executor_that_launches_more_work_on_itself_inside_of_post_comes_back() {
    let x = || {
        let depth = AtomicUsize::new(0);
        Lawless::new(move |x, runnable| {
            if depth.fetch_add(1, Ordering::Relaxed) < 4 {
                assert_eq!(launch(x).start(async { 1 }).wait(), Outcome::Value(1));
            }
            depth.fetch_sub(1, Ordering::Relaxed);
            runnable.run();
        })
    };
    assert_all(&run_all(x), &Came::Value);
}

/// A panic of `post` reaches the program, as a panic or a stop; no task waits for work that the executor has dropped.
#[test]
fn an_executor_that_panics_with_the_work_in_its_hands_leaves_nobody_waiting() {
    run_all(|| {
        Lawless::new(|_, runnable| {
            let _unrun = runnable;
            panic!("lawless post");
        })
    });
}

#[test]
fn an_executor_that_panics_now_and_then_leaves_nobody_waiting() {
    for nth in 1..8 {
        let pool = ThreadPool::new(1).unwrap();
        run_all(|| {
            let posts = AtomicUsize::new(1);
            Lawless::over(&pool.executor(), move |x, runnable| {
                assert_ne!(posts.fetch_add(1, Ordering::Relaxed), nth, "lawless post");
                x.pass_on(runnable);
            })
        });
    }
}

#[test]
fn an_executor_that_panics_after_it_has_queued_leaves_nobody_waiting() {
    let pool = ThreadPool::new(1).unwrap();
    run_all(|| {
        Lawless::over(&pool.executor(), |x, runnable| {
            x.pass_on(runnable);
            panic!("lawless post");
        })
    });
}

#[test]
fn an_executor_that_panics_after_it_has_run_the_work_leaves_nobody_waiting() {
    run_all(|| {
        Lawless::new(|_, runnable| {
            runnable.run();
            panic!("lawless post");
        })
    });
}

#[test]
fn work_that_is_kept_goes_when_the_last_handle_does() {
    let works = Arc::new(());
    let x = Lawless::new(Lawless::keep);
    let held = works.clone();
    let launched = launch(&x).start(async move { drop(held) });
    assert!(!launched.is_finished());
    drop(x.take());
    assert_eq!(launched.wait(), Outcome::Stopped);
    assert_eq!(Arc::strong_count(&works), 1);
}

/// The executor's last handle lies in the work that it runs inside of `post`: it must be there until `post` returns.
#[test]
fn an_executor_that_is_freed_by_its_own_work_is_there_until_post_returns() {
    fn lone() -> Lawless {
        Lawless::new(|_, runnable| runnable.run())
    }
    for _ in 0..4 {
        assert_eq!(sync_wait(task(async { 1 }).starts_on(&lone())), Outcome::Value(1));
        assert_eq!(launch(&lone()).start(async { 1 }).wait(), Outcome::Value(1));
        let spawned = sync_wait(task(async {
            scope(async |s| {
                s.child().on(&lone()).spawn(async {});
                s.child().on(&lone()).spawn_future(async { checkpoint().await }).await;
            })
            .await;
            run_on(&lone(), async { checkpoint().await }).await;
            let _ = convoke::executor::reschedule(&lone()).await;
            checkpoint().await;
        }));
        assert_eq!(spawned, Outcome::Value(()));
        let threaded = Lawless::new(|x, runnable| {
            let x2 = x.clone();
            x.on_thread(move || {
                drop(x2);
                runnable.run();
            });
        });
        let slept = sync_wait_with(Changes::new().executor(threaded.clone()), task(checkpoint()));
        assert_eq!(slept, Outcome::Value(()));
        threaded.join();
    }
}

/// Panics in one of the things that every handle can do, when it is told to.
struct Brittle {
    inner: RunLoopExecutor,
    panics: Arc<Mutex<Panics>>,
    calls: AtomicUsize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Panics {
    Never,
    InClone(usize),
    InDrop,
    InEq,
    InDispatch,
    InOwnerThread,
    InTimers,
    InContext,
    InWorkBegan,
    InWorkEnded,
}

impl Brittle {
    fn reach(&self, here: Panics) {
        let panics = *self.panics.lock().unwrap();
        assert_ne!(panics, here, "lawless {here:?}");
    }
}

impl Clone for Brittle {
    fn clone(&self) -> Self {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        self.reach(Panics::InClone(call % 4));
        Self { inner: self.inner.clone(), panics: self.panics.clone(), calls: AtomicUsize::new(call + 1) }
    }
}

impl Drop for Brittle {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.reach(Panics::InDrop);
        }
    }
}

impl PartialEq for Brittle {
    fn eq(&self, _: &Self) -> bool {
        self.reach(Panics::InEq);
        false
    }
}

impl Executor for Brittle {
    fn post(&self, runnable: Runnable) {
        self.inner.post(runnable);
    }

    fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
        self.reach(Panics::InDispatch);
        self.inner.dispatch(runnable)
    }

    fn owner_thread(&self) -> Option<&OwnerThread> {
        self.reach(Panics::InOwnerThread);
        self.inner.owner_thread()
    }

    fn timers(&self) -> Option<&dyn Timers> {
        self.reach(Panics::InTimers);
        self.inner.timers()
    }

    fn context(&self) -> Option<&(dyn std::any::Any + Send + Sync)> {
        self.reach(Panics::InContext);
        None
    }

    fn work_began(&self) {
        self.reach(Panics::InWorkBegan);
    }

    fn work_ended(&self) {
        self.reach(Panics::InWorkEnded);
    }
}

/// A program that uses an executor in every way, on the loop that it is a handle of.
async fn uses(x: Brittle, held: Arc<()>) {
    let theirs = held.clone();
    let _ = catch_stopped(run_on(&x, async move {
        checkpoint().await;
        drop(theirs);
    }))
    .await;
    let theirs = held.clone();
    scope(async |s| {
        s.child().on(&x).spawn(async move {
            sleep(Duration::from_micros(10)).await;
            drop(theirs);
        });
        s.child().on(&x).spawn_future(async { checkpoint().await }).await;
        let _ = convoke::executor::reschedule(&x).await;
        checkpoint().await;
        let launched = launch(&x).start(async { scope(async |s| s.spawn(async {})).await });
        launched.await;
    })
    .await;
    drop(held);
}

/// Has the program use such a handle. The loop may be left with work, which goes with it.
fn use_handle(way: Panics) {
    let held = Arc::new(());
    let run_loop = RunLoop::new();
    let panics = Arc::new(Mutex::new(Panics::Never));
    let x = Brittle { inner: run_loop.executor(), panics: panics.clone(), calls: AtomicUsize::new(0) };
    let (theirs, begins) = (held.clone(), panics.clone());
    let ran = Panic::catch(|| {
        run_loop.block_on(async move {
            *begins.lock().unwrap() = way;
            uses(x, theirs).await;
        })
    });
    *panics.lock().unwrap() = Panics::Never;
    let _ = Panic::catch(|| run_loop.run_ready());
    drop(run_loop);
    assert!(way != Panics::Never || ran.is_ok());
    assert_eq!(Arc::strong_count(&held), 1, "{way:?}: work was leaked");
}

#[test]
fn handles_that_panic_in_one_of_their_functions_leave_nobody_waiting() {
    use Panics::{InClone, InContext, InEq, InTimers, InWorkBegan, InWorkEnded, Never};
    for way in
        [Never, InClone(0), InClone(2), InClone(3), InEq, InTimers, InContext, InWorkBegan, InWorkEnded]
    {
        use_handle(way);
    }
}

/// `connect` and `start` of a sender do not unwind: work in flight points into what unwinding would free.
#[test]
fn a_handle_that_panics_where_a_sender_is_started_ends_in_order() {
    let ways = [Panics::InClone(1), Panics::InDrop, Panics::InDispatch, Panics::InOwnerThread];
    let test = "a_handle_that_panics_where_a_sender_is_started_ends_in_order";
    end_in_order(test, ways.len(), |case| use_handle(ways[case]));
}

/// Names the timers of another loop each time that it is asked, and sometimes none.
#[derive(Clone)]
struct Clocks(Arc<[RunLoopExecutor; 2]>, Arc<AtomicUsize>, PoolExecutor);

impl PartialEq for Clocks {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Executor for Clocks {
    fn post(&self, runnable: Runnable) {
        self.2.post(runnable);
    }

    fn timers(&self) -> Option<&dyn Timers> {
        match self.1.fetch_add(1, Ordering::Relaxed) % 3 {
            2 => None,
            loop_of => self.0[loop_of].timers(),
        }
    }
}

/// A timer is taken back from those that it was armed by, whatever the executor names as its timers by then.
#[test]
fn an_executor_that_names_other_timers_each_time_mixes_up_none_of_them() {
    let (pool, loops) = (ThreadPool::new(1).unwrap(), [RunLoop::new(), RunLoop::new()]);
    let executors = Arc::new(loops.each_ref().map(RunLoop::executor));
    let x = Clocks(executors, Arc::default(), pool.executor());
    let launched = launch(&x).start(async {
        let far = Duration::from_secs(3600);
        let mut sleeps: Vec<_> = (0..4).map(|_| Box::pin(sleep(far).into_future())).collect();
        let mut operation = Box::pin(sleep(far).into_awaited());
        for _ in 0..6 {
            poll_fn(|cx| {
                // Another waker each time: the timer is taken back, and armed again.
                let waker = Waker::from(Arc::new(Passes(cx.waker().clone())));
                let mut cx = Context::from_waker(&waker);
                sleeps.iter_mut().for_each(|sleep| assert!(sleep.as_mut().poll(&mut cx).is_pending()));
                assert!(operation.as_mut().poll(&mut cx).is_pending());
                Poll::Ready(())
            })
            .await;
            checkpoint().await;
        }
    });
    assert_eq!(launched.wait(), Outcome::Value(()));
}

/// A waker around another.
struct Passes(Waker);

impl Wake for Passes {
    fn wake(self: Arc<Self>) {
        self.0.wake_by_ref();
    }
}

/// Asks its context for the executor whenever it is cloned or goes.
struct AsksContext(&'static convoke::executor::Context);

impl Clone for AsksContext {
    fn clone(&self) -> Self {
        self.ask();
        Self(self.0)
    }
}

impl AsksContext {
    /// Once: the answer is a clone of this one.
    fn ask(&self) {
        thread_local! {
            static ASKING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
        }
        if !ASKING.replace(true) {
            drop(self.0.executor());
            ASKING.set(false);
        }
    }
}

impl Drop for AsksContext {
    fn drop(&mut self) {
        self.ask();
    }
}

impl PartialEq for AsksContext {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Executor for AsksContext {
    fn post(&self, runnable: Runnable) {
        drop(runnable);
    }
}

#[test]
fn an_executor_may_ask_its_context_while_it_is_cloned_or_dropped() {
    static CONTEXT: LazyLock<convoke::executor::Context> = LazyLock::new(convoke::executor::Context::default);
    let context = &*CONTEXT;
    context.set_executor(ExecutorRef::new(AsksContext(context)));
    assert!(context.executor().is_some());
    context.set_executor(ExecutorRef::new(AsksContext(context)));
    context.end();
    assert!(context.executor().is_none());
}
