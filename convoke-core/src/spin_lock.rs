//! A lock that is held for a few instructions and released by a single store. A thread that finds it free may
//! free the memory that it lies in, because the releasing thread does not touch it afterwards. No foreign
//! code runs while it is held.
//!
//! 1. The value belongs to the thread that set the flag, until that thread clears it.
//! 2. Clearing the flag is the last access of the holder to the lock.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

use crate::sync::UnsafeCell;

/// A spin lock. The flag lies before the value: taking the lock loads the cache line of the value's first
/// fields.
#[repr(C)]
pub struct SpinLock<T> {
    flag: Flag,
    value: UnsafeCell<T>,
}

/// The flag that says whether the lock is taken.
#[cfg(not(feature = "loom"))]
mod flag {
    use std::thread;
    use std::time::Duration;

    use crate::sync::atomic::{AtomicBool, Ordering};

    /// The number of checks of the flag before yielding to other threads, one of which may hold the lock.
    const SPINS: u32 = 64;
    /// The number of yields before sleeping: a holder of lower priority may not run while we only yield.
    const YIELDS: u32 = 64;
    const SLEEP: Duration = Duration::from_micros(50);

    pub(super) struct Flag(AtomicBool);

    impl Flag {
        pub(super) const fn new() -> Self {
            Self(AtomicBool::new(false))
        }

        #[inline]
        pub(super) fn take(&self) {
            if self.0.swap(true, Ordering::Acquire) {
                self.wait();
            }
        }

        #[cold]
        fn wait(&self) {
            let mut checks = 0;
            loop {
                // Loads before it exchanges again: a load leaves the cache line with the holder.
                while self.0.load(Ordering::Relaxed) {
                    checks += 1;
                    if checks > SPINS + YIELDS {
                        thread::sleep(SLEEP);
                    } else if checks > SPINS {
                        thread::yield_now();
                    } else {
                        core::hint::spin_loop();
                    }
                }
                if !self.0.swap(true, Ordering::Acquire) {
                    return;
                }
            }
        }

        #[inline]
        pub(super) fn release(&self) {
            self.0.store(false, Ordering::Release);
        }
    }
}

/// The flag in models: waiters block. A model that spins explores nothing but spinning, and never ends.
#[cfg(feature = "loom")]
mod flag {
    use crate::sync::{Condvar, Mutex};

    pub(super) struct Flag {
        taken: Mutex<bool>,
        free: Condvar,
    }

    impl Flag {
        pub(super) fn new() -> Self {
            Self { taken: Mutex::new(false), free: Condvar::new() }
        }

        pub(super) fn take(&self) {
            let mut taken = self.taken.lock().expect("no thread panics while it holds the mutex");
            while *taken {
                taken = self.free.wait(taken).expect("no thread panics while it holds the mutex");
            }
            *taken = true;
        }

        pub(super) fn release(&self) {
            let mut taken = self.taken.lock().expect("no thread panics while it holds the mutex");
            *taken = false;
            self.free.notify_one();
        }
    }
}
use flag::Flag;

// SAFETY: rule 1: one thread at a time accesses the value, and the value may be sent to it.
unsafe impl<T: Send> Sync for SpinLock<T> {}
// SAFETY: the lock owns the value, which is `Send`; the flag is not bound to a thread.
unsafe impl<T: Send> Send for SpinLock<T> {}

/// Proof that the lock is held. Dropping it releases the lock.
pub struct SpinGuard<'a, T> {
    /// A pointer instead of a reference: as soon as the lock is released another thread may free it (rule 2),
    /// while the function that the guard was passed to is still executing.
    lock: NonNull<SpinLock<T>>,
    _value: PhantomData<&'a mut T>,
}

// SAFETY: a shared guard gives out only shared references to the value, which is `Sync`.
unsafe impl<T: Sync> Sync for SpinGuard<'_, T> {}

impl<T> SpinLock<T> {
    /// Creates a lock that is free.
    #[cfg(not(feature = "loom"))]
    pub const fn new(value: T) -> Self {
        Self { flag: Flag::new(), value: UnsafeCell::new(value) }
    }

    /// Creates a lock that is free. Not `const`: loom's atomics are not made at compile time.
    #[cfg(feature = "loom")]
    pub fn new(value: T) -> Self {
        Self { flag: Flag::new(), value: UnsafeCell::new(value) }
    }

    /// Takes the lock. Spins, then yields, then sleeps until it is free.
    #[inline]
    pub fn lock(&self) -> SpinGuard<'_, T> {
        self.flag.take();
        SpinGuard { lock: NonNull::from(self), _value: PhantomData }
    }
}

impl<T> Deref for SpinGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: rule 1: `lock` set the flag for this guard, and only dropping the guard clears it.
        unsafe { self.lock.as_ref().value.with(|value| &*value) }
    }
}

impl<T> DerefMut for SpinGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: rule 1, as `lock` set the flag for this guard; `self` is borrowed for as long as the value
        // is.
        unsafe { self.lock.as_ref().value.with_mut(|value| &mut *value) }
    }
}

impl<T> Drop for SpinGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: rule 2: the lock exists until the flag is cleared, which this single store does.
        unsafe { self.lock.as_ref() }.flag.release();
    }
}

impl<T> fmt::Debug for SpinLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpinLock").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for SpinGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SpinGuard")
    }
}
