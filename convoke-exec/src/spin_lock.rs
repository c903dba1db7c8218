//! A lock that is held for a few instructions, and given back by a single store: whoever sees it free may free the memory it
//! lies in, for the one who gave it back touches nothing afterwards. No foreign code runs while it is held.

use core::fmt;
use core::ops::{Deref, DerefMut};

use convoke_core::raw::sync::atomic::{AtomicBool, Ordering};
use convoke_core::raw::sync::{UnsafeCell, thread};

/// How often to look before one lets others run, one of whom may have the lock. A model always does.
const LOOKS: u32 = if cfg!(feature = "loom") { 0 } else { 64 };

pub(crate) struct SpinLock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time is at the value.
unsafe impl<T: Send> Sync for SpinLock<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for SpinLock<T> {}

/// The lock is held while this exists.
pub(crate) struct SpinGuard<'a, T> {
    lock: &'a SpinLock<T>,
}

impl<T> SpinLock<T> {
    #[cfg(not(feature = "loom"))]
    pub(crate) const fn new(value: T) -> Self {
        Self { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// As above; loom's atomics are not made at compile time.
    #[cfg(feature = "loom")]
    pub(crate) fn new(value: T) -> Self {
        Self { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    #[inline]
    pub(crate) fn lock(&self) -> SpinGuard<'_, T> {
        if !self.try_take() {
            self.wait();
        }
        SpinGuard { lock: self }
    }

    /// An exchange that writes only if it succeeds: a `swap` of one who comes too late is a write between that of the holder and
    /// his giving it back, and a model does not see which of them is the last.
    #[inline]
    fn try_take(&self) -> bool {
        self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn wait(&self) {
        let mut looks = 0;
        loop {
            while self.taken.load(Ordering::Relaxed) {
                looks += 1;
                if looks > LOOKS {
                    thread::yield_now();
                } else {
                    core::hint::spin_loop();
                }
            }
            if self.try_take() {
                return;
            }
        }
    }
}

impl<T> Deref for SpinGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: we hold the lock.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for SpinGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: we hold the lock, and `self` is borrowed for as long as the value is.
        self.lock.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for SpinGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.taken.store(false, Ordering::Release);
    }
}

impl<T> fmt::Debug for SpinLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpinLock").finish_non_exhaustive()
    }
}
