//! `RwLock`: shared or exclusive access to a value, which may be held across an await.

#![allow(unsafe_code)]

use core::fmt;
use core::mem;
use core::ops::{Deref, DerefMut};

use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::sync::const_outside_models;

use super::acquiring::acquiring;
use super::permits::{MOST, Permits};
use convoke_core::raw::Pause;

/// Number of permits. A reader takes one of them, a writer all.
const READERS: usize = MOST;

/// A lock for many readers or one writer, which may be held across an await.
///
/// The lock is granted in the order of the requests: a reader that comes after a waiting writer waits behind
/// it, so writers do not starve. A task that holds a read guard must not call `read` again: with a writer
/// waiting in between, both would wait for ever.
///
/// There is no poisoning; [`Mutex`](super::Mutex) explains what that means.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sync::RwLock;
///
/// let outcome = block_on(async {
///     let prices = RwLock::new(vec![3, 5]);
///     {
///         let (one, two) = (prices.read().await, prices.read().await);
///         assert_eq!(one[0] + two[1], 8);
///     }
///     prices.write().await.push(7);
///     prices.into_inner()
/// });
/// assert_eq!(outcome, Outcome::Value(vec![3, 5, 7]));
/// ```
pub struct RwLock<T: ?Sized> {
    /// Rule 1: a holder of at least one permit may read `value`. Rule 2: a holder of all permits may write
    /// it. A [`ReadGuard`] holds one permit, a [`WriteGuard`] all.
    permits: Permits,
    value: UnsafeCell<T>,
}

// SAFETY: rules 1 and 2. Readers on several threads share the value, so it must be `Sync`; a writer may move
// it out, so it must be `Send`.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

/// Guard of an [`RwLock`] for reading: releases the lock when dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct ReadGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
}

// SAFETY: the guard gives shared references to the value, which is `Sync`.
unsafe impl<T: ?Sized + Sync> Send for ReadGuard<'_, T> {}
// SAFETY: the guard gives shared references to the value, which is `Sync`.
unsafe impl<T: ?Sized + Sync> Sync for ReadGuard<'_, T> {}

/// Guard of an [`RwLock`] for writing: releases the lock when dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct WriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
}

// SAFETY: the guard gives exclusive access to the value, which is `Send`; after `downgrade` it is shared, and
// the value is `Sync`.
unsafe impl<T: ?Sized + Send + Sync> Send for WriteGuard<'_, T> {}
// SAFETY: a shared reference to the guard gives shared references to the value, which is `Sync`.
unsafe impl<T: ?Sized + Sync> Sync for WriteGuard<'_, T> {}

acquiring! {
    /// Future of [`RwLock::read`].
    pub struct Read<'a, T> { lock: &'a RwLock<T> } => ReadGuard<'a, T>
    |lock| ReadGuard { lock }
}

acquiring! {
    /// Future of [`RwLock::write`].
    pub struct Write<'a, T> { lock: &'a RwLock<T> } => WriteGuard<'a, T>
    |lock| WriteGuard { lock }
}

impl<T> RwLock<T> {
    const_outside_models! {
        /// Creates an unlocked lock.
        pub fn new(value: T) -> Self {
            Self { permits: Permits::new(READERS), value: UnsafeCell::new(value) }
        }
    }

    /// Consumes the lock and returns the value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits for shared access.
    ///
    /// - *Completes with* the guard, or as stopped if a stop was requested, even if the lock is free.
    /// - *If dropped*, it stops waiting. Access that it was already granted goes to the next waiter.
    /// - *Runs on* the calling task. It also works outside a task, but cannot be stopped there.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> Read<'_, T> {
        Read { acquire: self.permits.acquire(1, Pause::here()), lock: self }
    }

    /// Waits for exclusive access.
    ///
    /// - *Completes with*, *If dropped*, *Runs on*: as for [`read`](RwLock::read).
    #[inline]
    #[track_caller]
    pub fn write(&self) -> Write<'_, T> {
        Write { acquire: self.permits.acquire(READERS, Pause::here()), lock: self }
    }

    /// Takes shared access if there is no writer and no waiter.
    #[inline]
    pub fn try_read(&self) -> Option<ReadGuard<'_, T>> {
        self.permits.try_acquire(1).then(|| ReadGuard { lock: self })
    }

    /// Takes exclusive access if there is no reader, no writer and no waiter.
    #[inline]
    pub fn try_write(&self) -> Option<WriteGuard<'_, T>> {
        self.permits.try_acquire(READERS).then(|| WriteGuard { lock: self })
    }

    /// Returns the value without locking: `&mut self` proves that there is no guard.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<'a, T: ?Sized> WriteGuard<'a, T> {
    /// Turns exclusive access into shared access. No other writer gets the lock in between.
    pub fn downgrade(self) -> ReadGuard<'a, T> {
        let lock = self.lock;
        mem::forget(self);
        lock.permits.release(READERS - 1);
        ReadGuard { lock }
    }
}

impl<T: ?Sized> Deref for ReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: rule 1: the guard holds a permit.
        unsafe { &*self.lock.value.get_const() }
    }
}

impl<T: ?Sized> Deref for WriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: rule 1: the guard holds all permits.
        unsafe { &*self.lock.value.get_const() }
    }
}

impl<T: ?Sized> DerefMut for WriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: rule 2: the guard holds all permits, and is borrowed mutably for as long as the value is.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized> Drop for ReadGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.permits.release(1);
    }
}

impl<T: ?Sized> Drop for WriteGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.permits.release(READERS);
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_read() {
            Some(guard) => f.debug_struct("RwLock").field("value", &&*guard).finish(),
            None => f.debug_struct("RwLock").field("value", &format_args!("<locked>")).finish(),
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for ReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for WriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
