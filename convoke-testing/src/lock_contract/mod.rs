//! A contract suite for locks that admit a limited number of holders at a time: a mutex, a semaphore, the
//! write half of a read-write lock.
//!
//! ```
//! use convoke::sync::{Mutex, MutexGuard};
//! use convoke::testing::lock_contract::{LockHarness, LockUnderTest, check};
//!
//! struct OurMutex(Mutex<()>);
//!
//! impl LockUnderTest for OurMutex {
//!     type Held<'a> = MutexGuard<'a, ()>;
//!
//!     async fn acquire(&self) -> MutexGuard<'_, ()> {
//!         self.0.lock().await
//!     }
//!
//!     fn try_acquire(&self) -> Option<MutexGuard<'_, ()>> {
//!         self.0.try_lock()
//!     }
//! }
//!
//! check(&LockHarness::new(1, || OurMutex(Mutex::new(()))).in_order().hears_stops());
//! ```

mod inside;
mod leaving;
mod order;

use core::fmt;
use core::future::Future;

use convoke_task::stoppable;

/// A lock under test: it admits a limited number of holders, and the others wait.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a lock for the contract suite",
    note = "implement `LockUnderTest` for a type of your own that has the lock in it"
)]
pub trait LockUnderTest: Send + Sync + 'static {
    /// A guard of a holder, which leaves by dropping it.
    type Held<'a>: Send
    where
        Self: 'a;

    /// Waits until it may get in.
    fn acquire(&self) -> impl Future<Output = Self::Held<'_>> + Send;

    /// Gets in, if that is possible at once.
    fn try_acquire(&self) -> Option<Self::Held<'_>>;
}

/// A factory of locks under test, and their promises beyond the contract.
pub struct LockHarness<L> {
    make: Box<dyn Fn() -> L>,
    permits: usize,
    in_order: bool,
    hears_stops: bool,
}

impl<L: LockUnderTest> LockHarness<L> {
    /// Creates a harness. `make` creates locks that admit `permits` holders at a time.
    ///
    /// # Panics
    /// If `permits` is zero.
    #[track_caller]
    pub fn new(permits: usize, make: impl Fn() -> L + 'static) -> Self {
        assert!(permits > 0, "`permits` must be greater than zero");
        Self { make: Box::new(make), permits, in_order: false, hears_stops: false }
    }

    /// Promises that waiters get in in the order in which they started to wait.
    pub fn in_order(mut self) -> Self {
        self.in_order = true;
        self
    }

    /// Promises that `acquire` is stopped when a stop is requested, also if it need not wait. Without this
    /// the suite wraps it in [`stoppable`].
    pub fn hears_stops(mut self) -> Self {
        self.hears_stops = true;
        self
    }

    fn make(&self) -> L {
        (self.make)()
    }
}

impl<L> fmt::Debug for LockHarness<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockHarness")
            .field("permits", &self.permits)
            .field("in_order", &self.in_order)
            .field("hears_stops", &self.hears_stops)
            .finish_non_exhaustive()
    }
}

/// Checks the lock against the whole contract.
///
/// # Panics
/// If it breaks the contract, or a promise.
pub fn check<L: LockUnderTest>(harness: &LockHarness<L>) {
    inside::at_most_permits_are_inside(harness);
    inside::a_holder_sees_the_writes_of_earlier_ones(harness);
    order::all_waiters_get_in(harness);
    leaving::a_stop_loses_no_permit(harness);
    leaving::a_dropped_wait_takes_nothing(harness);
    leaving::a_dropped_grant_goes_to_the_next(harness);
    leaving::a_stop_is_heard(harness);
}

/// Acquires the lock, or is stopped.
async fn enter<L: LockUnderTest>(lock: &L, hears_stops: bool) -> L::Held<'_> {
    if hears_stops { lock.acquire().await } else { stoppable(lock.acquire()).await }
}

/// Panics if a permit is not free.
#[track_caller]
fn assert_free<L: LockUnderTest>(lock: &L, permits: usize) {
    let all: Vec<_> = core::iter::from_fn(|| lock.try_acquire()).take(permits).collect();
    assert_eq!(all.len(), permits, "of {permits} permits {} are lost", permits - all.len());
}
