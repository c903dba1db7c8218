//! Loops of Convoke as futures on executors of other crates: tokio's on one thread, and smol's. (One that is written by
//! hand is in the tests of `convoke`.)
#![cfg(unix)]
#![allow(unsafe_code)]

use std::io;
use std::thread;
use std::time::Duration;

use convoke::driver::{IoContext, io_context};
use convoke::executor::RunLoop;
use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::task::Launched;
use tokio::io::unix::AsyncFd;

/// Launches a program with sockets and a timer on the context.
fn talk_on(context: &IoContext) -> Launched<io::Result<[u8; 5]>> {
    launch(&context.executor()).start(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let connected = try_join((TcpStream::connect(listener.local_addr()?), listener.accept()));
        let (client, (server, _)) = connected.await?;
        let mut said = [0; 5];
        let late = async {
            sleep(Duration::from_millis(2)).await;
            client.write_all(b"hello").await
        };
        try_join((late, server.read_exact(&mut said))).await?;
        Ok(said)
    })
}

/// Posts work to a loop from another thread, and finishes the loop.
fn post_from_elsewhere(run_loop: &RunLoop) -> thread::JoinHandle<Outcome<u32>> {
    let executor = run_loop.executor();
    thread::spawn(move || {
        let slept = launch(&executor).start(async {
            sleep(Duration::from_millis(2)).await;
            7
        });
        let outcome = slept.wait();
        executor.finish();
        outcome
    })
}

fn tokio_of_one_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn a_context_is_a_future_on_a_tokio_runtime_of_one_thread() {
    let context = io_context().unwrap();
    let talk = talk_on(&context);
    let (ran, beside) = tokio_of_one_thread().block_on(async {
        let descriptor = context.descriptor().unwrap().try_clone_to_owned().unwrap();
        // SAFETY: an `OwnedFd` owns an open descriptor, and returns the same one until it is dropped.
        let descriptor = unsafe { AsyncFd::register(descriptor) }.unwrap();
        let readable = async || descriptor.readable().await.map(|mut ready| ready.clear_ready());
        let driven = context.as_future(readable).timer(|at| tokio::time::sleep_until(at.into()));
        let beside = tokio::spawn(async { tokio::time::sleep(Duration::from_millis(1)).await });
        tokio::join!(driven, beside)
    });
    assert!(ran > 3, "{ran} items");
    beside.unwrap();
    assert_eq!(&talk.wait().unwrap().unwrap(), b"hello");
}

#[test]
fn a_run_loop_is_a_future_on_a_tokio_runtime_of_one_thread() {
    let run_loop = RunLoop::new();
    let elsewhere = post_from_elsewhere(&run_loop);
    let driven = run_loop.as_future().timer(|at| tokio::time::sleep_until(at.into()));
    assert!(tokio_of_one_thread().block_on(driven) >= 2);
    assert_eq!(elsewhere.join().unwrap(), Outcome::Value(7));
}

#[test]
fn a_context_is_a_future_on_an_executor_of_smol() {
    let context = io_context().unwrap();
    let talk = talk_on(&context);
    let executor = async_executor::LocalExecutor::new();
    let beside = executor.spawn(async_io::Timer::after(Duration::from_millis(1)));
    let descriptor = context.descriptor().unwrap().try_clone_to_owned().unwrap();
    let descriptor = async_io::Async::new(descriptor).unwrap();
    let driven = context.as_future(|| descriptor.readable()).timer(async_io::Timer::at);
    let ran = async_io::block_on(executor.run(driven));
    assert!(ran > 3, "{ran} items");
    async_io::block_on(executor.run(beside));
    assert_eq!(&talk.wait().unwrap().unwrap(), b"hello");
}

#[test]
fn a_run_loop_is_a_future_on_an_executor_of_smol() {
    let run_loop = RunLoop::new();
    let elsewhere = post_from_elsewhere(&run_loop);
    let executor = async_executor::LocalExecutor::new();
    let driven = run_loop.as_future().timer(async_io::Timer::at);
    assert!(async_io::block_on(executor.run(driven)) >= 2);
    assert_eq!(elsewhere.join().unwrap(), Outcome::Value(7));
}
