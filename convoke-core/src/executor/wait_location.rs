//! The wait location of a task, for diagnosis: one word, written at every wait, and read from any thread. It
//! shares the word with the link of the task in a queue, because a task that waits is in none.

#![allow(unsafe_code)]

use core::fmt;
use core::panic::Location;
use core::ptr;

use super::runnable::Header;
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::const_outside_models;

/// The wait location of a task, or its link in a queue. A link has the lowest bit clear, a wait location has
/// it set.
#[repr(transparent)]
pub struct WaitLocation(AtomicPtr<Header>);

const LOCATION: usize = 1;

const _: () = assert!(align_of::<Location<'static>>() > LOCATION && align_of::<Header>() > LOCATION);

impl WaitLocation {
    const_outside_models! {
        /// Creates a word without a wait location or a link.
        #[inline]
        pub fn new() -> Self {
            Self(AtomicPtr::new(ptr::null_mut()))
        }
    }

    /// Records the wait location.
    #[inline]
    pub fn set(&self, location: &'static Location<'static>) {
        let location = ptr::from_ref(location).cast_mut().cast::<Header>();
        self.0.store(location.wrapping_byte_add(LOCATION), Ordering::Relaxed);
    }

    /// Returns the last wait location, unless the task was linked into a queue since.
    pub fn get(&self) -> Option<&'static Location<'static>> {
        let word = self.0.load(Ordering::Relaxed);
        let location = word.wrapping_byte_sub(LOCATION).cast::<Location<'static>>();
        // SAFETY: only `set` stores words with this bit, and it stores the address of a `'static` reference.
        (word.addr() & LOCATION != 0).then(|| unsafe { &*location })
    }

    /// Removes the wait location.
    #[inline]
    pub fn clear(&self) {
        self.set_link(ptr::null_mut());
    }

    #[inline]
    pub(crate) fn link(&self) -> *mut Header {
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set_link(&self, next: *mut Header) {
        self.0.store(next, Ordering::Relaxed);
    }
}

impl Default for WaitLocation {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for WaitLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WaitLocation").field(&self.get()).finish()
    }
}
