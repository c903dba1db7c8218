//! The entrance to a scope with a policy.

use core::fmt;
use core::future::Future;
use std::sync::Arc;

use convoke_core::raw::FrameArc;

use super::reported::{Listener, Reported};
use super::rules::Policy;
use super::tally::{Ledger, PolicyMet, Working};
use crate::scope::builder::{
    ChildWork, LocalParent, Name, Naming, OnLocalThread, Once, Options, Parent, ParentOnExecutors, SendPlace,
    Takes, TakesLocal,
};
use crate::scope::{Child, ChildFailure, Guarded, Handle, SameThread, Scope};

/// Entrance to a scope with a policy, see [`scope_with()`](super::scope_with()): starts children in it. A
/// child that has a clone can start siblings.
pub struct PolicyScope<P, V, E> {
    pub(super) scope: Scope<Result<(), PolicyMet>>,
    pub(super) ledger: FrameArc<Ledger<P, V, E>>,
}

impl<P, V, E> PolicyScope<P, V, E>
where
    P: Policy<V, E> + Send + Sync + 'static,
    V: Send + 'static,
    E: Send + 'static,
{
    /// Starts a child on the scope's executor. Its result goes to the policy.
    ///
    /// Use [`spawn_future`](PolicyScope::spawn_future) for a child whose value you need, and
    /// [`child`](PolicyScope::child) for one with options.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    #[track_caller]
    pub fn spawn<F>(&self, future: F)
    where
        F: Future<Output = Result<V, E>> + Send + 'static,
    {
        self.child().spawn(future);
    }

    /// Starts a child that returns a value, and returns its handle. What the child returns goes to the handle,
    /// and not to the policy. A panic whose handle was dropped ends the scope.
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

    /// Returns a builder for one child with options: a name, an executor, a permit, restarts, or a daemon.
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
    ///         s.child().on(&executor).spawn(async { Ok((1..=1000_u64).sum()) });
    ///     })
    ///     .await
    /// });
    /// let mut values = outcome.unwrap().unwrap();
    /// values.sort();
    /// assert_eq!(values, [0, 500_500]);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// A child that is restarted, and whose last failure goes to the policy:
    ///
    /// ```
    /// use std::time::Duration;
    /// use convoke::scope::policy::Supervise;
    /// use convoke::prelude::*;
    /// use convoke::scope::scope_with;
    /// use convoke::retry::Backoff;
    ///
    /// let report = block_on(async {
    ///     scope_with(Supervise, async |s| {
    ///         let schedule = Backoff::exponential(Duration::from_millis(1)).up_to(3);
    ///         let mut runs = 0;
    ///         s.named("worker")
    ///             .restart(schedule)
    ///             .report(|failure| println!("{failure}"))
    ///             .spawn(move || {
    ///                 runs += 1;
    ///                 async move { if runs < 3 { Err("fell over") } else { Ok(runs) } }
    ///             });
    ///     })
    ///     .await
    /// })
    /// .unwrap();
    /// assert_eq!(report.values, [3]);
    /// assert!(report.failures.is_empty());
    /// ```
    pub fn child(&self) -> Child<&Self> {
        Child::new(self)
    }

    /// Returns the listener of a child. The child counts as working from now on.
    fn listener(&self) -> ToPolicy<P, V, E> {
        ToPolicy { working: Some(Ledger::works(&self.ledger)), ledger: self.ledger.clone() }
    }
}

impl<P, V, E> ParentOnExecutors for &PolicyScope<P, V, E> {}

impl<P, V, E, X> Takes<'static, X, Result<V, E>> for &PolicyScope<P, V, E>
where
    P: Policy<V, E> + Send + Sync + 'static,
    V: Send + 'static,
    E: Send + 'static,
    X: SendPlace,
{
    #[track_caller]
    fn start_child<N, R, W>(self, options: Options<N, X>, future: R::Future)
    where
        N: Naming,
        R: ChildWork<W, Future: Future<Output = Result<V, E>> + Send + 'static>,
    {
        let child = Reported::new(future, R::poll_caught, options.origin(), self.listener());
        (&self.scope).start_child::<N, Once, _>(options, child);
    }
}

impl<P, V, E> TakesLocal<'static, Result<V, E>> for &PolicyScope<P, V, E>
where
    P: Policy<V, E> + Send + Sync + 'static,
    V: Send + 'static,
    E: Send + 'static,
{
    #[track_caller]
    fn start_local_child<N, R, W>(self, options: Options<N, OnLocalThread>, future: R::Future)
    where
        N: Naming,
        R: ChildWork<W, Future: Future<Output = Result<V, E>> + 'static>,
    {
        let child = Reported::new(future, R::poll_caught, options.origin(), self.listener());
        (&self.scope).start_local_child::<N, Once, _>(options, child);
    }
}

impl<P, V, E, X> Parent<'static, X> for &PolicyScope<P, V, E>
where
    P: Policy<V, E> + Send + Sync + 'static,
    V: Send + 'static,
    E: Send + 'static,
    X: SendPlace,
{
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
        (&self.scope).start_child_future(options, Guarded::new(future, Ledger::works(&self.ledger)))
    }
}

impl<P, V, E> LocalParent<'static> for &PolicyScope<P, V, E>
where
    P: Policy<V, E> + Send + Sync + 'static,
    V: Send + 'static,
    E: Send + 'static,
{
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
        (&self.scope).start_local_future(options, Guarded::new(future, Ledger::works(&self.ledger)))
    }
}

/// Passes the result of a child to the policy.
struct ToPolicy<P: Policy<V, E>, V, E> {
    /// The child counts as working until the policy has judged its result.
    working: Option<Working<P, V, E>>,
    ledger: FrameArc<Ledger<P, V, E>>,
}

impl<P: Policy<V, E>, V, E> Listener<V, E> for ToPolicy<P, V, E> {
    type Output = Result<(), PolicyMet>;

    fn hear(&mut self, result: Result<V, ChildFailure<E>>) -> Result<(), PolicyMet> {
        let enough = self.ledger.judge(result);
        self.working = None;
        enough
    }
}

impl<P, V, E> Clone for PolicyScope<P, V, E> {
    fn clone(&self) -> Self {
        Self { scope: self.scope.clone(), ledger: self.ledger.clone() }
    }
}

impl<P, V, E> fmt::Debug for PolicyScope<P, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyScope").finish_non_exhaustive()
    }
}
