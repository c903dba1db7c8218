//! `run(future)`: a chain of Convoke's inside the tokio task that awaits it.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use convoke_core::raw::Frame;
use convoke_core::{StopReason, StopToken};
use convoke_exec::raw::EmbeddedLoop;
use convoke_task::{Stopped, run_until_stopped, task};
use tokio::runtime::Handle;

use crate::chain::{Chain, Options};
use crate::spare_loops;

/// Runs a future with all of Convoke inside the tokio task that awaits it: scopes, `using`, `timeout`, locks,
/// sleeps, the tree of tasks; beside tokio's own sockets, timers and `spawn`. It is the way in for one handler.
///
/// The chain, which is the future with all that it starts, runs inside the one tokio task: its children take
/// turns there, at most [`PIECES_PER_POLL`](crate::PIECES_PER_POLL) pieces of work in one poll. Use
/// [`Workers`](crate::Workers) for children that run in parallel. Its time is tokio's, also if that is paused.
///
/// When tokio drops it before it has ended (a client hangs up, `abort`, `select!`), the chain is asked to stop,
/// and a task of the runtime, the reaper, awaits its clean-up. [`finish`](crate::finish()) waits for all of
/// those. Futures of tokio inside give way to a stop, as they do in every task
/// (`convoke::env::ForeignFutures`).
///
/// - *Completes with* `Ok` of what the future returns; with [`Stopped`], and the reason, if it was stopped: by
///   its [token](Run::stop_token), by [`finish`](crate::finish()), or by itself.
/// - *If dropped*, the chain is asked to stop ([`StopReason::Abandoned`]), and the reaper awaits it. If the
///   runtime has ended, it is cut short: destructors run, and skipped clean-up is reported to the hook
///   (`convoke::cleanup::set_cleanup_hook`).
/// - *Runs on* the tokio task that awaits it. Inside a task of Convoke's, such as another `run`, it is a task of
///   that chain, and a stop from around goes on there.
/// - *Panics* if the future does: the panic is resumed here. Outside a tokio runtime; and if the chain waits for a
///   time and the runtime's timers are not enabled.
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke_tokio::run;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Stopped> {
/// let sum = run(async {
///     scope(async |s| {
///         let one = s.spawn_future(async {
///             tokio::time::sleep(Duration::from_millis(1)).await; // tokio's
///             20
///         });
///         let other = s.spawn_future(async {
///             sleep(Duration::from_millis(1)).await; // Convoke's, by the same clock
///             22
///         });
///         one.await + other.await
///     })
///     .await
/// })
/// .await?;
/// assert_eq!(sum, 42);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn run<F>(future: F) -> Run<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    Run { state: RunState::NotBegun(future, Options::here()) }
}

/// Future of [`run()`].
#[must_use = "futures do nothing until they are awaited"]
pub struct Run<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    state: RunState<F, F::Output>,
}

enum RunState<F, T> {
    NotBegun(F, Options),
    Alone {
        chain: Chain<EmbeddedLoop, T>,
        runtime: Handle,
    },
    /// Inside a task of Convoke's.
    Nested(Pin<Box<dyn Future<Output = Result<T, Stopped>> + Send>>),
    Ended,
}

// The future is moved into its task before it is polled.
impl<F> Unpin for Run<F> where F: Future<Output: Send + 'static> + Send + 'static {}

impl<F> Run<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    /// Sets the name of the chain, for the tree of tasks and for panics. Without one, it is known by the line that
    /// called [`run()`].
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        if let RunState::NotBegun(_, options) = &mut self.state {
            options.name = Some(name.into());
        }
        self
    }

    /// Sets the stop token: the chain is asked to stop when its source is. It inherits the token's deadline.
    ///
    /// ```
    /// use convoke::prelude::*;
    /// use convoke::task::forever;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let source = StopSource::new();
    /// source.request_stop(StopReason::Named("reload"));
    /// let ended = convoke_tokio::run(async { forever().await }).stop_token(source.token()).await;
    /// assert_eq!(ended.unwrap_err().reason(), Some(StopReason::Named("reload")));
    /// # }
    /// ```
    #[doc(alias = "CancellationToken")]
    pub fn stop_token(mut self, token: StopToken) -> Self {
        if let RunState::NotBegun(_, options) = &mut self.state {
            options.token = token;
        }
        self
    }
}

impl<F, T> RunState<F, T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    fn begin(future: F, options: Options) -> Self {
        if Frame::current(|frame| frame.is_some()) {
            return Self::Nested(nested(future, options));
        }
        let runtime = current_runtime(options.location);
        let chain =
            Chain::start(spare_loops::take(), runtime.id(), &options, |_, launch| launch.start(future));
        Self::Alone { chain, runtime }
    }
}

/// Returns the future of a `run` inside a task of Convoke's: a task of that chain.
fn nested<F>(future: F, options: Options) -> Pin<Box<dyn Future<Output = Result<F::Output, Stopped>> + Send>>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let inner = task(future);
    let inner = match options.name {
        Some(name) => inner.named(name),
        None => inner,
    };
    Box::pin(run_until_stopped(options.token, inner))
}

/// Returns the tokio runtime that polls.
pub(crate) fn current_runtime(location: &'static Location<'static>) -> Handle {
    Handle::try_current().unwrap_or_else(|error| {
        panic!("what `convoke_tokio` runs for {location} is awaited in a tokio runtime: {error}")
    })
}

impl<F> Future for Run<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    type Output = Result<F::Output, Stopped>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let state = &mut self.state;
        if let RunState::NotBegun(..) = state
            && let RunState::NotBegun(future, options) = core::mem::replace(state, RunState::Ended)
        {
            *state = RunState::begin(future, options);
        }
        let ended = match state {
            RunState::Alone { chain, .. } => chain.poll(cx),
            RunState::Nested(future) => future.as_mut().poll(cx),
            RunState::NotBegun(..) | RunState::Ended => {
                panic!("`convoke_tokio::run` polled after it has ended")
            }
        };
        if ended.is_ready()
            && let RunState::Alone { mut chain, .. } = core::mem::replace(state, RunState::Ended)
            && let Some(pump) = chain.take_pump()
        {
            spare_loops::give_back(pump);
        }
        ended
    }
}

impl<F> Drop for Run<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    fn drop(&mut self) {
        if let RunState::Alone { chain, runtime } = core::mem::replace(&mut self.state, RunState::Ended) {
            reap(chain, &runtime);
        }
    }
}

/// Asks the chain to stop, and spawns the reaper, which awaits its clean-up. A runtime that has ended drops the
/// reaper at once, and with it the chain.
fn reap<T: Send + 'static>(mut chain: Chain<EmbeddedLoop, T>, runtime: &Handle) {
    if chain.has_ended() {
        return;
    }
    chain.request_stop(StopReason::Abandoned);
    drop(runtime.spawn(async move { core::future::poll_fn(|cx| chain.poll_ended(cx)).await }));
}

impl<F> fmt::Debug for Run<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}
