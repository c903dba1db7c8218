//! `Limited`: runs at most `n` pieces of work at a time, over any executor.
//!
//! `seats` is the model-checked queue. The rest of a view is in `view`; a seat is one of its turns. Several
//! seats take from one queue, so each takes one piece of work at a time. A [`Strand`](crate::Strand) has only
//! one turn, and takes the whole queue at once.

pub(crate) mod seats;

use core::fmt;

use convoke_core::raw::{OwnerThread, Runnable};
use convoke_core::{Executor, Panic};

use crate::strand::RUNS_PER_TURN;
use crate::view::{Job, View, ViewQueue, impl_view_executor};
use convoke_core::raw::{contain, report_panic};
use seats::{AfterQueuing, NextRun, Seat, Seats};

/// Largest limit that a view can have.
pub const LARGEST_LIMIT: usize = u16::MAX as usize;

/// A view of an executor that runs at most `limit` pieces of work at a time. The rest waits in the view, and
/// not in the queue of the executor.
///
/// *A piece of work* is one run: for a task, the part between two `await`s. A task that waits does not count.
/// So this limits how many threads are busy: use it for a library that allows only a number of callers, or
/// for work that must leave threads to other work. To limit how many tasks are *in progress*, waiting or not,
/// acquire a permit of a `Bound` before each one is spawned.
///
/// - *First in, first out*, over all posters: work begins in the order of posting.
/// - Queuing never allocates, and no lock is held while work runs.
/// - After [`RUNS_PER_TURN`] pieces in a row it queues itself again on the inner executor, so that other work
///   gets a turn.
/// - `dispatch` returns the work to a caller that is work of this view if nothing is queued before it;
///   otherwise it queues the work. Work that is returned runs inside the caller's run, and so within the
///   limit.
/// - If the inner executor drops the view's work, all that is queued completes as stopped. A later post tries
///   again.
/// - A panic that leaves a piece of work goes to the [handler](Limited::with_panic_handler), and the view
///   continues.
///
/// A view is one word and cheap to clone; clones are the same view and share one limit. Two views of the same
/// executor are independent of each other.
///
/// ```
/// use convoke::Executor;
/// use convoke::executor::Limited;
/// use convoke::prelude::*;
///
/// let pool = ThreadPool::new(8).unwrap();
/// let resize = Limited::new(&pool.executor(), 2);
/// assert_eq!(resize.parallelism(), 2);
/// let outcome = block_on(async move {
///     scope(async |s| {
///         for picture in 0..100 {
///             s.child().on(&resize).spawn(async move {
///                 /* keeps two threads busy at most */
///                 let _ = picture;
///             });
///         }
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value(()));
/// ```
pub struct Limited<X: Executor> {
    view: View<X, LimitedSeats>,
}

/// The queue of a view with this number of seats.
struct LimitedSeats {
    seats: Seats,
    limit: u16,
}

impl<X: Executor> Limited<X> {
    /// Creates a view of `executor` that runs at most `limit` pieces of work at a time.
    ///
    /// # Panics
    /// If `limit` is 0 or more than [`LARGEST_LIMIT`].
    #[track_caller]
    pub fn new(executor: &X, limit: usize) -> Self {
        Self::with_panic_handler(executor, limit, report_panic)
    }

    /// Creates a view that calls `handler` with panics that leave its work. The default handler writes them
    /// to standard error.
    ///
    /// # Panics
    /// If `limit` is 0 or more than [`LARGEST_LIMIT`].
    #[track_caller]
    pub fn with_panic_handler(executor: &X, limit: usize, handler: fn(Panic)) -> Self {
        let limit = match u16::try_from(limit) {
            Ok(limit) if limit > 0 => limit,
            _ => panic!("the limit of a view must be between 1 and {LARGEST_LIMIT}, not {limit}"),
        };
        let queue = LimitedSeats { seats: Seats::new(limit), limit };
        let jobs = (0..limit).map(|_| Job::new()).collect();
        Self { view: View::new(executor.clone(), queue, jobs, handler) }
    }

    /// Returns the inner executor.
    pub fn inner(&self) -> &X {
        self.view.inner()
    }

    /// Returns how many pieces of work it runs at a time, at most.
    pub fn limit(&self) -> usize {
        self.view.queue().limit.into()
    }

    /// Returns true if the caller is work of this view.
    pub fn is_running_here(&self) -> bool {
        self.view.is_running_here()
    }
}

impl_view_executor!(Limited);

impl ViewQueue for LimitedSeats {
    type Turn = Seat;
    type Jobs<X: Executor> = Box<[Job<X, Self>]>;

    fn index(seat: &Seat) -> usize {
        seat.index()
    }

    fn queue(&self, runnable: Runnable) -> Option<Seat> {
        match self.seats.queue(runnable) {
            AfterQueuing::Post(seat) => Some(seat),
            AfterQueuing::Wait => None,
        }
    }

    fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }

    fn run(&self, mut seat: Seat, on_panic: fn(Panic)) -> Option<Seat> {
        for _ in 0..RUNS_PER_TURN {
            let NextRun::Run(runnable, same_seat) = self.seats.next(seat) else { return None };
            seat = same_seat;
            contain(on_panic, || runnable.run());
        }
        Some(seat)
    }

    fn stop(&self, mut seat: Seat, on_panic: fn(Panic)) {
        while let NextRun::Run(runnable, same_seat) = self.seats.next(seat) {
            seat = same_seat;
            contain(on_panic, || runnable.stop());
        }
    }

    fn parallelism<X: Executor>(&self, inner: &X) -> usize {
        usize::from(self.limit).min(inner.parallelism())
    }
}

impl<X: Executor> fmt::Debug for Limited<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = core::any::type_name::<X>();
        write!(f, "Limited({:#x}, {} at a time over {name})", self.view.address(), self.limit())
    }
}
