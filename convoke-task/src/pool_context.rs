//! A thread pool with services. It lies beside `context`, which knows nothing of pools and launches.

use core::fmt;
use std::io;

use convoke_core::{ExecutorRef, FrameAllocator, Panic};
use convoke_exec::{PoolExecutor, ThreadPool, ThreadPoolBuilder};

use crate::context::{Context, ExecutionContext};
use crate::launch::block_on;

/// A [`ThreadPool`] with services. Its tasks find them as those of an I/O context find theirs.
///
/// Dropping it closes the services, the last one first, while the threads still run; then it ends the pool. The
/// executors of a pool are plain references, and so are the services that they lead to: the empty set stays in memory
/// until the process ends. Create pools at the start of a program.
///
/// ```
/// use convoke::alloc::{Bounded, FrameAllocator};
/// use convoke::executor::PoolContext;
/// use convoke::prelude::*;
///
/// let frames = FrameAllocator::new(Bounded::new(1 << 20));
/// let context = PoolContext::with_allocator(ThreadPool::builder().threads(2), frames)?;
/// let answer = launch(&context.executor()).start(async { 6 * 7 });
/// assert_eq!(answer.wait(), Outcome::Value(42));
/// # std::io::Result::Ok(())
/// ```
pub struct PoolContext {
    pool: ThreadPool,
    services: &'static Context,
}

impl PoolContext {
    /// Builds a pool, without services yet.
    ///
    /// # Errors
    /// As [`ThreadPoolBuilder::build`].
    pub fn new(builder: ThreadPoolBuilder) -> io::Result<Self> {
        Self::with_allocator(builder, FrameAllocator::default())
    }

    /// Builds a pool, without services yet. All that is launched on it and names no frame allocator uses `allocator`.
    ///
    /// # Errors
    /// As [`ThreadPoolBuilder::build`].
    pub fn with_allocator(builder: ThreadPoolBuilder, allocator: FrameAllocator) -> io::Result<Self> {
        let services: &'static Context =
            Box::leak(Box::new(Context::new().with_allocator(allocator.clone())));
        let pool = builder.allocator(allocator).context(services).build()?;
        services.set_executor(ExecutorRef::new(pool.executor()));
        Ok(Self { pool, services })
    }

    /// Returns the executor of the pool.
    pub fn executor(&self) -> PoolExecutor {
        self.pool.executor()
    }

    /// Returns the pool.
    pub fn pool(&self) -> &ThreadPool {
        &self.pool
    }

    /// Returns the services.
    pub fn services(&self) -> &Context {
        self.services
    }

    /// Closes all services, the last one first, and waits for that. Dropping the context does this too.
    ///
    /// - A service that takes longer than its [grace period](crate::cleanup::GRACE) is stopped. Failures are reported
    ///   to the [hook](crate::set_cleanup_hook), and the next service is closed.
    /// - *Runs on* the calling thread, which blocks; the pool runs on meanwhile.
    pub fn close_services(&self) {
        if !self.services.is_empty() {
            // Services do not panic here: their failures go to the hook.
            let _ = Panic::catch(|| block_on(self.services.close()));
        }
        let _ = Panic::catch(|| self.services.end());
    }
}

impl ExecutionContext for PoolContext {
    type Executor = PoolExecutor;

    fn executor(&self) -> PoolExecutor {
        self.executor()
    }

    fn services(&self) -> &Context {
        self.services()
    }
}

impl Drop for PoolContext {
    fn drop(&mut self) {
        self.close_services();
    }
}

impl fmt::Debug for PoolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolContext").field("pool", &self.pool).field("services", self.services).finish()
    }
}
