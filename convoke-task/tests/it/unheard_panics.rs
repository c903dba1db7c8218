//! Panics of children whose handles are dropped after the panic: they reach the scope.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

use convoke::blocking_scope;
use convoke::prelude::*;
use convoke::task::forever;

async fn fails() -> u32 {
    panic!("boom")
}

/// Returns the message with which `f` panics.
fn panic_of<T>(f: impl FnOnce() -> T) -> Option<String> {
    let payload = catch_unwind(AssertUnwindSafe(f)).err()?;
    payload.downcast::<String>().ok().map(|message| *message)
}

#[test]
fn a_handle_that_the_body_drops_after_the_panic_leaves_it_to_the_scope() {
    let said = panic_of(|| {
        block_on(async {
            scope(async |s| {
                let handle = s.spawn_future(fails());
                checkpoint().await;
                checkpoint().await;
                drop(handle);
                forever().await
            })
            .await
        })
    });
    assert!(said.is_some_and(|said| said.contains("boom")));
}

#[test]
fn a_handle_that_is_dropped_with_the_body_leaves_the_panic_to_the_scope() {
    let said = panic_of(|| {
        block_on(async {
            scope(async |s| {
                let _handle = s.spawn_future(fails());
                checkpoint().await;
                checkpoint().await;
            })
            .await
        })
    });
    assert!(said.is_some_and(|said| said.contains("boom")));
}

#[test]
fn a_handle_that_a_sibling_drops_leaves_the_panic_to_the_scope() {
    let said = panic_of(|| {
        block_on(async {
            scope(async |s| {
                let handle = s.spawn_future(fails());
                s.spawn(async move {
                    for _ in 0..3 {
                        checkpoint().await;
                    }
                    drop(handle);
                    forever().await
                });
                forever().await
            })
            .await
        })
    });
    assert!(said.is_some_and(|said| said.contains("boom")));
}

#[test]
fn a_local_handle_leaves_the_panic_to_the_scope() {
    let said = panic_of(|| {
        block_on(async {
            scope(async |s| {
                let handle = s.child().local().spawn_future(fails());
                checkpoint().await;
                checkpoint().await;
                drop(handle);
                forever().await
            })
            .await
        })
    });
    assert!(said.is_some_and(|said| said.contains("boom")));
}

#[test]
fn a_handle_of_a_blocking_scope_leaves_the_panic_to_it() {
    let pool = ThreadPool::new(2).unwrap();
    let said = panic_of(|| {
        blocking_scope(&pool.executor(), |s| {
            let (ended, wait) = mpsc::channel::<()>();
            let handle = s.spawn_future(async move {
                let _ended = ended;
                fails().await
            });
            // The channel closes when the future is dropped, which is before the outcome is there. So the handle
            // is dropped before, or after.
            let _ = wait.recv();
            drop(handle);
            s.spawn(async { forever().await });
        })
    });
    assert!(said.is_some_and(|said| said.contains("boom")));
}

#[test]
fn a_handle_that_outlives_the_scope_does_not_hold_it() {
    let outcome = block_on(async {
        let handle = scope(async |s| {
            let handle = s.spawn_future(fails());
            checkpoint().await;
            checkpoint().await;
            Some(handle)
        })
        .await;
        drop(handle);
        "ended"
    });
    assert_eq!(outcome, Outcome::Value("ended"));
}

#[test]
fn a_panic_that_the_handle_hears_of_is_heard_there_alone() {
    let pool = ThreadPool::new(1).unwrap();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        blocking_scope(&pool.executor(), |s| {
            let handle = s.spawn_future(fails());
            panic_of(|| handle.wait())
        })
    }));
    assert!(outcome.unwrap().is_some_and(|said| said.contains("boom")));
}
