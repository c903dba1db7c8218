//! Access to a value that can be dropped, through a reference that is never counted. Uses only shimmed
//! atomics, so that it is model-checked.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr;

use convoke_core::raw::sync::Arc;
use convoke_core::raw::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Gives access to a value until it is closed. The gate itself is small and outlives all references to it, so
/// these need no count. The value is dropped as soon as the gate is closed and no thread is inside.
///
/// 1. A thread that wants to use the value enters: it adds `ENTERED`, and checks `CLOSED`. If the gate is
///    closed it touches nothing and leaves.
/// 2. Closing sets `CLOSED`. A thread that sees this bit and no thread inside, the closer or the last one
///    to leave, tries to set `EMPTIED`. Exactly one succeeds, and drops the value.
pub struct PoolGate<T> {
    /// `ENTERED` for each thread inside, plus `CLOSED` and `EMPTIED`.
    word: AtomicUsize,
    /// The pointer of an `Arc`, until the value is dropped.
    value: AtomicPtr<T>,
    /// `Send` and `Sync` as an `Arc` of the value is.
    _value: PhantomData<std::sync::Arc<T>>,
}

const CLOSED: usize = 1;
const EMPTIED: usize = 2;
const ENTERED: usize = 4;

/// A thread is inside while this exists, so the value is alive.
#[derive(Debug)]
pub struct InsideGate<'a, T> {
    gate: &'a PoolGate<T>,
    value: &'a T,
}

impl<T> PoolGate<T> {
    /// Creates an open gate to this value.
    pub fn new(value: Arc<T>) -> Self {
        let value = AtomicPtr::new(Arc::into_raw(value).cast_mut());
        Self { word: AtomicUsize::new(0), value, _value: PhantomData }
    }

    /// Enters, unless the gate is closed.
    #[inline]
    pub fn enter(&self) -> Option<InsideGate<'_, T>> {
        // Relaxed: the thread that shared the gate with us has ordered its creation before this. Nothing is
        // read that the closer wrote.
        if self.word.fetch_add(ENTERED, Ordering::Relaxed) & CLOSED != 0 {
            self.leave();
            return None;
        }
        // SAFETY: rule 1: the gate was open when we were counted, so rule 2 keeps the value until we leave.
        let value = unsafe { &*self.value.load(Ordering::Relaxed) };
        Some(InsideGate { gate: self, value })
    }

    /// Closes the gate for good: every later `enter` fails.
    pub fn close(&self) {
        if self.word.fetch_or(CLOSED, Ordering::AcqRel) / ENTERED == 0 {
            self.empty();
        }
    }

    #[inline]
    fn leave(&self) {
        // Release: the drop of the value comes after all that we did with it.
        if self.word.fetch_sub(ENTERED, Ordering::AcqRel) == ENTERED | CLOSED {
            self.empty();
        }
    }

    /// Drops the value, as rule 2 says. If another thread has entered meanwhile, to find the gate closed,
    /// that thread does it when it leaves.
    #[cold]
    fn empty(&self) {
        let emptied =
            self.word.compare_exchange(CLOSED, CLOSED | EMPTIED, Ordering::AcqRel, Ordering::Relaxed);
        if emptied.is_ok() {
            let value = self.value.swap(ptr::null_mut(), Ordering::Relaxed);
            // SAFETY: the count is the one that `new` gave away. Rule 2: the bit is set once, so it is
            // taken back once, and no thread is inside or will be.
            drop(unsafe { Arc::from_raw(value.cast_const()) });
        }
    }
}

impl<T> Deref for InsideGate<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> Drop for InsideGate<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.gate.leave();
    }
}

impl<T> Drop for PoolGate<T> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<T> fmt::Debug for PoolGate<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolGate").finish_non_exhaustive()
    }
}
