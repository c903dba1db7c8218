//! Where a task waits, for people who look: one word, written at every wait, read from any thread. It is the word that links
//! the task in a queue: what waits is in none.

#![allow(unsafe_code)]

use core::fmt;
use core::panic::Location;
use core::ptr;

use super::runnable::Header;
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::const_outside_models;

/// See the head of this file. A link has its lowest bit clear, a place has it set.
#[repr(transparent)]
pub struct Waits(AtomicPtr<Header>);

const PLACE: usize = 1;

const _: () = assert!(align_of::<Location<'static>>() > PLACE && align_of::<Header>() > PLACE);

impl Waits {
    const_outside_models! {
        /// It has not waited yet, and is not linked.
        #[inline]
        pub fn new() -> Self {
            Self(AtomicPtr::new(ptr::null_mut()))
        }
    }

    /// It waits there.
    #[inline]
    pub fn set(&self, place: &'static Location<'static>) {
        let place = ptr::from_ref(place).cast_mut().cast::<Header>();
        self.0.store(place.wrapping_byte_add(PLACE), Ordering::Relaxed);
    }

    /// Where it waits, or waited last, unless it was linked since.
    pub fn get(&self) -> Option<&'static Location<'static>> {
        let word = self.0.load(Ordering::Relaxed);
        let place = word.wrapping_byte_sub(PLACE).cast::<Location<'static>>();
        // SAFETY: with this bit only references that live for ever are stored.
        (word.addr() & PLACE != 0).then(|| unsafe { &*place })
    }

    /// It waits nowhere, and is not linked.
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

impl Default for Waits {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Waits").field(&self.get()).finish()
    }
}
