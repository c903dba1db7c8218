//! Outcomes that are not `Send` stay on the thread of their task: if its loop ends before an operation that the task has
//! abandoned, another thread ends the task, and must not touch the outcome.
use std::cell::RefCell;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::task::Poll;
use std::thread::{self, ThreadId};

use convoke::executor::{PoolExecutor, RunLoop, run_on};
use convoke::prelude::*;
use convoke::scope::{Handle, SameThread};

static DROPPED_ELSEWHERE: AtomicBool = AtomicBool::new(false);

/// A value that is not `Send`.
struct Stays(ThreadId, PhantomData<*mut ()>);

impl Stays {
    fn new() -> Self {
        Self(thread::current().id(), PhantomData)
    }
}

impl Drop for Stays {
    fn drop(&mut self) {
        if self.0 != thread::current().id() {
            DROPPED_ELSEWHERE.store(true, Ordering::SeqCst);
        }
    }
}

/// Begins an operation on the pool that ends when `gate` is opened, and drops its future.
async fn abandon_an_operation(pool: PoolExecutor, gate: Receiver<()>) {
    let waits = async move { _ = gate.recv() };
    let mut operation = Box::pin(run_on(&pool, waits));
    poll_fn(|cx| {
        assert!(operation.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
}

#[test]
fn the_handler_of_a_root_gets_no_value_of_another_thread() {
    let (pool, run_loop) = (ThreadPool::new(1).unwrap(), RunLoop::new());
    let (open, gate) = channel();
    let (executor, owner) = (pool.executor(), thread::current().id());
    let called_elsewhere = std::sync::Arc::new(AtomicBool::new(false));
    let seen = called_elsewhere.clone();
    let launched = run_loop.on_owner_thread(|| {
        launch(&run_loop.executor())
            .on_value(move |_: Stays| seen.store(thread::current().id() != owner, Ordering::SeqCst))
            .start_local(async move {
                abandon_an_operation(executor, gate).await;
                Stays::new()
            })
    });
    run_loop.run_ready();
    drop(run_loop);
    open.send(()).unwrap();
    let outcome = launched.wait();
    assert!(outcome.is_stopped(), "the value stayed behind");
    assert!(!called_elsewhere.load(Ordering::SeqCst));
    assert!(!DROPPED_ELSEWHERE.load(Ordering::SeqCst));
}

thread_local! {
    static HANDLE: RefCell<Option<Handle<Stays, SameThread>>> = const { RefCell::new(None) };
}

#[test]
fn the_value_of_a_local_child_without_a_handle_is_not_dropped_on_another_thread() {
    let (pool, run_loop) = (ThreadPool::new(1).unwrap(), RunLoop::new());
    let (open, gate) = channel();
    let executor = pool.executor();
    let launched = launch(&run_loop.executor()).start(async move {
        scope(async |s| {
            let handle = s.child().local().spawn_future(async move {
                abandon_an_operation(executor, gate).await;
                Stays::new()
            });
            HANDLE.with(|slot| *slot.borrow_mut() = Some(handle));
        })
        .await;
    });
    run_loop.run_ready();
    HANDLE.with(|slot| drop(slot.borrow_mut().take()));
    drop(run_loop);
    open.send(()).unwrap();
    assert_eq!(launched.wait(), Outcome::Stopped);
    assert!(!DROPPED_ELSEWHERE.load(Ordering::SeqCst));
}
