//! Launching tasks from ordinary code: the options of a launch, and waiting for the end.

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{self, Poll, Wake, Waker};

use convoke::alloc::{Bounded, Counting, FrameAllocator};
use convoke::env::current;
use convoke::env::{Changes, Local};
use convoke::executor::RunLoop;
use convoke::executor::{Context, InlineExecutor};
use convoke::prelude::*;
use convoke::sender::prelude::*;

static REQUEST: Local<u32> = Local::inherited("request");

struct Leaves(Arc<AtomicUsize>);

impl Drop for Leaves {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_launched_task_runs_on_its_executor_and_is_waited_for() {
    let pool = ThreadPool::new(2).unwrap();
    let here = std::thread::current().id();
    let launched = launch(&pool.executor()).start(async move {
        checkpoint().await;
        std::thread::current().id() != here
    });
    assert_eq!(launched.wait(), Outcome::Value(true));
}

#[test]
fn the_options_of_a_launch_are_seen_below_and_nothing_else() {
    let pool = ThreadPool::new(1).unwrap();
    let executor = pool.executor();
    let launched = launch(&executor)
        .local(&REQUEST, 7)
        .start(async { scope(async |s| s.spawn_future(async { current::local(&REQUEST) }).await).await });
    assert_eq!(launched.wait(), Outcome::Value(Some(7)));
    let nested = sync_wait_with(
        Changes::new().local(&REQUEST, 8),
        task(async move { launch(&executor).start(async { current::local(&REQUEST) }).await }),
    );
    assert_eq!(nested, Outcome::Value(None));
}

#[test]
fn frames_come_from_the_launch_or_else_from_the_context() {
    let pool = ThreadPool::new(1).unwrap();
    let own = Counting::new(FrameAllocator::system());
    let shared = Counting::new(FrameAllocator::system());
    let context = Context::new().with_allocator(FrameAllocator::new(shared.clone()));
    let run = |launch: convoke::task::Launch| launch.start(async { just(1).await }).wait();

    let _ = run(launch(&pool.executor()));
    assert_eq!((own.total(), shared.total()), (0, 0));
    let _ = run(launch(&pool.executor()).context(&context));
    let taken = shared.total();
    assert!(taken >= 1 && own.total() == 0);
    let frames = FrameAllocator::new(own.clone());
    let _ = run(launch(&pool.executor()).allocator(frames).context(&context));
    assert!(own.total() >= 1 && shared.total() == taken);
    drop(pool);
    assert_eq!((own.live(), shared.live()), (0, 0));
}

#[test]
fn a_token_and_the_handle_ask_the_task_to_stop() {
    let pool = ThreadPool::new(1).unwrap();
    let source = StopSource::new();
    let reasons = Arc::new(Mutex::new(Vec::new()));
    let tell = |reasons: &Arc<Mutex<Vec<_>>>| {
        let reasons = reasons.clone();
        move |stopped: Stopped| reasons.lock().unwrap().push(stopped.reason())
    };
    let by_token = launch(&pool.executor())
        .stop_token(source.token())
        .on_stopped(tell(&reasons))
        .start(async { never::<()>().await });
    source.request_stop(StopReason::Shutdown);
    assert_eq!(by_token.wait(), Outcome::Stopped);

    let by_guard = launch(&pool.executor()).on_stopped(tell(&reasons)).start(async { never::<()>().await });
    by_guard.request_stop(StopReason::Named("enough"));
    assert_eq!(by_guard.wait(), Outcome::Stopped);
    let expected = [Some(StopReason::Shutdown), Some(StopReason::Named("enough"))];
    assert_eq!(*reasons.lock().unwrap(), expected);
}

#[test]
fn dropping_the_handle_stops_the_task_and_waits_for_it() {
    let pool = ThreadPool::new(1).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let leaves = Leaves(count.clone());
    let (tx, rx) = mpsc::channel();
    let launched = launch(&pool.executor()).start(async move {
        let _leaves = leaves;
        tx.send(()).unwrap();
        never::<()>().await
    });
    rx.recv().unwrap();
    drop(launched);
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[test]
fn a_handle_that_is_dropped_in_a_task_is_waited_for_by_that_task() {
    let pool = ThreadPool::new(1).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    for _ in 0..if cfg!(miri) { 3 } else { 100 } {
        let (executor, leaves) = (pool.executor(), Leaves(count.clone()));
        count.store(0, Ordering::SeqCst);
        let outcome = sync_wait(task(async move {
            drop(launch(&executor).start(async move {
                let _leaves = leaves;
                never::<()>().await
            }));
            "went on"
        }));
        assert_eq!(outcome, Outcome::Value("went on"));
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn a_task_may_launch_on_its_own_thread_and_drop_the_handle() {
    let count = Arc::new(AtomicUsize::new(0));
    let leaves = Leaves(count.clone());
    let outcome = sync_wait(task(async move {
        let executor = current::executor();
        drop(launch(&executor).start(async move {
            let _leaves = leaves;
            never::<()>().await
        }));
        let kept = launch(&executor).start(async { 5 });
        kept.await
    }));
    assert_eq!(outcome, Outcome::Value(5));
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[test]
fn a_task_awaits_a_launched_task_and_passes_its_own_stop_on() {
    let pool = ThreadPool::new(1).unwrap();
    let executor = pool.executor();
    let source = StopSource::new();
    let (seen, reasons) = mpsc::channel();
    let (started, starts) = mpsc::channel();
    let stopper = source.clone();
    let thread = std::thread::spawn(move || {
        starts.recv().unwrap();
        stopper.request_stop(StopReason::Shutdown);
    });
    let outcome = sync_wait_with(
        Changes::new().stop_token(source.token()),
        task(async move {
            let chain = launch(&executor)
                .on_stopped(move |stopped: Stopped| seen.send(stopped.reason()).unwrap())
                .start(async move {
                    started.send(()).unwrap();
                    never::<()>().await
                });
            chain.await
        }),
    );
    thread.join().unwrap();
    assert_eq!(outcome, Outcome::Stopped);
    assert_eq!(reasons.recv().unwrap(), Some(StopReason::Shutdown));
}

#[test]
fn a_launched_task_is_a_sender() {
    let pool = ThreadPool::new(1).unwrap();
    let one = launch(&pool.executor()).start(async { 1 });
    let two = launch(&pool.executor()).start(async { 2 });
    assert_eq!(sync_wait(when_all((one, two)).then(|(one, two)| one + two)), Outcome::Value(3));
    let ended = launch(&InlineExecutor).start(async { 3 });
    assert!(ended.is_finished());
    assert_eq!(sync_wait(ended), Outcome::Value(3));
    let unstarted = launch(&pool.executor()).start(async { never::<()>().await });
    drop(unstarted.then(|()| 1));
}

#[test]
fn handlers_see_values_and_errors_on_the_executor() {
    let pool = ThreadPool::new(1).unwrap();
    let here = std::thread::current().id();
    let thread = move |_: u32| std::thread::current().id() != here;
    assert_eq!(launch(&pool.executor()).on_value(thread).start(async { 1 }).wait(), Outcome::Value(true));

    async fn halve(n: u32) -> Result<u32, String> {
        if n.is_multiple_of(2) { Ok(n / 2) } else { Err(format!("{n} is odd")) }
    }
    let both = |n| {
        launch(&pool.executor())
            .on_value(|n: u32| n + 1)
            .on_error(|error: String| error.len())
            .start(halve(n))
            .wait()
    };
    assert_eq!(both(4), Outcome::Value(Ok(3)));
    assert_eq!(both(3), Outcome::Value(Err(8)));
    let errors = launch(&pool.executor()).on_error(|error: String| error.len()).start(halve(3)).wait();
    assert_eq!(errors, Outcome::Value(Err(8)));
    let whole = launch(&pool.executor()).on_value(|all: Result<u32, String>| all.is_err()).start(halve(3));
    assert_eq!(whole.wait(), Outcome::Value(true));
}

#[test]
fn a_panic_is_reported_and_resumed_where_the_task_is_waited_for() {
    let pool = ThreadPool::new(1).unwrap();
    let (tx, rx) = mpsc::channel();
    let launched = launch(&pool.executor())
        .name("unlucky")
        .on_panic(move |panic| tx.send(panic.message().to_owned()).unwrap())
        .start(async { panic!("boom") });
    let panic = Panic::catch(|| launched.wait()).unwrap_err();
    let heard = rx.recv().unwrap();
    assert!(heard.contains("`unlucky`") && heard.contains("boom"), "{heard}");
    assert_eq!(panic.message(), heard);
}

#[test]
fn a_panic_of_a_handler_is_that_of_the_task() {
    let pool = ThreadPool::new(1).unwrap();
    let (tx, rx) = mpsc::channel();
    let launched = launch(&pool.executor())
        .on_value(|_: u32| -> u32 { panic!("cannot handle") })
        .on_panic(move |panic| tx.send(panic.message().to_owned()).unwrap())
        .start(async { 1 });
    let panic = Panic::catch(|| launched.wait()).unwrap_err();
    assert_eq!(panic.message(), "cannot handle");
    assert_eq!(rx.recv().unwrap(), "cannot handle");
}

#[test]
fn an_executor_that_ends_stops_its_launched_tasks() {
    let pool = ThreadPool::new(1).unwrap();
    let executor = pool.executor();
    drop(pool);
    assert_eq!(launch(&executor).start(async { 1 }).wait(), Outcome::Stopped);
    let run_loop = RunLoop::new();
    let launched = launch(&run_loop.executor()).start(async { never::<()>().await });
    run_loop.run_ready();
    drop(run_loop);
    // It waits for something, and so was not in the queue of the loop.
    launched.request_stop(StopReason::Shutdown);
    assert_eq!(launched.wait(), Outcome::Stopped);
}

#[test]
fn waiting_for_a_loop_that_this_thread_would_have_to_run_is_refused() {
    let run_loop = RunLoop::new();
    let launched = launch(&run_loop.executor()).start(async { 1 });
    let panic = Panic::catch(|| launched.wait()).unwrap_err();
    assert!(panic.message().contains("cannot wait for it"), "{}", panic.message());
    assert!(panic.message().contains(file!()), "where it was launched: {}", panic.message());

    let dropped = launch(&run_loop.executor()).start(async { 1 });
    let panic = Panic::catch(|| drop(dropped)).unwrap_err();
    assert!(panic.message().contains("dropped here before it has ended"), "{}", panic.message());

    let launched = launch(&run_loop.executor()).start(async { 1 });
    run_loop.run_ready();
    assert_eq!(launched.wait(), Outcome::Value(1));
}

#[test]
fn without_memory_nothing_is_launched_and_a_panic_says_so() {
    let pool = ThreadPool::new(1).unwrap();
    let launch = launch(&pool.executor()).allocator(FrameAllocator::new(Bounded::new(1024)));
    let large = [0_u8; 4096];
    let run = || launch.start(async move { large.len() });
    let panic = Panic::catch(run).map(drop).unwrap_err();
    assert!(panic.message().contains("no memory left for the task"), "{}", panic.message());
}

#[test]
fn a_task_that_ends_with_a_stop_request_in_flight_ends_once() {
    let counting = Counting::new(FrameAllocator::system());
    let run_loop = RunLoop::new();
    let count = Arc::new(AtomicUsize::new(0));
    let told = count.clone();
    let launched = launch(&run_loop.executor())
        .allocator(FrameAllocator::new(counting.clone()))
        .on_value(move |leaves: Leaves| {
            told.fetch_add(10, Ordering::SeqCst);
            leaves
        })
        .start({
            let leaves = Leaves(count.clone());
            async move { leaves }
        });
    // This is not the owner thread: the request is a remote wake, and is received after the task has run.
    launched.request_stop(StopReason::Requested);
    run_loop.run_ready();
    drop(launched.wait());
    assert_eq!(count.load(Ordering::SeqCst), 11);
    drop(run_loop);
    assert_eq!(counting.live(), 0);
}

#[test]
fn a_task_is_freed_although_its_executor_panics_in_work_ended() {
    /// Runs work at once, and panics in `work_ended`.
    #[derive(Clone, PartialEq)]
    struct Touchy(InlineExecutor);

    impl Executor for Touchy {
        fn post(&self, runnable: convoke::raw::Runnable) {
            self.0.post(runnable);
        }

        fn work_ended(&self) {
            panic!("told of an end");
        }
    }

    let counting = Counting::new(FrameAllocator::system());
    let launch = launch(&Touchy(InlineExecutor)).allocator(FrameAllocator::new(counting.clone()));
    assert_eq!(launch.start(async { 7 }).wait(), Outcome::Value(7));
    assert_eq!(counting.live(), 0, "the task is not freed");
}

#[test]
fn launches_one_after_the_other_need_the_memory_of_one() {
    let pool = ThreadPool::new(1).unwrap();
    let memory = Counting::new(FrameAllocator::system());
    let measure = launch(&pool.executor()).allocator(FrameAllocator::new(memory.clone()));
    measure.start(async { checkpoint().await }).wait().unwrap();
    assert_eq!(memory.live_bytes(), 0, "all of it was released before the waiter heard");
    let bounded = FrameAllocator::new(Bounded::new(memory.peak_bytes() + 16 * memory.peak()));
    for round in 0..if cfg!(miri) { 20 } else { 2_000 } {
        let launched =
            launch(&pool.executor()).allocator(bounded.clone()).try_start(async { checkpoint().await });
        assert!(launched.is_ok(), "there was no memory in round {round}");
        launched.ok().unwrap().wait().unwrap();
    }
}

#[test]
fn a_launch_without_memory_hands_the_future_back() {
    let pool = ThreadPool::new(1).unwrap();
    let bounded = FrameAllocator::new(Bounded::new(16));
    let refused = launch(&pool.executor()).allocator(bounded).try_start(async { 7 });
    let Err(future) = refused else { panic!("there is memory for it") };
    assert_eq!(block_on(future), Outcome::Value(7));
}

/// Polls a future on this thread, which is no task of Convoke's.
fn outside<F: Future>(future: F) -> F::Output {
    struct Unparks(std::thread::Thread);

    impl Wake for Unparks {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let mut future = std::pin::pin!(future);
    let waker = Waker::from(Arc::new(Unparks(std::thread::current())));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut task::Context::from_waker(&waker)) {
            return output;
        }
        std::thread::park();
    }
}

#[test]
fn a_launched_task_is_joined_by_a_future_outside_of_all_tasks() {
    let pool = ThreadPool::new(1).unwrap();
    let mut launched = launch(&pool.executor()).start(async {
        checkpoint().await;
        7
    });
    assert_eq!(outside(poll_fn(|cx| launched.poll_join(cx))), Ok(7));
    assert!(launched.is_finished());
    launched.request_stop(StopReason::Requested);
}

#[test]
fn a_join_outside_of_tasks_tells_the_reason_of_a_stop_and_resumes_a_panic() {
    let pool = ThreadPool::new(1).unwrap();
    let mut launched = launch(&pool.executor()).start(async { never::<()>().await });
    launched.request_stop(StopReason::Named("enough"));
    let stopped = outside(poll_fn(|cx| launched.poll_join(cx))).unwrap_err();
    assert_eq!(stopped.reason(), Some(StopReason::Named("enough")));
    let mut launched = launch(&pool.executor()).name("clumsy").start(async { panic!("a mistake") });
    let joined = Panic::catch(|| outside(poll_fn(|cx| launched.poll_join(cx))));
    assert!(joined.unwrap_err().message().contains("a mistake"));
    assert!(launched.is_finished());
}

#[test]
fn the_last_waker_that_polled_a_join_is_woken() {
    let run_loop = RunLoop::new();
    let mut launched = launch(&run_loop.executor()).start(async { 7 });
    let (first, second) = (Arc::new(Counts::default()), Arc::new(Counts::default()));
    for counts in [&first, &first, &second] {
        let waker = Waker::from(counts.clone());
        assert!(launched.poll_join(&mut task::Context::from_waker(&waker)).is_pending());
    }
    run_loop.run_ready();
    assert_eq!((first.0.load(Ordering::SeqCst), second.0.load(Ordering::SeqCst)), (0, 1));
    assert_eq!(Arc::strong_count(&first), 1, "a waker that was replaced is dropped");
    assert_eq!(launched.wait(), Outcome::Value(7));
}

#[derive(Default)]
struct Counts(AtomicUsize);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_local_launch_takes_a_future_that_is_not_send() {
    let run_loop = RunLoop::new();
    let shared = std::rc::Rc::new(7);
    let launched = run_loop.on_owner_thread(|| {
        let shared = shared.clone();
        launch(&run_loop.executor()).start_local(async move {
            checkpoint().await;
            shared
        })
    });
    run_loop.run_ready();
    assert_eq!(*launched.wait().unwrap(), 7);
    assert_eq!(std::rc::Rc::strong_count(&shared), 1);
}

#[test]
#[should_panic(expected = "a local task is started on the thread of its executor")]
fn a_local_launch_on_another_thread_panics() {
    let pool = ThreadPool::new(1).unwrap();
    let _launched = launch(&pool.executor()).start_local(async {});
}

/// A waker that panics when it is dropped.
struct PanickingWaker;

impl std::task::Wake for PanickingWaker {
    fn wake(self: std::sync::Arc<Self>) {
        std::mem::forget(self);
    }
}

impl Drop for PanickingWaker {
    fn drop(&mut self) {
        panic!("a waker that is replaced");
    }
}

/// Regression: it was dropped under a lock, inside the start of an operation, which aborted the process.
#[test]
fn a_waker_of_poll_join_that_panics_when_it_is_replaced_is_contained() {
    let pool = ThreadPool::new(2).unwrap();
    let (executor, (open, gate)) = (pool.executor(), std::sync::mpsc::channel::<()>());
    let outer = launch(&pool.executor()).start(async move {
        let mut launched = launch(&executor).start(async move { _ = gate.recv() });
        let waker = std::task::Waker::from(std::sync::Arc::new(PanickingWaker));
        assert!(launched.poll_join(&mut std::task::Context::from_waker(&waker)).is_pending());
        drop(waker);
        join((async { launched.await }, async { open.send(()).unwrap() })).await;
    });
    assert_eq!(outer.wait(), Outcome::Value(()));
}
