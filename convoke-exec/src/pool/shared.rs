//! What all threads and handles of a pool share, for ever.

use std::sync::{Mutex, OnceLock, PoisonError};

use convoke_core::Panic;
use convoke_core::raw::RunQueue;

use super::entrance::Entrance;
use super::priorities::Priorities;
use super::priority::Priority;
use super::sleepers::Sleepers;
use crate::report_panic::contain;

/// The block behind a pool. It is never freed, so that a handle is a plain reference: a count that many threads change
/// costs more than all the rest of a post.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) priorities: Priorities,
    pub(super) sleepers: Sleepers,
    on_panic: fn(Panic),
    /// By priority. They lead back here, and so are made a moment later.
    entrances: OnceLock<&'static [Entrance; 3]>,
    /// The pool made before this one: the list keeps all blocks reachable, for people who look for leaks.
    #[expect(dead_code, reason = "it is there to be pointed at")]
    older: Option<&'static Shared>,
}

static NEWEST: Mutex<Option<&'static Shared>> = Mutex::new(None);

impl Shared {
    pub(super) fn leak(threads: usize, queue_limit: usize, on_panic: fn(Panic)) -> &'static Self {
        let mut newest = NEWEST.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = Box::leak(Box::new(Self {
            priorities: Priorities::new(queue_limit),
            sleepers: Sleepers::new(threads),
            on_panic,
            entrances: OnceLock::new(),
            older: *newest,
        }));
        newest.insert(shared)
    }

    /// Where work of that priority comes in.
    pub(super) fn entrance(&'static self, priority: Priority) -> &'static Entrance {
        let all = self
            .entrances
            .get_or_init(|| Box::leak(Box::new(Priority::ALL.map(|priority| Entrance::new(self, priority)))));
        &all[priority as usize]
    }

    #[inline]
    pub(super) fn is_stopping(&self) -> bool {
        self.priorities.signals().is_stopping()
    }

    /// Tells the workers to end. What waits outside is handed to the caller; later posts from outside are dropped.
    pub(super) fn stop(&self) -> RunQueue {
        let left = self.priorities.close();
        self.sleepers.wake_all();
        left
    }

    /// Calls `f`; a panic goes to the pool's handler, and one of the handler no further than here.
    pub(super) fn contain(&self, f: impl FnOnce()) {
        contain(self.on_panic, f);
    }
}
