//! Hyper's tasks as children of a scope.

use core::fmt;
use core::future::Future;

use convoke_task::Scope;
use hyper::rt::Executor;

/// An executor for hyper: what hyper starts is a child of a scope, and ends before the scope does. A scope that returns an `O`.
///
/// A scope that has ended starts nothing any more: the future is dropped.
pub struct ScopeExecutor<O> {
    scope: Scope<O>,
}

impl<O> ScopeExecutor<O> {
    /// Creates an executor that starts children of this scope.
    pub fn new(scope: Scope<O>) -> Self {
        Self { scope }
    }
}

impl<O, F> Executor<F> for ScopeExecutor<O>
where
    O: Send + 'static,
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, future: F) {
        let child = async move {
            future.await;
        };
        // Hyper goes on without a task that cannot start, as it does when one ends early.
        _ = self.scope.child().try_spawn(child);
    }
}

impl<O> Clone for ScopeExecutor<O> {
    fn clone(&self) -> Self {
        Self { scope: self.scope.clone() }
    }
}

impl<O> fmt::Debug for ScopeExecutor<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopeExecutor").finish_non_exhaustive()
    }
}
