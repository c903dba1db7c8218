//! The executor that runs work at once, on the caller's stack.

use super::{Executor, Runnable};

/// An executor that runs work at once, on the caller's stack. The executor of environments that were given
/// none.
///
/// It is the one exception to "`post` never runs the work inline": it has no queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct InlineExecutor;

#[diagnostic::do_not_recommend]
impl Executor for InlineExecutor {
    #[inline]
    fn post(&self, runnable: Runnable) {
        runnable.run();
    }

    #[inline]
    fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
        Some(runnable)
    }
}
