//! Work that is done again after a pause: [`retry()`] until it succeeds, [`repeat()`] until it says that it
//! is done. The schedule of the pauses is a value: a [`Backoff`], or any other sequence of durations.
//!
//! The senders `retry` and `repeat_n`, in `algorithm`, do not pause.

mod backoff;
mod pause;
mod repeat;
mod retry;

pub use backoff::{Backoff, Waits};
pub(crate) use pause::{Pause, pause};
pub use repeat::repeat;
pub use retry::{retry, retry_if};
