//! Spawned work and the consumer of its result, in all interleavings: complete, consume, abandon, stop.

use crate::model::{Count, Reached, Seen, empty_quarantine, explore, start};
use convoke_core::raw::sync::{Arc, Mutex, thread};
use convoke_core::testing::{DropCount, DropToken};
use convoke_sender::CountingScope;
use convoke_sender::counting_scope::SpawnFuture;
use convoke_sender::prelude::*;
use convoke_testing::workshop::frames::Frames;

type StoredHandle = Arc<Mutex<Option<Completion<DropToken>>>>;

/// A scope with work in it that waits to be completed.
struct Spawned {
    scope: CountingScope,
    frames: Frames,
    stored: StoredHandle,
    results: DropCount,
}

impl Spawned {
    fn new() -> (Self, SpawnFuture<DropToken>) {
        let (scope, frames, stored) = (CountingScope::new(), Frames::at_most(1), StoredHandle::default());
        let put = stored.clone();
        let work = from_callback(move |handle: Completion<DropToken>| *put.lock().unwrap() = Some(handle));
        let future = scope.spawn_future(work, &frames.env()).unwrap();
        (Self { scope, frames, stored, results: DropCount::new() }, future)
    }

    /// Returns a closure that completes the work, and returns true if it had been requested to stop.
    fn completer(&self) -> impl FnOnce() -> bool + Send + use<> {
        let (stored, token) = (self.stored.clone(), self.results.token());
        move || {
            let handle = stored.lock().unwrap().take().expect("the work was started");
            let asked = handle.stop_requested();
            handle.value(token);
            asked
        }
    }

    /// Checks that the scope is empty, the memory freed, and the one result dropped.
    fn assert_nothing_is_left(&self) {
        assert_eq!(self.scope.use_count(), 0, "counted");
        assert_eq!(self.frames.counts(), (0, 1), "memory");
        assert_eq!(self.results.dropped(), 1, "result");
        empty_quarantine();
    }
}

#[test]
fn the_work_completes_while_its_result_is_asked_for() {
    static TAKEN: Reached = Reached::new();
    static DELIVERED: Reached = Reached::new();
    explore(5, || {
        let (spawned, future) = Spawned::new();
        let (seen, never) = (Seen::default(), StopSource::new());
        let complete = spawned.completer();
        let completer = thread::spawn(complete);
        let done_before = spawned.scope.use_count() == 0;
        start(future, &never, &seen);
        let at_once = seen.completed.get() == 1;
        assert!(!completer.join().unwrap(), "nobody asked it to stop");
        assert_eq!((seen.completed.get(), seen.values.get()), (1, 1));
        spawned.assert_nothing_is_left();
        TAKEN.here_if(done_before);
        DELIVERED.here_if(!at_once);
    });
    TAKEN.assert("the result was there");
    DELIVERED.assert("the work delivered it");
}

#[test]
fn the_work_completes_while_it_is_abandoned() {
    static ASKED: Reached = Reached::new();
    static NOT_ASKED: Reached = Reached::new();
    static WAS_THERE: Reached = Reached::new();
    explore(5, || {
        let (spawned, future) = Spawned::new();
        let complete = spawned.completer();
        let completer = thread::spawn(complete);
        let there = spawned.scope.use_count() == 0;
        drop(future);
        let asked = completer.join().unwrap();
        spawned.assert_nothing_is_left();
        ASKED.here_if(asked);
        NOT_ASKED.here_if(!asked && !there);
        WAS_THERE.here_if(there);
    });
    ASKED.assert("the work was asked to stop");
    NOT_ASKED.assert("the two met");
    WAS_THERE.assert("the result was there, and dropped");
}

#[test]
fn the_work_completes_while_its_consumer_is_stopped() {
    static LEFT: Reached = Reached::new();
    static VALUE: Reached = Reached::new();
    static VALUE_AFTER_ALL: Reached = Reached::new();
    explore(5, || {
        let (spawned, future) = Spawned::new();
        let (seen, source) = (Seen::default(), StopSource::new());
        start(future, &source, &seen);
        let requester = thread::spawn(move || source.request_stop(StopReason::Requested));
        let asked = spawned.completer()();
        requester.join().unwrap();
        assert_eq!((seen.completed.get(), seen.values.get() + seen.stopped.get()), (1, 1));
        spawned.assert_nothing_is_left();
        LEFT.here_if(seen.stopped.get() == 1);
        VALUE.here_if(seen.values.get() == 1 && !asked);
        VALUE_AFTER_ALL.here_if(seen.values.get() == 1 && asked);
    });
    LEFT.assert("the consumer left");
    VALUE.assert("the work completed first");
    VALUE_AFTER_ALL.assert("the work completed between the request and the consumer's leaving");
}

#[test]
fn a_consumer_starts_is_stopped_and_is_delivered_to_on_three_threads() {
    static LEFT: Reached = Reached::new();
    static VALUE: Reached = Reached::new();
    explore(4, || {
        let (spawned, future) = Spawned::new();
        let (seen, source) = (Seen::default(), StopSource::new());
        let completer = thread::spawn(spawned.completer());
        let requester = {
            let source = source.clone();
            thread::spawn(move || source.request_stop(StopReason::Requested))
        };
        start(future, &source, &seen);
        completer.join().unwrap();
        requester.join().unwrap();
        assert_eq!((seen.completed.get(), seen.values.get() + seen.stopped.get()), (1, 1));
        spawned.assert_nothing_is_left();
        LEFT.here_if(seen.stopped.get() == 1);
        VALUE.here_if(seen.values.get() == 1);
    });
    LEFT.assert("the consumer left");
    VALUE.assert("the consumer had the result");
}

#[test]
fn a_stop_callback_runs_while_the_work_it_ends_goes_away() {
    static BY_SCOPE: Reached = Reached::new();
    static BY_CONSUMER: Reached = Reached::new();
    explore(4, || {
        let (scope, frames) = (CountingScope::new(), Frames::at_most(1));
        let (seen, source) = (Seen::default(), StopSource::new());
        let future = scope.spawn_future(never::<u32>(), &frames.env()).unwrap();
        start(future, &source, &seen);
        let by_consumer = Count::default();
        let requester = {
            let (handle, by_consumer) = (scope.handle(), by_consumer.clone());
            thread::spawn(move || {
                source.request_stop(StopReason::Requested);
                if !handle.stop_token().stop_requested() {
                    by_consumer.add();
                }
            })
        };
        scope.request_stop(StopReason::Shutdown);
        let by_scope = seen.completed.get() == 1 && by_consumer.get() == 0;
        requester.join().unwrap();
        assert_eq!((seen.completed.get(), seen.stopped.get()), (1, 1));
        assert_eq!((scope.use_count(), frames.counts()), (0, (0, 1)));
        BY_SCOPE.here_if(by_scope);
        BY_CONSUMER.here_if(by_consumer.get() == 1);
        empty_quarantine();
    });
    BY_SCOPE.assert("the scope's request ended the work");
    BY_CONSUMER.assert("the consumer's request ended the work");
}

#[test]
fn a_future_is_abandoned_while_the_scope_stops_and_is_joined() {
    static STOPPED_BY_SCOPE: Reached = Reached::new();
    static ABANDONED: Reached = Reached::new();
    explore(4, || {
        let (scope, frames) = (CountingScope::new(), Frames::at_most(1));
        let future = scope.spawn_future(never::<u32>(), &frames.env()).unwrap();
        let (seen, never) = (Seen::default(), StopSource::new());
        let dropper = thread::spawn(move || drop(future));
        let empty_before = scope.use_count() == 0;
        scope.request_stop(StopReason::Shutdown);
        start(scope.join(), &never, &seen);
        dropper.join().unwrap();
        assert_eq!((seen.completed.get(), seen.values.get()), (1, 1));
        assert_eq!(frames.counts(), (0, 1));
        STOPPED_BY_SCOPE.here_if(!empty_before);
        ABANDONED.here_if(empty_before);
        empty_quarantine();
    });
    STOPPED_BY_SCOPE.assert("the scope's request came first, or while it was abandoned");
    ABANDONED.assert("the future was abandoned first");
}
