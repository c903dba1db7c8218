//! Operations that are mixed up, dropped, or finished inside `cancel`; buffers and wakers that panic.

use std::future::poll_fn;
use std::io;
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Wake, Waker};
use std::thread;

use convoke::Panic;
use convoke::driver::transfer::{Inward, Outward, Transfer};
use convoke::driver::{InFlight, OperationId, Submitted};
use convoke::env::Env;
use convoke::prelude::*;
use convoke::sender::CountingScope;
use convoke::sender::prelude::*;

use crate::lawless_driver::lawless::{Lawless, kept, poll_once};

#[test]
fn a_submit_that_returns_another_operation_keeps_the_buffer() {
    // The source stores the second operation, and returns the first in its place.
    let mixes_up = |source: &Lawless, operation: InFlight| match source.take() {
        None => source.keep(operation),
        Some(other) => {
            let _ = source.keep(operation);
            Submitted::Done(other, Ok(4))
        }
    };
    let source = Lawless::new(mixes_up, Lawless::find);
    sync_wait(task(async move {
        let (first, second) = (source.read(vec![0_u8; 4]), source.read(vec![1_u8; 4]));
        let finisher = async {
            kept(&source, 1).await;
            assert!(source.finish_one(), "the driver still has the second operation");
        };
        let (first, second, ()) = join((first.into_future(), second.into_future(), finisher)).await;
        assert!(first.0.is_err() && second.0.is_ok());
        assert_eq!((first.1, second.1), (vec![0; 4], vec![7; 4]));
    }))
    .unwrap();
}

#[test]
fn a_cancel_that_returns_another_operation_keeps_the_first() {
    let any_other = |source: &Lawless, id: OperationId| {
        let mut kept = source.kept.lock().unwrap();
        let other = kept.iter().position(|operation| operation.id() != id)?;
        Some(kept.remove(other))
    };
    let source = Lawless::new(Lawless::keep, any_other);
    sync_wait(task(async move {
        scope(async |s| {
            let reader = source.clone();
            let patient = s.spawn_future(async move { reader.read([0_u8; 4]).await });
            kept(&source, 1).await;
            {
                let mut hasty = pin!(source.read([1_u8; 4]).into_future());
                poll_once(hasty.as_mut()).await;
                assert_eq!(source.kept.lock().unwrap().len(), 2);
            }
            // It was dropped in flight, and the driver still has it: the source returned the other one.
            let (result, buffer) = patient.await;
            assert!(result.is_err());
            assert_eq!(buffer, [0; 4]);
            assert!(source.finish_one());
        })
        .await;
    }))
    .unwrap();
}

#[test]
fn a_source_that_finishes_inside_cancel_is_not_dropped_meanwhile() {
    let on_the_spot = |source: &Lawless, id: OperationId| {
        let (is_gone, was_gone) = (source.is_gone.clone(), source.was_gone.clone());
        let found = source.find(id)?;
        drop(found.finish(Err(io::ErrorKind::TimedOut.into())));
        was_gone.store(is_gone.load(Ordering::Acquire), Ordering::Release);
        None
    };
    for _ in 0..if cfg!(miri) { 3 } else { 100 } {
        let source = Lawless::new(Lawless::keep, on_the_spot);
        let (is_gone, was_gone) = (source.is_gone.clone(), source.was_gone.clone());
        // Spawned work frees itself when it completes, and drops the last reference.
        let scope = CountingScope::new();
        let read =
            Transfer::<_, Inward>::new(source, vec![0_u8; 64]).then(|(result, _)| assert!(result.is_err()));
        assert!(scope.spawn(read, &Env::new()).is_ok());
        scope.request_stop(StopReason::Requested);
        sync_wait(scope.join()).unwrap();
        assert!(is_gone.load(Ordering::Acquire));
        assert!(!was_gone.load(Ordering::Acquire), "the source was dropped during a call of it");
    }
}

#[test]
fn a_driver_that_drops_operations_fails_them() {
    let drops = |_: &Lawless, operation: InFlight| {
        drop(operation);
        Submitted::Kept
    };
    let source = Lawless::new(drops, |_, _| None);
    let (result, buffer) = sync_wait(source.read(vec![3_u8; 4])).unwrap();
    assert!(result.unwrap_err().to_string().contains("dropped"));
    assert_eq!(buffer, [3; 4]);
    let written = sync_wait(Transfer::<_, Outward>::new(source, "words")).unwrap();
    assert!(written.0.is_err());
}

#[test]
fn a_cancel_that_panics_does_not_lose_the_operation() {
    let source = Lawless::new(Lawless::keep, |_, _| panic!("asked"));
    let keeps = source.clone();
    let stop = StopSource::new();
    let waiter = thread::spawn({
        let changes = convoke::env::Changes::new().stop_token(stop.token());
        move || sync_wait_with(changes, source.read([0_u8; 4]))
    });
    while keeps.kept.lock().unwrap().is_empty() {
        thread::yield_now();
    }
    stop.request_stop(StopReason::Requested);
    assert!(keeps.finish_one());
    let (result, buffer) = waiter.join().unwrap().unwrap();
    assert_eq!((result.unwrap(), buffer), (4, [7; 4]));
}

/// A waker that panics after it has woken another one.
struct Throws(Waker);

impl Wake for Throws {
    fn wake(self: Arc<Self>) {
        self.0.wake_by_ref();
        panic!("a panic of a waker");
    }
}

#[test]
fn a_waker_that_panics_does_not_reach_the_driver() {
    let source = Lawless::new(Lawless::keep, Lawless::find);
    sync_wait(task(async move {
        let mut read = pin!(source.read([0_u8; 4]).into_future());
        let mut is_first = true;
        let result = poll_fn(|cx| {
            let waker = Waker::from(Arc::new(Throws(cx.waker().clone())));
            let polled = read.as_mut().poll(&mut Context::from_waker(&waker));
            if mem::take(&mut is_first) {
                let source = source.clone();
                let finisher = thread::spawn(move || source.finish_one());
                assert!(finisher.join().expect("the driver does not see the panic"));
            }
            polled
        })
        .await;
        assert_eq!(result.1, [7; 4]);
    }))
    .unwrap();
}

/// A buffer that panics when it is accessed or dropped.
struct Brittle {
    bytes: [u8; 4],
    holds: bool,
}

impl AsMut<[u8]> for Brittle {
    fn as_mut(&mut self) -> &mut [u8] {
        assert!(self.holds, "there is no such buffer");
        &mut self.bytes
    }
}

impl Drop for Brittle {
    fn drop(&mut self) {
        assert!(!self.holds, "the buffer breaks");
    }
}

#[test]
fn a_buffer_that_panics_panics_its_task() {
    let source = Lawless::new(Lawless::keep, Lawless::find);
    let refused = Panic::catch(|| sync_wait(source.read(Brittle { bytes: [0; 4], holds: false })));
    assert!(refused.is_err());
    assert!(source.take().is_none(), "the driver was not called");
    let reader = source.clone();
    // A buffer of a stopped operation is dropped with its operation.
    let stopped = Panic::catch(|| {
        sync_wait(task(async move {
            let mut read = pin!(reader.read(Brittle { bytes: [0; 4], holds: true }).into_future());
            poll_once(read.as_mut()).await;
        }))
    });
    drop(stopped);
    assert!(source.take().is_none());
}

#[test]
fn a_read_dropped_in_flight_keeps_its_buffer_until_the_driver_is_done() {
    let source = Lawless::new(Lawless::keep, |_, _| None);
    let finisher = thread::spawn({
        let source = source.clone();
        move || {
            while !source.finish_one() {
                thread::yield_now();
            }
        }
    });
    sync_wait(task(async move {
        let mut read = pin!(source.read(vec![0_u8; 1 << 16]).into_future());
        poll_once(read.as_mut()).await;
    }))
    .unwrap();
    finisher.join().unwrap();
}
