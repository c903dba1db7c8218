//! Starting children in a scope with a policy.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use std::sync::Arc as NameArc;

use convoke_core::Executor;
use convoke_core::raw::sync::Arc;

use super::caught::Caught;
use super::failures::{Failure, FailureKind};
use super::restarting::Restarting;
use super::rules::Policy;
use super::tally::{Enough, Ledger};
use crate::schedule::Backoff;
use crate::scope::Scope;

/// Starts children in a scope with a policy: see [`scope_with()`](super::scope_with()). It may be cloned, and given to
/// children, who then start others beside them.
pub struct PolicyScope<P, V, E> {
    pub(super) scope: Scope<Result<(), Enough>>,
    pub(super) ledger: Arc<Ledger<P, V, E>>,
    /// Of the next child.
    pub(super) name: Option<NameArc<str>>,
}

/// Whose failure it is.
#[derive(Clone)]
pub(super) struct Whose {
    pub(super) name: Option<NameArc<str>>,
    pub(super) location: &'static Location<'static>,
}

impl Whose {
    pub(super) fn failure<E>(&self, attempt: u32, kind: FailureKind<E>) -> Failure<E> {
        Failure { name: self.name.clone(), location: self.location, attempt, kind }
    }
}

impl<P, V, E> PolicyScope<P, V, E>
where
    P: Policy<V, E> + Send + Sync + 'static,
    V: Send + 'static,
    E: Send + 'static,
{
    pub(super) fn new(scope: Scope<Result<(), Enough>>, ledger: Arc<Ledger<P, V, E>>) -> Self {
        Self { scope, ledger, name: None }
    }

    /// A handle to the same scope whose children have this name, in failures and for people who look.
    pub fn named(&self, name: impl Into<NameArc<str>>) -> Self {
        Self { name: Some(name.into()), ..self.clone() }
    }

    /// Starts a child on the scope's executor. Its result is for the policy.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    #[track_caller]
    pub fn spawn<F>(&self, future: F)
    where
        F: Future<Output = Result<V, E>> + Send + 'static,
    {
        self.start(self.reported(future, Location::caller()));
    }

    /// Starts a child on another executor. Its result is for the policy.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    ///
    /// ```
    /// use convoke::policy::WaitForAll;
    /// use convoke::prelude::*;
    ///
    /// let pool = ThreadPool::new(2)?;
    /// let executor = pool.executor();
    /// let outcome = sync_wait(task(async move {
    ///     scope_with(WaitForAll, async |s| {
    ///         s.spawn(async { Ok::<_, String>(0) }); // On the thread that waits,
    ///         s.spawn_on(&executor, async { Ok((1..=1000_u64).sum()) }); // and on the pool.
    ///     })
    ///     .await
    /// }));
    /// let mut values = outcome.unwrap().unwrap();
    /// values.sort();
    /// assert_eq!(values, [0, 500_500]);
    /// # std::io::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn spawn_on<X, F>(&self, executor: &X, future: F)
    where
        X: Executor,
        F: Future<Output = Result<V, E>> + Send + 'static,
    {
        let child = self.reported(future, Location::caller());
        match &self.name {
            Some(name) => self.scope.named(name.clone()).spawn_on(executor, child),
            None => self.scope.spawn_on(executor, child),
        }
    }

    /// Starts a child that need not be `Send`, on the scope's executor, which must have one thread. Its result is for the
    /// policy.
    ///
    /// # Panics
    /// If that has several threads, or this is another one; if the scope has ended, or there is no memory.
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F)
    where
        F: Future<Output = Result<V, E>> + 'static,
    {
        let child = self.reported(future, Location::caller());
        match &self.name {
            Some(name) => self.scope.named(name.clone()).spawn_local(child),
            None => self.scope.spawn_local(child),
        }
    }

    /// The same future, with its result told to the policy. From now on the scope's work is not done before it has ended.
    fn reported<F>(
        &self,
        future: F,
        location: &'static Location<'static>,
    ) -> impl Future<Output = Result<(), Enough>> + use<F, P, V, E>
    where
        F: Future<Output = Result<V, E>>,
    {
        let whose = self.whose(location);
        let (working, ledger) = (Ledger::works(&self.ledger), self.ledger.clone());
        async move {
            let enough = match Caught::new(future).await {
                Ok(Ok(value)) => ledger.value(value),
                Ok(Err(error)) => ledger.failure(whose.failure(1, FailureKind::Error(error))),
                Err(panic) => ledger.failure(whose.failure(1, FailureKind::Panicked(panic))),
            };
            drop(working);
            enough
        }
    }

    /// Starts a daemon: a child that the scope does not wait for to end by itself. It is asked to stop when the body and all
    /// other children have ended, and awaited then. If it fails before, that is for the policy.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    ///
    /// ```
    /// use convoke::policy::FirstError;
    /// use convoke::prelude::*;
    ///
    /// let outcome = sync_wait(task(async {
    ///     scope_with(FirstError, async |s| {
    ///         s.spawn_daemon(async { forever().await });
    ///         s.spawn(async { Ok::<_, String>(1) });
    ///     })
    ///     .await
    /// }));
    /// assert_eq!(outcome, Outcome::Value(Ok(vec![1])));
    /// ```
    #[track_caller]
    pub fn spawn_daemon<F>(&self, future: F)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        let whose = self.whose(Location::caller());
        let ledger = self.ledger.clone();
        let scope = self.scope.clone();
        let daemon = async move {
            let enough = match Caught::new(future).await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => ledger.failure(whose.failure(1, FailureKind::Error(error))),
                Err(panic) => ledger.failure(whose.failure(1, FailureKind::Panicked(panic))),
            };
            if let Err(Enough) = enough {
                // What it says itself goes to its handle, not to the scope.
                let _ = scope.try_spawn(async { Err(Enough) });
            }
        };
        let handle = match &self.name {
            Some(name) => self.scope.named(name.clone()).spawn_future(daemon),
            None => self.scope.spawn_future(daemon),
        };
        self.ledger.keep(handle);
    }

    /// Starts children that are started again when they fail, after a wait: see [`Restarting::spawn`].
    pub fn restarting(&self, schedule: Backoff) -> Restarting<P, V, E> {
        Restarting::new(self.clone(), schedule)
    }

    pub(super) fn whose(&self, location: &'static Location<'static>) -> Whose {
        Whose { name: self.name.clone(), location }
    }

    #[track_caller]
    pub(super) fn start<F>(&self, child: F)
    where
        F: Future<Output = Result<(), Enough>> + Send + 'static,
    {
        match &self.name {
            Some(name) => self.scope.named(name.clone()).spawn(child),
            None => self.scope.spawn(child),
        }
    }
}

impl<P, V, E> Clone for PolicyScope<P, V, E> {
    fn clone(&self) -> Self {
        Self { scope: self.scope.clone(), ledger: self.ledger.clone(), name: self.name.clone() }
    }
}

impl<P, V, E> fmt::Debug for PolicyScope<P, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyScope").field("name", &self.name).finish_non_exhaustive()
    }
}
