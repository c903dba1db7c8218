//! The executor that runs work at once, on the caller's stack.

use super::on_top::run_inline;
use super::{Executor, ExecutorRef, Runnable};

/// An executor that runs work at once, on the caller's stack. The executor of environments that were given
/// none.
///
/// It is the one exception to "`post` never runs the work inline": it has no queue. Posts that nest deeply run
/// before the outermost of them returns, so that depth costs no stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct InlineExecutor;

#[diagnostic::do_not_recommend]
impl Executor for InlineExecutor {
    // Compiled once, with the table of its functions.
    #[inline(never)]
    fn erased(self) -> ExecutorRef {
        ExecutorRef::erase(self)
    }

    #[inline]
    fn post(&self, runnable: Runnable) {
        run_inline(runnable);
    }

    #[inline]
    fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
        Some(runnable)
    }
}
