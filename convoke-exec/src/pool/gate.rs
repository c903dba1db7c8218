//! The way from a handle that is never counted to something that does not live for ever. Only shimmed atomics: it is
//! model-checked.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr;

use convoke_core::raw::sync::Arc;
use convoke_core::raw::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Leads to a value until it is closed. The gate itself is small and outlives all who refer to it, so that those need no count;
/// the value goes as soon as the gate is closed and nobody is inside.
///
/// 1. Who wants to use the value counts himself in, and looks whether the gate is closed. If it is he touches nothing and counts
///    himself out.
/// 2. Closing sets a bit in the word that counts. Whoever sees the bit and that nobody is inside, the one who closes or the last
///    one to leave, sets a second bit: one of them succeeds, and takes the value out.
pub struct Gate<T> {
    /// [`ENTERED`] for each who is inside, [`CLOSED`], [`EMPTIED`].
    word: AtomicUsize,
    /// An `Arc` of the value, until it is taken out.
    value: AtomicPtr<T>,
    /// Shared between threads as that is.
    _value: PhantomData<std::sync::Arc<T>>,
}

const CLOSED: usize = 1;
const EMPTIED: usize = 2;
const ENTERED: usize = 4;

/// Somebody is inside, and so the value is there.
#[derive(Debug)]
pub struct Inside<'a, T> {
    gate: &'a Gate<T>,
    value: &'a T,
}

impl<T> Gate<T> {
    /// An open gate that leads to this value.
    pub fn new(value: Arc<T>) -> Self {
        let value = AtomicPtr::new(Arc::into_raw(value).cast_mut());
        Self { word: AtomicUsize::new(0), value, _value: PhantomData }
    }

    /// Goes in; not if it is closed.
    #[inline]
    pub fn enter(&self) -> Option<Inside<'_, T>> {
        // Relaxed: who refers to the gate has seen what was done before it was made. Nothing is read of those who have closed it.
        if self.word.fetch_add(ENTERED, Ordering::Relaxed) & CLOSED != 0 {
            self.leave();
            return None;
        }
        // SAFETY: rule 1: the gate was open when we were counted, so the value is not taken out before we are counted out.
        let value = unsafe { &*self.value.load(Ordering::Relaxed) };
        Some(Inside { gate: self, value })
    }

    /// Closes it for good: nobody comes in from now on.
    pub fn close(&self) {
        if self.word.fetch_or(CLOSED, Ordering::AcqRel) / ENTERED == 0 {
            self.empty();
        }
    }

    #[inline]
    fn leave(&self) {
        // Release: whoever takes the value out comes after all that we have done with it.
        if self.word.fetch_sub(ENTERED, Ordering::AcqRel) == ENTERED | CLOSED {
            self.empty();
        }
    }

    /// Rule 2. Another who has come in meanwhile, to find it closed, does it when he leaves.
    #[cold]
    fn empty(&self) {
        let emptied =
            self.word.compare_exchange(CLOSED, CLOSED | EMPTIED, Ordering::AcqRel, Ordering::Relaxed);
        if emptied.is_ok() {
            let value = self.value.swap(ptr::null_mut(), Ordering::Relaxed);
            // SAFETY: the count is the one that `new` gave away. It is taken back once, as the bit is set once, and nobody
            // is inside, nor will be.
            drop(unsafe { Arc::from_raw(value.cast_const()) });
        }
    }
}

impl<T> Deref for Inside<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> Drop for Inside<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.gate.leave();
    }
}

impl<T> Drop for Gate<T> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<T> fmt::Debug for Gate<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}
