//! The entrance to a scope with a policy.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::time::Duration;
use std::sync::Arc as NameArc;

use convoke_core::raw::sync::Arc;
use convoke_core::{Executor, Panic};

use super::entrance::Entrance;
use super::restarting::Restarting;
use super::rules::Policy;
use super::tally::{Enough, Ledger};
use crate::schedule::Backoff;
use crate::scope::Scope;
use convoke_exec::time::sleep;

/// Pause of a daemon between two attempts to start a child for its failure, when there is no memory.
const MEMORY_PAUSE: Duration = Duration::from_millis(1);

/// Entrance to a scope with a policy, see [`scope_with()`](super::scope_with()): starts children in it. A
/// child that has a clone can start siblings.
pub struct PolicyScope<P, V, E> {
    pub(super) entrance: Entrance<Result<(), Enough>>,
    pub(super) ledger: Arc<Ledger<P, V, E>>,
}

impl<P, V, E> PolicyScope<P, V, E>
where
    P: Policy<V, E> + Send + Sync + 'static,
    V: Send + 'static,
    E: Send + 'static,
{
    pub(super) fn new(scope: Scope<Result<(), Enough>>, ledger: Arc<Ledger<P, V, E>>) -> Self {
        Self { entrance: Entrance::new(scope), ledger }
    }

    /// Returns an entrance to the same scope that gives this name to its children, for failures and diagnosis.
    pub fn named(&self, name: impl Into<NameArc<str>>) -> Self {
        Self { entrance: self.entrance.named(name.into()), ledger: self.ledger.clone() }
    }

    /// Starts a child on the scope's executor. Its result goes to the policy.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    #[track_caller]
    pub fn spawn<F>(&self, future: F)
    where
        F: Future<Output = Result<V, E>> + Send + 'static,
    {
        self.entrance.spawn(self.reported(future, Location::caller()));
    }

    /// Starts a child on `executor`. Its result goes to the policy.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    ///
    /// ```
    /// use convoke::scope::policy::WaitForAll;
    /// use convoke::prelude::*;
    /// use convoke::scope::scope_with;
    ///
    /// let pool = ThreadPool::new(2)?;
    /// let executor = pool.executor();
    /// let outcome = block_on(async move {
    ///     scope_with(WaitForAll, async |s| {
    ///         s.spawn(async { Ok::<_, String>(0) }); // On this thread.
    ///         s.spawn_on(&executor, async { Ok((1..=1000_u64).sum()) }); // On the pool.
    ///     })
    ///     .await
    /// });
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
        self.entrance.spawn_on(executor, self.reported(future, Location::caller()));
    }

    /// Starts a child that need not be `Send`, on the scope's executor, which must have one thread. Its
    /// result goes to the policy.
    ///
    /// # Panics
    /// If the executor has several threads, or the call is made on another thread; if the scope has ended, or
    /// there is no memory.
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F)
    where
        F: Future<Output = Result<V, E>> + 'static,
    {
        self.entrance.spawn_local(self.reported(future, Location::caller()));
    }

    /// Wraps a child, so that its result goes to the policy. Counts it as working from now on.
    fn reported<F>(
        &self,
        future: F,
        location: &'static Location<'static>,
    ) -> impl Future<Output = Result<(), Enough>> + use<F, P, V, E>
    where
        F: Future<Output = Result<V, E>>,
    {
        let whose = self.entrance.whose(location);
        let (working, ledger) = (Ledger::works(&self.ledger), self.ledger.clone());
        async move {
            let enough = ledger.judge(whose.awaited(1, future).await);
            drop(working);
            enough
        }
    }

    /// Starts a daemon: a child that is asked to stop, and awaited, when the body and all other children have
    /// ended. If it fails before, its failure goes to the policy.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    ///
    /// ```
    /// use convoke::scope::policy::FirstError;
    /// use convoke::prelude::*;
    /// use convoke::scope::scope_with;
    /// use convoke::task::forever;
    ///
    /// let outcome = block_on(async {
    ///     scope_with(FirstError, async |s| {
    ///         s.spawn_daemon(async { forever().await });
    ///         s.spawn(async { Ok::<_, String>(1) });
    ///     })
    ///     .await
    /// });
    /// assert_eq!(outcome, Outcome::Value(Ok(vec![1])));
    /// ```
    #[track_caller]
    pub fn spawn_daemon<F>(&self, future: F)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        let whose = self.entrance.whose(Location::caller());
        let (ledger, scope) = (self.ledger.clone(), self.entrance.scope.clone());
        let daemon = async move {
            if let Err(failure) = whose.awaited(1, future).await {
                // The daemon's own output goes to its handle, which is not awaited. So another child reports
                // the end.
                match Panic::catch(|| ledger.judge(Err(failure))) {
                    Ok(Ok(())) => {}
                    Ok(Err(Enough)) => report(&scope, async { Err(Enough) }).await,
                    Err(panic) => report(&scope, async { panic.resume() }).await,
                }
            }
        };
        self.ledger.add_daemon(self.entrance.spawn_future(daemon));
    }

    /// Returns an entrance for children that are restarted when they fail, after a pause: see
    /// [`Restarting::spawn`].
    pub fn restarting(&self, schedule: Backoff) -> Restarting<P, V, E> {
        Restarting::new(self.clone(), schedule)
    }
}

/// Starts a child that ends the scope. Retries while there is no memory for it: the end must not be lost.
async fn report<F>(scope: &Scope<Result<(), Enough>>, child: F)
where
    F: Future<Output = Result<(), Enough>> + Send + 'static,
{
    let mut child = child;
    while let Err(refused) = scope.try_spawn(child) {
        if !refused.is_no_memory() {
            return;
        }
        child = refused.into_future();
        sleep(MEMORY_PAUSE).await;
    }
}

impl<P, V, E> Clone for PolicyScope<P, V, E> {
    fn clone(&self) -> Self {
        Self { entrance: self.entrance.clone(), ledger: self.ledger.clone() }
    }
}

impl<P, V, E> fmt::Debug for PolicyScope<P, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyScope").field("name", &self.entrance.name).finish_non_exhaustive()
    }
}
