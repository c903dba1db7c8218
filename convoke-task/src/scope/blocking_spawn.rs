//! Starting children in a blocking scope, and waiting for one of them.

#![allow(unsafe_code)]

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::panic::Location;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll};
use std::sync::Arc;

use convoke_core::raw::OwnerId;
use convoke_core::{Outcome, Panic, StopReason};

use super::block::{Block, ChildEnd};
use super::child::{Here, ToScope, Where};
use super::handle::Handle;
use super::named::Titled;
use super::output::ChildOutput;
use super::spawn::Scope;
use crate::task::{Known, TaskHeader};

/// Starts children in a [`blocking_scope`](super::blocking_scope()). `O` is what the scope returns. Children may be given the
/// reference, and then start others beside them.
///
/// The lifetimes are those of [`std::thread::Scope`]: `'scope` is that of the scope, which children may borrow for; `'env` that
/// of what is around it.
pub struct BlockingScope<'scope, 'env: 'scope, O> {
    scope: Scope<O>,
    /// Neither lifetime may be made shorter or longer: then children could borrow for less than they run.
    _scope: PhantomData<&'scope mut &'scope ()>,
    _env: PhantomData<&'env mut &'env ()>,
}

/// Starts children with a name: see [`BlockingScope::named`].
#[must_use = "a name does nothing until a child is started with it"]
pub struct BlockingNamed<'scope, 'env, O> {
    scope: &'scope BlockingScope<'scope, 'env, O>,
    name: Arc<str>,
}

impl<'scope, 'env, O> BlockingScope<'scope, 'env, O> {
    pub(super) fn new(scope: Scope<O>) -> Self {
        Self { scope, _scope: PhantomData, _env: PhantomData }
    }

    /// Starts a child. It returns `()`, or a `Result<(), E>` where the scope returns a `Result<_, E>`; the first error stops
    /// the scope.
    ///
    /// # Panics
    /// If there is no memory.
    #[track_caller]
    pub fn spawn<F>(&'scope self, future: F)
    where
        F: Future<Output: ChildOutput<O> + Send> + Send + 'scope,
        O: Send,
    {
        self.start(future, AndStop, Location::caller());
    }

    /// Starts a child that returns something, and returns its handle.
    ///
    /// An `Err` that it returns is the handle's: the scope is not stopped by it. Dropping the handle asks the child to stop.
    ///
    /// # Panics
    /// If there is no memory.
    #[track_caller]
    pub fn spawn_future<F>(&'scope self, future: F) -> BlockingHandle<'scope, F::Output>
    where
        F: Future<Output: Send> + Send + 'scope,
    {
        self.start_future(future, AndStop, Location::caller())
    }

    /// Gives the next child a name, for people who look, and for panics. Without one it is known by where it was started.
    pub fn named(&'scope self, name: impl Into<Arc<str>>) -> BlockingNamed<'scope, 'env, O> {
        BlockingNamed { scope: self, name: name.into() }
    }

    /// Asks all children to stop, those that are there and those that come. They are waited for as before.
    pub fn request_stop(&self, reason: StopReason) {
        self.scope.block.stop_children(reason);
    }

    fn start<F, W>(&self, future: F, place: W, location: &'static Location<'static>)
    where
        F: Future<Output: ChildOutput<O> + Send> + Send + 'scope,
        O: Send,
        W: Where<O>,
    {
        let ending: ToScope<O, W> = ToScope { place, _scope: PhantomData };
        // SAFETY: the future is `Send`. What it borrows lives for `'scope`, and that is not over before the scope's function
        // has waited for the child: the body can name no other `'scope`.
        let started = unsafe { self.scope.start(future, ending, false, location) };
        if let Err(refused) = started {
            refused.panic();
        }
    }

    fn start_future<F, W>(
        &self,
        future: F,
        place: W,
        location: &'static Location<'static>,
    ) -> BlockingHandle<'scope, F::Output>
    where
        F: Future<Output: Send> + Send + 'scope,
        W: Where<O>,
    {
        // SAFETY: as in `start`.
        let handle = match unsafe { self.scope.start_with_handle(future, false, place, location) } {
            Ok(handle) => handle,
            Err(refused) => refused.panic(),
        };
        BlockingHandle { handle, home: self.scope.block.place.home(), location, _scope: PhantomData }
    }
}

impl<'scope, O> BlockingNamed<'scope, '_, O> {
    /// As [`BlockingScope::spawn`].
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    pub fn spawn<F>(self, future: F)
    where
        F: Future<Output: ChildOutput<O> + Send> + Send + 'scope,
        O: Send,
    {
        self.scope.start(future, Titled::new(self.name, AndStop), Location::caller());
    }

    /// As [`BlockingScope::spawn_future`].
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    pub fn spawn_future<F>(self, future: F) -> BlockingHandle<'scope, F::Output>
    where
        F: Future<Output: Send> + Send + 'scope,
    {
        self.scope.start_future(future, Titled::new(self.name, AndStop), Location::caller())
    }
}

/// In the scope's own place. Nobody polls a blocking scope: a child that fails stops the others by itself.
///
/// Its failure, or the second one, which is dropped, may borrow from around the scope: both happens before the scope is told
/// that the child has ended.
struct AndStop;

// SAFETY: as for `Here`.
unsafe impl<O> Where<O> for AndStop {
    #[inline]
    unsafe fn block(&self, child: NonNull<TaskHeader>) -> NonNull<Block<O>> {
        // SAFETY: the caller's.
        unsafe { Where::<O>::block(&Here, child) }
    }

    unsafe fn tell(&self, child: NonNull<TaskHeader>, end: ChildEnd<O>) -> Known {
        // SAFETY: the caller's: the block is there until it is told.
        unsafe {
            let block: NonNull<Block<O>> = self.block(child);
            if let ChildEnd::Failed(failure) = end {
                block.as_ref().fail(failure);
                // Should an executor panic here: the scope is told nevertheless.
                let _ = Panic::catch(|| block.as_ref().stop_children(StopReason::Sibling));
            }
            Block::child_came_home(block, child)
        }
    }
}

/// What [`BlockingScope::spawn_future`] returns: waits for what a child returns. Blocking code calls
/// [`wait`](BlockingHandle::wait); another child may await it.
///
/// - *Completes with* what the child returned. Stopped, if the child was. If the child panicked, the panic goes on here, with
///   the child's name.
/// - *If dropped*, the child is asked to stop; the scope waits for it as for all others.
/// - *Panics*, if awaited, outside a task.
#[must_use = "dropping the handle asks the child to stop; wait for it, or start the child with `spawn`"]
pub struct BlockingHandle<'scope, T> {
    handle: Handle<T>,
    /// Of the child.
    home: OwnerId,
    location: &'static Location<'static>,
    _scope: PhantomData<&'scope ()>,
}

impl<T> BlockingHandle<'_, T> {
    /// Blocks this thread until the child has ended.
    ///
    /// # Panics
    /// If the child has: the panic goes on here. And if this is the thread that would have to run the child.
    #[track_caller]
    pub fn wait(self) -> Outcome<T> {
        assert!(
            self.home == OwnerId::NONE || self.home != OwnerId::here(),
            "the child started at {} runs on this thread alone, which cannot wait for it; await the handle instead",
            self.location
        );
        self.handle.wait().resume_panic()
    }

    /// Asks the child to stop. It is waited for as before.
    pub fn request_stop(&self) {
        self.handle.request_stop();
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

impl<O> fmt::Debug for BlockingNamed<'_, '_, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingNamed").field("name", &self.name).finish_non_exhaustive()
    }
}
