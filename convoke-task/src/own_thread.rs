//! Executors of one thread, asked from that thread: whoever blocks there waits for itself.

use convoke_core::Executor;
use convoke_core::raw::OwnerId;

/// Returns true if all work of this executor runs on the calling thread.
pub(crate) fn runs_only_here(executor: &impl Executor) -> bool {
    executor.owner_thread().is_some_and(|home| {
        // A home that is closed has no thread: what is left there is ended by the next thread that comes.
        home.id() == OwnerId::here() || home.is_own_thread() && !home.is_closed()
    })
}
