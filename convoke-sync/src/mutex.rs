//! `Mutex`: exclusive access to a value, which may be held across an await.

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

/// A lock that may be held across an await. If nothing is awaited under the lock, use `std::sync::Mutex`
/// instead.
///
/// The lock is granted in the order of the requests. Nothing overtakes a waiter, not even
/// [`try_lock`](Mutex::try_lock). Without contention, locking is one compare-exchange and unlocking one
/// atomic addition. Nothing allocates.
///
/// There is no poisoning: if a task panics or is stopped while it holds the lock, the guard is dropped like
/// any other value, and the next holder finds the value as it was left. Make changes that must not be seen
/// half done between two awaits.
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
    /// The one permit. Rule 1: only the holder of the permit touches `value`, and a guard holds it.
    permits: Permits,
    value: UnsafeCell<T>,
}

// SAFETY: rule 1: only one thread at a time has the permit, and the permit passes on with acquire and
// release.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}
// `Send` is derived: the value moves with the mutex.

/// A mutex whose permit the guard around this holds: rule 1. `M` leads to the mutex.
struct Held<M>(M);

impl<T: ?Sized, M: Deref<Target = Mutex<T>>> Deref for Held<M> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: rule 1: the guard that this is in holds the permit until it is dropped.
        unsafe { &*self.0.value.get_const() }
    }
}

impl<T: ?Sized, M: Deref<Target = Mutex<T>>> DerefMut for Held<M> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: rule 1: the guard that this is in holds the permit, and is borrowed mutably for as long as
        // the value is.
        unsafe { &mut *self.0.value.get() }
    }
}

/// Guard of a [`Mutex`]: holds the lock, and releases it when dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    held: Held<&'a Mutex<T>>,
}

// SAFETY: the guard gives access to the value, which is `Send`; the permit is not bound to a thread.
unsafe impl<T: ?Sized + Send> Send for MutexGuard<'_, T> {}
// SAFETY: a shared reference to the guard gives shared references to the value, which is `Sync`.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

/// Guard of a [`Mutex`] without a lifetime: it owns a reference count of the mutex.
#[must_use = "the lock is released when the guard is dropped"]
pub struct OwnedMutexGuard<T: ?Sized> {
    held: Held<Arc<Mutex<T>>>,
}

// SAFETY: the guard gives access to the value, which is `Send`, and `Arc<Mutex<T>>` is `Send` if `T` is.
unsafe impl<T: ?Sized + Send> Send for OwnedMutexGuard<T> {}
// SAFETY: a shared reference to the guard gives shared references to the value, which is `Sync`.
unsafe impl<T: ?Sized + Send + Sync> Sync for OwnedMutexGuard<T> {}

acquiring! {
    /// Future of [`Mutex::lock`].
    pub struct Lock<'a, T> { mutex: &'a Mutex<T> } => MutexGuard<'a, T>
    |mutex| MutexGuard { held: Held(mutex) }
}

impl<T> Mutex<T> {
    const_outside_models! {
        /// Creates an unlocked mutex.
        pub fn new(value: T) -> Self {
            Self { permits: Permits::new(1), value: UnsafeCell::new(value) }
        }
    }

    /// Consumes the mutex and returns the value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock.
    ///
    /// - *Completes with* the guard, or as stopped if a stop was requested, even if the lock is free.
    /// - *If dropped*, it stops waiting. A lock that it was already granted goes to the next waiter.
    /// - *Runs on* the calling task. It also works outside a task, but cannot be stopped there.
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> Lock<'_, T> {
        Lock { acquire: self.permits.acquire(1, Pause::here()), mutex: self }
    }

    /// Waits for the lock and returns a guard that owns a reference count of the mutex.
    ///
    /// - *Completes with*, *If dropped*, *Runs on*: as for [`lock`](Mutex::lock).
    #[track_caller]
    pub fn lock_owned(self: &Arc<Self>) -> impl Future<Output = OwnedMutexGuard<T>> + use<T> {
        let (mutex, pause) = (self.clone(), Pause::here());
        async move {
            mutex.permits.acquire(1, pause).await;
            OwnedMutexGuard { held: Held(mutex) }
        }
    }

    /// Takes the lock if it is free and no task waits for it.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.permits.try_acquire(1).then(|| MutexGuard { held: Held(self) })
    }

    /// Takes the lock if it is free and no task waits for it. The guard owns a reference count of the mutex.
    pub fn try_lock_owned(self: &Arc<Self>) -> Option<OwnedMutexGuard<T>> {
        self.permits.try_acquire(1).then(|| OwnedMutexGuard { held: Held(self.clone()) })
    }

    /// Returns the value without locking: `&mut self` proves that there is no guard.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.held
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.held
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.held.0.permits.release(1);
    }
}

impl<T: ?Sized> Deref for OwnedMutexGuard<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.held
    }
}

impl<T: ?Sized> DerefMut for OwnedMutexGuard<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.held
    }
}

impl<T: ?Sized> Drop for OwnedMutexGuard<T> {
    fn drop(&mut self) {
        self.held.0.permits.release(1);
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
