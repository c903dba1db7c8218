//! `Mutex`: one at a time at a value, also across an await.

#![allow(unsafe_code)]

use core::fmt;
use core::future::Future;
use core::ops::{Deref, DerefMut};
use std::sync::Arc;

use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::sync::const_outside_models;

use super::acquiring::acquiring;
use super::permits::Permits;
use convoke_core::raw::Pause;

/// A value that one at a time has, for as long as it likes: also while it awaits. Where nothing is awaited under the
/// lock, the one of `std` is the better one.
///
/// It is handed on in order: nobody overtakes who waits, not even with [`try_lock`](Mutex::try_lock). Without waiting,
/// locking is one compare-exchange and unlocking one addition. Nothing here allocates.
///
/// There is no poisoning: if whoever has the lock panics or is stopped, the guard is dropped like any other value, and
/// the next one finds the value as it was left. Do in one piece, between two awaits, what must not be seen half done.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sync::Mutex;
/// use std::sync::Arc;
///
/// let log = Arc::new(Mutex::new(Vec::new()));
/// let outcome = block_on(async move {
///     scope(async |s| {
///         for n in 0..3 {
///             let log = log.clone();
///             s.spawn(async move {
///                 let mut log = log.lock().await;
///                 log.push(n);
///                 checkpoint().await;
///                 log.push(n);
///             });
///         }
///     })
///     .await;
///     Arc::into_inner(log).unwrap().into_inner()
/// });
/// assert_eq!(outcome, Outcome::Value(vec![0, 0, 1, 1, 2, 2]));
/// ```
pub struct Mutex<T: ?Sized> {
    /// One.
    permits: Permits,
    value: UnsafeCell<T>,
}

// SAFETY: whoever has the permit is alone at the value.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}
// The value goes where the mutex goes, and needs no more for that: `Send` follows by itself.

/// The lock of a [`Mutex`] is held while this exists.
#[must_use = "the lock is given back when this is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
}

// SAFETY: it can go wherever the value can: the lock is not bound to a thread.
unsafe impl<T: ?Sized + Send> Send for MutexGuard<'_, T> {}
// SAFETY: by shared reference it gives shared references to the value.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

/// As [`MutexGuard`], for as long as one likes: it keeps the mutex.
#[must_use = "the lock is given back when this is dropped"]
pub struct OwnedMutexGuard<T: ?Sized> {
    mutex: Arc<Mutex<T>>,
}

// SAFETY: as above; it also keeps the mutex, which is `Send` and `Sync` if the value is `Send`.
unsafe impl<T: ?Sized + Send> Send for OwnedMutexGuard<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for OwnedMutexGuard<T> {}

acquiring! {
    /// See [`Mutex::lock`].
    pub struct Lock<'a, T> { mutex: &'a Mutex<T> } => MutexGuard<'a, T>
    |mutex| MutexGuard { mutex }
}

impl<T> Mutex<T> {
    const_outside_models! {
        /// A mutex around this value.
        pub fn new(value: T) -> Self {
            Self { permits: Permits::new(1), value: UnsafeCell::new(value) }
        }
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock.
    ///
    /// - *Completes with* the guard, or stopped: also if the lock is free, when a stop was asked for.
    /// - *If dropped*, it does not wait any more; a lock that it was handed goes to the next.
    /// - *Runs on* the task; outside a task it waits as well, and cannot be stopped.
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> Lock<'_, T> {
        Lock { acquire: self.permits.acquire(1, Pause::here()), mutex: self }
    }

    /// As [`lock`](Mutex::lock), with a guard that keeps the mutex.
    #[track_caller]
    pub fn lock_owned(self: &Arc<Self>) -> impl Future<Output = OwnedMutexGuard<T>> + use<T> {
        let (mutex, pause) = (self.clone(), Pause::here());
        async move {
            mutex.permits.acquire(1, pause).await;
            OwnedMutexGuard { mutex }
        }
    }

    /// The lock, if it is free and nobody waits.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.permits.try_acquire(1).then(|| MutexGuard { mutex: self })
    }

    /// The lock with a guard that keeps the mutex, if it is free and nobody waits.
    pub fn try_lock_owned(self: &Arc<Self>) -> Option<OwnedMutexGuard<T>> {
        self.permits.try_acquire(1).then(|| OwnedMutexGuard { mutex: self.clone() })
    }

    /// The value, without locking: nobody else can have it.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: we have the permit.
        unsafe { &*self.mutex.value.get_const() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: we have the permit, and are borrowed for as long as the value is.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.permits.release(1);
    }
}

impl<T: ?Sized> Deref for OwnedMutexGuard<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: we have the permit.
        unsafe { &*self.mutex.value.get_const() }
    }
}

impl<T: ?Sized> DerefMut for OwnedMutexGuard<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: we have the permit, and are borrowed for as long as the value is.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for OwnedMutexGuard<T> {
    fn drop(&mut self) {
        self.mutex.permits.release(1);
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(guard) => f.debug_struct("Mutex").field("value", &&*guard).finish(),
            None => f.debug_struct("Mutex").field("value", &format_args!("<locked>")).finish(),
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for OwnedMutexGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
