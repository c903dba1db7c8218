//! `RwLock`: many readers or one writer at a value, also across an await.

#![allow(unsafe_code)]

use core::fmt;
use core::mem;
use core::ops::{Deref, DerefMut};

use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::sync::const_outside_models;

use super::acquiring::acquiring;
use super::permits::{MOST, Permits};
use convoke_core::raw::Pause;

/// How many can read at a time. A writer takes all of their permits.
const READERS: usize = MOST;

/// A value that many read or one writes, also while they await.
///
/// It is handed out in order: a reader that comes after a waiting writer waits behind it, so that writers are not
/// starved. Who reads already must therefore not ask to read again, or both wait for each other with the writer in
/// between.
///
/// There is no poisoning; see [`Mutex`](super::Mutex).
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
    permits: Permits,
    value: UnsafeCell<T>,
}

// SAFETY: those with a permit only read, and who has all permits is alone. Readers on several threads need `Sync`.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

/// The value of an [`RwLock`] is read while this exists.
#[must_use = "the lock is given back when this is dropped"]
pub struct ReadGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
}

// SAFETY: it gives shared references to the value, on any thread.
unsafe impl<T: ?Sized + Sync> Send for ReadGuard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync> Sync for ReadGuard<'_, T> {}

/// The value of an [`RwLock`] is this one's alone while it exists.
#[must_use = "the lock is given back when this is dropped"]
pub struct WriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
}

// SAFETY: it goes wherever the value can; by `downgrade` it becomes a shared reference to it there.
unsafe impl<T: ?Sized + Send + Sync> Send for WriteGuard<'_, T> {}
// SAFETY: by shared reference it gives shared references to the value.
unsafe impl<T: ?Sized + Sync> Sync for WriteGuard<'_, T> {}

acquiring! {
    /// See [`RwLock::read`].
    pub struct Read<'a, T> { lock: &'a RwLock<T> } => ReadGuard<'a, T>
    |lock| ReadGuard { lock }
}

acquiring! {
    /// See [`RwLock::write`].
    pub struct Write<'a, T> { lock: &'a RwLock<T> } => WriteGuard<'a, T>
    |lock| WriteGuard { lock }
}

impl<T> RwLock<T> {
    const_outside_models! {
        /// A lock around this value.
        pub fn new(value: T) -> Self {
            Self { permits: Permits::new(READERS), value: UnsafeCell::new(value) }
        }
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until it may read.
    ///
    /// - *Completes with* the guard, or stopped: also if it would not have to wait, when a stop was asked for.
    /// - *If dropped*, it does not wait any more; what it was handed goes to the next.
    /// - *Runs on* the task; outside a task it waits as well, and cannot be stopped.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> Read<'_, T> {
        Read { acquire: self.permits.acquire(1, Pause::here()), lock: self }
    }

    /// Waits until it may write.
    ///
    /// - *Completes with*, *If dropped*, *Runs on*: as [`read`](RwLock::read).
    #[inline]
    #[track_caller]
    pub fn write(&self) -> Write<'_, T> {
        Write { acquire: self.permits.acquire(READERS, Pause::here()), lock: self }
    }

    /// Reads, if nobody writes or waits.
    #[inline]
    pub fn try_read(&self) -> Option<ReadGuard<'_, T>> {
        self.permits.try_acquire(1).then(|| ReadGuard { lock: self })
    }

    /// Writes, if nobody reads, writes or waits.
    #[inline]
    pub fn try_write(&self) -> Option<WriteGuard<'_, T>> {
        self.permits.try_acquire(READERS).then(|| WriteGuard { lock: self })
    }

    /// The value, without locking: nobody else can have it.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<'a, T: ?Sized> WriteGuard<'a, T> {
    /// From now on it only reads, and lets others read. No writer comes in between.
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
        // SAFETY: we have a permit: nobody has all of them.
        unsafe { &*self.lock.value.get_const() }
    }
}

impl<T: ?Sized> Deref for WriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: we have all permits.
        unsafe { &*self.lock.value.get_const() }
    }
}

impl<T: ?Sized> DerefMut for WriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: we have all permits, and are borrowed for as long as the value is.
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
