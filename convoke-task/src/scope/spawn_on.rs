//! Children of a scope on another executor than the scope's.

use core::future::Future;
use core::panic::Location;

use convoke_core::env::Changes;
use convoke_core::{Executor, ExecutorRef};

use super::child::OwnLink;
use super::handle::Handle;
use super::named::WithName;
use super::output::ChildOutput;
use super::spawn::{Named, Scope};

impl<O> Scope<O> {
    /// Starts a child on `executor`. Otherwise like [`spawn`](Scope::spawn).
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    #[track_caller]
    pub fn spawn_on<X: Executor, F>(&self, executor: &X, future: F)
    where
        F: Future<Output: ChildOutput<O> + Send> + Send + 'static,
        O: Send + 'static,
    {
        self.start_for_scope(future, self.own_link(executor), Location::caller());
    }

    /// Starts a child on `executor`, and returns its handle. Otherwise like
    /// [`spawn_future`](Scope::spawn_future).
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    ///
    /// ```
    /// use convoke::prelude::*;
    ///
    /// let pool = ThreadPool::new(2)?;
    /// let workers = pool.executor();
    /// let outcome = block_on(async move {
    ///     scope(async |s| {
    ///         let halves = [0..500_u64, 500..1001]
    ///             .map(|half| s.spawn_future_on(&workers, async { half.sum::<u64>() }));
    ///         let mut sum = 0;
    ///         for half in halves {
    ///             sum += half.await;
    ///         }
    ///         sum
    ///     })
    ///     .await
    /// });
    /// assert_eq!(outcome, Outcome::Value(500_500));
    /// # std::io::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn spawn_future_on<X: Executor, F>(&self, executor: &X, future: F) -> Handle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
        O: Send + 'static,
    {
        self.start_future(future, self.own_link(executor), Location::caller())
    }

    /// Creates the connection of a child on `executor`.
    fn own_link<X: Executor>(&self, executor: &X) -> OwnLink {
        let changes = Changes::new().executor(ExecutorRef::new(executor.clone()));
        OwnLink::new(self.block.link.env().with(changes), &self.block)
    }
}

impl<O> Named<'_, O> {
    /// Starts the child like [`Scope::spawn_on`].
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    #[track_caller]
    pub fn spawn_on<X: Executor, F>(self, executor: &X, future: F)
    where
        F: Future<Output: ChildOutput<O> + Send> + Send + 'static,
        O: Send + 'static,
    {
        let attachment = WithName::new(self.name, self.scope.own_link(executor));
        self.scope.start_for_scope(future, attachment, Location::caller());
    }

    /// Starts the child like [`Scope::spawn_future_on`], and returns its handle.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    #[track_caller]
    pub fn spawn_future_on<X: Executor, F>(self, executor: &X, future: F) -> Handle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
        O: Send + 'static,
    {
        let attachment = WithName::new(self.name, self.scope.own_link(executor));
        self.scope.start_future(future, attachment, Location::caller())
    }
}
