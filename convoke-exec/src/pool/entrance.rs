//! Where work comes into a pool: an entrance for each priority. A handle is the address of one.

use core::fmt;

use convoke_core::raw::Runnable;

use super::priority::Priority;
use super::shared::Shared;
use super::worker::Worker;

/// An entrance of a pool. Like the block that it leads to it is never freed.
///
/// A thread of the pool knows its own by their addresses: for work of normal priority that is the one comparison it took
/// when there were no others.
pub(super) struct Entrance {
    pub(super) shared: &'static Shared,
    pub(super) priority: Priority,
    /// Normal priority, and no limit to look at: one question instead of two, for what is asked most.
    is_plain: bool,
}

impl Entrance {
    pub(super) fn new(shared: &'static Shared, priority: Priority) -> Self {
        let is_plain = priority == Priority::Normal && shared.priorities.normal().is_unlimited();
        Self { shared, priority, is_plain }
    }

    /// Queues work that no thread of the pool has taken to itself. Over the limit, or after the end, it is dropped.
    #[inline]
    pub(super) fn post(&self, runnable: Runnable) {
        if self.is_plain {
            self.told(self.shared.priorities.normal().push_unlimited(runnable));
        } else {
            self.post_by_priority(runnable);
        }
    }

    fn post_by_priority(&self, runnable: Runnable) {
        let priorities = &self.shared.priorities;
        let posted = if Worker::is_here(self.shared) {
            priorities.push_from_inside(self.priority, runnable)
        } else {
            priorities.push(self.priority, runnable)
        };
        self.told(posted);
    }

    #[inline]
    fn told(&self, posted: Result<(), Runnable>) {
        match posted {
            Ok(()) => self.shared.sleepers.notify(),
            Err(refused) => refused.stop(),
        }
    }
}

/// The pool is seen from outside, without the circle that leads back here.
impl fmt::Debug for Entrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entrance").field(&self.priority).finish()
    }
}
