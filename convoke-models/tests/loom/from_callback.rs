//! `from_callback`: the handle is used or dropped on another thread while the function still runs.

use crate::model::{Reached, Seen, empty_quarantine, explore, start};
use convoke_core::raw::sync::{Arc, Mutex, thread};
use convoke_sender::prelude::*;

type Handle = Completion<u32>;

/// Runs `from_callback` with a function that passes the handle to `end` on another thread, and panics if
/// `panics` is set.
fn hand_over(end: fn(Handle), panics: bool, seen: &Seen) -> bool {
    let other: Arc<Mutex<Option<thread::JoinHandle<()>>>> = Arc::new(Mutex::new(None));
    let keep = other.clone();
    let f = move |handle: Handle| {
        let ender = thread::spawn(move || end(handle));
        *keep.lock().unwrap() = Some(ender);
        if panics {
            Panic::new("boom").resume();
        }
    };
    start(from_callback(f), &StopSource::new(), seen);
    let in_start = seen.completed.get() == 1;
    let other = other.lock().unwrap().take();
    other.unwrap().join().unwrap();
    assert_eq!(seen.completed.get(), 1);
    in_start
}

#[test]
fn another_thread_completes_while_the_function_runs() {
    static BY_START: Reached = Reached::new();
    static BY_THE_OTHER: Reached = Reached::new();
    explore(4, || {
        let seen = Seen::default();
        let in_start = hand_over(|handle| handle.value(1), false, &seen);
        assert_eq!(seen.values.get(), 1);
        BY_START.here_if(in_start);
        BY_THE_OTHER.here_if(!in_start);
        empty_quarantine();
    });
    BY_START.assert("start was the second to come");
    BY_THE_OTHER.assert("the handle was the second to come");
}

#[test]
fn another_thread_drops_the_handle_while_the_function_runs() {
    static BY_START: Reached = Reached::new();
    static BY_THE_OTHER: Reached = Reached::new();
    explore(4, || {
        let seen = Seen::default();
        let in_start = hand_over(drop, false, &seen);
        assert_eq!(seen.stopped.get(), 1);
        BY_START.here_if(in_start);
        BY_THE_OTHER.here_if(!in_start);
        empty_quarantine();
    });
    BY_START.assert("start was the second to come");
    BY_THE_OTHER.assert("the handle was the second to come");
}

#[test]
fn another_thread_looks_at_the_stop_while_the_function_panics() {
    static BY_START: Reached = Reached::new();
    static BY_THE_OTHER: Reached = Reached::new();
    explore(4, || {
        let seen = Seen::default();
        let look_and_complete = |handle: Handle| {
            assert!(!handle.stop_requested());
            handle.value(1);
        };
        let in_start = hand_over(look_and_complete, true, &seen);
        assert_eq!(seen.panicked.get(), 1);
        BY_START.here_if(in_start);
        BY_THE_OTHER.here_if(!in_start);
        empty_quarantine();
    });
    BY_START.assert("start was the second to come");
    BY_THE_OTHER.assert("the handle was the second to come");
}
