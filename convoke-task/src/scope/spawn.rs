//! Starting children in a scope.

#![allow(unsafe_code)]

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::panic::Location;
use core::ptr::NonNull;
use std::sync::Arc;

use convoke_core::StopReason;
use convoke_core::raw::OwnerId;

use super::block::Block;
use super::builder::Child;
use super::child::{Attach, Attached, ToHandle, ToScope};
use super::handle::{Handle, Kind, OnOwnerThread};
use super::handle_rendezvous::HandleRendezvous;
use super::options::Name;
use super::output::ChildOutput;
use crate::frame_arc::FrameArc;
use crate::task::{Cell, Ending, TaskHeader, Vacant};

/// Entrance to a [`scope()`](super::scope): starts children in it. `O` is the output of the scope.
///
/// A clone starts children in the same scope. A child that has one can start siblings.
#[doc(alias("JoinSet", "TaskTracker"))]
pub struct Scope<O> {
    pub(super) block: FrameArc<Block<O>>,
}

/// Error of [`Child::try_spawn`]: the child was not started. Its future is inside, unchanged.
pub struct SpawnError<F> {
    future: F,
    reason: Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    Ended,
    NoMemory,
    WrongThread,
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
        O: Send + 'static,
        F: Future<Output: ChildOutput<O> + Send> + Send + 'static, // For a child that borrows, use `local_scope`.
    {
        self.child().spawn(future);
    }

    /// Starts a child that returns a value, and returns its handle.
    ///
    /// An `Err` of the child goes to the handle, and does not stop the scope. Dropping the handle asks the
    /// child to stop, and so does `let _ = s.spawn_future(..)`: use [`spawn`](Scope::spawn) for a child whose
    /// value you do not need.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    #[inline]
    #[track_caller]
    pub fn spawn_future<F>(&self, future: F) -> Handle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static, // For a child that borrows, use `local_scope`.
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
        // SAFETY: the bounds of this function: the future is `Send` and `'static`.
        let started = unsafe { self.start(future, to_scope(attachment), false, location) };
        if let Err(refused) = started {
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
        // SAFETY: the bounds of this function: the future is `Send` and `'static`.
        match unsafe { self.start_with_handle(future, false, attachment, location) } {
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
    ) -> Handle<F::Output, OnOwnerThread>
    where
        F: Future + 'static,
        W: Attach<O>,
    {
        let started = if self.is_owner_thread() {
            // SAFETY: `is_owner_thread` says that the child runs on this thread alone; the future is `'static`.
            unsafe { self.start_with_handle(future, true, attachment, location) }
        } else {
            Err(SpawnError { future, reason: Refused::WrongThread })
        };
        match started {
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
        // SAFETY: the bounds of this function: the future is `Send` and `'static`.
        unsafe { self.start(future, to_scope(attachment), false, location) }.map(drop)
    }

    /// Starts a child with a handle of kind `K`.
    ///
    /// # Safety
    /// The future is `Send`, or the child is `local` and this is the owner thread. The future is `'static`,
    /// or the caller waits for the child before what it borrows ends. `K` is `OnOwnerThread` only for a
    /// `local` child.
    #[inline]
    pub(super) unsafe fn start_with_handle<F: Future, W: Attach<O>, K: Kind>(
        &self,
        future: F,
        local: bool,
        attachment: W,
        location: &'static Location<'static>,
    ) -> Result<Handle<F::Output, K>, SpawnError<F>> {
        const {
            assert!(
                Cell::<F, ToHandle<O, W, K>>::ENDING_AT == HandleRendezvous::<K>::OFFSET,
                "the handle finds the shared part at this offset"
            )
        };
        let ending =
            ToHandle::<O, W, K> { shared: HandleRendezvous::new(location), attachment, _scope: PhantomData };
        // SAFETY: the caller guarantees what `start` asks for. The handle takes over the reference, or the
        // handle mark, that `ToHandle` makes the task with; the outcome is where `Cell::room` says.
        unsafe {
            let child = self.start(future, ending, local, location)?;
            Ok(Handle::new(child, Cell::<F, ToHandle<O, W, K>>::outcome_slot(child)))
        }
    }

    /// Starts a child that stays on this thread, and whose failure is the scope's. Panics if it cannot be
    /// started.
    pub(super) fn start_local<F, W>(&self, future: F, attachment: W, location: &'static Location<'static>)
    where
        F: Future<Output: ChildOutput<O> + Send> + 'static,
        W: Attach<O>,
    {
        let started = if self.is_owner_thread() {
            // SAFETY: `is_owner_thread` says that the child runs on this thread alone; the future is `'static`.
            unsafe { self.start(future, to_scope(attachment), true, location) }.map(drop)
        } else {
            Err(SpawnError { future, reason: Refused::WrongThread })
        };
        if let Err(refused) = started {
            refused.panic();
        }
    }

    /// Returns true if the children of this scope run on this thread alone.
    #[inline]
    fn is_owner_thread(&self) -> bool {
        let owner = self.block.link.home();
        owner == OwnerId::here() && owner != OwnerId::NONE
    }

    /// Starts a child: step 1 of the protocol in `mod.rs`.
    ///
    /// # Safety
    /// The future is `Send`, or the child is `local` and this is the owner thread. The future is `'static`,
    /// or the caller waits for the child before what it borrows ends.
    #[inline]
    pub(super) unsafe fn start<F, M>(
        &self,
        future: F,
        ending: M,
        local: bool,
        location: &'static Location<'static>,
    ) -> Result<NonNull<TaskHeader>, SpawnError<F>>
    where
        F: Future,
        M: Ending<F::Output> + Attached<O>,
    {
        let block = &*self.block;
        // SAFETY: the block does not move, and is alive while `self` has a reference.
        let Some(vacant) = (unsafe { Vacant::allocate(&block.link, location) }) else {
            return Err(SpawnError { future, reason: Refused::NoMemory });
        };
        // SAFETY: the caller says that the future may run where the child does. The block is alive while the
        // child is in its list. No other thread can reach the child before `add`, and none runs it before
        // `post_first`.
        unsafe {
            // Before the lock is taken: other threads wait for that.
            let child = vacant.fill(future, ending, &block.link, local);
            let attachment = M::attachment(Cell::<F, M>::ending_at(child));
            let link = M::Attach::attach(attachment, child, NonNull::from(&block.link));
            let mut state = block.state.lock();
            if state.ended {
                drop(state);
                return Err(SpawnError { future: Cell::<F, M>::take_back(child), reason: Refused::Ended });
            }
            let stopping = state.stop.is_some();
            if stopping {
                TaskHeader::stop_from_the_beginning(child);
            }
            state.children.add(child, stopping);
            drop(state);
            M::Attach::announce(attachment, child);
            TaskHeader::post_first(child, link);
            Ok(child)
        }
    }
}

/// Creates the ending of a child whose failure is the scope's.
fn to_scope<O, W: Attach<O>>(attachment: W) -> ToScope<O, W> {
    ToScope { attachment, _scope: PhantomData }
}

impl<O> Clone for Scope<O> {
    fn clone(&self) -> Self {
        Self { block: self.block.clone() }
    }
}

impl<F> SpawnError<F> {
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
