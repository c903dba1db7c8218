//! How an operation ends if its source breaks the contract.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use convoke::driver::transfer::{Inward, Outward, Transfer};
use convoke::driver::{InFlight, RequestMut, Submitted};
use convoke::env::Env;
use convoke::prelude::*;
use convoke::sender::CountingScope;
use convoke::sender::prelude::*;

use crate::lawless_driver::lawless::{Lawless, poll_once};

#[test]
fn a_submit_that_panics_fails_the_operation() {
    let source = Lawless::new(|_, _operation| panic!("not today"), |_, _| None);
    let (result, buffer) = sync_wait(source.read(vec![3_u8; 4])).unwrap();
    assert!(result.unwrap_err().to_string().contains("dropped"));
    assert_eq!(buffer, [3; 4]);
    // In a task, too; what it awaits afterwards is not disturbed.
    let written = sync_wait(task(async move {
        let written = Transfer::<_, Outward>::new(source, "words").await;
        checkpoint().await;
        written.0
    }));
    assert!(written.unwrap().is_err());
}

#[test]
fn a_submit_that_stores_the_operation_and_panics_keeps_the_buffer() {
    let keeps_and_panics = |source: &Lawless, operation: InFlight| {
        let _ = source.keep(operation);
        panic!("too late");
    };
    let source = Lawless::new(keeps_and_panics, Lawless::find);
    let finisher = thread::spawn({
        let source = source.clone();
        move || {
            while !source.finish_one() {
                thread::yield_now();
            }
        }
    });
    let (result, buffer) = sync_wait(source.read([0_u8; 4])).unwrap();
    assert_eq!((result.unwrap(), buffer), (4, [7; 4]));
    finisher.join().unwrap();
}

#[test]
fn a_submit_that_stores_the_operation_and_panics_can_be_cancelled() {
    let keeps_and_panics = |source: &Lawless, operation: InFlight| {
        let _ = source.keep(operation);
        panic!("too late");
    };
    let source = Lawless::new(keeps_and_panics, Lawless::find);
    let scope = CountingScope::new();
    let read = source.read(vec![0_u8; 64]).then(|_| -> () { panic!("nothing was read") });
    assert!(scope.spawn(read, &Env::new()).is_ok());
    scope.request_stop(StopReason::Requested);
    sync_wait(scope.join()).unwrap();
    assert!(source.take().is_none());
}

#[test]
fn a_submit_that_finishes_inside_and_returns_kept_works() {
    let on_the_spot = |_: &Lawless, mut operation: InFlight| {
        if let RequestMut::Read(buffer) = operation.request_mut() {
            buffer.fill(7);
        }
        drop(operation.finish(Ok(4)));
        Submitted::Kept
    };
    let source = Lawless::new(on_the_spot, |_, _| None);
    let (result, buffer) = sync_wait(source.read([0_u8; 4])).unwrap();
    assert_eq!((result.unwrap(), buffer), (4, [7; 4]));
    let read = source.clone();
    let (result, buffer) = sync_wait(task(async move { read.read(vec![0_u8; 4]).await })).unwrap();
    assert_eq!((result.unwrap(), buffer), (4, vec![7; 4]));
}

#[test]
fn an_operation_that_another_thread_finishes_before_submit_returns_ends_once() {
    let elsewhere = |source: &Lawless, operation: InFlight| {
        let _ = source.keep(operation);
        thread::scope(|threads| {
            assert!(threads.spawn(|| source.finish_one()).join().unwrap());
        });
        Submitted::Kept
    };
    let source = Lawless::new(elsewhere, Lawless::find);
    let ended = Arc::new(AtomicUsize::new(0));
    let scope = CountingScope::new();
    for _ in 0..8 {
        let ended = ended.clone();
        let read = Transfer::<_, Inward>::new(source.clone(), vec![0_u8; 64]);
        let counted = read.then(move |(result, buffer)| {
            assert_eq!((result.unwrap(), buffer), (64, vec![7; 64]));
            ended.fetch_add(1, Ordering::Relaxed);
        });
        assert!(scope.spawn(counted, &Env::new()).is_ok());
    }
    sync_wait(scope.join()).unwrap();
    assert_eq!(ended.load(Ordering::Relaxed), 8);
}

#[test]
fn a_wrong_length_is_returned_and_touches_no_memory() {
    for said in [0, 3, 5, usize::MAX] {
        let (done, kept) = LENGTHS.with(|length| {
            length.set(said);
            let done: fn(&Lawless, InFlight) -> Submitted =
                |_, operation| Submitted::Done(operation, Ok(LENGTHS.get()));
            let kept: fn(&Lawless, InFlight) -> Submitted = |_, operation| {
                drop(operation.finish(Ok(LENGTHS.get())));
                Submitted::Kept
            };
            (done, kept)
        });
        for on_submit in [done, kept] {
            let source = Lawless::new(on_submit, |_, _| None);
            let (result, buffer) = sync_wait(source.read(vec![1_u8; 4])).unwrap();
            assert_eq!((result.unwrap(), buffer), (said, vec![1; 4]));
            let (result, words) = sync_wait(Transfer::<_, Outward>::new(source, "words")).unwrap();
            assert_eq!((result.unwrap(), words), (said, "words"));
        }
    }
}

thread_local! {
    static LENGTHS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Never dropped, and where tools that look for leaks find it.
fn forget<T>(what: T) -> &'static T {
    static FORGOTTEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let forgotten = Box::leak(Box::new(what));
    FORGOTTEN.lock().unwrap().push(std::ptr::from_ref(forgotten).expose_provenance());
    forgotten
}

#[test]
#[cfg_attr(miri, ignore = "an operation that is never finished is never freed")]
fn a_leaked_operation_keeps_its_buffer_and_its_waiter() {
    let forgets = |_: &Lawless, operation: InFlight| {
        forget(operation);
        Submitted::Kept
    };
    let forgets_to_tell = |_: &Lawless, operation: InFlight| {
        forget(operation.finish(Ok(4)));
        Submitted::Kept
    };
    for on_submit in [forgets as fn(&Lawless, InFlight) -> Submitted, forgets_to_tell] {
        let source = Lawless::new(on_submit, |_, _| None);
        // Never dropped: it would wait for an operation that never ends.
        let scope = forget(CountingScope::new());
        let read = source.read(vec![0_u8; 64]).then(|_| -> () { panic!("it has not ended") });
        assert!(scope.spawn(read, &Env::new()).is_ok());
        scope.request_stop(StopReason::Requested);
        assert!(!source.is_gone.load(Ordering::Acquire), "the operation holds its source");
        assert_eq!(Arc::strong_count(&source), 2);
    }
}

#[test]
fn an_operation_can_be_stopped_between_finish_and_notification() {
    let source = Lawless::new(Lawless::keep, |_, _| None);
    let stop = StopSource::new();
    let changes = convoke::env::Changes::new().stop_token(stop.token());
    let waiter = thread::spawn({
        let source = source.clone();
        move || sync_wait_with(changes, source.read([0_u8; 4]))
    });
    let operation = loop {
        match source.take() {
            Some(operation) => break operation,
            None => thread::yield_now(),
        }
    };
    let told = operation.finish(Ok(4));
    stop.request_stop(StopReason::Requested);
    drop(told);
    assert_eq!(waiter.join().unwrap().unwrap().0.unwrap(), 4, "it was finished before it was stopped");
}

#[test]
fn an_operation_that_is_finished_and_cancelled_at_once_ends_once() {
    const ROUNDS: usize = if cfg!(miri) { 10 } else { 200 };
    for _ in 0..ROUNDS {
        let source = Lawless::new(Lawless::keep, Lawless::find);
        let ended = Arc::new(AtomicUsize::new(0));
        let scope = CountingScope::new();
        let counts = ended.clone();
        let read = source.read(vec![0_u8; 64]).then(move |_| _ = counts.fetch_add(1, Ordering::Relaxed));
        assert!(scope.spawn(read, &Env::new()).is_ok());
        let both = Barrier::new(2);
        let finished = thread::scope(|threads| {
            let finisher = threads.spawn(|| {
                both.wait();
                source.finish_one()
            });
            both.wait();
            scope.request_stop(StopReason::Requested);
            finisher.join().unwrap()
        });
        sync_wait(scope.join()).unwrap();
        assert_eq!(ended.load(Ordering::Relaxed), usize::from(finished));
    }
}

#[test]
fn a_notification_may_finish_another_operation() {
    let source = Lawless::new(Lawless::keep, Lawless::find);
    let scope = CountingScope::new();
    let chain = source.clone();
    let first = source.read(vec![0_u8; 4]).then(move |_| assert!(chain.finish_one()));
    let second = source.read(vec![0_u8; 4]).then(|(result, _)| assert!(result.is_ok()));
    assert!(scope.spawn(second, &Env::new()).is_ok() && scope.spawn(first, &Env::new()).is_ok());
    assert!(source.finish_one());
    sync_wait(scope.join()).unwrap();
    assert!(source.take().is_none());
}

#[test]
fn an_operation_is_finished_after_its_context_was_dropped() {
    let source = Lawless::new(Lawless::keep, |_, _| None);
    let context = convoke::driver::IoContext::new(Arc::new(crate::lawless_driver::drivers::Bare::default()));
    let reader = source.clone();
    let chain = launch(&context.executor()).start(async move {
        let mut read = pin!(reader.read(vec![0_u8; 1 << 12]).into_future());
        poll_once(read.as_mut()).await;
        read.await.0.is_ok()
    });
    context.poll();
    assert_eq!(source.kept.lock().unwrap().len(), 1);
    drop(context);
    let finisher = thread::spawn(move || source.finish_one());
    // The loop is gone, so the result is dropped. But the task has kept its buffer until now.
    assert_eq!(chain.wait(), Outcome::Stopped);
    assert!(finisher.join().unwrap());
}
