//! Starting children in a scope with a policy.

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

/// How long a daemon waits before it tries again to say something for which there was no memory.
const MEMORY_MAY_TAKE: Duration = Duration::from_millis(1);

/// Starts children in a scope with a policy: see [`scope_with()`](super::scope_with()). It may be cloned, and given to
/// children, who then start others beside them.
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

    /// A handle to the same scope whose children have this name, in failures and for people who look.
    pub fn named(&self, name: impl Into<NameArc<str>>) -> Self {
        Self { entrance: self.entrance.named(name.into()), ledger: self.ledger.clone() }
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
        self.entrance.spawn(self.reported(future, Location::caller()));
    }

    /// Starts a child on another executor. Its result is for the policy.
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
    ///         s.spawn(async { Ok::<_, String>(0) }); // On the thread that waits,
    ///         s.spawn_on(&executor, async { Ok((1..=1000_u64).sum()) }); // and on the pool.
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
        self.entrance.spawn_local(self.reported(future, Location::caller()));
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
        let whose = self.entrance.whose(location);
        let (working, ledger) = (Ledger::works(&self.ledger), self.ledger.clone());
        async move {
            let enough = ledger.judge(whose.awaited(1, future).await);
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
                // What the daemon says itself goes to its handle, and nobody awaits that.
                match Panic::catch(|| ledger.judge(Err(failure))) {
                    Ok(Ok(())) => {}
                    Ok(Err(Enough)) => say(&scope, async { Err(Enough) }).await,
                    Err(panic) => say(&scope, async { panic.resume() }).await,
                }
            }
        };
        self.ledger.keep(self.entrance.spawn_future(daemon));
    }

    /// Starts children that are started again when they fail, after a wait: see [`Restarting::spawn`].
    pub fn restarting(&self, schedule: Backoff) -> Restarting<P, V, E> {
        Restarting::new(self.clone(), schedule)
    }
}

/// Starts a child that says this to the scope. Waits until there is memory for it: what it says must not be lost.
async fn say<F>(scope: &Scope<Result<(), Enough>>, child: F)
where
    F: Future<Output = Result<(), Enough>> + Send + 'static,
{
    let mut child = child;
    while let Err(refused) = scope.try_spawn(child) {
        if !refused.is_no_memory() {
            return;
        }
        child = refused.into_future();
        sleep(MEMORY_MAY_TAKE).await;
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
