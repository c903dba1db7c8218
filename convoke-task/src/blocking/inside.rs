//! What blocking work sees of the task that waits for it.

use core::future::Future;

use convoke_core::env::Local;
use convoke_core::{Env, Outcome, StopReason, StopToken};

use crate::launch::launch_below;

/// Given to the function of [`blocking()`](super::blocking()).
#[derive(Clone, Debug)]
pub struct Inside {
    /// Of work below the task, with a stop token of its own.
    pub(super) env: Env,
}

impl Inside {
    /// Whether the function should come to an end. Cheap; to be asked often.
    pub fn stop_requested(&self) -> bool {
        self.env.stop().stop_requested()
    }

    /// Why, if so.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.env.stop().reason()
    }

    /// To be told, or to give to somebody else.
    pub fn stop_token(&self) -> StopToken {
        self.env.stop_token()
    }

    /// The value of an inherited key in the environment of the task that waits.
    ///
    /// ```
    /// use convoke::env::Local;
    /// use convoke::prelude::*;
    /// use convoke::env::with_local;
    ///
    /// static REQUEST: Local<u32> = Local::inherited("request");
    ///
    /// let outcome = block_on(async {
    ///     with_local(&REQUEST, 7, async { blocking(|inside| inside.local(&REQUEST)).await }).await
    /// });
    /// assert_eq!(outcome, Outcome::Value(Some(7)));
    /// ```
    pub fn local<T: Clone + Send + Sync + 'static>(&self, key: &'static Local<T>) -> Option<T> {
        self.env.local(key).cloned()
    }

    /// Back into async code: runs a future on the executor of the task that waits, and blocks this thread until it has ended. It
    /// is asked to stop when this function is, and inherits what the task does below it.
    ///
    /// # Panics
    /// As the future does.
    ///
    /// ```
    /// use convoke::prelude::*;
    ///
    /// let outcome = block_on(async {
    ///     let home = std::thread::current().id();
    ///     blocking(move |inside| inside.run(async move { std::thread::current().id() == home }).unwrap()).await
    /// });
    /// assert_eq!(outcome, Outcome::Value(true));
    /// ```
    #[track_caller]
    pub fn run<F>(&self, future: F) -> Outcome<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        launch_below(self.env.clone()).start(future).wait()
    }
}
