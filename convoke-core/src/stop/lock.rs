//! The lock of a stop state. It is held for a few instructions and never while foreign code runs, so it knows no poison
//! and costs one exchange to take and one to give back; who has to wait spins a little and then sleeps.
//!
//! 1. `word` says who has it: nobody, somebody, or somebody while others may sleep. Whoever moves it from `FREE` owns the
//!    value until he moves it back.
//! 2. Who wants to sleep holds a mutex from his last look until the condition variable takes it over; who wakes takes
//!    it once in between. So no call to wake is lost. The order is `word`, `changing`, `asleep`: nobody waits for one
//!    while he holds a later one. (One mutex for both would not do: giving back the lock, on the way to sleep until a
//!    change, may have to wake somebody.)
//! 3. `give_back` touches the lock after it is free: the owner of the lock keeps it alive until the guard is gone.

#![allow(unsafe_code)]

use core::fmt;
use core::hint;
use core::ops::{Deref, DerefMut};

use crate::sync::atomic::{AtomicU8, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard, UnsafeCell};

const FREE: u8 = 0;
const TAKEN: u8 = 1;
/// Taken, and others may sleep: whoever gives it back wakes one.
const WANTED: u8 = 2;

/// How often to look before going to sleep. A model looks once: to spin is to wait for nothing there.
const SPINS: u32 = if cfg!(feature = "loom") { 1 } else { 100 };

/// A value for one thread at a time.
pub(super) struct Lock<T> {
    word: AtomicU8,
    value: UnsafeCell<T>,
    asleep: Mutex<()>,
    freed: Condvar,
    changing: Mutex<()>,
    changed: Condvar,
}

// SAFETY: rule 1: one thread at a time is at the value.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The lock is held while this exists.
pub(super) struct Guard<'a, T> {
    lock: &'a Lock<T>,
}

impl<T> Lock<T> {
    pub(super) fn new(value: T) -> Self {
        Self {
            word: AtomicU8::new(FREE),
            value: UnsafeCell::new(value),
            asleep: Mutex::new(()),
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
        // Not `then_some`: a guard that is made is a guard that gives the lock back.
        self.try_take().then(|| Guard { lock: self })
    }

    #[inline]
    fn try_take(&self) -> bool {
        self.word.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn wait_until_free(&self) {
        for _ in 0..SPINS {
            // Looked at before it is exchanged: a look leaves the line with its owner.
            match self.word.load(Ordering::Relaxed) {
                FREE if self.try_take() => return,
                WANTED => break,
                _ => hint::spin_loop(),
            }
        }
        let mut asleep = hold(&self.asleep);
        // Whoever has slept does not know whether others still do, and so leaves it `WANTED`.
        while self.word.swap(WANTED, Ordering::Acquire) != FREE {
            asleep = self.freed.wait(asleep).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    #[inline]
    fn give_back(&self) {
        if self.word.swap(FREE, Ordering::Release) == WANTED {
            self.wake_one();
        }
    }

    #[cold]
    fn wake_one(&self) {
        drop(hold(&self.asleep));
        self.freed.notify_one();
    }
}

fn hold(mutex: &Mutex<()>) -> MutexGuard<'_, ()> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl<T> Guard<'_, T> {
    /// Where the value is, for pointers that are kept in it.
    #[inline]
    pub(super) fn as_ptr(&self) -> *mut T {
        self.lock.value.with_mut(|value| value)
    }

    /// Gives the lock back, sleeps until somebody says [`changed`](Guard::changed), and takes the lock again.
    /// May wake for no reason.
    pub(super) fn wait_for_change(self) -> Self {
        let lock = self.lock;
        let changing = hold(&lock.changing);
        drop(self);
        drop(lock.changed.wait(changing));
        lock.lock()
    }

    /// Wakes all that wait for a change.
    pub(super) fn changed(&self) {
        drop(hold(&self.lock.changing));
        self.lock.changed.notify_all();
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: rule 1: we hold the lock.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: rule 1: we hold the lock, and `self` is borrowed for as long as the value is.
        self.lock.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.give_back();
    }
}

impl<T> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").finish_non_exhaustive()
    }
}
