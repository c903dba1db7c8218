//! Homes that are closed, and executors that are wrong about theirs. What must not leave its thread does not, and nobody waits
//! for a thread that waits for him.
#![cfg(all(feature = "testing", not(feature = "loom")))]

use std::any::Any;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::process::Command;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread::{self, ThreadId};

use convoke::RunLoopExecutor;
use convoke::prelude::*;
use convoke::raw::{Home, Runnable};
use convoke::testing::runnable;

/// Notes down on which thread it goes, and must not leave its own.
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

/// Never dropped, and where tools that look for leaks find it: for what belongs to a frame that is leaked.
fn keep(what: impl Send + 'static) {
    static KEPT: Mutex<Vec<Box<dyn Any + Send>>> = Mutex::new(Vec::new());
    KEPT.lock().unwrap().push(Box::new(what));
}

/// Waits for ever, and gives its waker away.
async fn wait_with(wakers: mpsc::Sender<Waker>) {
    poll_fn(|cx| {
        let _ = wakers.send(cx.waker().clone());
        Poll::<()>::Pending
    })
    .await;
}

#[test]
fn what_must_not_leave_its_thread_is_not_dropped_by_the_next_thread_in_its_memory() {
    let left = Arc::new(AtomicUsize::new(0));
    for _ in 0..5 {
        let (wakers, woken) = mpsc::channel();
        let away = left.clone();
        keep((wakers.clone(), left.clone()));
        // A thread whose loop ends before a task of it that is not `Send`.
        let first = thread::spawn(move || {
            let run_loop = RunLoop::new();
            let launched = launch(&run_loop.executor()).start(async move {
                let _ = scope(async |s| {
                    s.spawn_local(async move {
                        let _stays = Stays::new(&away);
                        wait_with(wakers).await;
                    });
                })
                .await;
            });
            run_loop.run_ready();
            drop(run_loop);
            // Dropping it would wait for a task that nobody ends.
            keep(launched);
        });
        first.join().unwrap();
        let waker = woken.recv().unwrap();
        // The next thread mostly gets the stack and the thread-locals of the first one.
        thread::spawn(move || waker.wake()).join().unwrap();
    }
    assert_eq!(left.load(Ordering::Relaxed), 0, "dropped on another thread");
}

/// Does what it was made with when it goes.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn a_destructor_in_a_loop_that_ends_may_join_a_thread_that_ends_a_loop() {
    let run_loop = RunLoop::new();
    let joins = OnDrop(|| thread::spawn(|| drop(RunLoop::new())).join().unwrap());
    run_loop.executor().post(runnable(move |_| {
        let _owned = &joins;
    }));
    drop(run_loop);
}

#[test]
fn a_destructor_in_a_closed_home_may_join_a_thread_that_ends_a_loop() {
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
    assert!(ended.load(Ordering::Relaxed), "it was woken, and so has ended with its loop");
    assert_eq!(launched.wait(), Outcome::Stopped);
}

#[test]
fn letters_for_a_closed_home_that_is_occupied_are_opened_by_its_occupant() {
    let (wakers, woken) = mpsc::channel();
    let run_loop = RunLoop::new();
    let executor = run_loop.executor();
    let second = launch(&executor).start(wait_with(wakers));
    run_loop.run_ready();
    let waker = woken.recv().unwrap();
    let woken_inside = Arc::new(AtomicBool::new(false));
    let wakes = OnDrop({
        let woken_inside = woken_inside.clone();
        // On another thread, which returns at once although the home is occupied.
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
    assert!(second.has_ended(), "the letter was opened when the loop had ended");
    assert_eq!(second.wait(), Outcome::Stopped);
}

/// Posts to a list, and names the home of a loop that it knows nothing else of.
#[derive(Clone)]
struct NamesAnother {
    home: RunLoopExecutor,
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

    fn home(&self) -> Option<&Home> {
        self.home.home()
    }
}

/// What is posted for a home outlives the executor that the home came from. Only a memory checker sees if it does not.
#[test]
fn what_is_posted_for_a_home_keeps_the_home() {
    let posted = Arc::new(Mutex::new(Vec::new()));
    let launched = {
        let run_loop = RunLoop::new();
        let executor = NamesAnother { home: run_loop.executor(), posted: posted.clone() };
        let launched = launch(&executor).start(async {});
        // Refused by a stranger: a letter, whose runnable is posted.
        let first = posted.lock().unwrap().pop().unwrap();
        thread::spawn(move || drop(first)).join().unwrap();
        assert_eq!(posted.lock().unwrap().len(), 1);
        launched
    };
    // The loop has ended and opened its letters; what was posted for its home is still there.
    assert_eq!(launched.wait(), Outcome::Stopped);
    let left = std::mem::take(&mut *posted.lock().unwrap());
    drop(left);
}

/// Names the home of one loop, and from some time on that of another.
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

    fn home(&self) -> Option<&Home> {
        self.now().home()
    }
}

impl Moves {
    fn now(&self) -> &RunLoopExecutor {
        if self.moved.load(Ordering::Relaxed) { &self.then } else { &self.first }
    }
}

/// A task at home on one loop is woken while it runs, when its executor names the loop of another thread, and so has to wait for
/// its letter at its end. If the letter went to that loop, the other thread would take the outcome out of the task.
fn end_with_a_letter_to_another_home() {
    let (executors, executor) = mpsc::channel();
    let other = thread::spawn(move || {
        let run_loop = RunLoop::new();
        executors.send(run_loop.executor()).unwrap();
        run_loop.run();
    });
    let run_loop = RunLoop::new();
    let (then, moved) = (executor.recv().unwrap(), Arc::new(AtomicBool::new(false)));
    let executor = Moves { first: run_loop.executor(), then: then.clone(), moved: moved.clone() };
    let away = Arc::new(AtomicUsize::new(0));
    let launched = launch(&executor).start({
        let away = away.clone();
        async move {
            scope(async |s| {
                let child = s.spawn_future_local(poll_fn(move |cx| {
                    moved.store(true, Ordering::Relaxed);
                    let waker = cx.waker().clone();
                    thread::spawn(move || waker.wake()).join().unwrap();
                    Poll::Ready(Stays::new(&away))
                }));
                drop(child);
            })
            .await
        }
    });
    run_loop.run_ready();
    then.finish();
    other.join().unwrap();
    println!("dropped on another thread: {}", away.load(Ordering::Relaxed));
    std::mem::forget(launched);
}

#[test]
fn an_executor_that_names_another_home_for_a_task_ends_the_process() {
    const AGAIN: &str = "END_WITH_A_LETTER_TO_ANOTHER_HOME";
    // In a process of its own, which Miri cannot start.
    if cfg!(miri) {
        return;
    }
    if std::env::var_os(AGAIN).is_some() {
        return end_with_a_letter_to_another_home();
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "an_executor_that_names_another_home_for_a_task_ends_the_process", "--nocapture"]);
    let ended = again.env(AGAIN, "1").output().unwrap();
    let (out, error) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(!out.contains("dropped on another thread: 1"), "{out}");
    assert!(error.contains("did not name the home that the task lives in"), "{out}{error}");
}

#[test]
fn a_thread_is_not_the_own_thread_of_a_home_that_an_earlier_one_has_made() {
    let home = thread::spawn(Home::new).join().unwrap();
    thread::spawn(move || assert!(!home.is_own_thread())).join().unwrap();
    let here = Home::new();
    assert!(here.is_own_thread());
}
