//! Which source an event is for: the kernel is given a number when a source is registered, and says it with each event.
//!
//! A number is used again when its source has gone. An event that was under way then reaches the next one with that
//! number, which does no harm: it merely tries once in vain.
//!
//! 1. A source is not counted here: the last of its users takes it out, when he drops it, before anything of it goes.
//! 2. Whoever looks at a source here has the lock that the registry lies in; and so has he who takes it out. So it does not go
//!    while it is looked at.
//! 3. It may be about to be dropped when it is looked at: it is not `Unpin`, so that `drop` does not have it to itself.

#![allow(unsafe_code)]

use core::ptr::NonNull;
use std::sync::Arc;

/// All sources of a driver.
#[derive(Debug)]
pub struct Registry<T> {
    places: Vec<Option<NonNull<T>>>,
    /// Those without a source.
    free: Vec<u32>,
}

// SAFETY: it leads to sources that other threads use too.
unsafe impl<T: Send + Sync> Send for Registry<T> {}

/// A source that keeps the rules at the head of this file.
///
/// # Safety
/// It is not `Unpin`, and stays in the `Arc` it was made in. When it is dropped, before all else, it calls [`Registry::remove`] with
/// the number it was made with, under the lock that all users of the registry take.
pub unsafe trait Registered {}

impl<T: Registered> Registry<T> {
    /// Without sources.
    pub fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    /// Takes in the source that is made with this number.
    pub fn insert(&mut self, make: impl FnOnce(u32) -> Arc<T>) -> Arc<T> {
        let key = match self.free.pop() {
            Some(key) => key,
            None => {
                self.places.push(None);
                u32::try_from(self.places.len() - 1).expect("a system has fewer sockets than that")
            }
        };
        let source = make(key);
        self.places[key as usize] = Some(NonNull::from(&*source));
        source
    }

    /// The source with this number, if it is still there.
    #[inline]
    pub fn get(&self, key: usize) -> Option<&T> {
        let source = (*self.places.get(key)?)?;
        // SAFETY: rules 1 and 2: it is there until it was taken out, for which `self` is borrowed anew.
        Some(unsafe { source.as_ref() })
    }

    /// Takes it out.
    pub fn remove(&mut self, key: u32) {
        if self.places.get_mut(key as usize).and_then(Option::take).is_some() {
            self.free.push(key);
        }
    }

    /// All that are there.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        // SAFETY: as in `get`.
        self.places.iter().flatten().map(|source| unsafe { source.as_ref() })
    }
}

impl<T: Registered> Default for Registry<T> {
    fn default() -> Self {
        Self::new()
    }
}
