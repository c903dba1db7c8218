//! A runtime: one I/O context per core, a thread pool and threads for blocking work, under one roof; and how a program's
//! `main` runs on it. Where work runs is decided where it is launched.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `builder.rs` | how many of each |
//! | `context_thread.rs` | a context on a thread of its own |
//! | `main_entry.rs` | a program: what `#[convoke::main]` calls |
//! | `supervision.rs` | SIGINT and SIGTERM ask the program to stop; a second one, or a deadline, ends it hard |
//! | `test_entry.rs` | a test: what `#[convoke::test]` calls |
//! | `ending.rs` | what the program's end means to whoever started it |

mod builder;
mod context_thread;
mod ending;
mod main_entry;
mod supervision;
mod test_entry;

pub use builder::RuntimeBuilder;
pub use ending::{ENDED_HARD, Ending};
pub use main_entry::{Main, STOP_GRACE};
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
use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use convoke_core::{Outcome, StopToken};
use convoke_exec::{PoolExecutor, ThreadPool};
use convoke_io::driver::Driver;
use convoke_io::{IO, IoContext, IoExecutor};
use convoke_poll::PollDriver;
use convoke_task::{BlockingPool, blocking};

use context_thread::ContextThread;

/// A context of this thread's own, over the driver that fits this machine best.
///
/// # Errors
/// If the kernel gives us nothing to wait with.
pub fn io_context() -> io::Result<IoContext> {
    Ok(IoContext::new(driver()?))
}

/// The same, with how long its waits look before they sleep, if that was said.
fn context_spinning(longest: Option<Duration>) -> io::Result<IoContext> {
    let Some(longest) = longest else { return io_context() };
    Ok(IoContext::new(Arc::new(PollDriver::spinning(longest)?)))
}

/// The driver that fits this machine best.
///
/// # Errors
/// If the kernel gives us nothing to wait with.
pub fn driver() -> io::Result<Arc<dyn Driver>> {
    Ok(Arc::new(PollDriver::new()?))
}

/// See the head of this file.
///
/// The first context is that of the thread that makes the runtime, and runs while that thread is in [`run`](Runtime::run). Dropping
/// the runtime first ends the services of that context (see [`IoContext::close_services`]), then its other threads, each context with
/// its services; all that was started in it has ended then, for scopes do not end before. A chain that was launched on one of its
/// executors, and whose `Launched` outlives the runtime, is not waited for: its I/O fails, and it ends as stopped when it is woken next.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::runtime::Runtime;
///
/// let runtime = Runtime::builder().contexts(2).pool_threads(1).build().unwrap();
/// let pool = runtime.pool();
/// let answer = runtime.run(async move {
///     // Here we are on the first context; heavy work goes to the pool, and comes back.
///     run_on(&pool, async { (1..=6_u64).product::<u64>() }).await
/// });
/// assert_eq!(answer, Outcome::Value(720));
/// ```
pub struct Runtime {
    // In the order in which they end: first those who might still post to the rest.
    _others: Vec<ContextThread>,
    pool: ThreadPool,
    blocking: BlockingPool,
    own: IoContext,
    executors: Vec<IoExecutor>,
    next: AtomicUsize,
}

impl Runtime {
    /// With as many contexts, and as many threads in the pool, as there are cores.
    ///
    /// # Errors
    /// If the system has no threads or descriptors for it.
    pub fn new() -> io::Result<Self> {
        Self::builder().build()
    }

    /// With something else.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::new()
    }

    /// Runs the future on this thread until it has ended: a chain of its own, at home on the first context. It need be neither
    /// `Send` nor `'static`.
    ///
    /// - *Completes with* what the future returns, or stopped.
    /// - *Runs on* the calling thread.
    /// - *Panics* if the future did.
    #[doc(alias = "block_on")]
    #[track_caller]
    pub fn run<F: Future>(&self, future: F) -> Outcome<F::Output> {
        self.run_stoppable(StopToken::never(), future)
    }

    /// The same, asked to stop by this token.
    ///
    /// # Panics
    /// As [`run`](Runtime::run).
    #[track_caller]
    pub fn run_stoppable<F: Future>(&self, token: StopToken, future: F) -> Outcome<F::Output> {
        let changes = Changes::new()
            .stop_token(token)
            .local(&IO, self.own.executor())
            .local(&blocking::POOL, self.blocking.clone());
        self.own.run_until_with(changes, future)
    }

    /// The contexts, the first of which is the one of [`run`](Runtime::run): for one listener per core.
    ///
    /// ```
    /// use std::io;
    /// use std::net::SocketAddr;
    /// use convoke::net::{ListenOptions, TcpListener, TcpStream};
    /// use convoke::prelude::*;
    /// use convoke::runtime::Runtime;
    ///
    /// async fn serve(listener: TcpListener) -> io::Result<()> {
    ///     loop {
    ///         let (_client, _from) = listener.accept().await?;
    ///     }
    /// }
    ///
    /// let runtime = Runtime::builder().contexts(2).pool_threads(1).build()?;
    /// let contexts = runtime.contexts().to_vec();
    /// let outcome = runtime.run(async move {
    ///     let options = ListenOptions::new().reuse_port(true);
    ///     let first = TcpListener::bind_with("127.0.0.1:0", options.clone()).await?;
    ///     let address = first.local_addr()?;
    ///     scope(async |s| {
    ///         s.named("core 0").spawn(serve(first));
    ///         for (core, context) in contexts.iter().enumerate().skip(1) {
    ///             let options = options.clone();
    ///             s.named(format!("core {core}")).on(context).spawn(async move {
    ///                 // Bound here, it is served by the driver of this context, and so are its connections.
    ///                 serve(TcpListener::bind_with(address, options).await?).await
    ///             });
    ///         }
    ///         TcpStream::connect(address).await?;
    ///         s.request_stop(StopReason::Requested);
    ///         Ok(())
    ///     })
    ///     .await
    /// });
    /// outcome.unwrap()?;
    /// # io::Result::Ok(())
    /// ```
    pub fn contexts(&self) -> &[IoExecutor] {
        &self.executors
    }

    /// The contexts in turn: for what may run on any.
    pub fn next_context(&self) -> IoExecutor {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        self.executors[next % self.executors.len()].clone()
    }

    /// The thread pool. Tasks on it do their I/O through the first context.
    pub fn pool(&self) -> PoolExecutor {
        self.pool.executor()
    }

    /// The threads for blocking work: of [`blocking()`] in what [`run`](Runtime::run) runs.
    pub fn blocking(&self) -> &BlockingPool {
        &self.blocking
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // While the pool and the other contexts still run: services may close with their help.
        self.own.close_services();
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("contexts", &self.executors.len()).finish_non_exhaustive()
    }
}
