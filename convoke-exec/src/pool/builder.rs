//! The builder of a pool.

use core::any::Any;
use core::fmt;
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;

use convoke_core::{FrameAllocator, Panic};
use crossbeam_deque::Worker as Deque;

use super::ThreadPool;
use super::port::PoolContext;
use super::shared::SharedPool;
use super::sleepers::MAX_WORKERS;
use super::worker::Worker;
use crate::start_thread::start_thread;
use convoke_core::raw::report_panic;

/// Builder for a [`ThreadPool`], created by [`ThreadPool::builder`].
///
/// ```
/// use convoke::prelude::*;
///
/// let builder = ThreadPool::builder().threads(2).name("crunch");
/// let pool = builder.queue_limit(10_000).build().unwrap();
/// assert_eq!(pool.threads(), 2);
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct ThreadPoolBuilder {
    threads: Option<usize>,
    name: String,
    stack_size: Option<usize>,
    queue_limit: usize,
    allocator: FrameAllocator,
    context: Option<&'static PoolContext>,
    on_panic: fn(Panic),
}

impl ThreadPoolBuilder {
    pub(super) fn new() -> Self {
        Self {
            threads: None,
            name: "convoke-pool".into(),
            stack_size: None,
            queue_limit: usize::MAX,
            allocator: FrameAllocator::default(),
            context: None,
            on_panic: report_panic,
        }
    }

    /// Sets the number of threads. The default is the parallelism of the machine.
    pub fn threads(self, threads: usize) -> Self {
        Self { threads: Some(threads), ..self }
    }

    /// Sets the names of the threads: `name-0`, `name-1`, … The default is `convoke-pool`.
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Sets the stack size of each thread, in bytes. The default is that of the standard library.
    pub fn stack_size(self, bytes: usize) -> Self {
        Self { stack_size: Some(bytes), ..self }
    }

    /// Limits the queued work that was posted from outside the pool, for each [priority](super::Priority).
    /// The default is no limit.
    ///
    /// A post over the limit completes as stopped at once, inside `post`, and is counted in
    /// [`ThreadPool::refused`]: an executor has no other way to refuse work. Posts of the pool's own work are
    /// not limited.
    pub fn queue_limit(self, limit: usize) -> Self {
        Self { queue_limit: limit, ..self }
    }

    /// Sets the function that is called with a panic that left a piece of work; the thread continues. The
    /// default writes the panic to standard error. Panics in the closures of senders and in tasks do not come
    /// here: they are outcomes.
    pub fn panic_handler(self, handler: fn(Panic)) -> Self {
        Self { on_panic: handler, ..self }
    }

    /// Sets the frame allocator of all that is launched on the pool and names none. The default recycles freed
    /// frames.
    ///
    /// ```
    /// use convoke::Executor;
    /// use convoke::alloc::{Bounded, FrameAllocator};
    /// use convoke::prelude::*;
    ///
    /// let frames = FrameAllocator::new(Bounded::new(1 << 20));
    /// let pool = ThreadPool::builder().threads(1).allocator(frames.clone()).build()?;
    /// assert_eq!(pool.executor().allocator(), frames);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn allocator(self, allocator: FrameAllocator) -> Self {
        Self { allocator, ..self }
    }

    /// Sets the context that the executor of the pool returns. It stays in memory as long as the process runs, since
    /// executors do.
    pub fn context(self, context: &'static (dyn Any + Send + Sync)) -> Self {
        Self { context: Some(context), ..self }
    }

    /// Builds the pool and starts its threads.
    ///
    /// # Errors
    /// If the number of threads is 0 or more than 65535, or if the system cannot start a thread.
    pub fn build(self) -> io::Result<ThreadPool> {
        let threads = match self.threads {
            Some(threads) => threads,
            None => thread::available_parallelism().map_or(1, NonZeroUsize::get),
        };
        if threads == 0 || threads > MAX_WORKERS {
            let message = format!("a pool must have between 1 and {MAX_WORKERS} threads, not {threads}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let shared = SharedPool::new(threads, self.queue_limit, self.allocator, self.on_panic);
        let deques: Vec<_> = (0..threads).map(|_| Deque::new_fifo()).collect();
        let stealers: Arc<[_]> = deques.iter().map(Deque::stealer).collect();
        let mut pool = ThreadPool::without_threads(shared.clone(), self.context);
        let port = pool.port();
        for (index, deque) in deques.into_iter().enumerate() {
            let (shared, stealers) = (shared.clone(), Arc::clone(&stealers));
            let work = move || Worker::run(shared, port, index, deque, stealers);
            let started = start_thread(format!("{}-{index}", self.name), self.stack_size, Box::new(work));
            // If it fails, dropping the pool ends the threads that were already started.
            pool.add(started.map_err(|error| no_thread(index + 1, threads, &error))?);
        }
        Ok(pool)
    }
}

impl fmt::Debug for ThreadPoolBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPoolBuilder")
            .field("threads", &self.threads)
            .field("name", &self.name)
            .field("stack_size", &self.stack_size)
            .field("queue_limit", &self.queue_limit)
            .field("allocator", &self.allocator)
            .finish_non_exhaustive()
    }
}

/// Creates the error for a thread that did not start. Its number helps to tell a limit of the system from a
/// stack that is too large.
#[cold]
fn no_thread(number: usize, of: usize, error: &io::Error) -> io::Error {
    let message = format!("cannot start thread {number} of the {of} threads of a pool: {error}");
    io::Error::new(error.kind(), message)
}
