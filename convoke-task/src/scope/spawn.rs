//! Starting children in a scope.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use std::sync::Arc;

use convoke_core::StopReason;

use super::block::Block;
use super::child::{Attach, SharedLink, ToScope};
use super::handle::Handle;
use super::named::WithName;
use super::output::ChildOutput;
use super::start::Refused;
use crate::frame_arc::FrameArc;
use crate::task::{OnOwnerThread, Spawnable};

/// Entrance to a [`scope()`](super::scope): starts children in it. `O` is the output of the scope.
///
/// A clone starts children in the same scope. A child that has one can start siblings.
#[doc(alias("JoinSet", "TaskTracker"))]
pub struct Scope<O> {
    pub(super) block: FrameArc<Block<O>>,
}

/// Error of [`Scope::try_spawn`]: the child was not started. Its future is inside, unchanged.
pub struct SpawnError<F> {
    future: F,
    reason: Refused,
}

/// Entrance to a scope for one child with a name. Returned by [`Scope::named`].
#[derive(Debug)]
#[must_use = "a name does nothing until a child is started with it"]
pub struct Named<'a, O> {
    pub(super) scope: &'a Scope<O>,
    pub(super) name: Arc<str>,
}

impl<O> Scope<O> {
    pub(super) fn new(block: FrameArc<Block<O>>) -> Self {
        Self { block }
    }

    /// Starts a child on the scope's executor. The child returns `()`, or a `Result<(), E>` if the scope
    /// returns a `Result<_, E>`. The first error stops the scope.
    ///
    /// Use [`spawn_future`](Scope::spawn_future) for a child whose value you need.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory. [`try_spawn`](Scope::try_spawn) returns an error instead.
    #[inline]
    #[track_caller]
    pub fn spawn<F>(&self, future: F)
    where
        F: Future<Output: ChildOutput<O> + Send> + Send + 'static,
        O: Send + 'static,
    {
        self.start_for_scope(future, SharedLink, Location::caller());
    }

    /// Starts a child on the scope's executor, or hands its future back if it cannot be started.
    ///
    /// # Errors
    /// If the scope has ended, or the frame allocator has no memory for the child.
    #[inline]
    #[track_caller]
    pub fn try_spawn<F>(&self, future: F) -> Result<(), SpawnError<F>>
    where
        F: Future<Output: ChildOutput<O> + Send> + Send + 'static,
        O: Send + 'static,
    {
        self.start(Spawnable::anywhere(future), ToScope::new(SharedLink), Location::caller())
    }

    /// Starts a child that need not be `Send`, on the scope's executor, which must have one thread.
    ///
    /// # Panics
    /// If the executor has several threads, or the call is made on another thread; if the scope has ended, or
    /// there is no memory.
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F)
    where
        F: Future<Output: ChildOutput<O> + Send> + 'static,
        O: Send + 'static,
    {
        self.start_local(future, SharedLink, Location::caller());
    }

    /// Starts a child that returns a value, and returns its handle.
    ///
    /// An `Err` of the child goes to the handle, and does not stop the scope. Dropping the handle asks the
    /// child to stop.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    #[inline]
    #[track_caller]
    pub fn spawn_future<F>(&self, future: F) -> Handle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.start_future(future, SharedLink, Location::caller())
    }

    /// Starts a child that need not be `Send`, on the scope's executor, which must have one thread. Returns
    /// its handle.
    ///
    /// # Panics
    /// If the executor has several threads, or the call is made on another thread; if the scope has ended, or
    /// there is no memory.
    #[inline]
    #[track_caller]
    pub fn spawn_future_local<F>(&self, future: F) -> Handle<F::Output, OnOwnerThread>
    where
        F: Future + 'static,
    {
        self.start_future_local(future, SharedLink, Location::caller())
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

    /// Gives the next child a name, for diagnosis and panic messages. A child without a name is shown with
    /// its spawn site.
    ///
    /// ```
    /// use convoke::prelude::*;
    ///
    /// block_on(async {
    ///     scope(async |s| s.named("reader").spawn(async { /* … */ })).await
    /// }).unwrap();
    /// ```
    pub fn named(&self, name: impl Into<Arc<str>>) -> Named<'_, O> {
        Named { scope: self, name: name.into() }
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
    fn start_future_local<F, W>(
        &self,
        future: F,
        attachment: W,
        location: &'static Location<'static>,
    ) -> Handle<F::Output, OnOwnerThread>
    where
        F: Future + 'static,
        W: Attach<O>,
    {
        match self.start_with_handle(Spawnable::here(future), attachment, location) {
            Ok(handle) => handle,
            Err(refused) => refused.panic(),
        }
    }

    /// Starts a child that stays on this thread, and whose failure is the scope's. Panics if it cannot be
    /// started.
    fn start_local<F, W>(&self, future: F, attachment: W, location: &'static Location<'static>)
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

impl<O> Named<'_, O> {
    /// Starts the child like [`Scope::spawn`].
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    #[track_caller]
    pub fn spawn<F>(self, future: F)
    where
        F: Future<Output: ChildOutput<O> + Send> + Send + 'static,
        O: Send + 'static,
    {
        self.scope.start_for_scope(future, WithName::new(self.name, SharedLink), Location::caller());
    }

    /// Starts the child like [`Scope::spawn_local`].
    ///
    /// # Panics
    /// If the executor has several threads, or the call is made on another thread; if the scope has ended, or
    /// there is no memory.
    #[track_caller]
    pub fn spawn_local<F>(self, future: F)
    where
        F: Future<Output: ChildOutput<O> + Send> + 'static,
        O: Send + 'static,
    {
        self.scope.start_local(future, WithName::new(self.name, SharedLink), Location::caller());
    }

    /// Starts the child like [`Scope::spawn_future_local`], and returns its handle.
    ///
    /// # Panics
    /// If the executor has several threads, or the call is made on another thread; if the scope has ended, or
    /// there is no memory.
    #[track_caller]
    pub fn spawn_future_local<F>(self, future: F) -> Handle<F::Output, OnOwnerThread>
    where
        F: Future + 'static,
    {
        self.scope.start_future_local(future, WithName::new(self.name, SharedLink), Location::caller())
    }

    /// Starts the child like [`Scope::spawn_future`], and returns its handle.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    #[track_caller]
    pub fn spawn_future<F>(self, future: F) -> Handle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.scope.start_future(future, WithName::new(self.name, SharedLink), Location::caller())
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
        panic!("{self}")
    }
}

impl<F> fmt::Display for SpawnError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Refused::Ended => f.write_str(
                "the scope has ended, and this `Scope` starts no more children; spawn before the body and the last child \
                 have ended",
            ),
            Refused::NoMemory => write!(
                f,
                "the frame allocator has no memory left for a child whose future has {} bytes; it was not started",
                size_of::<F>()
            ),
            Refused::WrongThread => f.write_str(
                "`spawn_local` needs a scope whose executor has one thread, such as a run loop, and is called on that \
                 thread; use `spawn` with a future that is `Send`",
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

impl<O> Scope<O> {
    /// Starts a child like [`spawn`](Scope::spawn), with another spawn site than the caller's line.
    pub(super) fn spawn_at<F>(&self, future: F, location: &'static Location<'static>)
    where
        F: Future<Output: ChildOutput<O> + Send> + Send + 'static,
        O: Send + 'static,
    {
        self.start_for_scope(future, SharedLink, location);
    }
}
