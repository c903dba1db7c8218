//! What one expects of a lock, as a suite that any type can be put through which lets at most so many in at a time: a mutex, a
//! semaphore, the writing side of a read-write lock.
//!
//! ```
//! use convoke::sync::{Mutex, MutexGuard};
//! use convoke::testing::lock_contract::{Harness, LockUnderTest, check};
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
//! check(&Harness::new(1, || OurMutex(Mutex::new(()))).in_order().hears_stops());
//! ```

mod inside;
mod leaving;
mod order;

use core::fmt;
use core::future::Future;

use convoke_task::stoppable;

/// A lock under test: it lets at most so many in at a time, and the others wait.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be put through the suite for locks",
    note = "implement `LockUnderTest` for a type of your own that has the lock in it"
)]
pub trait LockUnderTest: Send + Sync + 'static {
    /// Kept by one who is inside, who leaves by dropping it.
    type Held<'a>: Send
    where
        Self: 'a;

    /// Waits until one may come in.
    fn acquire(&self) -> impl Future<Output = Self::Held<'_>> + Send;

    /// Comes in, if that is possible at once.
    fn try_acquire(&self) -> Option<Self::Held<'_>>;
}

/// How locks are made to be tested, and what they promise beyond the contract.
pub struct Harness<L> {
    make: Box<dyn Fn() -> L>,
    permits: usize,
    in_order: bool,
    hears_stops: bool,
}

impl<L: LockUnderTest> Harness<L> {
    /// `make` makes locks, each of which lets so many in at a time.
    ///
    /// # Panics
    /// If that is nobody.
    #[track_caller]
    pub fn new(permits: usize, make: impl Fn() -> L + 'static) -> Self {
        assert!(permits > 0, "a lock that lets nobody in cannot be tested");
        Self { make: Box::new(make), permits, in_order: false, hears_stops: false }
    }

    /// Those who wait come in in the order in which they began to wait.
    pub fn in_order(mut self) -> Self {
        self.in_order = true;
        self
    }

    /// Who waits, or begins to, ends by the stopped door when a stop is asked for. Without this the suite wraps
    /// [`stoppable`] around it.
    pub fn hears_stops(mut self) -> Self {
        self.hears_stops = true;
        self
    }

    fn make(&self) -> L {
        (self.make)()
    }
}

impl<L> fmt::Debug for Harness<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Harness")
            .field("permits", &self.permits)
            .field("in_order", &self.in_order)
            .field("hears_stops", &self.hears_stops)
            .finish_non_exhaustive()
    }
}

/// Puts the lock through all of it.
///
/// # Panics
/// If it breaks the contract, or a promise.
pub fn check<L: LockUnderTest>(harness: &Harness<L>) {
    inside::at_most_so_many_are_inside(harness);
    inside::who_is_inside_sees_what_those_before_did(harness);
    order::all_who_wait_come_in(harness);
    leaving::a_stop_loses_no_permit(harness);
    leaving::one_who_goes_while_he_waits_takes_nothing_along(harness);
    leaving::one_who_was_let_in_and_goes_lets_the_next_in(harness);
    leaving::a_stop_is_heard(harness);
}

/// Comes in, or is stopped.
async fn enter<L: LockUnderTest>(lock: &L, hears_stops: bool) -> L::Held<'_> {
    if hears_stops { lock.acquire().await } else { stoppable(lock.acquire()).await }
}

/// Panics if somebody is inside.
#[track_caller]
fn assert_free<L: LockUnderTest>(lock: &L, permits: usize) {
    let all: Vec<_> = core::iter::from_fn(|| lock.try_acquire()).take(permits).collect();
    assert_eq!(all.len(), permits, "of {permits} permits {} are lost", permits - all.len());
}
