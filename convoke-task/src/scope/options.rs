//! The options of a child, as types: the name, the place, and the work. So a child pays only for the options
//! that it has: a plain one is its future, without a wrapper.

use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use convoke_core::ExecutorRef;
use convoke_core::env::Changes;
use convoke_sync::OwnedPermit;

use super::caught::{AttemptEnd, poll_caught};
use super::child::{Attach, OwnLink, SharedLink};
use super::guarded::Guarded;
use super::named::WithName;
use super::restart::{ReportRestart, Restarting};
use super::spawn::Scope;
use crate::schedule::Backoff;

/// Name of a child that has none: it is shown with its spawn site.
#[derive(Clone, Copy, Debug)]
pub struct Unnamed;

/// Name of a child. Set by [`Child::name`](super::Child::name).
#[derive(Clone, Debug)]
pub struct Name(pub(super) Arc<str>);

/// Name of a child, or none.
pub trait Naming: Sized {
    /// Returns the name.
    #[doc(hidden)]
    fn get(&self) -> Option<&Arc<str>>;

    /// Adds the name to the connection of a child to its scope.
    #[doc(hidden)]
    fn attach<O, W: Attach<O>>(self, inner: W) -> impl Attach<O>;
}

impl Naming for Unnamed {
    #[inline]
    fn get(&self) -> Option<&Arc<str>> {
        None
    }

    #[inline]
    fn attach<O, W: Attach<O>>(self, inner: W) -> impl Attach<O> {
        inner
    }
}

impl Naming for Name {
    fn get(&self) -> Option<&Arc<str>> {
        Some(&self.0)
    }

    fn attach<O, W: Attach<O>>(self, inner: W) -> impl Attach<O> {
        WithName::new(self.0, inner)
    }
}

/// Place of a child that runs where the children of its scope run.
#[derive(Clone, Copy, Debug)]
pub struct Inherited;

/// Place of a child on an executor of its own. Set by [`Child::on`](super::Child::on).
#[derive(Clone, Debug)]
pub struct OnExecutor(pub(super) ExecutorRef);

/// Place of a child that need not be `Send`, and stays on one thread. Set by
/// [`Child::local`](super::Child::local).
#[derive(Clone, Copy, Debug)]
pub struct OnLocalThread;

/// Place of a child that is `Send`.
pub trait SendPlace {
    /// Creates the connection of a child to its scope.
    #[doc(hidden)]
    fn link<O>(self, scope: &Scope<O>) -> impl Attach<O>;
}

impl SendPlace for Inherited {
    #[inline]
    fn link<O>(self, _: &Scope<O>) -> impl Attach<O> {
        SharedLink
    }
}

impl SendPlace for OnExecutor {
    fn link<O>(self, scope: &Scope<O>) -> impl Attach<O> {
        let changes = Changes::new().executor(self.0);
        OwnLink::new(scope.block.link.env().with(changes), &scope.block)
    }
}

/// Work of a child that runs once: a future.
#[derive(Clone, Copy, Debug)]
pub struct Once;

/// Work of a child that is restarted when it fails: a closure that makes a future for each attempt. Set by
/// [`Child::restart`](super::Child::restart).
pub struct Restart<E> {
    pub(super) schedule: Backoff,
    pub(super) report: Option<ReportRestart<E>>,
}

/// Work of a child that holds a permit until it has ended. Set by [`Child::permit`](super::Child::permit).
#[derive(Debug)]
pub struct Holding<R> {
    pub(super) work: R,
    pub(super) permit: OwnedPermit,
}

/// Work of a child: makes its future from a `W`, which is a future, or a closure that returns one.
#[diagnostic::on_unimplemented(
    message = "`{W}` cannot be started as a child",
    label = "not a future, or not a closure that makes one for each attempt",
    note = "a child is a future; after `restart` it is a closure without arguments that returns a future of a `Result`"
)]
pub trait ChildWork<W>: Sized {
    /// Future of the child.
    type Future: Future;

    /// Makes the future.
    #[doc(hidden)]
    fn into_future<N: Naming>(self, work: W, name: &N, location: &'static Location<'static>) -> Self::Future;

    /// Polls the future, and returns its panic.
    #[doc(hidden)]
    fn poll_caught(
        future: Pin<&mut Self::Future>,
        cx: &mut Context<'_>,
    ) -> Poll<AttemptEnd<<Self::Future as Future>::Output>>;
}

impl<F: Future> ChildWork<F> for Once {
    type Future = F;

    #[inline]
    fn into_future<N: Naming>(self, future: F, _: &N, _: &'static Location<'static>) -> F {
        future
    }

    fn poll_caught(future: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<AttemptEnd<F::Output>> {
        poll_caught(future, cx)
    }
}

impl<M, F, V, E> ChildWork<M> for Restart<E>
where
    M: FnMut() -> F,
    F: Future<Output = Result<V, E>>,
{
    type Future = Restarting<M, F, E>;

    fn into_future<N: Naming>(self, make: M, name: &N, location: &'static Location<'static>) -> Self::Future {
        Restarting::new(self, make, name, location)
    }

    fn poll_caught(future: Pin<&mut Self::Future>, cx: &mut Context<'_>) -> Poll<AttemptEnd<Result<V, E>>> {
        future.poll_attempts(cx)
    }
}

impl<W, R: ChildWork<W>> ChildWork<W> for Holding<R> {
    type Future = Guarded<R::Future, OwnedPermit>;

    fn into_future<N: Naming>(self, work: W, name: &N, location: &'static Location<'static>) -> Self::Future {
        Guarded::new(self.work.into_future(work, name, location), self.permit)
    }

    fn poll_caught(
        future: Pin<&mut Self::Future>,
        cx: &mut Context<'_>,
    ) -> Poll<AttemptEnd<<R::Future as Future>::Output>> {
        R::poll_caught(future.inner(), cx)
    }
}

/// Work that is not restarted yet.
#[diagnostic::on_unimplemented(message = "this child is restarted already")]
pub trait CanRestart {
    /// Work that is restarted.
    type Restarted<E>;

    /// Restarts the work.
    #[doc(hidden)]
    fn restart<E>(self, restart: Restart<E>) -> Self::Restarted<E>;
}

impl CanRestart for Once {
    type Restarted<E> = Restart<E>;

    fn restart<E>(self, restart: Restart<E>) -> Restart<E> {
        restart
    }
}

impl<R: CanRestart> CanRestart for Holding<R> {
    type Restarted<E> = Holding<R::Restarted<E>>;

    fn restart<E>(self, restart: Restart<E>) -> Self::Restarted<E> {
        Holding { work: self.work.restart(restart), permit: self.permit }
    }
}

/// Work that is restarted.
#[diagnostic::on_unimplemented(
    message = "this child is not restarted",
    note = "call `restart` first; the failures of a child that is not restarted go to the scope, or to its `supervise`"
)]
pub trait Restarts<E> {
    /// Sets the report.
    #[doc(hidden)]
    fn set_report(&mut self, report: ReportRestart<E>);
}

impl<E> Restarts<E> for Restart<E> {
    fn set_report(&mut self, report: ReportRestart<E>) {
        self.report = Some(report);
    }
}

impl<E, R: Restarts<E>> Restarts<E> for Holding<R> {
    fn set_report(&mut self, report: ReportRestart<E>) {
        self.work.set_report(report);
    }
}

impl<E> core::fmt::Debug for Restart<E> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Restart").field("schedule", &self.schedule).finish_non_exhaustive()
    }
}
