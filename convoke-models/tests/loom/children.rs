//! Children that arrive on several threads, against stop requests: the parent finishes exactly once, and is
//! not touched after that.

#![allow(unsafe_code)]

use std::pin::pin;
use std::ptr::NonNull;

use crate::model::{Count, Reached, empty_quarantine, end, explore};
use convoke_core::raw::sync::{UnsafeCell, thread};
use convoke_core::raw::{InPlaceStop, OnStop, RawCallback};
use convoke_core::{StopReason, StopSource};
use convoke_sender::raw::Children;

/// An operation with children, ended by `finish` as a receiver would.
struct Parent {
    children: Children,
    /// Every child reads it before it arrives, and `finish` writes it. Loom reports a race if one does not
    /// see the other.
    storage: UnsafeCell<u32>,
    stop: Option<NonNull<InPlaceStop>>,
    above: StopSource,
    seen: Seen,
}

/// The counters that the test checks after the parent is gone.
#[derive(Clone, Default)]
struct Seen {
    finished: Count,
    in_the_request: Count,
    found_all_arrived: Count,
    asked_to_stop: Count,
}

/// The address of the parent, as its children have it.
#[derive(Clone, Copy)]
struct ParentRef(NonNull<Parent>);

// SAFETY: `Children` keeps the parent alive until all children have arrived.
unsafe impl Send for ParentRef {}

impl ParentRef {
    /// Creates a parent whose children are linked to `above` but not started. The caller owns the count of
    /// `start`.
    fn new(children: usize, above: &StopSource, seen: &Seen) -> Self {
        let parent = Box::new(Parent {
            children: Children::new(children),
            storage: UnsafeCell::new(0),
            stop: None,
            above: above.clone(),
            seen: seen.clone(),
        });
        let parent = NonNull::from(Box::leak(parent));
        let token = above.token();
        // SAFETY: no other thread knows the parent yet; it does not move; the parent and the test keep
        // `above` alive.
        unsafe {
            let stop = (*parent.as_ptr()).children.arm(token.as_ref(), parent.cast(), finish);
            (*parent.as_ptr()).stop = Some(stop);
            (*parent.as_ptr()).children.link(token.as_ref());
        }
        Self(parent)
    }

    /// Reports that a child has ended.
    fn arrive(self) {
        // SAFETY: the caller owns a count, and gives it up here, so the parent is alive until then.
        unsafe {
            (*self.0.as_ptr()).storage.with(|value| assert_eq!(*value, 0));
            Children::arrive(NonNull::from(&(*self.0.as_ptr()).children), self.0.cast(), finish);
        }
    }

    /// Fails: requests the others to stop, and arrives.
    fn fail(self) {
        // SAFETY: the caller owns a count, so the parent is alive.
        unsafe { (*self.0.as_ptr()).children.request_stop(StopReason::Sibling) };
        self.arrive();
    }

    /// Registers a stop callback, drops it, and arrives.
    fn listen_and_arrive(self, told: &Count) {
        struct Tell(Count);
        impl OnStop for Tell {
            fn on_stop(self, _: StopReason) {
                self.0.add();
            }
        }
        {
            let callback = pin!(RawCallback::new(Tell(told.clone())));
            // SAFETY: the callback is pinned, and dropped before the count is given up, which keeps the
            // source alive.
            unsafe {
                let stop = (*self.0.as_ptr()).stop.unwrap();
                callback.as_ref().register(stop.as_ref().token());
            }
        }
        self.arrive();
    }
}

/// # Safety
/// Called by `Children` when all children have arrived.
unsafe fn finish(parent: NonNull<()>) {
    let parent = parent.cast::<Parent>();
    // SAFETY: all children have arrived, so the parent is ours. `end` detects a later use.
    unsafe {
        let this = parent.as_ref();
        this.storage.with_mut(|value| *value += 1);
        assert_eq!(this.seen.finished.add(), 0, "finished twice");
        let asked = this.stop.unwrap().as_ref().token().stop_requested();
        if asked {
            this.seen.asked_to_stop.add();
        } else if this.above.stop_requested() {
            this.seen.found_all_arrived.add();
        }
        end(parent.as_ptr());
    }
}

#[test]
fn two_children_arrive_while_the_parent_is_asked_to_stop() {
    static BY_THE_REQUEST: Reached = Reached::new();
    static BY_A_CHILD: Reached = Reached::new();
    static ASKED: Reached = Reached::new();
    static FOUND_ALL_ARRIVED: Reached = Reached::new();
    static TOO_LATE: Reached = Reached::new();
    explore(3, || {
        let (above, seen) = (StopSource::new(), Seen::default());
        let parent = ParentRef::new(2, &above, &seen);
        let children = [thread::spawn(move || parent.arrive()), thread::spawn(move || parent.arrive())];
        parent.arrive();
        let before = seen.finished.get();
        above.request_stop(StopReason::Requested);
        let after = seen.finished.get();
        for child in children {
            child.join().unwrap();
        }
        assert_eq!(seen.finished.get(), 1);
        BY_THE_REQUEST.here_if(before == 0 && after == 1 && seen.asked_to_stop.get() == 1);
        BY_A_CHILD.here_if(after == 0);
        ASKED.here_if(seen.asked_to_stop.get() == 1);
        FOUND_ALL_ARRIVED.here_if(seen.found_all_arrived.get() == 1);
        TOO_LATE.here_if(before == 1);
        empty_quarantine();
    });
    BY_THE_REQUEST.assert("it finished while the request ran");
    BY_A_CHILD.assert("it finished after the request");
    ASKED.assert("the children were asked to stop");
    FOUND_ALL_ARRIVED.assert("all children had arrived at the request, but the parent not yet finished");
    TOO_LATE.assert("the request came after the parent had finished");
}

#[test]
fn a_request_from_another_thread_is_the_last_to_hold_the_parent() {
    static BY_THE_REQUEST: Reached = Reached::new();
    static BY_THE_CHILD: Reached = Reached::new();
    static BY_START: Reached = Reached::new();
    explore(3, || {
        let (above, seen) = (StopSource::new(), Seen::default());
        let parent = ParentRef::new(1, &above, &seen);
        let request = {
            let (above, seen) = (above.clone(), seen.clone());
            thread::spawn(move || {
                let before = seen.finished.get();
                above.request_stop(StopReason::Requested);
                if before == 0 && seen.finished.get() == 1 {
                    seen.in_the_request.add();
                }
            })
        };
        let child = thread::spawn(move || parent.arrive());
        let before = seen.finished.get();
        parent.arrive();
        BY_START.here_if(before == 0 && seen.finished.get() == 1);
        BY_THE_CHILD.here_if(seen.finished.get() == 0);
        request.join().unwrap();
        child.join().unwrap();
        assert_eq!(seen.finished.get(), 1);
        BY_THE_REQUEST.here_if(seen.in_the_request.get() == 1);
        empty_quarantine();
    });
    BY_THE_REQUEST.assert("it finished while the request ran");
    BY_THE_CHILD.assert("it finished after start");
    BY_START.assert("it finished in start");
}

#[test]
fn a_child_fails_while_another_listens() {
    static TOLD: Reached = Reached::new();
    static NOT_TOLD: Reached = Reached::new();
    explore(3, || {
        let (above, seen) = (StopSource::new(), Seen::default());
        let parent = ParentRef::new(2, &above, &seen);
        let told = Count::default();
        let failing = thread::spawn(move || parent.fail());
        let listening = {
            let told = told.clone();
            thread::spawn(move || parent.listen_and_arrive(&told))
        };
        parent.arrive();
        failing.join().unwrap();
        listening.join().unwrap();
        assert_eq!((seen.finished.get(), seen.asked_to_stop.get()), (1, 1));
        assert!(!above.stop_requested(), "a request never goes up");
        TOLD.here_if(told.get() == 1);
        NOT_TOLD.here_if(told.get() == 0);
        empty_quarantine();
    });
    TOLD.assert("the other was told");
    NOT_TOLD.assert("the other had arrived");
}

#[test]
fn a_child_fails_while_the_parent_is_asked_to_stop() {
    static TOLD: Reached = Reached::new();
    static NOT_TOLD: Reached = Reached::new();
    static FOUND_ALL_ARRIVED: Reached = Reached::new();
    explore(2, || {
        let (above, seen) = (StopSource::new(), Seen::default());
        let parent = ParentRef::new(2, &above, &seen);
        let told = Count::default();
        let failing = thread::spawn(move || parent.fail());
        let listening = {
            let told = told.clone();
            thread::spawn(move || parent.listen_and_arrive(&told))
        };
        parent.arrive();
        let before = seen.finished.get();
        above.request_stop(StopReason::Shutdown);
        failing.join().unwrap();
        listening.join().unwrap();
        assert_eq!((seen.finished.get(), seen.asked_to_stop.get()), (1, 1));
        assert!(told.get() <= 1);
        TOLD.here_if(told.get() == 1);
        NOT_TOLD.here_if(told.get() == 0);
        FOUND_ALL_ARRIVED.here_if(before == 1);
        empty_quarantine();
    });
    TOLD.assert("the other was told");
    NOT_TOLD.assert("the other had arrived");
    FOUND_ALL_ARRIVED.assert("the parent's request came too late");
}

#[test]
fn a_parent_that_was_stopped_before_the_start_stops_its_children() {
    static TOLD: Reached = Reached::new();
    explore(3, || {
        let (above, seen) = (StopSource::new(), Seen::default());
        above.request_stop(StopReason::Requested);
        let parent = ParentRef::new(1, &above, &seen);
        let told = Count::default();
        let child = {
            let told = told.clone();
            thread::spawn(move || parent.listen_and_arrive(&told))
        };
        parent.arrive();
        child.join().unwrap();
        assert_eq!((seen.finished.get(), seen.asked_to_stop.get(), told.get()), (1, 1, 1));
        TOLD.here();
        empty_quarantine();
    });
    TOLD.assert("the child was told");
}
