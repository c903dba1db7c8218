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
use super::child::{Here, Placed, ToHandle, ToScope, Where};
use super::handle::{Handle, Kind, OnOwnerThread};
use super::handle_rendezvous::HandleRendezvous;
use super::named::Titled;
use super::output::ChildOutput;
use crate::frame_arc::FrameArc;
use crate::task::{Cell, Ending, TaskHeader, Vacant};

/// Starts children in a [`scope()`](super::scope). `O` is what the scope returns. It may be cloned, and given to children, who
/// then start others beside them.
#[doc(alias("JoinSet", "TaskTracker"))]
pub struct Scope<O> {
    pub(super) block: FrameArc<Block<O>>,
}

/// Why a child was not started; it is in here, as it was.
pub struct SpawnError<F> {
    future: F,
    reason: Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    Ended,
    NoMemory,
    NotAtHome,
}

/// Starts children with a name: see [`Scope::named`].
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

    /// Starts a child on the scope's executor. It returns `()`, or a `Result<(), E>` where the scope returns a `Result<_, E>`;
    /// the first error stops the scope.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory: see [`try_spawn`](Scope::try_spawn).
    #[inline]
    #[track_caller]
    pub fn spawn<F>(&self, future: F)
    where
        F: Future<Output: ChildOutput<O> + Send> + Send + 'static,
        O: Send + 'static,
    {
        self.start_for_scope(future, Here, Location::caller());
    }

    /// The same; a child that cannot be started is handed back.
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
        // SAFETY: the future is `Send` and `'static`.
        unsafe { self.start(future, to_scope(Here), false, Location::caller()) }.map(drop)
    }

    /// Starts a child that need not be `Send`, on the scope's executor, which must have one thread.
    ///
    /// # Panics
    /// If that has several threads, or this is another one; if the scope has ended, or there is no memory.
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F)
    where
        F: Future<Output: ChildOutput<O> + Send> + 'static,
        O: Send + 'static,
    {
        self.start_local(future, Here, Location::caller());
    }

    /// Starts a child that returns something, and returns its handle.
    ///
    /// An `Err` that it returns is the handle's: the scope is not stopped by it. Dropping the handle asks the child to stop.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    #[inline]
    #[track_caller]
    pub fn spawn_future<F>(&self, future: F) -> Handle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.start_future(future, Here, Location::caller())
    }

    /// Starts a child that need not be `Send`, on the scope's executor, which must have one thread; and returns its handle.
    ///
    /// # Panics
    /// As [`spawn_local`](Scope::spawn_local).
    #[inline]
    #[track_caller]
    pub fn spawn_future_local<F>(&self, future: F) -> Handle<F::Output, OnOwnerThread>
    where
        F: Future + 'static,
    {
        self.start_future_local(future, Here, Location::caller())
    }

    /// Asks all children to stop, those that are there and those that come. The body is not asked; the scope waits for them
    /// as before, and returns what the body does.
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
        self.block.dismiss_children(reason);
    }

    /// Gives the next child a name, for people who look, and for panics. Without one it is known by where it was started.
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

    /// Starts a child whose failure is the scope's.
    #[inline]
    pub(super) fn start_for_scope<F, W>(&self, future: F, place: W, location: &'static Location<'static>)
    where
        F: Future<Output: ChildOutput<O> + Send> + Send + 'static,
        W: Where<O>,
    {
        // SAFETY: the future is `Send` and `'static`.
        let started = unsafe { self.start(future, to_scope(place), false, location) };
        if let Err(refused) = started {
            refused.panic();
        }
    }

    #[inline]
    pub(super) fn start_future<F, W>(
        &self,
        future: F,
        place: W,
        location: &'static Location<'static>,
    ) -> Handle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
        W: Where<O>,
    {
        // SAFETY: the future is `Send` and `'static`.
        match unsafe { self.start_with_handle(future, false, place, location) } {
            Ok(handle) => handle,
            Err(refused) => refused.panic(),
        }
    }

    #[inline]
    fn start_future_local<F, W>(
        &self,
        future: F,
        place: W,
        location: &'static Location<'static>,
    ) -> Handle<F::Output, OnOwnerThread>
    where
        F: Future + 'static,
        W: Where<O>,
    {
        let started = if self.is_at_home() {
            // SAFETY: this thread is at home, and the future is `'static`.
            unsafe { self.start_with_handle(future, true, place, location) }
        } else {
            Err(SpawnError { future, reason: Refused::NotAtHome })
        };
        match started {
            Ok(handle) => handle,
            Err(refused) => refused.panic(),
        }
    }

    /// # Safety
    /// As for `start`; and a handle that stays at home is only for a `local` child.
    #[inline]
    pub(super) unsafe fn start_with_handle<F: Future, W: Where<O>, K: Kind>(
        &self,
        future: F,
        local: bool,
        place: W,
        location: &'static Location<'static>,
    ) -> Result<Handle<F::Output, K>, SpawnError<F>> {
        const {
            assert!(
                Cell::<F, ToHandle<O, W, K>>::ENDING_AT == HandleRendezvous::<K>::AT,
                "the handle looks for it there"
            )
        };
        let ending =
            ToHandle::<O, W, K> { point: HandleRendezvous::new(location), place, _scope: PhantomData };
        // SAFETY: the caller's. The handle takes over the reference that `ToHandle` makes the task with.
        unsafe {
            let child = self.start(future, ending, local, location)?;
            Ok(Handle::new(child, Cell::<F, ToHandle<O, W, K>>::outcome_slot(child)))
        }
    }

    fn start_local<F, W>(&self, future: F, place: W, location: &'static Location<'static>)
    where
        F: Future<Output: ChildOutput<O> + Send> + 'static,
        W: Where<O>,
    {
        let started = if self.is_at_home() {
            // SAFETY: this thread is at home, and the future is `'static`.
            unsafe { self.start(future, to_scope(place), true, location) }.map(drop)
        } else {
            Err(SpawnError { future, reason: Refused::NotAtHome })
        };
        if let Err(refused) = started {
            refused.panic();
        }
    }

    /// Whether what is started here runs on this thread alone.
    #[inline]
    fn is_at_home(&self) -> bool {
        let home = self.block.place.home();
        home == OwnerId::here() && home != OwnerId::NONE
    }

    /// Starts a child.
    ///
    /// # Safety
    /// The future is `Send`, or the child `local` and this thread at home; it is `'static`.
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
        M: Ending<F::Output> + Placed<O>,
    {
        let block = &*self.block;
        // SAFETY: the block does not move.
        let Some(vacant) = (unsafe { Vacant::allocate(&block.place, location) }) else {
            return Err(SpawnError { future, reason: Refused::NoMemory });
        };
        // SAFETY: the caller's. The block stays until the child has come home: it is in its list. Until then nobody knows the
        // child.
        unsafe {
            // Before the lock is taken: others wait for it.
            let child = vacant.fill(future, ending, &block.place, local);
            let hangs_in = M::place(Cell::<F, M>::ending_at(child));
            let place = M::Where::settle(hangs_in, child, NonNull::from(&block.place));
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
            M::Where::announce(hangs_in, child);
            TaskHeader::post_first(child, place);
            Ok(child)
        }
    }
}

fn to_scope<O, W: Where<O>>(place: W) -> ToScope<O, W> {
    ToScope { place, _scope: PhantomData }
}

impl<O> Clone for Scope<O> {
    fn clone(&self) -> Self {
        Self { block: self.block.clone() }
    }
}

impl<O> Named<'_, O> {
    /// As [`Scope::spawn`].
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    pub fn spawn<F>(self, future: F)
    where
        F: Future<Output: ChildOutput<O> + Send> + Send + 'static,
        O: Send + 'static,
    {
        self.scope.start_for_scope(future, Titled::new(self.name, Here), Location::caller());
    }

    /// As [`Scope::spawn_local`].
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    pub fn spawn_local<F>(self, future: F)
    where
        F: Future<Output: ChildOutput<O> + Send> + 'static,
        O: Send + 'static,
    {
        self.scope.start_local(future, Titled::new(self.name, Here), Location::caller());
    }

    /// As [`Scope::spawn_future_local`].
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    pub fn spawn_future_local<F>(self, future: F) -> Handle<F::Output, OnOwnerThread>
    where
        F: Future + 'static,
    {
        self.scope.start_future_local(future, Titled::new(self.name, Here), Location::caller())
    }

    /// As [`Scope::spawn_future`].
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    pub fn spawn_future<F>(self, future: F) -> Handle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.scope.start_future(future, Titled::new(self.name, Here), Location::caller())
    }
}

impl<F> SpawnError<F> {
    /// The future that was not started.
    pub fn into_future(self) -> F {
        self.future
    }

    /// Whether the scope has ended: a handle was kept for longer than it.
    pub fn is_ended(&self) -> bool {
        self.reason == Refused::Ended
    }

    /// Whether the frame allocator has no memory left.
    pub fn is_no_memory(&self) -> bool {
        self.reason == Refused::NoMemory
    }

    #[cold]
    #[track_caller]
    pub(super) fn panic(self) -> ! {
        panic!("{self}")
    }
}

impl<F> fmt::Display for SpawnError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Refused::Ended => f.write_str("the scope has ended: its handle was kept for longer, and starts nothing any more"),
            Refused::NoMemory => write!(
                f,
                "the frame allocator has no memory left for a child whose future has {} bytes; it was not started",
                size_of::<F>()
            ),
            Refused::NotAtHome => f.write_str(
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
    /// As [`spawn`](Scope::spawn), on behalf of somebody who was called there.
    pub(super) fn spawn_at<F>(&self, future: F, location: &'static Location<'static>)
    where
        F: Future<Output: ChildOutput<O> + Send> + Send + 'static,
        O: Send + 'static,
    {
        self.start_for_scope(future, Here, location);
    }
}
