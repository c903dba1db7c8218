//! Starting children of a scope on another executor than its own.

use core::future::Future;
use core::panic::Location;

use convoke_core::env::Changes;
use convoke_core::{Executor, ExecutorRef};

use super::child::Elsewhere;
use super::handle::Handle;
use super::named::Titled;
use super::output::ChildOutput;
use super::spawn::{Named, Scope};

impl<O> Scope<O> {
    /// Starts a child on another executor. For the rest it is as [`spawn`](Scope::spawn).
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    #[track_caller]
    pub fn spawn_on<X: Executor, F>(&self, executor: &X, future: F)
    where
        F: Future<Output: ChildOutput<O> + Send> + Send + 'static,
        O: Send + 'static,
    {
        self.start_for_scope(future, self.elsewhere(executor), Location::caller());
    }

    /// Starts a child on another executor, and returns its handle. For the rest it is as [`spawn_future`](Scope::spawn_future).
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
    ///         let halves = [0..500_u64, 500..1001].map(|half| s.spawn_future_on(&workers, async { half.sum::<u64>() }));
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
        self.start_future(future, self.elsewhere(executor), Location::caller())
    }

    fn elsewhere<X: Executor>(&self, executor: &X) -> Elsewhere<O> {
        let changes = Changes::new().executor(ExecutorRef::new(executor.clone()));
        Elsewhere::new(self.block.place.env().with(changes), &self.block)
    }
}

impl<O> Named<'_, O> {
    /// As [`Scope::spawn_on`].
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    pub fn spawn_on<X: Executor, F>(self, executor: &X, future: F)
    where
        F: Future<Output: ChildOutput<O> + Send> + Send + 'static,
        O: Send + 'static,
    {
        let place = Titled::new(self.name, self.scope.elsewhere(executor));
        self.scope.start_for_scope(future, place, Location::caller());
    }

    /// As [`Scope::spawn_future_on`].
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    pub fn spawn_future_on<X: Executor, F>(self, executor: &X, future: F) -> Handle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
        O: Send + 'static,
    {
        let place = Titled::new(self.name, self.scope.elsewhere(executor));
        self.scope.start_future(future, place, Location::caller())
    }
}
