//! `s.supervise(report)`: children of an ordinary scope whose failures are told and forgotten. For scopes that have no end, as those of
//! servers: a policy would keep every failure until then.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use std::sync::Arc;

use convoke_core::Executor;

use super::caught::Caught;
use super::failures::{Failure, FailureKind};
use super::handle::Whose;
use crate::scope::Scope;

impl<O: Send + 'static> Scope<O> {
    /// Starts children whose failure, an error or a panic, does not end the scope: it is told to `report`, on the executor of
    /// the child, and forgotten. For the clients of a server. What is started with the scope itself, and its body, end it as
    /// ever when they fail.
    ///
    /// ```
    /// use convoke::policy::Failure;
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
    /// let outcome = sync_wait(task(async {
    ///     let (tell, mut told) = mpsc::unbounded();
    ///     scope(async |s| {
    ///         let clients = s.supervise(move |failure: Failure<String>| tell.try_send(failure.to_string()).unwrap());
    ///         for number in 0..4 {
    ///             clients.named(format!("client {number}")).spawn(client(number));
    ///         }
    ///     })
    ///     .await;
    ///     [told.recv().await.unwrap(), told.recv().await.unwrap()]
    /// }));
    /// assert_eq!(outcome.unwrap(), ["`client 1`: hung up", "`client 2`: panicked: a mistake of ours"]);
    /// ```
    pub fn supervise<E>(&self, report: impl Fn(Failure<E>) + Send + Sync + 'static) -> Supervisor<O, E> {
        Supervisor { scope: self.clone(), report: Arc::new(report), name: None }
    }
}

/// See [`Scope::supervise`]. It may be cloned, and given to children, who then start others beside them.
#[must_use = "it does nothing until a child is started with it"]
pub struct Supervisor<O, E> {
    scope: Scope<O>,
    report: Arc<dyn Fn(Failure<E>) + Send + Sync>,
    /// Of the next child.
    name: Option<Arc<str>>,
}

impl<O: Send + 'static, E: 'static> Supervisor<O, E> {
    /// A handle to the same whose children have this name, in failures and for people who look.
    pub fn named(&self, name: impl Into<Arc<str>>) -> Self {
        Self { name: Some(name.into()), ..self.clone() }
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
        let child = self.reported(future, Location::caller());
        match &self.name {
            Some(name) => self.scope.named(name.clone()).spawn(child),
            None => self.scope.spawn(child),
        }
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
        let child = self.reported(future, Location::caller());
        match &self.name {
            Some(name) => self.scope.named(name.clone()).spawn_on(executor, child),
            None => self.scope.spawn_on(executor, child),
        }
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
        let child = self.reported(future, Location::caller());
        match &self.name {
            Some(name) => self.scope.named(name.clone()).spawn_local(child),
            None => self.scope.spawn_local(child),
        }
    }

    fn reported<F>(
        &self,
        future: F,
        location: &'static Location<'static>,
    ) -> impl Future<Output = ()> + use<F, O, E>
    where
        F: Future<Output = Result<(), E>>,
    {
        let (whose, report) = (Whose { name: self.name.clone(), location }, self.report.clone());
        async move {
            match Caught::new(future).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => report(whose.failure(1, FailureKind::Error(error))),
                Err(panic) => report(whose.failure(1, FailureKind::Panicked(panic))),
            }
        }
    }
}

impl<O, E> Clone for Supervisor<O, E> {
    fn clone(&self) -> Self {
        Self { scope: self.scope.clone(), report: self.report.clone(), name: self.name.clone() }
    }
}

impl<O, E> fmt::Debug for Supervisor<O, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisor").field("name", &self.name).finish_non_exhaustive()
    }
}
