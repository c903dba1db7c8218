//! The rendezvous of a future and the operation it awaits, in all interleavings: the outcome is taken or
//! destroyed once, with exclusive access; the waker is used by one thread at a time; and no wake is lost.

#![allow(unsafe_code)]

use crate::model::{Count, Reached, explore};
use convoke_core::raw::sync::{Arc, UnsafeCell, thread};
use convoke_core::raw::{Abandon, Complete, Peek, Rendezvous, Wait};

/// The shared state of the two, with cells that reveal conflicting accesses.
#[derive(Default)]
struct Model {
    rendezvous: Rendezvous,
    /// Written by the operation, then taken.
    outcome: UnsafeCell<Option<u32>>,
    /// The number of the stored waker.
    waker: UnsafeCell<Option<u32>>,
    /// The number of calls of each waker.
    called: [Count; 3],
    taken: Count,
}

// SAFETY: loom reports conflicting accesses to the cells.
unsafe impl Sync for Model {}
// SAFETY: the cells contain numbers.
unsafe impl Send for Model {}

impl Model {
    fn put_waker(&self, number: u32) {
        // SAFETY: loom reports a simultaneous access.
        self.waker.with_mut(|waker| unsafe { *waker = Some(number) });
    }

    /// Takes the outcome and the waker: the caller has exclusive access.
    fn take(&self) -> u32 {
        self.taken.add();
        // SAFETY: loom reports a simultaneous access.
        self.waker.with_mut(|waker| unsafe { *waker = None });
        // SAFETY: loom reports a simultaneous access.
        self.outcome.with_mut(|outcome| unsafe { (*outcome).take() }).expect("taken once")
    }

    /// Completes the operation.
    fn complete(&self) -> Complete {
        // SAFETY: loom reports a simultaneous access.
        self.outcome.with_mut(|outcome| unsafe { *outcome = Some(7) });
        let complete = self.rendezvous.complete();
        match complete {
            Complete::Leave => {}
            Complete::Wake => {
                // SAFETY: loom reports a simultaneous access.
                let waker = self.waker.with_mut(|waker| unsafe { (*waker).take() });
                let called = &self.called[waker.expect("a waker is in place") as usize];
                // The count is cloned first, because `left` may let the future free the state.
                let called = called.clone();
                self.rendezvous.left();
                thread::yield_now();
                called.add();
            }
            Complete::Free => _ = self.take(),
        }
        complete
    }
}

fn completer(model: &Arc<Model>) -> thread::JoinHandle<Complete> {
    let model = model.clone();
    thread::spawn(move || model.complete())
}

#[test]
fn the_operation_completes_while_the_future_begins_to_wait() {
    static AT_ONCE: Reached = Reached::new();
    static WHILE_WAITING_BEGAN: Reached = Reached::new();
    static WOKEN: Reached = Reached::new();
    explore(5, || {
        let model = Arc::new(Model::default());
        let completer = completer(&model);
        thread::yield_now();
        let at_once = model.rendezvous.completed_at_once();
        let mut wait = None;
        if !at_once {
            model.put_waker(0);
            wait = Some(model.rendezvous.wait());
        }
        if wait != Some(Wait::Wait) {
            assert_eq!(model.take(), 7);
        }
        let complete = completer.join().unwrap();
        if wait == Some(Wait::Wait) {
            assert_eq!((complete, model.called[0].get()), (Complete::Wake, 1), "a wake-up was lost");
            assert_eq!(model.rendezvous.peek(), Peek::Done);
            assert_eq!(model.take(), 7);
        }
        AT_ONCE.here_if(at_once);
        WHILE_WAITING_BEGAN.here_if(wait == Some(Wait::Done));
        WOKEN.here_if(wait == Some(Wait::Wait));
    });
    AT_ONCE.assert("it had completed");
    WHILE_WAITING_BEGAN.assert("it completed when the waker was put in place");
    WOKEN.assert("it called the waker");
}

#[test]
fn the_operation_completes_while_the_future_looks_again() {
    static NOT_YET: Reached = Reached::new();
    static DONE: Reached = Reached::new();
    static WHILE_LEAVING: Reached = Reached::new();
    explore(5, || {
        let model = Arc::new(Model::default());
        model.put_waker(0);
        assert_eq!(model.rendezvous.wait(), Wait::Wait);
        let completer = completer(&model);
        thread::yield_now();
        let look = model.rendezvous.peek();
        if look == Peek::Done {
            let called = model.called[0].get() == 1;
            assert_eq!(model.take(), 7);
            WHILE_LEAVING.here_if(!called);
            DONE.here();
        }
        assert_eq!(completer.join().unwrap(), Complete::Wake);
        assert_eq!(model.called[0].get(), 1);
        if look == Peek::NotYet {
            NOT_YET.here();
            assert_eq!(model.rendezvous.peek(), Peek::Done);
            assert_eq!(model.take(), 7);
        }
    });
    NOT_YET.assert("it was too early");
    DONE.assert("it was there");
    WHILE_LEAVING.assert("the operation had not called the waker yet");
}

#[test]
fn the_operation_completes_while_the_waker_is_changed() {
    static FIRST: Reached = Reached::new();
    static SECOND: Reached = Reached::new();
    static TOO_LATE: Reached = Reached::new();
    explore(4, || {
        let model = Arc::new(Model::default());
        model.put_waker(0);
        assert_eq!(model.rendezvous.wait(), Wait::Wait);
        let completer = completer(&model);
        let change = model.rendezvous.change();
        if change == Peek::NotYet {
            model.put_waker(1);
            model.rendezvous.changed();
        } else {
            assert_eq!(model.take(), 7);
        }
        assert_eq!(completer.join().unwrap(), Complete::Wake);
        let called = [model.called[0].get(), model.called[1].get()];
        if change == Peek::NotYet {
            assert_eq!(called, [0, 1], "the waker that was put in place last is called");
            assert_eq!(model.rendezvous.peek(), Peek::Done);
            assert_eq!(model.take(), 7);
        }
        FIRST.here_if(called == [1, 0]);
        SECOND.here_if(called == [0, 1]);
        TOO_LATE.here_if(change == Peek::Done);
    });
    FIRST.assert("the first waker was called");
    SECOND.assert("the second waker was called");
    TOO_LATE.assert("it was too late to change");
}

#[test]
fn the_operation_completes_while_the_future_is_dropped() {
    static BY_THE_FUTURE: Reached = Reached::new();
    static BY_THE_OPERATION: Reached = Reached::new();
    for waits in [true, false] {
        explore(5, move || {
            let model = Arc::new(Model::default());
            if waits {
                model.put_waker(0);
                assert_eq!(model.rendezvous.wait(), Wait::Wait);
            }
            let completer = completer(&model);
            let abandon = model.rendezvous.abandon();
            if abandon == Abandon::Free {
                assert_eq!(model.take(), 7);
            }
            let complete = completer.join().unwrap();
            assert_eq!(model.taken.get(), 1, "destroyed once");
            assert_eq!(complete == Complete::Free, abandon == Abandon::Leave);
            BY_THE_FUTURE.here_if(abandon == Abandon::Free);
            BY_THE_OPERATION.here_if(abandon == Abandon::Leave);
        });
    }
    BY_THE_FUTURE.assert("the operation had completed");
    BY_THE_OPERATION.assert("the operation found nobody");
}

#[test]
fn the_waker_is_changed_and_the_future_dropped_while_the_operation_completes() {
    static CHANGED_AND_LEFT: Reached = Reached::new();
    static CHANGED_AND_FREED: Reached = Reached::new();
    explore(4, || {
        let model = Arc::new(Model::default());
        model.put_waker(0);
        assert_eq!(model.rendezvous.wait(), Wait::Wait);
        let completer = completer(&model);
        if model.rendezvous.change() == Peek::NotYet {
            model.put_waker(1);
            model.rendezvous.changed();
            match model.rendezvous.abandon() {
                Abandon::Leave => CHANGED_AND_LEFT.here(),
                Abandon::Free => {
                    CHANGED_AND_FREED.here();
                    assert_eq!(model.take(), 7);
                }
            }
        } else {
            assert_eq!(model.take(), 7);
        }
        completer.join().unwrap();
        assert_eq!(model.taken.get(), 1);
    });
    CHANGED_AND_LEFT.assert("the operation found nobody");
    CHANGED_AND_FREED.assert("the operation completed in between");
}
