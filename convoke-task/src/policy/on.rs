//! `On`: any policy, with children on a given executor.

use convoke_core::{Executor, ExecutorRef};

use super::rules::Policy;
use super::tally::Tally;

/// Policy that runs the children of another policy on a given executor, as [`scope_on()`](crate::scope_on)
/// does for [`scope()`](crate::scope()).
///
/// ```
/// use convoke::scope::policy::{On, Quorum};
/// use convoke::prelude::*;
/// use convoke::executor::Limited;
/// use convoke::scope::scope_with;
///
/// let pool = ThreadPool::new(2).unwrap();
/// let replicas = Limited::new(&pool.executor(), 2);
/// let outcome = block_on(async move {
///     scope_with(On::new(&replicas, Quorum(2)), async |s| {
///         (1..=3).for_each(|replica| s.spawn(async move { Ok::<_, String>(replica) }));
///     })
///     .await
/// });
/// assert_eq!(outcome.unwrap().unwrap().len(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct On<P> {
    executor: ExecutorRef,
    policy: P,
}

impl<P> On<P> {
    /// Creates a policy like `policy`, with children on `executor`.
    pub fn new<X: Executor>(executor: &X, policy: P) -> Self {
        Self { executor: ExecutorRef::new(executor.clone()), policy }
    }
}

impl<V, E, P: Policy<V, E>> Policy<V, E> for On<P> {
    type Output = P::Output;

    fn is_enough_after_value(&self, tally: &Tally<V, E>) -> bool {
        self.policy.is_enough_after_value(tally)
    }

    fn is_enough_after_failure(&self, tally: &Tally<V, E>) -> bool {
        self.policy.is_enough_after_failure(tally)
    }

    fn output(&self, tally: Tally<V, E>) -> P::Output {
        self.policy.output(tally)
    }

    fn executor(&self) -> Option<ExecutorRef> {
        Some(self.executor.clone())
    }
}
