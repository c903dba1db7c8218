//! What the running task knows of its surroundings: asked for anywhere below it, in an `async fn` or in a plain function that
//! one calls. Nothing here suspends.

use std::time::Instant;

use convoke_core::env::Local;
use convoke_core::raw::Frame;
use convoke_core::{Env, ExecutorRef, StopReason, StopToken};

/// Calls `f` with the environment of the running task; `None` outside all tasks.
///
/// ```
/// use convoke::sender::prelude::*;
/// use convoke::env::{Changes, Local};
///
/// static REQUEST: Local<u32> = Local::inherited("request");
///
/// fn log_line() -> String {
///     convoke::env::current::env(|env| format!("request {:?}", env.and_then(|env| env.local(&REQUEST))))
/// }
///
/// let line = sync_wait_with(Changes::new().local(&REQUEST, 7), task(async { log_line() }));
/// assert_eq!(line, Outcome::Value("request Some(7)".to_owned()));
/// assert_eq!(log_line(), "request None");
/// ```
pub fn env<R>(f: impl FnOnce(Option<&Env>) -> R) -> R {
    Frame::current(|frame| f(frame.map(Frame::env)))
}

/// The executor that the running task resumes on; outside all tasks, the inline one.
pub fn executor() -> ExecutorRef {
    Frame::current(|frame| {
        frame.map(|frame| frame.operation_owner().env().executor().clone()).unwrap_or_default()
    })
}

/// A token that sees when the running task, or the part of it that asks, is asked to stop. To keep, or to give to what
/// runs elsewhere. Outside all tasks, that of nobody.
pub fn stop_token() -> StopToken {
    env(|env| env.map(Env::stop_token).unwrap_or_default())
}

/// Whether the running task, or the part of it that asks, was asked to stop. Cheap.
pub fn stop_requested() -> bool {
    stop_reason().is_some()
}

/// Why it was asked to stop, if it was.
pub fn stop_reason() -> Option<StopReason> {
    Frame::current(|frame| frame.and_then(Frame::stop_reason))
}

/// When it will be asked to stop at the latest, if that is known.
pub fn deadline() -> Option<Instant> {
    Frame::current(|frame| frame.and_then(Frame::deadline))
}

/// The value of a key in the environment of the running task.
pub fn local<T: Clone + Send + Sync + 'static>(key: &'static Local<T>) -> Option<T> {
    Frame::current(|frame| frame.and_then(|frame| frame.operation_owner().env().local(key).cloned()))
}
