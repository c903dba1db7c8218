//! The environment of the running task, for any function below it, async or plain. Nothing here suspends.

use std::time::Instant;

use convoke_core::env::Local;
use convoke_core::raw::Frame;
use convoke_core::{Env, ExecutorRef, StopReason, StopToken};

/// Calls `f` with the environment of the running task, or with `None` outside a task.
///
/// ```
/// use convoke::env::{self, Local};
/// use convoke::prelude::*;
///
/// static REQUEST: Local<u32> = Local::inherited("request");
///
/// fn log_line() -> String {
///     env::current::env(|env| {
///         format!("request {:?}", env.and_then(|env| env.local(&REQUEST)))
///     })
/// }
///
/// let line = block_on(async { env::with_local(&REQUEST, 7, async { log_line() }).await });
/// assert_eq!(line, Outcome::Value("request Some(7)".to_owned()));
/// assert_eq!(log_line(), "request None");
/// ```
pub fn env<R>(f: impl FnOnce(Option<&Env>) -> R) -> R {
    Frame::current(|frame| f(frame.map(Frame::env)))
}

/// Returns the executor that the running task resumes on; outside a task, the inline one.
pub fn executor() -> ExecutorRef {
    Frame::current(|frame| {
        frame.map(|frame| frame.operation_owner().env().executor().clone()).unwrap_or_default()
    })
}

/// Returns a token that is stopped when the running task, or the region of it that calls, is asked to stop.
/// Store it, or give it to work on another thread. Outside a task it is never stopped.
pub fn stop_token() -> StopToken {
    env(|env| env.map(Env::stop_token).unwrap_or_default())
}

/// Returns true if the running task, or the region of it that calls, was asked to stop. Cheap.
pub fn stop_requested() -> bool {
    stop_reason().is_some()
}

/// Returns why the running task, or the region of it that calls, was asked to stop, if it was.
pub fn stop_reason() -> Option<StopReason> {
    Frame::current(|frame| frame.and_then(Frame::stop_reason))
}

/// Returns when the running task, or the region of it that calls, will be asked to stop at the latest, if
/// that is known.
pub fn deadline() -> Option<Instant> {
    Frame::current(|frame| frame.and_then(Frame::deadline))
}

/// Returns the value of a key in the environment of the running task.
pub fn local<T: Clone + Send + Sync + 'static>(key: &'static Local<T>) -> Option<T> {
    Frame::current(|frame| frame.and_then(|frame| frame.local(key).cloned()))
}
