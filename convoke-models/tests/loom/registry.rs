//! Models of the registry: the driver visits a source for which it has an event, while the last user of that
//! source drops it.

#![allow(unsafe_code)]
use core::marker::PhantomPinned;
use std::sync::Arc;

use crate::model::{Reached, explore};
use convoke_core::raw::sync::{Mutex, UnsafeCell, thread};
use convoke_poll::registry::{Registered, Registry};

type Sources = Arc<Mutex<Registry<Source>>>;

/// A source with a flag that is true until the source is dropped.
struct Source {
    sources: Sources,
    key: u32,
    there: UnsafeCell<bool>,
    _pinned: PhantomPinned,
}

// SAFETY: visitors read `there` under the lock, and the source writes it after it has removed itself under
// the lock.
unsafe impl Send for Source {}
// SAFETY: the same accesses to `there`, from several threads; loom checks them.
unsafe impl Sync for Source {}
// SAFETY: it stays in its `Arc`, is not `Unpin`, and removes itself under the lock.
unsafe impl Registered for Source {}

impl Drop for Source {
    fn drop(&mut self) {
        self.sources.lock().unwrap().remove(self.key);
        // SAFETY: it was removed from the registry above, so no visitor finds it any more.
        self.there.with_mut(|there| unsafe { *there = false });
    }
}

fn insert(sources: &Sources) -> Arc<Source> {
    sources.lock().unwrap().insert(|key| {
        let (sources, there) = (sources.clone(), UnsafeCell::new(true));
        Arc::new(Source { sources, key, there, _pinned: PhantomPinned })
    })
}

/// Handles an event for this key. Returns true if there is a source, which then must be intact.
fn look(sources: &Sources, key: u32) -> bool {
    let sources = sources.lock().unwrap();
    let Some(source) = sources.get(key as usize) else { return false };
    // SAFETY: we hold the lock, and the source is in the registry.
    assert!(source.there.with(|there| unsafe { *there }), "a source was looked at that had gone");
    true
}

#[test]
fn a_source_does_not_go_while_the_driver_looks_at_it() {
    static FOUND: Reached = Reached::new();
    static GONE: Reached = Reached::new();
    explore(3, || {
        let sources = Sources::default();
        let source = insert(&sources);
        let key = source.key;
        let driver = thread::spawn({
            let sources = sources.clone();
            move || look(&sources, key)
        });
        drop(source);
        let found = driver.join().unwrap();
        FOUND.here_if(found);
        GONE.here_if(!found);
    });
    FOUND.assert("the driver came before the source had gone");
    GONE.assert("the driver came when it had");
}

#[test]
fn an_event_of_one_that_has_gone_reaches_nobody_or_the_next_with_its_number() {
    static NEXT: Reached = Reached::new();
    static NOBODY: Reached = Reached::new();
    explore(2, || {
        let sources = Sources::default();
        let first = insert(&sources);
        let key = first.key;
        let driver = thread::spawn({
            let sources = sources.clone();
            move || (look(&sources, key), look(&sources, key))
        });
        drop(first);
        let next = insert(&sources);
        assert_eq!(next.key, key);
        let (_, found) = driver.join().unwrap();
        NEXT.here_if(found);
        NOBODY.here_if(!found);
        assert!(look(&sources, key));
    });
    NEXT.assert("the driver found a source with that number");
    NOBODY.assert("it found none");
}

#[test]
fn the_end_of_the_driver_finds_each_source_that_has_not_gone() {
    static BOTH: Reached = Reached::new();
    static ONE: Reached = Reached::new();
    explore(3, || {
        let sources = Sources::default();
        let (stays, goes) = (insert(&sources), insert(&sources));
        let user = thread::spawn(move || drop(goes));
        let found = {
            let sources = sources.lock().unwrap();
            // SAFETY: we hold the lock, and the source is in the registry.
            sources.iter().filter(|source| source.there.with(|there| unsafe { *there })).count()
        };
        user.join().unwrap();
        BOTH.here_if(found == 2);
        ONE.here_if(found == 1);
        assert!(look(&sources, stays.key));
    });
    BOTH.assert("both were found");
    ONE.assert("one had gone");
}
