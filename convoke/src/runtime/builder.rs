//! How many threads of each kind a runtime has.

use core::fmt;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use convoke_core::raw::sync::atomic::AtomicUsize;
use convoke_exec::ThreadPool;
use convoke_net::net::resolver::{Names, install};
use convoke_task::BlockingPool;
use convoke_task::blocking::DEFAULT_THREADS;

use super::context_thread::ContextThread;
use super::{Runtime, context_spinning};

/// Says what a [`Runtime`] is made of.
#[derive(Clone)]
#[must_use = "nothing is made before `build`"]
pub struct RuntimeBuilder {
    contexts: Option<usize>,
    pool_threads: Option<usize>,
    blocking_threads: usize,
    spin: Option<Duration>,
    names: Option<Arc<dyn Names>>,
}

impl RuntimeBuilder {
    pub(super) fn new() -> Self {
        Self {
            contexts: None,
            pool_threads: None,
            blocking_threads: DEFAULT_THREADS,
            spin: None,
            names: None,
        }
    }

    /// How many I/O contexts; the first is on the thread that runs the program. At least one.
    pub fn contexts(mut self, contexts: usize) -> Self {
        self.contexts = Some(contexts);
        self
    }

    /// How many threads the pool has. At least one.
    pub fn pool_threads(mut self, threads: usize) -> Self {
        self.pool_threads = Some(threads);
        self
    }

    /// How many threads there may be for [`blocking()`](convoke_task::blocking()) work. At least one.
    pub fn blocking_threads(mut self, threads: usize) -> Self {
        self.blocking_threads = threads;
        self
    }

    /// For how long a context looks for events before it sleeps, at the most. It does so only while its sleeps turn out
    /// shorter than that, and rarely where looking has been in vain. 50 microseconds if nothing is said; zero has it always
    /// sleep at once.
    pub fn spin(mut self, longest: Duration) -> Self {
        self.spin = Some(longest);
        self
    }

    /// Who knows hosts by name, for all its contexts: the system, if nothing is said.
    ///
    /// ```
    /// use convoke::net::resolve;
    /// use convoke::net::resolver::HostTable;
    /// use convoke::runtime::Runtime;
    ///
    /// let hosts = HostTable::new().with("database", [10, 0, 0, 5]);
    /// let runtime = Runtime::builder().contexts(1).pool_threads(1).names(hosts).build().unwrap();
    /// let found = runtime.run(async { resolve("database:5432").await });
    /// assert_eq!(found.unwrap().unwrap(), ["10.0.0.5:5432".parse().unwrap()]);
    /// ```
    pub fn names(mut self, names: impl Names) -> Self {
        self.names = Some(Arc::new(names));
        self
    }

    /// Makes it, and starts its threads.
    ///
    /// # Errors
    /// If the system has no threads or descriptors for it.
    pub fn build(self) -> io::Result<Runtime> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let own = context_spinning(self.spin)?;
        let others = (1..self.contexts.unwrap_or(cores))
            .map(|number| ContextThread::start(number, self.spin))
            .collect::<io::Result<Vec<_>>>()?;
        let pool = ThreadPool::new(self.pool_threads.unwrap_or(cores).max(1))?;
        let mut executors = vec![own.executor()];
        executors.extend(others.iter().map(ContextThread::executor));
        if let Some(names) = self.names {
            for executor in &executors {
                install(executor.services(), names.clone()).map_err(io::Error::other)?;
            }
        }
        Ok(Runtime {
            _others: others,
            pool,
            blocking: BlockingPool::new(self.blocking_threads.max(1)),
            own,
            executors,
            next: AtomicUsize::new(0),
        })
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
