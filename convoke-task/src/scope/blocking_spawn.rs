//! Children of a blocking scope, and their handles.

#![allow(unsafe_code)]

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use convoke_core::raw::OwnerId;
use convoke_core::{Outcome, StopReason};

use super::block::{ChildEnd, LeavingChild};
use super::builder::Child;
use super::child::{Attach, ToScope};
use super::handle::Handle;
use super::options::{ChildWork, Inherited, Name, Naming};
use super::output::ChildOutput;
use super::parent::{Options, Parent, Takes};
use super::spawn::Scope;
use crate::stop_handle::StopHandle;
use crate::task::{Left, Spawnable};

/// Entrance to a [`blocking_scope`](super::blocking_scope()): starts children in it. `O` is the output of the
/// scope. A child that has the reference can start siblings.
///
/// The lifetimes are those of [`std::thread::Scope`]: children borrow for `'scope`, the time that the scope
/// takes; `'env` is the lifetime of what is around the scope.
pub struct BlockingScope<'scope, 'env: 'scope, O> {
    scope: Scope<O>,
    /// Invariant in both lifetimes: with a shorter one, a child could borrow for less time than it runs.
    _scope: PhantomData<&'scope mut &'scope ()>,
    _env: PhantomData<&'env mut &'env ()>,
}

impl<'scope, 'env, O> BlockingScope<'scope, 'env, O> {
    pub(super) fn new(scope: Scope<O>) -> Self {
        Self { scope, _scope: PhantomData, _env: PhantomData }
    }

    /// Starts a child on the scope's executor. The child returns `()`, or a `Result<(), E>` if the scope
    /// returns a `Result<_, E>`. The first error stops the scope.
    ///
    /// Use [`spawn_future`](BlockingScope::spawn_future) for a child whose value you need, and
    /// [`child`](BlockingScope::child) for one with options.
    ///
    /// # Panics
    /// If there is no memory.
    #[track_caller]
    pub fn spawn<F>(&'scope self, future: F)
    where
        F: Future<Output: ChildOutput<O> + Send> + Send + 'scope,
        O: Send,
    {
        self.child().spawn(future);
    }

    /// Starts a child that returns a value, and returns its handle.
    ///
    /// An `Err` of the child goes to the handle, and does not stop the scope. Dropping the handle asks the
    /// child to stop, and so does `let _ = s.spawn_future(..)`.
    ///
    /// # Panics
    /// If there is no memory.
    #[track_caller]
    pub fn spawn_future<F>(&'scope self, future: F) -> BlockingHandle<'scope, F::Output>
    where
        F: Future<Output: Send> + Send + 'scope,
    {
        self.child().spawn_future(future)
    }

    /// Returns a builder for one child with a name, for diagnosis and panic messages. A child without a name
    /// is shown with its spawn site.
    pub fn named(&'scope self, name: impl Into<Arc<str>>) -> Child<&'scope Self, Name> {
        self.child().name(name)
    }

    /// Returns a builder for one child with options: a name, a permit, restarts.
    pub fn child(&'scope self) -> Child<&'scope Self> {
        Child::new(self)
    }

    /// Asks all children to stop, also those that are started later. The scope still waits for them.
    pub fn request_stop(&self, reason: StopReason) {
        self.scope.block.stop_children(reason);
    }

    /// Takes a future that borrows for `'scope`.
    fn spawnable<F: Future + Send + 'scope>(&self, future: F) -> Spawnable<F> {
        // SAFETY: `'scope` ends after the scope's function has waited for the child: the body is generic over
        // `'scope`, and so can name no shorter one.
        unsafe { Spawnable::borrowing(future) }
    }
}

impl<'scope, O, T> Takes<'scope, Inherited, T> for &'scope BlockingScope<'scope, '_, O>
where
    O: Send,
    T: ChildOutput<O> + Send,
{
    #[track_caller]
    fn start_child<N, R, W>(self, options: Options<N, Inherited>, future: R::Future)
    where
        N: Naming,
        R: ChildWork<W, Future: Future<Output = T> + Send + 'scope>,
    {
        let ending = ToScope::new(options.name.attach(AndStop));
        if let Err(refused) = self.scope.start(self.spawnable(future), ending, options.location) {
            refused.panic();
        }
    }
}

impl<'scope, O> Parent<'scope, Inherited> for &'scope BlockingScope<'scope, '_, O> {
    type Handle<T>
        = BlockingHandle<'scope, T>
    where
        T: 'scope;

    #[track_caller]
    fn start_child_future<N, F>(
        self,
        options: Options<N, Inherited>,
        future: F,
    ) -> BlockingHandle<'scope, F::Output>
    where
        N: Naming,
        F: Future<Output: Send + 'scope> + Send + 'scope,
    {
        let location = options.location;
        let attachment = options.name.attach(AndStop);
        let handle = match self.scope.start_with_handle(self.spawnable(future), attachment, location) {
            Ok(handle) => handle,
            Err(refused) => refused.panic(),
        };
        BlockingHandle { handle, owner: self.scope.block.link.owner_id(), location, _scope: PhantomData }
    }
}

/// The connection of a child to a blocking scope, which has no future that is polled: a child that fails asks
/// its siblings to stop.
///
/// A failure may borrow from around the scope. It is stored, or dropped if it is the second one, before the
/// child is removed from the list, and so before the scope ends.
struct AndStop;

// SAFETY: it has no link of its own.
unsafe impl<O> Attach<O> for AndStop {
    fn ended(&self, child: LeavingChild<'_, O>, end: ChildEnd<O>) -> Left {
        if let ChildEnd::Failed(failure) = end {
            child.fail_and_stop(failure);
        }
        child.finish()
    }
}

/// Handle of a child of a blocking scope. Returned by [`BlockingScope::spawn_future`]. Blocking code calls
/// [`wait`](BlockingHandle::wait); another child awaits it.
///
/// - *Completes with* the value of the child. Stopped, if the child was stopped, or if the awaiting task is
///   asked to stop.
/// - *If dropped*, the child is asked to stop. The scope still waits for it.
/// - *Runs on*: the child, on the scope's executor. Awaiting the handle runs nothing.
/// - *Panics* with the panic of the child, and its name; and, if awaited, outside a task.
#[must_use = "dropping the handle stops the child, and so does `let _ =`; wait for it, or start the child with `spawn`"]
pub struct BlockingHandle<'scope, T> {
    handle: Handle<T>,
    /// The owner thread of the child.
    owner: OwnerId,
    location: &'static Location<'static>,
    _scope: PhantomData<&'scope ()>,
}

impl<T> BlockingHandle<'_, T> {
    /// Blocks this thread until the child has ended, and returns its outcome.
    ///
    /// # Panics
    /// With the panic of the child; and if this is the thread that would have to run the child.
    #[track_caller]
    pub fn wait(self) -> Outcome<T> {
        assert!(
            self.owner == OwnerId::NONE || self.owner != OwnerId::here(),
            "the child started at {} runs on this thread alone, which cannot wait for it; await the handle instead",
            self.location
        );
        self.handle.wait().resume_panic()
    }

    /// Asks the child to stop, for this reason. The handle can still be waited for.
    pub fn request_stop(&self, reason: StopReason) {
        self.handle.request_stop(reason);
    }

    /// Returns a handle that only asks the child to stop: it can be cloned, and go to any thread.
    ///
    /// # Panics
    /// If the handle was polled to its end.
    pub fn stop_handle(&self) -> StopHandle {
        self.handle.stop_handle()
    }

    /// Returns true if the child has ended. Waiting for it then does not block.
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }
}

impl<T> Future for BlockingHandle<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        Pin::new(&mut self.handle).poll(cx)
    }
}

impl<T> fmt::Debug for BlockingHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BlockingHandle").field(&self.handle).finish()
    }
}

impl<O> fmt::Debug for BlockingScope<'_, '_, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingScope").finish_non_exhaustive()
    }
}
