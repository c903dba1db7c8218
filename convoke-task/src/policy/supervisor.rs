//! `s.supervise(report)`: children of an ordinary scope whose failures are reported and then dropped. For
//! scopes that never end, such as those of servers: a policy would store every failure until the end.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use std::sync::Arc;

use convoke_core::Executor;

use super::entrance::Entrance;
use super::failures::ChildFailure;
use crate::scope::Scope;

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
        Supervisor { entrance: Entrance::new(self.clone()), report: Arc::new(report) }
    }
}

/// Entrance for supervised children. Returned by [`Scope::supervise`]. A child that has a clone can start
/// siblings.
#[must_use = "it does nothing until a child is started with it"]
pub struct Supervisor<O, E> {
    entrance: Entrance<O>,
    report: Arc<dyn Fn(ChildFailure<E>) + Send + Sync>,
}

impl<O: Send + 'static, E: 'static> Supervisor<O, E> {
    /// Returns an entrance that gives this name to its children, for failures and diagnosis.
    pub fn named(&self, name: impl Into<Arc<str>>) -> Self {
        Self { entrance: self.entrance.named(name.into()), report: self.report.clone() }
    }

    /// Starts a child on the scope's executor. Its failure is reported.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    #[track_caller]
    pub fn spawn<F>(&self, future: F)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        self.entrance.spawn(self.reported(future, Location::caller()));
    }

    /// Starts a child on `executor`. Its failure is reported there.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    #[track_caller]
    pub fn spawn_on<X, F>(&self, executor: &X, future: F)
    where
        X: Executor,
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        self.entrance.spawn_on(executor, self.reported(future, Location::caller()));
    }

    /// Starts a child that need not be `Send`, on the scope's executor, which must have one thread. Its
    /// failure is reported.
    ///
    /// # Panics
    /// If the executor has several threads, or the call is made on another thread; if the scope has ended, or
    /// there is no memory.
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F)
    where
        F: Future<Output = Result<(), E>> + 'static,
    {
        self.entrance.spawn_local(self.reported(future, Location::caller()));
    }

    /// Wraps a child, so that its failure is reported.
    fn reported<F>(
        &self,
        future: F,
        location: &'static Location<'static>,
    ) -> impl Future<Output = ()> + use<F, O, E>
    where
        F: Future<Output = Result<(), E>>,
    {
        let (whose, report) = (self.entrance.whose(location), self.report.clone());
        async move {
            if let Err(failure) = whose.awaited(1, future).await {
                report(failure);
            }
        }
    }
}

impl<O, E> Clone for Supervisor<O, E> {
    fn clone(&self) -> Self {
        Self { entrance: self.entrance.clone(), report: self.report.clone() }
    }
}

impl<O, E> fmt::Debug for Supervisor<O, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisor").field("name", &self.entrance.name).finish_non_exhaustive()
    }
}
