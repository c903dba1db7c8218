//! Doing something again: [`retry()`] after a failure, [`repeat()`] after a success, with a [`Backoff`] between.

#[doc(inline)]
pub use convoke_task::schedule::*;
