//! The wait site of a task, for diagnosis: one word, written at every wait, and read from any thread. It
//! shares the word with the link of the task in a queue, because a task that waits is in none.

#![allow(unsafe_code)]

use core::fmt;
use core::panic::Location;
use core::ptr;

use super::runnable::Header;
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::const_outside_models;

/// The wait site of a task, or its link in a queue. A link has the lowest bit clear, a wait site has it set.
#[repr(transparent)]
pub struct Waits(AtomicPtr<Header>);

const SITE: usize = 1;

const _: () = assert!(align_of::<Location<'static>>() > SITE && align_of::<Header>() > SITE);

impl Waits {
    const_outside_models! {
        /// Creates a word without a wait site or a link.
        #[inline]
        pub fn new() -> Self {
            Self(AtomicPtr::new(ptr::null_mut()))
        }
    }

    /// Records the wait site.
    #[inline]
    pub fn set(&self, site: &'static Location<'static>) {
        let site = ptr::from_ref(site).cast_mut().cast::<Header>();
        self.0.store(site.wrapping_byte_add(SITE), Ordering::Relaxed);
    }

    /// Returns the last wait site, unless the task was linked into a queue since.
    pub fn get(&self) -> Option<&'static Location<'static>> {
        let word = self.0.load(Ordering::Relaxed);
        let site = word.wrapping_byte_sub(SITE).cast::<Location<'static>>();
        // SAFETY: only `set` stores words with this bit, and it stores the address of a `'static` reference.
        (word.addr() & SITE != 0).then(|| unsafe { &*site })
    }

    /// Removes the wait site.
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
