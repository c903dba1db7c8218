//! The races of a counting scope, in all interleavings: entering, leaving, joining, draining, stopping.

use crate::model::{Count, Reached, Seen, empty_quarantine, explore, start};
use convoke_core::env::Changes;
use convoke_core::raw::sync::{Arc, Mutex, thread};
use convoke_sender::CountingScope;
use convoke_sender::prelude::*;
use convoke_testing::workshop::frames::Frames;

type StoredHandle = Arc<Mutex<Option<Completion<()>>>>;

/// Returns work that stores its handle where the test finds it.
fn work(stored: &StoredHandle) -> impl Sender<Value = (), Error = Never> + use<> {
    let stored = stored.clone();
    from_callback(move |handle: Completion<()>| *stored.lock().unwrap() = Some(handle))
}

fn take(stored: &StoredHandle) -> Completion<()> {
    let handle = stored.lock().unwrap().take();
    handle.expect("the work was started")
}

/// Returns an environment that stops with `source`.
fn stoppable(frames: &Frames, source: &StopSource) -> Env {
    frames.env().with(Changes::new().stop_token(source.token()))
}

#[test]
fn a_join_meets_the_last_completion() {
    static AT_ONCE: Reached = Reached::new();
    static WAITED: Reached = Reached::new();
    explore(5, || {
        let (scope, stored, frames) = (CountingScope::new(), StoredHandle::default(), Frames::at_most(1));
        let (seen, never) = (Seen::default(), StopSource::new());
        scope.spawn(work(&stored), &frames.env()).unwrap();
        let completer = thread::spawn(move || take(&stored).value(()));
        let left_before = scope.use_count() == 0;
        start(scope.join(), &never, &seen);
        let at_once = seen.completed.get() == 1;
        completer.join().unwrap();
        assert_eq!((seen.completed.get(), seen.values.get(), scope.joined()), (1, 1, true));
        assert_eq!(frames.counts(), (0, 1));
        AT_ONCE.here_if(left_before);
        WAITED.here_if(!at_once);
        empty_quarantine();
    });
    AT_ONCE.assert("the last had left before the join was started");
    WAITED.assert("the join waited");
}

#[test]
fn two_leave_and_one_of_them_is_the_last() {
    static FIRST: Reached = Reached::new();
    static SECOND: Reached = Reached::new();
    explore(5, || {
        let (scope, one, other) = (CountingScope::new(), StoredHandle::default(), StoredHandle::default());
        let (seen, never, frames) = (Seen::default(), StopSource::new(), Frames::at_most(2));
        scope.spawn(work(&one), &frames.env()).unwrap();
        scope.spawn(work(&other), &frames.env()).unwrap();
        start(scope.join(), &never, &seen);
        let (in_thread, completed) = (Count::default(), seen.completed.clone());
        let ended = in_thread.clone();
        let completer = thread::spawn(move || {
            take(&one).value(());
            if completed.get() == 1 {
                ended.add();
            }
        });
        take(&other).value(());
        let here = seen.completed.get() == 1;
        completer.join().unwrap();
        assert_eq!((seen.completed.get(), scope.joined(), frames.counts().0), (1, true, 0));
        FIRST.here_if(!here);
        SECOND.here_if(here && in_thread.get() == 0);
        empty_quarantine();
    });
    FIRST.assert("the other thread was the last");
    SECOND.assert("this thread was the last");
}

#[test]
fn a_nest_meets_a_join() {
    static IN: Reached = Reached::new();
    static REFUSED: Reached = Reached::new();
    explore(5, || {
        let (scope, ran, stored) = (CountingScope::new(), Count::default(), StoredHandle::default());
        // Work in the scope keeps it closed but not joined for some steps.
        scope.spawn(work(&stored), &Env::new()).unwrap();
        let (joined, nested, never) = (Seen::default(), Seen::default(), StopSource::new());
        let nester = {
            let (handle, ran, nested, never) = (scope.handle(), ran.clone(), nested.clone(), never.clone());
            thread::spawn(move || {
                let closed = handle.join_started();
                let sender = handle.nest(just_from(move || ran.add()));
                assert!(!(closed && sender.is_associated()), "through a closed door");
                start(sender, &never, &nested);
            })
        };
        start(scope.join(), &never, &joined);
        take(&stored).value(());
        nester.join().unwrap();
        assert_eq!((joined.completed.get(), nested.completed.get(), scope.use_count()), (1, 1, 0));
        assert_eq!((ran.get(), nested.values.get()), (1 - nested.stopped.get(), ran.get()));
        IN.here_if(ran.get() == 1);
        REFUSED.here_if(ran.get() == 0);
        empty_quarantine();
    });
    IN.assert("the nest came before the join");
    REFUSED.assert("the nest came too late");
}

#[test]
fn the_scope_is_destroyed_right_after_the_join_while_the_last_is_still_leaving() {
    static BY_THE_LAST: Reached = Reached::new();
    static BY_THE_JOINER: Reached = Reached::new();
    explore(5, || {
        let (stored, frames, never) = (StoredHandle::default(), Frames::at_most(1), StopSource::new());
        let (seen, leaving) = (Seen::default(), Count::default());
        let scope = CountingScope::new();
        scope.spawn(work(&stored), &frames.env()).unwrap();
        let completer = {
            let (leaving, seen) = (leaving.clone(), seen.clone());
            thread::spawn(move || {
                take(&stored).value(());
                if seen.completed.get() == 1 {
                    leaving.add();
                }
            })
        };
        // Dropping a scope that is not joined would panic.
        let joining = scope.join().then(move |()| drop(scope));
        start(joining, &never, &seen);
        let here = seen.completed.get() == 1;
        completer.join().unwrap();
        assert_eq!((seen.completed.get(), seen.values.get(), frames.counts().0), (1, 1, 0));
        BY_THE_JOINER.here_if(here);
        BY_THE_LAST.here_if(!here && leaving.get() == 1);
        empty_quarantine();
    });
    BY_THE_LAST.assert("the last to leave completed the join, and with it ended the scope");
    BY_THE_JOINER.assert("the join completed in its start");
}

#[test]
fn a_drain_is_stopped_while_the_last_leaves() {
    static STOPPED: Reached = Reached::new();
    static DRAINED: Reached = Reached::new();
    explore(4, || {
        let (scope, stored, frames) = (CountingScope::new(), StoredHandle::default(), Frames::at_most(1));
        let (seen, source) = (Seen::default(), StopSource::new());
        scope.spawn(work(&stored), &frames.env()).unwrap();
        let completer = thread::spawn(move || take(&stored).value(()));
        let requester = {
            let source = source.clone();
            thread::spawn(move || source.request_stop(StopReason::Requested))
        };
        start(scope.drain(), &source, &seen);
        completer.join().unwrap();
        requester.join().unwrap();
        assert_eq!((seen.completed.get(), scope.join_started()), (1, false));
        STOPPED.here_if(seen.stopped.get() == 1);
        DRAINED.here_if(seen.values.get() == 1);
        empty_quarantine();
    });
    STOPPED.assert("the drain was stopped");
    DRAINED.assert("the drain saw the last leave");
}

#[test]
fn a_stop_request_runs_while_the_work_completes_and_goes_away() {
    static ASKED: Reached = Reached::new();
    static NOT_ASKED: Reached = Reached::new();
    explore(5, || {
        let (scope, stored, frames) = (CountingScope::new(), StoredHandle::default(), Frames::at_most(1));
        let source = StopSource::new();
        scope.spawn(work(&stored), &stoppable(&frames, &source)).unwrap();
        let requester = thread::spawn(move || source.request_stop(StopReason::Requested));
        let handle = take(&stored);
        let asked = handle.stop_requested();
        handle.value(());
        requester.join().unwrap();
        assert_eq!((scope.use_count(), frames.counts().0), (0, 0));
        ASKED.here_if(asked);
        NOT_ASKED.here_if(!asked);
    });
    ASKED.assert("the work was asked to stop");
    NOT_ASKED.assert("the work completed first");
}

#[test]
fn two_requests_end_work_that_honours_them_once() {
    static BY_SCOPE: Reached = Reached::new();
    static BY_ENV: Reached = Reached::new();
    explore(4, || {
        let (scope, frames, source) = (CountingScope::new(), Frames::at_most(1), StopSource::new());
        let env = stoppable(&frames, &source);
        scope.spawn(never::<()>(), &env).unwrap();
        let by_env = Count::default();
        let requester = {
            let (handle, by_env) = (scope.handle(), by_env.clone());
            thread::spawn(move || {
                source.request_stop(StopReason::Requested);
                if handle.use_count() == 0 && !handle.stop_token().stop_requested() {
                    by_env.add();
                }
            })
        };
        scope.request_stop(StopReason::Shutdown);
        let by_scope = scope.use_count() == 0 && by_env.get() == 0;
        requester.join().unwrap();
        drop(env);
        assert_eq!((scope.use_count(), frames.counts().0), (0, 0));
        BY_ENV.here_if(by_env.get() == 1);
        BY_SCOPE.here_if(by_scope);
    });
    BY_SCOPE.assert("the scope's request ended the work");
    BY_ENV.assert("the environment's request ended the work");
}
