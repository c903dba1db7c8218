//! `when_all` and `when_any`: children that complete on other threads, fail, and are stopped from above.

use crate::model::{Reached, Seen, empty_quarantine, explore, start};
use convoke_core::raw::sync::thread;
use convoke_sender::prelude::*;

/// Returns work that a thread of its own completes.
fn elsewhere<E: Send + 'static>(outcome: Outcome<u32, E>) -> impl Sender<Value = u32, Error = E> {
    from_callback(move |handle: Completion<u32, E>| _ = thread::spawn(move || handle.complete(outcome)))
}

#[test]
fn two_children_complete_on_two_threads_while_the_parent_starts() {
    static IN_START: Reached = Reached::new();
    static AFTER: Reached = Reached::new();
    explore(3, || {
        let seen = Seen::default();
        let children = (elsewhere::<Never>(Outcome::Value(1)), elsewhere::<Never>(Outcome::Value(2)));
        let done = seen.clone();
        start(when_all(children), &StopSource::new(), &seen);
        IN_START.here_if(done.completed.get() == 1);
        AFTER.here_if(done.completed.get() == 0);
        wait_for(&seen);
        assert_eq!(seen.values.get(), 1);
        empty_quarantine();
    });
    IN_START.assert("both had completed before start returned");
    AFTER.assert("a child was the last");
}

#[test]
fn a_child_fails_while_another_waits_and_the_parent_is_stopped() {
    static FAILED: Reached = Reached::new();
    static STOPPED_FIRST: Reached = Reached::new();
    explore(2, || {
        let (seen, source) = (Seen::default(), StopSource::new());
        let children = (elsewhere(Outcome::Error("no")), never::<u32>().may_fail::<&str>());
        start(when_all(children), &source, &seen);
        let before = seen.completed.get();
        source.request_stop(StopReason::Requested);
        wait_for(&seen);
        assert_eq!(seen.values.get(), 0);
        FAILED.here_if(before == 1);
        STOPPED_FIRST.here_if(before == 0);
        empty_quarantine();
    });
    FAILED.assert("the failure ended it");
    STOPPED_FIRST.assert("the request came before its end");
}

#[test]
fn the_winner_stops_the_loser_while_the_parent_is_stopped() {
    static WON: Reached = Reached::new();
    static STOPPED_FIRST: Reached = Reached::new();
    explore(2, || {
        let (seen, source) = (Seen::default(), StopSource::new());
        start(when_any((elsewhere::<Never>(Outcome::Value(1)), never::<u32>())), &source, &seen);
        let before = seen.completed.get();
        source.request_stop(StopReason::Requested);
        wait_for(&seen);
        assert_eq!(seen.values.get(), 1, "a value that is there is not lost by a stop");
        WON.here_if(before == 1);
        STOPPED_FIRST.here_if(before == 0);
        empty_quarantine();
    });
    WON.assert("the value ended it");
    STOPPED_FIRST.assert("the request came before its end");
}

/// Yields until the operation has completed.
fn wait_for(seen: &Seen) {
    while seen.completed.get() == 0 {
        thread::yield_now();
    }
}
