//! Tests of synchronous generators.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use convoke::env::Changes;
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::task::{sync_generator, task};

#[test]
fn a_body_runs_from_one_value_to_the_next_and_borrows() {
    let steps = std::cell::RefCell::new(Vec::new());
    let mut numbers = sync_generator(async |y| {
        for n in 0..2 {
            steps.borrow_mut().push(n);
            y.yield_value(n).await;
        }
        steps.borrow_mut().push(9);
    });
    assert!(steps.borrow().is_empty(), "it does not run ahead");
    assert_eq!((numbers.next(), steps.borrow().len()), (Some(0), 1));
    assert_eq!((numbers.next(), steps.borrow().len()), (Some(1), 2));
    assert_eq!((numbers.next(), numbers.next()), (None, None));
    assert_eq!(*steps.borrow(), [0, 1, 9]);
}

#[test]
fn a_dropped_iterator_drops_its_body() {
    let held = Arc::new(());
    let holds = held.clone();
    let mut numbers = sync_generator(async move |y| {
        let _held = holds;
        loop {
            y.yield_value(1).await;
        }
    });
    assert_eq!(numbers.by_ref().take(3).sum::<u32>(), 3);
    assert_eq!(Arc::strong_count(&held), 2);
    drop(numbers);
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn a_panic_of_the_body_ends_the_iterator() {
    let mut numbers = sync_generator(async |y| {
        y.yield_value(1).await;
        panic!("no more");
    });
    assert_eq!(numbers.next(), Some(1));
    assert!(catch_unwind(AssertUnwindSafe(|| numbers.next())).is_err());
    assert_eq!(numbers.next(), None);
}

#[test]
#[should_panic(expected = "waits for something other than its yielder")]
fn a_body_that_waits_for_something_else_is_refused() {
    let mut numbers = sync_generator(async |y| {
        std::future::pending::<()>().await;
        y.yield_value(1).await;
    });
    numbers.next();
}

#[test]
fn it_runs_in_a_task_that_was_asked_to_stop_and_needs_no_budget() {
    let source = StopSource::new();
    let changes = Changes::new().stop_token(source.token());
    let program = task(async move {
        source.request_stop(StopReason::Requested);
        let numbers = sync_generator(async |y| {
            for n in 0..1000 {
                y.yield_value(n).await;
            }
        });
        numbers.sum::<u32>()
    });
    assert_eq!(sync_wait_with(changes, program), Outcome::Value(499_500));
}
