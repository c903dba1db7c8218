//! `Semaphore`: a number of permits that tasks acquire in order.

use core::fmt;
use core::future::Future;
use std::sync::Arc;

use convoke_core::raw::sync::const_outside_models;
use convoke_core::raw::{DropOutOfLine, LastUse, OutOfLine};

use super::acquiring::acquiring;
use super::permits::{MOST, Permits};
use convoke_core::raw::Pause;

/// A number of permits. A task that wants one waits until one is free.
///
/// Permits are granted in the order of the requests. Nothing overtakes a waiter, not even
/// [`try_acquire`](Semaphore::try_acquire). A request for many permits is not starved by requests for few:
/// they wait behind it.
///
/// Without contention, acquiring is one compare-exchange and releasing one atomic addition. Nothing
/// allocates.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sync::Semaphore;
/// use std::sync::Arc;
///
/// let connections = Arc::new(Semaphore::new(2));
/// let outcome = block_on(async move {
///     scope(async |s| {
///         for _ in 0..10 {
///             let connections = connections.clone();
///             s.spawn(async move {
///                 let _permit = connections.acquire().await;
///                 checkpoint().await;
///             });
///         }
///     })
///     .await;
///     connections.available()
/// });
/// assert_eq!(outcome, Outcome::Value(2));
/// ```
#[derive(Debug)]
pub struct Semaphore {
    permits: Permits,
}

/// Permits of a [`Semaphore`], released when this is dropped.
#[derive(Debug)]
#[must_use = "the permits are released when this is dropped"]
pub struct Permit<'a> {
    semaphore: &'a Semaphore,
    permits: usize,
}

/// Permits of a [`Semaphore`] without a lifetime: it owns a reference count of the semaphore.
#[must_use = "the permits are released when this is dropped"]
pub struct OwnedPermit {
    held: OutOfLine<Held>,
}

/// The permits of an [`OwnedPermit`].
struct Held {
    semaphore: Arc<Semaphore>,
    permits: usize,
}

acquiring! {
    /// Future of [`Semaphore::acquire`] and [`Semaphore::acquire_many`].
    pub struct AcquirePermits<'a> { semaphore: &'a Semaphore, permits: usize } => Permit<'a>
    |semaphore, permits| Permit { semaphore, permits }
}

impl Semaphore {
    /// Largest number of permits of a semaphore.
    pub const MOST: usize = MOST;

    const_outside_models! {
        /// Creates a semaphore with `permits` free permits.
        ///
        /// # Panics
        /// If `permits` is more than [`MOST`](Semaphore::MOST).
        #[track_caller]
        pub fn new(permits: usize) -> Self {
            Self { permits: Permits::new(permits) }
        }
    }

    /// Waits for a permit.
    ///
    /// - *Completes with* the permit, or as stopped if a stop was requested, even if a permit is free.
    /// - *If dropped*, it stops waiting. A permit that it was already granted goes to the next waiter.
    /// - *Runs on* the calling task. It also works outside a task, but cannot be stopped there.
    #[inline]
    #[track_caller]
    pub fn acquire(&self) -> AcquirePermits<'_> {
        self.acquire_many(1)
    }

    /// Waits for `permits` permits at once.
    ///
    /// - *Completes with*, *If dropped*, *Runs on*: as for [`acquire`](Semaphore::acquire).
    /// - *Panics* if `permits` is more than [`MOST`](Semaphore::MOST): it would wait for ever.
    #[inline]
    #[track_caller]
    pub fn acquire_many(&self, permits: usize) -> AcquirePermits<'_> {
        assert!(permits <= MOST, "a semaphore can have at most `Semaphore::MOST` permits");
        AcquirePermits { acquire: self.permits.acquire(permits, Pause::here()), semaphore: self, permits }
    }

    /// Waits for a permit that owns a reference count of the semaphore, so that it can be moved into a child.
    ///
    /// - *Completes with*, *If dropped*, *Runs on*: as for [`acquire`](Semaphore::acquire).
    #[track_caller]
    pub fn acquire_owned(self: &Arc<Self>) -> impl Future<Output = OwnedPermit> + Send + use<> {
        self.acquire_many_owned(1)
    }

    /// Waits for `permits` permits at once, which own a reference count of the semaphore.
    ///
    /// - *Completes with*, *If dropped*, *Runs on*, *Panics*: as for
    ///   [`acquire_many`](Semaphore::acquire_many).
    #[track_caller]
    pub fn acquire_many_owned(
        self: &Arc<Self>,
        permits: usize,
    ) -> impl Future<Output = OwnedPermit> + Send + use<> {
        assert!(permits <= MOST, "a semaphore can have at most `Semaphore::MOST` permits");
        let (semaphore, pause) = (self.clone(), Pause::here());
        async move {
            semaphore.permits.acquire(permits, pause).await;
            OwnedPermit::new(semaphore, permits)
        }
    }

    /// Takes a permit if one is free and no task waits.
    #[inline]
    pub fn try_acquire(&self) -> Option<Permit<'_>> {
        self.try_acquire_many(1)
    }

    /// Takes `permits` permits if they are free and no task waits.
    #[inline]
    pub fn try_acquire_many(&self, permits: usize) -> Option<Permit<'_>> {
        self.permits.try_acquire(permits).then(|| Permit { semaphore: self, permits })
    }

    /// Takes `permits` permits if they are free and no task waits. They own a reference count of the
    /// semaphore.
    pub fn try_acquire_many_owned(self: &Arc<Self>, permits: usize) -> Option<OwnedPermit> {
        self.permits.try_acquire(permits).then(|| OwnedPermit::new(self.clone(), permits))
    }

    /// Adds new permits. Held permits do not count towards the maximum: when they are released there are at most
    /// [`MOST`](Semaphore::MOST).
    ///
    /// # Panics
    /// If the number of free permits would exceed [`MOST`](Semaphore::MOST).
    #[track_caller]
    pub fn add_permits(&self, permits: usize) {
        self.permits.add(permits);
    }

    /// Returns the number of free permits at this moment.
    pub fn available(&self) -> usize {
        self.permits.available()
    }
}

impl Permit<'_> {
    /// Returns the number of permits in this guard.
    pub fn count(&self) -> usize {
        self.permits
    }

    /// Removes the permits from the semaphore for good.
    pub fn forget(mut self) {
        self.permits = 0;
    }
}

impl OwnedPermit {
    fn new(semaphore: Arc<Semaphore>, permits: usize) -> Self {
        Self { held: OutOfLine::new(Held { semaphore, permits }) }
    }

    /// Returns the number of permits in this guard.
    pub fn count(&self) -> usize {
        self.held.permits
    }

    /// Removes the permits from the semaphore for good.
    pub fn forget(mut self) {
        self.held.permits = 0;
    }
}

impl fmt::Debug for OwnedPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Held { semaphore, permits } = &*self.held;
        f.debug_struct("OwnedPermit").field("semaphore", semaphore).field("permits", permits).finish()
    }
}

impl Drop for Permit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.semaphore.permits.release(self.permits);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.semaphore.permits.release(self.permits);
    }
}

impl DropOutOfLine for Held {
    #[inline(never)]
    fn drop_out_of_line(held: LastUse<'_, Self>) {
        held.drop_here();
    }
}
