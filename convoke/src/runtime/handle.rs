//! `RuntimeHandle`: the runtime as the tasks that it runs see it, and `current()`, which finds it.

use core::fmt;
use core::future::Future;
use std::io;

use convoke_core::Executor;
use convoke_core::env::{Changes, Local};
#[cfg(feature = "pool")]
use convoke_exec::PoolExecutor;
use convoke_io::context::{CONTEXTS, Contexts};
use convoke_io::{IO, IoExecutor};
use convoke_task::launch::Launch;
use convoke_task::{BlockingPool, blocking, current, launch, scope};

use super::pool::RuntimePool;

/// The runtime that runs the current task. Inherited by everything that the runtime runs.
static RUNTIME: Local<RuntimeHandle> = Local::inherited("runtime");

/// Returns the runtime that runs the current task: its contexts, its pool and its blocking threads.
///
/// It is found through the environment. So it is there in everything that [`Runtime::block_on`](super::Runtime::block_on),
/// `#[convoke::main]` or [`RuntimeHandle::launch`] has started, on every context, on the pool, and in
/// [`blocking`](convoke_task::blocking()) work that calls back. [`env::current::runtime`](crate::env::current)
/// is the same function.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::runtime;
///
/// #[convoke::main(contexts = 2, pool_threads = 2)]
/// async fn main() -> std::io::Result<()> {
///     let runtime = runtime::current()?;
///     scope(async |s| {
///         for job in 0..4 {
///             // In turn on each context: for work that does I/O.
///             let print = async move { println!("job {job}") };
///             s.child().on(&runtime.next_context()).spawn(print);
///         }
///         // On the pool: for work that computes.
///         let factorial = async { println!("{}", (1..=20_u64).product::<u64>()) };
///         s.child().on(&runtime.pool()).spawn(factorial);
///     })
///     .await;
///     Ok(())
/// }
/// ```
///
/// # Errors
/// If the current task does not run in a runtime, or the call is made outside of all tasks. `?` makes an
/// `io::Error` of it.
pub fn current() -> Result<RuntimeHandle, NoRuntime> {
    current::local(&RUNTIME).ok_or(NoRuntime)
}

/// A [`Runtime`](super::Runtime) as the program that it runs sees it. Cheap to clone, and `Send`.
///
/// It does not keep the runtime alive. After the runtime has ended, work that is posted to its executors
/// completes as stopped.
#[derive(Clone)]
pub struct RuntimeHandle {
    contexts: Contexts,
    #[cfg_attr(not(feature = "pool"), expect(dead_code))]
    pool: RuntimePool,
    blocking: BlockingPool,
}

impl RuntimeHandle {
    pub(super) fn new(contexts: Vec<IoExecutor>, pool: RuntimePool, blocking: BlockingPool) -> Self {
        Self { contexts: Contexts::new(contexts), pool, blocking }
    }

    /// Returns the I/O contexts. The first is that of [`Runtime::block_on`](super::Runtime::block_on).
    pub fn contexts(&self) -> &[IoExecutor] {
        self.contexts.all()
    }

    /// Returns the contexts in turn, for work that may run on any of them. All handles of a runtime share the
    /// turn.
    pub fn next_context(&self) -> IoExecutor {
        self.contexts.next().clone()
    }

    /// Returns the executor of the thread pool, for work that computes. Tasks on it do their I/O through the
    /// first context. The first call starts the threads, unless
    /// [`pool_threads`](super::RuntimeBuilder::pool_threads) did.
    ///
    /// # Panics
    /// If the system cannot start the threads. Use [`try_pool`](RuntimeHandle::try_pool) to go on without them, or
    /// start them with the runtime, whose [`build`](super::RuntimeBuilder::build) then returns the error.
    #[cfg(feature = "pool")]
    #[track_caller]
    pub fn pool(&self) -> PoolExecutor {
        match self.try_pool() {
            Ok(executor) => executor,
            Err(error) => panic!("{error}"),
        }
    }

    /// Returns the executor of the thread pool, as [`pool`](RuntimeHandle::pool) does, or an error.
    ///
    /// # Errors
    /// If the system cannot start the threads. A later call tries again.
    ///
    /// ```
    /// use convoke::prelude::*;
    /// use convoke::run_on;
    /// use convoke::runtime::{self, Runtime};
    ///
    /// let runtime = Runtime::builder().contexts(1).build()?;
    /// let sum = runtime.block_on(async {
    ///     match runtime::current()?.try_pool() {
    ///         Ok(pool) => Ok(run_on(&pool, async { (1..=4).sum::<u32>() }).await),
    ///         Err(error) => Err(error),
    ///     }
    /// });
    /// assert_eq!(sum.unwrap()?, 10);
    /// # std::io::Result::Ok(())
    /// ```
    #[cfg(feature = "pool")]
    pub fn try_pool(&self) -> io::Result<PoolExecutor> {
        self.pool.start().map_err(|error| {
            let message = format!("the thread pool of the runtime could not be started: {error}");
            io::Error::new(error.kind(), message)
        })
    }

    /// Returns the threads for blocking work, which [`blocking()`](convoke_task::blocking()) uses.
    pub fn blocking(&self) -> &BlockingPool {
        &self.blocking
    }

    /// Runs one future on each context, and waits for all of them: for state or a listener per core. `make`
    /// is called with the index of the context. The first error, or panic, stops the others.
    ///
    /// - *Completes with* `Ok` when all have ended; the first error; or stopped.
    /// - *If dropped*, the futures are asked to stop, and the task waits for them at its end.
    /// - *Runs on* the contexts; the call itself on the current task.
    /// - *Panics* with the panic of a future.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use convoke::runtime::{self, Runtime};
    ///
    /// let runtime = Runtime::builder().contexts(2).build()?;
    /// let sum = Arc::new(AtomicUsize::new(0));
    /// let added = sum.clone();
    /// let outcome = runtime.block_on(async move {
    ///     let add = move |index| {
    ///         let sum = added.clone();
    ///         async move {
    ///             sum.fetch_add(index + 1, Ordering::Relaxed);
    ///             std::io::Result::Ok(())
    ///         }
    ///     };
    ///     runtime::current()?.on_each_context(add).await
    /// });
    /// outcome.unwrap()?;
    /// assert_eq!(sum.load(Ordering::Relaxed), 1 + 2);
    /// # std::io::Result::Ok(())
    /// ```
    pub async fn on_each_context<F, E>(&self, mut make: impl FnMut(usize) -> F) -> Result<(), E>
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Send + 'static,
    {
        scope(async |s| {
            for (index, context) in self.contexts().iter().enumerate() {
                s.named(format!("context {index}")).on(context).spawn(make(index));
            }
            Ok(())
        })
        .await
    }

    /// Returns a builder that launches a chain of this runtime on `executor`, from ordinary code or from
    /// another thread. The chain does its I/O through the first context if `executor` is not a context, its
    /// blocking work on the runtime's threads, and finds the runtime with [`current()`].
    ///
    /// ```
    /// use convoke::prelude::*;
    /// use convoke::runtime::{self, Runtime};
    ///
    /// let runtime = Runtime::builder().contexts(1).pool_threads(1).build()?;
    /// let handle = runtime.handle().clone();
    /// let answer = handle.launch(&handle.pool()).start(async {
    ///     runtime::current().map(|runtime| runtime.contexts().len())
    /// });
    /// assert_eq!(answer.wait(), Outcome::Value(Ok(1)));
    /// # std::io::Result::Ok(())
    /// ```
    pub fn launch<X: Executor>(&self, executor: &X) -> Launch {
        launch(executor)
            .local(&RUNTIME, self.clone())
            .local(&CONTEXTS, self.contexts.clone())
            .local(&blocking::POOL, self.blocking.clone())
            .local(&IO, self.contexts()[0].clone())
    }

    /// Adds what tasks of this runtime inherit. The keys that are looked up most often come last.
    pub(super) fn inherited(&self, changes: Changes) -> Changes {
        changes
            .local(&RUNTIME, self.clone())
            .local(&CONTEXTS, self.contexts.clone())
            .local(&blocking::POOL, self.blocking.clone())
            .local(&IO, self.contexts()[0].clone())
    }
}

impl fmt::Debug for RuntimeHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeHandle").field("contexts", &self.contexts().len()).finish_non_exhaustive()
    }
}

/// Error of [`current()`]: there is no runtime here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRuntime;

impl fmt::Display for NoRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "there is no runtime here: run the task in one (`#[convoke::main]`, `Runtime::block_on`), or launch it \
             with `RuntimeHandle::launch`",
        )
    }
}

impl core::error::Error for NoRuntime {}

impl From<NoRuntime> for io::Error {
    fn from(error: NoRuntime) -> Self {
        Self::new(io::ErrorKind::Unsupported, error)
    }
}
