//! `Work`: announced work, which keeps a context running.

use core::fmt;

use convoke_core::Executor;

use super::IoExecutor;

/// Announced work: [`IoContext::run`](super::IoContext::run) does not return for lack of work while it
/// exists. Each clone counts.
#[must_use = "dropping it allows `IoContext::run` to return"]
pub struct Work(IoExecutor);

impl Work {
    pub(super) fn new(executor: IoExecutor) -> Self {
        executor.work_began();
        Self(executor)
    }
}

impl Clone for Work {
    fn clone(&self) -> Self {
        Self::new(self.0.clone())
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.0.work_ended();
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Work")
    }
}
