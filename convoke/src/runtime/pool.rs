//! The thread pool of a runtime. It is started when it is first asked for: many programs only do I/O, and need neither
//! its threads nor its code. Its type is erased, so that a program which does not ask for the pool does not contain
//! it.

use std::io;
use std::sync::{Arc, PoisonError};

use convoke_core::FrameAllocator;
use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_exec::{PoolExecutor, ThreadPool};

/// The pool of a runtime, as its handles see it.
#[derive(Clone)]
pub(super) struct RuntimePool(Arc<Mutex<PoolState>>);

struct PoolState {
    threads: usize,
    allocator: FrameAllocator,
    /// Set when the pool was started, and kept when it has ended.
    executor: Option<PoolExecutor>,
    /// The threads, while the runtime exists.
    running: Option<Box<dyn Send>>,
    has_ended: bool,
}

impl RuntimePool {
    pub(super) fn new(threads: usize, allocator: FrameAllocator) -> Self {
        let (executor, running, has_ended) = (None, None, false);
        Self(Arc::new(Mutex::new(PoolState { threads, allocator, executor, running, has_ended })))
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the executor. Starts the threads, if they were not.
    pub(super) fn start(&self) -> io::Result<PoolExecutor> {
        let mut state = self.lock();
        if let Some(executor) = state.executor {
            return Ok(executor);
        }
        // The executor of a pool that has ended stops what is posted to it.
        let threads = if state.has_ended { 1 } else { state.threads };
        let pool = ThreadPool::builder().threads(threads).allocator(state.allocator.clone()).build()?;
        let executor = pool.executor();
        state.executor = Some(executor);
        if !state.has_ended {
            state.running = Some(Box::new(pool));
        }
        Ok(executor)
    }

    /// Ends the threads, and waits for them.
    fn end(&self) {
        let mut state = self.lock();
        state.has_ended = true;
        let running = state.running.take();
        drop(state);
        drop(running);
    }
}

/// The pool of a runtime, as the runtime owns it.
pub(super) struct OwnedPool(pub(super) RuntimePool);

impl Drop for OwnedPool {
    fn drop(&mut self) {
        self.0.end();
    }
}
