//! `Progress`: a byte counter that can be read while a call runs, and after it was stopped or failed.

use convoke_core::raw::sync::atomic::{AtomicU64, Ordering};
use convoke_core::raw::sync::const_outside_models;

/// A count of transferred bytes. The caller owns it, so it outlives a call that was stopped.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::io::{Progress, duplex, write_all};
///
/// let far = block_on(async {
///     let (mut near, _far) = duplex(4); // `_far` does not read.
///     let progress = Progress::new();
///     let stopped = timeout(std::time::Duration::from_millis(1), async {
///         write_all(&mut near, b"more than four").progress(&progress).await
///     });
///     assert!(stopped.await.is_err());
///     progress.bytes()
/// });
/// assert_eq!(far, Outcome::Value(4));
/// ```
#[derive(Debug, Default)]
pub struct Progress(AtomicU64);

impl Progress {
    const_outside_models! {
        /// Creates a counter at zero.
        pub fn new() -> Self {
            Self(AtomicU64::new(0))
        }
    }

    /// Returns the number of bytes so far.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn add(this: Option<&Self>, bytes: usize) {
        if let Some(this) = this {
            this.0.fetch_add(bytes as u64, Ordering::AcqRel);
        }
    }
}
