//! Executors with a wrong owner thread, on which their tasks that are not `Send` stay: they name that of another loop, one that no
//! thread ever enters, or another one each time. No such task may be run or dropped on another thread. Where the program cannot go on,
//! the process aborts with a message, so each case runs in a process of its own.
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::thread;

use crate::lawless::{Stays, end_in_order};
use convoke::Executor;
use convoke::executor::{BlockOn, RunLoop};
use convoke::executor::{ExecutorRef, RunLoopExecutor};
use convoke::prelude::*;
use convoke::raw::{OwnerThread, Runnable};
use convoke::scope::scope_on;
use convoke::task::stopped;
use convoke::{launch, run_on};

/// An executor that names any owner thread, and posts work to any executor.
#[derive(Clone)]
struct WrongOwner {
    owners: [Option<RunLoopExecutor>; 2],
    posts_to: [ExecutorRef; 2],
    turned: Arc<AtomicBool>,
    own: Arc<OwnerThread>,
}

impl WrongOwner {
    /// Creates an executor with these owner threads and targets. It uses the first of both, and the second after [`turn`](WrongOwner::turn).
    fn new(owners: [Option<&RunLoop>; 2], posts_to: [ExecutorRef; 2]) -> Self {
        let owners = owners.map(|owner| owner.map(RunLoop::executor));
        Self { owners, posts_to, turned: Arc::default(), own: Arc::new(OwnerThread::new()) }
    }

    fn turn(&self) {
        self.turned.store(true, Ordering::Release);
    }

    fn now(&self) -> usize {
        usize::from(self.turned.load(Ordering::Acquire))
    }
}

impl PartialEq for WrongOwner {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.own, &other.own)
    }
}

impl Executor for WrongOwner {
    fn post(&self, runnable: Runnable) {
        self.posts_to[self.now()].post(runnable);
    }

    fn owner_thread(&self) -> Option<&OwnerThread> {
        match &self.owners[self.now()] {
            Some(owner) => owner.owner_thread(),
            None => None,
        }
    }
}

/// Runs a task that must stay on its thread on another one.
fn run_off_its_owner_thread() {
    let (run_loop, pool) = (RunLoop::new(), ThreadPool::new(1).unwrap());
    let there = ExecutorRef::new(pool.executor());
    let x = WrongOwner::new([Some(&run_loop), Some(&run_loop)], [there.clone(), there]);
    let stays = Stays::here();
    let _ = run_loop.block_on(async {
        scope_on(&x, async |s| {
            s.child().local().spawn(async move {
                checkpoint().await;
                drop(stays);
            });
        })
        .await;
    });
}

#[test]
fn an_executor_with_an_owner_thread_that_runs_work_on_another_thread_ends_in_order() {
    let test = "an_executor_with_an_owner_thread_that_runs_work_on_another_thread_ends_in_order";
    end_in_order(test, 1, |_| run_off_its_owner_thread());
}

/// Regression: the message before an abort panicked, and the thread unwound instead; the task then waited for ever.
#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn an_abort_needs_no_standard_error() {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    const AGAIN: &str = "CONVOKE_RUN_OFF_ITS_OWNER_THREAD";
    if std::env::var_os(AGAIN).is_some() {
        return run_off_its_owner_thread();
    }
    // Every write to it fails.
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["an_abort_needs_no_standard_error", "--nocapture"]).env(AGAIN, "1");
    let ended = again.stdout(Stdio::null()).stderr(full).status().unwrap();
    assert_eq!(ended.signal(), Some(6), "{ended}");
}

#[test]
fn an_executor_with_an_owner_thread_that_drops_work_on_another_thread_drops_it_on_the_owner_thread() {
    /// Names the owner thread of a loop; drops all work on another thread, except for the first pieces.
    #[derive(Clone)]
    struct DropsThere(RunLoopExecutor, Arc<AtomicUsize>);

    impl PartialEq for DropsThere {
        fn eq(&self, other: &Self) -> bool {
            self.0 == other.0
        }
    }

    impl Executor for DropsThere {
        fn post(&self, runnable: Runnable) {
            if self.1.fetch_add(1, Ordering::Relaxed) < 2 {
                let thread = thread::spawn(move || drop(runnable));
                thread.join().unwrap();
            } else {
                self.0.post(runnable);
            }
        }

        fn owner_thread(&self) -> Option<&OwnerThread> {
            self.0.owner_thread()
        }
    }

    // The first child is dropped when it is posted, and so is the remote wake for that; later ones go where they should.
    let run_loop = RunLoop::new();
    let x = DropsThere(run_loop.executor(), Arc::default());
    let stays = Stays::here();
    let ran = run_loop.block_on(async {
        scope_on(&x, async |s| {
            s.child().local().spawn(async move { drop(stays) });
            s.child().local().spawn(async {});
            // Woken from another thread, by a remote wake that arrives: the ones that were lost before are handled with it.
            let mut polls = 0;
            s.child().local().spawn(poll_fn(move |cx| {
                polls += 1;
                if polls > 1 {
                    return Poll::Ready(());
                }
                let waker = cx.waker().clone();
                thread::spawn(move || waker.wake()).join().unwrap();
                Poll::Pending
            }));
        })
        .await;
    });
    assert_eq!(ran, Outcome::Value(()));
}

#[test]
fn an_executor_whose_owner_thread_is_another_loop_ends_in_order() {
    end_in_order("an_executor_whose_owner_thread_is_another_loop_ends_in_order", 1, |_| {
        let (run_loop, other) = (RunLoop::new(), RunLoop::new());
        let here = ExecutorRef::new(run_loop.executor());
        let x = WrongOwner::new([Some(&other), Some(&other)], [here.clone(), here]);
        let _ = run_loop.block_on(async { run_on(&x, async { checkpoint().await }).await });
    });
}

#[test]
fn an_executor_whose_owner_thread_runs_nothing_ends_in_order() {
    /// Has an owner thread of its own, which no thread ever enters.
    #[derive(Clone)]
    struct Nowhere(Arc<OwnerThread>);

    impl PartialEq for Nowhere {
        fn eq(&self, other: &Self) -> bool {
            Arc::ptr_eq(&self.0, &other.0)
        }
    }

    impl Executor for Nowhere {
        fn post(&self, runnable: Runnable) {
            runnable.run();
        }

        fn owner_thread(&self) -> Option<&OwnerThread> {
            Some(&self.0)
        }
    }

    end_in_order("an_executor_whose_owner_thread_runs_nothing_ends_in_order", 1, |_| {
        let _ = launch(&Nowhere(Arc::new(OwnerThread::new()))).start(async { checkpoint().await }).wait();
    });
}

#[test]
fn an_executor_that_gets_or_loses_its_owner_thread_under_way_ends_in_order() {
    end_in_order("an_executor_that_gets_or_loses_its_owner_thread_under_way_ends_in_order", 4, |case| {
        let (run_loop, pool) = (RunLoop::new(), ThreadPool::new(1).unwrap());
        let (here, there) = (ExecutorRef::new(run_loop.executor()), ExecutorRef::new(pool.executor()));
        let owners = if case < 2 { [Some(&run_loop), None] } else { [None, Some(&run_loop)] };
        let posts_to = if case % 2 == 0 { [here.clone(), here] } else { [here, there] };
        let x = WrongOwner::new(owners, posts_to);
        let _ = run_loop.block_on(async {
            let turns = x.clone();
            run_on(&x, async move {
                turns.turn();
                let waker = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
                let woken = thread::spawn(move || waker.wake());
                checkpoint().await;
                let _ = woken.join();
            })
            .await;
        });
    });
}

/// A value that is not `Send` is dropped on its own thread, although the executor names another owner thread by then.
#[test]
fn an_executor_whose_owner_thread_moves_does_not_take_along_what_must_stay() {
    end_in_order("an_executor_whose_owner_thread_moves_does_not_take_along_what_must_stay", 2, |case| {
        let run_loop = RunLoop::new();
        let (to, from) = mpsc::channel();
        let (go, gone) = mpsc::channel::<()>();
        let other = thread::spawn(move || {
            let other = RunLoop::new();
            to.send(other.executor()).unwrap();
            gone.recv().unwrap();
            other.run_one();
        });
        let there = from.recv().unwrap();
        let x = WrongOwner {
            owners: [Some(run_loop.executor()), Some(there.clone())],
            posts_to: [ExecutorRef::new(run_loop.executor()), ExecutorRef::new(there)],
            turned: Arc::default(),
            own: Arc::new(OwnerThread::new()),
        };
        let _ = run_loop.block_on(async {
            scope_on(&x, async |s| {
                let turns = x.clone();
                let child = s.child().local().spawn_future(poll_fn(move |cx| {
                    turns.turn();
                    let waker = cx.waker().clone();
                    thread::spawn(move || waker.wake()).join().unwrap();
                    Poll::Ready(Stays::here())
                }));
                // The child ends, while the remote wake that it waits for is on the other thread.
                checkpoint().await;
                checkpoint().await;
                if case == 0 {
                    drop(child);
                    go.send(()).unwrap();
                    other.join().unwrap();
                } else {
                    go.send(()).unwrap();
                    other.join().unwrap();
                    drop(child);
                }
                stopped().await
            })
            .await;
        });
    });
}
