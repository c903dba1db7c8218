//! `Registry`: finds the source of an event. The kernel is given a key when a source is registered, and
//! returns it with each event.
//!
//! A key is reused after its source was removed. A late event may then reach the next source with that key.
//! This is harmless: one attempt fails.

#![allow(unsafe_code)]

use core::ptr::NonNull;
use std::sync::Arc;

/// All sources of a driver, by key.
///
/// 1. The registry does not count as a reference of a source. When the last `Arc` is dropped, the source
///    removes itself from the registry before any of its fields are dropped.
/// 2. Every access to a source through the registry, and its removal, happen under the lock that guards the
///    registry. So a source is not freed while it is accessed.
/// 3. A source may already be in its `drop` while it is accessed. It is not `Unpin`, so `drop` does not have
///    exclusive access.
#[derive(Debug)]
pub struct Registry<T> {
    slots: Vec<Option<NonNull<T>>>,
    /// The keys of the empty slots.
    free: Vec<u32>,
}

// SAFETY: it holds pointers to sources, which are `Send + Sync`, and rules 1 and 2 keep them valid on any
// thread.
unsafe impl<T: Send + Sync> Send for Registry<T> {}

/// A source that keeps the rules of [`Registry`].
///
/// # Safety
/// It is not `Unpin`, and stays in the `Arc` in which it was created. Its `drop`, before anything else, calls
/// [`Registry::remove`] with its key, under the lock that all users of the registry take.
pub unsafe trait Registered {}

impl<T: Registered> Registry<T> {
    /// Creates an empty registry.
    pub fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    /// Registers the source that `make` creates for a key.
    pub fn insert(&mut self, make: impl FnOnce(u32) -> Arc<T>) -> Arc<T> {
        let key = match self.free.pop() {
            Some(key) => key,
            None => {
                self.slots.push(None);
                u32::try_from(self.slots.len() - 1).expect("a process has fewer than 2^32 sockets")
            }
        };
        let source = make(key);
        self.slots[key as usize] = Some(NonNull::from(&*source));
        source
    }

    /// Returns the source with this key, if it is registered.
    #[inline]
    pub fn get(&self, key: usize) -> Option<&T> {
        self.slots.get(key)?.map(|source| self.registered(source))
    }

    /// Removes a source.
    pub fn remove(&mut self, key: u32) {
        if self.slots.get_mut(key as usize).and_then(Option::take).is_some() {
            self.free.push(key);
        }
    }

    /// Iterates over all sources.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten().map(|source| self.registered(*source))
    }

    /// Returns a source that is in the slots.
    #[inline]
    fn registered(&self, source: NonNull<T>) -> &T {
        // SAFETY: rules 1 and 2: a source in the slots is alive until it is removed, and `remove` needs
        // `&mut self`.
        unsafe { source.as_ref() }
    }
}

impl<T: Registered> Default for Registry<T> {
    fn default() -> Self {
        Self::new()
    }
}
