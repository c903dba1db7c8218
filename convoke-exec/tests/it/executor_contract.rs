//! Each of our executors, and one that a user wrote, run through the contract suite.
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::atomic::{self, AtomicBool};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Instant;

use convoke_core::ExecutorRef;
use convoke_core::raw::AnyExecutor;
use convoke_core::raw::Runnable;
use convoke_core::{Executor, InlineExecutor, Panic};
use convoke_exec::raw::{EmbeddedLoop, Sleeper};
use convoke_exec::{Limited, Priority, RunLoop, Strand, ThreadPool};
use convoke_testing::executor_contract::{ExecutorHarness, WrappedExecutor, check, check_wrapper};

/// Sizes of pools. Miri runs one thread at a time, and each more costs it minutes.
const THREADS: &[usize] = if cfg!(miri) { &[2] } else { &[1, 2, 4] };

/// Pools and limits of views of them.
const LIMITS: &[(usize, usize)] =
    if cfg!(miri) { &[(2, 1), (2, 2)] } else { &[(1, 1), (2, 1), (2, 2), (4, 3), (2, 8)] };

fn pool(threads: usize) -> ThreadPool {
    // A quiet panic handler: the contract suite lets work panic.
    ThreadPool::builder().threads(threads).panic_handler(drop).build().unwrap()
}

#[test]
fn thread_pools_of_all_sizes_keep_the_contract() {
    for &threads in THREADS {
        check(|| {
            let pool = pool(threads);
            ExecutorHarness::new(pool.executor(), move || drop(pool))
        });
    }
}

#[test]
fn executors_of_every_priority_keep_the_contract() {
    for priority in [Priority::Low, Priority::Normal, Priority::High] {
        if cfg!(miri) && priority != Priority::Low {
            continue;
        }
        for &threads in THREADS {
            check(|| {
                let pool = pool(threads);
                ExecutorHarness::new(pool.executor().with_priority(priority), move || drop(pool))
            });
        }
    }
}

#[test]
fn a_strand_over_a_pool_keeps_the_contract() {
    for &threads in THREADS {
        check(|| {
            let pool = pool(threads);
            let strand = Strand::with_panic_handler(pool.executor(), drop);
            ExecutorHarness::new(strand, move || drop(pool)).serial().finishes_queue()
        });
    }
}

#[test]
fn a_limited_view_of_a_pool_keeps_the_contract() {
    for &(threads, limit) in LIMITS {
        check(|| {
            let pool = pool(threads);
            let view = Limited::with_panic_handler(&pool.executor(), limit, drop);
            ExecutorHarness::new(view, move || drop(pool)).finishes_queue()
        });
    }
}

#[test]
fn a_limited_view_with_a_limit_of_one_is_serial() {
    check(|| {
        let pool = pool(4);
        let view = Limited::with_panic_handler(&pool.executor(), 1, drop);
        ExecutorHarness::new(view, move || drop(pool)).serial().finishes_queue()
    });
}

#[test]
fn a_run_loop_on_a_thread_keeps_the_contract() {
    check(|| {
        let (handle, executor) = std::sync::mpsc::channel();
        let thread = thread::spawn(move || {
            let run_loop = RunLoop::new();
            handle.send(run_loop.executor()).unwrap();
            // A panic of a piece of work leaves `run`; the loop stays usable.
            while Panic::catch(|| run_loop.run()).is_err() {}
        });
        let executor = executor.recv().unwrap();
        let finish = executor.clone();
        ExecutorHarness::new(executor, move || {
            finish.finish();
            thread.join().unwrap();
        })
        .serial()
        .finishes_queue()
    });
}

/// Wakes the thread that runs an embedded loop.
struct Unparks(thread::Thread);

impl Sleeper for Unparks {
    fn sleep(&self, _: Option<Instant>) {}

    fn check(&self) {}

    fn wake(&self) {
        self.0.unpark();
    }
}

#[test]
fn an_embedded_loop_that_a_thread_runs_in_steps_keeps_the_contract() {
    check(|| {
        let (handle, executor) = std::sync::mpsc::channel();
        let ends = Arc::new(AtomicBool::new(false));
        let ended = ends.clone();
        let thread = thread::spawn(move || {
            let embedded = EmbeddedLoop::over(Arc::new(Unparks(thread::current())), None);
            handle.send(embedded.executor()).unwrap();
            while !ended.load(atomic::Ordering::Acquire) {
                embedded.rouse();
                let mut left = 64;
                // A panic of a piece of work leaves `run_while`; the loop stays usable.
                let ran = Panic::catch(|| {
                    embedded.run_while(|_| {
                        left -= 1;
                        left > 0
                    });
                });
                if ran.is_ok() && left > 0 && embedded.doze() {
                    thread::park();
                }
            }
        });
        ExecutorHarness::new(executor.recv().unwrap(), move || {
            ends.store(true, atomic::Ordering::Release);
            thread.thread().unpark();
            thread.join().unwrap();
        })
        .serial()
        .finishes_queue()
    });
}

#[test]
fn the_inline_executor_keeps_its_part_of_the_contract() {
    check(|| ExecutorHarness::new(InlineExecutor, || ()).serial().inline());
}

/// An executor that a user might write, without unsafe code: one thread, the most urgent work first.
#[derive(Clone)]
struct Urgent {
    shared: Arc<Shared>,
    urgency: u8,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    heap: BinaryHeap<Entry>,
    posted: u64,
    closed: bool,
}

struct Entry {
    urgency: u8,
    number: u64,
    runnable: Runnable,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.urgency.cmp(&other.urgency).then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

impl PartialEq for Urgent {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared) && self.urgency == other.urgency
    }
}

impl Executor for Urgent {
    fn post(&self, runnable: Runnable) {
        let mut queue = self.shared.queue.lock().unwrap();
        if queue.closed {
            drop(queue);
            drop(runnable);
            return;
        }
        let number = queue.posted;
        queue.posted += 1;
        queue.heap.push(Entry { urgency: self.urgency, number, runnable });
        self.shared.changed.notify_one();
    }
}

impl Shared {
    fn next(&self) -> Option<Runnable> {
        let mut queue = self.queue.lock().unwrap();
        loop {
            if queue.closed {
                return None;
            }
            if let Some(entry) = queue.heap.pop() {
                return Some(entry.runnable);
            }
            queue = self.changed.wait(queue).unwrap();
        }
    }

    fn close(&self) {
        let left = {
            let mut queue = self.queue.lock().unwrap();
            queue.closed = true;
            std::mem::take(&mut queue.heap)
        };
        self.changed.notify_all();
        drop(left);
    }
}

fn urgent() -> (Urgent, impl FnOnce() + Send + 'static) {
    let shared = Arc::new(Shared::default());
    let on_thread = shared.clone();
    let thread = thread::spawn(move || {
        while let Some(runnable) = on_thread.next() {
            let _ = Panic::catch(|| runnable.run());
        }
    });
    let executor = Urgent { shared: shared.clone(), urgency: 1 };
    let end = move || {
        shared.close();
        thread.join().unwrap();
    };
    (executor, end)
}

#[test]
fn a_users_priority_queue_in_safe_code_keeps_the_contract() {
    check(|| {
        let (executor, end) = urgent();
        ExecutorHarness::new(executor, end).serial()
    });
}

#[test]
fn a_limited_view_of_a_users_executor_keeps_the_contract() {
    check(|| {
        let (executor, end) = urgent();
        ExecutorHarness::new(Limited::with_panic_handler(&executor, 2, drop), end).finishes_queue()
    });
}

#[test]
fn a_strand_over_a_users_executor_keeps_the_contract() {
    check(|| {
        let (executor, end) = urgent();
        ExecutorHarness::new(Strand::with_panic_handler(executor, drop), end).serial().finishes_queue()
    });
}

/// Runs the newest work first.
#[derive(Clone)]
struct NewestFirst(Urgent);

impl PartialEq for NewestFirst {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Executor for NewestFirst {
    fn post(&self, runnable: Runnable) {
        let mut queue = self.0.shared.queue.lock().unwrap();
        if !queue.closed {
            let number = u64::MAX - queue.posted;
            queue.posted += 1;
            queue.heap.push(Entry { urgency: 1, number, runnable });
            self.0.shared.changed.notify_one();
        }
    }
}

#[test]
#[should_panic = "out of order"]
fn an_executor_that_wrongly_claims_to_be_serial_is_detected() {
    check(|| {
        let (executor, end) = urgent();
        ExecutorHarness::new(NewestFirst(executor), end).serial()
    });
}

#[test]
#[should_panic = "`post` ran the work inline"]
fn an_executor_that_runs_inline_without_saying_so_is_detected() {
    check(|| ExecutorHarness::new(InlineExecutor, || ()));
}

/// Claims to be equal to all of its kind.
#[derive(Clone)]
struct EqualToAll(Urgent);

impl PartialEq for EqualToAll {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Executor for EqualToAll {
    fn post(&self, runnable: Runnable) {
        self.0.post(runnable);
    }
}

#[test]
#[should_panic = "executors of different contexts are equal"]
fn an_executor_that_is_equal_to_others_is_detected() {
    check(|| {
        let (executor, end) = urgent();
        ExecutorHarness::new(EqualToAll(executor), end)
    });
}

/// A wrapper that implements what it must, or says which executor it wraps, or forgets both.
#[derive(Clone, PartialEq)]
struct Wrapper {
    inner: WrappedExecutor,
    says: bool,
}

impl Executor for Wrapper {
    fn post(&self, runnable: Runnable) {
        self.inner.post(runnable);
    }

    fn wraps(&self) -> Option<&dyn AnyExecutor> {
        if self.says { Some(&self.inner) } else { None }
    }
}

#[test]
fn views_and_wrappers_that_say_what_they_wrap_pass_everything_on() {
    check_wrapper(Strand::new);
    check_wrapper(|probe| Limited::new(&probe, 2));
    check_wrapper(|probe| Strand::new(Limited::new(&ExecutorRef::new(probe), 1)));
    check_wrapper(|inner| Wrapper { inner, says: true });
}

#[test]
fn a_wrapper_that_forgets_to_say_what_it_wraps_is_rejected() {
    let forgotten = Panic::catch(|| check_wrapper(|inner| Wrapper { inner, says: false })).unwrap_err();
    assert!(forgotten.message().contains("implement `Executor::wraps`"), "{forgotten}");
}
