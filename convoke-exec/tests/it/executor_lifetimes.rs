//! An executor is dropped as soon as its last piece of work has run, while the thread that posted that work
//! is still inside `post`. What its handle points to must stay alive until it has left. Only memory and race
//! checkers detect a failure.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use convoke::executor::{Limited, RunLoop, Strand};
use convoke::prelude::*;
use convoke::raw::Runnable;
use convoke::run_on;
use convoke::sender::prelude::*;
use convoke::testing::runnable;

const ROUNDS: usize = if cfg!(miri) { 2 } else { 200 };
const PIECES: usize = 3;

fn pieces(done: &Arc<AtomicUsize>) -> Vec<Runnable> {
    let piece = |_| {
        let done = done.clone();
        runnable(move |_| {
            done.fetch_add(1, Ordering::Release);
        })
    };
    (0..PIECES).map(piece).collect()
}

/// Posts on another thread, through a handle that is dropped right afterwards.
fn post_elsewhere<X: Executor>(executor: X, done: &Arc<AtomicUsize>) -> thread::JoinHandle<()> {
    let mut pieces = pieces(done);
    thread::spawn(move || {
        let last = pieces.pop();
        pieces.into_iter().for_each(|piece| executor.post(piece));
        last.into_iter().for_each(|piece| executor.clone().post_last(piece));
    })
}

fn wait_for_all(done: &AtomicUsize) {
    while done.load(Ordering::Acquire) < PIECES {
        thread::yield_now();
    }
}

#[test]
fn a_loop_dropped_with_its_last_piece_of_work() {
    for _ in 0..ROUNDS {
        let (run_loop, done) = (RunLoop::new(), Arc::new(AtomicUsize::new(0)));
        let poster = post_elsewhere(run_loop.executor(), &done);
        run_loop.run_while(|_| done.load(Ordering::Relaxed) < PIECES);
        drop(run_loop);
        poster.join().unwrap();
    }
}

#[test]
fn a_pool_dropped_with_its_last_piece_of_work() {
    for _ in 0..ROUNDS {
        let (pool, done) = (ThreadPool::new(1).unwrap(), Arc::new(AtomicUsize::new(0)));
        let poster = post_elsewhere(pool.executor(), &done);
        wait_for_all(&done);
        drop(pool);
        poster.join().unwrap();
    }
}

#[test]
fn a_pool_dropped_while_work_is_posted() {
    for _ in 0..ROUNDS {
        let (pool, done) = (ThreadPool::new(1).unwrap(), Arc::new(AtomicUsize::new(0)));
        let poster = post_elsewhere(pool.executor(), &done);
        drop(pool);
        poster.join().unwrap();
        assert_eq!(done.load(Ordering::Acquire), PIECES, "each piece must be run or stopped");
    }
}

#[test]
fn views_whose_last_handle_is_dropped_with_the_last_piece_of_work() {
    let pool = ThreadPool::new(2).unwrap();
    for _ in 0..ROUNDS {
        let done = Arc::new(AtomicUsize::new(0));
        let poster = post_elsewhere(Strand::new(pool.executor()), &done);
        wait_for_all(&done);
        poster.join().unwrap();
        let done = Arc::new(AtomicUsize::new(0));
        let poster = post_elsewhere(Limited::new(&pool.executor(), 2), &done);
        wait_for_all(&done);
        poster.join().unwrap();
    }
}

#[test]
fn waits_that_end_while_they_are_notified() {
    let pool = ThreadPool::new(2).unwrap();
    for round in 0..ROUNDS {
        let executor = pool.executor();
        assert_eq!(sync_wait(schedule(&executor).then(|()| round)), Outcome::Value(round));
        let chain = sync_wait(task(async move { run_on(&executor, async { 1 }).await }));
        assert_eq!(chain, Outcome::Value(1));
        let launched = launch(&pool.executor()).start(async { checkpoint().await });
        assert_eq!(launched.wait(), Outcome::Value(()));
    }
}
