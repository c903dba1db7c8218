//! Owner threads that are closed, and executors that name a wrong one. A value that must not leave its thread
//! does not, and no thread waits for a thread that waits for it.

use std::any::Any;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::process::Command;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread::{self, ThreadId};

use convoke::Executor;
use convoke::executor::RunLoop;
use convoke::executor::RunLoopExecutor;
use convoke::prelude::*;
use convoke::raw::{OwnerThread, Runnable};
use convoke::testing::runnable;

/// Records a drop on another thread than the one that created it.
struct Stays {
    made: ThreadId,
    left: Arc<AtomicUsize>,
    _not_send: PhantomData<Rc<()>>,
}

impl Stays {
    fn new(left: &Arc<AtomicUsize>) -> Self {
        Self { made: thread::current().id(), left: left.clone(), _not_send: PhantomData }
    }
}

impl Drop for Stays {
    fn drop(&mut self) {
        if self.made != thread::current().id() {
            self.left.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Stores a value that is never dropped where leak checkers find it: it belongs to a frame that is leaked.
fn leak(value: impl Send + 'static) {
    static LEAKED: Mutex<Vec<Box<dyn Any + Send>>> = Mutex::new(Vec::new());
    LEAKED.lock().unwrap().push(Box::new(value));
}

/// Waits for ever, and sends its waker away.
async fn wait_with(wakers: mpsc::Sender<Waker>) {
    poll_fn(|cx| {
        let _ = wakers.send(cx.waker().clone());
        Poll::<()>::Pending
    })
    .await;
}

#[test]
fn a_value_that_must_not_leave_its_thread_is_not_dropped_by_the_next_thread_in_its_memory() {
    let left = Arc::new(AtomicUsize::new(0));
    for _ in 0..5 {
        let (wakers, woken) = mpsc::channel();
        let elsewhere = left.clone();
        leak((wakers.clone(), left.clone()));
        // A thread whose loop is dropped before one of its tasks, which is not `Send`.
        let first = thread::spawn(move || {
            let run_loop = RunLoop::new();
            let launched = launch(&run_loop.executor()).start(async move {
                let _ = scope(async |s| {
                    s.child().local().spawn(async move {
                        let _stays = Stays::new(&elsewhere);
                        wait_with(wakers).await;
                    });
                })
                .await;
            });
            run_loop.run_ready();
            drop(run_loop);
            // Dropping it would wait for a task that never ends.
            leak(launched);
        });
        first.join().unwrap();
        let waker = woken.recv().unwrap();
        // The next thread usually gets the stack and the thread-locals of the first one.
        thread::spawn(move || waker.wake()).join().unwrap();
    }
    assert_eq!(left.load(Ordering::Relaxed), 0, "dropped on another thread");
}

/// Calls a closure when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn a_destructor_in_a_loop_that_is_dropped_may_join_a_thread_that_drops_a_loop() {
    let run_loop = RunLoop::new();
    let joins = OnDrop(|| thread::spawn(|| drop(RunLoop::new())).join().unwrap());
    run_loop.executor().post(runnable(move |_| {
        let _owned = &joins;
    }));
    drop(run_loop);
}

#[test]
fn a_destructor_on_a_closed_owner_thread_may_join_a_thread_that_drops_a_loop() {
    let (wakers, woken) = mpsc::channel();
    let run_loop = RunLoop::new();
    let ended = Arc::new(AtomicBool::new(false));
    let launched = launch(&run_loop.executor()).start({
        let ended = ended.clone();
        async move {
            let _joins = OnDrop(move || {
                thread::spawn(|| drop(RunLoop::new())).join().unwrap();
                ended.store(true, Ordering::Relaxed);
            });
            wait_with(wakers).await;
        }
    });
    run_loop.run_ready();
    drop(run_loop);
    let waker = woken.recv().unwrap();
    thread::spawn(move || waker.wake()).join().unwrap();
    assert!(ended.load(Ordering::Relaxed), "it was woken, and so it ended with its loop");
    assert_eq!(launched.wait(), Outcome::Stopped);
}

#[test]
fn remote_wakes_for_a_closed_owner_thread_that_is_occupied_are_handled_by_its_occupant() {
    let (wakers, woken) = mpsc::channel();
    let run_loop = RunLoop::new();
    let executor = run_loop.executor();
    let second = launch(&executor).start(wait_with(wakers));
    run_loop.run_ready();
    let waker = woken.recv().unwrap();
    let woken_inside = Arc::new(AtomicBool::new(false));
    let wakes = OnDrop({
        let woken_inside = woken_inside.clone();
        // On another thread, which returns at once although the owner thread is occupied.
        move || {
            let waker = waker.clone();
            thread::spawn(move || waker.wake()).join().unwrap();
            woken_inside.store(true, Ordering::Relaxed);
        }
    });
    executor.post(runnable(move |_| {
        let _owned = &wakes;
    }));
    drop(run_loop);
    assert!(woken_inside.load(Ordering::Relaxed));
    assert!(second.is_finished(), "the remote wake was handled when the loop had ended");
    assert_eq!(second.wait(), Outcome::Stopped);
}

/// Posts to a list, and names the owner thread of a loop with which it has nothing else in common.
#[derive(Clone)]
struct NamesAnother {
    owner: RunLoopExecutor,
    posted: Arc<Mutex<Vec<Runnable>>>,
}

impl PartialEq for NamesAnother {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.posted, &other.posted)
    }
}

impl Executor for NamesAnother {
    fn post(&self, runnable: Runnable) {
        self.posted.lock().unwrap().push(runnable);
    }

    fn owner_thread(&self) -> Option<&OwnerThread> {
        self.owner.owner_thread()
    }
}

/// Work that is posted for an owner thread outlives the executor from which the owner thread came. Only a
/// memory checker detects a failure.
#[test]
fn posted_work_keeps_its_owner_thread_alive() {
    let posted = Arc::new(Mutex::new(Vec::new()));
    let launched = {
        let run_loop = RunLoop::new();
        let executor = NamesAnother { owner: run_loop.executor(), posted: posted.clone() };
        let launched = launch(&executor).start(async {});
        // Refused by another thread: a remote wake, whose runnable is posted.
        let first = posted.lock().unwrap().pop().unwrap();
        thread::spawn(move || drop(first)).join().unwrap();
        assert_eq!(posted.lock().unwrap().len(), 1);
        launched
    };
    // The loop is dropped and has handled its remote wakes; what was posted for its owner thread still
    // exists.
    assert_eq!(launched.wait(), Outcome::Stopped);
    let left = std::mem::take(&mut *posted.lock().unwrap());
    drop(left);
}

/// Names the owner thread of one loop, and later that of another.
#[derive(Clone)]
struct Moves {
    first: RunLoopExecutor,
    then: RunLoopExecutor,
    moved: Arc<AtomicBool>,
}

impl PartialEq for Moves {
    fn eq(&self, other: &Self) -> bool {
        self.first == other.first
    }
}

impl Executor for Moves {
    fn post(&self, runnable: Runnable) {
        self.now().post(runnable);
    }

    fn owner_thread(&self) -> Option<&OwnerThread> {
        self.now().owner_thread()
    }
}

impl Moves {
    fn now(&self) -> &RunLoopExecutor {
        if self.moved.load(Ordering::Relaxed) { &self.then } else { &self.first }
    }
}

/// A task of one loop is woken while it runs, after its executor has begun to name the loop of another
/// thread, and so has to wait for its remote wake at its end. If the remote wake went to that loop, the other
/// thread would take the outcome out of the task.
fn end_with_a_remote_wake_to_another_owner() {
    let (executors, executor) = mpsc::channel();
    let other = thread::spawn(move || {
        let run_loop = RunLoop::new();
        executors.send(run_loop.executor()).unwrap();
        run_loop.run();
    });
    let run_loop = RunLoop::new();
    let (then, moved) = (executor.recv().unwrap(), Arc::new(AtomicBool::new(false)));
    let executor = Moves { first: run_loop.executor(), then: then.clone(), moved: moved.clone() };
    let elsewhere = Arc::new(AtomicUsize::new(0));
    let launched = launch(&executor).start({
        let elsewhere = elsewhere.clone();
        async move {
            scope(async |s| {
                let child = s.child().local().spawn_future(poll_fn(move |cx| {
                    moved.store(true, Ordering::Relaxed);
                    let waker = cx.waker().clone();
                    thread::spawn(move || waker.wake()).join().unwrap();
                    Poll::Ready(Stays::new(&elsewhere))
                }));
                drop(child);
            })
            .await
        }
    });
    run_loop.run_ready();
    then.finish();
    other.join().unwrap();
    println!("dropped on another thread: {}", elsewhere.load(Ordering::Relaxed));
    std::mem::forget(launched);
}

#[test]
fn an_executor_that_names_another_owner_thread_for_a_task_aborts_the_process() {
    const AGAIN: &str = "END_WITH_A_REMOTE_WAKE_TO_ANOTHER_OWNER";
    // In a separate process, which Miri cannot start.
    if cfg!(miri) {
        return;
    }
    if std::env::var_os(AGAIN).is_some() {
        return end_with_a_remote_wake_to_another_owner();
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    let test = "owner_threads::an_executor_that_names_another_owner_thread_for_a_task_aborts_the_process";
    again.args(["--exact", test, "--nocapture"]);
    let ended = again.env(AGAIN, "1").output().unwrap();
    let (out, error) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(!out.contains("dropped on another thread: 1"), "{out}");
    assert!(error.contains("did not name its owner thread"), "{out}{error}");
}

#[test]
fn a_thread_does_not_own_an_owner_thread_that_an_earlier_thread_created() {
    let owner = thread::spawn(OwnerThread::new).join().unwrap();
    thread::spawn(move || assert!(!owner.is_own_thread())).join().unwrap();
    let here = OwnerThread::new();
    assert!(here.is_own_thread());
}
