//! `s.supervise(report)`: children of an ordinary scope whose failures are reported and then dropped. For
//! scopes that never end, such as those of servers: a policy would store every failure until the end.

use core::fmt;
use core::future::Future;
use std::sync::Arc;

use super::reported::{Listener, Reported};
use crate::scope::builder::{
    ChildWork, LocalParent, Name, Naming, OnLocalThread, Once, Options, Parent, ParentOnExecutors, SendPlace,
    Takes, TakesLocal,
};
use crate::scope::{Child, ChildFailure, Handle, SameThread, Scope};

impl<O: Send + 'static> Scope<O> {
    /// Returns an entrance for children whose failure, an error or a panic, does not end the scope: `report`
    /// is called with it, on the executor of the child. For the clients of a server. Children that are
    /// started with the scope itself, and the body, still end it when they fail.
    ///
    /// ```
    /// use convoke::scope::policy::ChildFailure;
    /// use convoke::prelude::*;
    /// use convoke::sync::mpsc;
    ///
    /// async fn client(number: u32) -> Result<(), String> {
    ///     match number {
    ///         1 => Err("hung up".to_owned()),
    ///         2 => panic!("a mistake of ours"),
    ///         _ => Ok(()),
    ///     }
    /// }
    ///
    /// let outcome = block_on(async {
    ///     let (tell, mut told) = mpsc::unbounded();
    ///     scope(async |s| {
    ///         let clients = s.supervise(move |failure: ChildFailure<String>| {
    ///             tell.try_send(failure.to_string()).unwrap();
    ///         });
    ///         for number in 0..4 {
    ///             clients.named(format!("client {number}")).spawn(client(number));
    ///         }
    ///     })
    ///     .await;
    ///     [told.recv().await.unwrap(), told.recv().await.unwrap()]
    /// });
    /// let expected = ["`client 1`: hung up", "`client 2`: panicked: a mistake of ours"];
    /// assert_eq!(outcome.unwrap(), expected);
    /// ```
    pub fn supervise<E>(&self, report: impl Fn(ChildFailure<E>) + Send + Sync + 'static) -> Supervisor<O, E> {
        Supervisor { scope: self.clone(), report: Arc::new(report) }
    }
}

/// Entrance for supervised children. Returned by [`Scope::supervise`]. A child that has a clone can start
/// siblings.
#[must_use = "it does nothing until a child is started with it"]
pub struct Supervisor<O, E> {
    scope: Scope<O>,
    report: Report<E>,
}

/// Function that hears of failures.
type Report<E> = Arc<dyn Fn(ChildFailure<E>) + Send + Sync>;

impl<O: Send + 'static, E: 'static> Supervisor<O, E> {
    /// Starts a child on the scope's executor. Its failure is reported.
    ///
    /// Use [`spawn_future`](Supervisor::spawn_future) for a child whose value you need, and
    /// [`child`](Supervisor::child) for one with options.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    #[track_caller]
    pub fn spawn<F>(&self, future: F)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        self.child().spawn(future);
    }

    /// Starts a child that returns a value, and returns its handle. What the child returns goes to the handle,
    /// and is not reported, as with [`Scope::spawn_future`].
    ///
    /// Dropping the handle asks the child to stop, and so does `let _ = s.spawn_future(..)`.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    #[track_caller]
    pub fn spawn_future<F>(&self, future: F) -> Handle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.child().spawn_future(future)
    }

    /// Returns a builder for one child with a name, for failures and diagnosis.
    pub fn named(&self, name: impl Into<Arc<str>>) -> Child<&Self, Name> {
        self.child().name(name)
    }

    /// Returns a builder for one child with options: a name, an executor, a permit, restarts. The failures
    /// after which a child is restarted go to [`Child::report`], and the last one to the supervisor.
    ///
    /// ```
    /// use std::time::Duration;
    /// use convoke::prelude::*;
    /// use convoke::retry::Backoff;
    /// use convoke::scope::policy::ChildFailure;
    ///
    /// let schedule = Backoff::constant(Duration::from_millis(1)).up_to(2);
    /// let outcome = block_on(async move {
    ///     scope(async |s| {
    ///         let workers = s.supervise(|failure: ChildFailure<&str>| {
    ///             assert_eq!(failure.to_string(), "`worker`, attempt 3: no luck");
    ///         });
    ///         workers.named("worker").restart(schedule).spawn(|| async { Err("no luck") });
    ///     })
    ///     .await
    /// });
    /// assert!(outcome.is_value());
    /// ```
    pub fn child(&self) -> Child<&Self> {
        Child::new(self)
    }

    /// Returns the listener of a child.
    fn listener(&self) -> ToReport<E> {
        ToReport(self.report.clone())
    }
}

impl<O, E> ParentOnExecutors for &Supervisor<O, E> {}

impl<O, E, X> Takes<'static, X, Result<(), E>> for &Supervisor<O, E>
where
    O: Send + 'static,
    E: 'static,
    X: SendPlace,
{
    #[track_caller]
    fn start_child<N, R, W>(self, options: Options<N, X>, future: R::Future)
    where
        N: Naming,
        R: ChildWork<W, Future: Future<Output = Result<(), E>> + Send + 'static>,
    {
        let child = Reported::new(future, R::poll_caught, options.origin(), self.listener());
        (&self.scope).start_child::<N, Once, _>(options, child);
    }
}

impl<O, E> TakesLocal<'static, Result<(), E>> for &Supervisor<O, E>
where
    O: Send + 'static,
    E: 'static,
{
    #[track_caller]
    fn start_local_child<N, R, W>(self, options: Options<N, OnLocalThread>, future: R::Future)
    where
        N: Naming,
        R: ChildWork<W, Future: Future<Output = Result<(), E>> + 'static>,
    {
        let child = Reported::new(future, R::poll_caught, options.origin(), self.listener());
        (&self.scope).start_local_child::<N, Once, _>(options, child);
    }
}

impl<O, E, X: SendPlace> Parent<'static, X> for &Supervisor<O, E> {
    type Handle<T>
        = Handle<T>
    where
        T: 'static;

    #[track_caller]
    fn start_child_future<N, F>(self, options: Options<N, X>, future: F) -> Handle<F::Output>
    where
        N: Naming,
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        (&self.scope).start_child_future(options, future)
    }
}

impl<O, E> LocalParent<'static> for &Supervisor<O, E> {
    type Handle<T>
        = Handle<T, SameThread>
    where
        T: 'static;

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
        (&self.scope).start_local_future(options, future)
    }
}

/// Reports the failure of a child.
struct ToReport<E>(Report<E>);

impl<E> Listener<(), E> for ToReport<E> {
    type Output = ();

    fn hear(&mut self, result: Result<(), ChildFailure<E>>) {
        if let Err(failure) = result {
            (self.0)(failure);
        }
    }
}

impl<O, E> Clone for Supervisor<O, E> {
    fn clone(&self) -> Self {
        Self { scope: self.scope.clone(), report: self.report.clone() }
    }
}

impl<O, E> fmt::Debug for Supervisor<O, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisor").finish_non_exhaustive()
    }
}
