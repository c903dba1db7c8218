//! The task that waits for blocking work, as that work sees it.

use core::future::Future;

use convoke_core::env::Local;
use convoke_core::{Env, Outcome, StopReason, StopToken};

use crate::launch::launch_below;

/// The argument of a function that [`blocking()`](super::blocking()) runs: a view of the task that waits.
#[derive(Clone, Debug)]
pub struct Inside {
    /// The environment of work below the task, with a stop token of its own.
    pub(super) env: Env,
}

impl Inside {
    /// Returns true if the function should return early. Cheap; call it often.
    pub fn stop_requested(&self) -> bool {
        self.env.stop().stop_requested()
    }

    /// Returns why the function was asked to stop, if it was.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.env.stop().reason()
    }

    /// Returns the stop token: to register a callback, or to pass on.
    pub fn stop_token(&self) -> StopToken {
        self.env.stop_token()
    }

    /// Returns the value of an inherited key in the environment of the task that waits.
    ///
    /// ```
    /// use convoke::env::Local;
    /// use convoke::prelude::*;
    /// use convoke::env::with_local;
    ///
    /// static REQUEST: Local<u32> = Local::inherited("request");
    ///
    /// let outcome = block_on(async {
    ///     with_local(&REQUEST, 7, async {
    ///         blocking(|inside| inside.local(&REQUEST)).await
    ///     })
    ///     .await
    /// });
    /// assert_eq!(outcome, Outcome::Value(Some(7)));
    /// ```
    pub fn local<T: Clone + Send + Sync + 'static>(&self, key: &'static Local<T>) -> Option<T> {
        self.env.local(key).cloned()
    }

    /// Runs a future on the executor of the task that waits, and blocks this thread until it has ended. The
    /// future is asked to stop when this function is, and inherits the task's environment.
    ///
    /// # Panics
    /// If the future does.
    ///
    /// ```
    /// use convoke::prelude::*;
    ///
    /// let outcome = block_on(async {
    ///     let here = std::thread::current().id();
    ///     blocking(move |inside| {
    ///         inside.block_on(async move { std::thread::current().id() == here }).unwrap()
    ///     })
    ///     .await
    /// });
    /// assert_eq!(outcome, Outcome::Value(true));
    /// ```
    #[track_caller]
    pub fn block_on<F>(&self, future: F) -> Outcome<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        launch_below(self.env.clone()).start(future).wait()
    }
}
