//! `split`: consumers that start, leave and are completed at the same time.

use crate::model::{Reached, Seen, empty_quarantine, explore, start};
use convoke_core::raw::sync::{Arc, Mutex, thread};
use convoke_sender::prelude::*;

type StoredHandle = Arc<Mutex<Option<Completion<u32>>>>;

/// Returns work that stores its handle where the test finds it.
fn work(stored: &StoredHandle) -> impl Sender<Value = u32, Error = Never> + use<> {
    let stored = stored.clone();
    from_callback(move |handle: Completion<u32>| *stored.lock().unwrap() = Some(handle))
}

fn complete(stored: &StoredHandle) {
    let handle = stored.lock().unwrap().take();
    handle.expect("the work was started").value(1);
}

#[test]
fn one_consumer_leaves_while_the_work_completes() {
    static LEFT: Reached = Reached::new();
    static STAYED: Reached = Reached::new();
    explore(3, || {
        let stored = StoredHandle::default();
        let split = work(&stored).split();
        let (leaving, staying) = (Seen::default(), Seen::default());
        let (source, never) = (StopSource::new(), StopSource::new());
        start(split.clone(), &source, &leaving);
        start(split, &never, &staying);
        let requester = thread::spawn(move || source.request_stop(StopReason::Requested));
        complete(&stored);
        requester.join().unwrap();
        assert_eq!((leaving.completed.get(), staying.completed.get(), staying.values.get()), (1, 1, 1));
        LEFT.here_if(leaving.stopped.get() == 1);
        STAYED.here_if(leaving.values.get() == 1);
        empty_quarantine();
    });
    LEFT.assert("the consumer left first");
    STAYED.assert("the work completed first");
}

#[test]
fn two_consumers_start_on_two_threads() {
    static OTHER_FIRST: Reached = Reached::new();
    static MINE_FIRST: Reached = Reached::new();
    explore(3, || {
        let starts = crate::model::Count::default();
        let counted = starts.clone();
        let split = just_from(move || counted.add()).split();
        let (mine, others, never) = (Seen::default(), Seen::default(), StopSource::new());
        let other = {
            let (split, others, never) = (split.clone(), others.clone(), never.clone());
            thread::spawn(move || start(split, &never, &others))
        };
        start(split, &never, &mine);
        let mine_at_once = mine.completed.get() == 1;
        other.join().unwrap();
        assert_eq!(starts.get(), 1, "the work is done once");
        assert_eq!((mine.values.get(), others.values.get()), (1, 1));
        MINE_FIRST.here_if(mine_at_once);
        OTHER_FIRST.here_if(!mine_at_once);
        empty_quarantine();
    });
    MINE_FIRST.assert("this consumer had its outcome when its start returned");
    OTHER_FIRST.assert("this consumer waited for the work that the other had started");
}

#[test]
fn the_last_consumer_is_stopped_while_the_work_completes_and_waits_for_it() {
    static ASKED: Reached = Reached::new();
    static NOT_ASKED: Reached = Reached::new();
    explore(3, || {
        let stored = StoredHandle::default();
        let (seen, source) = (Seen::default(), StopSource::new());
        start(work(&stored).split(), &source, &seen);
        let requester = thread::spawn(move || source.request_stop(StopReason::Requested));
        let handle = stored.lock().unwrap().take().expect("the work was started");
        let asked = handle.stop_requested();
        assert_eq!(seen.completed.get(), 0, "it waits for the work");
        handle.value(1);
        requester.join().unwrap();
        assert_eq!((seen.completed.get(), seen.values.get()), (1, 1));
        ASKED.here_if(asked);
        NOT_ASKED.here_if(!asked);
        empty_quarantine();
    });
    ASKED.assert("the work was asked to stop");
    NOT_ASKED.assert("the work completed first");
}

#[test]
fn the_last_consumer_stops_work_that_honours_it() {
    static IN_START: Reached = Reached::new();
    static AFTER: Reached = Reached::new();
    explore(3, || {
        let (seen, source) = (Seen::default(), StopSource::new());
        let requester = {
            let source = source.clone();
            thread::spawn(move || source.request_stop(StopReason::Requested))
        };
        start(never::<u32>().split(), &source, &seen);
        let in_start = seen.completed.get() == 1;
        requester.join().unwrap();
        assert_eq!((seen.completed.get(), seen.stopped.get()), (1, 1));
        IN_START.here_if(in_start);
        AFTER.here_if(!in_start);
        empty_quarantine();
    });
    IN_START.assert("it ended before its start returned");
    AFTER.assert("it ended later");
}
