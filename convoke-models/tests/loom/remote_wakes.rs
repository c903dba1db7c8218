//! Remote wakes to an owner thread that is closing: each is processed once, by one thread at a time, and none
//! is lost.

#![allow(unsafe_code)]
use std::ptr::NonNull;

use crate::model::{Reached, explore};
use convoke_core::raw::sync::{Arc, UnsafeCell, thread};
use convoke_core::raw::{OwnerThread, RemoteWake};

/// A count that only the owner thread may change, without an atomic operation.
struct OwnerCount(UnsafeCell<usize>);

// SAFETY: only the owner thread accesses it; loom reports another access.
unsafe impl Sync for OwnerCount {}
// SAFETY: it is a number.
unsafe impl Send for OwnerCount {}

impl OwnerCount {
    fn add(&self) {
        // SAFETY: the caller is the owner thread, or keeps it out; loom reports another access.
        self.0.with_mut(|count| unsafe { *count += 1 });
    }

    /// # Safety
    /// `owned` points to an `OwnerCount`, and the calling thread owns it.
    unsafe fn process(owned: NonNull<()>) {
        // SAFETY: the caller promises that `owned` points to an `OwnerCount` that is alive.
        unsafe { owned.cast::<Self>().as_ref() }.add();
    }
}

/// Sends a remote wake to an owner whose executor refuses everything, as one that has ended does.
fn send(owner: &OwnerThread, owned: &OwnerCount) {
    let wake = RemoteWake::new(NonNull::from(owned).cast(), OwnerCount::process);
    // SAFETY: `owned` is alive until the model has ended.
    drop(unsafe { owner.send(wake) });
}

#[test]
fn remote_wakes_to_a_closing_owner_are_processed_once_and_one_at_a_time() {
    static BEFORE: Reached = Reached::new();
    static AFTER: Reached = Reached::new();
    explore(3, || {
        let (owner, owned) = (Arc::new(OwnerThread::new()), Arc::new(OwnerCount(UnsafeCell::new(0))));
        let senders = [(); 2].map(|()| {
            let (owner, owned) = (owner.clone(), owned.clone());
            thread::spawn(move || send(&owner, &owned))
        });
        // SAFETY: the owner is this thread, and no other thread enters it any more.
        let closing = unsafe { owner.close() };
        owned.add();
        drop(closing);
        {
            // Keeps other threads out for as long as it lives.
            let _others_out = OwnerThread::keep_out(owner.id().number());
            // SAFETY: `_others_out` keeps other threads out.
            let opened = owned.0.with(|count| unsafe { *count });
            if opened == 3 { BEFORE.here() } else { AFTER.here() }
        }
        for sender in senders {
            sender.join().unwrap();
        }
        // SAFETY: all other threads have been joined.
        assert_eq!(owned.0.with(|count| unsafe { *count }), 3, "each remote wake was processed once");
    });
    BEFORE.assert("the closing thread processed all");
    AFTER.assert("some came later");
}
