//! The code that [`Strand`](crate::Strand) and [`Limited`](crate::Limited) share. Both are *views*: executors
//! that queue their work, and run it on an inner executor.
//!
//! A view has one or more *turns*. A turn is the right to take work from the view's queue and run it. A post
//! that finds a free turn takes it, and posts the turn's [`Job`] to the inner executor. When the inner
//! executor runs the job, the view runs queued work; then it posts the turn again, or frees it. Each view has
//! its own [`ViewQueue`], which says how many turns there are and in which order work runs. The unsafe part,
//! a turn on its way through the inner executor, is here.

#![allow(unsafe_code)]

use core::cell::{Cell, UnsafeCell};
use core::mem::{self, MaybeUninit};
use core::ptr::{self, NonNull};
use std::sync::Arc;

use convoke_core::raw::{Call, Header, OwnerThread, Runnable, WorkKind};
use convoke_core::{Executor, Panic};

/// The queue of a view, and its turns.
pub(crate) trait ViewQueue: Send + Sync + Sized + 'static {
    /// The right to take work from the queue and run it.
    type Turn: Send;
    /// One job for each turn. Inline if there is only one.
    type Jobs<X: Executor>: AsRef<[Job<X, Self>]>;

    /// Returns the index of the job of a turn.
    fn index(turn: &Self::Turn) -> usize;

    /// Queues work. Returns a turn if one was free: the caller must post it to the inner executor.
    fn queue(&self, runnable: Runnable) -> Option<Self::Turn>;

    /// Returns true if no work is queued before the caller, which is work of this view.
    fn is_empty(&self) -> bool;

    /// Runs queued work. Returns the turn if it must be posted again, or frees it.
    fn run(&self, turn: Self::Turn, on_panic: fn(Panic)) -> Option<Self::Turn>;

    /// Stops all queued work, and what those completions queue, and frees the turn.
    fn stop(&self, turn: Self::Turn, on_panic: fn(Panic));

    /// Returns how many pieces of work run at the same time over this inner executor.
    fn parallelism<X: Executor>(&self, inner: &X) -> usize;
}

/// A view of the executor `X` with the queue `Q`. Clones are the same view.
pub(crate) struct View<X: Executor, Q: ViewQueue>(Arc<ViewState<X, Q>>);

struct ViewState<X: Executor, Q: ViewQueue> {
    queue: Q,
    jobs: Q::Jobs<X>,
    inner: X,
    on_panic: fn(Panic),
}

/// The work that is posted to the inner executor for a turn.
///
/// 1. `header` and `turn` belong to the holder of the turn: before `post_turn` to its caller, then to the
///    runnable, and from `call` on to the thread that runs it.
/// 2. `turn` is initialised while the job is posted. The runnable owns a count of the state meanwhile.
/// 3. `state` is written once, in `View::new`, before other threads know of the job.
#[repr(C)]
pub(crate) struct Job<X: Executor, Q: ViewQueue> {
    // The first field, so that a pointer to the header is a pointer to the job.
    header: UnsafeCell<Header>,
    state: UnsafeCell<*const ViewState<X, Q>>,
    turn: UnsafeCell<MaybeUninit<Q::Turn>>,
}

// SAFETY: the cells of a job are not used by two threads at once: rules 1 to 3. A turn is `Send`, and so are
// the other fields of the state, which are `Sync` too.
unsafe impl<X: Executor, Q: ViewQueue> Sync for ViewState<X, Q> {}
// SAFETY: queue, turns and inner executor are `Send`. The pointers in jobs are counts of an `Arc` of this
// very type, which is `Sync`.
unsafe impl<X: Executor, Q: ViewQueue> Send for ViewState<X, Q> {}

impl<X: Executor, Q: ViewQueue> View<X, Q> {
    /// Creates a view. `jobs` has a job for the index of each turn of the queue.
    pub(crate) fn new(inner: X, queue: Q, jobs: Q::Jobs<X>, on_panic: fn(Panic)) -> Self {
        let state = Arc::into_raw(Arc::new(ViewState { queue, jobs, inner, on_panic }));
        // SAFETY: `state` was returned by `into_raw` just now, and its count is taken back once. Rule 3: only
        // this thread knows of the jobs.
        unsafe {
            for job in (*state).jobs.as_ref() {
                *job.state.get() = state;
            }
            Self(Arc::from_raw(state))
        }
    }

    pub(crate) fn queue(&self) -> &Q {
        &self.0.queue
    }

    pub(crate) fn inner(&self) -> &X {
        &self.0.inner
    }

    /// Returns an address that identifies the view.
    pub(crate) fn address(&self) -> usize {
        self.0.address()
    }

    /// Returns true if the caller is work of this view.
    pub(crate) fn is_running_here(&self) -> bool {
        CurrentView::is(self.address())
    }

    #[inline]
    pub(crate) fn post(&self, runnable: Runnable) {
        if let Some(turn) = self.0.queue.queue(runnable) {
            self.0.post_turn(turn);
        }
    }

    /// Returns the work if the caller is work of this view and nothing is queued before it: then the caller
    /// may run it, as a part of its own run.
    pub(crate) fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
        if self.is_running_here() && self.0.queue.is_empty() {
            return Some(runnable);
        }
        self.post(runnable);
        None
    }

    pub(crate) fn parallelism(&self) -> usize {
        self.0.queue.parallelism(&self.0.inner)
    }

    /// Returns the owner thread of the inner executor, as all work of the view runs there. A view with one
    /// turn has none of its own: one at a time is not one thread.
    pub(crate) fn owner_thread(&self) -> Option<&OwnerThread> {
        self.0.inner.owner_thread()
    }
}

impl<X: Executor, Q: ViewQueue> ViewState<X, Q> {
    fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Posts the job of a turn to the inner executor. Uses the inner executor in place: a clone of it is user
    /// code, and if that panicked the turn would be lost.
    #[inline]
    fn post_turn(self: &Arc<Self>, turn: Q::Turn) {
        let job = &self.jobs.as_ref()[Q::index(&turn)];
        // SAFETY: rule 1: the turn is ours, so the job is ours too, and there is no other runnable of it. The
        // job lies in the state, and the count that is forgotten here keeps the state alive until `call`
        // takes it back. All that `call` touches is `Send` and `Sync`, so any thread may call it.
        let runnable = unsafe {
            (*job.turn.get()).write(turn);
            mem::forget(self.clone());
            Runnable::new(NonNull::from(job).cast::<Header>())
        };
        self.inner.post(runnable);
    }

    /// Runs one turn.
    fn run(self: Arc<Self>, turn: Q::Turn) {
        let inside = CurrentView::enter(self.address());
        let turn = self.queue.run(turn, self.on_panic);
        // Left before the turn is posted again: an inline executor runs the next turn inside `post`.
        drop(inside);
        if let Some(turn) = turn {
            self.post_turn(turn);
        }
    }
}

impl<X: Executor, Q: ViewQueue> Job<X, Q> {
    pub(crate) fn new() -> Self {
        Self {
            header: UnsafeCell::new(Header::new(const { &WorkKind::new(Self::call) })),
            state: UnsafeCell::new(ptr::null()),
            turn: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Runs or stops the turn of a posted job.
    ///
    /// # Safety
    /// Called by the runnable of `post_turn`, once for each.
    unsafe fn call(header: NonNull<Header>, call: Call) {
        // SAFETY: the header is the first field (`repr(C)`) of a job that was posted. Rule 2: the count of
        // the state is ours, and `turn` is initialised; both are taken once.
        let (state, turn) = unsafe {
            let job = header.cast::<Self>().as_ref();
            (Arc::from_raw(*job.state.get()), (*job.turn.get()).assume_init_read())
        };
        match call {
            Call::Run => state.run(turn),
            // The inner executor refused the job, or was dropped.
            Call::Stop => state.queue.stop(turn, state.on_panic),
        }
    }
}

impl<X: Executor, Q: ViewQueue> Clone for View<X, Q> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<X: Executor, Q: ViewQueue> PartialEq for View<X, Q> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

thread_local! {
    /// The address of the innermost view whose work this thread runs, or 0.
    static CURRENT_VIEW: Cell<usize> = const { Cell::new(0) };
}

/// Marks this thread as running work of a view, while it exists.
#[must_use = "the mark is removed when this is dropped"]
struct CurrentView {
    outer: usize,
}

impl CurrentView {
    fn enter(view: usize) -> Self {
        Self { outer: CURRENT_VIEW.replace(view) }
    }

    /// Returns true if this is the innermost view whose work this thread runs.
    #[inline]
    fn is(view: usize) -> bool {
        CURRENT_VIEW.get() == view
    }
}

impl Drop for CurrentView {
    fn drop(&mut self) {
        CURRENT_VIEW.set(self.outer);
    }
}

/// Implements `Executor`, `Clone` and `Eq` for a type that wraps a [`View`] in the field `view`.
///
/// `QUEUES_LOCALLY` of the inner executor is not passed on: a wake-up must not go past the view, which orders
/// all work that is posted to it.
macro_rules! impl_view_executor {
    ($Type:ident) => {
        #[diagnostic::do_not_recommend]
        impl<X: Executor> Executor for $Type<X> {
            fn post(&self, runnable: Runnable) {
                self.view.post(runnable);
            }

            fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
                self.view.dispatch(runnable)
            }

            fn parallelism(&self) -> usize {
                self.view.parallelism()
            }

            fn owner_thread(&self) -> Option<&OwnerThread> {
                self.view.owner_thread()
            }

            fn wraps(&self) -> Option<&dyn convoke_core::raw::AnyExecutor> {
                Some(self.view.inner())
            }
        }

        impl<X: Executor> Clone for $Type<X> {
            fn clone(&self) -> Self {
                Self { view: self.view.clone() }
            }
        }

        impl<X: Executor> PartialEq for $Type<X> {
            fn eq(&self, other: &Self) -> bool {
                self.view == other.view
            }
        }

        impl<X: Executor> Eq for $Type<X> {}
    };
}
pub(crate) use impl_view_executor;
