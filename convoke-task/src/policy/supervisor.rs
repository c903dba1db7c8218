//! `s.supervise(report)`: children of an ordinary scope whose failures are told and forgotten. For scopes that have no end, as those of
//! servers: a policy would keep every failure until then.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use std::sync::Arc;

use convoke_core::Executor;

use super::entrance::Entrance;
use super::failures::Failure;
use crate::scope::Scope;

impl<O: Send + 'static> Scope<O> {
    /// Starts children whose failure, an error or a panic, does not end the scope: it is told to `report`, on the executor of
    /// the child, and forgotten. For the clients of a server. What is started with the scope itself, and its body, end it as
    /// ever when they fail.
    ///
    /// ```
    /// use convoke::scope::policy::Failure;
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
    ///         let clients = s.supervise(move |failure: Failure<String>| tell.try_send(failure.to_string()).unwrap());
    ///         for number in 0..4 {
    ///             clients.named(format!("client {number}")).spawn(client(number));
    ///         }
    ///     })
    ///     .await;
    ///     [told.recv().await.unwrap(), told.recv().await.unwrap()]
    /// });
    /// assert_eq!(outcome.unwrap(), ["`client 1`: hung up", "`client 2`: panicked: a mistake of ours"]);
    /// ```
    pub fn supervise<E>(&self, report: impl Fn(Failure<E>) + Send + Sync + 'static) -> Supervisor<O, E> {
        Supervisor { entrance: Entrance::new(self.clone()), report: Arc::new(report) }
    }
}

/// See [`Scope::supervise`]. It may be cloned, and given to children, who then start others beside them.
#[must_use = "it does nothing until a child is started with it"]
pub struct Supervisor<O, E> {
    entrance: Entrance<O>,
    report: Arc<dyn Fn(Failure<E>) + Send + Sync>,
}

impl<O: Send + 'static, E: 'static> Supervisor<O, E> {
    /// A handle to the same whose children have this name, in failures and for people who look.
    pub fn named(&self, name: impl Into<Arc<str>>) -> Self {
        Self { entrance: self.entrance.named(name.into()), report: self.report.clone() }
    }

    /// Starts a child on the scope's executor. How it fails is told.
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

    /// Starts a child on another executor. How it fails is told there.
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

    /// Starts a child that need not be `Send`, on the scope's executor, which must have one thread. How it fails is told.
    ///
    /// # Panics
    /// If that has several threads, or this is another one; if the scope has ended, or there is no memory.
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F)
    where
        F: Future<Output = Result<(), E>> + 'static,
    {
        self.entrance.spawn_local(self.reported(future, Location::caller()));
    }

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
