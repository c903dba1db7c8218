//! Work that is announced: it keeps a context running.

use core::fmt;
use std::sync::Arc;

use super::IoShared;

/// Keeps [`IoContext::run`](super::IoContext::run) from returning for lack of work: something will come from outside. Clones
/// are work of their own.
#[must_use = "dropping it says that nothing will come"]
pub struct Work(Arc<IoShared>);

impl Work {
    pub(super) fn new(shared: Arc<IoShared>) -> Self {
        shared.hold();
        Self(shared)
    }
}

impl Clone for Work {
    fn clone(&self) -> Self {
        Self::new(self.0.clone())
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Work")
    }
}
