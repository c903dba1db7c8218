//! Daemons: children that are asked to stop when the body and all other children have ended.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use convoke_core::Panic;
use convoke_core::raw::FrameArc;
use pin_project_lite::pin_project;

use super::handle::PolicyScope;
use super::reported::{Listener, Reported};
use super::rules::Policy;
use super::tally::{Ledger, PolicyMet};
use crate::scope::builder::{ChildWork, Naming, Options, Parent, ParentOnExecutors, SendPlace, Takes};
use crate::scope::{Child, ChildFailure, Scope};
use convoke_exec::time::sleep;

/// Pause of a daemon between two attempts to start a child for its failure, when there is no memory.
const MEMORY_PAUSE: Duration = Duration::from_millis(1);

impl<'a, P, V, E, N, X, R> Child<&'a PolicyScope<P, V, E>, N, X, R> {
    /// Makes the child a daemon: it is asked to stop, and awaited, when the body and all other children have
    /// ended. It returns a `Result<(), E>`; if it fails before, its failure goes to the policy.
    ///
    /// ```
    /// use convoke::scope::policy::FirstError;
    /// use convoke::prelude::*;
    /// use convoke::scope::scope_with;
    /// use convoke::task::forever;
    ///
    /// let outcome = block_on(async {
    ///     scope_with(FirstError, async |s| {
    ///         s.child().daemon().spawn(async { forever().await });
    ///         s.spawn(async { Ok::<_, String>(1) });
    ///     })
    ///     .await
    /// });
    /// assert_eq!(outcome, Outcome::Value(Ok(vec![1])));
    /// ```
    pub fn daemon(self) -> Child<Daemons<'a, P, V, E>, N, X, R> {
        self.with_parent(Daemons)
    }
}

/// Entrance for the daemons of a scope with a policy. Set by [`Child::daemon`].
pub struct Daemons<'a, P, V, E>(&'a PolicyScope<P, V, E>);

impl<P, V, E> ParentOnExecutors for Daemons<'_, P, V, E> {}

impl<P, V, E, X> Takes<'static, X, Result<(), E>> for Daemons<'_, P, V, E>
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
        R: ChildWork<W, Future: Future<Output = Result<(), E>> + Send + 'static>,
    {
        let Self(PolicyScope { scope, ledger }) = self;
        let listener = ToPolicy { ledger: ledger.clone() };
        let child = Reported::new(future, R::poll_caught, options.origin(), listener);
        let daemon = Daemon { child, scope: scope.clone(), reporting: None };
        ledger.add_daemon(scope.start_child_future(options, daemon));
    }
}

/// Passes the failure of a daemon to the policy. Returns its verdict, or its panic.
struct ToPolicy<P, V, E> {
    ledger: FrameArc<Ledger<P, V, E>>,
}

impl<P: Policy<V, E>, V, E> Listener<(), E> for ToPolicy<P, V, E> {
    type Output = Result<Result<(), PolicyMet>, Panic>;

    fn hear(&mut self, result: Result<(), ChildFailure<E>>) -> Self::Output {
        match result {
            Ok(()) => Ok(Ok(())),
            Err(failure) => Panic::catch(|| self.ledger.judge(Err(failure))),
        }
    }
}

pin_project! {
    /// The future of a daemon. Its own output goes to its handle, which is not awaited. So another child
    /// reports a failure that ends the scope.
    struct Daemon<C> {
        #[pin]
        child: C,
        scope: Scope<Result<(), PolicyMet>>,
        // Allocated only if the daemon ends the scope.
        reporting: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    }
}

impl<C> Future for Daemon<C>
where
    C: Future<Output = Result<Result<(), PolicyMet>, Panic>>,
{
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        if this.reporting.is_none() {
            let scope = this.scope.clone();
            *this.reporting = Some(match ready!(this.child.poll(cx)) {
                Ok(Ok(())) => return Poll::Ready(()),
                Ok(Err(PolicyMet)) => Box::pin(report(scope, async { Err(PolicyMet) })),
                Err(panic) => Box::pin(report(scope, async { panic.resume() })),
            });
        }
        match this.reporting {
            Some(reporting) => reporting.as_mut().poll(cx),
            None => Poll::Ready(()),
        }
    }
}

/// Starts a child that ends the scope. Retries while there is no memory for it: the end must not be lost.
async fn report<F>(scope: Scope<Result<(), PolicyMet>>, child: F)
where
    F: Future<Output = Result<(), PolicyMet>> + Send + 'static,
{
    let mut child = child;
    while let Err(refused) = scope.child().try_spawn(child) {
        if !refused.is_no_memory() {
            return;
        }
        child = refused.into_future();
        sleep(MEMORY_PAUSE).await;
    }
}

impl<P, V, E> fmt::Debug for Daemons<'_, P, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Daemons").field(&self.0).finish()
    }
}
