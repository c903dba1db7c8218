//! Blocking scopes: children that borrow from blocking code, and have always ended before it goes on.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, mpsc};

use convoke::alloc::{Counting, FrameAllocator};
use convoke::blocking_scope;
use convoke::env::current;
use convoke::env::{Changes, Local};
use convoke::executor::RunLoop;
use convoke::prelude::*;
use convoke::scope::blocking_scope_with;
use convoke::sender::prelude::*;

static REQUEST: Local<u32> = Local::inherited("request");

/// Counts on its way out, through a borrow.
struct Leaves<'a>(&'a AtomicUsize);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn children_borrow_and_run_in_parallel() {
    let pool = ThreadPool::new(2).unwrap();
    let both_here = Barrier::new(2);
    let mut parts = [0, 0];
    let [left, right] = &mut parts;
    blocking_scope(&pool.executor(), |s| {
        s.spawn(async {
            both_here.wait();
            *left = 1;
        });
        s.spawn(async {
            both_here.wait();
            *right = 2;
        });
    });
    assert_eq!(parts, [1, 2]);
}

#[test]
fn handles_are_waited_for_in_the_body_and_awaited_in_children() {
    let pool = ThreadPool::new(2).unwrap();
    let text = String::from("borrowed");
    let outcome = blocking_scope(&pool.executor(), |s| {
        let word = s.spawn_future(async { &text[..6] });
        let length = s.spawn_future(async move { word.await.len() });
        length.wait()
    });
    assert_eq!(outcome, Outcome::Value(6));
}

#[test]
fn children_start_others_beside_them() {
    let pool = ThreadPool::new(2).unwrap();
    const EACH: usize = if cfg!(miri) { 3 } else { 10 };
    let count = AtomicUsize::new(0);
    blocking_scope(&pool.executor(), |s| {
        for _ in 0..EACH {
            s.spawn(async {
                for _ in 0..EACH {
                    s.spawn(async {
                        checkpoint().await;
                        count.fetch_add(1, Ordering::SeqCst);
                    });
                }
            });
        }
    });
    assert_eq!(count.load(Ordering::SeqCst), EACH * EACH);
}

#[test]
fn the_first_error_stops_the_others_while_the_body_waits() {
    let pool = ThreadPool::new(2).unwrap();
    let count = AtomicUsize::new(0);
    let outcome = blocking_scope(&pool.executor(), |s| {
        let waits = s.spawn_future(async {
            let _leaves = Leaves(&count);
            never::<()>().await
        });
        for _ in 0..10 {
            s.spawn(async {
                let _leaves = Leaves(&count);
                never::<()>().await;
                Ok(())
            });
        }
        s.spawn(async {
            checkpoint().await;
            Err("first")
        });
        assert_eq!(waits.wait(), Outcome::Stopped);
        Ok(())
    });
    assert_eq!(outcome, Err("first"));
    assert!(count.load(Ordering::SeqCst) <= 11);
}

#[test]
fn an_error_of_the_body_stops_the_children() {
    let pool = ThreadPool::new(1).unwrap();
    let count = AtomicUsize::new(0);
    let (tx, rx) = mpsc::channel();
    let outcome = blocking_scope(&pool.executor(), |s| {
        let count = &count;
        s.spawn(async move {
            let _leaves = Leaves(count);
            tx.send(()).unwrap();
            never::<()>().await;
        });
        rx.recv().unwrap();
        Err::<(), _>("body")
    });
    assert_eq!(outcome, Err("body"));
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[test]
fn none_from_the_body_stops_the_children() {
    let pool = ThreadPool::new(1).unwrap();
    let count = AtomicUsize::new(0);
    let outcome = blocking_scope(&pool.executor(), |s| {
        let leaves = Leaves(&count);
        s.spawn(async move {
            let _leaves = leaves;
            never::<()>().await;
        });
        None::<u32>
    });
    assert_eq!(outcome, None);
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[test]
fn a_panic_of_a_child_goes_on_here_with_its_name() {
    let pool = ThreadPool::new(1).unwrap();
    let run = || {
        blocking_scope(&pool.executor(), |s| {
            s.spawn(async { never::<()>().await });
            s.named("unlucky").spawn(async { panic!("boom") });
        });
    };
    let panic = Panic::catch(run).unwrap_err();
    let said = panic.message();
    assert!(said.contains("`unlucky`") && said.contains("boom"), "{said}");
}

#[test]
fn a_panic_of_the_body_waits_for_the_children_first() {
    let pool = ThreadPool::new(1).unwrap();
    let count = AtomicUsize::new(0);
    let (tx, rx) = mpsc::channel();
    let run = || {
        blocking_scope(&pool.executor(), |s| {
            let count = &count;
            s.spawn(async move {
                let _leaves = Leaves(count);
                tx.send(()).unwrap();
                never::<()>().await;
            });
            rx.recv().unwrap();
            panic!("body")
        })
    };
    let panic = Panic::catch(run).map(|(): ()| ()).unwrap_err();
    assert_eq!(panic.message(), "body");
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[test]
fn a_panic_behind_a_handle_goes_on_where_it_is_waited_for() {
    let pool = ThreadPool::new(1).unwrap();
    let caught = blocking_scope(&pool.executor(), |s| {
        let unlucky = s.named("unlucky").spawn_future(async { panic!("boom") });
        Panic::catch(|| unlucky.wait()).map(drop).unwrap_err()
    });
    assert!(caught.message().contains("`unlucky`"));
}

#[test]
fn a_panic_behind_a_handle_that_was_dropped_is_the_scopes() {
    let pool = ThreadPool::new(1).unwrap();
    let (tx, rx) = mpsc::channel();
    let run = || {
        blocking_scope(&pool.executor(), |s| {
            drop(s.spawn_future(async move {
                rx.recv().unwrap();
                panic!("boom")
            }));
            s.spawn(async { never::<()>().await });
            tx.send(()).unwrap();
        });
    };
    // It was asked to stop, and does not look. Its panic stops the other child.
    let ended = Panic::catch(run);
    assert!(ended.unwrap_err().message().contains("boom"));
}

#[test]
fn the_body_and_a_token_may_ask_all_to_stop() {
    let pool = ThreadPool::new(1).unwrap();
    blocking_scope(&pool.executor(), |s| {
        s.spawn(async { never::<()>().await });
        s.request_stop(StopReason::Requested);
        s.spawn(async { never::<()>().await });
    });
    let source = StopSource::new();
    let reason = Mutex::new(None);
    let changes = Changes::new().stop_token(source.token()).local(&REQUEST, 7);
    blocking_scope_with(changes, &pool.executor(), |s| {
        s.spawn(async {
            assert_eq!(current::local(&REQUEST), Some(7));
            source.request_stop(StopReason::Shutdown);
            *reason.lock().unwrap() = current::stop_reason();
            never::<()>().await
        });
    });
    assert_eq!(*reason.lock().unwrap(), Some(StopReason::Shutdown));
}

#[test]
fn errors_that_borrow_are_gone_before_what_they_borrow() {
    let pool = ThreadPool::new(2).unwrap();
    for _ in 0..if cfg!(miri) { 2 } else { 500 } {
        let count = AtomicUsize::new(0);
        let outcome: Result<(), Leaves<'_>> = blocking_scope(&pool.executor(), |s| {
            for _ in 0..8 {
                s.spawn(async {
                    checkpoint().await;
                    Err(Leaves(&count))
                });
            }
            Ok(())
        });
        assert!(outcome.is_err());
        let before = count.load(Ordering::SeqCst);
        drop(outcome);
        assert_eq!(count.load(Ordering::SeqCst), before + 1);
    }
}

#[test]
fn children_that_end_by_themselves_may_be_asked_to_stop_meanwhile() {
    let counting = Counting::new(FrameAllocator::system());
    let pool = ThreadPool::new(2).unwrap();
    for round in 0..if cfg!(miri) { 2 } else { 2000 } {
        let changes = Changes::new().allocator(FrameAllocator::new(counting.clone()));
        let outcome = blocking_scope_with(changes, &pool.executor(), |s| {
            for n in 0..16 {
                s.spawn(async move {
                    if n == round % 16 {
                        return Err(n);
                    }
                    checkpoint().await;
                    Ok(())
                });
            }
            Ok(())
        });
        assert_eq!(outcome, Err(round % 16));
    }
    drop(pool);
    assert_eq!(counting.live(), 0);
}

#[test]
fn a_scope_that_would_wait_for_its_own_thread_is_refused() {
    let run_loop = RunLoop::new();
    let run = || blocking_scope(&run_loop.executor(), |_| ());
    let panic = Panic::catch(run).unwrap_err();
    assert!(panic.message().contains("would run on this thread alone"));

    let run = || sync_wait(task(async { blocking_scope(&current::executor(), |_| ()) }));
    let panic = Panic::catch(run).map(drop).unwrap_err();
    assert!(panic.message().contains("would run on this thread alone"));
}

#[test]
fn an_executor_that_has_ended_stops_the_children() {
    let pool = ThreadPool::new(1).unwrap();
    let executor = pool.executor();
    drop(pool);
    let outcome = blocking_scope(&executor, |s| s.spawn_future(async { 1 }).wait());
    assert_eq!(outcome, Outcome::Stopped);
}
