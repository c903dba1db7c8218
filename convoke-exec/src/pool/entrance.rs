//! Where work comes into a pool: an entrance for each priority. A handle is the address of one.

use core::{fmt, ptr};
use std::sync::{Mutex, OnceLock, PoisonError};

use convoke_core::raw::Runnable;
use convoke_core::raw::sync::Arc;

use super::gate::{Gate, Inside};
use super::priority::Priority;
use super::shared::Shared;
use super::worker::Worker;

/// The part of a pool that is never freed, so that a handle is a plain reference: a count that many threads change costs more
/// than all the rest of a post. It is small; the block that it leads to goes with the pool.
pub(super) struct Door {
    gate: Gate<Shared>,
    /// By priority. They lead back here, and so are made a moment later.
    entrances: OnceLock<[Entrance; 3]>,
    /// The one made before: the list keeps all of them reachable, for people who look for leaks.
    #[expect(dead_code, reason = "it is there to be pointed at")]
    older: Option<&'static Door>,
}

/// An entrance of a pool.
///
/// A thread of the pool knows its own by their addresses: for work of normal priority that is the one comparison it took
/// when there were no others.
pub(super) struct Entrance {
    door: &'static Door,
    pub(super) priority: Priority,
    /// Normal priority, and no limit to look at: one question instead of two, for what is asked most.
    is_plain: bool,
    /// How many threads the pool has, or had: at most `MAX_WORKERS`.
    threads: u16,
}

impl Door {
    /// A door to this block.
    pub(super) fn leak(shared: &Arc<Shared>) -> &'static Self {
        static NEWEST: Mutex<Option<&'static Door>> = Mutex::new(None);
        let mut newest = NEWEST.lock().unwrap_or_else(PoisonError::into_inner);
        let door: &'static Self = Box::leak(Box::new(Self {
            gate: Gate::new(shared.clone()),
            entrances: OnceLock::new(),
            older: *newest,
        }));
        *newest = Some(door);
        drop(newest);
        let is_unlimited = shared.priorities.normal().is_unlimited();
        let threads = u16::try_from(shared.sleepers.workers()).unwrap_or(u16::MAX);
        door.entrances.get_or_init(|| {
            Priority::ALL.map(|priority| {
                let is_plain = priority == Priority::Normal && is_unlimited;
                Entrance { door, priority, is_plain, threads }
            })
        });
        door
    }

    /// Where work of that priority comes in.
    pub(super) fn entrance(&'static self, priority: Priority) -> &'static Entrance {
        &self.entrances.get().expect("they are made with the door")[priority as usize]
    }

    /// Lets nobody in any more. The block goes when those who are inside have left.
    pub(super) fn close(&self) {
        self.gate.close();
    }
}

impl Entrance {
    /// That of the same pool with another priority.
    pub(super) fn sibling(&self, priority: Priority) -> &'static Self {
        self.door.entrance(priority)
    }

    /// Whether the two are of the same pool.
    #[inline]
    pub(super) fn is_of_the_pool_of(&self, other: &Self) -> bool {
        ptr::eq(self.door, other.door)
    }

    /// How many threads the pool has, or had.
    pub(super) fn threads(&self) -> usize {
        self.threads.into()
    }

    /// The block of the pool, unless it has ended.
    #[inline]
    fn shared(&self) -> Option<Inside<'_, Shared>> {
        self.door.gate.enter()
    }

    /// A number that tells the pool from others, for people who look.
    pub(super) fn number(&self) -> *const () {
        ptr::from_ref(self.door).cast()
    }

    /// Queues work that no thread of the pool has taken to itself. Over the limit, or after the end, it is stopped.
    #[inline]
    pub(super) fn post(&'static self, runnable: Runnable) {
        if let Err(refused) = self.try_post(runnable) {
            refused.stop();
        }
    }

    #[inline]
    fn try_post(&'static self, runnable: Runnable) -> Result<(), Runnable> {
        // Until the threads are told, too: as soon as it is queued, it may be run, and the pool end with it.
        let Some(shared) = self.shared() else { return Err(runnable) };
        if self.is_plain {
            shared.priorities.normal().push_unlimited(runnable)?;
        } else {
            self.push_by_priority(&shared, runnable)?;
        }
        shared.sleepers.notify();
        Ok(())
    }

    fn push_by_priority(&'static self, shared: &Shared, runnable: Runnable) -> Result<(), Runnable> {
        if Worker::is_here(self) {
            shared.priorities.push_from_inside(self.priority, runnable)
        } else {
            shared.priorities.push(self.priority, runnable)
        }
    }
}

/// The pool is seen from outside, without the circle that leads back here.
impl fmt::Debug for Entrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entrance").field(&self.priority).finish()
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").finish_non_exhaustive()
    }
}
