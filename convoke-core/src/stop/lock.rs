//! The lock of a stop state. It is held for a few instructions and never while foreign code runs. So it has
//! no poison, and costs one exchange to take and one to release. A thread that has to wait spins briefly and
//! then blocks.
//!
//! 1. `word` says whether the lock is free, taken, or taken with blocked waiters. The thread that moves it
//!    from `FREE` owns the value until it moves the word back.
//! 2. A thread that is about to block holds a mutex from its last check of the word until the condition
//!    variable takes the mutex over. A thread that wakes it acquires that mutex in between. So no wake-up is
//!    lost. The lock order is `word`, `changing`, `blocked`: no thread waits for one of them while it holds a
//!    later one. (One mutex for both would not do: releasing the lock, on the way to block until a change,
//!    may have to wake a waiter.)
//! 3. `release` accesses the lock after it is free: the owner of the lock keeps it alive until the guard is
//!    dropped.

#![allow(unsafe_code)]

use core::fmt;
use core::hint;
use core::ops::{Deref, DerefMut};

use crate::sync::atomic::{AtomicU8, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard, UnsafeCell};

const FREE: u8 = 0;
const TAKEN: u8 = 1;
/// Taken, and there may be blocked waiters: the thread that releases it wakes one.
const WANTED: u8 = 2;

/// The number of checks of the word before blocking. One in a model, where spinning explores nothing.
const SPINS: u32 = if cfg!(feature = "loom") { 1 } else { 100 };

/// A value that one thread at a time may access.
pub(super) struct Lock<T> {
    word: AtomicU8,
    value: UnsafeCell<T>,
    blocked: Mutex<()>,
    freed: Condvar,
    changing: Mutex<()>,
    changed: Condvar,
}

// SAFETY: rule 1: one thread at a time accesses the value, and the value may be sent to it.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Proof that the lock is held. Dropping it releases the lock.
pub(super) struct Guard<'a, T> {
    lock: &'a Lock<T>,
}

impl<T> Lock<T> {
    pub(super) fn new(value: T) -> Self {
        Self {
            word: AtomicU8::new(FREE),
            value: UnsafeCell::new(value),
            blocked: Mutex::new(()),
            freed: Condvar::new(),
            changing: Mutex::new(()),
            changed: Condvar::new(),
        }
    }

    /// Takes the lock.
    #[inline]
    pub(super) fn lock(&self) -> Guard<'_, T> {
        if !self.try_take() {
            self.wait_until_free();
        }
        Guard { lock: self }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub(super) fn try_lock(&self) -> Option<Guard<'_, T>> {
        // Not `then_some`: that would create a guard in any case, and dropping it would release the lock.
        self.try_take().then(|| Guard { lock: self })
    }

    #[inline]
    fn try_take(&self) -> bool {
        self.word.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn wait_until_free(&self) {
        for _ in 0..SPINS {
            // Loads before it exchanges: a load leaves the cache line with the holder.
            match self.word.load(Ordering::Relaxed) {
                FREE if self.try_take() => return,
                WANTED => break,
                _ => hint::spin_loop(),
            }
        }
        let mut blocked = acquire(&self.blocked);
        // A thread that has been blocked does not know whether others still are, and so leaves the word
        // `WANTED`.
        while self.word.swap(WANTED, Ordering::Acquire) != FREE {
            blocked = self.freed.wait(blocked).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    #[inline]
    fn release(&self) {
        if self.word.swap(FREE, Ordering::Release) == WANTED {
            self.wake_one();
        }
    }

    #[cold]
    fn wake_one(&self) {
        drop(acquire(&self.blocked));
        self.freed.notify_one();
    }
}

fn acquire(mutex: &Mutex<()>) -> MutexGuard<'_, ()> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl<T> Guard<'_, T> {
    /// Releases the lock, blocks until [`changed`](Guard::changed) is called, and takes the lock again. May
    /// return without a change.
    pub(super) fn wait_for_change(self) -> Self {
        let lock = self.lock;
        let changing = acquire(&lock.changing);
        drop(self);
        drop(lock.changed.wait(changing));
        lock.lock()
    }

    /// Wakes all threads that wait for a change.
    pub(super) fn changed(&self) {
        drop(acquire(&self.lock.changing));
        self.lock.changed.notify_all();
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: rule 1: this guard holds the lock.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: rule 1: this guard holds the lock, and `self` is borrowed for as long as the value is.
        self.lock.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.release();
    }
}

impl<T> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").finish_non_exhaustive()
    }
}
