//! Detection of a thread that would wait for itself: a blocking wait, on the one thread of an executor, for
//! work of that executor.

use convoke_core::Executor;
use convoke_core::raw::OwnerId;

/// Returns true if all work of this executor runs on the calling thread.
pub(crate) fn runs_only_here(executor: &impl Executor) -> bool {
    executor.owner_thread().is_some_and(|owner| {
        // A closed owner has no thread: its remaining work is ended by whichever thread gets to it.
        owner.id() == OwnerId::here() || owner.is_own_thread() && !owner.is_closed()
    })
}
