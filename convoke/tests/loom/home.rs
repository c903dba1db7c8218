//! Letters to a home that is being closed: each is opened once, by one thread at a time, and none is left behind.

#![allow(unsafe_code)]
use std::ptr::NonNull;

use crate::model::{Reached, explore};
use convoke_core::raw::sync::{Arc, UnsafeCell, thread};
use convoke_core::raw::{OwnerThread, RemoteWake};

/// What belongs to whoever is inside of the home: a count, changed without an atomic operation.
struct Inside(UnsafeCell<usize>);

// SAFETY: it is touched from inside of its home alone; the model sees if it is not.
unsafe impl Sync for Inside {}
// SAFETY: a number.
unsafe impl Send for Inside {}

impl Inside {
    fn add(&self) {
        // SAFETY: the caller is inside.
        self.0.with_mut(|count| unsafe { *count += 1 });
    }

    /// # Safety
    /// `inside` is one, and the thread is at home.
    unsafe fn open(inside: NonNull<()>) {
        // SAFETY: what is asked of the caller.
        unsafe { inside.cast::<Self>().as_ref() }.add();
    }
}

/// Sends a letter to a home whose executor refuses everything, as one that has ended does.
fn send(home: &OwnerThread, inside: &Inside) {
    let letter = RemoteWake::new(NonNull::from(inside).cast(), Inside::open);
    // SAFETY: what it leads to is there until the model has ended.
    drop(unsafe { home.send(letter) });
}

#[test]
fn letters_that_meet_a_home_being_closed_are_opened_once_and_one_at_a_time() {
    static BEFORE: Reached = Reached::new();
    static AFTER: Reached = Reached::new();
    explore(3, || {
        let (home, inside) = (Arc::new(OwnerThread::new()), Arc::new(Inside(UnsafeCell::new(0))));
        let senders = [(); 2].map(|()| {
            let (home, inside) = (home.clone(), inside.clone());
            thread::spawn(move || send(&home, &inside))
        });
        // SAFETY: it is this thread's, and nobody enters it any more.
        let closing = unsafe { home.close() };
        inside.add();
        drop(closing);
        {
            // Nobody else is there for as long as this lives.
            let _others_out = OwnerThread::keep_out(home.id().number());
            // SAFETY: see above.
            let opened = inside.0.with(|count| unsafe { *count });
            if opened == 3 { BEFORE.here() } else { AFTER.here() }
        }
        for sender in senders {
            sender.join().unwrap();
        }
        // SAFETY: nobody is left.
        assert_eq!(inside.0.with(|count| unsafe { *count }), 3, "each letter was opened once");
    });
    BEFORE.assert("all were opened by who has closed it");
    AFTER.assert("some came later");
}
