//! Starting children in a scope.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use std::sync::Arc;

use convoke_core::StopReason;
use convoke_core::raw::FrameArc;

use super::block::Block;
use super::builder::Child;
use super::child::{Attach, ToScope};
use super::handle::Handle;
use super::options::Name;
use super::output::ChildOutput;
use super::start::Refused;
use crate::task::{SameThread, Spawnable};

/// Entrance to a [`scope()`](super::scope): starts children in it. `O` is the output of the scope.
///
/// A clone starts children in the same scope. A child that has one can start siblings. A function that starts children
/// takes a reference:
///
/// ```
/// use convoke::prelude::*;
///
/// fn start_workers(s: &Scope<()>, count: u32) {
///     for number in 0..count {
///         s.spawn(async move { println!("worker {number}") });
///     }
/// }
///
/// block_on(async { scope(async |s| start_workers(&s, 4)).await }).unwrap();
/// ```
#[doc(alias("JoinSet", "TaskTracker"))]
pub struct Scope<O> {
    pub(super) block: FrameArc<Block<O>>,
}

/// Error of [`Child::try_spawn`]: the child was not started. Its future is inside, unchanged.
pub struct SpawnError<F> {
    future: F,
    reason: Refused,
}

impl<O> Scope<O> {
    pub(super) fn new(block: FrameArc<Block<O>>) -> Self {
        Self { block }
    }

    /// Starts a child on the scope's executor. The child returns `()`, or a `Result<(), E>` if the scope
    /// returns a `Result<_, E>`. The first error stops the scope.
    ///
    /// Use [`spawn_future`](Scope::spawn_future) for a child whose value you need, [`child`](Scope::child) for
    /// one with options, and [`local_scope`](crate::local_scope()) for children that borrow.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory. [`Child::try_spawn`] returns an error instead.
    #[inline]
    #[track_caller]
    pub fn spawn<F>(&self, future: F)
    where
        F: Future<Output: ChildOutput<O> + Send> + Send + 'static, // `local_scope` has children that borrow.
        O: Send + 'static,
    {
        self.child().spawn(future);
    }

    /// Starts a child that returns a value, and returns its handle.
    ///
    /// An `Err` of the child goes to the handle, and does not stop the scope. Dropping the handle asks the
    /// child to stop, and so does `let _ = s.spawn_future(..)`, of which clippy and a diagnosis warn: use
    /// [`spawn`](Scope::spawn) for a child whose value you do not need.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    #[inline]
    #[track_caller]
    pub fn spawn_future<F>(&self, future: F) -> Handle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static, // `local_scope` has children that borrow.
    {
        self.child().spawn_future(future)
    }

    /// Returns a builder for one child with a name, for diagnosis and panic messages. Short for
    /// `s.child().name(name)`. A child without a name is shown with its spawn site.
    ///
    /// ```
    /// use convoke::prelude::*;
    ///
    /// block_on(async {
    ///     scope(async |s| s.named("reader").spawn(async { /* … */ })).await
    /// }).unwrap();
    /// ```
    pub fn named(&self, name: impl Into<Arc<str>>) -> Child<&Self, Name> {
        self.child().name(name)
    }

    /// Returns a builder for one child with options: a name, an executor, a permit, restarts.
    ///
    /// ```
    /// use convoke::prelude::*;
    ///
    /// let pool = ThreadPool::new(2)?;
    /// let workers = pool.executor();
    /// let outcome = block_on(async move {
    ///     scope(async |s| {
    ///         let halves = [0..500_u64, 500..1001].map(|half| {
    ///             s.child().name("sum").on(&workers).spawn_future(async { half.sum::<u64>() })
    ///         });
    ///         let mut sum = 0;
    ///         for half in halves {
    ///             sum += half.await;
    ///         }
    ///         sum
    ///     })
    ///     .await
    /// });
    /// assert_eq!(outcome, Outcome::Value(500_500));
    /// # std::io::Result::Ok(())
    /// ```
    #[inline]
    pub fn child(&self) -> Child<&Self> {
        Child::new(self)
    }

    /// Asks all children to stop, also those that are started later. The body is not asked to stop. The scope
    /// still waits for the children, and returns the output of the body.
    ///
    /// ```
    /// use convoke::prelude::*;
    /// use convoke::task::forever;
    ///
    /// let outcome = block_on(async {
    ///     scope(async |s| {
    ///         s.spawn(async { forever().await });
    ///         s.request_stop(StopReason::Named("enough"));
    ///         "done"
    ///     })
    ///     .await
    /// });
    /// assert_eq!(outcome, Outcome::Value("done"));
    /// ```
    pub fn request_stop(&self, reason: StopReason) {
        self.block.stop_children_by_program(reason);
    }

    /// Starts a child whose failure is the scope's. Panics if it cannot be started.
    #[inline]
    pub(super) fn start_for_scope<F, W>(&self, future: F, attachment: W, location: &'static Location<'static>)
    where
        F: Future<Output: ChildOutput<O> + Send> + Send + 'static,
        W: Attach<O>,
    {
        if let Err(refused) = self.start(Spawnable::anywhere(future), ToScope::new(attachment), location) {
            refused.panic();
        }
    }

    /// Starts a child with a handle. Panics if it cannot be started.
    #[inline]
    pub(super) fn start_future<F, W>(
        &self,
        future: F,
        attachment: W,
        location: &'static Location<'static>,
    ) -> Handle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
        W: Attach<O>,
    {
        match self.start_with_handle(Spawnable::anywhere(future), attachment, location) {
            Ok(handle) => handle,
            Err(refused) => refused.panic(),
        }
    }

    /// Starts a child that stays on this thread, with a handle that does too. Panics if it cannot be started.
    #[inline]
    pub(super) fn start_future_local<F, W>(
        &self,
        future: F,
        attachment: W,
        location: &'static Location<'static>,
    ) -> Handle<F::Output, SameThread>
    where
        F: Future + 'static,
        W: Attach<O>,
    {
        match self.start_with_handle(Spawnable::here(future), attachment, location) {
            Ok(handle) => handle,
            Err(refused) => refused.panic(),
        }
    }

    /// Starts a child whose failure is the scope's, or hands its future back if it cannot be started.
    pub(super) fn try_start_for_scope<F, W>(
        &self,
        future: F,
        attachment: W,
        location: &'static Location<'static>,
    ) -> Result<(), SpawnError<F>>
    where
        F: Future<Output: ChildOutput<O> + Send> + Send + 'static,
        W: Attach<O>,
    {
        self.start(Spawnable::anywhere(future), ToScope::new(attachment), location)
    }

    /// Starts a child that stays on this thread, and whose failure is the scope's. Panics if it cannot be
    /// started.
    pub(super) fn start_local<F, W>(&self, future: F, attachment: W, location: &'static Location<'static>)
    where
        F: Future<Output: ChildOutput<O> + Send> + 'static,
        W: Attach<O>,
    {
        if let Err(refused) = self.start(Spawnable::here(future), ToScope::new(attachment), location) {
            refused.panic();
        }
    }
}

impl<O> Clone for Scope<O> {
    fn clone(&self) -> Self {
        Self { block: self.block.clone() }
    }
}

impl<F> SpawnError<F> {
    #[cold]
    pub(super) fn new(future: F, reason: Refused) -> Self {
        Self { future, reason }
    }

    /// Returns the future that was not started.
    pub fn into_future(self) -> F {
        self.future
    }

    /// Returns true if the scope has ended: this `Scope` was used after its scope.
    pub fn is_ended(&self) -> bool {
        self.reason == Refused::Ended
    }

    /// Returns true if the frame allocator has no memory left.
    pub fn is_no_memory(&self) -> bool {
        self.reason == Refused::NoMemory
    }

    /// Panics with this error, at the caller's spawn.
    #[cold]
    #[track_caller]
    pub(super) fn panic(self) -> ! {
        Refusal { reason: self.reason, size: const { size_of::<F>() } }.panic()
    }

    fn refusal(&self) -> Refusal {
        Refusal { reason: self.reason, size: size_of::<F>() }
    }
}

impl<F> fmt::Display for SpawnError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.refusal().fmt(f)
    }
}

/// The reason why a child was not started, and the size of its future: without its type, so that the message is
/// compiled once.
struct Refusal {
    reason: Refused,
    size: usize,
}

impl Refusal {
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn panic(self) -> ! {
        panic!("{self}")
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Refused::Ended => f.write_str(
                "the scope has ended, and this `Scope` starts no more children; spawn before the body and the last child \
                 have ended",
            ),
            Refused::NoMemory => write!(
                f,
                "the frame allocator has no memory left for a child whose future has {} bytes; it was not started",
                self.size
            ),
            Refused::WrongThread => f.write_str(
                "a child that is `local` needs a scope whose executor has one thread, such as a run loop, and is started on \
                 that thread; leave out `local`, and start a future that is `Send`",
            ),
        }
    }
}

impl<F> fmt::Debug for SpawnError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpawnError").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<F> core::error::Error for SpawnError<F> {}

impl<O> fmt::Debug for Scope<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}
