//! The common part of `PolicyScope` and `Supervisor`: starts children, with or without a name, and makes
//! failures of them.

use core::future::Future;
use core::panic::Location;
use std::sync::Arc;

use convoke_core::Executor;

use super::caught::Caught;
use super::failures::{ChildFailure, FailureKind};
use crate::scope::{ChildOutput, Handle, Scope};

/// A scope, and the name of the children that are started through it.
pub(super) struct Entrance<O> {
    pub(super) scope: Scope<O>,
    pub(super) name: Option<Arc<str>>,
}

/// Identity of a child in its failures.
#[derive(Clone)]
pub(super) struct Whose {
    name: Option<Arc<str>>,
    location: &'static Location<'static>,
}

impl<O: Send + 'static> Entrance<O> {
    pub(super) fn new(scope: Scope<O>) -> Self {
        Self { scope, name: None }
    }

    /// Returns an entrance for children with this name.
    pub(super) fn named(&self, name: Arc<str>) -> Self {
        Self { scope: self.scope.clone(), name: Some(name) }
    }

    pub(super) fn whose(&self, location: &'static Location<'static>) -> Whose {
        Whose { name: self.name.clone(), location }
    }

    #[track_caller]
    pub(super) fn spawn<F>(&self, child: F)
    where
        F: Future<Output: ChildOutput<O> + Send> + Send + 'static,
    {
        match &self.name {
            Some(name) => self.scope.named(name.clone()).spawn(child),
            None => self.scope.spawn(child),
        }
    }

    #[track_caller]
    pub(super) fn spawn_on<X, F>(&self, executor: &X, child: F)
    where
        X: Executor,
        F: Future<Output: ChildOutput<O> + Send> + Send + 'static,
    {
        match &self.name {
            Some(name) => self.scope.named(name.clone()).spawn_on(executor, child),
            None => self.scope.spawn_on(executor, child),
        }
    }

    #[track_caller]
    pub(super) fn spawn_local<F>(&self, child: F)
    where
        F: Future<Output: ChildOutput<O> + Send> + 'static,
    {
        match &self.name {
            Some(name) => self.scope.named(name.clone()).spawn_local(child),
            None => self.scope.spawn_local(child),
        }
    }

    #[track_caller]
    pub(super) fn spawn_future<F>(&self, child: F) -> Handle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        match &self.name {
            Some(name) => self.scope.named(name.clone()).spawn_future(child),
            None => self.scope.spawn_future(child),
        }
    }
}

impl<O> Clone for Entrance<O> {
    fn clone(&self) -> Self {
        Self { scope: self.scope.clone(), name: self.name.clone() }
    }
}

impl Whose {
    /// Awaits a child. Its error or panic becomes a `ChildFailure`.
    pub(super) async fn awaited<F, V, E>(&self, attempt: u32, child: F) -> Result<V, ChildFailure<E>>
    where
        F: Future<Output = Result<V, E>>,
    {
        let kind = match Caught::new(child).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => FailureKind::Error(error),
            Err(panic) => FailureKind::Panicked(panic),
        };
        Err(ChildFailure { name: self.name.clone(), location: self.location, attempt, kind })
    }
}
