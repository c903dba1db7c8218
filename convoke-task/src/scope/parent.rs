//! The scopes as the builder of a child sees them: which children they take, and how they start them.

use core::future::Future;
use core::panic::Location;

use super::child::SharedLink;
use super::failure::ChildOrigin;
use super::handle::Handle;
use super::options::{ChildWork, Naming, OnLocalThread, SendPlace};
use super::output::ChildOutput;
use super::spawn::Scope;
use crate::task::SameThread;

/// Name, place and spawn site of a child.
#[derive(Debug)]
pub struct Options<N, X> {
    pub(crate) name: N,
    pub(crate) place: X,
    pub(crate) location: &'static Location<'static>,
}

impl<N: Naming, X> Options<N, X> {
    /// Returns name and spawn site, for failures.
    pub(crate) fn origin(&self) -> ChildOrigin {
        ChildOrigin { name: self.name.get().cloned(), location: self.location }
    }
}

/// Scope that starts children at a place `X`, and returns a handle to each. The children borrow for `'env`.
#[diagnostic::on_unimplemented(
    message = "this scope starts no child with a handle there",
    note = "children of a blocking scope or a local scope run on the executor of that scope",
    note = "the children of `results()` and daemons have no handle; start them with `spawn`"
)]
pub trait Parent<'env, X>: Sized {
    /// Handle of a child that returns a `T`.
    type Handle<T>
    where
        T: 'env;

    /// Starts a child with a handle.
    #[doc(hidden)]
    #[track_caller]
    fn start_child_future<N, F>(self, options: Options<N, X>, future: F) -> Self::Handle<F::Output>
    where
        N: Naming,
        F: Future<Output: Send + 'env> + Send + 'env;
}

/// Scope that takes children which return a `T`, at a place `X`. The children borrow for `'env`.
#[diagnostic::on_unimplemented(
    message = "this scope takes no child that returns `{T}`",
    note = "to use what a child returns, start it with `spawn_future` and await the handle"
)]
pub trait Takes<'env, X, T>: Sized {
    /// Starts a child.
    #[doc(hidden)]
    #[track_caller]
    fn start_child<N, R, W>(self, options: Options<N, X>, future: R::Future)
    where
        N: Naming,
        R: ChildWork<W, Future: Future<Output = T> + Send + 'env>;
}

/// Scope that starts children which need not be `Send`, and returns a handle to each.
#[diagnostic::on_unimplemented(
    message = "the children of this scope are `Send`",
    note = "use `scope`, or `local_scope_not_send`, for children that are not"
)]
pub trait LocalParent<'env>: Sized {
    /// Handle of a child that returns a `T`.
    type Handle<T>
    where
        T: 'env;

    /// Starts a child with a handle.
    #[doc(hidden)]
    #[track_caller]
    fn start_local_future<N, F>(
        self,
        options: Options<N, OnLocalThread>,
        future: F,
    ) -> Self::Handle<F::Output>
    where
        N: Naming,
        F: Future<Output: 'env> + 'env;
}

/// Scope that takes children which need not be `Send`, and return a `T`.
#[diagnostic::on_unimplemented(
    message = "this scope takes no child that returns `{T}` and is not `Send`",
    note = "to use what a child returns, start it with `spawn_future` and await the handle"
)]
pub trait TakesLocal<'env, T>: Sized {
    /// Starts a child.
    #[doc(hidden)]
    #[track_caller]
    fn start_local_child<N, R, W>(self, options: Options<N, OnLocalThread>, future: R::Future)
    where
        N: Naming,
        R: ChildWork<W, Future: Future<Output = T> + 'env>;
}

/// Scope whose children may run on an executor of their own.
#[diagnostic::on_unimplemented(
    message = "the children of this scope run on its own executor",
    note = "use `scope` for children on several executors"
)]
pub trait ParentOnExecutors {}

impl<O> ParentOnExecutors for &Scope<O> {}

impl<O, X: SendPlace> Parent<'static, X> for &Scope<O> {
    type Handle<T>
        = Handle<T>
    where
        T: 'static;

    #[inline]
    #[track_caller]
    fn start_child_future<N, F>(self, options: Options<N, X>, future: F) -> Handle<F::Output>
    where
        N: Naming,
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let Options { name, place, location } = options;
        Scope::start_future(self, future, name.attach(place.link(self)), location)
    }
}

impl<O, T, X> Takes<'static, X, T> for &Scope<O>
where
    O: Send + 'static,
    T: ChildOutput<O> + Send,
    X: SendPlace,
{
    #[inline]
    #[track_caller]
    fn start_child<N, R, W>(self, options: Options<N, X>, future: R::Future)
    where
        N: Naming,
        R: ChildWork<W, Future: Future<Output = T> + Send + 'static>,
    {
        let Options { name, place, location } = options;
        self.start_for_scope(future, name.attach(place.link(self)), location);
    }
}

impl<O> LocalParent<'static> for &Scope<O> {
    type Handle<T>
        = Handle<T, SameThread>
    where
        T: 'static;

    #[inline]
    #[track_caller]
    fn start_local_future<N, F>(
        self,
        options: Options<N, OnLocalThread>,
        future: F,
    ) -> Handle<F::Output, SameThread>
    where
        N: Naming,
        F: Future<Output: 'static> + 'static,
    {
        Scope::start_future_local(self, future, options.name.attach(SharedLink), options.location)
    }
}

impl<O, T> TakesLocal<'static, T> for &Scope<O>
where
    O: Send + 'static,
    T: ChildOutput<O> + Send,
{
    #[track_caller]
    fn start_local_child<N, R, W>(self, options: Options<N, OnLocalThread>, future: R::Future)
    where
        N: Naming,
        R: ChildWork<W, Future: Future<Output = T> + 'static>,
    {
        Scope::start_local(self, future, options.name.attach(SharedLink), options.location);
    }
}
