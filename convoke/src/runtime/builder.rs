//! `RuntimeBuilder`: the number of threads of each kind, and what all contexts share.

use core::fmt;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use convoke_core::FrameAllocator;
use convoke_core::raw::OutOfLine;
use convoke_net::net::resolver::{Names, install};
use convoke_task::BlockingPool;
use convoke_task::blocking::DEFAULT_THREADS;

use super::context_thread::ContextThread;
use super::pool::{OwnedPool, RuntimePool};
use super::{Runtime, RuntimeHandle, new_context};

/// Builder of a [`Runtime`].
#[derive(Clone)]
#[must_use = "nothing is created before `build`"]
pub struct RuntimeBuilder {
    contexts: Option<usize>,
    pool_threads: Option<usize>,
    /// Starts the pool with the runtime. Not called directly, so that programs without a pool do not contain it.
    start_pool: Option<fn(&RuntimePool) -> io::Result<()>>,
    blocking_threads: usize,
    spin: Option<Duration>,
    names: Option<Arc<dyn Names>>,
    allocator: FrameAllocator,
}

impl RuntimeBuilder {
    pub(super) fn new() -> Self {
        Self {
            contexts: None,
            pool_threads: None,
            start_pool: None,
            blocking_threads: DEFAULT_THREADS,
            spin: None,
            names: None,
            allocator: FrameAllocator::default(),
        }
    }

    /// Sets the number of I/O contexts, at least one. The first one belongs to the thread that runs the
    /// program; each other one has a thread. Default: the number of cores.
    pub fn contexts(mut self, contexts: usize) -> Self {
        self.contexts = Some(contexts);
        self
    }

    /// Sets the number of threads of the pool, at least one, and starts them with the runtime. Default: the number
    /// of cores, started when the pool is first [asked for](Runtime::pool).
    #[cfg(feature = "pool")]
    pub fn pool_threads(mut self, threads: usize) -> Self {
        self.pool_threads = Some(threads);
        self.start_pool = Some(|pool| pool.start().map(drop));
        self
    }

    /// Sets the maximum number of threads for [`blocking()`](convoke_task::blocking()) work, at least one.
    /// Default: [`DEFAULT_THREADS`].
    pub fn blocking_threads(mut self, threads: usize) -> Self {
        self.blocking_threads = threads;
        self
    }

    /// Sets how long a context polls for events before it sleeps, at most. It polls only while its sleeps turn
    /// out shorter than that, and rarely where polling has found nothing. Default: 50 microseconds. With zero
    /// it always sleeps at once.
    pub fn spin(mut self, longest: Duration) -> Self {
        self.spin = Some(longest);
        self
    }

    /// Sets how host names are resolved, on all contexts. Default: by the system.
    ///
    /// ```
    /// use convoke::net::resolve;
    /// use convoke::net::resolver::HostTable;
    /// use convoke::runtime::Runtime;
    ///
    /// let hosts = HostTable::new().with("database", [10, 0, 0, 5]);
    /// let builder = Runtime::builder().contexts(1);
    /// let runtime = builder.names(hosts).build().unwrap();
    /// let found = runtime.block_on(async { resolve("database:5432").await });
    /// assert_eq!(found.unwrap().unwrap(), ["10.0.0.5:5432".parse().unwrap()]);
    /// ```
    pub fn names(mut self, names: impl Names) -> Self {
        self.names = Some(Arc::new(names));
        self
    }

    /// Sets the frame allocator of all that runs on the contexts and the pool and names none. Default: one that recycles
    /// freed frames.
    ///
    /// ```
    /// use convoke::Executor;
    /// use convoke::alloc::{Bounded, FrameAllocator};
    /// use convoke::prelude::*;
    /// use convoke::runtime::Runtime;
    ///
    /// let frames = FrameAllocator::new(Bounded::new(1 << 20));
    /// let runtime = Runtime::builder().contexts(1).pool_threads(1);
    /// let runtime = runtime.allocator(frames.clone()).build()?;
    /// assert_eq!(runtime.contexts()[0].allocator(), frames);
    /// assert_eq!(runtime.pool().allocator(), frames);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn allocator(mut self, allocator: FrameAllocator) -> Self {
        self.allocator = allocator;
        self
    }

    /// Creates the runtime and starts its threads.
    ///
    /// # Errors
    /// If the system has no threads or descriptors for it.
    pub fn build(self) -> io::Result<Runtime> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let own = OutOfLine::new(new_context(self.spin, self.allocator.clone())?);
        let others = (1..self.contexts.unwrap_or(cores))
            .map(|number| ContextThread::start(number, self.spin, self.allocator.clone()).map(OutOfLine::new))
            .collect::<io::Result<Vec<_>>>()?;
        let pool =
            OwnedPool(RuntimePool::new(self.pool_threads.unwrap_or(cores).max(1), self.allocator.clone()));
        if let Some(start) = self.start_pool {
            start(&pool.0)?;
        }
        let mut executors = vec![own.executor()];
        executors.extend(others.iter().map(|thread| thread.executor()));
        if let Some(names) = self.names {
            for executor in &executors {
                install(executor.services(), names.clone()).map_err(io::Error::other)?;
            }
        }
        let blocking = BlockingPool::new(self.blocking_threads.max(1));
        let handle = RuntimeHandle::new(executors, pool.0.clone(), blocking);
        Ok(Runtime { _others: others, _pool: pool, own, handle })
    }
}

impl fmt::Debug for RuntimeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeBuilder")
            .field("contexts", &self.contexts)
            .field("pool_threads", &self.pool_threads)
            .field("blocking_threads", &self.blocking_threads)
            .field("spin", &self.spin)
            .field("own names", &self.names.is_some())
            .finish()
    }
}
