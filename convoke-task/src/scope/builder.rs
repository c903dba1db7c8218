//! `s.child()`: the builder of one child, under all verbs that start children. The types of its options, and
//! the traits of the scopes it works with, appear in signatures only: programs do not name them.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use std::sync::Arc;

use convoke_core::{Executor, ExecutorRef};
use convoke_sync::OwnedPermit;

pub use super::options::{
    CanRestart, ChildWork, Holding, Inherited, Name, Naming, OnExecutor, OnLocalThread, Once, Restart,
    Restarts, SendPlace, Unnamed,
};
pub use super::parent::{LocalParent, Options, Parent, ParentOnExecutors, Takes, TakesLocal};

use super::child::SharedLink;
use super::failure::ChildFailure;
use super::handle::Handle;
use super::output::ChildOutput;
use super::spawn::{Scope, SpawnError};
use super::until_ready::{Ready, Started, ready_pair};
use crate::schedule::Backoff;
use crate::task::Spawnable;

/// Builder of one child: sets its options, then starts it. Returned by `child` and `named` of every scope:
/// [`Scope::child`], [`LocalScope::child`](crate::local_scope::LocalScope::child),
/// [`BlockingScope::child`](super::BlockingScope::child), [`PolicyScope::child`](crate::policy::PolicyScope::child),
/// [`Supervisor::child`](crate::policy::Supervisor::child).
///
/// | option | the child |
/// | --- | --- |
/// | [`name`](Child::name) | has a name in diagnosis, panic messages and failures |
/// | [`on`](Child::on) | runs on another executor |
/// | [`local`](Child::local) | need not be `Send`, and stays on its thread |
/// | [`permit`](Child::permit) | holds a permit until it has ended |
/// | [`restart`](Child::restart) | is made again when it fails |
/// | [`report`](Child::report) | reports the failures after which it is restarted |
/// | [`daemon`](Child::daemon) | is stopped when the others have ended, in a scope with a policy |
///
/// Use [`spawn`](Child::spawn) if a failure of the child is the scope's, and
/// [`spawn_future`](Child::spawn_future) if you need its value. The parameters of the type are the scope and the
/// options, so that a child pays for no option that it does not have.
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::retry::Backoff;
/// use convoke::scope::Bound;
///
/// let outcome = block_on(async {
///     let bound = Bound::new(2);
///     scope(async |s| {
///         let mut runs = 0;
///         let worker = s
///             .child()
///             .name("worker")
///             .permit(bound.take(1).await)
///             .restart(Backoff::constant(Duration::from_millis(1)).up_to(3))
///             .report(|failure| println!("{failure}"))
///             .spawn_future(move || {
///                 runs += 1;
///                 async move { if runs < 3 { Err("fell over") } else { Ok(runs) } }
///             });
///         worker.await
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value(Ok(3)));
/// ```
#[must_use = "no child is started until `spawn` or `spawn_future` is called"]
pub struct Child<P, N = Unnamed, X = Inherited, R = Once> {
    parent: P,
    name: N,
    place: X,
    work: R,
}

impl<P> Child<P> {
    #[inline]
    pub(crate) fn new(parent: P) -> Self {
        Self { parent, name: Unnamed, place: Inherited, work: Once }
    }
}

impl<P> Child<P, Unnamed, OnLocalThread> {
    /// Creates the builder of a child that need not be `Send`.
    pub(crate) fn new_local(parent: P) -> Self {
        Self { parent, name: Unnamed, place: OnLocalThread, work: Once }
    }
}

impl<P, N, X, R> Child<P, N, X, R> {
    /// Returns the builder with another parent.
    pub(crate) fn with_parent<Q>(self, parent: impl FnOnce(P) -> Q) -> Child<Q, N, X, R> {
        let Self { parent: before, name, place, work } = self;
        Child { parent: parent(before), name, place, work }
    }
}

impl<P, X, R> Child<P, Unnamed, X, R> {
    /// Gives the child a name, for diagnosis, panic messages and failures.
    pub fn name(self, name: impl Into<Arc<str>>) -> Child<P, Name, X, R> {
        let Self { parent, place, work, .. } = self;
        Child { parent, name: Name(name.into()), place, work }
    }
}

impl<P, N, R> Child<P, N, Inherited, R> {
    /// Runs the child on `executor`, instead of the scope's.
    pub fn on<E: Executor>(self, executor: &E) -> Child<P, N, OnExecutor, R>
    where
        P: ParentOnExecutors,
    {
        let Self { parent, name, work, .. } = self;
        Child { parent, name, place: OnExecutor(ExecutorRef::new(executor.clone())), work }
    }

    /// Allows the child not to be `Send`. It runs on the scope's executor, which must have one thread, and is
    /// started on that thread: starting it elsewhere panics.
    ///
    /// ```
    /// use std::rc::Rc;
    /// use convoke::prelude::*;
    ///
    /// let outcome = block_on(async {
    ///     scope(async |s| {
    ///         let name = Rc::new("not `Send`");
    ///         s.child().local().spawn_future(async move { name.len() }).await
    ///     })
    ///     .await
    /// });
    /// assert_eq!(outcome, Outcome::Value(10));
    /// ```
    #[doc(alias("spawn_local", "LocalSet"))]
    pub fn local(self) -> Child<P, N, OnLocalThread, R>
    where
        P: LocalParent<'static>,
    {
        let Self { parent, name, work, .. } = self;
        Child { parent, name, place: OnLocalThread, work }
    }
}

impl<P, N, X, R> Child<P, N, X, R> {
    /// Gives the child a permit, which is released when the child has ended. Take it from a
    /// [`Bound`](super::Bound) or a semaphore before the child is made, and there are never more children than
    /// permits.
    ///
    /// ```
    /// use convoke::prelude::*;
    /// use convoke::scope::Bound;
    ///
    /// let outcome = block_on(async {
    ///     let bound = Bound::new(2);
    ///     scope(async |s| {
    ///         for n in 0..10 {
    ///             let permit = bound.take(1).await;
    ///             let print = async move { println!("{n}, of two at a time") };
    ///             s.child().permit(permit).spawn(print);
    ///         }
    ///     })
    ///     .await;
    ///     bound.free()
    /// });
    /// assert_eq!(outcome, Outcome::Value(2));
    /// ```
    pub fn permit(self, permit: OwnedPermit) -> Child<P, N, X, Holding<R>> {
        let Self { parent, name, place, work } = self;
        Child { parent, name, place, work: Holding { work, permit } }
    }

    /// Restarts the child when it fails, with an error or a panic: `spawn` and `spawn_future` then take a
    /// closure, which is called for each attempt, after the next pause of the schedule. When the schedule has
    /// ended, the child ends with the last failure.
    ///
    /// Use [`retry`](crate::schedule::retry()) inside a child if a panic ends it at once.
    ///
    /// ```
    /// use std::time::Duration;
    /// use convoke::prelude::*;
    /// use convoke::retry::Backoff;
    ///
    /// let outcome = block_on(async {
    ///     scope(async |s| {
    ///         let schedule = Backoff::constant(Duration::ZERO).up_to(2);
    ///         s.child().restart(schedule).spawn(|| async { Err("falls over every time") });
    ///         Ok(())
    ///     })
    ///     .await
    /// });
    /// assert_eq!(outcome, Outcome::Value(Err("falls over every time")));
    /// ```
    pub fn restart<E>(self, schedule: Backoff) -> Child<P, N, X, R::Restarted<E>>
    where
        R: CanRestart,
    {
        let Self { parent, name, place, work } = self;
        Child { parent, name, place, work: work.restart(Restart { schedule, report: None }) }
    }

    /// Sets a function that hears of each failure after which the child is restarted. The child ends with the
    /// last one, of which the scope hears, or the handle.
    pub fn report<E>(mut self, report: impl FnMut(&ChildFailure<E>) + Send + 'static) -> Self
    where
        R: Restarts<E>,
    {
        self.work.set_report(Box::new(report));
        self
    }
}

impl<'env, P, N, X, R> Child<P, N, X, R>
where
    N: Naming,
    X: SendPlace,
{
    /// Starts the child. It returns what its scope takes: `()`, or a `Result<(), E>` in a scope that returns a
    /// `Result<_, E>`; a `Result` in a scope with a policy. A failure is the scope's.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    #[inline]
    #[track_caller]
    pub fn spawn<W>(self, work: W)
    where
        R: ChildWork<W, Future: Send + 'env>,
        P: Takes<'env, X, <R::Future as Future>::Output>,
    {
        let (parent, options, future) = self.prepare(work, Location::caller());
        parent.start_child::<N, R, W>(options, future);
    }

    /// Starts the child, and returns its handle, which awaits the value.
    ///
    /// An `Err` of the child goes to the handle, and does not stop the scope. Dropping the handle asks the
    /// child to stop.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    #[inline]
    #[track_caller]
    pub fn spawn_future<W>(self, work: W) -> P::Handle<<R::Future as Future>::Output>
    where
        R: ChildWork<W, Future: Future<Output: Send + 'env> + Send + 'env>,
        P: Parent<'env, X>,
    {
        let (parent, options, future) = self.prepare(work, Location::caller());
        parent.start_child_future(options, future)
    }

    /// Starts the child, and waits until it reports that it is ready: a server that has its port, for example.
    /// The child gets a [`Ready`], to report once, with a value.
    ///
    /// - *Completes with* the value; or with [`EndedEarly`](super::EndedEarly), if the child ended, or dropped
    ///   its `Ready`, without a report. Stopped, if the task is asked to stop, also because the child failed
    ///   and its error stops the scope.
    /// - *If dropped*, the child goes on. It is started by the call, not by the first poll.
    /// - *Runs on*: the child, on its executor.
    /// - *Panics* if the scope has ended, or there is no memory; and outside a task.
    ///
    /// ```
    /// use convoke::prelude::*;
    ///
    /// let outcome = block_on(async {
    ///     scope(async |s| {
    ///         let port = s.named("server").spawn_until_ready(async |ready| {
    ///             ready.report(8080);
    ///             // … and serves.
    ///         });
    ///         port.await
    ///     })
    ///     .await
    /// });
    /// assert_eq!(outcome.unwrap().unwrap(), 8080);
    /// ```
    #[track_caller]
    pub fn spawn_until_ready<T, B, F>(self, child: B) -> Started<T>
    where
        B: FnOnce(Ready<T>) -> F,
        F: Future + Send + 'env,
        R: ChildWork<F, Future: Send + 'env>,
        P: Takes<'env, X, <R::Future as Future>::Output>,
    {
        let (ready, started) = ready_pair(Location::caller());
        self.spawn(child(ready));
        started
    }
}

impl<O, N: Naming> Child<&Scope<O>, N> {
    /// Starts the child, polls it for the first time inside this call, and returns its handle. A child that
    /// completes without a wait has then ended, and nothing went through the run queue. If the executor of the scope is
    /// not the run loop of this thread, such as a pool, the child is queued as by
    /// [`spawn_future`](Child::spawn_future).
    ///
    /// Use it for children that are mostly ready at once, such as handlers of requests; and not with a lock held that
    /// the child needs, nor from a child that was started so itself: each takes the stack of the one before.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use convoke::prelude::*;
    ///
    /// static HAS_RUN: AtomicBool = AtomicBool::new(false);
    ///
    /// let outcome = block_on(async {
    ///     scope(async |s| {
    ///         let child = s.child().spawn_future_eagerly(async {
    ///             HAS_RUN.store(true, Ordering::Relaxed);
    ///             7
    ///         });
    ///         assert!(HAS_RUN.load(Ordering::Relaxed), "before it is awaited");
    ///         child.await
    ///     })
    ///     .await
    /// });
    /// assert_eq!(outcome, Outcome::Value(7));
    /// ```
    #[inline]
    #[track_caller]
    pub fn spawn_future_eagerly<F>(self, future: F) -> Handle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let Self { parent, name, .. } = self;
        let started =
            parent.start_eagerly(Spawnable::anywhere(future), name.attach(SharedLink), Location::caller());
        match started {
            Ok(handle) => handle,
            Err(refused) => refused.panic(),
        }
    }
}

impl<'env, P, N, R> Child<P, N, OnLocalThread, R>
where
    N: Naming,
{
    /// Starts the child, which need not be `Send`. It returns what its scope takes, and a failure is the
    /// scope's.
    ///
    /// # Panics
    /// If the executor has several threads, or the call is made on another thread; if the scope has ended, or
    /// there is no memory.
    #[track_caller]
    pub fn spawn<W>(self, work: W)
    where
        R: ChildWork<W, Future: 'env>,
        P: TakesLocal<'env, <R::Future as Future>::Output>,
    {
        let (parent, options, future) = self.prepare(work, Location::caller());
        parent.start_local_child::<N, R, W>(options, future);
    }

    /// Starts the child, which need not be `Send`, and returns its handle, which awaits the value and stays on
    /// this thread.
    ///
    /// An `Err` of the child goes to the handle, and does not stop the scope. Dropping the handle asks the
    /// child to stop.
    ///
    /// # Panics
    /// If the executor has several threads, or the call is made on another thread; if the scope has ended, or
    /// there is no memory.
    #[inline]
    #[track_caller]
    pub fn spawn_future<W>(self, work: W) -> P::Handle<<R::Future as Future>::Output>
    where
        R: ChildWork<W, Future: Future<Output: 'env> + 'env>,
        P: LocalParent<'env>,
    {
        let (parent, options, future) = self.prepare(work, Location::caller());
        parent.start_local_future(options, future)
    }
}

impl<O, N, X, R> Child<&Scope<O>, N, X, R>
where
    N: Naming,
    X: SendPlace,
{
    /// Starts the child, or hands its future back if it cannot be started.
    ///
    /// # Errors
    /// If the scope has ended, or the frame allocator has no memory for the child.
    #[track_caller]
    pub fn try_spawn<W>(self, work: W) -> Result<(), SpawnError<R::Future>>
    where
        O: Send + 'static,
        R: ChildWork<W, Future: Future<Output: ChildOutput<O> + Send> + Send + 'static>,
    {
        let (scope, options, future) = self.prepare(work, Location::caller());
        let Options { name, place, location } = options;
        scope.try_start_for_scope(future, name.attach(place.link(scope)), location)
    }
}

impl<P, N: Naming, X, R> Child<P, N, X, R> {
    /// Makes the future of the child.
    #[inline]
    fn prepare<W>(self, work: W, location: &'static Location<'static>) -> (P, Options<N, X>, R::Future)
    where
        R: ChildWork<W>,
    {
        let Self { parent, name, place, work: how } = self;
        let future = how.into_future(work, &name, location);
        (parent, Options { name, place, location }, future)
    }
}

impl<P, N: fmt::Debug, X: fmt::Debug, R: fmt::Debug> fmt::Debug for Child<P, N, X, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child")
            .field("name", &self.name)
            .field("place", &self.place)
            .field("work", &self.work)
            .finish_non_exhaustive()
    }
}
