//! The executors of this crate run through the contract suite.

use std::sync::{Arc, mpsc};

use convoke::env::current;
use convoke::executor::RunLoopExecutor;
use convoke_testing::executor_contract::{ExecutorHarness, check};
use convoke_tokio::{Workers, run, run_local};
use tokio::task::LocalSet;

use crate::log::multi_thread;

#[test]
fn workers_of_all_sizes_keep_the_contract() {
    for workers in [1, 2, 4] {
        check(|| {
            let runtime = multi_thread(workers);
            ExecutorHarness::new(Workers::on(runtime.handle()), move || drop(runtime)).finishes_queue()
        });
    }
}

#[test]
fn workers_of_a_current_thread_runtime_keep_the_contract() {
    check(|| {
        let (tell, told) = mpsc::channel();
        let end = Arc::new(tokio::sync::Notify::new());
        let ends = end.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            tell.send(Workers::on(runtime.handle())).unwrap();
            runtime.block_on(ends.notified());
        });
        ExecutorHarness::new(told.recv().unwrap(), move || {
            end.notify_one();
            thread.join().unwrap();
        })
        .serial()
        .finishes_queue()
    });
}

/// The executor of the chain that calls.
fn this_loop() -> RunLoopExecutor {
    current::executor().downcast_ref::<RunLoopExecutor>().expect("a chain runs on a loop").clone()
}

#[test]
fn the_executor_inside_a_run_keeps_the_contract() {
    check(|| {
        let runtime = multi_thread(2);
        let (tell, told) = mpsc::channel();
        drop(runtime.spawn(run(async move {
            tell.send(this_loop()).unwrap();
            convoke::task::forever().await
        })));
        ExecutorHarness::new(told.recv().unwrap(), move || drop(runtime)).serial().finishes_queue()
    });
}

#[test]
fn the_executor_inside_a_local_run_keeps_the_contract() {
    check(|| {
        let (tell, told) = mpsc::channel();
        let end = Arc::new(tokio::sync::Notify::new());
        let ends = end.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let set = LocalSet::new();
            set.spawn_local(run_local(async move {
                tell.send(this_loop()).unwrap();
                convoke::task::forever().await
            }));
            set.block_on(&runtime, ends.notified());
        });
        ExecutorHarness::new(told.recv().unwrap(), move || {
            end.notify_one();
            thread.join().unwrap();
        })
        .serial()
        .finishes_queue()
    });
}
