//! The executor contract: how a piece of work gets to a thread and is run there. Executors themselves are in
//! the crates above.
//!
//! # Protocol
//! - Work that can be queued holds a [`Header`], which does not move. A [`Runnable`] is the right and the
//!   duty to call that header once: to run the work, or to stop it. There is at most one for a header at a
//!   time, and its holder owns the link in the header. So queues allocate nothing.
//! - [`Executor::post`] takes a `Runnable` on any thread and queues it; it does not run it before it returns.
//!   Dropping a `Runnable` completes its work as stopped. So no queue can lose work.
//! - An executor that refuses work calls [`Runnable::stop`]. That bounds the recursion where one piece of
//!   work that is stopped wakes the next one, which is refused in turn.
//! - An executor that runs all its work on one thread at a time has an [`OwnerThread`]. Only the thread that
//!   has entered it changes the state of its tasks, with plain loads and stores. Other threads send a
//!   [`RemoteWake`] and post the `Runnable` that they get for it. After it is closed, the thread that brings
//!   a remote wake runs it itself.
//! - An executor with a clock hands out its [`Timers`]. They call a [`Timer`] on their own thread, at most
//!   once for each time it is armed.
//! - Executors may be written by the program, and may panic. The machinery calls them through
//!   [`post_contained`], [`dispatch_contained`], [`ExecutorRef::post_cloned`] or
//!   [`ExecutorRef::dispatch_cloned`], which catch and report that.
//!
//! # Map
//! | file | contents |
//! | --- | --- |
//! | `mod.rs` | the trait [`Executor`] |
//! | `any.rs` | [`AnyExecutor`]: the functions that are called rarely, behind a pointer |
//! | `runnable.rs` | [`Runnable`], [`Header`], [`WorkKind`]: the unit of work |
//! | `queue.rs` | [`RunQueue`]: a queue that is linked through the headers; [`LocalRunQueue`]: in a cell |
//! | `stopping.rs` | [`Runnable::stop`]: stops work without deep recursion |
//! | `owner_thread.rs` | [`OwnerThread`] and its remote wakes |
//! | `closed.rs` | threads that act for an owner that is closed |
//! | `erased.rs` | [`ExecutorRef`]: an executor of any type in two words |
//! | `contained.rs` | calls that catch the panics of executors |
//! | `inline.rs` | [`InlineExecutor`] |
//! | `on_top.rs` | work that runs on top of the work that starts it, a few levels deep |
//! | `timers.rs` | the contract of timers |
//! | `wait_location.rs` | [`WaitLocation`]: the wait location of a task, in the word of its link |

mod any;
mod closed;
mod contained;
mod erased;
mod inline;
mod on_top;
mod owner_thread;
mod queue;
mod runnable;
mod stopping;
mod timers;
mod wait_location;

pub use any::AnyExecutor;
pub use contained::{dispatch_contained, post_contained};
pub use erased::ExecutorRef;
pub use inline::InlineExecutor;
pub use owner_thread::{OnOwnerThread, OwnerId, OwnerThread, RemoteWake};
pub use queue::{LocalRunQueue, RunQueue};
pub use runnable::{Call, Header, Runnable, WorkKind};
pub use timers::{ArmedTimer, IdleTimer, Timer, TimerLinks, Timers, address_of_timers};
pub use wait_location::WaitLocation;

use core::any::Any;

use crate::FrameAllocator;

/// A handle to the threads that run work: a thread, a pool or a loop. Cheap to clone, and safe to implement.
///
/// The contract, which a suite behind the feature `testing` checks:
/// - [`post`](Executor::post) queues; it never runs the work inline.
/// - [`dispatch`](Executor::dispatch) returns the work if the caller may run it at once, else it queues it.
/// - Work is run at most once. The posts of one thread to a serial executor run in their order.
/// - An executor that cannot run a `Runnable` any more drops it or, better, [stops](Runnable::stop) it, which
///   bounds the recursion where work waits for work. The work then completes as stopped.
/// - Clones are equal, and equal executors run work on the same threads.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use convoke::{Executor, raw::Runnable};
///
/// /// Runs the work that it was given when it is told to.
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
    /// True if work that is posted on the owner thread goes straight to the queue of the run loop of that
    /// thread, and nothing else is done: then it may be put there without a call. Only for handles of run
    /// loops.
    #[doc(hidden)]
    const QUEUES_LOCALLY: bool = false;

    /// Erases the type of the handle. An implementation is `#[inline(never)]` and calls [`ExecutorRef::erase`], as the
    /// default does: then the functions of an erased handle of this type are compiled once, and not in each crate that
    /// erases one.
    #[doc(hidden)]
    #[inline]
    fn erased(self) -> ExecutorRef {
        ExecutorRef::erase(self)
    }

    /// Queues the work. Never runs it before it returns.
    ///
    /// It should not panic. If it does, the panic hook reports it, and it goes no further than to the code
    /// that posts. The work completes as stopped if the panic drops the runnable, and runs if it was queued
    /// by then. A runnable that is leaked is never completed, and everything that waits for its work waits
    /// for ever.
    fn post(&self, runnable: Runnable);

    /// Queues the work through a handle that is not needed any more. It saves erased executors a call; other
    /// executors have no reason to implement it.
    #[inline]
    fn post_last(self, runnable: Runnable) {
        self.post(runnable);
    }

    /// Returns the work if it may run here and now, on the caller's stack; the caller then runs it. Otherwise
    /// queues it. The default always queues.
    #[inline]
    fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
        self.post(runnable);
        None
    }

    /// Returns the number of pieces of work that it can run at the same time. `bulk` spreads over that many.
    fn parallelism(&self) -> usize {
        1
    }

    /// Returns the owner thread of the work that runs here, for executors that run all of it on one thread at
    /// a time. Tasks are cheaper there. A wrapper may return that of the executor it wraps if it runs all its
    /// work there.
    #[inline]
    fn owner_thread(&self) -> Option<&OwnerThread> {
        None
    }

    /// Returns the executor that this one wraps, if all its work runs there in the end. Then `timers`, `context`,
    /// `allocator`, `work_began` and `work_ended` are those of that executor, unless they are implemented. A wrapper
    /// that passes work on, and implements neither this nor those, loses them silently: its tasks find no socket
    /// driver, and a thread of its own serves their timers.
    ///
    /// ```
    /// use convoke::Executor;
    /// use convoke::raw::{AnyExecutor, Runnable};
    ///
    /// /// Writes a line for each piece of work that is posted to another executor.
    /// #[derive(Clone, PartialEq)]
    /// struct Logged<X>(X);
    ///
    /// impl<X: Executor> Executor for Logged<X> {
    ///     fn post(&self, runnable: Runnable) {
    ///         println!("posted");
    ///         self.0.post(runnable);
    ///     }
    ///
    ///     fn wraps(&self) -> Option<&dyn AnyExecutor> {
    ///         Some(&self.0)
    ///     }
    /// }
    /// ```
    fn wraps(&self) -> Option<&dyn AnyExecutor> {
        None
    }

    /// Returns the timers of the threads that it runs work on, if they have any. A wrapper returns those of
    /// the executor it wraps. Without them, a separate thread serves the work that waits for a time.
    fn timers(&self) -> Option<&dyn Timers> {
        self.wraps()?.timers()
    }

    /// Returns the context of the threads that it runs work on, if they have one: an I/O context is one. The
    /// caller downcasts it to the type it needs. A wrapper returns that of the executor it wraps.
    fn context(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.wraps()?.context()
    }

    /// Returns the frame allocator of what is launched here and names none: that of the context. A wrapper
    /// returns that of the executor it wraps.
    fn allocator(&self) -> FrameAllocator {
        self.wraps().map_or_else(FrameAllocator::recycling, |wrapped| wrapped.allocator())
    }

    /// Announces work that will come back here, though nothing of it is queued yet: a launched chain is such
    /// work. An executor that runs until there is no work left, as an I/O context does, then waits for it.
    /// [`work_ended`](Executor::work_ended) is called once for each call of this. A wrapper passes both on.
    /// Executors that run for ever need neither.
    fn work_began(&self) {
        if let Some(wrapped) = self.wraps() {
            wrapped.work_began();
        }
    }

    /// Announces that work of [`work_began`](Executor::work_began) has ended. Everything that it has posted
    /// is queued by now.
    fn work_ended(&self) {
        if let Some(wrapped) = self.wraps() {
            wrapped.work_ended();
        }
    }
}
