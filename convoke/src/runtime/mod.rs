//! The runtime: one I/O context per core, a thread pool, and threads for blocking work; and the entry points
//! of programs and tests. Where work runs is decided where it is started.
//!
//! A program normally has `#[convoke::main]`, which is [`Main`], and reaches its runtime from inside with
//! [`current()`]. A library or a program with a `main` of its own builds a [`Runtime`].
//!
//! | item | use |
//! | --- | --- |
//! | [`current()`], [`RuntimeHandle`] | the contexts, the pool and the blocking threads of the running program |
//! | [`Main`], `#[convoke::main]` | runs a program; signals ask it to stop |
//! | [`Runtime`], [`RuntimeBuilder`] | runs futures from ordinary code |
//! | [`Test`], `#[convoke::test]` | runs a test |
//! | [`ENDED_HARD`] | the exit status of a program that was asked to stop and did not end in time |

// `mod.rs`, `handle.rs` and `builder.rs` are the runtime; `context_thread.rs` is a context on its own thread, `pool.rs`
// the thread pool, and `no_pool.rs` its twin without the feature `pool`.
// `main_entry.rs` runs a program: `supervision.rs` handles its signals, `ending.rs` makes its exit status.
// `test_entry.rs` runs a test.

mod builder;
mod context_thread;
mod ending;
mod handle;
mod main_entry;
#[cfg(not(feature = "pool"))]
mod no_pool;
#[cfg(feature = "pool")]
mod pool;
mod supervision;
mod test_entry;

pub use builder::RuntimeBuilder;
pub use ending::ENDED_HARD;
pub use handle::{NoRuntime, RuntimeHandle, current};
pub use main_entry::{Main, STOP_GRACE};
pub use supervision::SECOND_SIGNAL_AFTER;
#[cfg(feature = "testing")]
pub use test_entry::InVirtualTime;
#[cfg(feature = "sim")]
pub use test_entry::Simulated;
pub use test_entry::{OnAContext, Test, TestOutput};

use core::fmt;
use core::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use convoke_core::env::Changes;
use convoke_core::raw::OutOfLine;
use convoke_core::{FrameAllocator, Outcome};
#[cfg(feature = "pool")]
use convoke_exec::PoolExecutor;
use convoke_io::driver::Driver;
use convoke_io::{IoContext, IoExecutor};
use convoke_poll::PollDriver;
use convoke_task::BlockingPool;
use convoke_task::raw::BoxedFuture;

use context_thread::ContextThread;
#[cfg(not(feature = "pool"))]
use no_pool as pool;
use pool::OwnedPool;

/// Creates an I/O context for the current thread, over the best driver of this machine.
///
/// # Errors
/// If the system has no descriptors for the driver.
pub fn io_context() -> io::Result<IoContext> {
    Ok(IoContext::new(driver()?))
}

/// Creates an I/O context for the current thread that polls for at most `spin` before it sleeps, and on which frames
/// come from `allocator`.
fn new_context(spin: Option<Duration>, allocator: FrameAllocator) -> io::Result<IoContext> {
    let driver = match spin {
        None => driver()?,
        Some(longest) => Arc::new(PollDriver::spinning(longest)?),
    };
    Ok(IoContext::with_allocator(driver, allocator))
}

/// Creates the best driver of this machine.
///
/// # Errors
/// If the system has no descriptors for it.
pub fn driver() -> io::Result<Arc<dyn Driver>> {
    Ok(Arc::new(PollDriver::new()?))
}

/// One I/O context per core, a thread pool, and threads for blocking work.
///
/// The first context belongs to the thread that creates the runtime, and runs while that thread is in
/// [`block_on`](Runtime::block_on). Dropping the runtime first ends the services of that context (see
/// [`IoContext::close_services`]), then the other contexts with their services, the pool, and the blocking
/// threads. Everything that was started in a `block_on` has ended by then, since scopes do not end before their
/// children. A chain that was launched on one of its executors, and whose `Launched` outlives the runtime, is
/// not awaited: its I/O fails, and it ends as stopped when it is woken next.
///
/// A runtime does not listen to signals: `#[convoke::main]` and [`Main`] do. Without them SIGTERM ends the process
/// at once.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::run_on;
/// use convoke::runtime::{self, Runtime};
///
/// let runtime = Runtime::builder().contexts(2).pool_threads(1).build().unwrap();
/// let answer = runtime.block_on(async {
///     // This runs on the first context. Heavy work goes to the pool.
///     let pool = runtime::current()?.pool();
///     std::io::Result::Ok(run_on(&pool, async { (1..=6_u64).product::<u64>() }).await)
/// });
/// assert_eq!(answer.unwrap().unwrap(), 720);
/// ```
pub struct Runtime {
    // In the order in which they end: first those that may still post to the rest.
    _others: Vec<OutOfLine<ContextThread>>,
    _pool: OwnedPool,
    handle: RuntimeHandle,
    own: OutOfLine<IoContext>,
}

impl Runtime {
    /// Creates a runtime with as many contexts as there are cores. The pool, with as many threads, is started when it
    /// is first [asked for](Runtime::pool).
    ///
    /// # Errors
    /// If the system has no threads or descriptors for it.
    pub fn new() -> io::Result<Self> {
        Self::builder().build()
    }

    /// Returns a builder to configure threads, names and limits.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::new()
    }

    /// Runs a future on this thread until it has ended. It is a chain of its own on the first context, and need
    /// be neither `Send` nor `'static`.
    ///
    /// - *Completes with* the output of the future, or stopped.
    /// - *Runs on* the calling thread.
    /// - *Panics* if the future panics.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> Outcome<F::Output> {
        self.block_on_with(Changes::new(), future)
    }

    /// Runs a future on this thread until it has ended, in a changed environment: with a stop token or locals,
    /// for example. Otherwise like [`block_on`](Runtime::block_on).
    ///
    /// # Panics
    /// If the future panics.
    #[track_caller]
    pub fn block_on_with<F: Future>(&self, changes: Changes, future: F) -> Outcome<F::Output> {
        let changes = self.handle.inherited(changes);
        self.own.block_on_with(changes, future)
    }

    /// Runs a future without a type: see [`IoContext::block_on_boxed`].
    #[track_caller]
    fn block_on_boxed(&self, changes: Changes, future: BoxedFuture<'_>) -> Outcome<()> {
        let changes = self.handle.inherited(changes);
        self.own.block_on_boxed(changes, future)
    }

    /// Returns the handle that [`current()`] returns inside.
    pub fn handle(&self) -> &RuntimeHandle {
        &self.handle
    }

    /// Returns the I/O contexts. The first is that of [`block_on`](Runtime::block_on).
    ///
    /// A server that uses all of them is one call: [`net::serve`](convoke_net::net::serve()).
    pub fn contexts(&self) -> &[IoExecutor] {
        self.handle.contexts()
    }

    /// Returns the contexts in turn, for work that may run on any of them.
    pub fn next_context(&self) -> IoExecutor {
        self.handle.next_context()
    }

    /// Returns the executor of the thread pool. Tasks on it do their I/O through the first context. The first call
    /// starts the threads, unless [`pool_threads`](RuntimeBuilder::pool_threads) did.
    ///
    /// # Panics
    /// If the system cannot start the threads: see [`try_pool`](Runtime::try_pool).
    #[cfg(feature = "pool")]
    #[track_caller]
    pub fn pool(&self) -> PoolExecutor {
        self.handle.pool()
    }

    /// Returns the executor of the thread pool, as [`pool`](Runtime::pool) does, or an error.
    ///
    /// # Errors
    /// If the system cannot start the threads. A later call tries again.
    #[cfg(feature = "pool")]
    pub fn try_pool(&self) -> io::Result<PoolExecutor> {
        self.handle.try_pool()
    }

    /// Returns the threads for blocking work, which [`blocking()`](convoke_task::blocking()) uses in what
    /// [`block_on`](Runtime::block_on) runs.
    pub fn blocking(&self) -> &BlockingPool {
        self.handle.blocking()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // While the pool and the other contexts still run: services may need them to close.
        self.own.close_services();
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("contexts", &self.contexts().len()).finish_non_exhaustive()
    }
}
