//! What blocking work sees of the task that waits for it.

use core::future::Future;

use convoke_core::{ExecutorRef, Outcome, StopReason, StopToken};

use crate::launch::launch;

/// Given to the function of [`blocking()`](super::blocking()).
#[derive(Clone, Debug)]
pub struct Inside {
    pub(super) token: StopToken,
    pub(super) executor: ExecutorRef,
}

impl Inside {
    /// Whether the function should come to an end. Cheap; to be asked often.
    pub fn stop_requested(&self) -> bool {
        self.token.stop_requested()
    }

    /// Why, if so.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.token.reason()
    }

    /// To be told, or to give to somebody else.
    pub fn stop_token(&self) -> StopToken {
        self.token.clone()
    }

    /// Back into async code: runs a future on the executor of the task that waits, and blocks this thread until it has ended. It
    /// is asked to stop when this function is.
    ///
    /// # Panics
    /// As the future does.
    ///
    /// ```
    /// use convoke::prelude::*;
    ///
    /// let outcome = sync_wait(task(async {
    ///     let home = std::thread::current().id();
    ///     blocking(move |inside| inside.run(async move { std::thread::current().id() == home }).unwrap()).await
    /// }));
    /// assert_eq!(outcome, Outcome::Value(true));
    /// ```
    #[track_caller]
    pub fn run<F>(&self, future: F) -> Outcome<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        launch(&self.executor).stop_token(self.token.clone()).start(future).wait()
    }
}
