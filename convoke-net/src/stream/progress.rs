//! How far something got, for whoever asks: while it runs, after it was stopped, after it failed.

use convoke_core::raw::sync::atomic::{AtomicU64, Ordering};
use convoke_core::raw::sync::const_outside_models;

/// A count of bytes that were transferred. Lives with whoever wants to know, and outlives what was stopped.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::io;
/// use convoke::io::{Progress, duplex};
///
/// let far = block_on(async {
///     let (mut near, _far) = duplex(4); // Nobody reads at the far end.
///     let progress = Progress::new();
///     let stopped = timeout(std::time::Duration::from_millis(1), async {
///         stream::write_all(&mut near, b"more than four").progress(&progress).await
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
        /// Nothing yet.
        pub fn new() -> Self {
            Self(AtomicU64::new(0))
        }
    }

    /// How much it is so far.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn add(this: Option<&Self>, bytes: usize) {
        if let Some(this) = this {
            this.0.fetch_add(bytes as u64, Ordering::AcqRel);
        }
    }
}
