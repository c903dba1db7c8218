//! The executor that is nowhere: work runs where it stands.

use super::{Executor, Runnable};

/// Runs work on the spot, on the caller's stack. The executor of environments that were given none.
///
/// It is the one exception to "`post` never runs inline": there is no place to queue.
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
