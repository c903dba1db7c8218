//! The executor contract: who takes a [`Runnable`] and runs it. Executors themselves live one floor up.

mod closed;
mod contained;
mod erased;
mod inline;
mod owner_thread;
mod queue;
mod runnable;
mod stopping;
mod timers;
mod waits;

pub use contained::{dispatch_contained, post_contained};
pub use erased::ExecutorRef;
pub use inline::InlineExecutor;
pub use owner_thread::{OnOwnerThread, OwnerId, OwnerThread, RemoteWake};
pub use queue::RunQueue;
pub use runnable::{Call, Header, Runnable, WorkKind};
pub use timers::{Timer, TimerLinks, Timers};
pub use waits::Waits;

use core::any::Any;

/// Where work runs: a cheap handle to a thread, a pool, a loop. Safe to implement.
///
/// The contract, which a suite behind the feature `testing` checks:
/// - [`post`](Executor::post) queues; it never runs the work inline.
/// - [`dispatch`](Executor::dispatch) hands the work back if the caller may run it here and now, else queues it.
/// - Work is run at most once, and one thread's posts to a serial executor run in their order.
/// - An executor that cannot run a `Runnable` any more drops it, or better [stops](Runnable::stop) it, which does not go deeper
///   and deeper where work waits for work; it then completes as stopped.
/// - Clones are equal, and equal executors are the same place.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use convoke::{Executor, raw::Runnable};
///
/// /// Runs what it was given when it is told to.
/// #[derive(Clone, Default)]
/// struct ByHand(Arc<Mutex<Vec<Runnable>>>);
///
/// impl PartialEq for ByHand {
///     fn eq(&self, other: &Self) -> bool {
///         Arc::ptr_eq(&self.0, &other.0)
///     }
/// }
///
/// impl Executor for ByHand {
///     fn post(&self, runnable: Runnable) {
///         self.0.lock().unwrap().push(runnable);
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an executor",
    label = "expected something that work can be posted to",
    note = "executors are handles such as `pool.executor()` or `run_loop.executor()`, not the pool or loop itself",
    note = "to write one, implement `convoke::Executor`; it needs `Clone + PartialEq + Send + Sync + 'static`"
)]
pub trait Executor: Clone + PartialEq + Send + Sync + 'static {
    /// Whether work that is posted on the thread of its home goes straight to the queue of the run loop which that thread runs, and
    /// nothing else is done about it: then it may be put there without a call. Only for handles of run loops.
    #[doc(hidden)]
    const QUEUES_LOCALLY: bool = false;

    /// Queues the work. Never runs it before returning.
    ///
    /// It should not panic. If it does, the panic goes no further than to who posts for the program, a task that is woken for one:
    /// the panic hook has reported it. The work completes as stopped if the panic drops the runnable, and runs if that is
    /// queued by then. A runnable that is forgotten is never completed, and whoever waits for it waits for ever.
    fn post(&self, runnable: Runnable);

    /// Queues the work through a handle that is not needed any more. An erased executor saves a call by it; nobody
    /// else needs to write it.
    #[inline]
    fn post_last(self, runnable: Runnable) {
        self.post(runnable);
    }

    /// Hands the work back if it may run here and now, on the caller's stack; the caller then runs it.
    /// Otherwise queues it. The default always queues.
    #[inline]
    fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
        self.post(runnable);
        None
    }

    /// How many pieces of work it can run at the same time. `bulk` spreads over that many.
    fn parallelism(&self) -> usize {
        1
    }

    /// The home of what runs here, for executors whose work all runs on one thread at a time. Tasks are cheaper there.
    /// A wrapper may pass on that of the executor it wraps if all it is given is run there.
    #[inline]
    fn owner_thread(&self) -> Option<&OwnerThread> {
        None
    }

    /// The timers of the thread or threads that it runs work on, if they have any. An executor that wraps another
    /// hands out the other's. Work that waits without them is served by a thread that is there for that.
    fn timers(&self) -> Option<&dyn Timers> {
        None
    }

    /// What the threads that it runs work on bring along beside timers, if anything: an I/O context does. Whoever looks for
    /// something asks for its type. An executor that wraps another hands out the other's.
    fn context(&self) -> Option<&(dyn Any + Send + Sync)> {
        None
    }

    /// Work has begun that will come back here, though nothing of it is queued: whoever runs work until there is none left, as an
    /// I/O context does, waits for it. [`work_ended`](Executor::work_ended) is called once for each call of this. A launched chain
    /// is such work. An executor that wraps another passes both on; those that run for ever need neither.
    fn work_began(&self) {}

    /// What [`work_began`](Executor::work_began) has told of has ended; what it has posted is queued.
    fn work_ended(&self) {}
}
