//! A read that is finished by its driver, stopped, and still starting, all at once: it completes once, its
//! buffer is accessed by one thread at a time, and not after it was freed.

use core::task::Waker;
use std::io;
use std::sync::Arc;

use crate::model::{Count, Reached, Seen, empty_quarantine, explore, start};
use convoke_core::raw::sync::{Mutex, thread};
use convoke_core::{StopReason, StopSource};
use convoke_io::driver::{
    Address, InFlight, Interest, OperationId, RequestMut, Source, Submitted, Ticket, shut_down,
};
use convoke_io::transfer::{Inward, Transfer};

/// A source that stores one operation until it is finished or handed back.
struct Kernel {
    kept: Mutex<Option<InFlight>>,
    cancels: Cancels,
    seen: Seen,
    /// The number of completions while `cancel` ran: the completion may drop the last reference to the
    /// source.
    too_early: Count,
}

/// The reaction of a source to the cancellation of an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cancels {
    HandsBack,
    /// Finishes it at once, and returns nothing.
    Finishes,
}

impl core::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Kernel")
    }
}

impl Kernel {
    fn new(cancels: Cancels, seen: &Seen) -> Arc<Self> {
        Arc::new(Self { kept: Mutex::new(None), cancels, seen: seen.clone(), too_early: Count::default() })
    }

    fn take(&self) -> Option<InFlight> {
        self.kept.lock().unwrap().take()
    }

    /// Finishes the stored operation. Returns true if there was one.
    fn finishes(&self) -> bool {
        let mut kept = self.kept.lock().unwrap();
        let Some(mut operation) = kept.take() else { return false };
        if let RequestMut::Read(buffer) = operation.request_mut() {
            buffer[0] = 7;
        }
        let finished = operation.finish(Ok(1));
        drop(kept);
        thread::yield_now();
        drop(finished);
        true
    }
}

impl Source for Kernel {
    fn submit(&self, operation: InFlight) -> Submitted {
        *self.kept.lock().unwrap() = Some(operation);
        Submitted::Kept
    }

    fn cancel(&self, operation: OperationId) -> Option<InFlight> {
        let found = self.take()?;
        assert_eq!(found.id(), operation);
        match self.cancels {
            Cancels::HandsBack => Some(found),
            Cancels::Finishes => {
                drop(found.finish(Err(shut_down())));
                if self.seen.completed.get() > 0 {
                    self.too_early.add();
                }
                None
            }
        }
    }

    fn watch(&self, _: Interest, _: Ticket, _: &Waker) -> Option<Ticket> {
        None
    }

    fn unwatch(&self, _: Interest, _: Ticket) {}

    fn local_address(&self) -> io::Result<Address> {
        Ok(Address::Unnamed)
    }
}

/// The way in which a schedule ended.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ended {
    by_driver: bool,
    in_start: bool,
    by_value: bool,
}

/// Starts a read while one thread finishes what it finds, and another requests a stop.
fn read(cancels: Cancels, stops: bool) -> Ended {
    let seen = Seen::default();
    let stop = StopSource::new();
    let kernel = Kernel::new(cancels, &seen);
    let driver = thread::spawn({
        let kernel = kernel.clone();
        move || kernel.finishes()
    });
    let stopper = stops.then(|| {
        let stop = stop.clone();
        thread::spawn(move || {
            stop.request_stop(StopReason::Requested);
        })
    });
    start(Transfer::<_, Inward>::new(kernel.clone(), [0_u8; 1]), &stop, &seen);
    let in_start = seen.completed.get() == 1;
    let mut by_driver = driver.join().unwrap();
    if let Some(stopper) = stopper {
        stopper.join().unwrap();
    } else if !by_driver {
        by_driver = kernel.finishes();
    }
    assert_eq!(seen.completed.get(), 1);
    let by_value = seen.values.get() == 1;
    assert_eq!(seen.stopped.get() + seen.values.get(), 1);
    assert!(kernel.take().is_none());
    assert_eq!(kernel.too_early.get(), 0, "a source goes while it is asked");
    drop(kernel);
    empty_quarantine();
    Ended { by_driver, in_start, by_value }
}

#[test]
fn the_driver_finishes_while_start_runs() {
    static BY_START: Reached = Reached::new();
    static BY_DRIVER: Reached = Reached::new();
    explore(4, || {
        let ended = read(Cancels::HandsBack, false);
        assert!(ended.by_value && ended.by_driver);
        BY_START.here_if(ended.in_start);
        BY_DRIVER.here_if(!ended.in_start);
    });
    BY_START.assert("start was the second to come");
    BY_DRIVER.assert("the driver was the second to come");
}

#[test]
fn it_is_stopped_while_start_runs_and_the_driver_finishes() {
    static STOPPED: Reached = Reached::new();
    static STOPPED_IN_START: Reached = Reached::new();
    static FINISHED: Reached = Reached::new();
    static FINISHED_IN_START: Reached = Reached::new();
    explore(3, || {
        let ended = read(Cancels::HandsBack, true);
        assert_eq!(ended.by_value, ended.by_driver, "what has happened is said, and nothing else");
        STOPPED.here_if(!ended.by_value && !ended.in_start);
        STOPPED_IN_START.here_if(!ended.by_value && ended.in_start);
        FINISHED.here_if(ended.by_value && !ended.in_start);
        FINISHED_IN_START.here_if(ended.by_value && ended.in_start);
    });
    STOPPED.assert("the callback completed it");
    STOPPED_IN_START.assert("start completed it as stopped");
    FINISHED.assert("the driver completed it");
    FINISHED_IN_START.assert("start completed it with what the driver said");
}

#[test]
fn a_source_that_finishes_what_it_is_asked_for_is_there_until_it_has_answered() {
    static ASKED: Reached = Reached::new();
    static ASKED_IN_START: Reached = Reached::new();
    static BY_DRIVER: Reached = Reached::new();
    explore(3, || {
        let ended = read(Cancels::Finishes, true);
        ASKED.here_if(ended.by_value && !ended.by_driver && !ended.in_start);
        ASKED_IN_START.here_if(ended.by_value && !ended.by_driver && ended.in_start);
        BY_DRIVER.here_if(ended.by_driver);
    });
    ASKED.assert("it was finished where it was asked for, after start");
    ASKED_IN_START.assert("it was finished where it was asked for, before start returned");
    BY_DRIVER.assert("the driver was first");
}
