//! A lock that is held for a few instructions, and given back by a single store: whoever sees it free may free the memory it
//! lies in, for the one who gave it back touches nothing afterwards. No foreign code runs while it is held.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

use crate::sync::UnsafeCell;

/// The flag lies before the value: who takes the lock then has the line with the value's first fields.
#[repr(C)]
pub struct SpinLock<T> {
    flag: Flag,
    value: UnsafeCell<T>,
}

/// Whether it is taken.
#[cfg(not(feature = "loom"))]
mod flag {
    use std::thread;
    use std::time::Duration;

    use crate::sync::atomic::{AtomicBool, Ordering};

    /// How often to look before one lets others run, one of whom may have the lock.
    const LOOKS: u32 = 64;
    /// How often to let others run before one sleeps: who has the lock may have been set aside by a thread of our rank.
    const YIELDS: u32 = 64;
    const NAP: Duration = Duration::from_micros(50);

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
            let mut looks = 0;
            loop {
                // Looked at before it is exchanged again: a look leaves the line with who has the lock.
                while self.0.load(Ordering::Relaxed) {
                    looks += 1;
                    if looks > LOOKS + YIELDS {
                        thread::sleep(NAP);
                    } else if looks > LOOKS {
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
        pub(super) fn give_back(&self) {
            self.0.store(false, Ordering::Release);
        }
    }
}

/// Its twin for models: who waits sleeps. A model that spins explores nothing but spinning, and never ends.
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
            let mut taken = self.taken.lock().expect("nobody panics with it");
            while *taken {
                taken = self.free.wait(taken).expect("nobody panics with it");
            }
            *taken = true;
        }

        pub(super) fn give_back(&self) {
            let mut taken = self.taken.lock().expect("nobody panics with it");
            *taken = false;
            self.free.notify_one();
        }
    }
}
use flag::Flag;

// SAFETY: one thread at a time is at the value.
unsafe impl<T: Send> Sync for SpinLock<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for SpinLock<T> {}

/// The lock is held while this exists.
pub struct SpinGuard<'a, T> {
    /// Not a reference: as soon as the lock is given back, another thread may free it, while the function that the guard was
    /// passed to is still executing.
    lock: NonNull<SpinLock<T>>,
    _value: PhantomData<&'a mut T>,
}

// SAFETY: a shared guard gives out shared references to the value, and nothing else.
unsafe impl<T: Sync> Sync for SpinGuard<'_, T> {}

impl<T> SpinLock<T> {
    /// One that nobody holds.
    #[cfg(not(feature = "loom"))]
    pub const fn new(value: T) -> Self {
        Self { flag: Flag::new(), value: UnsafeCell::new(value) }
    }

    /// As above; loom's atomics are not made at compile time.
    #[cfg(feature = "loom")]
    pub fn new(value: T) -> Self {
        Self { flag: Flag::new(), value: UnsafeCell::new(value) }
    }

    /// Takes it.
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
        // SAFETY: the lock is there until it is given back, and we hold it.
        unsafe { self.lock.as_ref().value.with(|value| &*value) }
    }
}

impl<T> DerefMut for SpinGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is there until it is given back, and we hold it; `self` is borrowed for as long as the value is.
        unsafe { self.lock.as_ref().value.with_mut(|value| &mut *value) }
    }
}

impl<T> Drop for SpinGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the lock is there until it is given back, which is done now, with one store.
        unsafe { self.lock.as_ref() }.flag.give_back();
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
