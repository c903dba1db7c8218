//! `Semaphore`: so many at a time, in order.

use core::future::Future;
use std::sync::Arc;

use convoke_core::raw::sync::const_outside_models;

use super::acquiring::acquiring;
use super::pause::Pause;
use super::permits::{MOST, Permits};

/// A number of permits: who wants one waits until one is free.
///
/// Permits are handed out in order: nobody overtakes who waits, not even with [`try_acquire`](Semaphore::try_acquire).
/// Who asks for many at once is not starved by those who ask for few; they wait behind it.
///
/// Without waiting, acquiring is one compare-exchange and giving back one addition. Nothing here allocates.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sync::Semaphore;
/// use std::sync::Arc;
///
/// let connections = Arc::new(Semaphore::new(2));
/// let outcome = sync_wait(task(async move {
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
/// }));
/// assert_eq!(outcome, Outcome::Value(2));
/// ```
#[derive(Debug)]
pub struct Semaphore {
    permits: Permits,
}

/// Permits of a [`Semaphore`], given back when this is dropped.
#[derive(Debug)]
#[must_use = "the permits are given back when this is dropped"]
pub struct Permit<'a> {
    semaphore: &'a Semaphore,
    permits: usize,
}

/// As [`Permit`], for as long as one likes: it keeps the semaphore.
#[derive(Debug)]
#[must_use = "the permits are given back when this is dropped"]
pub struct OwnedPermit {
    semaphore: Arc<Semaphore>,
    permits: usize,
}

acquiring! {
    /// See [`Semaphore::acquire`].
    pub struct AcquirePermits<'a> { semaphore: &'a Semaphore, permits: usize } => Permit<'a>
    |semaphore, permits| Permit { semaphore, permits }
}

impl Semaphore {
    /// How many permits a semaphore can have.
    pub const MOST: usize = MOST;

    const_outside_models! {
        /// A semaphore with so many permits, none of them taken.
        ///
        /// # Panics
        /// If they are more than [`MOST`](Semaphore::MOST).
        #[track_caller]
        pub fn new(permits: usize) -> Self {
            Self { permits: Permits::new(permits) }
        }
    }

    /// Waits for a permit.
    ///
    /// - *Completes with* the permit, or stopped: also if there is one, when a stop was asked for.
    /// - *If dropped*, it does not wait any more; a permit that it was handed goes to the next.
    /// - *Runs on* the task; outside a task it waits as well, and cannot be stopped.
    #[inline]
    #[track_caller]
    pub fn acquire(&self) -> AcquirePermits<'_> {
        self.acquire_many(1)
    }

    /// Waits for so many permits at once.
    ///
    /// - *Completes with*, *If dropped*, *Runs on*: as [`acquire`](Semaphore::acquire).
    /// - *Panics* if they are more than [`MOST`](Semaphore::MOST), for which one would wait for ever.
    #[inline]
    #[track_caller]
    pub fn acquire_many(&self, permits: usize) -> AcquirePermits<'_> {
        assert!(permits <= MOST, "more permits than there can be");
        AcquirePermits { acquire: self.permits.acquire(permits, Pause::here()), semaphore: self, permits }
    }

    /// As [`acquire`](Semaphore::acquire), with a permit that keeps the semaphore: to be given to a child.
    #[track_caller]
    pub fn acquire_owned(self: &Arc<Self>) -> impl Future<Output = OwnedPermit> + Send + use<> {
        self.acquire_many_owned(1)
    }

    /// As [`acquire_many`](Semaphore::acquire_many), with permits that keep the semaphore.
    #[track_caller]
    pub fn acquire_many_owned(
        self: &Arc<Self>,
        permits: usize,
    ) -> impl Future<Output = OwnedPermit> + Send + use<> {
        assert!(permits <= MOST, "more permits than there can be");
        let (semaphore, pause) = (self.clone(), Pause::here());
        async move {
            semaphore.permits.acquire(permits, pause).await;
            OwnedPermit { semaphore, permits }
        }
    }

    /// A permit, if one is free and nobody waits.
    #[inline]
    pub fn try_acquire(&self) -> Option<Permit<'_>> {
        self.try_acquire_many(1)
    }

    /// So many permits, if they are free and nobody waits.
    #[inline]
    pub fn try_acquire_many(&self, permits: usize) -> Option<Permit<'_>> {
        self.permits.try_acquire(permits).then(|| Permit { semaphore: self, permits })
    }

    /// So many permits that keep the semaphore, if they are free and nobody waits.
    pub fn try_acquire_many_owned(self: &Arc<Self>, permits: usize) -> Option<OwnedPermit> {
        self.permits.try_acquire(permits).then(|| OwnedPermit { semaphore: self.clone(), permits })
    }

    /// Adds permits for good. What is held does not count: when it comes back there are [`MOST`](Semaphore::MOST) at the most.
    ///
    /// # Panics
    /// If there would be more free ones than [`MOST`](Semaphore::MOST).
    #[track_caller]
    pub fn add_permits(&self, permits: usize) {
        self.permits.add(permits);
    }

    /// How many are free this moment.
    pub fn available(&self) -> usize {
        self.permits.available()
    }
}

impl Permit<'_> {
    /// How many permits these are.
    pub fn count(&self) -> usize {
        self.permits
    }

    /// Takes them away for good.
    pub fn forget(mut self) {
        self.permits = 0;
    }
}

impl OwnedPermit {
    /// How many permits these are.
    pub fn count(&self) -> usize {
        self.permits
    }

    /// Takes them away for good.
    pub fn forget(mut self) {
        self.permits = 0;
    }
}

impl Drop for Permit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.semaphore.permits.release(self.permits);
    }
}

impl Drop for OwnedPermit {
    fn drop(&mut self) {
        self.semaphore.permits.release(self.permits);
    }
}
