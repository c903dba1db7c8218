//! Promises of the thread pool beyond the contract of every executor.
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use convoke_core::raw::{Call, Runnable};
use convoke_core::{Executor, Panic};
use convoke_exec::{PoolExecutor, ThreadPool};
use convoke_testing::{Latch, runnable};

/// Creates work that runs `f`, for tests in which nothing is stopped.
fn work(f: impl FnOnce() + Send + 'static) -> Runnable {
    runnable(move |call| {
        assert_eq!(call, Call::Run);
        f();
    })
}

/// Creates work that counts the latch down when it is stopped, and must not run.
fn must_stop(stopped: &Latch) -> Runnable {
    let stopped = stopped.clone();
    runnable(move |call| {
        assert_eq!(call, Call::Stop, "run after the end of the pool");
        stopped.count_down();
    })
}

#[test]
fn an_executor_is_one_word() {
    assert_eq!(size_of::<PoolExecutor>(), size_of::<usize>());
}

#[test]
fn too_few_and_too_many_threads_are_errors() {
    for threads in [0, 1 << 20] {
        let error = ThreadPool::new(threads).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains(&format!("not {threads}")), "{error}");
    }
}

#[test]
fn threads_have_their_names_and_stack_size() {
    let pool = ThreadPool::builder().threads(1).name("named").stack_size(64 << 20).build().unwrap();
    let (name, done) = (Arc::new(Mutex::new(String::new())), Latch::new(1));
    let (to, end) = (name.clone(), done.clone());
    pool.executor().post(work(move || {
        // More than the 2 MiB that a thread has by default.
        let large = std::hint::black_box([1_u8; 4 << 20]);
        assert_eq!(large[large.len() - 1], 1);
        thread::current().name().unwrap().clone_into(&mut to.lock().unwrap());
        end.count_down();
    }));
    done.wait();
    assert_eq!(*name.lock().unwrap(), "named-0");
}

#[test]
fn dispatch_returns_the_work_only_inside_its_own_pool() {
    let (one, other) = (ThreadPool::new(1).unwrap(), ThreadPool::new(1).unwrap());
    let (here, there) = (one.executor(), other.executor());
    let done = Latch::new(2);
    let (second, third) = (done.clone(), done.clone());
    assert!(
        here.dispatch(work(move || {
            let back = here.dispatch(work(move || second.count_down()));
            back.expect("this thread is a worker of the pool").run();
            assert!(there.dispatch(work(move || third.count_down())).is_none());
        }))
        .is_none()
    );
    done.wait();
}

#[test]
fn work_that_waits_for_work_it_posted_finds_a_second_thread() {
    let pool = ThreadPool::new(2).unwrap();
    let executor = pool.executor();
    for _ in 0..if cfg!(miri) { 5 } else { 200 } {
        let done = Latch::new(1);
        let end = done.clone();
        executor.post(work(move || {
            let inner = Latch::new(1);
            let opens = inner.clone();
            executor.post(work(move || opens.count_down()));
            inner.wait();
            end.count_down();
        }));
        done.wait();
    }
}

#[test]
fn a_burst_wakes_as_many_threads_as_it_needs() {
    const THREADS: usize = 4;
    let pool = ThreadPool::new(THREADS).unwrap();
    for _ in 0..if cfg!(miri) { 3 } else { 50 } {
        // Each piece waits for all others: with fewer than four threads this would not end.
        let (all_in, out) = (Latch::new(THREADS), Latch::new(THREADS));
        for _ in 0..THREADS {
            let (all_in, out) = (all_in.clone(), out.clone());
            pool.executor().post(work(move || {
                all_in.count_down();
                all_in.wait();
                out.count_down();
            }));
        }
        out.wait();
    }
}

#[test]
fn work_that_posts_work_does_not_starve_posts_from_outside() {
    let pool = ThreadPool::new(1).unwrap();
    let executor = pool.executor();
    fn breed(executor: PoolExecutor, until: Latch) {
        executor.post(runnable(move |call| {
            if call == Call::Run && !until.is_open() {
                breed(executor, until);
            }
        }));
    }
    let outside = Latch::new(1);
    breed(executor, outside.clone());
    let opens = outside.clone();
    executor.post(work(move || opens.count_down()));
    outside.wait();
}

#[test]
fn a_panic_goes_to_the_handler_and_the_thread_continues() {
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    fn handler(panic: Panic) {
        SAID.lock().unwrap().push(panic.message().to_owned());
        panic!("a handler that panics is contained as well");
    }
    let pool = ThreadPool::builder().threads(1).panic_handler(handler).build().unwrap();
    let (ids, done) = (Arc::new(Mutex::new(HashSet::new())), Latch::new(3));
    for number in 0..3 {
        let (ids, done) = (ids.clone(), done.clone());
        pool.executor().post(work(move || {
            ids.lock().unwrap().insert(thread::current().id());
            done.count_down();
            panic!("number {number}");
        }));
    }
    done.wait();
    drop(pool);
    assert_eq!(*SAID.lock().unwrap(), ["number 0", "number 1", "number 2"]);
    assert_eq!(ids.lock().unwrap().len(), 1, "the thread ended");
}

#[test]
fn a_post_over_the_limit_is_stopped_at_once_and_counted() {
    let pool = ThreadPool::builder().threads(1).queue_limit(2).build().unwrap();
    let executor = pool.executor();
    let (busy, gate) = (Latch::new(1), Latch::new(1));
    let (begun, opens) = (busy.clone(), gate.clone());
    let inside = Latch::new(10);
    let counts = inside.clone();
    executor.post(work(move || {
        begun.count_down();
        opens.wait();
        // Posts of the pool's own work are not limited.
        for _ in 0..10 {
            let counts = counts.clone();
            executor.post(work(move || counts.count_down()));
        }
    }));
    busy.wait();
    let queued = Latch::new(2);
    for _ in 0..2 {
        let queued = queued.clone();
        executor.post(work(move || queued.count_down()));
    }
    let refused = Latch::new(1);
    executor.post(must_stop(&refused));
    assert!(refused.is_open(), "it was not stopped at once");
    assert_eq!(pool.refused(), 1);
    gate.count_down();
    queued.wait();
    inside.wait();
    let again = Latch::new(1);
    let refilled = again.clone();
    executor.post(work(move || refilled.count_down()));
    again.wait();
    assert_eq!(pool.refused(), 1, "the queue is not full any more");
}

#[test]
fn dropping_the_pool_stops_what_stopped_work_posts() {
    let pool = ThreadPool::new(1).unwrap();
    let executor = pool.executor();
    let (busy, gate, stopped) = (Latch::new(1), Latch::new(1), Latch::new(1000));
    let (begun, opens, chain) = (busy.clone(), gate.clone(), stopped.clone());
    fn post_chain(executor: PoolExecutor, left: usize, stopped: Latch) {
        executor.post(runnable(move |call| {
            assert_eq!(call, Call::Stop);
            stopped.count_down();
            if left > 1 {
                post_chain(executor, left - 1, stopped);
            }
        }));
    }
    executor.post(work(move || {
        post_chain(executor, 1000, chain);
        begun.count_down();
        opens.wait();
    }));
    busy.wait();
    let ending = thread::spawn(move || drop(pool));
    let probe = Latch::new(1);
    while !probe.is_open() {
        let probe = probe.clone();
        executor.post(runnable(move |call| {
            if call == Call::Stop && !probe.is_open() {
                probe.count_down();
            }
        }));
    }
    gate.count_down();
    ending.join().unwrap();
    assert!(stopped.is_open());
}

#[test]
fn an_executor_outlives_its_pool_and_stops_what_is_posted() {
    let executor = ThreadPool::new(2).unwrap().executor();
    let stopped = Latch::new(2);
    executor.post(must_stop(&stopped));
    assert!(executor.dispatch(must_stop(&stopped)).is_none());
    assert!(stopped.is_open());
    assert_eq!(executor.parallelism(), 2);
}

#[test]
fn a_pool_dropped_by_its_own_thread_ends_without_a_deadlock() {
    for threads in [1, 2] {
        let pool = ThreadPool::new(threads).unwrap();
        let executor = pool.executor();
        let (dropped, stopped) = (Latch::new(1), Latch::new(1));
        let (done, queued) = (dropped.clone(), must_stop(&stopped));
        executor.post(work(move || {
            drop(pool);
            executor.post(queued);
            done.count_down();
        }));
        dropped.wait();
        stopped.wait();
    }
}

/// Creates and drops many pools while other threads post: each piece of work is run or stopped, once.
#[test]
fn pools_are_dropped_while_others_post() {
    const ROUNDS: usize = if cfg!(miri) { 4 } else { 100 };
    const POSTERS: usize = 3;
    const EACH: usize = if cfg!(miri) { 15 } else { 50 };
    for _ in 0..ROUNDS {
        let pool = ThreadPool::new(2).unwrap();
        let executor = pool.executor();
        let (done, counted) = (Latch::new(POSTERS * EACH), Arc::new(AtomicUsize::new(0)));
        thread::scope(|scope| {
            for _ in 0..POSTERS {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        let (done, counted) = (done.clone(), counted.clone());
                        executor.post(runnable(move |_| {
                            counted.fetch_add(1, Ordering::Relaxed);
                            done.count_down();
                        }));
                    }
                });
            }
            drop(pool);
        });
        done.wait();
        assert_eq!(counted.load(Ordering::Relaxed), POSTERS * EACH);
    }
}

#[test]
#[cfg_attr(miri, ignore = "needs a kernel: Miri starts threads of any size")]
fn the_error_names_the_thread_that_could_not_be_started() {
    let error = ThreadPool::builder().threads(3).stack_size(usize::MAX / 2).build().unwrap_err();
    assert!(error.to_string().starts_with("cannot start thread 1 of the 3 threads of a pool: "), "{error}");
}
