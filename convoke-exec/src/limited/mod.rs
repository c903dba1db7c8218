//! `Limited`: at most so many at a time, over any executor. The state is in `seats`.
//!
//! A [`Strand`](crate::Strand) is a view for one, and keeps an order that several cannot have; its queue is taken as a whole
//! by whoever has the turn. Here several take from one queue, so each takes a piece at a time.

#![allow(unsafe_code)]

pub(crate) mod seats;

use core::cell::UnsafeCell;
use core::fmt;
use core::ptr::{self, NonNull};
use std::sync::Arc;

use convoke_core::raw::{Call, Header, OwnerThread, Runnable, Timers, WorkKind};
use convoke_core::{Executor, Panic};

use crate::running_here::Here;
use crate::strand::RUNS_PER_TURN;
use convoke_core::raw::{contain, report_panic};
use seats::{AfterQueuing, Seat, Seats, Turn};

/// The largest limit that a view can have.
pub const LARGEST_LIMIT: usize = u16::MAX as usize;

/// A view of an executor that runs at most so many pieces of work at a time; the others wait in the view, and take no room
/// on the executor.
///
/// *A piece of work* is one run: of a task, the part between two `await`s. A task that waits does not count, so that the
/// limit is one on threads that are kept busy, as for a library that stands only so many callers, or for work that must
/// leave threads to others. To limit how many tasks are *under way*, waiting or not, take room in a
/// [`Bound`](crate::Bound) before they are started.
///
/// - *First in, first out*, over all posters: work begins in the order of posting.
/// - Queuing never allocates, and no lock is held while work runs.
/// - After [`RUNS_PER_TURN`] pieces in a row it queues itself again on the inner executor, as others do: views that share
///   one take turns.
/// - `dispatch` hands back to work of this view if nothing waits before it; else it queues.
/// - If the inner executor drops what the view has posted there, all that waits completes as stopped. What is posted later
///   is tried again.
/// - A panic that leaves a piece of work goes to the [handler](Limited::with_panic_handler), and the view goes on.
///
/// A view is one word and cheap to clone; clones are the same view, with one limit for all. Two views of the same executor
/// know nothing of each other.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::executor::Limited;
///
/// let pool = ThreadPool::new(8).unwrap();
/// let resize = Limited::new(&pool.executor(), 2);
/// assert_eq!(resize.parallelism(), 2);
/// let outcome = block_on(async move {
///     scope(async |s| {
///         for picture in 0..100 {
///             s.spawn_on(&resize, async move { /* keeps two threads busy at most */ let _ = picture; });
///         }
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value(()));
/// ```
pub struct Limited<X: Executor> {
    state: Arc<State<X>>,
}

struct State<X> {
    seats: Seats,
    /// One for each seat.
    runners: Box<[Runner<X>]>,
    inner: X,
    on_panic: fn(Panic),
}

/// What is posted to the inner executor for a seat. It belongs to whoever has the seat: rule 1 of the seats.
#[repr(C)]
struct Runner<X> {
    // First, so that a pointer to it is a pointer to the runner.
    header: UnsafeCell<Header>,
    /// A count of the state, while the seat is posted.
    state: UnsafeCell<*const State<X>>,
    seat: UnsafeCell<Option<Seat>>,
}

// SAFETY: a runner is touched only by whoever has its seat, and the seats pass it on under their lock, or through the inner
// executor; the rest is `Sync`.
unsafe impl<X: Executor> Sync for State<X> {}
// SAFETY: as above; an executor is `Send`, and the pointers in runners are counts of `Arc`s of what is `Send` and `Sync`.
unsafe impl<X: Executor> Send for State<X> {}

impl<X: Executor> Limited<X> {
    /// A view of `executor` that runs at most `limit` pieces of work at a time.
    ///
    /// # Panics
    /// If the limit is none, or larger than [`LARGEST_LIMIT`].
    #[track_caller]
    pub fn new(executor: &X, limit: usize) -> Self {
        Self::with_panic_handler(executor, limit, report_panic)
    }

    /// The same, with a `handler` that is told of panics which leave its work. By default they are written to the error
    /// stream.
    ///
    /// # Panics
    /// As [`new`](Limited::new).
    #[track_caller]
    pub fn with_panic_handler(executor: &X, limit: usize, handler: fn(Panic)) -> Self {
        let limit = match u16::try_from(limit) {
            Ok(limit) if limit > 0 => limit,
            _ => panic!("a view runs between 1 and {LARGEST_LIMIT} at a time, not {limit}"),
        };
        let state = State {
            seats: Seats::new(limit),
            runners: (0..limit).map(|_| Runner::new()).collect(),
            inner: executor.clone(),
            on_panic: handler,
        };
        Self { state: Arc::new(state) }
    }

    /// The executor below.
    pub fn inner(&self) -> &X {
        &self.state.inner
    }

    /// How many it runs at a time, at most.
    pub fn limit(&self) -> usize {
        self.state.runners.len()
    }

    /// Whether the caller is work of this view.
    pub fn is_running_here(&self) -> bool {
        Here::is(self.state.address())
    }
}

#[diagnostic::do_not_recommend]
impl<X: Executor> Executor for Limited<X> {
    fn post(&self, runnable: Runnable) {
        if let AfterQueuing::Post(seat) = self.state.seats.queue(runnable) {
            State::post(&self.state, seat);
        }
    }

    /// What is handed back runs inside the piece that asks, and so within the limit.
    fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
        if self.is_running_here() && self.state.seats.is_empty() {
            return Some(runnable);
        }
        self.post(runnable);
        None
    }

    fn parallelism(&self) -> usize {
        self.limit().min(self.state.inner.parallelism())
    }

    /// That of the inner executor, whatever the limit: all that the view is given runs there. A limit of one makes no home:
    /// one at a time is not one thread.
    fn owner_thread(&self) -> Option<&OwnerThread> {
        self.state.inner.owner_thread()
    }

    fn timers(&self) -> Option<&dyn Timers> {
        self.state.inner.timers()
    }

    fn context(&self) -> Option<&(dyn core::any::Any + Send + Sync)> {
        self.state.inner.context()
    }

    fn work_began(&self) {
        self.state.inner.work_began();
    }

    fn work_ended(&self) {
        self.state.inner.work_ended();
    }
}

impl<X: Executor> Runner<X> {
    fn new() -> Self {
        Self {
            header: UnsafeCell::new(Header::new(const { &WorkKind::new(Self::call) })),
            state: UnsafeCell::new(ptr::null()),
            seat: UnsafeCell::new(None),
        }
    }

    /// # Safety
    /// Called once for each `post`, by its runnable.
    unsafe fn call(header: NonNull<Header>, call: Call) {
        // SAFETY: the header is the first field (`repr(C)`) of a runner whose seat was posted: it is ours now, with what
        // `post` has put into it. The count keeps it there until we are done.
        let (state, seat) = unsafe {
            let runner = header.cast::<Self>().as_ref();
            (Arc::from_raw(*runner.state.get()), (*runner.seat.get()).take())
        };
        let Some(seat) = seat else { unreachable!("`post` has put it there") };
        match call {
            Call::Run => State::run(state, seat),
            Call::Stop => state.stop_all(seat),
        }
    }
}

impl<X: Executor> State<X> {
    fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Posts a seat to the inner executor. That is used where it is: cloning it is the program's code, and a panic of it
    /// would lose the seat.
    fn post(self: &Arc<Self>, seat: Seat) {
        let runner = &self.runners[seat.index()];
        // SAFETY: the seat is ours, and so is its runner, of which there is no other runnable. It lies in the state, which is
        // kept alive by the count that `into_raw` left, until `call` takes it back. All that `call` touches is `Send` and
        // `Sync`, so any thread may call it.
        let runnable = unsafe {
            *runner.state.get() = Arc::into_raw(self.clone());
            *runner.seat.get() = Some(seat);
            Runnable::new(NonNull::from(runner).cast::<Header>())
        };
        self.inner.post(runnable);
    }

    /// The turn of a seat.
    fn run(self: Arc<Self>, mut seat: Seat) {
        let here = Here::enter(self.address());
        for _ in 0..RUNS_PER_TURN {
            let Turn::Run(runnable, kept) = self.seats.next(seat) else { return };
            seat = kept;
            contain(self.on_panic, || runnable.run());
        }
        // Before the seat is passed on: on an inline executor its next turn runs inside of `post`.
        drop(here);
        self.post(seat);
    }

    /// The inner executor will not run this seat: whatever waits, and whatever those completions post, is stopped.
    fn stop_all(&self, mut seat: Seat) {
        while let Turn::Run(runnable, kept) = self.seats.next(seat) {
            seat = kept;
            contain(self.on_panic, || runnable.stop());
        }
    }
}

impl<X: Executor> Clone for Limited<X> {
    fn clone(&self) -> Self {
        Self { state: self.state.clone() }
    }
}

impl<X: Executor> PartialEq for Limited<X> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }
}

impl<X: Executor> Eq for Limited<X> {}

impl<X: Executor> fmt::Debug for Limited<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = core::any::type_name::<X>();
        write!(f, "Limited({:#x}, {} at a time over {name})", self.state.address(), self.limit())
    }
}
