//! Run loops in unusual states: a loop inside the sleep of another one, a loop that runs while it dozes, a
//! sleeper that panics.
use std::cell::Cell;
use std::io::{BufRead, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use convoke::executor::{BlockOn, RunLoop};
use convoke::prelude::*;
use convoke::raw::{NextBatch, Runnable, Sleeper, Turns};
use convoke::run_on;
use convoke::sender::prelude::*;
use convoke::task::forever;
use convoke::testing::runnable;

/// Runs a closure in each sleep.
struct RunsInSleep<F>(F);

impl<F: Fn() + Send + Sync> Sleeper for RunsInSleep<F> {
    fn sleep(&self, _: Option<Instant>) {
        (self.0)();
    }

    fn check(&self) {}

    fn wake(&self) {}
}

#[test]
fn a_loop_inside_the_sleep_of_another_leaves_that_one_asleep() {
    let outer = Arc::new(Mutex::new(None));
    let in_sleep = {
        let outer = outer.clone();
        move || {
            // A loop on this thread, which is dropped while the outer one is asleep.
            assert_eq!(sync_wait(task(async { checkpoint().await })), Outcome::Value(()));
            let executor: Option<convoke::executor::RunLoopExecutor> = outer.lock().unwrap().take();
            executor.unwrap().finish();
        }
    };
    let run_loop = RunLoop::over(Arc::new(RunsInSleep(in_sleep)), None);
    *outer.lock().unwrap() = Some(run_loop.executor());
    run_loop.run();
}

#[test]
fn work_posted_to_the_outer_loop_from_a_loop_inside_its_sleep_is_run_there() {
    let outer = Arc::new(Mutex::new(None));
    let ran = Arc::new(AtomicUsize::new(0));
    let in_sleep = {
        let (outer, ran) = (outer.clone(), ran.clone());
        move || {
            let executor: convoke::executor::RunLoopExecutor = outer.lock().unwrap().take().unwrap();
            let posts = executor.clone();
            let outcome = sync_wait(task(async move {
                posts.post(runnable(move |_| {
                    ran.fetch_add(1, Ordering::Relaxed);
                }));
            }));
            assert_eq!(outcome, Outcome::Value(()));
            executor.finish();
        }
    };
    let in_sleep = Mutex::new(Some(in_sleep));
    let once = move || {
        if let Some(in_sleep) = in_sleep.lock().unwrap().take() {
            in_sleep();
        }
    };
    let run_loop = RunLoop::over(Arc::new(RunsInSleep(once)), None);
    *outer.lock().unwrap() = Some(run_loop.executor());
    run_loop.run();
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}

/// Creates a piece of work that counts its runs.
fn counting(runs: &Arc<AtomicUsize>) -> Runnable {
    let runs = runs.clone();
    runnable(move |_| {
        runs.fetch_add(1, Ordering::Relaxed);
    })
}

#[test]
fn a_loop_that_dozes_may_be_run() {
    let (run_loop, runs) = (RunLoop::new(), Arc::new(AtomicUsize::new(0)));
    assert!(run_loop.doze());
    assert_eq!(run_loop.run_ready(), 0);
    assert!(!run_loop.run_one());
    assert!(run_loop.doze(), "it is dozing already");
    run_loop.executor().post(counting(&runs));
    assert!(!run_loop.doze(), "there is work to run");
    assert_eq!(run_loop.run_ready(), 1);
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[test]
fn a_loop_that_dozes_may_wait() {
    let run_loop = RunLoop::new();
    assert!(run_loop.doze());
    let executor = run_loop.executor();
    let other = std::thread::spawn(move || executor.finish());
    run_loop.run();
    other.join().unwrap();
    assert!(run_loop.doze());
    let executor = run_loop.executor();
    let passed = Cell::new(false);
    let outcome = run_loop.block_on(async {
        run_on(&executor, async {}).await;
        passed.set(true);
    });
    assert_eq!((outcome, passed.get()), (Outcome::Value(()), true));
}

#[test]
fn turns_may_be_asked_for_work_without_having_the_turn() {
    let turns = Turns::new();
    assert!(matches!(turns.next(), NextBatch::Idle));
    assert!(matches!(turns.next(), NextBatch::Idle));
}

/// A sleeper that panics in one of its functions, once it is armed.
struct Panics {
    function: &'static str,
    armed: AtomicBool,
}

impl Panics {
    fn in_function(&self, name: &str) {
        if self.armed.load(Ordering::Relaxed) && self.function == name {
            panic!("in `{name}`, on purpose");
        }
    }
}

impl Sleeper for Panics {
    fn now(&self) -> Instant {
        self.in_function("now");
        Instant::now()
    }

    fn sleep(&self, _: Option<Instant>) {
        self.in_function("sleep");
    }

    fn check(&self) {
        self.in_function("look");
    }

    fn wake(&self) {
        self.in_function("wake");
    }

    fn jumps(&self) -> bool {
        self.in_function("jumps");
        false
    }

    fn runs_per_check(&self) -> u32 {
        self.in_function("runs_per_check");
        1
    }

    fn choose(&self, _: usize) -> usize {
        self.in_function("choose");
        0
    }
}

/// Waits on a loop whose sleeper panics, while a task is queued that borrows from this stack frame. If the
/// panic left `block_on`, the loop would run that task later, after its stack frame is gone.
fn wait_by_a_sleeper_that_panics(function: &'static str) {
    let sleeper = Arc::new(Panics { function, armed: AtomicBool::new(false) });
    let run_loop = RunLoop::over(sleeper.clone(), None);
    let executor = run_loop.executor();
    let wait = || {
        let borrowed = Cell::new(0);
        run_loop.block_on(async {
            // A timer, so that the clock is read.
            let timer = async { sleep(Duration::from_millis(1)).await };
            let work = async {
                sleeper.armed.store(true, Ordering::Relaxed);
                for _ in 0..1000 {
                    borrowed.set(borrowed.get() + 1);
                    executor.post(runnable(|_| ()));
                    executor.post(runnable(|_| ()));
                    let executor = executor.clone();
                    // From another thread, so that a sleeping loop is woken.
                    std::thread::spawn(move || executor.post(runnable(|_| ()))).join().unwrap();
                    checkpoint().await;
                }
                assert!(
                    function == "wake" || function == "sleep" || function == "jumps",
                    "it was not called"
                );
                forever().await
            };
            join((timer, work)).await
        })
    };
    let _ = catch_unwind(AssertUnwindSafe(wait));
    println!("the panic has left `block_on`");
    // The work that is still queued borrows from a stack frame that is gone.
    run_loop.run_ready();
}

#[test]
fn a_sleeper_that_panics_aborts_the_process_without_unwinding() {
    // In a separate process for each function, which Miri cannot start.
    if cfg!(miri) {
        return;
    }
    const FUNCTION: &str = "FUNCTION_THAT_PANICS";
    const ALL: [&str; 6] = ["now", "look", "runs_per_check", "choose", "sleep", "jumps"];
    if let Ok(function) = std::env::var(FUNCTION) {
        let function = ALL.into_iter().find(|name| *name == function).unwrap();
        return wait_by_a_sleeper_that_panics(function);
    }
    for function in ALL {
        let mut again = Command::new(std::env::current_exe().unwrap());
        let test = "nested_loops::a_sleeper_that_panics_aborts_the_process_without_unwinding";
        again.args(["--exact", test, "--nocapture"]);
        let ended = again.env(FUNCTION, function).output().unwrap();
        let (out, error) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        assert!(error.contains("on purpose"), "`{function}` was not called: {error}");
        assert!(!out.contains("the panic has left"), "a panic of `{function}` left `block_on`");
        assert!(error.contains("the `Sleeper` of a run loop panicked"), "{function}: {error}");
    }
}

/// Blocks in a task for a sibling that has to run on the same thread. Never returns.
fn wait_for_a_sibling_in_a_task(how: &str) {
    let _ = block_on(async {
        scope(async |s| {
            let sibling = s.spawn_future(async { 5 });
            let _ = match how {
                "block_on" => block_on(sibling),
                _ => sync_wait(task(sibling)),
            };
        })
        .await
    });
}

#[test]
fn a_call_that_blocks_in_a_task_for_a_task_of_the_same_thread_is_reported_with_its_place() {
    // In a separate process, which is killed: it hangs. Miri cannot start one.
    if cfg!(miri) {
        return;
    }
    const HOW: &str = "HOW_TO_BLOCK_IN_A_TASK";
    if let Ok(how) = std::env::var(HOW) {
        return wait_for_a_sibling_in_a_task(&how);
    }
    for how in ["block_on", "sync_wait"] {
        let mut again = Command::new(std::env::current_exe().unwrap());
        let test = "nested_loops::a_call_that_blocks_in_a_task_for_a_task_of_the_same_thread_is_reported_with_its_place";
        again.args(["--exact", test, "--nocapture"]).env(HOW, how);
        let mut hangs = again.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(hangs.stderr.take().unwrap()).lines().map(Result::unwrap);
        let said = said.into_iter().find(|line| line.starts_with("convoke: "));
        hangs.kill().unwrap();
        hangs.wait().unwrap();
        let said = said.expect("it says something before it ends");
        for word in
            [file!(), "blocks inside a task", "waits for ever", "await the future instead", "`blocking`"]
        {
            assert!(said.contains(word), "{how}: no `{word}` in: {said}");
        }
    }
}
