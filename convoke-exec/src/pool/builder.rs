//! How a pool is described before it is made.

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;

use convoke_core::Panic;
use crossbeam_deque::Worker as Deque;

use super::ThreadPool;
use super::shared::Shared;
use super::sleepers::MAX_WORKERS;
use super::worker::Worker;
use convoke_core::raw::report_panic;

/// Describes a [`ThreadPool`]; made by [`ThreadPool::builder`].
///
/// ```
/// use convoke::prelude::*;
///
/// let pool = ThreadPool::builder().threads(2).name("crunch").queue_limit(10_000).build().unwrap();
/// assert_eq!(pool.threads(), 2);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct ThreadPoolBuilder {
    threads: Option<usize>,
    name: String,
    stack_size: Option<usize>,
    queue_limit: usize,
    on_panic: fn(Panic),
}

impl ThreadPoolBuilder {
    pub(super) fn new() -> Self {
        Self {
            threads: None,
            name: "convoke-pool".into(),
            stack_size: None,
            queue_limit: usize::MAX,
            on_panic: report_panic,
        }
    }

    /// How many threads; as many as the machine runs at the same time, if it is not said.
    pub fn threads(self, threads: usize) -> Self {
        Self { threads: Some(threads), ..self }
    }

    /// What the threads are called: `name-0`, `name-1`, …
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// The stack of each thread, in bytes; what the standard library gives, if it is not said.
    pub fn stack_size(self, bytes: usize) -> Self {
        Self { stack_size: Some(bytes), ..self }
    }

    /// The most that may wait of what comes from outside, for each [priority](super::Priority); any number, if it is not said.
    ///
    /// An executor has no way to refuse but one: a post over the limit completes as stopped at once, inside the
    /// `post`, and is counted in [`ThreadPool::refused`]. What the pool's own work posts is not limited.
    pub fn queue_limit(self, limit: usize) -> Self {
        Self { queue_limit: limit, ..self }
    }

    /// Who is told of a panic that left a piece of work; the thread goes on. By default it is written to the error
    /// stream. (Panics in the closures of senders and in tasks do not come here: they are outcomes.)
    pub fn panic_handler(self, handler: fn(Panic)) -> Self {
        Self { on_panic: handler, ..self }
    }

    /// Makes the pool and starts its threads.
    ///
    /// # Errors
    /// If the number of threads is none or more than 65535, or if the system starts no more threads.
    pub fn build(self) -> io::Result<ThreadPool> {
        let threads = match self.threads {
            Some(threads) => threads,
            None => thread::available_parallelism().map_or(1, NonZeroUsize::get),
        };
        if threads == 0 || threads > MAX_WORKERS {
            let message = format!("a pool has between 1 and {MAX_WORKERS} threads, not {threads}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let shared = Shared::new(threads, self.queue_limit, self.on_panic);
        let deques: Vec<_> = (0..threads).map(|_| Deque::new_fifo()).collect();
        let stealers: Arc<[_]> = deques.iter().map(Deque::stealer).collect();
        let mut pool = ThreadPool::without_threads(shared.clone());
        let entrance = pool.entrance();
        for (index, deque) in deques.into_iter().enumerate() {
            let mut builder = thread::Builder::new().name(format!("{}-{index}", self.name));
            if let Some(bytes) = self.stack_size {
                builder = builder.stack_size(bytes);
            }
            let (shared, stealers) = (shared.clone(), Arc::clone(&stealers));
            let started = builder.spawn(move || Worker::run(shared, entrance, index, deque, stealers));
            // On failure, dropping the pool ends the threads that were started.
            pool.add(started.map_err(|error| no_thread(index + 1, threads, &error))?);
        }
        Ok(pool)
    }
}

/// Which one it is tells a limit of the system's from a stack that is too large.
#[cold]
fn no_thread(number: usize, of: usize, error: &io::Error) -> io::Error {
    let message = format!("the system does not start thread {number} of the {of} of a pool: {error}");
    io::Error::new(error.kind(), message)
}
