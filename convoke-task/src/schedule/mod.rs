//! Doing something again after a while: [`retry()`] until it succeeds, [`repeat()`] until it is enough. How long to wait is a
//! value: a [`Backoff`], or whatever else is a sequence of durations.
//!
//! (The senders `retry` and `repeat_n` are in `algorithm`; they do not wait in between.)

mod backoff;
mod pause;
mod repeat;
mod retry;

pub use backoff::{Backoff, Waits};
pub(crate) use pause::pause;
pub use repeat::repeat;
pub use retry::{retry, retry_if};
