//! An executor that does with its work what a test says, and the programs that suites run on it.

#![allow(dead_code, unreachable_pub)]

pub mod waits;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use convoke::env::Changes;
use convoke::env::Env;
use convoke::executor::Limited;
use convoke::executor::{ExecutorRef, InlineExecutor, Strand, reschedule};
use convoke::prelude::*;
use convoke::raw::{OwnerThread, Runnable, Timers};
use convoke::scope::scope_on;
use convoke::sender::CountingScope;
use convoke::sender::prelude::*;
use convoke::sync::{Mutex as TaskMutex, mpsc};
use convoke::{Panic, launch, run_on};

type OnPost = dyn Fn(&Lawless, Runnable) + Send + Sync;

/// See the head of this file. It counts its posts after it has done what it does, so that a call on a handle that is gone is seen by
/// a memory checker.
#[derive(Clone)]
pub struct Lawless {
    state: Arc<State>,
}

struct State {
    on_post: Box<OnPost>,
    inner: ExecutorRef,
    posts: AtomicUsize,
    kept: Mutex<Vec<Runnable>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl PartialEq for Lawless {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }
}

impl Executor for Lawless {
    fn post(&self, runnable: Runnable) {
        (self.state.on_post)(self, runnable);
        self.state.posts.fetch_add(1, Ordering::Relaxed);
    }

    fn timers(&self) -> Option<&dyn Timers> {
        self.state.inner.timers()
    }

    fn owner_thread(&self) -> Option<&OwnerThread> {
        None
    }
}

impl Lawless {
    /// One that passes work on to `inner` if `on_post` does.
    pub fn over(inner: &impl Executor, on_post: impl Fn(&Self, Runnable) + Send + Sync + 'static) -> Self {
        let state = State {
            on_post: Box::new(on_post),
            inner: ExecutorRef::new(inner.clone()),
            posts: AtomicUsize::new(0),
            kept: Mutex::default(),
            threads: Mutex::default(),
        };
        Self { state: Arc::new(state) }
    }

    /// One that has nobody to pass work on to.
    pub fn new(on_post: impl Fn(&Self, Runnable) + Send + Sync + 'static) -> Self {
        Self::over(&InlineExecutor, on_post)
    }

    pub fn posts(&self) -> usize {
        self.state.posts.load(Ordering::Relaxed)
    }

    pub fn pass_on(&self, runnable: Runnable) {
        self.state.inner.post(runnable);
    }

    pub fn keep(&self, runnable: Runnable) {
        self.state.kept.lock().unwrap().push(runnable);
    }

    /// Takes the one that was kept last.
    pub fn take(&self) -> Option<Runnable> {
        self.state.kept.lock().unwrap().pop()
    }

    /// Does something with the work on a thread of its own.
    pub fn on_thread(&self, f: impl FnOnce() + Send + 'static) {
        let thread = thread::spawn(f);
        self.state.threads.lock().unwrap().push(thread);
    }

    /// Waits for all threads, and those that they have started. A panic of theirs stays there.
    pub fn join(&self) {
        while let Some(thread) = { self.state.threads.lock().unwrap().pop() } {
            let _ = thread.join();
        }
    }
}

/// Result of one program: the kind of its outcome, or the message of its panic.
#[derive(Debug, PartialEq, Eq)]
pub enum Came {
    Value,
    Stopped,
    Panicked(String),
}

fn came<T>(program: impl FnOnce() -> Outcome<T>) -> Came {
    match Panic::catch(program) {
        Ok(Outcome::Value(_)) => Came::Value,
        Ok(Outcome::Stopped) => Came::Stopped,
        Ok(Outcome::Error(never)) => never.absurd(),
        Ok(Outcome::Panicked(panic)) | Err(panic) => Came::Panicked(panic.message().to_owned()),
    }
}

/// A chain that suspends, and holds something that must be let go.
async fn work(held: Arc<()>) -> u32 {
    checkpoint().await;
    checkpoint().await;
    drop(held);
    1
}

/// A way of getting work onto an executor, or of waking it there. It ends, whatever the executor does with the work; all of that holds
/// the value it is given.
pub type Program = fn(&Lawless, &Arc<()>) -> Came;

/// All of them, with their names.
pub const PROGRAMS: [(&str, Program); 17] = [
    ("schedule", |x, _| came(|| sync_wait(schedule(x)))),
    ("continues_on", |x, _| came(|| sync_wait(just(1).continues_on(x).then(|n| n + 1)))),
    ("starts_on", |x, held| came(|| sync_wait(task(work(held.clone())).starts_on(x)))),
    ("environment", |x, held| came(|| sync_wait_with(on(x), task(work(held.clone()))))),
    ("launch", |x, held| came(|| launch(x).start(work(held.clone())).wait())),
    ("launch and drop", |x, held| {
        came(|| {
            drop(launch(x).start(work(held.clone())));
            Outcome::<()>::Value(())
        })
    }),
    ("run_on", |x, held| {
        let (x, work) = (x.clone(), work(held.clone()));
        came(|| sync_wait(task(async move { run_on(&x, work).await })))
    }),
    ("reschedule", |x, held| came(|| sync_wait(task(moves(x.clone(), work(held.clone())))))),
    ("spawn_on", |x, held| came(|| sync_wait(task(spawns_on(x.clone(), held.clone()))))),
    ("scope_on", |x, held| came(|| sync_wait(task(scopes_on(x.clone(), held.clone()))))),
    ("wake by a lock", |x, held| came(|| sync_wait(task(passes_a_lock(x.clone(), work(held.clone())))))),
    ("wake by a channel", |x, held| came(|| sync_wait(task(sends(x.clone(), work(held.clone())))))),
    ("sleep", |x, _| came(|| sync_wait_with(on(x), sleep(A_WHILE)))),
    ("sleep in a task", |x, held| {
        let work = work(held.clone());
        came(|| {
            sync_wait_with(
                on(x),
                task(async {
                    sleep(A_WHILE).await;
                    work.await
                }),
            )
        })
    }),
    ("strand", |x, held| came(|| sync_wait(task(work(held.clone())).starts_on(&Strand::new(x.clone()))))),
    ("limited", |x, held| came(|| sync_wait(task(work(held.clone())).starts_on(&Limited::new(x, 1))))),
    ("counting scope", |x, held| counting(x, work(held.clone()))),
];

const A_WHILE: Duration = Duration::from_micros(50);

fn on(x: &Lawless) -> Changes {
    Changes::new().executor(x.clone())
}

async fn moves(x: Lawless, work: impl Future<Output = u32>) -> u32 {
    let before = reschedule(&x).await;
    let sum = work.await;
    if let Ok(before) = before {
        let _ = reschedule(&before).await;
    }
    sum
}

async fn spawns_on(x: Lawless, held: Arc<()>) -> u32 {
    scope(async |s| {
        let (one, other) = (work(held.clone()), work(held.clone()));
        s.child().on(&x).spawn(async { _ = one.await });
        s.named("other").on(&x).spawn(async { _ = other.await });
        s.child().on(&x).spawn_future(work(held)).await
    })
    .await
}

async fn scopes_on(x: Lawless, held: Arc<()>) -> u32 {
    scope_on(&x, async |s| {
        let one = work(held.clone());
        s.spawn(async { _ = one.await });
        s.spawn_future(work(held)).await
    })
    .await
}

async fn passes_a_lock(x: Lawless, child: impl Future<Output = u32> + Send + 'static) {
    let lock = Arc::new(TaskMutex::new(0));
    scope(async |s| {
        let guard = lock.lock().await;
        let theirs = lock.clone();
        s.child().on(&x).spawn(async move {
            *theirs.lock().await += child.await;
        });
        checkpoint().await;
        drop(guard);
    })
    .await;
}

async fn sends(x: Lawless, child: impl Future<Output = u32> + Send + 'static) {
    let (sender, mut receiver) = mpsc::channel(1);
    scope(async |s| {
        s.child().on(&x).spawn(async move {
            let n = child.await;
            let _ = sender.send(n).await;
            let _ = sender.send(n).await;
        });
        while receiver.recv().await.is_some() {}
    })
    .await;
}

fn counting(x: &Lawless, work: impl Future<Output = u32> + Send + 'static) -> Came {
    let scope = CountingScope::new();
    let ran = came(|| {
        let spawned = scope.spawn(task(work).starts_on(x).then(drop), &Env::new());
        assert!(spawned.is_ok());
        Outcome::<()>::Value(())
    });
    let joined = came(|| sync_wait(scope.join()));
    if ran == Came::Value { joined } else { ran }
}

/// Runs each case of a test in a process of its own. It may end well, or with a panic, or, where nothing else is sound, by an abort
/// that says why; it may not be killed by a fault, nor hang, nor say [`WRONG`].
#[track_caller]
pub fn end_in_order(test: &str, cases: usize, run: impl Fn(usize)) {
    if let Some(case) = std::env::var_os(CASE) {
        return run(case.to_str().and_then(|case| case.parse().ok()).expect("set below"));
    }
    #[cfg(all(unix, not(miri)))]
    (0..cases).for_each(|case| ends_in_order(test, case));
    #[cfg(not(all(unix, not(miri))))]
    let _ = (test, cases);
}

/// Which case is run in this process.
const CASE: &str = "CONVOKE_LAWLESS_CASE";

/// Prefix of the line that a case prints when it has found a broken guarantee.
pub const WRONG: &str = "lawless: wrong";

#[cfg(all(unix, not(miri)))]
#[track_caller]
fn ends_in_order(test: &str, case: usize) {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    const ABORTED: i32 = 6;
    let mut this = Command::new(std::env::current_exe().expect("a test has a program"));
    // Not `--exact`, which would want the module, too.
    let ran = this.args([test, "--nocapture"]).env(CASE, case.to_string()).output().expect("it runs");
    let (said, listed) = (String::from_utf8_lossy(&ran.stderr), String::from_utf8_lossy(&ran.stdout));
    assert!(listed.contains("running 1 test\n"), "`{test}` is no test, or several: {listed}");
    let in_order = match ran.status.signal() {
        None => !said.contains(WRONG),
        Some(signal) => signal == ABORTED && said.contains("convoke: "),
    };
    assert!(in_order, "case {case}: {}\n{said}", ran.status);
}

/// Must not leave the thread that made it.
pub struct Stays(thread::ThreadId, std::rc::Rc<()>);

impl Stays {
    pub fn here() -> Self {
        Self(thread::current().id(), std::rc::Rc::new(()))
    }
}

impl Drop for Stays {
    fn drop(&mut self) {
        if self.0 != thread::current().id() {
            eprintln!("{WRONG}: dropped on another thread");
        }
    }
}
