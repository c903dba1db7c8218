//! The part of a pool that its executors point to. It is never freed, so an executor is a plain reference.

use core::any::Any;
use core::{fmt, ptr};
use std::sync::{Mutex, OnceLock, PoisonError};

use convoke_core::FrameAllocator;
use convoke_core::raw::Runnable;
use convoke_core::raw::sync::Arc;

use super::gate::{InsideGate, PoolGate};
use super::priority::Priority;
use super::shared::SharedPool;
use super::worker::Worker;

/// The context that an executor of a pool returns.
pub(super) type PoolContext = dyn Any + Send + Sync;

/// The leaked part of a pool. An executor points into it with a plain reference: a reference count that many
/// threads change would cost more than all the rest of a post. It is small; the [`SharedPool`] block behind the
/// gate is freed with the pool.
pub(super) struct LeakedPool {
    gate: PoolGate<SharedPool>,
    /// One for each priority. They point back here, so they are created after this.
    ports: OnceLock<[Port; 3]>,
    /// The context of the pool, if it has one. It stays as long as the executors, which return a reference to it.
    context: Option<&'static PoolContext>,
    /// The pool that was leaked before this one. The list keeps all of them reachable, for leak checkers.
    #[expect(dead_code, reason = "only leak checkers follow it")]
    older: Option<&'static LeakedPool>,
}

/// The port of a pool for work of one priority. A [`PoolExecutor`](super::PoolExecutor) is a reference to
/// one.
///
/// A worker recognises posts to its own pool by this address: for work of normal priority that is one
/// comparison.
pub(super) struct Port {
    pool: &'static LeakedPool,
    pub(super) priority: Priority,
    /// True for normal priority without a queue limit: one check instead of two on the common path.
    is_plain: bool,
    /// Number of threads that the pool has or had: at most `MAX_WORKERS`.
    threads: u16,
}

impl LeakedPool {
    /// Leaks the handle part for this block.
    pub(super) fn leak(shared: &Arc<SharedPool>, context: Option<&'static PoolContext>) -> &'static Self {
        static NEWEST: Mutex<Option<&'static LeakedPool>> = Mutex::new(None);
        let mut newest = NEWEST.lock().unwrap_or_else(PoisonError::into_inner);
        let pool: &'static Self = Box::leak(Box::new(Self {
            gate: PoolGate::new(shared.clone()),
            ports: OnceLock::new(),
            context,
            older: *newest,
        }));
        *newest = Some(pool);
        drop(newest);
        let is_unlimited = shared.priorities.normal().is_unlimited();
        let threads = u16::try_from(shared.sleepers.workers()).unwrap_or(u16::MAX);
        pool.ports.get_or_init(|| {
            Priority::ALL.map(|priority| {
                let is_plain = priority == Priority::Normal && is_unlimited;
                Port { pool, priority, is_plain, threads }
            })
        });
        pool
    }

    /// Returns the port for work of this priority.
    pub(super) fn port(&'static self, priority: Priority) -> &'static Port {
        &self.ports.get().expect("`leak` creates the ports")[priority.index()]
    }

    /// Closes the gate: later posts are refused. The block is freed when the posts in progress have left.
    pub(super) fn close(&self) {
        self.gate.close();
    }
}

impl Port {
    /// Returns the port of the same pool for another priority.
    pub(super) fn sibling(&self, priority: Priority) -> &'static Self {
        self.pool.port(priority)
    }

    /// Returns true if both ports belong to the same pool.
    #[inline]
    pub(super) fn is_same_pool(&self, other: &Self) -> bool {
        ptr::eq(self.pool, other.pool)
    }

    /// Returns the number of threads that the pool has or had.
    pub(super) fn threads(&self) -> usize {
        self.threads.into()
    }

    /// Returns the context of the pool, if it has one.
    pub(super) fn context(&self) -> Option<&'static PoolContext> {
        self.pool.context
    }

    /// Returns the frame allocator of what is launched on the pool; the default, if the pool is dropped.
    pub(super) fn allocator(&self) -> FrameAllocator {
        self.shared().map(|shared| shared.allocator.clone()).unwrap_or_default()
    }

    /// Returns the shared block, unless the pool is dropped.
    #[inline]
    fn shared(&self) -> Option<InsideGate<'_, SharedPool>> {
        self.pool.gate.enter()
    }

    /// Returns an address that identifies the pool in debug output.
    pub(super) fn address(&self) -> *const () {
        ptr::from_ref(self.pool).cast()
    }

    /// Queues work in a queue that all workers share. Stops it if the queue is full or the pool is
    /// dropped.
    #[inline]
    pub(super) fn post(&'static self, runnable: Runnable) {
        if let Err(refused) = self.try_post(runnable) {
            refused.stop();
        }
    }

    #[inline]
    fn try_post(&'static self, runnable: Runnable) -> Result<(), Runnable> {
        // Held until the sleepers are notified too: as soon as the work is queued, it may run and
        // drop the pool.
        let Some(shared) = self.shared() else { return Err(runnable) };
        if self.is_plain {
            shared.priorities.normal().push_unlimited(runnable)?;
        } else {
            self.push_by_priority(&shared, runnable)?;
        }
        shared.sleepers.notify();
        Ok(())
    }

    fn push_by_priority(&'static self, shared: &SharedPool, runnable: Runnable) -> Result<(), Runnable> {
        if Worker::is_current(self) {
            shared.priorities.push_from_inside(self.priority, runnable)
        } else {
            shared.priorities.push(self.priority, runnable)
        }
    }
}

// Without the pool, which points back here.
impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Port").field(&self.priority).finish()
    }
}

impl fmt::Debug for LeakedPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeakedPool").finish_non_exhaustive()
    }
}
